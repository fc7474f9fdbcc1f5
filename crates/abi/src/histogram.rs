//! The log-linear histogram that the kernel keeps: 16 buckets per octave.

use event::Duration;

use crate::raw::{BUCKETS_MAX, OCTAVES_MAX, SUB_BITS};

/// Counts of durations. A bucket is at most 1/16 of its lower bound wide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: vec![0; BUCKETS_MAX],
        }
    }
}

impl Histogram {
    /// Adds the counts of one CPU, bucket by bucket.
    pub fn add(&mut self, buckets: &[u64; BUCKETS_MAX]) {
        for (sum, count) in self.buckets.iter_mut().zip(buckets) {
            *sum += count;
        }
    }

    /// Adds the counts of some buckets.
    pub fn add_some(&mut self, counts: &[(u16, u64)]) {
        for (bucket, count) in counts {
            if let Some(sum) = self.buckets.get_mut(usize::from(*bucket)) {
                *sum += count;
            }
        }
    }

    /// What was counted since the histogram was `before`: buckets in their order, empty ones left
    /// out.
    pub fn since(&self, before: Option<&Histogram>) -> Vec<(u16, u64)> {
        let buckets = self.buckets.iter().enumerate();
        let change = |(bucket, count): (usize, &u64)| {
            let counted = before.map_or(0, |before| before.buckets[bucket]);
            let change = count.saturating_sub(counted);
            (change > 0).then_some((bucket as u16, change))
        };
        buckets.filter_map(change).collect()
    }

    /// Where a bucket ends: all that it holds is shorter.
    pub fn end_of(bucket: u16) -> Duration {
        Duration::from_ns(bucket_begin_ns(usize::from(bucket) + 1) as i64)
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The non-empty buckets: least value, least value of the next bucket, count.
    pub fn counts(&self) -> impl Iterator<Item = (Duration, Duration, u64)> + '_ {
        let counted = |(bucket, count): (usize, &u64)| {
            let bounds = |bucket| Duration::from_ns(bucket_begin_ns(bucket) as i64);
            (*count > 0).then(|| (bounds(bucket), bounds(bucket + 1), *count))
        };
        self.buckets.iter().enumerate().filter_map(counted)
    }

    /// The upper bound of the bucket that holds the sample of this rank, 0 to 1; none when empty.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let rank = (quantile.clamp(0.0, 1.0) * self.samples() as f64)
            .ceil()
            .max(1.0) as u64;
        let mut seen = 0;
        self.counts().find_map(|(_, upper, count)| {
            seen += count;
            (seen >= rank).then_some(upper)
        })
    }
}

/// The least value of a bucket, in nanoseconds.
pub fn bucket_begin_ns(bucket: usize) -> u64 {
    let sub = 1u64 << SUB_BITS;
    let (octave, place) = (bucket as u64 >> SUB_BITS, bucket as u64 & (sub - 1));
    match octave {
        0 => place,
        _ => (sub + place) << (octave - 1).min(u64::from(OCTAVES_MAX)),
    }
}

/// The bucket of a value; the last one has whatever is longer.
pub fn bucket_of_ns(value_ns: u64) -> u16 {
    let octave = (u64::BITS - value_ns.leading_zeros()).saturating_sub(SUB_BITS);
    let bucket = match octave {
        0 => value_ns,
        _ => (u64::from(octave - 1) << SUB_BITS) + (value_ns >> (octave - 1)),
    };
    bucket.min(BUCKETS_MAX as u64 - 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_sixteenth_of_its_value_wide() {
        for bucket in 0..BUCKETS_MAX {
            let (lower, upper) = (bucket_begin_ns(bucket), bucket_begin_ns(bucket + 1));
            assert!(lower < upper, "bucket {bucket} is empty");
            assert!(
                upper - lower <= (lower / 16).max(1),
                "bucket {bucket} is too wide"
            );
            for value in [lower, upper - 1] {
                assert_eq!(usize::from(bucket_of_ns(value)), bucket, "{value}");
            }
        }
        assert_eq!(usize::from(bucket_of_ns(u64::MAX)), BUCKETS_MAX - 1);
    }

    #[test]
    fn a_quantile_is_the_upper_bound_of_its_bucket() {
        let check = |counts: &[(usize, u64)], quantile: f64, expect: Option<i64>| {
            let mut buckets = [0; BUCKETS_MAX];
            counts
                .iter()
                .for_each(|(bucket, count)| buckets[*bucket] = *count);
            let mut histogram = Histogram::default();
            histogram.add(&buckets);
            assert_eq!(histogram.quantile(quantile).map(Duration::as_ns), expect);
        };
        check(&[], 0.5, None);
        check(&[(3, 1)], 0.5, Some(4));
        check(&[(16, 99), (32, 1)], 0.99, Some(17));
        check(&[(16, 99), (32, 1)], 1.0, Some(34));
    }
}
