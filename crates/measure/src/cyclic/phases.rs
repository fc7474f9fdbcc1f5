//! A sample in parts: timer, wake-up, switch, return to user space. They are OSADL's three phases
//! and the way back, and their sum is the sample, to the nanosecond.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use event::{Duration, Instant, Result, Tid};

use crate::histogram::{Histogram, Recorder};

/// The phases: from the instant to the timer's function, from there to the run queue, from there
/// onto a CPU, from there to the first reading of the clock in user space.
pub const PHASES: [&str; 4] = ["timer", "wakeup", "switch", "return"];

/// What the kernel did to wake a thread, on CLOCK_MONOTONIC in nanoseconds; 0: not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Its timer's function began.
    pub entry_ns: i64,
    /// It came on a run queue.
    pub wakeup_ns: i64,
    /// It was scheduled in.
    pub switch_ns: i64,
}

/// Who knows these instants.
pub trait PhaseSource: std::fmt::Debug + Send + Sync {
    /// From now on the instants of thread `number`, which is `tid`, are wanted.
    ///
    /// # Errors
    /// When they cannot be had.
    fn follow(&self, number: usize, tid: Tid) -> Result<()>;

    /// Those of its last wake-up. Called by the measuring thread: no lock, no system call.
    fn last(&self, number: usize) -> Stamps;
}

/// The parts of all samples of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseFigures {
    /// A histogram for each of [`PHASES`].
    pub parts: [Histogram; 4],
    /// The parts of the longest sample that was split.
    pub longest: [Duration; 4],
    /// Its instant, on CLOCK_MONOTONIC.
    pub longest_at: Instant,
    /// Samples that could not be split: the thread did not sleep, or its wake-up was not seen.
    pub unsplit: u64,
    /// The longest of those.
    pub unsplit_max: Duration,
}

/// Splits the samples of one thread. Written by that thread alone, as a [`Recorder`] is.
#[derive(Debug)]
pub(super) struct Splitter {
    number: usize,
    source: Arc<dyn PhaseSource>,
    parts: [Recorder; 4],
    longest_ns: [AtomicI64; 4],
    longest_at_ns: AtomicI64,
    unsplit: AtomicU64,
    unsplit_max_ns: AtomicI64,
}

impl Splitter {
    pub(super) fn new(
        number: usize,
        source: &Arc<dyn PhaseSource>,
        bucket: Duration,
        buckets: usize,
    ) -> Splitter {
        Splitter {
            number,
            source: source.clone(),
            parts: std::array::from_fn(|_| Recorder::new(bucket, buckets)),
            longest_ns: [const { AtomicI64::new(0) }; 4],
            longest_at_ns: AtomicI64::new(0),
            unsplit: AtomicU64::new(0),
            unsplit_max_ns: AtomicI64::new(0),
        }
    }

    /// Adds the sample from `at_ns` to `now_ns`.
    pub(super) fn add(&self, at_ns: i64, now_ns: i64) {
        let Some(parts) = split(at_ns, self.source.last(self.number), now_ns) else {
            let unsplit = self.unsplit.load(Ordering::Relaxed);
            self.unsplit.store(unsplit + 1, Ordering::Relaxed);
            if now_ns - at_ns > self.unsplit_max_ns.load(Ordering::Relaxed) {
                self.unsplit_max_ns.store(now_ns - at_ns, Ordering::Relaxed);
            }
            return;
        };
        for (recorder, part_ns) in self.parts.iter().zip(parts) {
            recorder.add(part_ns);
        }
        let longest_ns: i64 = self
            .longest_ns
            .iter()
            .map(|part| part.load(Ordering::Relaxed))
            .sum();
        if now_ns - at_ns > longest_ns {
            self.longest_at_ns.store(at_ns, Ordering::Relaxed);
            for (part, part_ns) in self.longest_ns.iter().zip(parts) {
                part.store(part_ns, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn read(&self) -> PhaseFigures {
        let ns = |part: &AtomicI64| Duration::from_ns(part.load(Ordering::Relaxed));
        PhaseFigures {
            parts: self.parts.each_ref().map(Recorder::read),
            longest: self.longest_ns.each_ref().map(ns),
            longest_at: Instant::from_ns(self.longest_at_ns.load(Ordering::Relaxed)),
            unsplit: self.unsplit.load(Ordering::Relaxed),
            unsplit_max: ns(&self.unsplit_max_ns),
        }
    }
}

/// The parts of a sample; none when the instants are not those of its wake-up.
fn split(at_ns: i64, stamps: Stamps, now_ns: i64) -> Option<[i64; 4]> {
    let instants = [
        at_ns,
        stamps.entry_ns,
        stamps.wakeup_ns,
        stamps.switch_ns,
        now_ns,
    ];
    let in_order = instants.windows(2).all(|pair| pair[0] <= pair[1]);
    in_order.then(|| std::array::from_fn(|phase| instants[phase + 1] - instants[phase]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sample_is_split_only_at_instants_of_its_own() {
        let check = |stamps: [i64; 3], expect: Option<[i64; 4]>| {
            let [entry_ns, wakeup_ns, switch_ns] = stamps;
            let stamps = Stamps {
                entry_ns,
                wakeup_ns,
                switch_ns,
            };
            assert_eq!(split(1_000, stamps, 2_000), expect, "{stamps:?}");
        };
        check([1_100, 1_300, 1_600], Some([100, 200, 300, 400]));
        check([0, 1_300, 1_600], None);
        check([1_100, 1_300, 0], None);
        check([900, 1_300, 1_600], None);
        check([1_100, 1_300, 2_001], None);
    }

    #[test]
    fn what_could_not_be_split_is_counted_with_its_longest() {
        #[derive(Debug)]
        struct Blind;
        impl PhaseSource for Blind {
            fn follow(&self, _: usize, _: Tid) -> Result<()> {
                Ok(())
            }
            fn last(&self, _: usize) -> Stamps {
                Stamps::default()
            }
        }
        let blind: Arc<dyn PhaseSource> = Arc::new(Blind);
        let splitter = Splitter::new(0, &blind, Duration::from_us(1), 10);
        for now_ns in [1_500, 4_000, 2_000] {
            splitter.add(1_000, now_ns);
        }
        let figures = splitter.read();
        let found = (figures.unsplit, figures.unsplit_max.as_ns());
        assert_eq!((found, figures.longest), ((3, 3_000), [Duration::ZERO; 4]));
    }

    proptest! {
        #[test]
        fn the_parts_are_the_sample_to_the_nanosecond(
            at_ns in 1i64..1_000, parts in prop::array::uniform4(0i64..1_000_000)
        ) {
            let entry_ns = at_ns + parts[0];
            let wakeup_ns = entry_ns + parts[1];
            let switch_ns = wakeup_ns + parts[2];
            let now_ns = switch_ns + parts[3];
            let stamps = Stamps { entry_ns, wakeup_ns, switch_ns };
            prop_assert_eq!(split(at_ns, stamps, now_ns), Some(parts));
        }
    }
}
