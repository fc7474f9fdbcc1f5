//! What an application did since its run began, as intervals on the disk have it.

use abi::Histogram;
use capture::watch::Status;
use event::Duration;
use measure::journal::{Interval, Record, WorkloadPortion};

/// Counts that grow, of one run or of several behind each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// Activations that were judged.
    pub(super) judged: u64,
    histogram: Histogram,
    longest: Duration,
    /// Activations over the threshold.
    pub(super) late: u64,
    /// Hits that were lost.
    pub(super) lost: u64,
    /// How often it said itself that it was late.
    pub(super) said_late: u64,
    /// Activations that may have been over the threshold and are not known.
    pub(super) unseen: u64,
}

impl Tally {
    /// Where the watch of it stands.
    pub(super) fn now(status: &Status, said_late: u64) -> Tally {
        let statistics = &status.statistics;
        Tally {
            judged: statistics.samples,
            histogram: statistics.histogram.clone(),
            longest: statistics.worst,
            late: status.hits + statistics.suppressed,
            lost: statistics.lost,
            said_late,
            unseen: statistics.lost + statistics.dropped + statistics.unjudged(),
        }
    }

    /// What came since `before`.
    pub(super) fn since(&self, before: &Tally) -> WorkloadPortion {
        let since = |of: fn(&Tally) -> u64| of(self).saturating_sub(of(before));
        WorkloadPortion {
            judged: since(|one| one.judged),
            buckets: self.histogram.since(Some(&before.histogram)),
            longest_ns: self.longest().map(Duration::as_ns),
            late: since(|one| one.late),
            lost: since(|one| one.lost),
            said_late: since(|one| one.said_late),
            unseen: since(|one| one.unseen),
        }
    }

    /// All that earlier runs closed.
    pub(super) fn of(record: Option<&Record>) -> Tally {
        let parts = record.iter().flat_map(|record| &record.parts);
        Tally::of_intervals(parts.flat_map(|part| &part.intervals))
    }

    /// What some intervals add up to.
    pub(super) fn of_intervals<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Tally {
        let mut all = Tally::default();
        for gained in intervals.filter_map(|interval| interval.workload.as_ref()) {
            let mut histogram = Histogram::default();
            histogram.add_some(&gained.buckets);
            all.join(&Tally {
                judged: gained.judged,
                histogram,
                longest: Duration::from_ns(gained.longest_ns.unwrap_or_default()),
                late: gained.late,
                lost: gained.lost,
                said_late: gained.said_late,
                unseen: gained.unseen,
            });
        }
        all
    }

    /// Takes another in. Whatever a file says, sums do not wrap.
    pub(super) fn join(&mut self, other: &Tally) {
        self.judged = self.judged.saturating_add(other.judged);
        self.histogram.add_some(&other.histogram.since(None));
        self.longest = self.longest.max(other.longest);
        self.late = self.late.saturating_add(other.late);
        self.lost = self.lost.saturating_add(other.lost);
        self.said_late = self.said_late.saturating_add(other.said_late);
        self.unseen = self.unseen.saturating_add(other.unseen);
    }

    /// The longest activation; none where none was judged.
    pub(super) fn longest(&self) -> Option<Duration> {
        (self.judged > 0).then_some(self.longest)
    }

    /// The activation of this rank, to a bucket's width and never above the longest.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        let found = self.histogram.quantile(share);
        found.map(|found| found.min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use abi::bucket_of_ns;

    use super::*;

    /// A run that saw activations of these lengths.
    fn tally(activations_ns: &[u64]) -> Tally {
        let mut histogram = Histogram::default();
        let counts: Vec<_> = activations_ns
            .iter()
            .map(|ns| (bucket_of_ns(*ns), 1))
            .collect();
        histogram.add_some(&counts);
        let longest_ns = activations_ns.iter().max().copied().unwrap_or_default();
        Tally {
            judged: activations_ns.len() as u64,
            histogram,
            longest: Duration::from_ns(longest_ns.cast_signed()),
            late: 1,
            lost: 2,
            said_late: 3,
            unseen: 4,
        }
    }

    fn interval(gained: WorkloadPortion) -> Interval {
        Interval {
            from_wall_ns: 0,
            until_wall_ns: 1,
            since_boot_ns: None,
            clock_set: vec![],
            elapsed_ns: 1,
            threads: vec![],
            excursions: vec![],
            excursions_left_out: 0,
            loads: vec![],
            workload: Some(gained),
        }
    }

    #[test]
    fn intervals_add_up_to_their_runs_and_runs_to_one() {
        let begun = Tally::default();
        let (half, whole) = (tally(&[10, 900]), {
            let mut whole = tally(&[10, 900]);
            whole.join(&tally(&[70_000, 20]));
            whole
        });
        let closed = [half.since(&begun), whole.since(&half)].map(interval);
        assert_eq!(Tally::of_intervals(closed.iter()), whole);
        let mut both = Tally::of_intervals(closed.iter());
        both.join(&tally(&[5]));
        assert_eq!((both.judged, both.late, both.lost), (5, 3, 6));
        assert_eq!((both.said_late, both.unseen), (9, 12));
        assert_eq!(both.longest(), Some(Duration::from_ns(70_000)));
        assert_eq!(both.quantile(1.0), Some(Duration::from_ns(70_000)));
        assert_eq!(
            both.quantile(0.5),
            tally(&[20])
                .quantile(0.5)
                .map(|_| { abi::Histogram::end_of(bucket_of_ns(20)) })
        );
    }

    #[test]
    fn a_run_without_activations_has_no_longest() {
        let nothing = Tally::of_intervals([interval(WorkloadPortion::default())].iter());
        assert_eq!((nothing.longest(), nothing.quantile(0.5)), (None, None));
    }
}
