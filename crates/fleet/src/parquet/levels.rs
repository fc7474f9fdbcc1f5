//! Levels of one bit, as runs: how deep a value is defined, and whether it goes on a list.

use super::thrift::push_varint;

/// Levels of the values of a column, in their order.
#[derive(Debug, Default)]
pub(super) struct Levels {
    runs: Vec<(bool, usize)>,
    len: usize,
}

impl Levels {
    /// Appends a level so many times.
    pub fn push(&mut self, level: bool, times: usize) {
        if times == 0 {
            return;
        }
        self.len += times;
        match self.runs.last_mut() {
            Some((last, length)) if *last == level => *length += times,
            _ => self.runs.push((level, times)),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// As a page of version 1 has them: the length in bytes, then each run's length and level.
    pub fn write(&self, page: &mut Vec<u8>) {
        let mut runs = Vec::new();
        for (level, length) in &self.runs {
            push_varint(&mut runs, (*length as u64) << 1);
            runs.push(u8::from(*level));
        }
        page.extend_from_slice(&(runs.len() as u32).to_le_bytes());
        page.extend_from_slice(&runs);
    }
}
