//! What to look for, and what was found.

use event::{Cpu, Duration, Tid, TimeRange};
use host::task::Policy;

use crate::counter::Counter;

/// What to look for, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A thread on each of these.
    pub cpus: Vec<Cpu>,
    /// How they are scheduled.
    pub policy: Policy,
    /// What they read.
    pub counter: Counter,
    /// A gap is longer than this.
    pub threshold: Duration,
    /// From one begin of looping to the next.
    pub window: Duration,
    /// How long of it they loop.
    pub width: Duration,
    /// So many gaps are kept with their time, each CPU; the others are counted.
    pub gaps_max: usize,
}

/// What the thread of one CPU has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The CPU.
    pub cpu: Cpu,
    /// The thread.
    pub tid: Tid,
    /// Readings of the counter.
    pub iterations: u64,
    /// How long it looped.
    pub looped: Duration,
    /// From one reading to the next, on average over the fastest thousand in a row: the
    /// resolution.
    pub step_min: Duration,
    /// The gaps in time order, on CLOCK_MONOTONIC.
    pub gaps: Vec<TimeRange>,
    /// Gaps beyond `gaps_max`.
    pub gaps_unkept: u64,
    /// The longest of all.
    pub longest: Duration,
    /// Whether its CPU was taken from the thread, by hotplug or by a control group; it ended then.
    pub lost_cpu: bool,
}

impl Reading {
    /// Readings of one CPU, made one after the other, as one; the thread is that of the last.
    pub fn joined(all: impl Iterator<Item = Reading>) -> Vec<Reading> {
        let mut joined: Vec<Reading> = Vec::new();
        for one in all {
            match joined.iter_mut().find(|other| other.cpu == one.cpu) {
                Some(other) => other.join(one),
                None => joined.push(one),
            }
        }
        joined
    }

    fn join(&mut self, later: Reading) {
        self.tid = later.tid;
        self.iterations += later.iterations;
        self.looped += later.looped;
        self.step_min = self.step_min.min(later.step_min);
        self.gaps.extend(later.gaps);
        self.gaps_unkept += later.gaps_unkept;
        self.longest = self.longest.max(later.longest);
        self.lost_cpu |= later.lost_cpu;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_one_cpu_are_one_and_keep_every_gap() {
        let reading = |cpu: u32, tid: i32, step_ns: i64, gap_ns: [i64; 2]| Reading {
            cpu: Cpu(cpu),
            tid: Tid(tid),
            iterations: 10,
            looped: Duration::from_ms(3),
            step_min: Duration::from_ns(step_ns),
            gaps: vec![TimeRange {
                begin: event::Instant::from_ns(gap_ns[0]),
                end: event::Instant::from_ns(gap_ns[1]),
            }],
            gaps_unkept: 1,
            longest: Duration::from_ns(gap_ns[1] - gap_ns[0]),
            lost_cpu: tid == 7,
        };
        let all = [
            reading(0, 7, 20, [100, 900]),
            reading(1, 8, 20, [0, 1]),
            reading(0, 9, 10, [5_000, 5_100]),
        ];
        let joined = Reading::joined(all.into_iter());
        assert_eq!(joined.len(), 2);
        let first = &joined[0];
        assert_eq!(
            (first.tid, first.iterations, first.gaps_unkept),
            (Tid(9), 20, 2)
        );
        assert_eq!((first.looped, first.gaps.len()), (Duration::from_ms(6), 2));
        let ns = Duration::from_ns;
        assert_eq!((first.step_min, first.longest), (ns(10), ns(800)));
        assert_eq!(joined[1].tid, Tid(8));
        assert_eq!((first.lost_cpu, joined[1].lost_cpu), (true, false));
    }
}
