//! Logs that may be longer than memory: their last records wait here, those before are spilt.

use std::collections::VecDeque;

use super::spill::{Block, Spill};

/// So many records are handed out, and spilt, at a time.
pub(super) const PART_ROWS: usize = 10_000;

/// What a log is made of, as bytes and back.
pub(super) trait Record: Sized {
    /// Appends it.
    fn write(&self, to: &mut Vec<u8>);
    /// Reads what [`Record::write`] wrote.
    fn read(from: &mut Bytes<'_>) -> Self;
}

/// Bytes that are read from front to back; where they end all is zero.
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn integer(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }

    /// Bytes behind their number.
    pub fn bytes(&mut self) -> &[u8] {
        let count = usize::try_from(self.integer()).unwrap_or(0);
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => [0; N],
        }
    }
}

impl<const N: usize> Record for [i64; N] {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.iter().flat_map(|integer| integer.to_le_bytes()));
    }

    fn read(from: &mut Bytes<'_>) -> Self {
        std::array::from_fn(|_| from.integer())
    }
}

impl Record for i64 {
    fn write(&self, to: &mut Vec<u8>) {
        [*self].write(to);
    }

    fn read(from: &mut Bytes<'_>) -> Self {
        from.integer()
    }
}

/// An integer that may be missing, as one that no instant, size or number is.
pub(super) fn or_none(integer: Option<i64>) -> i64 {
    integer.unwrap_or(i64::MIN)
}

/// What [`or_none`] was made from.
pub(super) fn some(integer: i64) -> Option<i64> {
    (integer != i64::MIN).then_some(integer)
}

/// Records in the order in which they come.
#[derive(Debug)]
pub(super) struct Log<T> {
    spill: Spill,
    /// So many records each.
    blocks: VecDeque<Block>,
    last: Vec<T>,
}

impl<T: Record> Log<T> {
    pub fn new(spill: &Spill) -> Log<T> {
        Log {
            spill: spill.clone(),
            blocks: VecDeque::new(),
            last: Vec::new(),
        }
    }

    pub fn push(&mut self, record: T) {
        if self.last.len() == PART_ROWS {
            let mut bytes = Vec::new();
            self.last.drain(..).for_each(|one| one.write(&mut bytes));
            self.blocks.push_back(self.spill.block(&bytes));
        }
        self.last.push(record);
    }

    /// The next records, which are gone then; none at the end.
    pub fn part(&mut self) -> Vec<T> {
        match self.blocks.pop_front() {
            Some(block) => records(&block),
            None => std::mem::take(&mut self.last),
        }
    }

    /// Whether all was handed out.
    pub fn is_told(&self) -> bool {
        self.blocks.is_empty() && self.last.is_empty()
    }

    /// Shows all records.
    pub fn for_each(&self, mut show: impl FnMut(&T)) {
        for block in &self.blocks {
            records(block).iter().for_each(&mut show);
        }
        self.last.iter().for_each(show);
    }
}

fn records<T: Record>(block: &Block) -> Vec<T> {
    let bytes = block.read();
    let mut bytes = Bytes(&bytes);
    let mut records = Vec::new();
    while !bytes.0.is_empty() {
        records.push(T::read(&mut bytes));
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_log_are_all_of_it_in_order() {
        let mut log = Log::new(&Spill::default());
        let all: Vec<i64> = (0..2 * PART_ROWS as i64 + 5).collect();
        all.iter().for_each(|number| log.push(*number));
        let mut shown = Vec::new();
        log.for_each(|number| shown.push(*number));
        assert_eq!(shown, all);
        let parts = [log.part(), log.part(), log.part()];
        assert!(log.is_told());
        assert_eq!(parts.concat(), all);
        assert!(log.part().is_empty());
    }
}
