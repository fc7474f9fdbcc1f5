//! Reads what a watch saw of the cycles of a task that a timer of its own wakes, or that others
//! give its work.

use event::evidence::TaskRef;
use event::{Instant, TimeRange, are_steady};

use crate::raw;

/// `RTS_BY_OTHERS_NAPS` of `bpf/event.h`.
const BY_OTHERS_NAPS: u32 = 2;

/// A task that its timer wakes steadily slept in between, for others or for a length of time: where
/// that was inside of its work, that took longer than any of its activations. So did one that
/// others give its work, between two waits for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SleepsInside {
    /// The task.
    pub task: TaskRef,
    /// Whether others begin its cycles, and not its timer.
    pub by_others: bool,
    /// Whether it slept for a length of time, or to a moment, in each of these.
    pub naps: bool,
    /// Cycles in which it did.
    pub cycles: u64,
    /// How often it did.
    pub sleeps: u64,
    /// How many of these cycles are longer than the threshold.
    pub over: u64,
    /// The longest: from its begin to the end of the last work before the next.
    pub worst: TimeRange,
}

/// What was found of a task; none where its timer's releases are not steady: then these are no
/// cycles, as in a recording.
pub fn decode_cycles(bytes: &[u8]) -> Option<SleepsInside> {
    let found: raw::Cycles = raw::read(bytes)?;
    let known = raw::GAPS_MAX.min(found.gaps_length as usize);
    let gaps_us: Vec<i64> = found.gaps_us[..known]
        .iter()
        .map(|gap| i64::from(*gap))
        .collect();
    let by_others = found.by_others != 0;
    if found.sleeps == 0 || !by_others && !are_steady(&gaps_us) {
        return None;
    }
    let instant = |ns: u64| Instant::from_ns(ns as i64);
    Some(SleepsInside {
        task: found.task.named()?,
        by_others,
        naps: found.by_others == BY_OTHERS_NAPS,
        cycles: found.cycles,
        sleeps: found.sleeps,
        over: found.over,
        worst: TimeRange {
            begin: instant(found.worst_begin_ns),
            end: instant(found.worst_end_ns),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cycles_of_a_steady_timer_are_told() {
        let check = |gaps_us: &[u32], sleeps: u64, expect: bool| {
            let mut cycles: raw::Cycles = raw::zeroed();
            cycles.task.comm[..6].copy_from_slice(b"victim");
            (cycles.task.tid, cycles.cycles, cycles.sleeps) = (7, 3, sleeps);
            (cycles.over, cycles.worst_end_ns) = (2, 12_000_000);
            cycles.gaps_length = gaps_us.len() as u32;
            for (place, gap_us) in gaps_us.iter().enumerate() {
                cycles.gaps_us[place % raw::GAPS_MAX] = *gap_us;
            }
            let found = decode_cycles(raw::bytes(&cycles));
            assert_eq!(found.is_some(), expect, "{gaps_us:?} {sleeps}");
            let worst_ns = found.map(|found| found.worst.duration().as_ns());
            assert_eq!(worst_ns.unwrap_or(12_000_000), 12_000_000);
            // Who gives others their work need not be steady.
            cycles.by_others = 1;
            let found = decode_cycles(raw::bytes(&cycles));
            let is_it = |found: SleepsInside| found.by_others && !found.naps;
            assert_eq!(found.is_some_and(is_it), sleeps > 0);
            cycles.by_others = BY_OTHERS_NAPS;
            let found = decode_cycles(raw::bytes(&cycles));
            assert_eq!(found.is_some_and(|found| found.naps), sleeps > 0);
        };
        check(&[10_000, 10_001, 9_999, 10_000], 3, true);
        // Now and then it misses a release.
        check(&[10_000, 10_000, 30_010, 10_000, 19_900], 3, true);
        // It has sleeps of any length.
        check(&[10_000, 3_000, 31_000, 700, 17_000], 3, false);
        check(&[10_000, 10_000, 10_000], 3, false);
        check(&[10_000; 20], 0, false);
        check(&[10_000; 20], 1, true);
    }
}
