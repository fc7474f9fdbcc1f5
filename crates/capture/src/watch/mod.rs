//! Watch: from a threshold crossed in the kernel to a snapshot on disk.
//!
//! Two threads. The *armed* thread sleeps until the kernel's watch reports a hit; by then the
//! flight recorder has stopped itself (a trigger on the armed thread's own wake-up), so that it
//! lets that run again, and copies the pages of before. Everything slow (names, CTF, the
//! observer's printing) happens in the caller's thread.
//!
//! # Design constraints
//! - Nothing is formatted or written between a hit and `resume`.
//! - Our threads stay on the housekeeping CPUs when there are any.
//! - A snapshot that cannot be written is an error of that hit, never the end of the watch.

mod armed;
mod calls;
mod history;
mod limits;
mod ordinary;
mod pair;
mod snapshots;
mod tracker_names;
mod trackers;
mod usual;
mod work;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use bpf_host::{LateRing, Statistics, Watch, WatchConfig, WatchCost};
use event::evidence::{EndKind, Hit, LateOne};
use event::{Cpu, Duration, Error, Instant, Result, Tid};
use ftrace::Switch;
use trace::Symbols;

use crate::cost::{Cost, CostMeter};
use crate::functions::Version;
use crate::heartbeat::Heartbeat;
use crate::user::{UserRecorder, UserTarget};
use crate::{
    EventSelection, Mode, Recorder, RecorderConfig, SnapshotFacts, SnapshotSummary, StopTrigger,
    UserConfig, clock, housekeeping,
};
use armed::{Armed, Caught, Choice, Witness, Worst};
use calls::Listener;
use host::capabilities::Capabilities;
use snapshots::{Desk, Folder, Snapshots};

pub use bpf_host::SleepsInside;
pub use calls::{Call, Called, Calls, Looked, in_short};
pub use history::{Row, WINDOWS_MIN, Window, WindowRow};
pub use pair::{KEY_DEFAULT, PairQuestion, pair, pair_is_of};
pub use tracker_names::{key_name, keys_named};
pub use trackers::{
    TrackerReport, TrackerStatus, TrackersObserver, TrackersOptions, TrackersStatus, run_trackers,
};
pub use usual::WINDOW as CALL_WINDOW;

/// How often the observer is told where the watch stands.
const STATUS_INTERVAL: std::time::Duration = std::time::Duration::from_millis(250);

/// Looking for waiting targets walks over all tasks: not more often than this.
const TICK_MIN: std::time::Duration = std::time::Duration::from_millis(5);

/// What to watch for, and where snapshots go.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// What the kernel watches for.
    pub watch: WatchConfig,
    /// The flight recorder beside it, if there is to be one.
    pub flight: Option<FlightRecorder>,
    /// Ends the watch after this long; none for until told.
    pub duration: Option<Duration>,
    /// Once so many hits are in, only worse ones than the least of them: the threshold rises by
    /// itself. Without a rate limit all of the worst come.
    pub worst: Option<usize>,
    /// With a window in `watch`: hits are reported when they are called for, and no others.
    pub calls: Option<Arc<Calls>>,
}

/// The flight recorder of a watch.
#[derive(Clone, Debug)]
pub struct FlightRecorder {
    /// The events that it holds.
    pub events: EventSelection,
    /// Its memory.
    pub buffer_bytes_per_cpu: usize,
    /// Snapshots become folders `hit-NNNN` in here.
    pub output: PathBuf,
    /// Events of applications, whose rings become parts of each snapshot.
    pub user: Option<UserConfig>,
    /// At most this many snapshots are written; later hits are reported without one.
    pub snapshots_max: Option<u64>,
}

/// How fast a snapshot was taken, counted from the end of the latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotTiming {
    /// Until the last event that the recorder took.
    pub stopped_after: Duration,
    /// Whether the kernel's trigger stopped it; else we did.
    pub stopped_by_kernel: bool,
    /// Until it ran again.
    pub running_after: Duration,
    /// Until its pages were on disk as CTF.
    pub on_disk_after: Duration,
}

/// A snapshot on disk.
#[derive(Debug)]
pub struct Snapshot {
    /// Its folder.
    pub path: PathBuf,
    /// What it holds.
    pub summary: SnapshotSummary,
    /// How fast it was taken.
    pub timing: SnapshotTiming,
}

/// One hit, with its names, and its snapshot.
#[derive(Debug)]
pub struct HitReport {
    /// The hit.
    pub hit: Hit,
    /// The snapshot that holds it; none without a flight recorder or beyond `snapshots_max`. Hits
    /// of one moment share a snapshot.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Why there is no snapshot although there should be.
    pub failure: Option<Arc<Error>>,
    /// The hit was reported while it waited; this is its end, and says more than that did.
    pub replaces: bool,
    /// What the task is called in our own PID namespace, where that is not what the kernel calls
    /// it.
    pub seen_as: Option<Tid>,
    /// The call that it is the answer to.
    pub called: Option<Called>,
}

/// A call at which nothing was late.
#[derive(Debug)]
pub struct CallReport {
    /// The call.
    pub called: Called,
    /// What the flight recorder held then.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Why there is none although there should be.
    pub failure: Option<Arc<Error>>,
}

/// Where the watch stands.
#[derive(Clone, Debug)]
pub struct Status {
    /// Since the watch was armed.
    pub elapsed: Duration,
    /// When the counters were read.
    pub read: Instant,
    /// Hits reported.
    pub hits: u64,
    /// Counters and the latency histogram.
    pub statistics: Statistics,
    /// Our own cost so far.
    pub cost: Cost,
    /// That of the programs in the kernel, and of how much of the time it is known.
    pub spent: WatchCost,
    /// Targets that others woke between two releases by their own timer: at the end, before that
    /// nobody.
    pub inside: Vec<SleepsInside>,
}

/// Who is told what the watch sees, in the thread that called [`run`].
pub trait WatchObserver {
    /// The watch is armed: every later wake-up is seen.
    fn armed(&mut self) -> Result<()>;
    /// A task was late.
    fn hit(&mut self, report: &HitReport) -> Result<()>;
    /// Somebody called, and nothing was late.
    fn nothing_late(&mut self, _report: &CallReport) -> Result<()> {
        Ok(())
    }
    /// So it was, but the limits held its hit back.
    fn held_back(&mut self, _late: &LateOne) -> Result<()> {
        Ok(())
    }
    /// Somebody called, and the limits held back what there was to say: of what was late only this,
    /// or none.
    fn call_held_back(&mut self, _called: &Called, late: Option<&LateOne>) -> Result<()> {
        late.map_or(Ok(()), |late| self.held_back(late))
    }
    /// A few times a second; whether to go on.
    fn status(&mut self, status: &Status) -> Result<bool>;
}

/// Watches until the duration is over, the hits asked for are in, or the observer says so; returns
/// where the watch stood then.
///
/// # Errors
/// What keeps the watch from starting or running, and what the observer returns.
pub fn run(
    options: &WatchOptions,
    capabilities: &Capabilities,
    command_line: &str,
    observer: &mut dyn WatchObserver,
) -> Result<Status> {
    let folder = options
        .flight
        .as_ref()
        .map(|flight| Folder::prepare(&flight.output));
    let _folder = folder.transpose()?;
    let cpus = own_cpus(options, capabilities);
    housekeeping::pin(&cpus);
    let flight = options.flight.as_ref();
    let applications = flight.and_then(|flight| flight.user.as_ref());
    let threshold = options.watch.threshold;
    let heartbeat = flight.and_then(|_| Heartbeat::start(&capabilities.machine, threshold));
    let snapshot_facts = SnapshotFacts::collect(capabilities, command_line)
        .with_late_timer_floor(options.watch.late_timer_floor)
        .with_heartbeat(heartbeat.as_ref());
    let user = start_user(applications, &cpus)?;
    let snapshot_facts = snapshot_facts.with_rings(applications.zip(user.as_ref()));
    let symbols = Symbols::from_kallsyms(&snapshot_facts.functions);
    // The recorder first: then its probes run before the watch's, and the event that ends a chain
    // is in the ring when the chain's end stops it.
    let recorder = flight.map(|flight| start_recorder(flight, trigger(options)));
    let recorder = recorder.transpose()?;
    let both = flight.zip(recorder.as_ref());
    let snapshots = both.map(|(flight, recorder)| Snapshots::new(flight, recorder, snapshot_facts));
    let (watch, ring) = Watch::start(&options.watch)?;
    let late = options.watch.notes_late.then(|| watch.late_ones());
    let late = late.transpose()?;
    // Our own programs are no news: their frames are cut off.
    let version = Version::now();
    let switch = recorder.as_ref().map(Recorder::switch);
    let (sender, caught) = mpsc::channel();
    let recorder = recorder.map(|one| (one, Witness::of(&watch, options.calls.is_some())));
    let armed = Armed::start(ring, recorder, choice(options), &cpus, sender)?;
    let mut session = Session {
        options,
        watch,
        desk: Desk::new(symbols, version, snapshots),
        // From now on everything is seen: the time that was asked for begins.
        meter: CostMeter::start(),
        hits: 0,
        worst: Duration::ZERO,
        late,
        waiting: HashSet::new(),
        switch,
        stood_still: false,
    };
    let outcome = session.until_over(&caught, &armed, observer);
    let joined = armed.join();
    let user_ended = user.map(UserRecorder::finish).transpose();
    let status = outcome?;
    joined?;
    user_ended?;
    // Hits that were caught while we ended are reports too.
    for caught in caught.try_iter() {
        session.report(caught, observer)?;
    }
    // What came after the counters were read is no part of the watch.
    session.tell_held_back(status.read, observer)?;
    let mut status = Status {
        hits: session.hits,
        ..status
    };
    session.worst_of(&mut status.statistics);
    Ok(status)
}

/// Who stops the recorder; where hits wait until they are called for, none of them does.
fn trigger(options: &WatchOptions) -> Option<StopTrigger> {
    let wanted = options.calls.is_none();
    wanted.then(|| StopTrigger {
        comm: armed::thread_name(),
        // While it copies pages it is a fair task, and may wait for memory or a lock.
        real_time: housekeeping::may_be_prompt(),
    })
}

/// Which hits are caught.
fn choice(options: &WatchOptions) -> Choice {
    let interval = options.watch.rate_limit_interval;
    match (&options.calls, options.worst) {
        (Some(calls), _) => Choice::Called(Listener::new(calls.clone(), interval)),
        (None, Some(count)) => Choice::Worst(Worst::new(count)),
        (None, None) => Choice::All,
    }
}

/// Where our own threads run: away from the CPUs that are watched.
fn own_cpus(options: &WatchOptions, capabilities: &Capabilities) -> Vec<Cpu> {
    let watched = options.watch.cpus.clone();
    let watched = watched.unwrap_or_else(|| housekeeping::of_targets(&options.watch.targets));
    housekeeping::cpus(&capabilities.machine, Some(&watched))
}

/// The applications' rings keep their newest events from now on.
fn start_user(user: Option<&UserConfig>, cpus: &[Cpu]) -> Result<Option<UserRecorder>> {
    let target = UserTarget {
        progress: None,
        root: PathBuf::new(),
        trace_name: String::new(),
        outlet: None,
        wall_offset_ns: 0,
        begin: clock::monotonic(),
        cpus: cpus.to_vec(),
        in_flight: true,
        // In flight nothing is written that could fail.
        failed: Arc::default(),
    };
    user.map(|user| UserRecorder::start(user, target))
        .transpose()
}

fn start_recorder(flight: &FlightRecorder, trigger: Option<StopTrigger>) -> Result<Recorder> {
    Recorder::start(&RecorderConfig {
        events: flight.events.clone(),
        buffer_bytes_per_cpu: flight.buffer_bytes_per_cpu,
        mode: Mode::Overwrite,
        stop_trigger: trigger,
        ..RecorderConfig::default()
    })
}

/// The caller's side of a running watch.
struct Session<'a> {
    options: &'a WatchOptions,
    watch: Watch,
    meter: CostMeter,
    desk: Desk,
    hits: u64,
    /// The longest of them; of one that never ended, as long as it was told.
    worst: Duration,
    /// What the limits held back.
    late: Option<LateRing>,
    /// Hits that were reported while they waited.
    waiting: HashSet<u64>,
    /// The recorder's, and whether it was off at the last look.
    switch: Option<Switch>,
    stood_still: bool,
}

impl Session<'_> {
    fn until_over(
        &mut self,
        caught: &Receiver<Caught>,
        armed: &Armed,
        observer: &mut dyn WatchObserver,
    ) -> Result<Status> {
        observer.armed()?;
        let tick = self.tick();
        let mut told = std::time::Instant::now();
        loop {
            match caught.recv_timeout(tick) {
                Ok(caught) => self.report(caught, observer)?,
                Err(RecvTimeoutError::Disconnected) => return self.status(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.watch.check_waiting()?;
            if told.elapsed() < STATUS_INTERVAL && !self.is_over() {
                continue;
            }
            told = std::time::Instant::now();
            self.tell_held_back(Instant::MAX, observer)?;
            // Not only at a hit: by then a program may be gone that is in its stacks.
            self.desk.refresh();
            self.watch.steal().look();
            self.keep_recording(armed)?;
            let status = self.status()?;
            if !observer.status(&status)? || self.is_over() {
                // Nobody would see the end of what is late already.
                self.watch.check_open()?;
                let inside = self.watch.sleeps_inside()?;
                let mut status = Status { inside, ..status };
                // What found no room then is lost, too.
                let counted = self.watch.statistics()?;
                status.statistics.lost = counted.lost;
                status.statistics.unslept = counted.unslept;
                return Ok(status);
            }
        }
    }

    /// A drain lasts milliseconds: a recorder that is off at two looks was stopped by no hit.
    fn keep_recording(&mut self, armed: &Armed) -> Result<()> {
        let off = self.switch.as_ref().map(Switch::is_on).transpose()? == Some(false);
        if off && self.stood_still {
            armed.look();
        }
        self.stood_still = off && !self.stood_still;
        Ok(())
    }

    /// A quarter of the time that a target may wait, so that its report is at most that late.
    fn tick(&self) -> std::time::Duration {
        let quarter = |after: Duration| after.as_ns_unsigned() / 4;
        let waiting = self.options.watch.waiting_after.map(quarter);
        waiting.map_or(STATUS_INTERVAL, |ns| {
            std::time::Duration::from_nanos(ns).clamp(TICK_MIN, STATUS_INTERVAL)
        })
    }

    fn report(&mut self, mut caught: Caught, observer: &mut dyn WatchObserver) -> Result<()> {
        self.desk.refresh();
        // By the time that it is asked for later, nobody knows any more.
        ordinary::mark(&mut caught.hits);
        if let Some(called) = &mut caught.called {
            let latency = caught.hits.first().map(Hit::latency).unwrap_or_default();
            let mut inside = self.watch.sleeps_inside()?;
            // The next call is about what comes from now on.
            self.watch.forget_cycles()?;
            inside.retain(|found| called.keeps(found, latency));
            called.inside = inside;
        }
        if let Some(called) = caught.called.as_ref().filter(|called| called.in_short) {
            let late = caught.hits.first().map(calls::in_short);
            return observer.call_held_back(called, late.as_ref());
        }
        let nothing_late = caught.hits.is_empty();
        let (reports, call) = self.desk.reports(caught);
        if let Some(call) = call.filter(|_| nothing_late) {
            observer.nothing_late(&call)?;
        }
        for mut report in reports {
            report.replaces = !self.waiting.insert(report.hit.id);
            if report.hit.end_kind != EndKind::Waiting {
                self.waiting.remove(&report.hit.id);
            }
            self.hits += u64::from(!report.replaces);
            self.worst = self.worst.max(report.hit.latency());
            report.seen_as = self.watch.id_in_namespace(report.hit.task.tid);
            observer.hit(&report)?;
        }
        Ok(())
    }

    fn tell_held_back(&mut self, until: Instant, observer: &mut dyn WatchObserver) -> Result<()> {
        let late = self.late.as_mut().map(LateRing::take).transpose()?;
        late.iter()
            .flatten()
            .filter(|late| late.end <= until)
            .try_for_each(|late| observer.held_back(late))
    }

    /// The kernel counts what ended; what still waits may be worse.
    fn worst_of(&self, statistics: &mut Statistics) {
        statistics.worst = statistics.worst.max(self.worst);
    }

    fn is_over(&self) -> bool {
        let enough = self
            .options
            .watch
            .max_hits
            .is_some_and(|max| self.hits >= max);
        enough
            || self
                .options
                .duration
                .is_some_and(|duration| self.meter.elapsed() >= duration)
    }

    fn status(&self) -> Result<Status> {
        let spent = self.watch.spent();
        let mut statistics = self.watch.statistics()?;
        self.worst_of(&mut statistics);
        Ok(Status {
            elapsed: self.meter.elapsed(),
            read: clock::monotonic(),
            hits: self.hits,
            statistics,
            cost: self.meter.read(spent.run_time),
            spent,
            inside: Vec::new(),
        })
    }
}
