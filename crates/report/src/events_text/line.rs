//! A line under construction.
//!
//! Most of a line is short pieces that are the same for all events of a class, and numbers. Pieces
//! are kept in blocks of one size and copied whole, so that a copy is two moves and no call; what
//! lies behind a piece's end is written over by what follows.

/// The size of a block.
const BLOCK_BYTES: usize = 32;

/// A piece of text that is the same in many lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    blocks: Vec<([u8; BLOCK_BYTES], u8)>,
}

impl Piece {
    pub fn new(text: &[u8]) -> Piece {
        let block = |chunk: &[u8]| {
            let mut block = [0; BLOCK_BYTES];
            block[..chunk.len()].copy_from_slice(chunk);
            (block, chunk.len() as u8)
        };
        Piece {
            blocks: text.chunks(BLOCK_BYTES).map(block).collect(),
        }
    }
}

/// The digits of 00 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// One line, written from the left.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Long enough for what comes next, see [`Line::room`].
    bytes: Vec<u8>,
    end: usize,
}

impl Line {
    /// What was written.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.end = 0;
    }

    /// Makes room for `count` bytes and a block.
    #[inline]
    fn room(&mut self, count: usize) {
        let wanted = self.end + count + BLOCK_BYTES;
        if self.bytes.len() < wanted {
            self.grow(wanted);
        }
    }

    #[cold]
    fn grow(&mut self, wanted: usize) {
        self.bytes.resize(wanted.next_power_of_two(), 0);
    }

    #[inline]
    pub fn piece(&mut self, piece: &Piece) {
        for (block, length) in &piece.blocks {
            self.room(BLOCK_BYTES);
            self.bytes[self.end..self.end + BLOCK_BYTES].copy_from_slice(block);
            self.end += usize::from(*length);
        }
    }

    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.room(1);
        self.bytes[self.end] = byte;
        self.end += 1;
    }

    #[inline]
    pub fn bytes(&mut self, text: &[u8]) {
        self.room(text.len());
        self.bytes[self.end..self.end + text.len()].copy_from_slice(text);
        self.end += text.len();
    }

    /// Whatever `write` appends.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.truncate(self.end);
        write(&mut self.bytes);
        self.end = self.bytes.len();
    }

    #[inline]
    pub fn unsigned(&mut self, number: u64) {
        let count = number.checked_ilog10().unwrap_or(0) as usize + 1;
        self.digits(number, count);
    }

    #[inline]
    pub fn signed(&mut self, number: i64) {
        if number < 0 {
            self.byte(b'-');
        }
        self.unsigned(number.unsigned_abs());
    }

    /// The last `count` digits of a number, at most 20.
    #[inline]
    pub fn digits(&mut self, mut number: u64, count: usize) {
        self.room(BLOCK_BYTES);
        let place = &mut self.bytes[self.end..self.end + count];
        let mut pairs = place.rchunks_exact_mut(2);
        for pair in &mut pairs {
            pair.copy_from_slice(&PAIRS[(number % 100) as usize]);
            number /= 100;
        }
        if let [first] = pairs.into_remainder() {
            *first = b'0' + (number % 10) as u8;
        }
        self.end += count;
    }

    /// In base 16 or 8 by `bits` a digit, without leading zeros.
    #[inline]
    pub fn power_of_two(&mut self, mut number: u64, bits: u32) {
        self.room(BLOCK_BYTES);
        let used = 64 - (number | 1).leading_zeros();
        let count = used.div_ceil(bits) as usize;
        let place = &mut self.bytes[self.end..self.end + count];
        for digit in place.iter_mut().rev() {
            *digit = b"0123456789ABCDEF"[(number & ((1 << bits) - 1)) as usize];
            number >>= bits;
        }
        self.end += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(write: impl FnOnce(&mut Line), expect: &str) {
        let mut line = Line::default();
        write(&mut line);
        assert_eq!(String::from_utf8_lossy(line.text()), expect);
    }

    #[test]
    fn numbers_have_all_their_digits() {
        for number in [0, 9, 10, 99, 100, 12_345, 1 << 40, u64::MAX] {
            check(|line| line.unsigned(number), &number.to_string());
            check(|line| line.power_of_two(number, 4), &format!("{number:X}"));
            check(|line| line.power_of_two(number, 3), &format!("{number:o}"));
            check(|line| line.digits(number, 20), &format!("{number:020}"));
        }
        for number in [0, -1, i64::MIN, i64::MAX] {
            check(|line| line.signed(number), &number.to_string());
        }
        check(|line| line.digits(123_000_456, 9), "123000456");
        check(|line| line.digits(7, 9), "000000007");
    }

    #[test]
    fn pieces_of_any_length_follow_each_other_without_a_gap() {
        let text = "0123456789".repeat(10);
        for length in [0, 1, 31, 32, 33, 64, 100] {
            let piece = Piece::new(&text.as_bytes()[..length]);
            let write = |line: &mut Line| {
                line.piece(&piece);
                line.byte(b'|');
                line.append(|out| out.extend_from_slice(b"<>"));
                line.piece(&piece);
            };
            check(write, &format!("{0}|<>{0}", &text[..length]));
        }
    }
}
