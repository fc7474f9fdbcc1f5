//! Makes a fleet up, through the writer of `rtscope monitor push`: `generate DIR HOSTS DAYS`.
//! The same numbers each time; prints what was written as JSON.
//!
//! Planted, so that questions have answers: every third host has another kernel; `host-0003` has a
//! serial console; every tenth host is slower from the seventh last day on, by twelve buckets.

#[path = "../../monitor/tests/made_up/mod.rs"]
mod made_up;

use std::path::Path;
use std::time::Instant;

use abi::monitor::Mode;
use event::{Duration, Result};
use fleet::{Directory, Part, put_part};
use made_up::{A_DAY, Chance, EVERY_NS};
use monitor::{Interval, Run, Task, Worst};

/// How much later a task is behind the serial console.
const CONSOLE: Duration = Duration::from_us(830);
/// Buckets, sixteen an octave.
const RISE: u16 = 12;
/// 2026-01-01.
const FIRST_NS: i64 = 1_767_225_600_000_000_000;
const KERNELS: [&str; 3] = ["6.1.0-rt", "6.12.0", "6.18.5"];

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
    let mut interval = made_up::interval(begin_ns, chance);
    let buckets = interval.series.iter_mut();
    for (bucket, _) in buckets.flat_map(|series| &mut series.histogram.0) {
        *bucket += rise;
    }
    if host % 1000 == 3 {
        interval
            .series
            .iter_mut()
            .for_each(|series| series.max += CONSOLE);
        interval.worst.iter_mut().for_each(behind_console);
    }
    interval
}

fn behind_console(worst: &mut Worst) {
    worst.value += CONSOLE;
    worst.timer = worst.timer.map(|timer| timer + CONSOLE);
    worst.mode = Mode::Kernel;
    worst.function = Some("console_flush_all+0x2c".to_owned());
    worst.culprit = Some(Task {
        tid: 5000,
        prio: 120,
        name: "cat".to_owned(),
    });
}
