//! One walk cut by time into several, for as many threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use event::{Instant, Result, TimeRange};

use crate::ctf_trace::CtfTrace;
use crate::{Cursor, Trace};

/// Slices for each thread, where the trace is long: none waits long for the slowest.
const SLICES_EACH: usize = 4;
/// A slice has at least so many packets: those around a cut are read for both sides.
const PACKETS_MIN: usize = 64;

impl Trace {
    /// Walks over `range` with `threads` threads: each takes slices of its time, and `map` makes of
    /// a walk over a slice what it likes. The results are in the order of time; their walks one
    /// after the other hand out what [`Trace::cursor`] does, each item once, in its order.
    ///
    /// One walk, with `map` called once for the whole `range`, where time goes backwards in a
    /// stream, where a part of a stream cannot be read, and for what is no CTF alone. That it goes
    /// backwards inside of a packet shows only on the way: then what was made is thrown away, and
    /// `map` is called again.
    ///
    /// # Errors
    /// The first that `map` returns, in the order of time.
    pub fn map_slices<T: Send>(
        &self,
        range: TimeRange,
        threads: usize,
        map: impl Fn(&mut Cursor<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let slices = self.slices(range, threads);
        let whole = || Ok(vec![map(&mut self.cursor(range))?]);
        if slices.len() < 2 {
            return whole();
        }
        let made: Vec<Mutex<Option<Made<T>>>> = slices.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((slice, place)) = {
                let number = next.fetch_add(1, Ordering::Relaxed);
                slices.get(number).zip(made.get(number))
            } {
                let mut cursor = self.slice(slice.events, slice.others);
                let result = map(&mut cursor);
                let is_ordered = cursor.disorder().events == 0;
                if let Ok(mut place) = place.lock() {
                    *place = Some(Made { result, is_ordered });
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(slices.len()) {
                scope.spawn(work);
            }
            work();
        });
        let made = made.into_iter().filter_map(|made| made.into_inner().ok()?);
        let made: Vec<Made<T>> = made.collect();
        match made.iter().all(|made| made.is_ordered) && made.len() == slices.len() {
            true => made.into_iter().map(|made| made.result).collect(),
            false => whole(),
        }
    }

    /// Ranges that follow each other, of about as many bytes each.
    fn slices(&self, range: TimeRange, threads: usize) -> Vec<Slice> {
        let ctf = self.ctf_alone().filter(|_| threads > 1);
        let cuts = ctf.and_then(CtfTrace::cuts);
        let mut cuts = cuts.unwrap_or_default();
        cuts.retain(|(begin, _)| range.contains(*begin));
        let most = if cuts.len() / PACKETS_MIN >= threads * SLICES_EACH {
            threads * SLICES_EACH
        } else {
            threads
        };
        let mut borders = borders(&cuts, most);
        borders.retain(|border| *border > range.begin);
        let begins = std::iter::once(range.begin).chain(borders.iter().copied());
        let ends = borders.iter().copied().chain([range.end]);
        let count = borders.len() + 1;
        let slice = |(number, (begin, end))| Slice {
            events: TimeRange { begin, end },
            others: TimeRange {
                begin: if number == 0 { Instant::MIN } else { begin },
                end: if number + 1 == count {
                    Instant::MAX
                } else {
                    end
                },
            },
        };
        begins.zip(ends).enumerate().map(slice).collect()
    }
}

/// What was made of a slice.
struct Made<T> {
    result: Result<T>,
    /// Whether time went only forward in each stream.
    is_ordered: bool,
}

/// A part of a walk.
struct Slice {
    events: TimeRange,
    /// Where what is no event must stand to be handed out: of the first and the last slice also
    /// before and after all events.
    others: TimeRange,
}

/// Instants between `count` parts of about as many bytes each, of packets by their begin.
fn borders(packets: &[(Instant, u64)], count: usize) -> Vec<Instant> {
    let all: u64 = packets.iter().map(|(_, bytes)| bytes).sum();
    let part = (all / count.max(1) as u64).max(1);
    let mut borders: Vec<Instant> = Vec::new();
    let mut before = 0u64;
    for (begin, bytes) in packets {
        let number = borders.len() as u64 + 1;
        let is_later = borders.last().is_none_or(|last| last < begin);
        if before >= number * part && is_later && borders.len() + 1 < count {
            borders.push(*begin);
        }
        before += bytes;
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_stand_between_parts_of_about_as_many_bytes() {
        let check = |packets: &[(i64, u64)], count, expect: &[i64]| {
            let packets = packets
                .iter()
                .map(|(ns, bytes)| (Instant::from_ns(*ns), *bytes));
            let found = borders(&packets.collect::<Vec<_>>(), count);
            let found: Vec<i64> = found.into_iter().map(Instant::as_ns).collect();
            assert_eq!(found, expect, "{count}");
        };
        let even = [(0, 10), (5, 10), (10, 10), (15, 10)];
        check(&even, 1, &[]);
        check(&even, 2, &[10]);
        check(&even, 4, &[5, 10, 15]);
        check(&even, 100, &[5, 10, 15]);
        check(&[(0, 90), (5, 5), (10, 5)], 2, &[5]);
        check(&[(0, 10), (0, 10), (0, 10)], 3, &[0]);
        check(&[], 3, &[]);
    }
}
