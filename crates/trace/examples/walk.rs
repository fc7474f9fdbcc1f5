//! Walks a whole trace and says how fast: `cargo run --release -p trace --example walk -- TRACE`.

use std::time::Instant;

use event::TimeRange;
use trace::{Item, Trace};

fn main() -> event::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_default();
    let trace = Trace::open(&path)?;
    // One bound field per class, read from each event, so that decoding is part of the figure.
    let bound: Vec<_> = trace
        .classes()
        .iter()
        .map(|class| class.field("next_tid"))
        .collect();
    let start = Instant::now();
    let (mut events, mut lost, mut damaged, mut sum) = (0u64, 0u64, 0u64, 0u64);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => {
                events += 1;
                if let Some(field) = bound.get(event.class().0 as usize).copied().flatten() {
                    sum = sum.wrapping_add(event.u64(field));
                }
            }
            Item::Lost(loss) => lost += loss.count.unwrap_or(1),
            Item::Damage(damage) => {
                damaged += 1;
                eprintln!(
                    "{} at {}: {}",
                    damage.file, damage.offset_bytes, damage.reason
                );
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = events as f64 / seconds / 1e6;
    println!("{events} events, {lost} lost, {damaged} damaged, {rate:.2} million/s, sum {sum}");
    Ok(())
}
