//! The worst samples of a measurement, with what is needed to explain them.

use std::cmp::Reverse;
use std::path::Path;
use std::time::Instant;

use capture::watch::HitReport;
use event::Duration;
use host::task::Hurry;
use serde_json::Value;

use crate::live::Live;
use crate::signals;
use crate::verbs::watch::{NOT_EXPLAINED, hit_unexplained, hit_value};

/// Explaining may take as long as the measurement did, and always so long: whoever waits for the
/// end can say when to give up.
const EXPLAINED_FOR_MIN: Duration = Duration::from_ms(60_000);

/// The worst so far, the longest first. Explained afterwards: that takes seconds, and the time of
/// the run is not ours.
pub(super) struct WorstHits {
    /// There is room for so many.
    max: usize,
    pub(super) reports: Vec<HitReport>,
}

impl WorstHits {
    pub(super) fn new(max: usize) -> WorstHits {
        WorstHits {
            max,
            reports: Vec::new(),
        }
    }

    /// All of them for the report, the longest first, explained as long as there is time behind a
    /// measurement of that length and nobody asks to stop.
    pub(super) fn explained(&self, measured: Duration) -> Vec<Value> {
        // Nothing is measured any more.
        let _hurry = Hurry::begin();
        let live = Live::new(true);
        let (begin, asked) = (Instant::now(), signals::request());
        let room = measured.max(EXPLAINED_FOR_MIN);
        let mut is_over = |done: usize| {
            live.line(&format!("explaining: {done} of {}", self.reports.len()));
            let taken = Duration::from_ns(begin.elapsed().as_nanos() as i64);
            taken >= room || signals::request() != asked
        };
        let lines = until(&self.reports, &mut is_over, &hit_value);
        live.clear();
        let left_out = lines
            .iter()
            .filter(|line| line.get(NOT_EXPLAINED).is_some());
        let left_out = left_out.count();
        if left_out > 0 {
            note!(
                "{left_out} of the {} worst are not explained: explaining took as long as \
                 measuring did, or somebody stopped it; rtscope diagnose explains their snapshots",
                lines.len()
            );
        }
        lines
    }

    /// Takes one. Snapshots of those that are no longer among the worst are removed.
    pub(super) fn add(&mut self, report: &HitReport) {
        self.reports.push(HitReport {
            hit: report.hit.clone(),
            snapshot: report.snapshot.clone(),
            failure: report.failure.clone(),
            replaces: report.replaces,
            seen_as: report.seen_as,
            called: report.called.clone(),
        });
        self.reports.sort_by_key(|one| Reverse(one.hit.latency()));
        for dropped in self.reports.split_off(self.reports.len().min(self.max)) {
            let Some(snapshot) = dropped.snapshot else {
                continue;
            };
            // Hits of one moment share a snapshot.
            let holds = |one: &HitReport| path(one) == Some(&snapshot.path);
            if !self.reports.iter().any(holds) {
                std::fs::remove_dir_all(&snapshot.path).ok();
            }
        }
    }
}

/// A line for each, explained until `is_over` says so of how many there are.
fn until(
    reports: &[HitReport],
    is_over: &mut dyn FnMut(usize) -> bool,
    explain: &dyn Fn(&HitReport) -> Value,
) -> Vec<Value> {
    let mut over = false;
    let line = |(done, report): (usize, &HitReport)| {
        over = over || is_over(done);
        match (over, path(report)) {
            (false, _) => explain(report),
            (true, Some(snapshot)) => {
                let why = format!("no time was left: rtscope diagnose {}", snapshot.display());
                hit_unexplained(report, &why)
            }
            (true, None) => hit_unexplained(report, "there is no snapshot of it"),
        }
    };
    reports.iter().enumerate().map(line).collect()
}

fn path(report: &HitReport) -> Option<&Path> {
    report
        .snapshot
        .as_ref()
        .map(|snapshot| snapshot.path.as_path())
}

#[cfg(test)]
mod tests {
    use event::evidence::{EndKind, Hit, Stack, TaskRef};
    use event::{Instant, Prio, Tid};
    use serde_json::json;

    use super::*;

    fn hit(latency: Duration) -> Hit {
        let origin = Instant::from_ns(0);
        Hit {
            id: 1,
            end_kind: EndKind::Blocked,
            origin,
            end: origin + latency,
            threshold: Duration::ZERO,
            task: TaskRef {
                tid: Tid(7),
                comm: "rtscope-cyc0".into(),
                prio: Prio(19),
            },
            preemptions: 0,
            overflow: 0,
            stale: false,
            repaired: false,
            unseen: false,
            kin: Default::default(),
            ordinary: false,
            culprit: None,
            steps: Vec::new(),
            cost: Duration::ZERO,
            waker_stack: Stack::default(),
            wakee_stack: Stack::default(),
            culprit_stack: Stack::default(),
        }
    }

    /// A hit of so many microseconds.
    fn report(us: i64) -> HitReport {
        HitReport {
            hit: hit(Duration::from_us(us)),
            snapshot: None,
            failure: None,
            replaces: false,
            seen_as: None,
            called: None,
        }
    }

    #[test]
    fn what_no_time_is_left_for_is_a_line_without_an_explanation_and_says_so() {
        let check = |time_for: usize| {
            let reports = [report(900), report(31), report(30)];
            let explain = |one: &HitReport| json!({ "of_ns": one.hit.latency().as_ns() });
            let lines = until(&reports, &mut |done| done >= time_for, &explain);
            assert_eq!(lines.len(), reports.len());
            for (at, line) in lines.iter().enumerate() {
                let is_explained = at < time_for;
                assert_eq!(line.get("of_ns").is_some(), is_explained, "{line}");
                assert_eq!(line.get(NOT_EXPLAINED).is_none(), is_explained, "{line}");
            }
        };
        (0..=3).for_each(check);
    }

    #[test]
    fn the_longest_stay_whenever_they_come() {
        let check = |latencies_us: &mut dyn Iterator<Item = i64>, expect_us: [i64; 3]| {
            let mut worst = WorstHits::new(3);
            latencies_us.for_each(|us| worst.add(&report(us)));
            let kept = worst.reports.iter().map(|one| one.hit.latency());
            assert_eq!(kept.collect::<Vec<_>>(), expect_us.map(Duration::from_us));
        };
        // A series that grows: its last ones, and not its first.
        check(&mut (1..=500), [500, 499, 498]);
        check(&mut (1..=500).rev(), [500, 499, 498]);
        check(&mut [7, 900, 8, 30, 9, 31].into_iter(), [900, 31, 30]);
    }
}
