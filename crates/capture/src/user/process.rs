//! One traced process: from its rings to a CTF trace of its own, as LTTng's per-process buffers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant as StdInstant;

use ctf::writer::{
    ClockMeta, EnvValue, HeaderKind, PayloadWriter, StreamMeta, StreamWriter, TraceMeta,
    TraceWriter, random_uuid,
};
use event::{Cpu, Instant, Result};
use expr::Expr;
use ring::{
    ClockKind, Directory, LOSS_NAMES, Layout, Liveness, Losses, Mode, Record, Records, RingFile,
};

use super::classes;
use super::clock::{Converter, CounterClock};
use super::contexts::{self, Context, Contexts, Origin};
use super::filter::{self, ByRecorder, Compiled};
use super::map::{self, ProcessMap};
use super::session::Wanted;
use super::wanted::{self, Verdict};

/// A pass copies at most so much of each ring; more than the largest record.
const COPY_BYTES: u64 = 1 << 20;

/// Of a ring's room, so much may wait for the disk: one part in this many.
const WAITING_PARTS: u64 = 16;

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
    /// The first that is not in the file; what lies behind stays in the ring for a recorder that
    /// comes when this one is killed.
    kept: u64,
    /// The last time, on the file's clock and on the trace's.
    counter: u64,
    ns: i64,
    /// The time of the first record that was written.
    first_ns: Option<i64>,
    losses: Losses,
    lost_written: u64,
    /// When the losses were read.
    losses_ns: i64,
    /// Losses that others stated, or of before we came.
    losses_before: Losses,
    /// Ours that are in the file.
    losses_kept: Losses,
    bytes: Vec<u8>,
    stream: Option<StreamWriter>,
}

/// A process that is being recorded.
pub(super) struct Process {
    directory: Rc<Directory>,
    file: RingFile,
    lanes: Vec<Lane>,
    contexts: Contexts,
    /// Filters that the recorder evaluates, by the places of their events.
    filters: HashMap<usize, ByRecorder>,
    /// Places of events that were switched on.
    switched: Vec<usize>,
    /// Events that could not be switched on, with the reason.
    problems: Vec<String>,
    trace: Option<(TraceWriter, TraceMeta)>,
    map: ProcessMap,
    mode_before: Mode,
    /// Whether what was written makes room in the rings.
    consumes: bool,
    /// Whether its rings were read before: what they hold at first can be older than our clock.
    was_read: bool,
    /// Whether writing failed: what was read then is half written, and not to be read again.
    has_failed: bool,
    /// The error of the times of what is older than our clock.
    early_error_ns: i64,
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
                losses_before: match mode_before {
                    Mode::Overwrite if !began_with_us => losses,
                    // Also what was lost while nobody recorded: it lies behind what is left.
                    _ => file.losses_stated(ring)?,
                },
                ..Lane::new(ring, next)
            });
        }
        let mut process = Process::new(directory, file, lanes, mode_before);
        process.contexts = Contexts::new(&process.file, &common.wanted.contexts);
        process.take_new_events(common)?;
        Ok(process)
    }

    fn new(directory: Rc<Directory>, file: RingFile, lanes: Vec<Lane>, mode_before: Mode) -> Self {
        Process {
            directory,
            file,
            lanes,
            contexts: Contexts::default(),
            filters: HashMap::new(),
            switched: Vec::new(),
            problems: Vec::new(),
            trace: None,
            map: ProcessMap::default(),
            mode_before,
            consumes: true,
            was_read: false,
            has_failed: false,
            early_error_ns: 0,
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
        process.file.read_table()?;
        process.map.note(&mut process.file)?;
        process.map.ask_kernel(&process.file);
        let mut begin = Instant::MAX;
        for place in 0..process.lanes.len() {
            process.write(place, &clock, common)?;
            begin = begin.min(process.lanes[place].begin());
        }
        if let Some((writer, _)) = &mut process.trace
            && begin < Instant::MAX
        {
            // Not before the first event: a snapshot covers what its rings held.
            process
                .map
                .write(writer, process.file.layout().pid, begin)?;
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

    /// Whether what it said could not be written.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Brings what was written so far to the files.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.keep_all();
        self.has_failed |= flushed.is_err();
        flushed
    }

    fn keep_all(&mut self) -> Result<()> {
        for lane in &mut self.lanes {
            lane.keep(&self.file)?;
        }
        self.map.flush()
    }

    /// Reads what is new; returns the fill of its fullest ring, 0 to 1.
    pub fn poll(&mut self, clock: &mut CounterClock, common: &Common) -> Result<f64> {
        let read = self.read(clock, common);
        self.has_failed |= read.is_err();
        read
    }

    fn read(&mut self, clock: &mut CounterClock, common: &Common) -> Result<f64> {
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
            self.map.note(&mut self.file)?;
            self.map.ask_kernel(&self.file);
            self.contexts.refresh();
            if self.file.layout().clock == ClockKind::Counter && self.lanes.iter().any(Lane::holds)
            {
                clock.update();
            }
            match self.was_read {
                true => self.write_all(clock, common)?,
                false => {
                    let clock = clock.of_file(self.file.layout());
                    self.early_error_ns = clock.error_ns();
                    self.write_all(&clock, common)?;
                }
            }
            self.write_map(common)?;
            if !more {
                self.was_read = true;
                return Ok(fullest);
            }
        }
    }

    fn write_all(&mut self, clock: &CounterClock, common: &Common) -> Result<()> {
        for place in 0..self.lanes.len() {
            self.write(place, clock, common)?;
        }
        Ok(())
    }

    /// New descriptions: switches what is wanted, and makes classes of them.
    fn take_new_events(&mut self, common: &Common) -> Result<()> {
        let new = self.file.read_table()?;
        if new.is_empty() {
            return Ok(());
        }
        for place in new {
            let event = &self.file.table().events[place];
            match wanted::verdict(&common.wanted.wishes, event) {
                Verdict::Unwanted => continue,
                Verdict::Wanted => self.file.switch(event, true)?,
                Verdict::If(expr) => {
                    let problem = self.switch_if(place, &expr)?;
                    let event = &self.file.table().events[place];
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

    /// Switches the event at `place` on where `expr` holds; gives the reason why it cannot be.
    fn switch_if(&mut self, place: usize, expr: &Expr) -> Result<Option<String>> {
        let (file, contexts) = (&self.file, &mut self.contexts);
        let event = &file.table().events[place];
        let namespace = |place| contexts.namespace(place, file);
        let filter = filter::compile(expr, event, file.layout().pid, namespace);
        Ok(match filter {
            Ok(Compiled::Process(filter)) if file.switch_filtered(event, &filter)? => None,
            Ok(Compiled::Process(_)) => Some("no room for more filters".to_owned()),
            Ok(Compiled::Recorder(filter)) => {
                contexts.want_threads(file);
                self.filters.insert(place, *filter);
                file.switch(event, true)?;
                None
            }
            Err(error) => Some(error.to_string()),
        })
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

    /// Starts the stream of a lane that has something to say. False when it has nothing.
    fn begin_stream(
        &mut self,
        place: usize,
        clock: &CounterClock,
        common: &Common,
    ) -> Result<bool> {
        let lane = &self.lanes[place];
        let silent = !lane.holds() && lane.losses == Losses::default();
        if silent && lane.stream.is_none() {
            return Ok(false);
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
                // From the recording's begin, or from what nobody read before it.
                let begin = Instant::from_ns(common.wanted.begin_ns as i64);
                let first = lane.first_held(self.file.layout(), clock);
                stream.covers(first.map_or(begin, |first| begin.min(first)))?;
            }
            lane.stream = Some(stream);
        }
        Ok(true)
    }

    /// Writes what a lane holds.
    fn write(&mut self, place: usize, clock: &CounterClock, common: &Common) -> Result<()> {
        if !self.begin_stream(place, clock, common)? {
            return Ok(());
        }
        let lane = &mut self.lanes[place];
        let layout = self.file.layout();
        let bytes = std::mem::take(&mut lane.bytes);
        let mut records = Records::new(&bytes, lane.next, layout.subbuffer_bytes, lane.counter);
        let Some(stream) = &mut lane.stream else {
            return Ok(());
        };
        let mut converter = clock.converter();
        // A loss lies before the end of the packet that counts it.
        let lost: u64 = lane.losses.iter().sum();
        let lost_more = lost > lane.lost_written;
        lane.lost_written = lost;
        stream.discarded(lost)?;
        let mut scribe = Scribe {
            file: &self.file,
            wanted: &common.wanted.contexts,
            now: StdInstant::now(),
            contexts: &mut self.contexts,
            filters: &mut self.filters,
            payload: &mut self.payload,
        };
        for record in records.by_ref() {
            lane.ns = lane.ns.max(time_ns(layout.clock, &mut converter, &record));
            lane.first_ns.get_or_insert(lane.ns);
            match scribe.lay_out(&record, lane.ring) {
                LaidOut::As(class) => {
                    let time = Instant::from_ns(lane.ns);
                    stream.event(class, time, scribe.payload.bytes())?;
                    self.events += 1;
                }
                LaidOut::Filtered => (),
                LaidOut::Malformed => self.malformed += 1,
            }
        }
        self.malformed += records.malformed();
        lane.counter = records.time_max();
        lane.next = lane.next.max(records.position());
        lane.bytes = bytes;
        lane.bytes.clear();
        if lost_more {
            lane.ns = lane.ns.max(lane.losses_ns);
            stream.covers(Instant::from_ns(lane.ns))?;
        }
        let waiting = lane.next.saturating_sub(lane.kept);
        match self.consumes && waiting >= layout.ring_bytes / WAITING_PARTS {
            true => lane.keep(&self.file),
            false => Ok(()),
        }
    }

    /// Writes what is new of the process's map, when there is a trace to write it to.
    fn write_map(&mut self, common: &Common) -> Result<()> {
        let Some((writer, _)) = &mut self.trace else {
            return Ok(());
        };
        let begin = Instant::from_ns(common.wanted.begin_ns as i64);
        self.map.write(writer, self.file.layout().pid, begin)
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
            streams: vec![
                StreamMeta {
                    name: "channel0".to_owned(),
                    header: HeaderKind::Large,
                    classes: self.classes(),
                    log_levels: self.log_levels(),
                    event_context: contexts::fields(&common.wanted.contexts),
                    ..StreamMeta::default()
                },
                map::stream(),
            ],
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
        let ended = self.read_to_the_end(clock, common, end);
        // Also when the disk is full: nobody must go on writing for us.
        match (dead, common.keeps_the_dead) {
            (true, false) => self.directory.remove(self.file.name())?,
            // Its mode says how its rings are to be read.
            (true, true) => (),
            (false, _) => self.file.set_mode(self.mode_before)?,
        }
        Ok((ended?, self.problems))
    }

    /// Switches off, reads what is left unless writing failed before, and ends the streams.
    fn read_to_the_end(
        &mut self,
        clock: &mut CounterClock,
        common: &Common,
        end: Instant,
    ) -> Result<UserProcess> {
        for place in &self.switched {
            self.file.switch(&self.file.table().events[*place], false)?;
        }
        if !common.in_flight {
            self.map.look(&self.file);
        }
        let read = match self.has_failed {
            true => Ok(0.0),
            false => self.poll(clock, common),
        };
        let closed = self.close(clock, end);
        read.and(closed)
    }

    /// Ends the streams and says in the trace what was lost.
    fn close(&mut self, clock: &CounterClock, end: Instant) -> Result<UserProcess> {
        let mut losses = Losses::default();
        let mut ended = Ok(());
        for lane in &mut self.lanes {
            for (total, lost) in losses.iter_mut().zip(lane.losses) {
                *total += lost;
            }
            let kept = match self.consumes && !self.has_failed {
                true => lane.keep(&self.file),
                false => Ok(()),
            };
            // Each of them, whatever became of the others.
            let size_bytes = lane.finish(end);
            self.size_bytes += size_bytes.as_ref().map_or(0, |bytes| *bytes);
            ended = ended.and(kept).and(size_bytes.map(|_| ()));
        }
        self.size_bytes += self.map.finish(end)?;
        ended?;
        if let Some((writer, meta)) = &mut self.trace {
            let lost = LOSS_NAMES.iter().zip(losses).filter(|(_, lost)| *lost > 0);
            let lost = lost.map(|(cause, lost)| (format!("lost: {cause}"), lost as i64));
            let mut facts: Vec<_> = lost.collect();
            facts.push(("malformed".to_owned(), self.malformed as i64));
            if self.contexts.unknown() > 0 {
                let unknown = self.contexts.unknown() as i64;
                facts.push(("context_unknown".to_owned(), unknown));
            }
            if self.file.layout().clock == ClockKind::Counter {
                facts.push((
                    "clock_error_ns".to_owned(),
                    clock.error_ns().max(self.early_error_ns),
                ));
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

/// What becomes of records on their way into the trace.
struct Scribe<'p> {
    file: &'p RingFile,
    /// Contexts that each event gets.
    wanted: &'p [Context],
    /// When the records were read.
    now: StdInstant,
    contexts: &'p mut Contexts,
    filters: &'p mut HashMap<usize, ByRecorder>,
    payload: &'p mut PayloadWriter,
}

/// What one record became.
enum LaidOut {
    /// An event of this class; the payload has its bytes.
    As(u32),
    /// None: a filter of the recorder dropped it.
    Filtered,
    /// It is not what its description says.
    Malformed,
}

impl Scribe<'_> {
    /// Lays out a record of the ring `ring`.
    fn lay_out(&mut self, record: &Record<'_>, ring: u32) -> LaidOut {
        let table = self.file.table();
        let Some(place) = table.place_of(record.id) else {
            return LaidOut::Malformed;
        };
        let event = &table.events[place];
        let origin = Origin {
            pid: self.file.layout().pid,
            tid: record.tid,
            ring,
            code_address: event.code_address,
        };
        if let Some(filter) = self.filters.get_mut(&place) {
            self.payload.clear();
            if !classes::encode(event, record.payload, self.payload) {
                return LaidOut::Malformed;
            }
            self.contexts
                .encode(filter.contexts(), origin, self.now, self.payload);
            if !filter.passes(self.payload, Cpu(ring)) {
                return LaidOut::Filtered;
            }
        }
        self.payload.clear();
        self.contexts
            .encode_all(self.wanted, origin, self.now, self.payload);
        match classes::encode(event, record.payload, self.payload) {
            true => LaidOut::As(place as u32),
            false => LaidOut::Malformed,
        }
    }
}

/// The time of a record, in nanoseconds of CLOCK_MONOTONIC.
fn time_ns(clock: ClockKind, converter: &mut Converter<'_>, record: &Record<'_>) -> i64 {
    match clock {
        ClockKind::Counter => converter.ns(record.time),
        ClockKind::Monotonic => record.time.min(i64::MAX as u64) as i64,
    }
}

impl Lane {
    fn new(ring: u32, next: u64) -> Lane {
        Lane {
            ring,
            next,
            kept: next,
            counter: 0,
            ns: 0,
            first_ns: None,
            losses: Losses::default(),
            lost_written: 0,
            losses_ns: 0,
            losses_before: Losses::default(),
            losses_kept: Losses::default(),
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

    /// Brings what was read to the file, and says so in the ring.
    fn keep(&mut self, file: &RingFile) -> Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        stream.gap()?;
        if self.next > self.kept {
            self.kept = self.next;
            file.consumed(self.ring, self.kept)?;
        }
        // What was read of the counters and is in no packet yet comes with the next.
        let lost: u64 = self.losses.iter().sum();
        if lost == self.lost_written && self.losses != self.losses_kept {
            self.losses_kept = self.losses;
            let mut all = self.losses_before;
            for (all, ours) in all.iter_mut().zip(self.losses) {
                *all = all.saturating_add(ours);
            }
            file.stated(self.ring, &all)?;
        }
        Ok(())
    }

    /// Ends its stream; gives its size in bytes.
    fn finish(&mut self, end: Instant) -> Result<u64> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(0);
        };
        stream.covers(end.max(Instant::from_ns(self.ns)))?;
        Ok(stream.finish()?.size_bytes)
    }

    /// The time of its first event; the end of time without one.
    fn begin(&self) -> Instant {
        let first = self.first_ns.map(Instant::from_ns);
        first.unwrap_or(Instant::MAX)
    }

    /// The time of the first record that was copied.
    fn first_held(&self, layout: &Layout, clock: &CounterClock) -> Option<Instant> {
        let size = layout.subbuffer_bytes;
        let first = Records::new(&self.bytes, self.next, size, self.counter).next()?;
        let ns = time_ns(layout.clock, &mut clock.converter(), &first);
        Some(Instant::from_ns(ns))
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
            self.kept = self.next;
            return file.consumed(self.ring, self.next).map(|()| 0);
        };
        let held = range.end - range.start;
        let end = range.start + held.min(COPY_BYTES);
        file.copy(self.ring, range.start..end, &mut self.bytes)?;
        Ok(held)
    }
}
