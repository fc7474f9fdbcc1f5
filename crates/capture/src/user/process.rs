//! One traced process: from its rings to a CTF trace of its own, as LTTng's per-process buffers.

mod ending;
mod events;
mod memory;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::{Outlet, TraceMeta, TraceWriter};
use event::{Cpu, Error, ErrorKind, Instant, Result};
use ring::{ClockKind, Directory, Liveness, Losses, Mode, RingFile, Switch};

use super::clock::CounterClock;
use super::contexts::Contexts;
use super::filter::ByRecorder;
use super::forgotten::Forgotten;
use super::lane::Lane;
use super::map::{LookBudget, ProcessMap};
use super::metadata::{self, Folders};
use super::place::Read;
use super::recorders::Recorders;
use super::room::LateRoom;
use super::scribe::{Desk, Scribe, Transcribed};
use super::session::Wanted;
use super::wanted::{self, Verdict};

/// Of a ring's room, so much may wait for the disk: one part in this many.
const WAITING_PARTS: u64 = 16;
/// So much of all rings of a process is read until others have their turn.
const TURN_BYTES: u64 = 8 << 20;
/// How often a process is asked whether it lives: until then its file stays, and its descriptor.
const LIVENESS_PERIOD: StdDuration = StdDuration::from_millis(100);

/// What one process gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserProcess {
    /// Its id, as it sees itself.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Events written.
    pub events: u64,
    /// Events for which there was no room on the way to another host.
    pub refused: u64,
    /// Events lost while it was recorded, by cause.
    pub losses: Losses,
    /// Stretches of its rings that were no records.
    pub malformed: u64,
    /// Events of its code that found no room in its tables and could not be enabled.
    pub unregistered: u64,
    /// Bytes of its streams.
    pub size_bytes: u64,
    /// Bytes of each of its rings.
    pub ring_bytes: u64,
}

impl UserProcess {
    /// Losses of all causes.
    pub fn lost(&self) -> u64 {
        total(&self.losses).saturating_add(self.refused)
    }

    /// Whether there is anything to say of it. It says some of these numbers itself: they are not
    /// added up.
    pub(super) fn has_something(&self) -> bool {
        let numbers = [self.events, self.lost(), self.malformed, self.unregistered];
        numbers.iter().any(|number| *number > 0)
    }
}

/// Losses of all causes.
pub(super) fn total(losses: &Losses) -> u64 {
    losses
        .iter()
        .fold(0, |total: u64, lost| total.saturating_add(*lost))
}

/// Takes a set of rings of a process for us.
fn claim(file: &mut RingFile, recorders: &Recorders, ring_bytes: u64) -> Result<()> {
    let what = format!("the rings {} are recorded already", file.name());
    let has_sets = file.layout().has_sets();
    if !has_sets && !recorders.is_first {
        return Err(Error::new(ErrorKind::Unsupported, what)
            .found("another recorder, and a librtscope-probe of before, whose rings have one")
            .fix("build the program with the librtscope-probe of this rtscope"));
    }
    match file.claim(recorders.own, &|id| recorders.is_live(id), ring_bytes)? {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::AlreadyExists, what)
            .found(match file.layout().sets() {
                1 => "one set of rings, which another recorder has".to_owned(),
                sets => format!("{sets} sets of rings, which other recorders have"),
            })
            .fix("end a recorder first; a program that locks its memory has few sets")),
    }
}

/// What became of a process.
pub(super) struct Ended {
    pub process: UserProcess,
    /// What went wrong with it alone.
    pub problems: Vec<String>,
    /// What the disk says: that is everybody's.
    pub disk: Result<()>,
    /// Whether its file stays though it is dead: other recorders have still to read it.
    pub stays: bool,
}

/// What all processes of a recording share.
pub(super) struct Common<'a> {
    /// Where traces of processes go.
    pub folder: &'a Path,
    /// The names that were given there.
    pub folders: &'a Folders,
    pub wanted: &'a Wanted,
    pub wall_offset_ns: i64,
    pub trace_name: &'a str,
    /// Who is told of what is written.
    pub outlet: Option<&'a Arc<dyn Outlet>>,
    /// Whether nothing is read: rings keep their newest events for whoever looks into them.
    pub in_flight: bool,
    /// Whether files of dead processes stay, for whoever looks into them.
    pub keeps_the_dead: bool,
    /// How often the kernel is asked for the map of each process.
    pub look_period: StdDuration,
    /// How large rings become that have no size yet; none where nothing is switched on.
    pub late_room: Option<&'a LateRoom>,
}

/// A process that is being recorded.
pub(super) struct Process {
    directory: Rc<Directory>,
    file: RingFile,
    lanes: Vec<Lane>,
    /// Rings that have no memory before their first event, and no lane.
    awaited: Vec<u32>,
    contexts: Contexts,
    /// Filters that the recorder evaluates, by the places of their events.
    filters: HashMap<usize, ByRecorder>,
    /// Places of events that were switched on.
    switched: Vec<usize>,
    /// Events that could not be switched on, or that the process says are missing, with the reason.
    problems: Vec<String>,
    /// So many events and fields were described.
    described: usize,
    /// So many of its notes were looked at.
    notes_read: usize,
    /// What it says of itself, until an event of it is wanted.
    untold: Vec<String>,
    /// That its rings are of another size than was asked for, until an event of it is wanted.
    undersized: Option<String>,
    /// Whether it was said that events lack contexts of the application.
    lacks_contexts: bool,
    /// Whether it was said that rings found no memory.
    lacks_memory: bool,
    trace: Option<(TraceWriter, TraceMeta)>,
    map: ProcessMap,
    /// The mode that the rings get when the recording ends.
    mode_behind: Mode,
    /// Whether what was written makes room in the rings.
    consumes: bool,
    /// Whether its rings were read before: what they hold at first can be older than our clock.
    was_read: bool,
    /// Whether writing failed: what was read then is half written, and not to be read again.
    has_failed: bool,
    /// The error of the times of what is older than our clock.
    early_error_ns: i64,
    desk: Desk,
    written: Transcribed,
    size_bytes: u64,
    refused: u64,
    /// Whose lane is read first in the next turn.
    first_lane: usize,
    /// How often its descriptions took long, and until when others come first therefore.
    described_slowly: u32,
    rests_until: Option<StdInstant>,
    asked_liveness: Option<StdInstant>,
    /// When it was switched off.
    stopped: Option<Instant>,
}

impl Process {
    /// Takes the process over: its wanted events are switched on, full rings lose new events, in
    /// the mode block after some waiting, or in flight old ones.
    pub fn attach(
        directory: Rc<Directory>,
        mut file: RingFile,
        common: &Common,
        (recorders, forgotten): (&Recorders, &Forgotten),
    ) -> Result<Self> {
        let ring_bytes = match common.late_room {
            Some(room) => Process::next_size(room, &directory, common)?,
            None => 0,
        };
        claim(&mut file, recorders, ring_bytes)?;
        let mode_before = file.mode()?;
        match (common.in_flight, mode_before) {
            (true, _) => file.set_mode(Mode::Overwrite)?,
            (false, Mode::Overwrite) => file.set_mode(Mode::Discard)?,
            (false, _) => (),
        }
        if !common.in_flight {
            file.map();
        }
        let mode_behind = forgotten.mode_behind(mode_before);
        let mut process = Process::new(directory, file, Vec::new(), mode_behind);
        process.add_lanes(mode_before, common)?;
        process.map = ProcessMap::of(&process.file, common.wanted.begin_ns);
        process.contexts = Contexts::new(&process.file, &common.wanted.contexts);
        process.say_size(common);
        process.take_new_events(common)?;
        for event in &process.file.table().events {
            let is_wanted = wanted::verdict(&common.wanted.rules, event) != Verdict::Unwanted;
            if !is_wanted && forgotten.names(event) {
                process.file.switch(event, Switch::Off)?;
            }
        }
        forgotten.switch_off_others(&mut process.file, &|id| recorders.is_live(id))?;
        Ok(process)
    }

    /// Lanes for the rings that have none yet, and have memory or losses.
    fn add_lanes(&mut self, mode_before: Mode, common: &Common) -> Result<()> {
        let file = &self.file;
        for ring in 0..file.layout().rings {
            if self.lanes.iter().any(|lane| lane.ring == ring) {
                continue;
            }
            let Some((window, losses)) = file.control(ring)? else {
                continue;
            };
            let kept = ring::overwritten_before(file.layout(), window.head);
            let began_with_us = file.layout().begin_ns >= common.wanted.begin_ns;
            let next = match mode_before {
                // A flight recorder's that has gone: its history is no part of this recording.
                Mode::Overwrite if common.late_room.is_some() && !began_with_us => window.head,
                Mode::Overwrite => window.tail.max(kept),
                Mode::Discard | Mode::Block => window.tail,
            };
            let mut lane = Lane::new(ring, next);
            lane.losses_before = match mode_before {
                Mode::Overwrite if !began_with_us => losses,
                // Also what was lost while nobody recorded: it lies behind what is left.
                _ => file.losses_stated(ring)?,
            };
            self.lanes.push(lane);
        }
        Ok(())
    }

    fn new(directory: Rc<Directory>, file: RingFile, lanes: Vec<Lane>, mode_behind: Mode) -> Self {
        Process {
            directory,
            file,
            lanes,
            awaited: Vec::new(),
            contexts: Contexts::default(),
            filters: HashMap::new(),
            switched: Vec::new(),
            problems: Vec::new(),
            described: 0,
            notes_read: 0,
            untold: Vec::new(),
            undersized: None,
            lacks_contexts: false,
            lacks_memory: false,
            trace: None,
            map: ProcessMap::default(),
            mode_behind,
            consumes: true,
            was_read: false,
            has_failed: false,
            early_error_ns: 0,
            desk: Desk::default(),
            written: Transcribed::default(),
            size_bytes: 0,
            refused: 0,
            first_lane: 0,
            described_slowly: 0,
            rests_until: None,
            asked_liveness: None,
            stopped: None,
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
        let contexts = Contexts::new(&file, &common.wanted.contexts);
        let mut process = Process::new(directory, file, lanes, Mode::Discard);
        process.contexts = contexts;
        process.consumes = false;
        process.written.malformed = malformed;
        // After the copy: whatever it holds was described before now.
        process.file.read_table()?;
        process.desk.learn(&process.file);
        process.map.note(&mut process.file)?;
        process.map.look(&process.file);
        let mut begin = Instant::MAX;
        if common.wanted.begin_ns > 0 {
            let since = Instant::from_ns(common.wanted.begin_ns as i64);
            let layout = process.file.layout();
            for lane in &mut process.lanes {
                lane.leave_out_before(since, layout, &clock);
            }
        }
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
        let ended = process.close(&clock, Instant::MIN);
        ended.disk.map(|()| ended.process)
    }

    /// Forgets what its trace holds, which is another's from now on.
    fn begin_anew(&mut self) {
        self.trace = None;
        self.written = Transcribed::default();
        (self.size_bytes, self.refused) = (0, 0);
        self.map.tell_again();
        self.lanes.iter_mut().for_each(Lane::begin_anew);
    }

    /// Its events so far, and those that it lost.
    pub fn counts(&self) -> (u64, u64) {
        let lost = self.lanes.iter().map(|lane| total(&lane.losses));
        let lost = lost.fold(0, u64::saturating_add);
        (self.written.events, lost)
    }

    /// So many events and fields it has described: what is known of them is the recorder's memory.
    pub fn described(&self) -> usize {
        self.described
    }

    /// How large each of its rings is.
    pub fn ring_bytes(&self) -> u64 {
        let layout = self.file.layout();
        if layout.has_size {
            layout.ring_bytes
        } else {
            0
        }
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// Leaves the last pair of both clocks in the file.
    pub fn leave_pair(&self, clock: &CounterClock) -> Result<()> {
        let pair = clock.last();
        pair.map_or(Ok(()), |(counter, ns)| self.file.leave_pair(counter, ns))
    }

    /// Whether nobody can write to its rings any more; asked now and then.
    pub fn has_died(&mut self, now: StdInstant) -> bool {
        let asked = self.asked_liveness;
        if asked.is_some_and(|asked| now.duration_since(asked) < LIVENESS_PERIOD) {
            return false;
        }
        self.asked_liveness = Some(now);
        self.file.liveness() == Liveness::Dead
    }

    /// Whether what it said could not be written.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Where its rings are.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(self.file.name())
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

    /// Reads what is new, as much of it as a turn allows.
    pub fn poll(
        &mut self,
        clock: &mut CounterClock,
        common: &Common,
        budget: &mut LookBudget,
    ) -> Result<Read> {
        if self.has_failed
            || self
                .rests_until
                .is_some_and(|until| StdInstant::now() < until)
        {
            return Ok(Read::default());
        }
        let read = self.read(clock, common, budget);
        self.has_failed |= read.is_err();
        read
    }

    fn read(
        &mut self,
        clock: &mut CounterClock,
        common: &Common,
        budget: &mut LookBudget,
    ) -> Result<Read> {
        let mut read = Read::default();
        if common.in_flight {
            self.take_new_events(common)?;
            return Ok(read);
        }
        self.look_for_memory(common)?;
        let count = self.lanes.len();
        let mut left_bytes = TURN_BYTES;
        for place in 0..count {
            let lane = &mut self.lanes[(self.first_lane + place) % count];
            let held = lane.copy(&self.file, left_bytes, &mut self.written.malformed)?;
            left_bytes = left_bytes.saturating_sub(lane.of_this_pass());
            read.is_behind |= lane.is_behind();
            let full = held as f64 / self.file.layout().ring_bytes as f64;
            read.fullest = read.fullest.max(full);
        }
        self.first_lane = (self.first_lane + 1) % count.max(1);
        // After the copy: whatever it holds was described, and stamped, before now.
        self.take_new_events(common)?;
        self.map.note(&mut self.file)?;
        self.map.ask_kernel(&self.file, common.look_period, budget);
        self.contexts.refresh();
        if self.file.layout().clock == ClockKind::Counter && self.lanes.iter().any(Lane::holds) {
            clock.update();
        }
        let latest_ns = crate::clock::monotonic().as_ns();
        self.lanes
            .iter_mut()
            .for_each(|lane| lane.latest_ns = latest_ns);
        match self.was_read {
            true => self.write_all(clock, common)?,
            false => {
                let clock = clock.of_file(self.file.layout());
                self.early_error_ns = clock.error_ns();
                self.write_all(&clock, common)?;
            }
        }
        self.write_map(common)?;
        self.was_read |= !read.is_behind;
        Ok(read)
    }

    /// Writes what all lanes hold, also when one of them cannot: the further the others get, the
    /// later the trace ends.
    fn write_all(&mut self, clock: &CounterClock, common: &Common) -> Result<()> {
        let mut all = Ok(());
        for place in 0..self.lanes.len() {
            let written = self.write(place, clock, common);
            self.lanes[place].note_whole(written.is_ok());
            all = all.and(written);
        }
        all
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
            let (layout, table) = (self.file.layout(), self.file.table());
            self.trace = Some(metadata::create(layout, table, common)?);
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
        let lost_more = lane.say_losses()?;
        let mut scribe = Scribe::new(
            (&self.file, lane.ring),
            (&mut self.contexts, &common.wanted.contexts),
            &mut self.filters,
            &mut self.desk,
        );
        lane.transcribe(
            &self.file,
            &mut scribe,
            clock.converter(),
            &mut self.written,
        )?;
        if lost_more {
            lane.end_loss()?;
        }
        let waiting = lane.next.saturating_sub(lane.kept);
        match self.consumes && waiting >= self.file.layout().ring_bytes / WAITING_PARTS {
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
}
