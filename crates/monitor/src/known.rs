//! What was counted since the daemon began, as every form of metrics tells it.

use crate::buckets::Histogram;
use crate::interval::{Interval, Run, Scope};
use crate::kind::Kind;
use abi::bucket_begin_ns;

/// Every fourth bucket's end is a bound: four an octave, from 256 ns on.
pub(crate) const STEP: usize = 4;
pub(crate) const FIRST: usize = 80;
/// Up to 2.7 s; what is longer is in the bucket of all.
pub(crate) const LAST: usize = 452;

#[derive(Debug, Default)]
pub(crate) struct Known {
    pub run: Run,
    pub sum: Interval,
    pub last: Interval,
    pub intervals: u64,
    pub unsaved: u64,
    pub store_bytes: u64,
    pub exceeded: Option<u64>,
}

/// What was counted: no label grows with tasks or with time.
pub(crate) fn counted(known: &Known) -> Vec<(Scope, Kind)> {
    let kinds = |scope| {
        known
            .sum
            .kinds(scope)
            .into_iter()
            .map(move |kind| (scope, kind))
    };
    Scope::ALL.into_iter().flat_map(kinds).collect()
}

/// The bounds in seconds, and how many samples lie below each and not below the one before it.
pub(crate) fn coarse(histogram: &Histogram) -> Vec<(f64, u64)> {
    let bounds = (FIRST..=LAST).step_by(STEP);
    let mut buckets: Vec<(f64, u64)> = bounds
        .map(|bucket| (bucket_begin_ns(bucket) as f64 / 1e9, 0))
        .collect();
    buckets.push((f64::INFINITY, 0));
    for (bucket, count) in &histogram.0 {
        let place = (usize::from(*bucket) + STEP).saturating_sub(FIRST) / STEP;
        let last = buckets.len() - 1;
        buckets[place.min(last)].1 += count;
    }
    buckets
}
