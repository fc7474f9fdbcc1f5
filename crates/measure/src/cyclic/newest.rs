//! The newest samples of a thread, for whoever prints each: one writes, others read, without locks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use event::Duration;

use super::plan::Sample;

/// Room for some samples; the oldest give way.
#[derive(Debug)]
pub(super) struct Newest {
    slots: Box<[Slot]>,
    /// How many were written.
    count: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    latency_ns: AtomicI64,
    at_ns: AtomicI64,
}

impl Newest {
    pub fn new(kept: usize) -> Newest {
        Newest {
            slots: (0..kept).map(|_| Slot::default()).collect(),
            count: AtomicU64::new(0),
        }
    }

    /// Adds a sample. Only its owner may call this.
    pub fn add(&self, latency_ns: i64, at_ns: i64) {
        let number = self.count.load(Ordering::Relaxed);
        let Some(slot) = self.slot(number) else {
            return;
        };
        slot.latency_ns.store(latency_ns, Ordering::Relaxed);
        slot.at_ns.store(at_ns, Ordering::Relaxed);
        self.count.store(number + 1, Ordering::Release);
    }

    fn slot(&self, number: u64) -> Option<&Slot> {
        let slots = self.slots.len() as u64;
        let place = number.checked_rem(slots)?;
        self.slots.get(place as usize)
    }

    /// Those from number `from` on; what gave way meanwhile is not among them.
    pub fn read(&self, from: u64) -> Vec<Sample> {
        let count = self.count.load(Ordering::Acquire);
        let oldest = count.saturating_sub(self.slots.len() as u64);
        let sample = |number: u64| {
            let slot = self.slot(number)?;
            Some(Sample {
                number,
                latency: Duration::from_ns(slot.latency_ns.load(Ordering::Relaxed)),
                at_ns: slot.at_ns.load(Ordering::Relaxed),
            })
        };
        let read: Vec<Sample> = (from.max(oldest)..count).filter_map(sample).collect();
        // The writer may have come around, and be at work in the slot behind its last.
        let written = self.count.load(Ordering::Acquire) + 1;
        let oldest = written.saturating_sub(self.slots.len() as u64);
        read.into_iter()
            .filter(|sample| sample.number >= oldest)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_samples_are_read_once_each_and_the_oldest_give_way() {
        let newest = Newest::new(4);
        let check = |from: u64, expect: &[i64]| {
            let read = newest.read(from);
            let found: Vec<i64> = read.iter().map(|one| one.latency.as_ns()).collect();
            assert_eq!(found, expect, "from {from}");
        };
        check(0, &[]);
        newest.add(10, 1);
        newest.add(11, 2);
        check(0, &[10, 11]);
        check(1, &[11]);
        check(2, &[]);
        for latency_ns in 12..16 {
            newest.add(latency_ns, 3);
        }
        // The slot that is written next is not to be trusted.
        check(0, &[13, 14, 15]);
        Newest::new(0).add(1, 1);
        assert_eq!(Newest::new(0).read(0), []);
    }
}
