//! Intervals as a busy machine with two CPUs has them, made up: the same ones in every run.
//! `crates/fleet/examples/generate.rs` makes a fleet of them.

use abi::monitor::{Mode, Phase};
use event::{Cpu, Duration};
use monitor::{Head, Histogram, Interval, Scope, Series, Task, Worst};

/// The length of an interval.
pub const EVERY_NS: i64 = 300_000_000_000;
/// Intervals of a day.
pub const A_DAY: i64 = 288;
const CPUS: u32 = 2;
/// Who has the CPU when somebody is late.
const NAMES: [&str; 6] = [
    "kworker/0:1",
    "kworker/1:2",
    "ksoftirqd/0",
    "nginx",
    "rcu_preempt",
    "ls",
];
/// Different stacks of them.
const KINDS: u64 = 60;

/// Numbers that look as if by chance.
pub struct Chance(pub u64);

impl Chance {
    /// The next one, below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Five phases of fifty buckets on each CPU, and the longest of each.
pub fn interval(begin_ns: i64, chance: &mut Chance) -> Interval {
    let mut interval = Interval {
        head: Head {
            begin_ns,
            end_ns: begin_ns + EVERY_NS,
            elapsed: Duration::from_ns(EVERY_NS),
            cost: Duration::from_ms(100 + chance.below(100) as i64),
            ..Head::default()
        },
        ..Interval::default()
    };
    for phase in &Phase::ALL[..5] {
        let worst = worst(*phase, begin_ns, chance);
        for cpu in 0..CPUS {
            interval
                .series
                .push(series(*phase, Cpu(cpu), worst.value, chance));
        }
        interval.worst.push(worst);
    }
    interval
}

/// Fewer samples in the later buckets: some three million in all.
fn series(phase: Phase, cpu: Cpu, max: Duration, chance: &mut Chance) -> Series {
    let first = 130 + chance.below(4) as u16;
    let buckets = (0..50).map(|place| {
        let height = 1 << (24 - u32::from(place) / 3).min(17);
        (first + place, 1 + chance.below(height))
    });
    let histogram = Histogram(buckets.collect());
    Series {
        scope: Scope::RealTime,
        phase: phase.into(),
        cpu,
        sum: Duration::from_ms(chance.below(1 << 20) as i64),
        min: Duration::from_ns(800),
        max,
        histogram,
    }
}

fn worst(phase: Phase, begin_ns: i64, chance: &mut Chance) -> Worst {
    let kind = chance.below(KINDS);
    let task = |name: &str, tid: u64, prio: i32| {
        Some(Task {
            tid: tid as i32,
            prio,
            name: name.to_owned(),
        })
    };
    let in_kernel = kind.is_multiple_of(2);
    let value_us = 70 + chance.below(50) as i64;
    let stack = (0..8).map(|frame| format!("kernel_function_{}+0x1b", kind * 8 + frame));
    Worst {
        scope: Scope::RealTime,
        phase: phase.into(),
        cpu: Cpu(chance.below(u64::from(CPUS)) as u32),
        value: Duration::from_us(value_us),
        at_ns: begin_ns + chance.below(EVERY_NS as u64) as i64,
        timer: Some(Duration::from_us(value_us - 7)),
        parts: [3, 4, 0].map(Duration::from_us),
        victim: task("control", 1000 + chance.below(8), 9),
        culprit: task(
            NAMES[kind as usize % NAMES.len()],
            20 + chance.below(4000),
            120,
        ),
        call: Some("clock_nanosleep".to_owned()),
        function: in_kernel.then(|| format!("some_function_{}+0x10", kind % 7)),
        mode: if in_kernel { Mode::Kernel } else { Mode::User },
        stack: stack.collect(),
        key: None,
    }
}
