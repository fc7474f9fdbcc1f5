//! Makes the index of a trace, tiles and pictures of latencies, so that a profiler sees what
//! each costs.
//!
//! `valgrind --tool=callgrind target/release/examples/index_trace TRACE INDEX`
//!
//! The index goes into the file INDEX, and is opened from there again; without one it stays in
//! memory. Times on a CPU are this thread's and those of all threads, so that a busy machine
//! changes little; those of all are in steps of 10 ms.

use std::time::{Duration, Instant};

use timeline::{Activation, Builder, Family, Index, TrackId};
use trace::{OpenOptions, Root, Trace};

/// One tile alone is too short to be measured.
const TURNS: usize = 20;

/// How long this thread has had a CPU.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// How long all threads have had one, those that have ended among them.
fn all_on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split(' ');
    // Behind the name the 12th and the 13th, in steps of a hundredth of a second.
    let ticks = fields
        .skip(12)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// The most memory that it had at once.
fn most_memory() -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or_default().trim().to_owned()
}

/// Runs it, and says how long that took.
fn told<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (begun, before, all_before) = (Instant::now(), on_cpu(), all_on_cpu());
    let made = run();
    let (took, all) = (on_cpu() - before, all_on_cpu() - all_before);
    println!(
        "{what}: {took:?} on a CPU, {all:?} of all threads, {:?} passed",
        begun.elapsed()
    );
    made
}

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let roots: Vec<Root> = words.iter().take(1).map(Root::from).collect();
    let room = words.get(1).map(|path| {
        let mut options = std::fs::OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
    });
    let room = room.transpose().map_err(|error| error.to_string())?;
    let failed = |error: event::Error| format!("{error:#}");
    let trace = Trace::open_all(&roots, &OpenOptions::default()).map_err(failed)?;
    let index = told("the index", || {
        let builder = Builder::new(&trace);
        let Some(file) = room else {
            return builder.walk(|_| true).map_err(failed);
        };
        let again = file.try_clone().map_err(|error| error.to_string())?;
        let (index, spilled) = builder.walk_into(file, |_| true).map_err(failed)?;
        let kept = spilled.keep(&index, b"key").map(|()| index);
        let kept = kept.map_err(|error| error.to_string())?;
        let found = told("opened again", || Index::open(again, b"key"));
        Ok(found.unwrap_or(kept))
    })?;
    println!("{} events, {} at most", index.events, most_memory());
    let none = None::<fn(&Activation) -> bool>;
    let tracks: Vec<TrackId> = (0..index.cpus.len() as u32).map(TrackId::Cpu).collect();
    let whole_ns = index.end_ns - index.begin_ns;
    for part in [1, 10, 100, 1_000, 10_000, 100_000] {
        let middle_ns = index.begin_ns + whole_ns / 2 - whole_ns / part / 2;
        let range_ns = (middle_ns, middle_ns + whole_ns / part);
        told(&format!("1/{part}: {TURNS} tiles of the CPUs"), || {
            let tile = |_| index.tile(&tracks, range_ns, 1090).len();
            (0..TURNS).map(tile).sum::<usize>()
        });
        told(&format!("1/{part}: a picture of latencies"), || {
            index.latencies(Family::Wakeup, range_ns, 230, 100, none)
        });
    }
    println!("{} at most", most_memory());
    Ok(())
}
