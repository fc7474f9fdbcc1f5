//! Histograms as the store has them: buckets that are not empty, as differences in a few bytes.

use abi::bucket_begin_ns;
use abi::raw::BUCKETS_MAX;
use event::{Duration, Error, ErrorKind, Result};

/// A log-linear histogram: buckets that are not empty, by rising number, with their counts. A
/// bucket is at most 1/16 of its lower bound wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram(pub Vec<(u16, u64)>);

impl Histogram {
    /// How many samples there are.
    pub fn samples(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Histogram) {
        for (bucket, count) in &other.0 {
            match self.0.binary_search_by_key(bucket, |(known, _)| *known) {
                Ok(at) => self.0[at].1 += count,
                Err(at) => self.0.insert(at, (*bucket, *count)),
            }
        }
    }

    /// The buckets: least value, least value of the next one, count; in nanoseconds.
    pub fn bounds_ns(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.0.iter().map(|(bucket, count)| {
            let bucket = usize::from(*bucket);
            (bucket_begin_ns(bucket), bucket_begin_ns(bucket + 1), *count)
        })
    }

    /// The upper bound of the bucket that holds the sample of this rank, 0 to 1, and never more
    /// than `max`; none when there is no sample.
    pub fn quantile(&self, quantile: f64, max: Duration) -> Option<Duration> {
        let rank = (quantile.clamp(0.0, 1.0) * self.samples() as f64).ceil();
        let rank = (rank as u64).max(1);
        let mut seen = 0;
        let (_, upper, _) = self.bounds_ns().find(|(_, _, count)| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_ns(i64::try_from(upper).unwrap_or(i64::MAX)).min(max))
    }

    /// In the bytes of the store.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self.0.iter().copied())
    }

    /// From the bytes of the store.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for what no histogram is written as.
    pub fn from_bytes(bytes: &[u8]) -> Result<Histogram> {
        from_bytes(bytes, BUCKETS_MAX).map(Histogram)
    }
}

/// OSADL's form: microseconds that have samples, with their counts; the last has what is longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linear(pub Vec<(u16, u64)>);

impl Linear {
    /// In the bytes of the store.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self.0.iter().copied())
    }

    /// From the bytes of the store.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for what no histogram is written as.
    pub fn from_bytes(bytes: &[u8]) -> Result<Linear> {
        from_bytes(bytes, abi::monitor::LINEAR_MAX + 1).map(Linear)
    }
}

/// Each bucket is two numbers of seven bits a byte, the lowest first: how far it lies behind the
/// one before it, and its count.
fn to_bytes(buckets: impl Iterator<Item = (u16, u64)>) -> Vec<u8> {
    let (mut bytes, mut next) = (Vec::new(), 0);
    for (bucket, count) in buckets {
        push(&mut bytes, u64::from(bucket.saturating_sub(next)));
        push(&mut bytes, count);
        next = bucket.saturating_add(1);
    }
    bytes
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn from_bytes(bytes: &[u8], length: usize) -> Result<Vec<(u16, u64)>> {
    let (mut buckets, mut next, mut at) = (Vec::new(), 0u64, 0);
    while at < bytes.len() {
        let gap = take(bytes, &mut at)?;
        let count = take(bytes, &mut at)?;
        let bucket = next
            .checked_add(gap)
            .filter(|bucket| *bucket < length as u64);
        match bucket.and_then(|bucket| u16::try_from(bucket).ok()) {
            Some(bucket) if count > 0 => {
                buckets.push((bucket, count));
                next = u64::from(bucket) + 1;
            }
            _ => return Err(corrupt(format!("bucket {next} + {gap}, count {count}"))),
        }
    }
    Ok(buckets)
}

fn take(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes
            .get(*at)
            .ok_or_else(|| corrupt("its end".to_owned()))?;
        *at += 1;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            break;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(corrupt("a number of more than 64 bits".to_owned()))
}

fn corrupt(found: String) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "a histogram in the store makes no sense",
    )
    .found(found)
    .fix("restore the store from a copy, or begin a new one with --store FILE")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_histogram_comes_back_as_it_went(
            counts in prop::collection::btree_map(0..BUCKETS_MAX as u16, 1u64.., 0..80)
        ) {
            let histogram = Histogram(counts.into_iter().collect());
            let bytes = histogram.to_bytes();
            prop_assert_eq!(Histogram::from_bytes(&bytes).expect("reads"), histogram);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(histogram) = Histogram::from_bytes(&bytes) {
                prop_assert!(histogram.0.is_sorted_by(|a, b| a.0 < b.0));
            }
        }
    }

    #[test]
    fn bytes_that_nobody_writes_are_refused() {
        let check = |bytes: &[u8], expect: Option<&[(u16, u64)]>| {
            let read = Histogram::from_bytes(bytes)
                .ok()
                .map(|histogram| histogram.0);
            assert_eq!(read.as_deref(), expect, "{bytes:?}");
        };
        check(&[], Some(&[]));
        check(&[5, 3, 0, 1], Some(&[(5, 3), (6, 1)]));
        check(&[5], None);
        check(&[5, 0], None);
        check(&[0x80], None);
        check(&[0xff; 12], None);
        // Behind the last bucket.
        check(&[0xe0, 0x04, 1], None);
    }

    #[test]
    fn histograms_add_up_and_a_quantile_is_never_above_the_longest() {
        let mut sum = Histogram(vec![(3, 1), (20, 4)]);
        sum.add(&Histogram(vec![(2, 5), (20, 1)]));
        assert_eq!(sum.0, [(2, 5), (3, 1), (20, 5)]);
        let check = |quantile: f64, expect: i64| {
            let max = Duration::from_ns(20);
            let found = sum.quantile(quantile, max).map(Duration::as_ns);
            assert_eq!(found, Some(expect), "{quantile}");
        };
        check(0.0, 3);
        check(0.5, 4);
        check(0.51, 4);
        check(0.6, 20);
        check(1.0, 20);
        assert_eq!(Histogram::default().quantile(0.5, Duration::ZERO), None);
    }
}
