//! Makes the index of a trace, tiles and pictures of latencies, so that a profiler sees what
//! each costs.
//!
//! `valgrind --tool=callgrind target/release/examples/index_trace TRACE`
//!
//! Times are this thread's on a CPU, so that a busy machine changes little.

use std::time::{Duration, Instant};

use timeline::{Activation, Builder, Family, TrackId};
use trace::{OpenOptions, Root, Trace};

/// How long this thread has had a CPU.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// Runs it, and says how long that took.
fn told<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (begun, before) = (Instant::now(), on_cpu());
    let made = run();
    let took = on_cpu() - before;
    println!("{what}: {took:?} on a CPU, {:?} passed", begun.elapsed());
    made
}

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let roots: Vec<Root> = words.iter().map(Root::from).collect();
    let failed = |error: event::Error| format!("{error:#}");
    let trace = Trace::open_all(&roots, &OpenOptions::default()).map_err(failed)?;
    let index = told("the index, by the thread that reads", || {
        Builder::new(&trace).walk(|_| true)
    });
    let index = index.map_err(failed)?;
    println!("{} events", index.events);
    let none = None::<fn(&Activation) -> bool>;
    told("the blocks of the latencies", || {
        index.latencies(Family::Wakeup, (0, 1), 1, 1, none)
    });
    let tracks: Vec<TrackId> = (0..index.cpus.len() as u32).map(TrackId::Cpu).collect();
    let whole_ns = index.end_ns - index.begin_ns;
    for part in [1, 10, 100, 1_000, 10_000, 100_000] {
        let middle_ns = index.begin_ns + whole_ns / 2 - whole_ns / part / 2;
        let range_ns = (middle_ns, middle_ns + whole_ns / part);
        told(&format!("1/{part}: a tile of the CPUs"), || {
            index.tile(&tracks, range_ns, 1090).len()
        });
        told(&format!("1/{part}: a picture of latencies"), || {
            index.latencies(Family::Wakeup, range_ns, 230, 100, none)
        });
    }
    let nowhere = &mut std::io::sink();
    told("as bytes", || index.write(b"key", nowhere)).map_err(|error| error.to_string())?;
    Ok(())
}
