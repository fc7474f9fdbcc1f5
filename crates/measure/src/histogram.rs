//! A histogram that one thread writes and others read, without locks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use beyond::Beyond;
use event::Duration;

mod beyond;
mod portion;

pub use portion::Portion;

/// Overflowing samples whose number is kept, unless a recorder keeps others.
pub const OVERFLOWS_NAMED: usize = 32;

/// Written by its one owner: every change is a load and a store, no locked instruction. A reader
/// may see a sample counted and not yet summed.
#[derive(Debug)]
pub struct Recorder {
    width_ns: i64,
    buckets: Box<[AtomicU64]>,
    samples: AtomicU64,
    below_zero: AtomicU64,
    overflows: AtomicU64,
    overflow_samples: Box<[AtomicU64]>,
    beyond: Beyond,
    sum_ns: AtomicI64,
    /// Bits of a float: squares of nanoseconds leave 64 bits after seconds.
    sum_squares: AtomicU64,
    last_ns: AtomicI64,
    min_ns: AtomicI64,
    max_ns: AtomicI64,
    max_sample: AtomicU64,
}

impl Recorder {
    /// Room for `buckets` of `width` each, from zero; what is longer overflows, and is counted.
    pub fn new(width: Duration, buckets: usize) -> Recorder {
        Recorder::naming(width, buckets, OVERFLOWS_NAMED)
    }

    /// The same, and keeps the numbers of so many of the first that overflow.
    pub fn naming(width: Duration, buckets: usize, named: usize) -> Recorder {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Recorder {
            width_ns: width.as_ns().max(1),
            buckets: zeros(buckets),
            samples: AtomicU64::new(0),
            below_zero: AtomicU64::new(0),
            overflows: AtomicU64::new(0),
            overflow_samples: zeros(named),
            beyond: Beyond::default(),
            sum_ns: AtomicI64::new(0),
            sum_squares: AtomicU64::new(0f64.to_bits()),
            last_ns: AtomicI64::new(0),
            min_ns: AtomicI64::new(i64::MAX),
            max_ns: AtomicI64::new(i64::MIN),
            max_sample: AtomicU64::new(0),
        }
    }

    /// Adds a sample. Only its owner may call this.
    pub fn add(&self, latency_ns: i64) {
        let number = self.samples.load(Ordering::Relaxed);
        if latency_ns < 0 {
            increase(&self.below_zero);
        } else {
            match self.buckets.get((latency_ns / self.width_ns) as usize) {
                Some(bucket) => increase(bucket),
                None => self.overflow(number, latency_ns),
            }
        }
        let store = |to: &AtomicI64, value| to.store(value, Ordering::Relaxed);
        store(&self.last_ns, latency_ns);
        store(
            &self.sum_ns,
            self.sum_ns.load(Ordering::Relaxed).wrapping_add(latency_ns),
        );
        let squares = f64::from_bits(self.sum_squares.load(Ordering::Relaxed));
        let squares = squares + (latency_ns as f64) * (latency_ns as f64);
        self.sum_squares.store(squares.to_bits(), Ordering::Relaxed);
        if latency_ns < self.min_ns.load(Ordering::Relaxed) {
            store(&self.min_ns, latency_ns);
        }
        if latency_ns > self.max_ns.load(Ordering::Relaxed) {
            store(&self.max_ns, latency_ns);
            self.max_sample.store(number, Ordering::Relaxed);
        }
        self.samples.store(number + 1, Ordering::Release);
    }

    fn overflow(&self, number: u64, latency_ns: i64) {
        self.beyond.add(latency_ns);
        let overflows = self.overflows.load(Ordering::Relaxed);
        if let Some(place) = self.overflow_samples.get(overflows as usize) {
            place.store(number, Ordering::Relaxed);
        }
        self.overflows.store(overflows + 1, Ordering::Relaxed);
    }

    /// Whether nothing was recorded yet.
    pub fn is_empty(&self) -> bool {
        self.samples.load(Ordering::Relaxed) == 0
    }

    /// What was recorded so far.
    pub fn read(&self) -> Histogram {
        let samples = self.samples.load(Ordering::Acquire);
        let load = |from: &AtomicI64| Duration::from_ns(from.load(Ordering::Relaxed));
        let count = |from: &AtomicU64| from.load(Ordering::Relaxed);
        let overflows = count(&self.overflows);
        let named = self.overflow_samples.iter().map(count);
        Histogram {
            width: Duration::from_ns(self.width_ns),
            buckets: self.buckets.iter().map(count).collect(),
            samples,
            below_zero: count(&self.below_zero),
            overflows,
            overflow_samples: named.take(overflows as usize).collect(),
            beyond: self.beyond.read(),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
            sum_squares: f64::from_bits(count(&self.sum_squares)),
            extremes: (samples > 0).then(|| Extremes {
                min: load(&self.min_ns),
                last: load(&self.last_ns),
                max: load(&self.max_ns),
                max_sample: count(&self.max_sample),
            }),
        }
    }
}

fn increase(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// What a [`Recorder`] holds at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The width of a bucket.
    pub width: Duration,
    /// Samples in each bucket; bucket `i` begins at `i` times the width.
    pub buckets: Vec<u64>,
    /// All samples, also those beyond the buckets.
    pub samples: u64,
    /// Samples before their instant: the clock was set.
    pub below_zero: u64,
    /// Samples beyond the last bucket.
    pub overflows: u64,
    /// The numbers of the first of them, counted from zero.
    pub overflow_samples: Vec<u64>,
    /// The exact values, when there is a sample.
    pub extremes: Option<Extremes>,
    /// Where the samples beyond the last bucket lie.
    beyond: Vec<(usize, u64)>,
    sum_ns: i64,
    sum_squares: f64,
}

/// The values of single samples, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// The shortest.
    pub min: Duration,
    /// The latest in time.
    pub last: Duration,
    /// The longest.
    pub max: Duration,
    /// Its number, counted from zero.
    pub max_sample: u64,
}

impl Histogram {
    /// The mean; none without samples.
    pub fn mean(&self) -> Option<Duration> {
        let samples = i64::try_from(self.samples)
            .ok()
            .filter(|&count| count > 0)?;
        Some(Duration::from_ns(self.sum_ns / samples))
    }

    /// The standard deviation of the samples; none with fewer than two.
    pub fn deviation(&self) -> Option<Duration> {
        if self.samples < 2 {
            return None;
        }
        let count = self.samples as f64;
        let mean = self.sum_ns as f64 / count;
        let variance = (self.sum_squares - count * mean * mean) / (count - 1.0);
        Some(Duration::from_ns(variance.max(0.0).sqrt() as i64))
    }

    /// How many samples are longer than `limit`, to a bucket: those of its own bucket count.
    pub fn over(&self, limit: Duration) -> u64 {
        if self.extremes.is_none_or(|all| all.max <= limit) {
            return 0;
        }
        let first = limit.as_ns() / self.width.as_ns().max(1);
        match usize::try_from(first) {
            Ok(first) if first < self.buckets.len() => {
                self.buckets[first..].iter().sum::<u64>() + self.overflows
            }
            _ => beyond::count_from(&self.beyond, limit.as_ns()),
        }
    }

    /// The latency that a `share` of the samples does not exceed, to a bucket's width: the end of
    /// the bucket in which it lies, and never more than the longest sample. None without samples,
    /// or where it lies among the overflows and is not the longest itself.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let extremes = self.extremes?;
        let wanted = ((self.samples as f64 * share).ceil() as u64).clamp(1, self.samples);
        if wanted == self.samples {
            return Some(extremes.max);
        }
        let mut seen = self.below_zero;
        if seen >= wanted {
            return Some(Duration::ZERO);
        }
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let end_ns = (bucket as i64 + 1) * self.width.as_ns();
                return Some(Duration::from_ns(end_ns).min(extremes.max));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recorded(samples_ns: &[i64]) -> Histogram {
        let recorder = Recorder::new(Duration::from_ns(1000), 100);
        samples_ns.iter().for_each(|&ns| recorder.add(ns));
        recorder.read()
    }

    #[test]
    fn an_empty_histogram_says_nothing() {
        let none = recorded(&[]);
        assert_eq!(
            (none.mean(), none.quantile(0.5), none.extremes),
            (None, None, None)
        );
    }

    #[test]
    fn a_quantile_is_the_end_of_its_bucket_and_never_beyond_the_longest() {
        let check = |samples_ns: &[i64], share: f64, expect_ns: Option<i64>| {
            let found = recorded(samples_ns).quantile(share).map(Duration::as_ns);
            assert_eq!(found, expect_ns, "{samples_ns:?} {share}");
        };
        check(&[500], 0.5, Some(500));
        check(&[500, 1500, 2500, 3500], 0.5, Some(2000));
        check(&[500, 1500, 2500, 3500], 1.0, Some(3500));
        // Three of four lie beyond the buckets: where among them is not known.
        check(&[500, 200_000, 300_000, 400_000], 0.5, None);
        check(&[500, 200_000, 300_000, 400_000], 1.0, Some(400_000));
    }

    #[test]
    fn samples_over_a_limit_are_counted_also_beyond_the_buckets() {
        let check = |limit_ns: i64, expect: u64| {
            let found = recorded(&[500, 50_000, 40_000_000, 40_000_000, 600_000_000]);
            assert_eq!(
                found.over(Duration::from_ns(limit_ns)),
                expect,
                "{limit_ns}"
            );
        };
        check(499, 5);
        check(10_000, 4);
        check(200_000, 3);
        check(400_000_000, 1);
        check(600_000_000, 0);
    }

    #[test]
    fn what_fits_into_no_bucket_is_counted_and_named() {
        let found = recorded(&[1, 100_000, 2, -5, 99_999]);
        assert_eq!((found.overflows, found.overflow_samples), (1, vec![1]));
        assert_eq!((found.below_zero, found.samples), (1, 5));
    }

    proptest! {
        #[test]
        fn every_sample_is_somewhere_and_the_figures_are_theirs(
            samples_ns in prop::collection::vec(0i64..150_000, 1..200)
        ) {
            let found = recorded(&samples_ns);
            let inside: u64 = found.buckets.iter().sum();
            prop_assert_eq!(inside + found.overflows, found.samples);
            prop_assert_eq!(found.samples, samples_ns.len() as u64);
            let sum: i64 = samples_ns.iter().sum();
            let mean = Duration::from_ns(sum / samples_ns.len() as i64);
            prop_assert_eq!(found.mean(), Some(mean));
            let extremes = found.extremes.expect("samples");
            prop_assert_eq!(Some(extremes.min.as_ns()), samples_ns.iter().copied().min());
            prop_assert_eq!(Some(extremes.max.as_ns()), samples_ns.iter().copied().max());
            prop_assert_eq!(samples_ns[extremes.max_sample as usize], extremes.max.as_ns());
        }
    }
}
