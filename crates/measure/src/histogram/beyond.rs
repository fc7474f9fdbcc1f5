//! Samples beyond the last bucket, in buckets that grow with their values: how many were over a
//! limit that lies there.

use std::sync::atomic::{AtomicU64, Ordering};

/// So many buckets to a doubling: a sample is known to 1.6 %.
const BUCKETS_BITS: u32 = 6;
const BUCKETS: usize = ((i64::BITS - BUCKETS_BITS) as usize) << BUCKETS_BITS;

/// The place of a value, which is not negative.
fn place(value_ns: i64) -> usize {
    let value = value_ns.max(1 << BUCKETS_BITS) as u64;
    let doublings = value.ilog2() - BUCKETS_BITS;
    ((doublings as usize) << BUCKETS_BITS) + (value >> doublings) as usize - (1 << BUCKETS_BITS)
}

/// Written by one thread.
#[derive(Debug)]
pub(super) struct Beyond(Box<[AtomicU64]>);

impl Default for Beyond {
    fn default() -> Beyond {
        Beyond((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Beyond {
    pub fn add(&self, value_ns: i64) {
        let count = &self.0[place(value_ns)];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Pairs of a place and the samples in it.
    pub fn read(&self) -> Vec<(usize, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        counts.enumerate().filter(|(_, count)| *count > 0).collect()
    }
}

/// The samples in buckets above that of `limit_ns`, and in its own.
pub(super) fn count_from(counts: &[(usize, u64)], limit_ns: i64) -> u64 {
    let first = place(limit_ns);
    let over = counts.iter().filter(|(place, _)| *place >= first);
    over.map(|(_, count)| count).sum()
}

/// Adds more samples.
pub(super) fn join(counts: &mut Vec<(usize, u64)>, more: &[(usize, u64)]) {
    for (place, count) in more {
        match counts.binary_search_by_key(place, |(place, _)| *place) {
            Ok(at) => counts[at].1 = counts[at].1.saturating_add(*count),
            Err(at) => counts.insert(at, (*place, *count)),
        }
    }
}

/// What came since `before`.
pub(super) fn grown(before: &[(usize, u64)], now: &[(usize, u64)]) -> Vec<(usize, u64)> {
    let was = |place: usize| {
        let at = before.binary_search_by_key(&place, |(place, _)| *place);
        at.map_or(0, |at| before[at].1)
    };
    let more = now
        .iter()
        .map(|(place, count)| (*place, count.saturating_sub(was(*place))));
    more.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_value_is_over_a_limit_unless_it_is_shorter_by_no_more_than_a_bucket(
            value_ns in 0..i64::MAX, limit_ns in 0..i64::MAX
        ) {
            let beyond = Beyond::default();
            beyond.add(value_ns);
            let is_over = count_from(&beyond.read(), limit_ns) == 1;
            prop_assert!(is_over || value_ns < limit_ns);
            prop_assert!(!is_over || value_ns >= limit_ns - limit_ns / 64 - 64);
        }
    }

    #[test]
    fn what_came_since_a_look_and_what_was_there_make_what_is_there() {
        let beyond = Beyond::default();
        for value_ns in [5, 40_000_000, 40_000_001] {
            beyond.add(value_ns);
        }
        let before = beyond.read();
        beyond.add(40_000_000);
        beyond.add(600_000_000);
        let now = beyond.read();
        let mut sum = before.clone();
        join(&mut sum, &grown(&before, &now));
        assert_eq!(sum, now);
        assert_eq!(count_from(&now, 400_000_000), 1);
    }
}
