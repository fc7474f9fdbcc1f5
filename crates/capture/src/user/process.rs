//! One traced process: from its rings to a CTF trace of its own, as LTTng's per-process buffers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ctf::writer::{
    ClockMeta, EnvValue, HeaderKind, PayloadWriter, StreamMeta, StreamWriter, TraceMeta,
    TraceWriter, random_uuid,
};
use event::{Cpu, Instant, Result};
use ring::{ClockKind, Directory, LOSS_NAMES, Liveness, Losses, Mode, Records, RingFile};

use super::classes;
use super::clock::CounterClock;
use super::filter;
use super::session::Wanted;
use super::wanted::{self, Verdict};

/// A pass copies at most so much of each ring; more than the largest record.
const COPY_BYTES: u64 = 1 << 20;

/// What one process gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserProcess {
    /// Its id, as it sees itself.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Events written.
    pub events: u64,
    /// Events lost while it was recorded, by cause.
    pub losses: Losses,
    /// Stretches of its rings that were no records.
    pub malformed: u64,
    /// Events of its code that found no room in its tables and could not be enabled.
    pub unregistered: u64,
    /// Bytes of its streams.
    pub size_bytes: u64,
}

impl UserProcess {
    /// Losses of all causes.
    pub fn lost(&self) -> u64 {
        self.losses.iter().sum()
    }
}

/// What all processes of a recording share.
pub(super) struct Common<'a> {
    /// Where traces of processes go.
    pub folder: &'a Path,
    pub wanted: &'a Wanted,
    pub wall_offset_ns: i64,
    pub trace_name: &'a str,
    /// Whether nothing is read: rings keep their newest events for whoever looks into them.
    pub in_flight: bool,
    /// Whether files of dead processes stay, for whoever looks into them.
    pub keeps_the_dead: bool,
}

/// One ring on its way to its stream.
struct Lane {
    ring: u32,
    /// The first offset that was not read.
    next: u64,
    /// The last time, on the file's clock and on the trace's.
    counter: u64,
    ns: i64,
    losses: Losses,
    lost_written: u64,
    /// When the losses were read.
    losses_ns: i64,
    /// Losses before we came.
    losses_before: Losses,
    bytes: Vec<u8>,
    stream: Option<StreamWriter>,
}

/// A process that is being recorded.
pub(super) struct Process {
    directory: Rc<Directory>,
    file: RingFile,
    lanes: Vec<Lane>,
    /// The place of each id's event in the table.
    places: HashMap<u16, usize>,
    /// Places of events that were switched on.
    switched: Vec<usize>,
    /// Events that could not be switched on, with the reason.
    problems: Vec<String>,
    trace: Option<(TraceWriter, TraceMeta)>,
    mode_before: Mode,
    /// Whether what was written makes room in the rings.
    consumes: bool,
    payload: PayloadWriter,
    events: u64,
    malformed: u64,
    size_bytes: u64,
}

impl Process {
    /// Takes the process over: its wanted events are switched on, full rings lose new events, or
    /// in flight old ones.
    pub fn attach(directory: Rc<Directory>, file: RingFile, common: &Common) -> Result<Self> {
        let mode_before = file.mode()?;
        match (common.in_flight, mode_before) {
            (true, _) => file.set_mode(Mode::Overwrite)?,
            (false, Mode::Overwrite) => file.set_mode(Mode::Discard)?,
            (false, _) => (),
        }
        let mut lanes = Vec::new();
        for ring in 0..file.layout().rings {
            let Some((window, losses)) = file.control(ring)? else {
                continue;
            };
            let kept = ring::overwritten_before(file.layout(), window.head);
            let began_with_us = file.layout().begin_ns >= common.wanted.begin_ns;
            let next = match mode_before {
                Mode::Overwrite => window.tail.max(kept),
                Mode::Discard | Mode::Block => window.tail,
            };
            lanes.push(Lane {
                losses_before: if began_with_us {
                    [0; LOSS_NAMES.len()]
                } else {
                    losses
                },
                ..Lane::new(ring, next)
            });
        }
        let mut process = Process::new(directory, file, lanes, mode_before);
        process.take_new_events(common)?;
        Ok(process)
    }

    fn new(directory: Rc<Directory>, file: RingFile, lanes: Vec<Lane>, mode_before: Mode) -> Self {
        Process {
            directory,
            file,
            lanes,
            places: HashMap::new(),
            switched: Vec::new(),
            problems: Vec::new(),
            trace: None,
            mode_before,
            consumes: true,
            payload: PayloadWriter::new(),
            events: 0,
            malformed: 0,
            size_bytes: 0,
        }
    }

    /// Writes what the rings hold now, and changes nothing in them: of rings that overwrite what
    /// they kept, of others what was not read.
    pub fn look(
        directory: Rc<Directory>,
        file: RingFile,
        clock: &CounterClock,
        common: &Common,
    ) -> Result<UserProcess> {
        let mut lanes = Vec::new();
        let mut malformed = 0;
        for ring in 0..file.layout().rings {
            lanes.extend(Lane::look(&file, ring, &mut malformed)?);
        }
        let clock = clock.of_file(file.layout());
        let mut process = Process::new(directory, file, lanes, Mode::Discard);
        process.consumes = false;
        process.malformed = malformed;
        // After the copy: whatever it holds was described before now.
        for place in process.file.read_table()? {
            let event = &process.file.table().events[place];
            process.places.insert(event.id, place);
        }
        for place in 0..process.lanes.len() {
            process.write(place, &clock, common)?;
        }
        process.close(&clock, Instant::MIN)
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// Whether it is that of `directory`.
    pub fn is_in(&self, directory: &Rc<Directory>) -> bool {
        Rc::ptr_eq(&self.directory, directory)
    }

    /// Leaves the last pair of both clocks in the file.
    pub fn leave_pair(&self, clock: &CounterClock) -> Result<()> {
        let pair = clock.last();
        pair.map_or(Ok(()), |(counter, ns)| self.file.leave_pair(counter, ns))
    }

    /// Whether it can still write.
    pub fn liveness(&self) -> Liveness {
        self.file.liveness()
    }

    /// Reads what is new; returns the fill of its fullest ring, 0 to 1.
    pub fn poll(&mut self, clock: &mut CounterClock, common: &Common) -> Result<f64> {
        let mut fullest = 0.0_f64;
        if common.in_flight {
            self.take_new_events(common)?;
            return Ok(fullest);
        }
        loop {
            let mut more = false;
            for lane in &mut self.lanes {
                let held = lane.copy(&self.file, &mut self.malformed)?;
                more |= held > COPY_BYTES;
                fullest = fullest.max(held as f64 / self.file.layout().ring_bytes as f64);
            }
            // After the copy: whatever it holds was described, and stamped, before now.
            self.take_new_events(common)?;
            if self.file.layout().clock == ClockKind::Counter && self.lanes.iter().any(Lane::holds)
            {
                clock.update();
            }
            for place in 0..self.lanes.len() {
                self.write(place, clock, common)?;
            }
            if !more {
                return Ok(fullest);
            }
        }
    }

    /// New descriptions: switches what is wanted, and makes classes of them.
    fn take_new_events(&mut self, common: &Common) -> Result<()> {
        let new = self.file.read_table()?;
        if new.is_empty() {
            return Ok(());
        }
        for place in new {
            let event = &self.file.table().events[place];
            self.places.insert(event.id, place);
            match wanted::verdict(&common.wanted.wishes, event) {
                Verdict::Unwanted => continue,
                Verdict::Wanted => self.file.switch(event, true)?,
                Verdict::If(expr) => {
                    let filter = filter::compile(&expr, event, self.file.layout().pid);
                    let problem = match filter {
                        Ok(filter) if self.file.switch_filtered(event, &filter)? => None,
                        Ok(_) => Some("no room for more filters".to_owned()),
                        Err(error) => Some(error.to_string()),
                    };
                    let name = || format!("{}: {}", self.file.name(), event.full_name());
                    let problem = problem.map(|problem| format!("{}: {problem}", name()));
                    self.problems.extend(problem);
                }
            }
            self.switched.push(place);
        }
        let (classes, log_levels) = (self.classes(), self.log_levels());
        if let Some((writer, meta)) = &mut self.trace {
            meta.streams[0].classes = classes;
            meta.streams[0].log_levels = log_levels;
            writer.update(meta)?;
            for stream in self
                .lanes
                .iter_mut()
                .filter_map(|lane| lane.stream.as_mut())
            {
                writer.teach(stream);
            }
        }
        Ok(())
    }

    fn classes(&self) -> Vec<event::EventClass> {
        let events = self.file.table().events.iter().enumerate();
        events
            .map(|(place, event)| classes::class(event, place))
            .collect()
    }

    fn log_levels(&self) -> Vec<Option<i64>> {
        let events = self.file.table().events.iter();
        events.map(|event| Some(i64::from(event.level))).collect()
    }

    /// Writes what a lane holds.
    fn write(&mut self, place: usize, clock: &CounterClock, common: &Common) -> Result<()> {
        let lane = &mut self.lanes[place];
        let silent = !lane.holds() && lane.losses == Losses::default();
        if silent && lane.stream.is_none() {
            return Ok(());
        }
        if self.trace.is_none() {
            self.trace = Some(self.create(common)?);
        }
        let lane = &mut self.lanes[place];
        if lane.stream.is_none()
            && let Some((writer, _)) = &mut self.trace
        {
            let mut stream = writer.stream(0, Cpu(lane.ring))?;
            if self.consumes {
                stream.covers(Instant::from_ns(common.wanted.begin_ns as i64))?;
            }
            lane.stream = Some(stream);
        }
        let layout = self.file.layout();
        let bytes = std::mem::take(&mut lane.bytes);
        let mut records = Records::new(&bytes, lane.next, layout.subbuffer_bytes, lane.counter);
        let Some(stream) = &mut lane.stream else {
            return Ok(());
        };
        // A loss lies before the end of the packet that counts it.
        let lost: u64 = lane.losses.iter().sum();
        let lost_more = lost > lane.lost_written;
        lane.lost_written = lost;
        stream.discarded(lost)?;
        for record in records.by_ref() {
            let ns = match layout.clock {
                ClockKind::Counter => clock.ns(record.time),
                ClockKind::Monotonic => record.time.min(i64::MAX as u64) as i64,
            };
            lane.ns = lane.ns.max(ns);
            let place = self.places.get(&record.id).copied();
            let event = place.and_then(|place| self.file.table().events.get(place));
            self.payload.clear().i32(layout.pid).i32(record.tid);
            let known =
                event.is_some_and(|e| classes::encode(e, record.payload, &mut self.payload));
            match (place, known) {
                (Some(place), true) => {
                    let time = Instant::from_ns(lane.ns);
                    stream.event(place as u32, time, self.payload.bytes())?;
                    self.events += 1;
                }
                _ => self.malformed += 1,
            }
        }
        self.malformed += records.malformed();
        lane.counter = records.time_max();
        if records.position() > lane.next {
            lane.next = records.position();
            if self.consumes {
                self.file.consumed(lane.ring, lane.next)?;
            }
        }
        lane.bytes = bytes;
        lane.bytes.clear();
        if lost_more {
            lane.ns = lane.ns.max(lane.losses_ns);
            stream.covers(Instant::from_ns(lane.ns))?;
        }
        Ok(())
    }

    fn create(&self, common: &Common) -> Result<(TraceWriter, TraceMeta)> {
        let layout = self.file.layout();
        let plain = |c: char| match c.is_ascii_alphanumeric() || "-_.".contains(c) {
            true => c,
            false => '_',
        };
        let name: String = layout.name.chars().map(plain).collect();
        let begin_ms = layout.begin_ns / 1_000_000;
        let folder: PathBuf = common.folder.join(format!(
            "{}-{}-{begin_ms}",
            name.trim_matches('.'),
            layout.pid
        ));
        let meta = TraceMeta {
            environment: self.environment(common),
            uuid: random_uuid()?,
            clocks: vec![ClockMeta::monotonic(common.wall_offset_ns)],
            losses_are_vague: true,
            streams: vec![StreamMeta {
                name: "channel0".to_owned(),
                header: HeaderKind::Large,
                classes: self.classes(),
                log_levels: self.log_levels(),
                event_context: classes::context().into(),
                ..StreamMeta::default()
            }],
            ..TraceMeta::default()
        };
        Ok((TraceWriter::create(&folder, &meta)?, meta))
    }

    fn environment(&self, common: &Common) -> Vec<(String, EnvValue)> {
        let layout = self.file.layout();
        let text = |text: &str| EnvValue::Text(text.to_owned());
        let mut entries = vec![("hostname", text(&crate::environment::hostname()))];
        entries.extend([("domain", text("ust")), ("tracer_name", text("lttng-ust"))]);
        entries.extend(
            crate::environment::TRACER_VERSION
                .map(|(name, number)| (name, EnvValue::Integer(number))),
        );
        entries.extend([
            ("tracer_buffering_scheme", text("pid")),
            ("trace_name", text(common.trace_name)),
            ("vpid", EnvValue::Integer(i64::from(layout.pid))),
            ("procname", text(&layout.name)),
            ("architecture_bit_width", EnvValue::Integer(64)),
            ("rtscope_version", text(env!("CARGO_PKG_VERSION"))),
        ]);
        let entries = entries.into_iter();
        entries
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Ends the recording of this process: switches go off, or its file goes when it is dead. Also
    /// gives what could not be switched on.
    pub fn finish(
        mut self,
        clock: &mut CounterClock,
        common: &Common,
        end: Instant,
    ) -> Result<(UserProcess, Vec<String>)> {
        let dead = self.liveness() == Liveness::Dead;
        for place in &self.switched {
            self.file.switch(&self.file.table().events[*place], false)?;
        }
        self.poll(clock, common)?;
        let process = self.close(clock, end)?;
        match (dead, common.keeps_the_dead) {
            (true, false) => self.directory.remove(self.file.name())?,
            // Its mode says how its rings are to be read.
            (true, true) => (),
            (false, _) => self.file.set_mode(self.mode_before)?,
        }
        Ok((process, self.problems))
    }

    /// Ends the streams and says in the trace what was lost.
    fn close(&mut self, clock: &CounterClock, end: Instant) -> Result<UserProcess> {
        let mut losses = Losses::default();
        for lane in &mut self.lanes {
            for (total, lost) in losses.iter_mut().zip(lane.losses) {
                *total += lost;
            }
            if let Some(mut stream) = lane.stream.take() {
                stream.covers(end.max(Instant::from_ns(lane.ns)))?;
                self.size_bytes += stream.finish()?.size_bytes;
            }
        }
        if let Some((writer, meta)) = &mut self.trace {
            let lost = LOSS_NAMES.iter().zip(losses).filter(|(_, lost)| *lost > 0);
            let lost = lost.map(|(cause, lost)| (format!("lost: {cause}"), lost as i64));
            let mut facts: Vec<_> = lost.collect();
            facts.push(("malformed".to_owned(), self.malformed as i64));
            if self.file.layout().clock == ClockKind::Counter {
                facts.push(("clock_error_ns".to_owned(), clock.error_ns()));
            }
            meta.environment
                .extend(facts.into_iter().map(|(name, number)| {
                    let name = name.replace([':', ' ', '-'], "_").replace("__", "_");
                    (format!("rtscope_{name}"), EnvValue::Integer(number))
                }));
            writer.update(meta)?;
        }
        Ok(UserProcess {
            pid: self.file.layout().pid,
            name: self.file.layout().name.clone(),
            events: self.events,
            losses,
            malformed: self.malformed,
            unregistered: self.file.unregistered()?,
            size_bytes: self.size_bytes,
        })
    }
}

impl Lane {
    fn new(ring: u32, next: u64) -> Lane {
        Lane {
            ring,
            next,
            counter: 0,
            ns: 0,
            losses: Losses::default(),
            lost_written: 0,
            losses_ns: 0,
            losses_before: Losses::default(),
            bytes: Vec::new(),
            stream: None,
        }
    }

    /// With all that a ring holds; none when there is no ring.
    fn look(file: &RingFile, ring: u32, malformed: &mut u64) -> Result<Option<Lane>> {
        let Some((window, losses)) = file.control(ring)? else {
            return Ok(None);
        };
        let mode = file.mode()?;
        let Some(range) = ring::readable(file.layout(), mode, window) else {
            *malformed += 1;
            return Ok(None);
        };
        let mut lane = Lane::new(ring, range.start);
        lane.losses = losses;
        lane.losses_ns = file.layout().begin_ns.min(i64::MAX as u64) as i64;
        file.copy(ring, range.clone(), &mut lane.bytes)?;
        if mode == Mode::Overwrite
            && let Some((window, _)) = file.control(ring)?
        {
            // What the writer reached meanwhile is no more what was copied.
            let kept = ring::overwritten_before(file.layout(), window.head);
            lane.next = kept.clamp(range.start, range.end);
            lane.bytes.drain(..(lane.next - range.start) as usize);
        }
        Ok(Some(lane))
    }

    fn holds(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Copies what is new; returns how much the ring held.
    fn copy(&mut self, file: &RingFile, malformed: &mut u64) -> Result<u64> {
        let now_ns = crate::clock::monotonic().as_ns();
        let Some((window, losses)) = file.control(self.ring)? else {
            return Ok(0);
        };
        self.losses_ns = now_ns;
        for (lost, (now, before)) in self
            .losses
            .iter_mut()
            .zip(losses.iter().zip(self.losses_before))
        {
            *lost = (*lost).max(now.saturating_sub(before));
        }
        let window = ring::Window {
            tail: self.next,
            ..window
        };
        let Some(range) = ring::readable(file.layout(), Mode::Discard, window) else {
            // The process broke its own ring: on from where it says that it is.
            *malformed += 1;
            self.next = window.head & !7;
            return file.consumed(self.ring, self.next).map(|()| 0);
        };
        let held = range.end - range.start;
        let end = range.start + held.min(COPY_BYTES);
        file.copy(self.ring, range.start..end, &mut self.bytes)?;
        Ok(held)
    }
}
