//! Trackers beside the phases: programs of their own for each scope, looked at as often as the
//! phases are.

use bpf_host::trackers::{Tracker, TrackerConfig, TrackerWatch, TurnedSeries};
use bpf_host::{MonitorConfig, Targets, WatchConfig};
use capture::watch::{key_name, pair};
use event::evidence::tracked::Tracked;
use event::{Duration, Result};
use monitor::{Histogram, Interval, Kind, Scope, Series, Task, Worst};
use trace::Symbols;

use crate::options::MonitorOptions;

/// Trackers that count; they end when this is dropped.
#[derive(Default)]
pub(super) struct Tracking {
    running: Vec<Running>,
}

struct Running {
    scope: Scope,
    watch: TrackerWatch,
    is_failing: bool,
}

impl Tracking {
    /// Starts what `options` ask for; `counted` says whose phases are counted, and so whose these.
    ///
    /// # Errors
    /// When this kernel has no such tracker or no such event, or refuses it.
    pub fn start(options: &MonitorOptions, counted: &MonitorConfig) -> Result<Tracking> {
        let trackers = options.trackers.iter().map(|name| Tracker::find(name));
        let mut asked: Vec<_> = trackers
            .map(|tracker| Ok((tracker?, None)))
            .collect::<Result<_>>()?;
        if let Some(question) = &options.pair {
            let (tracker, pair) = pair(question)?;
            asked.push((tracker, Some(pair)));
        }
        let mut running = Vec::new();
        for (tracker, pair) in asked {
            for scope in options.scopes() {
                let config = TrackerConfig {
                    watch: watched(scope, counted),
                    pair: pair.clone(),
                    turns: true,
                    ..TrackerConfig::default()
                };
                running.push(Running {
                    scope,
                    watch: TrackerWatch::start(tracker, &config)?,
                    is_failing: false,
                });
            }
        }
        Ok(Tracking { running })
    }

    /// Puts what was counted since the last call into `part`; `ahead_ns` is what the wall clock is
    /// ahead of CLOCK_MONOTONIC.
    pub fn add_to(&mut self, part: &mut Interval, ahead_ns: i64, symbols: &Symbols) {
        for running in &mut self.running {
            let turned = match running.watch.turn() {
                Ok(turned) => turned,
                Err(error) => {
                    // Once for each time that it fails anew.
                    if !std::mem::replace(&mut running.is_failing, true) {
                        note!("{error:#}");
                    }
                    part.head.lost_tracked += 1;
                    continue;
                }
            };
            running.is_failing = false;
            part.head.lost_tracked += turned.lost;
            let (scope, tracker) = (running.scope, running.watch.tracker());
            for counted in &turned.series {
                let kind = kind(tracker, counted.series);
                let worst = counted.worst.as_ref();
                part.head.worst_missed += u64::from(worst.is_none());
                let key = |worst: &Tracked| {
                    key_name(tracker, (worst.key, worst.detail), &worst.label, symbols)
                };
                let worst = worst.map(|worst| {
                    let key = key(worst);
                    longest(scope, kind.clone(), worst, key, ahead_ns)
                });
                part.add_tracked(series(scope, kind, counted), worst);
            }
        }
    }

    /// What the programs cost so far; to be called a few times a second.
    pub fn cost_ns(&self) -> u64 {
        let spent = self.running.iter().map(|one| one.watch.spent().run_time);
        spent.sum::<Duration>().as_ns_unsigned()
    }
}

/// Whose intervals a scope has. Nothing is reported: the longest of each time is enough.
fn watched(scope: Scope, counted: &MonitorConfig) -> WatchConfig {
    let (targets, members) = match scope {
        Scope::RealTime => (Targets::RealTime, None),
        Scope::Named => (
            Targets::Tasks(counted.named.clone()),
            Some(counted.members.clone()),
        ),
        Scope::All => (Targets::All, None),
    };
    WatchConfig {
        targets,
        members: members.unwrap_or_default(),
        threshold: Duration::MAX,
        ..WatchConfig::default()
    }
}

fn kind(tracker: &Tracker, series: usize) -> Kind {
    let name = tracker.series.get(series).copied().unwrap_or_default();
    let other = tracker.other.get(series).copied().unwrap_or_default();
    Kind::tracked(tracker.name, name, other)
}

fn series(scope: Scope, phase: Kind, counted: &TurnedSeries) -> Series {
    Series {
        scope,
        phase,
        cpu: counted.cpu,
        sum: counted.sum,
        min: counted.min,
        max: counted.max,
        histogram: Histogram(counted.buckets.clone()),
    }
}

fn longest(scope: Scope, phase: Kind, worst: &Tracked, key: String, ahead_ns: i64) -> Worst {
    Worst {
        scope,
        phase,
        cpu: worst.cpu,
        value: worst.duration(),
        at_ns: worst.end.as_ns().saturating_add(ahead_ns),
        timer: None,
        parts: [Duration::ZERO; 3],
        victim: worst.task.as_ref().map(Task::from),
        culprit: worst.other.as_ref().map(Task::from),
        call: None,
        function: None,
        mode: abi::monitor::Mode::default(),
        stack: Vec::new(),
        key: Some(key),
    }
}
