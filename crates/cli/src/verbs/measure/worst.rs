//! The worst samples of an evaluation, with what is needed to explain them.

use std::cmp::Reverse;
use std::path::Path;

use capture::watch::HitReport;

/// Explained samples that the report has room for.
pub(super) const WORST_MAX: usize = 20;

/// The worst so far, the longest first. Explained afterwards: that takes seconds, and the time of
/// the run is not ours.
#[derive(Default)]
pub(super) struct WorstHits {
    pub(super) reports: Vec<HitReport>,
}

impl WorstHits {
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
        for dropped in self.reports.split_off(self.reports.len().min(WORST_MAX)) {
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
