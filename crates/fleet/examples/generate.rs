//! Makes a fleet up, through the writer of `rtscope monitor push`: `generate DIR HOSTS DAYS`.
//! The same numbers each time; prints what was written as JSON.
//!
//! Planted, so that questions have answers: every third host has another kernel; `host-0003` has a
//! serial console; every tenth host is slower from the seventh last day on, by twelve buckets.

use std::path::Path;
use std::time::Instant;

use abi::monitor::{Mode, Phase};
use event::{Cpu, Duration, Result};
use fleet::{Directory, Part, put_part};
use monitor::{Head, Histogram, Interval, Run, Scope, Series, Task, Worst};

const EVERY_NS: i64 = 300_000_000_000;
const A_DAY: i64 = 288;
/// Buckets, sixteen an octave.
const RISE: u16 = 12;
/// 2026-01-01.
const FIRST_NS: i64 = 1_767_225_600_000_000_000;
const KERNELS: [&str; 3] = ["6.1.0-rt", "6.12.0", "6.18.5"];
const NAMES: [&str; 6] = [
    "kworker/0:1",
    "kworker/1:2",
    "ksoftirqd/0",
    "nginx",
    "rcu_preempt",
    "ls",
];

/// Numbers that look as if by chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: i64| {
        words
            .get(at)
            .and_then(|word| word.parse().ok())
            .unwrap_or(or)
    };
    let Some(folder) = words.first() else {
        eprintln!("usage: generate DIR HOSTS DAYS");
        return Ok(());
    };
    let (hosts, days) = (number(1, 10), number(2, 14));
    let begun = Instant::now();
    let mut target = Directory::new(Path::new(folder));
    let (mut files, mut bytes) = (0, 0);
    for host in 0..hosts {
        for day in 0..days {
            let is_slow = host % 10 == 0 && days - day <= 7;
            let rise = if is_slow { RISE } else { 0 };
            let written = write_day(&mut target, host, day, rise)?;
            files += written.len();
            bytes += written.iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
    }
    let told = serde_json::json!({
        "hosts": hosts,
        "days": days,
        "files": files,
        "bytes": bytes,
        "bytes_per_host_and_day": bytes as i64 / (hosts * days).max(1),
        "took_ms": begun.elapsed().as_millis() as u64,
    });
    println!("{told}");
    Ok(())
}

fn write_day(
    target: &mut Directory,
    host: i64,
    day: i64,
    rise: u16,
) -> Result<Vec<(&'static str, u64)>> {
    let run = Run {
        host: format!("host-{host:04}"),
        kernel: KERNELS[host as usize % 3].to_owned(),
        boot_id: format!("00000000-0000-4000-8000-{host:012}"),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        ..Run::default()
    };
    let mut chance = Chance((host * 1000 + day) as u64 * 2 + 1);
    let mut part = Part::default();
    let begin_ns = FIRST_NS + day * A_DAY * EVERY_NS;
    for number in 0..A_DAY {
        let begin_ns = begin_ns + number * EVERY_NS;
        part.add(&run, &interval(host, begin_ns, rise, &mut chance));
    }
    put_part(target, part, &run, begin_ns)
}

fn interval(host: i64, begin_ns: i64, rise: u16, chance: &mut Chance) -> Interval {
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
        let worst = worst(host, *phase, begin_ns, chance);
        for cpu in 0..2 {
            let series = series(*phase, Cpu(cpu), rise, chance);
            interval.series.push(Series {
                max: worst.value,
                ..series
            });
        }
        interval.worst.push(worst);
    }
    interval
}

/// Fifty buckets, of which the first have the most samples: six million in all.
fn series(phase: Phase, cpu: Cpu, rise: u16, chance: &mut Chance) -> Series {
    let first = 130 + rise + chance.below(4) as u16;
    let buckets = (0..50).map(|place| {
        let height = 1 << 20u32.saturating_sub(u32::from(place) / 2);
        (first + place, 1 + chance.below(height))
    });
    let histogram = Histogram(buckets.collect());
    Series {
        scope: Scope::RealTime,
        phase,
        cpu,
        sum: Duration::from_ms(chance.below(1 << 20) as i64),
        min: Duration::from_ns(800),
        max: Duration::ZERO,
        histogram,
    }
}

fn worst(host: i64, phase: Phase, begin_ns: i64, chance: &mut Chance) -> Worst {
    let has_console = host % 1000 == 3;
    let kind = chance.below(NAMES.len() as u64);
    let task = |name: &str, tid: u64, prio: i32| {
        Some(Task {
            tid: tid as i32,
            prio,
            name: name.to_owned(),
        })
    };
    let value_us = if has_console { 900 } else { 70 } + chance.below(50) as i64;
    let stack = (0..6).map(|frame| format!("kernel_function_{}+0x1b", kind * 8 + frame));
    Worst {
        scope: Scope::RealTime,
        phase,
        cpu: Cpu(chance.below(2) as u32),
        value: Duration::from_us(value_us),
        at_ns: begin_ns + chance.below(EVERY_NS as u64) as i64,
        timer: Some(Duration::from_us(value_us - 7)),
        parts: [3, 4, 0].map(Duration::from_us),
        victim: task("control", 1000 + chance.below(8), 9),
        culprit: match has_console {
            true => task("cat", 5000, 120),
            false => task(NAMES[kind as usize], 20 + chance.below(4000), 120),
        },
        call: Some("clock_nanosleep".to_owned()),
        function: has_console.then(|| "console_flush_all+0x2c".to_owned()),
        mode: if has_console {
            Mode::Kernel
        } else {
            Mode::User
        },
        stack: stack.collect(),
    }
}
