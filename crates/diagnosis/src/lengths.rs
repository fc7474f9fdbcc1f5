//! How long all activations were, late or not, over the time of a recording: counts in a room that
//! does not grow with it.

use event::{Duration, Instant, TimeRange};

/// An octave has so many buckets, as a power of two: one is a sixty-fourth of its begin wide.
const SUB_BITS: u32 = 6;
/// The first slots are so long, as a power of two of nanoseconds: a sixteenth of a millisecond.
const SLOT_BITS: u32 = 16;
/// Where more slots than these hold something, each two become one.
const SLOTS_MAX: usize = 256;

/// Activations by when they ended and how long they were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths {
    /// By how much more than [`SLOT_BITS`] a slot is long.
    doubled: u32,
    /// Each with its number, in their order.
    slots: Vec<(i64, Counts)>,
}

/// How many activations are in each bucket that has any, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts(Vec<(u32, u64)>);

impl Lengths {
    /// One more, which ended then.
    pub(crate) fn add(&mut self, end: Instant, latency: Duration) {
        let slot = end.as_ns() >> (SLOT_BITS + self.doubled);
        let bucket = bucket(latency.as_ns().max(0).unsigned_abs());
        self.slot(slot).more(bucket, 1);
        if self.slots.len() > SLOTS_MAX {
            self.double();
        }
    }

    /// The activations that ended in a slot: mostly in the last one.
    fn slot(&mut self, slot: i64) -> &mut Counts {
        let place = match self.slots.last() {
            Some((last, _)) if *last == slot => self.slots.len() - 1,
            _ => {
                let found = self.slots.binary_search_by_key(&slot, |(known, _)| *known);
                found.unwrap_or_else(|place| {
                    self.slots.insert(place, (slot, Counts::default()));
                    place
                })
            }
        };
        &mut self.slots[place].1
    }

    fn double(&mut self) {
        self.doubled += 1;
        for (slot, counts) in std::mem::take(&mut self.slots) {
            self.slot(slot >> 1).add(&counts);
        }
    }

    /// All of them in so many parts of `range`, of equal length.
    pub(crate) fn parts(&self, range: TimeRange, count: usize) -> Vec<Counts> {
        let mut parts = vec![Counts::default(); count];
        let half_ns = 1 << (SLOT_BITS + self.doubled - 1);
        for (slot, counts) in &self.slots {
            let middle = Instant::from_ns((slot << (SLOT_BITS + self.doubled)) + half_ns);
            let share = (middle - range.begin).share_of(range.duration());
            parts[((share * count as f64) as usize).min(count - 1)].add(counts);
        }
        parts
    }

    /// All of them.
    pub(crate) fn all(&self) -> Counts {
        let mut all = Counts::default();
        self.slots.iter().for_each(|(_, counts)| all.add(counts));
        all
    }
}

impl Counts {
    fn more(&mut self, bucket: u32, count: u64) {
        match self.0.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(place) => self.0[place].1 += count,
            Err(place) => self.0.insert(place, (bucket, count)),
        }
    }

    pub fn add(&mut self, other: &Counts) {
        for (bucket, count) in &other.0 {
            self.more(*bucket, *count);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// What the share of them is not longer than, in nanoseconds, if there were so many more that
    /// are longer than all of these. Inside of a bucket it is as far as the share is. None where
    /// nobody knows.
    pub fn quantile_ns(&self, share: f64, longer: f64) -> Option<f64> {
        let rank = share * (self.count() as f64 + longer);
        let mut below = 0.0;
        for (bucket, count) in &self.0 {
            let count = *count as f64;
            if below + count >= rank {
                let (begin, end) = (begin_ns(*bucket), begin_ns(bucket + 1));
                return Some(begin + (end - begin) * ((rank - below) / count));
            }
            below += count;
        }
        None
    }
}

/// The bucket of a length: linear up to an octave's number, then so many an octave.
fn bucket(ns: u64) -> u32 {
    let octave = (ns | 1).ilog2().saturating_sub(SUB_BITS);
    (octave << SUB_BITS) + (ns >> octave) as u32
}

fn begin_ns(bucket: u32) -> f64 {
    let octave = (bucket >> SUB_BITS).saturating_sub(1);
    f64::from(bucket - (octave << SUB_BITS)) * f64::from(octave).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_sixty_fourth_wide_and_begins_where_the_one_before_ends() {
        for ns in [
            0,
            1,
            63,
            64,
            127,
            128,
            1_000,
            999_999,
            1 << 40,
            u64::MAX >> 1,
        ] {
            let (begin, end) = (begin_ns(bucket(ns)), begin_ns(bucket(ns) + 1));
            let ns = ns as f64;
            assert!(begin <= ns && (ns < end || ns > 1e18), "{begin} {ns} {end}");
            assert!(end - begin <= (begin / 64.0).max(1.0), "{begin} to {end}");
        }
    }

    #[test]
    fn a_share_of_a_long_recording_is_known_to_a_bucket_in_every_part_of_it() {
        let mut lengths = Lengths::default();
        // An hour, in whose last tenth everything takes twice as long.
        let turns = 36_000;
        for turn in 0..turns {
            let us = 1_000 + turn % 101;
            let is_last = turn >= turns * 9 / 10;
            let latency = Duration::from_us(if is_last { us * 2 } else { us });
            lengths.add(Instant::from_ns(turn * 100_000_000), latency);
        }
        assert!(lengths.slots.len() <= SLOTS_MAX, "{}", lengths.slots.len());
        let range = TimeRange {
            begin: Instant::from_ns(0),
            end: Instant::from_ns(turns * 100_000_000),
        };
        let parts = lengths.parts(range, 10);
        let near = |counts: &Counts, expect_us: f64| {
            let found_us = counts.quantile_ns(0.5, 0.0).expect("some") / 1e3;
            assert!((found_us / expect_us - 1.0).abs() < 0.02, "{found_us}");
        };
        near(&parts[0], 1_050.0);
        near(&parts[8], 1_050.0);
        near(&parts[9], 2_100.0);
        assert_eq!(lengths.all().count(), turns.unsigned_abs());
        assert_eq!(Counts::default().quantile_ns(0.5, 0.0), None);
        // As many again that are longer: the shortest half is all that is known.
        let half = |longer| parts[0].quantile_ns(0.5, longer);
        assert!(half(3_000.0) > half(0.0) && half(4_000.0).is_none());
    }
}
