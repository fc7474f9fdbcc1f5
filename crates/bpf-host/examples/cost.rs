//! Prints what a watch costs on this machine, program by program.
//!
//! `cargo run --release -p bpf-host --example cost [SECONDS] [PATTERN [IRQ [stacks]]]`, under our
//! own load of pipe ping-pong and a 1 kHz timer. The target is a name pattern, or else every task;
//! with an interrupt's number, chains of all others are rejected; `stacks` takes the waker's stack
//! too. Then the kernel's own accounting of the same watch, without a load of ours: run hackbench
//! beside it.

use std::time::{Duration, Instant};

use bpf_host::{Targets, Watch, WatchConfig, measure_cost};

fn main() -> event::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3);
    let targets = arguments
        .next()
        .map_or(Targets::All, |name| Targets::Patterns(vec![name]));
    let irqs = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .map(|irq| vec![irq]);
    let max = event::Duration::MAX;
    let config = WatchConfig {
        targets,
        irqs,
        threshold: max,
        waker_stacks: arguments.next().is_some(),
        ..Default::default()
    };
    let costs = measure_cost(&config, Duration::from_secs(seconds), true)?;

    println!("program                    state      calls/s  over empty ns   p99 ns   max ns");
    for cost in costs {
        let state = if cost.changed { "changed" } else { "-" };
        println!(
            "{:26} {:8} {:9.0} {:14.1} {:8} {:8}",
            cost.program,
            state,
            cost.calls_per_s,
            cost.average_over_empty_ns,
            cost.p99_ns,
            cost.max_ns
        );
    }
    accounted(&config, Duration::from_secs(seconds))
}

/// What the kernel's own accounting says of the watch, without our measuring in it: the share of
/// all CPUs, and the average call.
fn accounted(config: &WatchConfig, duration: Duration) -> event::Result<()> {
    let (watch, _hits) = Watch::start(config)?;
    let before = watch.costs();
    let begin = Instant::now();
    std::thread::sleep(duration);
    let elapsed = begin.elapsed();
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    println!("\naccounted by the kernel, under whatever runs now:");
    let mut run_ns = 0;
    for (cost, before) in watch.costs().iter().zip(before) {
        let calls = cost.calls - before.calls;
        let ns = cost.run_ns - before.run_ns;
        run_ns += ns;
        if calls > 0 {
            println!(
                "{:26} {:9} calls {:7.1} ns a call",
                cost.program,
                calls,
                ns as f64 / calls as f64
            );
        }
    }
    let share = run_ns as f64 / (elapsed.as_nanos() as f64 * cpus as f64);
    println!("{:.2} % of {cpus} CPUs", share * 100.0);
    Ok(())
}
