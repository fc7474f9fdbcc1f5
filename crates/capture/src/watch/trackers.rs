//! Trackers from their start to their end: hits are named and told as they come, a flight recorder
//! beside them leaves a snapshot of each, and nothing of it runs in the threads that are measured.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bpf_host::WatchCost;
use bpf_host::trackers::{KeySum, Tracker, TrackerConfig, TrackerStatistics, TrackerWatch};
use event::evidence::tracked::TrackedHit;
use event::{Duration, Error, Instant, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use trace::Symbols;

use super::history::{Counted, History, Row, TOLD_INTERVAL, Window};
use super::snapshots::{DRAINS_KEPT, Folder, free_path, window};
use super::tracker_names::key_name;
use super::{FlightRecorder, STATUS_INTERVAL, TICK_MIN, start_recorder};
use crate::cost::{Cost, CostMeter};
use crate::pages;
use crate::{Recorder, Seen, SnapshotFacts, clock, housekeeping, write_snapshot};
use host::capabilities::Capabilities;

/// Which trackers, and what with their hits.
#[derive(Clone, Debug, Default)]
pub struct TrackersOptions {
    /// The trackers, each with its question.
    pub trackers: Vec<(&'static Tracker, TrackerConfig)>,
    /// The flight recorder beside them, if there is to be one.
    pub flight: Option<FlightRecorder>,
    /// Ends after this long; none for until told.
    pub duration: Option<Duration>,
    /// Ends after so many hits.
    pub hits_max: Option<u64>,
    /// Keep the last minutes of the trackers whose rows have histograms.
    pub history: bool,
}

/// One hit, with its names.
#[derive(Debug)]
pub struct TrackerReport {
    /// Who measured it.
    pub tracker: &'static Tracker,
    /// The hit.
    pub hit: TrackedHit,
    /// What its key is called.
    pub key: String,
    /// The folder of its snapshot; hits of one moment share it.
    pub snapshot: Option<Arc<std::path::PathBuf>>,
    /// Why there is no snapshot although there should be.
    pub failure: Option<Arc<Error>>,
}

/// Where one tracker stands.
#[derive(Clone, Debug)]
pub struct TrackerStatus {
    /// Which one.
    pub tracker: &'static Tracker,
    /// What it has counted.
    pub statistics: TrackerStatistics,
    /// What its programs cost.
    pub spent: WatchCost,
    /// Its sums by key, each with what the key is called, at the end alone.
    pub keys: Vec<(String, KeySum)>,
    /// What the key of the worst of each series is called.
    pub worst_keys: Vec<String>,
    /// The last minutes, each minute and at the end, where they are kept.
    pub history: Vec<Window>,
}

/// Where all of them stand.
#[derive(Clone, Debug)]
pub struct TrackersStatus {
    /// Since all were attached.
    pub elapsed: Duration,
    /// Hits that were reported.
    pub hits: u64,
    /// In the order of the options.
    pub trackers: Vec<TrackerStatus>,
    /// Our own cost so far.
    pub cost: Cost,
}

/// Who is told what the trackers see.
pub trait TrackersObserver {
    /// All are attached: every later interval is seen.
    fn armed(&mut self) -> Result<()>;
    /// An interval is reported.
    fn hit(&mut self, report: &TrackerReport) -> Result<()>;
    /// A few times a second; whether to go on.
    fn status(&mut self, status: &TrackersStatus) -> Result<bool>;
}

/// Runs the trackers until the duration is over, the hits asked for are in, or the observer says
/// so; returns where they stood then.
///
/// # Errors
/// What keeps a tracker from starting or running, and what the observer returns.
pub fn run_trackers(
    options: &TrackersOptions,
    capabilities: &Capabilities,
    symbols: Symbols,
    command_line: &str,
    observer: &mut dyn TrackersObserver,
) -> Result<TrackersStatus> {
    let flight = options.flight.as_ref();
    let folder = flight.map(|flight| Folder::prepare(&flight.output));
    let _folder = folder.transpose()?;
    housekeeping::pin(&housekeeping::cpus(
        &capabilities.machine,
        measured(options).as_deref(),
    ));
    let camera = flight.map(|flight| Camera::start(flight, capabilities, command_line));
    let camera = camera.transpose()?;
    let started = options.trackers.iter();
    let started = started.map(|(tracker, config)| TrackerWatch::start(tracker, config));
    let watches = started.collect::<Result<Vec<_>>>()?;
    let began = clock::monotonic();
    let histories = watches.iter().map(|watch| {
        let has_one = options.history && watch.tracker().has_history();
        has_one.then(|| History::new(began))
    });
    let mut session = Session {
        options,
        histories: histories.collect(),
        history_told: began,
        watches,
        symbols,
        camera,
        meter: CostMeter::start(),
        hits: 0,
    };
    session.until_over(observer)
}

/// The CPUs that somebody measures, as far as the options name them.
fn measured(options: &TrackersOptions) -> Option<Vec<event::Cpu>> {
    let config = &options.trackers.first()?.1.watch;
    let of_targets = || housekeeping::of_targets(&config.targets);
    Some(config.cpus.clone().unwrap_or_else(of_targets))
}

struct Session<'a> {
    options: &'a TrackersOptions,
    watches: Vec<TrackerWatch>,
    /// Of each of them.
    histories: Vec<Option<History>>,
    history_told: Instant,
    symbols: Symbols,
    camera: Option<Camera>,
    meter: CostMeter,
    hits: u64,
}

impl Session<'_> {
    fn until_over(&mut self, observer: &mut dyn TrackersObserver) -> Result<TrackersStatus> {
        observer.armed()?;
        let tick = self.tick();
        let mut told = std::time::Instant::now();
        loop {
            let fds: Vec<_> = self.watches.iter().map(TrackerWatch::fd).collect();
            wait(&fds, tick)?;
            self.report(observer)?;
            let is_over = self.is_over();
            if told.elapsed() < STATUS_INTERVAL && !is_over {
                continue;
            }
            told = std::time::Instant::now();
            let goes_on = observer.status(&self.status(false)?)?;
            if !goes_on || is_over {
                // What came meanwhile is a report too.
                self.report(observer)?;
                return self.status(true);
            }
        }
    }

    /// A quarter of the shortest time-out, so that its report is at most that late.
    fn tick(&self) -> std::time::Duration {
        let configs = self.options.trackers.iter().map(|(_, config)| config);
        let waiting = configs
            .filter_map(|config| config.watch.waiting_after)
            .min();
        waiting.map_or(STATUS_INTERVAL, |after| {
            let quarter = std::time::Duration::from_nanos(after.as_ns_unsigned() / 4);
            quarter.clamp(TICK_MIN, STATUS_INTERVAL)
        })
    }

    /// Tells what came since the last time, in the order in which it ended.
    fn report(&mut self, observer: &mut dyn TrackersObserver) -> Result<()> {
        let mut hits = Vec::new();
        for watch in &mut self.watches {
            let tracker = watch.tracker();
            let open = watch.check_open(clock::monotonic())?;
            let found = watch.take()?.into_iter().chain(open);
            hits.extend(found.map(|hit| (tracker, hit)));
        }
        if hits.is_empty() {
            return Ok(());
        }
        hits.sort_by_key(|(_, hit)| hit.tracked.end);
        let origins = hits.iter().map(|(_, hit)| hit.tracked.begin);
        let taken = self.camera.as_mut().map(|camera| camera.take(origins));
        let (snapshot, failure) = match taken {
            None => (None, None),
            Some(Ok(path)) => (Some(Arc::new(path)), None),
            Some(Err(error)) => (None, Some(Arc::new(error))),
        };
        for (tracker, mut hit) in hits {
            if self.options.hits_max.is_some_and(|max| self.hits >= max) {
                break;
            }
            let symbols = &self.symbols;
            hit.symbolise(|address| {
                let found = symbols.lookup(address);
                found.map_or_else(String::new, |(name, offset)| format!("{name}+{offset:#x}"))
            });
            let numbers = (hit.tracked.key, hit.tracked.detail);
            let key = key_name(tracker, numbers, &hit.tracked.label, symbols);
            self.hits += 1;
            observer.hit(&TrackerReport {
                tracker,
                hit,
                key,
                snapshot: snapshot.clone(),
                failure: failure.clone(),
            })?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let enough = self.options.hits_max.is_some_and(|max| self.hits >= max);
        let duration = self.options.duration;
        enough || duration.is_some_and(|duration| self.meter.elapsed() >= duration)
    }

    /// Looks back as often as is due, and whether it is time to tell of it.
    fn look_back(&mut self, at_the_end: bool) -> Result<bool> {
        let now = clock::monotonic();
        let tells = at_the_end || now - self.history_told >= TOLD_INTERVAL;
        for (watch, history) in self.watches.iter().zip(&mut self.histories) {
            if let Some(history) = history
                && (tells || history.is_due(now))
            {
                history.look(now, counted(watch, &self.symbols)?);
            }
        }
        if tells {
            self.history_told = now;
        }
        Ok(tells)
    }

    fn status(&mut self, at_the_end: bool) -> Result<TrackersStatus> {
        let tells = self.look_back(at_the_end)?;
        let watches = self.watches.iter();
        let trackers = watches.map(|watch| self.stands(watch, at_the_end));
        let mut trackers = trackers.collect::<Result<Vec<_>>>()?;
        for (tracker, history) in trackers.iter_mut().zip(&self.histories) {
            let windows = history.as_ref().filter(|_| tells).map(History::windows);
            tracker.history = windows.unwrap_or_default();
        }
        let run_time = trackers.iter().map(|tracker| tracker.spent.run_time).sum();
        Ok(TrackersStatus {
            elapsed: self.meter.elapsed(),
            hits: self.hits,
            trackers,
            cost: self.meter.read(run_time),
        })
    }

    fn stands(&self, watch: &TrackerWatch, at_the_end: bool) -> Result<TrackerStatus> {
        let tracker = watch.tracker();
        let statistics = watch.statistics()?;
        let name = |numbers, label: &str| key_name(tracker, numbers, label, &self.symbols);
        let mut status = TrackerStatus {
            tracker,
            spent: watch.spent(),
            keys: Vec::new(),
            worst_keys: Vec::new(),
            history: Vec::new(),
            statistics,
        };
        let worst = status.statistics.series.iter().map(|series| &series.worst);
        let worst = worst.map(|worst| {
            let worst = worst.as_ref();
            worst.map_or_else(String::new, |worst| {
                name((worst.key, worst.detail), &worst.label)
            })
        });
        status.worst_keys = worst.collect();
        if at_the_end {
            let keys = watch.keys()?.into_iter();
            let keys = keys.map(|sum| (name((sum.key, sum.detail), &sum.label), sum));
            status.keys = keys.collect();
        }
        Ok(status)
    }
}

/// What a tracker has counted: all of each kind, then by key.
fn counted(watch: &TrackerWatch, symbols: &Symbols) -> Result<Vec<Counted>> {
    let statistics = watch.statistics()?;
    let series = statistics.series.into_iter().enumerate();
    let all = series.map(|(number, series)| Counted {
        row: Row {
            series: number,
            key: None,
        },
        name: String::new(),
        sum: series.sum,
        max: series
            .worst
            .map_or(Duration::ZERO, |worst| worst.duration()),
        histogram: series.histogram,
    });
    let mut rows: Vec<Counted> = all.collect();
    for sum in watch.keys()? {
        let Some(histogram) = sum.histogram else {
            continue;
        };
        rows.push(Counted {
            row: Row {
                series: sum.series,
                key: Some((sum.key, sum.group)),
            },
            name: key_name(watch.tracker(), (sum.key, sum.detail), &sum.label, symbols),
            sum: sum.sum,
            max: sum.max,
            histogram,
        });
    }
    Ok(rows)
}

/// Sleeps until a ring holds a hit, a signal comes or the time is over.
fn wait(fds: &[BorrowedFd<'_>], timeout: std::time::Duration) -> Result<()> {
    let mut fds: Vec<_> = fds
        .iter()
        .map(|fd| PollFd::new(fd, PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(Error::io("cannot wait for hits", errno.into())),
    }
}

/// A flight recorder, and what each of its snapshots says of the machine.
struct Camera {
    recorder: Recorder,
    /// What it read before: an interval may have begun there.
    drained: pages::History,
    capabilities: SnapshotFacts,
    output: std::path::PathBuf,
}

impl Camera {
    fn start(
        flight: &FlightRecorder,
        capabilities: &Capabilities,
        command_line: &str,
    ) -> Result<Camera> {
        let snapshot_facts = SnapshotFacts::collect(capabilities, command_line);
        let recorder = start_recorder(flight, None)?;
        Ok(Camera {
            capabilities: snapshot_facts.share_functions(&flight.output),
            drained: pages::History::new(recorder.drains_bytes(DRAINS_KEPT)),
            recorder,
            output: flight.output.clone(),
        })
    }

    /// Keeps as a trace what the recorder holds now of what began at these moments.
    fn take(&mut self, origins: impl Iterator<Item = Instant>) -> Result<std::path::PathBuf> {
        let newest = self.recorder.drain(clock::monotonic())?;
        self.drained.push(newest.clone());
        let pages = self.drained.overlapping(window(origins, &newest));
        let formats = self.recorder.formats();
        let (_, path) = free_path(&self.output, 1)?;
        let written = write_snapshot(
            &path,
            &pages,
            &formats,
            &Seen::default(),
            &self.capabilities,
        )?;
        Ok(written.path)
    }
}
