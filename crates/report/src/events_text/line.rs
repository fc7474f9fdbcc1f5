//! Lines under construction.
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

/// Eight zeros as text.
const ZEROS: u64 = 0x3030_3030_3030_3030;
const EIGHT_DIGITS: u64 = 100_000_000;

/// The eight digits of a number below 10^8, a byte each, the first in the lowest byte.
///
/// Halves of four digits become pairs, and those single digits, all of them in one multiplication:
/// `10_486 >> 20` is a hundredth for numbers below 10^4, `103 >> 10` a tenth for those below 100.
#[inline]
fn eight_digits(number: u64) -> u64 {
    let halves = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | ((halves - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - tens * 10) << 8)
}

/// The eight hexadecimal digits of a number below 2^32, a byte each, the first in the lowest byte.
#[inline]
fn eight_nibbles(number: u64) -> u64 {
    let halves = (number | (number << 16)) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | (halves << 8)) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | (bytes << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    nibbles.swap_bytes()
}

/// Digits 0 to 15 as text.
#[inline]
fn hexadecimal_text(nibbles: u64) -> u64 {
    // One where the digit is a letter.
    let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (nibbles | ZEROS) + letters * u64::from(b'A' - b'0' - 10)
}

/// Lines of events, written one behind the other.
#[derive(Debug, Default)]
pub struct EventLines {
    /// Longer than what was written: blocks are copied whole.
    bytes: Vec<u8>,
    end: usize,
    /// Used again by those who can only append to it.
    appended: Vec<u8>,
}

impl EventLines {
    /// No lines yet, in memory for so many bytes of them.
    pub fn with_room_for(bytes: usize) -> EventLines {
        EventLines {
            bytes: vec![0; bytes],
            ..EventLines::default()
        }
    }

    /// What was written.
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.end = 0;
    }

    /// Writes a block of which `length` bytes count.
    #[inline]
    fn put<const N: usize>(&mut self, block: &[u8; N], length: usize) {
        loop {
            if let Some(place) = self.bytes.get_mut(self.end..self.end + N) {
                place.copy_from_slice(block);
                self.end += length;
                return;
            }
            self.grow(N);
        }
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        let wanted = self.end + count + BLOCK_BYTES;
        self.bytes.resize(wanted.next_power_of_two(), 0);
    }

    #[inline]
    pub(super) fn piece(&mut self, piece: &Piece) {
        for (block, length) in &piece.blocks {
            self.put(block, usize::from(*length));
        }
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.put(&[byte], 1);
    }

    /// Adds text as it is.
    #[inline]
    pub fn bytes(&mut self, text: &[u8]) {
        loop {
            if let Some(place) = self.bytes.get_mut(self.end..self.end + text.len()) {
                place.copy_from_slice(text);
                self.end += text.len();
                return;
            }
            self.grow(text.len());
        }
    }

    /// Whatever `write` appends.
    pub(super) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut appended = std::mem::take(&mut self.appended);
        appended.clear();
        write(&mut appended);
        self.bytes(&appended);
        self.appended = appended;
    }

    /// The digits are counted by comparing, not taken from what the conversion says: the place of
    /// all that follows depends on the count, and must not wait for the conversion.
    #[inline]
    pub(super) fn unsigned(&mut self, number: u64) {
        let (digits, count) = match number {
            0..100 => (eight_digits(number), 1 + usize::from(number >= 10)),
            100..10_000 => (eight_digits(number), 3 + usize::from(number >= 1000)),
            10_000..EIGHT_DIGITS => {
                let more = [100_000, 1_000_000, 10_000_000].map(|limit| number >= limit);
                let more = more.map(usize::from).iter().sum::<usize>();
                (eight_digits(number), 5 + more)
            }
            _ => return self.large(number),
        };
        let text = (digits | ZEROS) >> (64 - 8 * count);
        self.put(&text.to_le_bytes(), count);
    }

    #[inline(never)]
    fn large(&mut self, number: u64) {
        self.unsigned(number / EIGHT_DIGITS);
        let text = eight_digits(number % EIGHT_DIGITS) | ZEROS;
        self.put(&text.to_le_bytes(), 8);
    }

    #[inline]
    pub(super) fn signed(&mut self, number: i64) {
        if number < 0 {
            self.byte(b'-');
        }
        self.unsigned(number.unsigned_abs());
    }

    /// The nine digits of a number below 10^9.
    #[inline]
    pub(super) fn nine_digits(&mut self, number: u64) {
        self.nine_digits_behind(b"", number);
    }

    /// The same behind at most three letters, all in one piece.
    #[inline]
    pub(super) fn nine_digits_behind<const N: usize>(&mut self, before: &[u8; N], number: u64) {
        let mut text = [0; 12];
        text[..N].copy_from_slice(before);
        text[N] = b'0' + (number / EIGHT_DIGITS) as u8;
        let digits = eight_digits(number % EIGHT_DIGITS) | ZEROS;
        text[N + 1..N + 9].copy_from_slice(&digits.to_le_bytes());
        self.put(&text, N + 9);
    }

    /// At least `count` digits, at most 20.
    pub(super) fn digits(&mut self, number: u64, count: usize) {
        let written = number.checked_ilog10().unwrap_or(0) as usize + 1;
        for _ in written..count {
            self.byte(b'0');
        }
        self.unsigned(number);
    }

    /// In base 16 without leading zeros.
    #[inline]
    pub(super) fn hexadecimal(&mut self, number: u64) {
        let (high, low) = (number >> 32, number & u64::from(u32::MAX));
        let first = if high == 0 { low } else { high };
        let count = (67 - (first | 1).leading_zeros() as usize) / 4;
        let text = hexadecimal_text(eight_nibbles(first)) >> (64 - 8 * count);
        self.put(&text.to_le_bytes(), count);
        if high != 0 {
            self.put(&hexadecimal_text(eight_nibbles(low)).to_le_bytes(), 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(write: impl FnOnce(&mut EventLines), expect: &str) {
        let mut line = EventLines::default();
        write(&mut line);
        assert_eq!(String::from_utf8_lossy(line.text()), expect);
    }

    #[test]
    fn numbers_have_all_their_digits() {
        let digits = (0..20).map(|count| 10u64.pow(count));
        let around = digits.flat_map(|power| [power - 1, power, power + 1]);
        let nibbles = (0..64).map(|bits| 1u64 << bits);
        let others = [12_345, 0x9abc_def0, 87_654_321, u64::MAX];
        for number in around.chain(nibbles).chain(others) {
            check(|line| line.unsigned(number), &number.to_string());
            check(|line| line.hexadecimal(number), &format!("{number:X}"));
            check(|line| line.digits(number, 20), &format!("{number:020}"));
        }
        for number in [0, -1, i64::MIN, i64::MAX] {
            check(|line| line.signed(number), &number.to_string());
        }
        for number in [0, 7, 123_000_456, 999_999_999] {
            check(|line| line.nine_digits(number), &format!("{number:09}"));
            let behind = |line: &mut EventLines| line.nine_digits_behind(b"-0.", number);
            check(behind, &format!("-0.{number:09}"));
        }
        check(|line| line.digits(1_234_567_890_123, 12), "1234567890123");
    }

    #[test]
    fn pieces_of_any_length_follow_each_other_without_a_gap() {
        let text = "0123456789".repeat(10);
        for length in [0, 1, 31, 32, 33, 64, 100] {
            let piece = Piece::new(&text.as_bytes()[..length]);
            let write = |line: &mut EventLines| {
                line.piece(&piece);
                line.byte(b'|');
                line.append(|out| out.extend_from_slice(b"<>"));
                line.piece(&piece);
            };
            check(write, &format!("{0}|<>{0}", &text[..length]));
        }
    }
}
