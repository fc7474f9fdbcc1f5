//! The recording of applications: finds processes, polls their rings, ends with all of them.
//!
//! Nobody wakes the recorder: it looks into the rings now and then, from a thread on housekeeping
//! CPUs, the more often the fuller it finds them.

mod finding;
mod turn;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::Outlet;
use event::{Cpu, Error, ErrorKind, Instant, Result};

use super::app_contexts::AppContext;
use super::clock::CounterClock;
use super::config::UserConfig;
use super::contexts::{self, Context};
use super::finder::Finder;
use super::forgotten;
use super::map;
use super::metadata::Folders;
use super::place::{Outcome, Place, Read, TURN_MAX};
use super::places::SHARED_MEMORY;
use super::process::{Common, UserProcess};
use super::recorders;
use super::room::{self, LateRoom, RingRoom};
use super::wanted::EventRule;
use crate::clock::Effort;
use crate::progress::{Progress, Source};
use crate::{clock, descriptors, housekeeping};
use finding::FIND_MAX;
use turn::Asked;
pub(crate) use turn::{UserFigures, UserTurn};

/// Between two looks into the rings.
const PERIOD_MAX: StdDuration = StdDuration::from_millis(20);
const PERIOD_MIN: StdDuration = StdDuration::from_micros(500);
/// A fuller ring is looked at twice as often, an emptier one half as often.
const FULL: f64 = 0.25;
const EMPTY: f64 = 0.03;
/// So much effort is made in the end for processes that there was no room for beside the others.
const CROWD_MAX: StdDuration = StdDuration::from_secs(5);
/// So long a trace that is written is not said to be complete because some ring is not.
const BEHIND_MAX: StdDuration = StdDuration::from_secs(1);
/// So long the processes of all users are read in one turn: who is many users keeps others waiting
/// no longer.
const TURNS_MAX: StdDuration = StdDuration::from_millis(100);
/// How often directories are looked for.
const PLACES_PERIOD: StdDuration = StdDuration::from_millis(250);
/// How often files get a pair of both clocks.
const PAIR_PERIOD: StdDuration = StdDuration::from_millis(100);
/// Below the root of a trace: where those of processes are.
pub(crate) const PARTS: &str = "ust/pid";

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
        sum(self.processes.iter().map(|process| process.events))
    }

    /// Losses of all processes.
    pub fn lost(&self) -> u64 {
        sum(self.processes.iter().map(UserProcess::lost))
    }

    /// Whether nothing was recorded, and nothing lost.
    pub fn is_empty(&self) -> bool {
        self.events() == 0 && self.lost() == 0
    }

    /// Bytes of all streams.
    pub fn size_bytes(&self) -> u64 {
        sum(self.processes.iter().map(|process| process.size_bytes))
    }
}

/// Processes say some of these numbers themselves: their sum can be too large for one.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Which events are wanted, and since when.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub rules: Vec<EventRule>,
    /// Beside those that every event has.
    pub contexts: Vec<Context>,
    /// Those that applications provide.
    pub app_contexts: Vec<AppContext>,
    pub begin_ns: u64,
    /// How large rings were asked to be.
    pub ring_bytes: Option<u64>,
    /// What all of a user may take together.
    pub user_bytes: Option<u64>,
}

/// A recording of applications that runs in a thread of its own.
pub(crate) struct UserRecorder {
    id: u64,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<UserSummary>>,
    turns: Sender<(UserTurn, Sender<Result<UserSummary>>)>,
    figures: Arc<Mutex<UserFigures>>,
}

/// Where and how to record.
pub(crate) struct UserTarget {
    /// Who is told how far the trace is.
    pub progress: Option<(Arc<Progress>, Source)>,
    /// The root of the trace.
    pub root: PathBuf,
    pub trace_name: String,
    /// Who is told of what is written.
    pub outlet: Option<Arc<dyn Outlet>>,
    pub wall_offset_ns: i64,
    pub begin: Instant,
    /// Where the thread may run.
    pub cpus: Vec<Cpu>,
    /// Whether rings keep their newest events and nobody reads them but [`super::look`].
    pub in_flight: bool,
    /// Raised here when the recording cannot go on.
    pub failed: Arc<AtomicBool>,
}

impl UserTarget {
    /// Of a flight: nothing is written until somebody asks.
    pub fn in_flight(cpus: Vec<Cpu>, failed: Arc<AtomicBool>) -> UserTarget {
        UserTarget {
            progress: None,
            root: PathBuf::new(),
            trace_name: String::new(),
            outlet: None,
            wall_offset_ns: 0,
            begin: clock::monotonic(),
            cpus,
            in_flight: true,
            failed,
        }
    }
}

impl UserRecorder {
    /// Starts; when this returns, processes that start are traced from their first event.
    ///
    /// # Errors
    /// When there is no directory that we may read, or somebody else records there.
    pub fn start(config: &UserConfig, target: UserTarget) -> Result<UserRecorder> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (ready, is_ready) = channel();
        let (turns, asked) = channel();
        let figures = Arc::new(Mutex::new(UserFigures::default()));
        let shown = Arc::clone(&figures);
        let config = config.clone();
        let id = recorders::new_id();
        let thread = std::thread::spawn(move || {
            housekeeping::pin(&target.cpus);
            descriptors::raise();
            let mut session = match Session::start(&config, &target, id) {
                Ok(session) => session,
                Err(error) => {
                    // The receiver waits for exactly this.
                    let _ = ready.send(Err(error));
                    return Ok(UserSummary::default());
                }
            };
            let _ = ready.send(Ok(()));
            let ran = session.run(&stopped, (&asked, &shown));
            if ran.is_err() {
                target.failed.store(true, Ordering::Release);
            }
            // Also after an error: no process may be left switched on.
            let summary = session.finish();
            ran.and(summary)
        });
        match is_ready.recv() {
            Ok(Ok(())) => Ok(UserRecorder {
                id,
                stop,
                thread,
                turns,
                figures,
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::new(
                ErrorKind::Io,
                "the recorder of applications ended before it began",
            )),
        }
    }

    /// Its number among recorders, by which its rings are found.
    pub fn id(&self) -> u64 {
        self.id
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
pub(super) struct Shared {
    folder: PathBuf,
    trace_name: String,
    outlet: Option<Arc<dyn Outlet>>,
    wall_offset_ns: i64,
    pub wanted: Wanted,
    pub in_flight: bool,
    /// Whether the session ends: what the dead left in flight then stays where it is.
    is_over: bool,
    /// How often the kernel is asked for the map of each process.
    look_period: StdDuration,
    folders: Folders,
    late_room: LateRoom,
}

impl Shared {
    pub fn common(&self) -> Common<'_> {
        Common {
            folder: &self.folder,
            folders: &self.folders,
            wanted: &self.wanted,
            wall_offset_ns: self.wall_offset_ns,
            trace_name: &self.trace_name,
            outlet: self.outlet.as_ref(),
            in_flight: self.in_flight,
            keeps_the_dead: self.in_flight && self.is_over,
            look_period: self.look_period,
            late_room: Some(&self.late_room),
        }
    }
}

/// The state of the recorder's thread.
struct Session {
    /// Our number among recorders.
    id: u64,
    /// The one directory that was asked for.
    asked: Option<PathBuf>,
    /// What is announced in each.
    lines: Vec<String>,
    room: RingRoom,
    places: Vec<Place>,
    /// Who looks for those of others, and when the last look was through.
    finder: Finder,
    /// Directories that were refused, which is said once.
    refused: HashSet<(u64, u64)>,
    /// None while a look goes on.
    places_found: Option<StdInstant>,
    clock: CounterClock,
    shared: Shared,
    progress: Option<(Arc<Progress>, Source)>,
    /// When what was read was last brought to the files.
    flushed: StdInstant,
    /// Since when no turn has read all.
    behind_since: Option<StdInstant>,
    /// When pairs of both clocks were last left in the files.
    pair_left: Option<StdInstant>,
    outcome: Outcome,
}

impl Session {
    fn start(config: &UserConfig, target: &UserTarget, id: u64) -> Result<Session> {
        let folder = config.directory.as_deref();
        let folder = folder.unwrap_or(Path::new(SHARED_MEMORY));
        let cpus = housekeeping::cpus_that_share();
        let room = RingRoom::new(config.ring_bytes, folder, cpus);
        let mut session = Session {
            id,
            asked: config.directory.clone(),
            lines: session_lines(config, target, (id, &room)),
            places: Vec::new(),
            finder: Finder::new(config.directory.as_deref()),
            refused: HashSet::new(),
            places_found: None,
            clock: CounterClock::start(),
            shared: Shared {
                folder: target.root.join(PARTS),
                trace_name: target.trace_name.clone(),
                outlet: target.outlet.clone(),
                wall_offset_ns: target.wall_offset_ns,
                wanted: Wanted {
                    rules: config.rules.clone(),
                    contexts: config.contexts.clone(),
                    app_contexts: config.app_contexts.clone(),
                    begin_ns: target.begin.as_ns().max(0) as u64,
                    ring_bytes: config.ring_bytes,
                    user_bytes: config.user_bytes,
                },
                in_flight: target.in_flight,
                is_over: false,
                look_period: StdDuration::ZERO,
                folders: Folders::default(),
                late_room: LateRoom::new(&room, cpus),
            },
            room,
            progress: target.progress.clone(),
            flushed: StdInstant::now(),
            behind_since: None,
            pair_left: None,
            outcome: Outcome::default(),
        };
        session.take_own()?;
        session.find_places(FIND_MAX)?;
        session.find_all();
        Ok(session)
    }

    fn run(
        &mut self,
        stop: &AtomicBool,
        (turns, figures): (&Asked, &Mutex<UserFigures>),
    ) -> Result<()> {
        let mut period = PERIOD_MAX;
        while !stop.load(Ordering::Acquire) {
            let begin = clock::monotonic();
            self.take_turn(turns, figures)?;
            let is_due = |found: StdInstant| found.elapsed() > PLACES_PERIOD;
            if self.places_found.is_none_or(is_due) {
                self.find_places(StdDuration::ZERO)?;
            }
            self.find();
            self.tell_room();
            let read = self.turn()?;
            self.show(read, figures);
            let behind_since = match read.is_behind {
                true => *self.behind_since.get_or_insert_with(StdInstant::now),
                false => StdInstant::now(),
            };
            // Who is never through with writing does not keep what the others wrote from showing.
            if !read.is_behind || behind_since.elapsed() > BEHIND_MAX {
                self.flush(begin)?;
            }
            if read.is_behind {
                continue;
            }
            self.behind_since = None;
            if read.fullest > FULL {
                period = (period / 2).max(PERIOD_MIN);
            } else if read.fullest < EMPTY {
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
        if self.flushed.elapsed() >= progress.flush_period() {
            self.flushed = StdInstant::now();
            for place in &mut self.places {
                place.flush(&mut self.outcome)?;
            }
            progress.reached(*source, begin)?;
        }
        Ok(())
    }

    /// Reads of all directories, as much of each as its turn allows.
    fn turn(&mut self) -> Result<Read> {
        self.clock.update();
        let leaves_pair = self
            .pair_left
            .is_none_or(|left| left.elapsed() >= PAIR_PERIOD);
        if leaves_pair {
            self.pair_left = Some(StdInstant::now());
        }
        let processes = self.places.iter().map(Place::processes).sum();
        self.shared.look_period = map::look_period(processes);
        let mut read = Read::default();
        let owners: Vec<u32> = self.places.iter().map(Place::user).collect();
        let users = owners.iter().collect::<HashSet<_>>().len() as u32;
        for place in &mut self.places {
            if leaves_pair {
                place.leave_pair(&self.clock);
            }
            let of_owner = owners.iter().filter(|owner| **owner == place.user());
            let of_user = TURN_MAX.min(TURNS_MAX / users.max(1));
            let slice = of_user / of_owner.count().max(1) as u32;
            let shared = (&self.shared, slice);
            let of_place = place.turn(&mut self.clock, shared, &mut self.outcome)?;
            read = read.and(of_place);
        }
        Ok(read)
    }

    fn finish(mut self) -> Result<UserSummary> {
        // Also users whose first traced process came since the last look.
        self.finder.begin_anew();
        let mut finished = self.find_places(FIND_MAX);
        // First: who starts from now on is not traced.
        for place in &mut self.places {
            // Whoever put something else in the place of our file harms whom that file told.
            if let Err(error) = place.conclude() {
                self.outcome.refusals.add(place.path(), &error);
            }
        }
        self.find_all();
        finished = finished.and(self.finish_all());
        // Who found no room beside the others has it now, as many at a time as there is room for.
        let effort = Effort::begin();
        while self.places.iter().any(Place::is_crowded) && effort.spent() < CROWD_MAX {
            self.find();
            finished = finished.and(self.finish_all());
        }
        for place in &self.places {
            place.say_left_out(&mut self.outcome.refusals);
        }
        finished.map(|()| std::mem::take(&mut self.outcome).into_summary())
    }

    /// Ends all processes that are recorded, each of them, whatever became of the others.
    fn finish_all(&mut self) -> Result<()> {
        // All of them, before what they hold is read: that takes time, in which no ring fills up.
        for place in &mut self.places {
            place.stop(&self.shared, &mut self.outcome);
        }
        self.clock.update();
        self.shared.is_over = true;
        let mut finished = Ok(());
        for place in &mut self.places {
            finished = finished.and(place.finish(&mut self.clock, &self.shared, &mut self.outcome));
        }
        finished
    }
}

/// What a process that starts is told: its mode comes before its first event.
fn session_lines(
    config: &UserConfig,
    target: &UserTarget,
    (id, room): (u64, &RingRoom),
) -> Vec<String> {
    // First: what follows is its own.
    let own = recorders::announced(id);
    let mode = target.in_flight.then(|| forgotten::OVERWRITE.to_owned());
    // For whoever looks into the rings: nothing that a process can read.
    let contexts = contexts::announced(&config.contexts);
    let of_apps = config.app_contexts.iter().map(AppContext::announced);
    let patterns = config.rules.iter().map(EventRule::announced);
    // In flight nothing is written. It comes last: programs read the begin of a long file.
    let output = (!target.in_flight).then(|| forgotten::announced_output(&target.root));
    let rings = [
        Some(room.line()),
        config
            .user_bytes
            .map(room::line_of_user)
            .or(room.line_of_all()),
    ];
    let lines = std::iter::once(own).chain(mode);
    let lines = lines.chain(rings.into_iter().flatten());
    let lines = lines.chain(contexts);
    lines.chain(of_apps).chain(patterns).chain(output).collect()
}
