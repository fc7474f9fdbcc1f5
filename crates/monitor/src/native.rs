//! Histograms in the buckets that Prometheus calls native: eight to an octave of seconds.
//!
//! Ours are of equal width within an octave of nanoseconds, so that one may lie across a bound. All
//! of its samples are counted where its longest would be: a quantile may be too long by a bucket of
//! each kind, and is never too short.

use std::time::{Duration as Time, UNIX_EPOCH};

use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;
use prometheus_client::encoding::{NativeHistogram, NativeHistogramBuckets};

use crate::buckets::Histogram;
use crate::exemplars;
use crate::interval::Interval;

/// Buckets by power of two: two to the power of this.
const SCHEMA: i32 = 3;
/// Samples of nothing lie below this, as with Prometheus's own libraries.
const ZERO_THRESHOLD: f64 = 2.938735877055719e-39;

/// The buckets as Prometheus has them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Native {
    zero: u64,
    /// Runs of buckets: how far behind the one before, and how many.
    spans: Vec<(i32, u32)>,
    /// The count of each, as the difference from the one before it.
    deltas: Vec<i64>,
}

impl Native {
    pub(crate) fn of(histogram: &Histogram) -> Native {
        let mut native = Native::default();
        let (mut last, mut counts) = (None, Vec::new());
        for (_, end_ns, count) in histogram.bounds_ns() {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let Some(place) = place(end_ns.saturating_sub(1)) else {
                native.zero += count.unsigned_abs();
                continue;
            };
            match (last, counts.last_mut()) {
                (Some(before), Some(known)) if before == place => *known += count,
                (before, _) => {
                    native.extend(before, place);
                    counts.push(count);
                }
            }
            last = Some(place);
        }
        let before = std::iter::once(&0).chain(&counts);
        native.deltas = counts
            .iter()
            .zip(before)
            .map(|(count, before)| count - before)
            .collect();
        native
    }

    /// Takes in the bucket at `place`, behind that at `before`.
    fn extend(&mut self, before: Option<i32>, place: i32) {
        let gap = before.map_or(place, |before| place - before - 1);
        match self.spans.last_mut() {
            Some((_, length)) if gap == 0 => *length += 1,
            _ => self.spans.push((gap, 1)),
        }
    }

    pub(crate) fn encoded(&self) -> NativeHistogram<'_> {
        NativeHistogram {
            schema: SCHEMA,
            zero_threshold: ZERO_THRESHOLD,
            zero_count: self.zero,
            negative: NativeHistogramBuckets {
                spans: &[],
                deltas: &[],
            },
            positive: NativeHistogramBuckets {
                spans: &self.spans,
                deltas: &self.deltas,
            },
            created: None,
        }
    }
}

/// The number of the bucket of a sample; its end belongs to it. None of nothing.
fn place(ns: u64) -> Option<i32> {
    let roots = f64::from(1 << SCHEMA);
    (ns > 0).then(|| ((ns as f64 / 1e9).log2() * roots).ceil() as i32)
}

/// Puts the longest of each phase of `last` beside the first classic bucket that has it.
pub(crate) fn add_exemplars(families: &mut [MetricFamily], last: &Interval) {
    let histograms = families
        .iter_mut()
        .filter(|family| family.name == exemplars::FAMILY);
    let metrics = histograms.flat_map(|family| &mut family.metric);
    for metric in metrics {
        let of = |name: &str| {
            let label = metric.label.iter().find(|label| label.name == name);
            label.map(|label| label.value.as_str())
        };
        let (scope, phase) = (of("scope"), of("phase"));
        let is_of = |worst: &&crate::interval::Worst| {
            (scope, phase) == (Some(worst.scope.name()), Some(worst.phase.name()))
        };
        let Some(worst) = last.worst.iter().find(is_of) else {
            continue;
        };
        let seconds = worst.value.as_ns() as f64 / 1e9;
        let buckets = metric.histogram.iter_mut().flat_map(|one| &mut one.bucket);
        let Some(bucket) = { buckets }.find(|bucket| seconds < bucket.upper_bound) else {
            continue;
        };
        let exemplar = bucket.exemplar.get_or_insert_default();
        exemplar.value = seconds;
        let at = UNIX_EPOCH + Time::from_nanos(worst.at_ns.max(0).unsigned_abs());
        exemplar.timestamp = Some(at.into());
        for (name, value) in exemplars::labels(last, worst) {
            exemplar.label.push(Default::default());
            if let Some(label) = exemplar.label.last_mut() {
                (label.name, label.value) = (name.to_owned(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The buckets again: number and count.
    fn buckets(native: &Native) -> Vec<(i32, i64)> {
        let (mut place, mut count, mut all) = (0, 0, Vec::new());
        let mut deltas = native.deltas.iter();
        for (gap, length) in &native.spans {
            place += gap;
            for _ in 0..*length {
                count += deltas.next().expect("as many as the spans say");
                all.push((place, count));
                place += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        all
    }

    #[test]
    fn a_bucket_is_counted_where_its_longest_sample_would_be() {
        // 16 ns to 17 ns, twice; 1.024 us; nothing.
        let histogram = Histogram(vec![(0, 7), (16, 2), (112, 1)]);
        let native = Native::of(&histogram);
        assert_eq!(native.zero, 7);
        let expect = [(place(16).expect("one"), 2), (place(1087).expect("one"), 1)];
        assert_eq!(buckets(&native), expect);
        // A second is the end of bucket 0.
        assert_eq!(
            (place(1_000_000_000), place(1_000_000_001)),
            (Some(0), Some(1))
        );
        assert_eq!((place(2_000_000_000), place(0)), (Some(8), None));
    }

    proptest! {
        #[test]
        fn no_sample_is_lost_and_each_lies_in_its_bucket_or_less_than_one_behind(
            counts in prop::collection::btree_map(0..600u16, 1u64..1 << 40, 0..80)
        ) {
            let histogram = Histogram(counts.into_iter().collect());
            let native = Native::of(&histogram);
            let found = buckets(&native);
            prop_assert!(found.is_sorted_by(|a, b| a.0 < b.0));
            let sum = found.iter().map(|(_, count)| *count as u64).sum::<u64>();
            prop_assert_eq!(sum + native.zero, histogram.samples());
            for (from_ns, end_ns, _) in histogram.bounds_ns().filter(|(_, end, _)| *end > 1) {
                let end = place(end_ns - 1).expect("more than nothing");
                prop_assert!(found.iter().any(|(place, _)| *place == end));
                prop_assert!(from_ns < 16 || end - place(from_ns).expect("one") <= 1);
            }
        }
    }
}
