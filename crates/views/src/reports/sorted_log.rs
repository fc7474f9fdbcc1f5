//! A log whose records come in another order than they are told: runs that are sorted are spilt,
//! and merged when it is told.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::log::{Bytes, PART_ROWS, Record};
use super::spill::{Block, Spill};

/// So much of each run is in memory while runs are merged, in bytes, or one record.
const AHEAD_BYTES: usize = 16 << 10;

/// Records in their order, whatever the order in which they come.
#[derive(Debug)]
pub(super) struct SortedLog<T> {
    spill: Spill,
    runs: Vec<Block>,
    last: Vec<T>,
    /// The runs that are being told, by their next record.
    telling: Option<BinaryHeap<Reverse<Run<T>>>>,
}

impl<T: Record + Ord> SortedLog<T> {
    pub fn new(spill: &Spill) -> SortedLog<T> {
        SortedLog {
            spill: spill.clone(),
            runs: Vec::new(),
            last: Vec::new(),
            telling: None,
        }
    }

    pub fn push(&mut self, record: T) {
        if self.last.len() == PART_ROWS {
            self.spill_run();
        }
        self.last.push(record);
    }

    fn spill_run(&mut self) {
        self.last.sort_unstable();
        let (mut bytes, mut one) = (Vec::new(), Vec::new());
        for record in self.last.drain(..) {
            one.clear();
            record.write(&mut one);
            bytes.extend((one.len() as u64).to_le_bytes());
            bytes.append(&mut one);
        }
        self.runs.push(self.spill.block(&bytes));
    }

    /// The next records, which are gone then; none at the end. What is pushed after the first part
    /// is lost.
    pub fn part(&mut self) -> Vec<T> {
        if self.runs.is_empty() && self.telling.is_none() {
            self.last.sort_unstable();
            return std::mem::take(&mut self.last);
        }
        if self.telling.is_none() {
            self.spill_run();
            let runs = self.runs.drain(..).filter_map(Run::new);
            self.telling = Some(runs.map(Reverse).collect());
        }
        let runs = self.telling.iter_mut();
        runs.flat_map(|runs| std::iter::from_fn(|| least(runs)))
            .take(PART_ROWS)
            .collect()
    }

    /// Whether all was handed out.
    pub fn is_told(&self) -> bool {
        let is_told = |runs: &BinaryHeap<_>| runs.is_empty();
        self.runs.is_empty() && self.last.is_empty() && self.telling.as_ref().is_none_or(is_told)
    }
}

/// Takes the least of the next records of all runs.
fn least<T: Record + Ord>(runs: &mut BinaryHeap<Reverse<Run<T>>>) -> Option<T> {
    let mut run = runs.peek_mut()?;
    Some(match run.0.source.next() {
        Some(next) => std::mem::replace(&mut run.0.next, next),
        None => PeekMut::pop(run).0.next,
    })
}

/// A sorted run, from its next record on.
#[derive(Debug)]
struct Run<T> {
    next: T,
    source: Source,
}

impl<T: Record> Run<T> {
    fn new(block: Block) -> Option<Run<T>> {
        let mut source = Source {
            block,
            at: 0,
            ahead: Vec::new(),
            used: 0,
        };
        let next = source.next()?;
        Some(Run { next, source })
    }
}

impl<T: Ord> Ord for Run<T> {
    fn cmp(&self, other: &Run<T>) -> std::cmp::Ordering {
        self.next.cmp(&other.next)
    }
}

impl<T: Ord> PartialOrd for Run<T> {
    fn partial_cmp(&self, other: &Run<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Eq for Run<T> {}

impl<T: Ord> PartialEq for Run<T> {
    fn eq(&self, other: &Run<T>) -> bool {
        self.cmp(other).is_eq()
    }
}

/// The records of a block, which is read bit by bit.
#[derive(Debug)]
struct Source {
    block: Block,
    /// Up to where the block was read.
    at: usize,
    ahead: Vec<u8>,
    used: usize,
}

impl Source {
    fn next<T: Record>(&mut self) -> Option<T> {
        let length = u64::from_le_bytes(*self.bytes(8)?.first_chunk()?);
        let bytes = self.bytes(usize::try_from(length).ok()?)?;
        Some(T::read(&mut Bytes(bytes)))
    }

    /// The next bytes; none at the end.
    fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        if self.ahead.len() - self.used < count && self.at < self.block.len() {
            self.ahead.drain(..self.used);
            self.used = 0;
            let more = self.block.read_at(self.at, AHEAD_BYTES.max(count));
            self.at = match more.len() {
                0 => self.block.len(),
                more => self.at + more,
            };
            self.ahead.extend(more);
        }
        let bytes = self.ahead.get(self.used..self.used.checked_add(count)?)?;
        self.used += count;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_in_their_order_however_they_came() {
        for count in [5, PART_ROWS, PART_ROWS + 1, 3 * PART_ROWS + 7] {
            let mut log = SortedLog::new(&Spill::default());
            // An odd factor visits all numbers below a power of two once, far from in order.
            let numbers = (0..1_i64 << 15).map(|place| place * 12_345 % (1 << 15));
            let mut all: Vec<i64> = numbers.take(count).collect();
            all.iter().for_each(|number| log.push(*number));
            all.sort_unstable();
            let mut told: Vec<i64> = Vec::new();
            while !log.is_told() {
                let part = log.part();
                assert!(!part.is_empty() && part.len() <= PART_ROWS);
                told.extend(part);
            }
            assert_eq!(told, all, "{count}");
            assert!(log.part().is_empty());
        }
    }
}
