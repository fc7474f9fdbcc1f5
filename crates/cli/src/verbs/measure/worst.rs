//! The worst samples of a measurement, with what is needed to explain them.

use std::cmp::Reverse;
use std::path::Path;

use capture::watch::HitReport;

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

fn path(report: &HitReport) -> Option<&Path> {
    report
        .snapshot
        .as_ref()
        .map(|snapshot| snapshot.path.as_path())
}

#[cfg(test)]
mod tests {
    use event::evidence::{EndKind, Hit, Stack, TaskRef};
    use event::{Duration, Instant, Prio, Tid};

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
