//! Makes the index of a trace, and tiles of it, so that a profiler sees what each costs.
//!
//! `valgrind --tool=callgrind target/release/examples/index_trace TRACE`

use std::time::Instant;

use timeline::{Builder, TrackId};
use trace::{OpenOptions, Root, Trace};

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let roots: Vec<Root> = words.iter().map(Root::from).collect();
    let told = |error: event::Error| format!("{error:#}");
    let trace = Trace::open_all(&roots, &OpenOptions::default()).map_err(told)?;
    let begun = Instant::now();
    let index = Builder::new(&trace).walk(|_| true).map_err(told)?;
    println!("{} events indexed in {:?}", index.events, begun.elapsed());
    let begun = Instant::now();
    let bytes = index.to_bytes(b"key").len();
    println!("{bytes} bytes written in {:?}", begun.elapsed());
    let tracks: Vec<TrackId> = (0..index.cpus.len() as u32).map(TrackId::Cpu).collect();
    let whole_ns = index.end_ns - index.begin_ns;
    for part in [1, 100, 1000] {
        let range_ns = (index.begin_ns, index.begin_ns + whole_ns / part);
        let begun = Instant::now();
        let tile = index.tile(&tracks, range_ns, 1090);
        let took = begun.elapsed();
        println!("1/{part}: a tile of {} bytes in {took:?}", tile.len());
    }
    Ok(())
}
