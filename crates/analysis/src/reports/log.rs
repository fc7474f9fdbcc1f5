//! A log that is handed out in parts: its rows take many times the memory of what they are made of.

use std::ops::Range;

/// So many rows at a time.
const PART_ROWS: usize = 10_000;

/// What a log's rows are made of, and how much of it was handed out.
#[derive(Debug)]
pub(super) struct Log<T> {
    pub all: Vec<T>,
    told: usize,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        let (all, told) = (Vec::new(), 0);
        Log { all, told }
    }
}

impl<T> Log<T> {
    /// The places of the next part, or of all that is left; empty at the end.
    pub fn part(&mut self, whole: bool) -> Range<usize> {
        let left = self.all.len() - self.told;
        let count = if whole { left } else { left.min(PART_ROWS) };
        self.told += count;
        self.told - count..self.told
    }

    /// Whether all was handed out.
    pub fn is_told(&self) -> bool {
        self.told == self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_log_are_all_of_it_in_order() {
        let mut log = Log::default();
        log.all.extend(0..2 * PART_ROWS + 5);
        let parts = [log.part(false), log.part(false), log.part(false)];
        assert!(log.is_told());
        let found: Vec<usize> = parts.into_iter().flatten().collect();
        assert_eq!(found, log.all);
        assert!(log.part(true).is_empty());
    }
}
