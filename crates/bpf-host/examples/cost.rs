//! Prints what a watch costs on this machine, program by program.
//!
//! `cargo run --release -p bpf-host --example cost [SECONDS] [PATTERN [IRQ]]`: with our own load of
//! pipe ping-pong and a 1 kHz timer. The target is a name pattern, or else every task; with an interrupt
//! number, chains of all others are rejected.

use std::time::Duration;

use bpf_host::{Targets, WatchConfig, measure_cost};

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
        waker_stacks: false,
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
    Ok(())
}
