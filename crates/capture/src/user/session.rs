//! The recording of applications: finds processes, polls their rings, ends with all of them.
//!
//! Nobody wakes the recorder: it looks into the rings now and then, from a thread on housekeeping
//! CPUs, the more often the fuller it finds them.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use event::{Cpu, Error, ErrorKind, Instant, Result};
use ring::{Directory, Liveness, RecorderLock};

use super::clock::CounterClock;
use super::contexts::{self, Context};
use super::forgotten::{self, Forgotten};
use super::process::{Common, Process, UserProcess};
use super::refusals::Refusals;
use super::wanted::{self, Wish};
use crate::progress::{FLUSH_PERIOD, Progress, Source};
use crate::{clock, housekeeping};

/// Between two looks into the rings.
const PERIOD_MAX: StdDuration = StdDuration::from_millis(20);
const PERIOD_MIN: StdDuration = StdDuration::from_micros(500);
/// A fuller ring is looked at twice as often, an emptier one half as often.
const FULL: f64 = 0.25;
const EMPTY: f64 = 0.03;
/// Where the directories of users are.
const SHARED_MEMORY: &str = "/dev/shm";
/// In flight, of more processes than this the dead ones are let go.
const DEAD_KEPT: usize = 64;
/// How often files get a pair of both clocks.
const PAIR_PERIOD: StdDuration = StdDuration::from_millis(100);
/// Below the root of a trace: where those of processes are.
pub(crate) const PARTS: &str = "ust/pid";
/// How their names begin; the user's id follows.
const PREFIX: &str = "rtscope-";

/// Which events of which processes to record.
#[derive(Clone, Debug, PartialEq)]
pub struct UserConfig {
    /// As they were written.
    words: Vec<String>,
    wishes: Vec<Wish>,
    contexts: Vec<Context>,
    directory: Option<PathBuf>,
}

impl UserConfig {
    /// From words such as `npt:*` or `npt:*:warning i > 5`: `GLOB[:LEVEL][ FILTER]`. A pattern
    /// without a colon names providers; patterns without a filter may stand in a list.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what can be none.
    pub fn new(words: &[String]) -> Result<Self> {
        let mut wishes = Vec::new();
        for word in words {
            wishes.extend(wanted::parse(word)?);
        }
        Ok(UserConfig {
            words: words.to_vec(),
            wishes,
            contexts: Vec::new(),
            directory: None,
        })
    }

    /// Events carry these contexts too, by LTTng's names: `procname`, `prio`, `pid_ns`…
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word that is none; what the kernel says of performance
    /// counters.
    pub fn with_contexts(mut self, words: &[String]) -> Result<Self> {
        self.contexts = contexts::parse(words)?;
        Ok(self)
    }

    /// Looks for processes in `directory` alone, as `RTSCOPE_DIR` tells them.
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The directory that was asked for.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// As it was written.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}

/// What all applications gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSummary {
    /// Processes with events or losses, in the order in which they ended.
    pub processes: Vec<UserProcess>,
    /// Processes and directories that could not be read, with the reason.
    pub refused: Vec<String>,
}

impl UserSummary {
    /// Events of all processes.
    pub fn events(&self) -> u64 {
        self.processes.iter().map(|process| process.events).sum()
    }

    /// Losses of all processes.
    pub fn lost(&self) -> u64 {
        self.processes.iter().map(UserProcess::lost).sum()
    }

    /// Bytes of all streams.
    pub fn size_bytes(&self) -> u64 {
        self.processes
            .iter()
            .map(|process| process.size_bytes)
            .sum()
    }
}

/// Which events are wanted, and since when.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub wishes: Vec<Wish>,
    /// Beside those that every event has.
    pub contexts: Vec<Context>,
    pub begin_ns: u64,
}

/// A directory whose recorder we are.
struct Place {
    directory: Rc<Directory>,
    session: String,
    /// What recorders that were killed left switched on.
    forgotten: Forgotten,
    _lock: RecorderLock,
}

/// A recording of applications that runs in a thread of its own.
pub(crate) struct UserRecorder {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<UserSummary>>,
}

/// Where and how to record.
pub(crate) struct UserTarget {
    /// Who is told how far the trace is.
    pub progress: Option<(Arc<Progress>, Source)>,
    /// The root of the trace.
    pub root: PathBuf,
    pub trace_name: String,
    pub wall_offset_ns: i64,
    pub begin: Instant,
    /// Where the thread may run.
    pub cpus: Vec<Cpu>,
    /// Whether rings keep their newest events and nobody reads them but [`super::look`].
    pub in_flight: bool,
    /// Raised here when the recording cannot go on.
    pub failed: Arc<AtomicBool>,
}

impl UserRecorder {
    /// Starts; when this returns, processes that start are traced from their first event.
    ///
    /// # Errors
    /// When there is no directory that we may read, or somebody else records there.
    pub fn start(config: &UserConfig, target: UserTarget) -> Result<UserRecorder> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let config = config.clone();
        let thread = std::thread::spawn(move || {
            housekeeping::pin(&target.cpus);
            let mut session = match Session::start(&config, &target) {
                Ok(session) => session,
                Err(error) => {
                    // The receiver waits for exactly this.
                    let _ = ready.send(Err(error));
                    return Ok(UserSummary::default());
                }
            };
            let _ = ready.send(Ok(()));
            let ran = session.run(&stopped);
            if ran.is_err() {
                target.failed.store(true, Ordering::Release);
            }
            // Also after an error: no process may be left switched on.
            let summary = session.finish();
            ran.and(summary)
        });
        match is_ready.recv() {
            Ok(Ok(())) => Ok(UserRecorder { stop, thread }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::new(
                ErrorKind::Io,
                "the recorder of applications ended before it began",
            )),
        }
    }

    /// Stops, reads what is left and closes the traces.
    ///
    /// # Errors
    /// What the disk says.
    pub fn finish(self) -> Result<UserSummary> {
        self.stop.store(true, Ordering::Release);
        match self.thread.join() {
            Ok(summary) => summary,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// What all processes of a session are told.
struct Shared {
    folder: PathBuf,
    trace_name: String,
    wall_offset_ns: i64,
    wanted: Wanted,
    in_flight: bool,
    /// Whether the session ends: what the dead left in flight then stays where it is.
    is_over: bool,
}

impl Shared {
    fn common(&self) -> Common<'_> {
        Common {
            folder: &self.folder,
            wanted: &self.wanted,
            wall_offset_ns: self.wall_offset_ns,
            trace_name: &self.trace_name,
            in_flight: self.in_flight,
            keeps_the_dead: self.in_flight && self.is_over,
        }
    }
}

/// The state of the recorder's thread.
struct Session {
    places: Vec<Place>,
    processes: Vec<Process>,
    clock: CounterClock,
    shared: Shared,
    progress: Option<(Arc<Progress>, Source)>,
    /// When what was read was last brought to the files.
    flushed: StdInstant,
    /// When pairs of both clocks were last left in the files.
    pair_left: Option<StdInstant>,
    summary: UserSummary,
    refusals: Refusals,
}

impl Session {
    fn start(config: &UserConfig, target: &UserTarget) -> Result<Session> {
        let mut refusals = Refusals::default();
        let mut places = Vec::new();
        for (path, owner, ours) in directories(config.directory.as_deref()) {
            let place = take(&path, owner, ours, &session_lines(config, target));
            match place {
                Ok(place) => places.push(place),
                Err(error) if ours => return Err(error),
                Err(error) => refusals.add(&error),
            }
        }
        Ok(Session {
            places,
            processes: Vec::new(),
            clock: CounterClock::start(),
            shared: Shared {
                folder: target.root.join(PARTS),
                trace_name: target.trace_name.clone(),
                wall_offset_ns: target.wall_offset_ns,
                wanted: Wanted {
                    wishes: config.wishes.clone(),
                    contexts: config.contexts.clone(),
                    begin_ns: target.begin.as_ns().max(0) as u64,
                },
                in_flight: target.in_flight,
                is_over: false,
            },
            progress: target.progress.clone(),
            flushed: StdInstant::now(),
            pair_left: None,
            summary: UserSummary::default(),
            refusals,
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut period = PERIOD_MAX;
        while !stop.load(Ordering::Acquire) {
            let begin = clock::monotonic();
            let fullest = self.turn()?;
            self.flush(begin)?;
            if fullest > FULL {
                period = (period / 2).max(PERIOD_MIN);
            } else if fullest < EMPTY {
                period = (period * 2).min(PERIOD_MAX);
            }
            std::thread::sleep(period);
        }
        Ok(())
    }

    /// Now and then, brings what was read to the files: all that happened before `begin`.
    fn flush(&mut self, begin: Instant) -> Result<()> {
        let Some((progress, source)) = &self.progress else {
            return Ok(());
        };
        if self.flushed.elapsed() >= FLUSH_PERIOD {
            self.flushed = StdInstant::now();
            for process in &mut self.processes {
                process.flush()?;
            }
            progress.reached(*source, begin)?;
        }
        Ok(())
    }

    /// Looks for new processes, reads all, ends the dead ones.
    fn turn(&mut self) -> Result<f64> {
        self.find();
        self.clock.update();
        if self
            .pair_left
            .is_none_or(|left| left.elapsed() >= PAIR_PERIOD)
        {
            self.pair_left = Some(StdInstant::now());
            for process in &self.processes {
                // A help for whoever finds the file after a crash: an older one is there without.
                let _ = process.leave_pair(&self.clock);
            }
        }
        let mut fullest = 0.0_f64;
        let mut index = 0;
        while index < self.processes.len() {
            // Asked before the last reading, so that nothing can come after it.
            let dead = self.processes[index].liveness() == Liveness::Dead;
            let (process, clock, common) = self.parts(index);
            match process.poll(clock, &common) {
                Ok(full) => fullest = fullest.max(full),
                // Whoever broke them ends the recording of that process, and of no other.
                Err(error) if process.is_broken() => {
                    let path = process.path();
                    self.refusals.add_at(path, &error);
                    self.end(index)?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            if dead && (!self.shared.in_flight || self.processes.len() > DEAD_KEPT) {
                self.end(index)?;
            } else {
                index += 1;
            }
        }
        Ok(fullest)
    }

    /// A process, and what it needs of the session.
    fn parts(&mut self, index: usize) -> (&mut Process, &mut CounterClock, Common<'_>) {
        let common = self.shared.common();
        (&mut self.processes[index], &mut self.clock, common)
    }

    fn end(&mut self, index: usize) -> Result<()> {
        let process = self.processes.swap_remove(index);
        let common = self.shared.common();
        let (ended, problems) = process.finish(&mut self.clock, &common, clock::monotonic())?;
        for problem in problems {
            self.refusals.say(problem);
        }
        if ended.events + ended.lost() + ended.malformed + ended.unregistered > 0 {
            self.summary.processes.push(ended);
        }
        Ok(())
    }

    /// Attaches to processes that are new.
    fn find(&mut self) {
        let mut place = 0;
        while place < self.places.len() {
            match self.find_in(place) {
                Ok(()) => place += 1,
                // Whoever took the directory away ends what would have been recorded there alone.
                Err(error) => {
                    self.refusals.add(&error);
                    let gone = self.places.remove(place);
                    // Where it is there and cannot be read, who starts must not record for us.
                    let _ = gone.directory.remove(&gone.session);
                }
            }
        }
    }

    fn find_in(&mut self, place: usize) -> Result<()> {
        let place = &self.places[place];
        place.directory.check_is_there()?;
        let (names, without_rings) = place.directory.look()?;
        let common = self.shared.common();
        let begin_ns = common.wanted.begin_ns;
        self.refusals
            .without_rings(&place.directory, without_rings, begin_ns)?;
        for name in names {
            let is_known = |p: &Process| p.name() == name && p.is_in(&place.directory);
            let path = place.directory.path().join(&name);
            if self.processes.iter().any(is_known) || self.refusals.knows(&path) {
                continue;
            }
            let attached = match place.directory.rings(&name) {
                Ok(None) => continue,
                Ok(Some(file)) => {
                    let directory = Rc::clone(&place.directory);
                    Process::attach(directory, file, &common, &place.forgotten)
                }
                Err(error) => Err(error),
            };
            match attached {
                Ok(process) => self.processes.push(process),
                Err(error) => self.refusals.add_at(path, &error),
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<UserSummary> {
        // First: who starts from now on is not traced.
        let mut finished = Ok(());
        for place in &self.places {
            finished = finished.and(place.directory.remove(&place.session));
        }
        if !self.processes.iter().any(Process::has_failed) {
            finished = finished.and(self.turn().map(|_| ()));
        }
        self.shared.is_over = true;
        // Each of them, whatever became of the others.
        while !self.processes.is_empty() {
            finished = finished.and(self.end(0));
        }
        self.summary.refused = std::mem::take(&mut self.refusals).into_said();
        finished.map(|()| std::mem::take(&mut self.summary))
    }
}

/// However it ends, nobody must be told any more to record for us.
impl Drop for Session {
    fn drop(&mut self) {
        for place in &self.places {
            let _ = place.directory.remove(&place.session);
        }
    }
}

/// What a process that starts is told: its mode comes before its first event.
fn session_lines(config: &UserConfig, target: &UserTarget) -> Vec<String> {
    let mode = target.in_flight.then(|| forgotten::OVERWRITE.to_owned());
    // For whoever looks into the rings: nothing that a process can read.
    let contexts = contexts::announced(&config.contexts);
    let patterns = config.wishes.iter().map(Wish::announced);
    mode.into_iter().chain(contexts).chain(patterns).collect()
}

/// Opens a directory and announces the session in it.
fn take(path: &Path, owner: u32, ours: bool, lines: &[String]) -> Result<Place> {
    let directory = match ours {
        true => Directory::open_or_make(path, owner)?,
        false => Directory::open(path, owner)?,
    };
    let lock = directory.lock()?;
    // We are the one recorder here: what others left, they left when they were killed.
    let forgotten = Forgotten::take(&directory)?;
    let session = directory.announce(lines)?;
    Ok(Place {
        directory: Rc::new(directory),
        session,
        forgotten,
        _lock: lock,
    })
}

/// The directories to look into, with their owners, and whether each is ours: the one that was
/// asked for, else that of `RTSCOPE_DIR`, else that of our user; root looks into those of all.
pub(crate) fn directories(asked: Option<&Path>) -> Vec<(PathBuf, u32, bool)> {
    let uid = rustix::process::geteuid().as_raw();
    let asked = asked.map(Path::to_owned);
    if let Some(path) = asked.or_else(|| std::env::var_os("RTSCOPE_DIR").map(PathBuf::from)) {
        return vec![(path, uid, true)];
    }
    let own = Path::new(SHARED_MEMORY).join(format!("{PREFIX}{uid}"));
    let mut all = vec![(own, uid, true)];
    if uid == 0 {
        let entries = std::fs::read_dir(SHARED_MEMORY).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            match owner.and_then(|owner| owner.parse().ok()) {
                Some(owner) if owner != uid => all.push((entry.path(), owner, false)),
                _ => (),
            }
        }
    }
    all
}
