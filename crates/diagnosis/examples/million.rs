//! How long a diagnosis takes and how much memory it adds: a million synthetic events, or the trace
//! that is named. Run with `--release`.

use std::time::Instant;

use diagnosis::{Query, diagnose};
use testkit::{SyntheticTrace, Task};
use trace::Trace;

const EVENTS: usize = 1_000_000;

fn main() -> event::Result<()> {
    let trace = match std::env::args().nth(1) {
        Some(path) => Trace::open(path)?,
        None => synthetic(),
    };
    let before_kib = peak_kib();
    let begin = Instant::now();
    let diagnosis = diagnose(&trace, &Query::default())?;
    let took = begin.elapsed();
    println!(
        "{} events, {} activations, {} late: {:.3} s, {:.0} ns an event, \
         peak {} KiB, {} KiB more than before",
        diagnosis.basis.events,
        diagnosis.basis.activations,
        diagnosis.activations.len(),
        took.as_secs_f64(),
        took.as_nanos() as f64 / diagnosis.basis.events.max(1) as f64,
        peak_kib(),
        peak_kib().saturating_sub(before_kib),
    );
    if let Some(verdict) = diagnosis.verdict() {
        println!("{}", verdict.sentence);
    }
    Ok(())
}

/// Cycles of a timer that wakes a victim behind a busy task, on two CPUs.
fn synthetic() -> Trace {
    let mut trace = SyntheticTrace::new();
    let victims = [Task::rt(100, "victim a", 50), Task::rt(101, "victim b", 50)];
    let busy = [Task::rt(200, "busy a", 60), Task::rt(201, "busy b", 60)];
    let per_cycle = 9;
    for cycle in 0..EVENTS / per_cycle {
        let cpu = cycle % 2;
        let timer = cpu as u64 + 1;
        let us = cycle as i64 * 100;
        trace = trace
            .cpu(cpu as u32)
            .at(us)
            .timer_irq()
            .after(1)
            .hrtimer_expire(timer);
        trace = trace
            .after(1)
            .wake(victims[cpu])
            .after(1)
            .hrtimer_done(timer)
            .timer_irq_end();
        trace = trace.after(10 + us % 7).block(busy[cpu], victims[cpu]);
        trace = trace
            .after(5)
            .hrtimer_start(timer, us + 200)
            .block(victims[cpu], busy[cpu]);
    }
    trace.build()
}

/// The most memory that the process has had, as the kernel counts it; zero where it does not.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
