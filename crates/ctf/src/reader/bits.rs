//! Integers at any bit of a packet, of either byte order.
//!
//! CTF counts a little-endian integer's bits from the least significant bit of its first byte, a
//! big-endian integer's from the most significant.

use std::borrow::Cow;

/// How an integer is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntLoad {
    pub size_bits: u8,
    pub signed: bool,
    pub big_endian: bool,
}

/// `position` rounded up to a multiple of `align_bits`, a power of two; saturates.
#[inline]
pub(crate) fn align_up(position: u64, align_bits: u32) -> u64 {
    let mask = u64::from(align_bits) - 1;
    position.saturating_add(mask) & !mask
}

/// `N` bytes from byte `at`.
#[inline]
fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.first_chunk().copied()
}

impl IntLoad {
    /// The integer at bit `position`, sign-extended when it is signed; none outside of the bytes.
    #[inline]
    pub fn read(self, bytes: &[u8], position: u64) -> Option<u64> {
        if position & 7 != 0 {
            return self.read_bits(bytes, position);
        }
        let at = usize::try_from(position / 8).ok()?;
        let raw = match (self.size_bits, self.big_endian) {
            (8, _) => u64::from(*bytes.get(at)?),
            (16, false) => u16::from_le_bytes(bytes_at(bytes, at)?).into(),
            (32, false) => u32::from_le_bytes(bytes_at(bytes, at)?).into(),
            (64, false) => return bytes_at(bytes, at).map(u64::from_le_bytes),
            (16, true) => u16::from_be_bytes(bytes_at(bytes, at)?).into(),
            (32, true) => u32::from_be_bytes(bytes_at(bytes, at)?).into(),
            (64, true) => return bytes_at(bytes, at).map(u64::from_be_bytes),
            _ => return self.read_bits(bytes, position),
        };
        Some(self.extend(raw))
    }

    #[inline]
    fn extend(self, raw: u64) -> u64 {
        let unused = 64 - u32::from(self.size_bits);
        if self.signed {
            (((raw << unused) as i64) >> unused) as u64
        } else {
            raw
        }
    }

    #[cold]
    fn read_bits(self, bytes: &[u8], position: u64) -> Option<u64> {
        let size = u32::from(self.size_bits);
        let skipped = (position & 7) as u32;
        let first = usize::try_from(position / 8).ok()?;
        let count = (skipped + size).div_ceil(8) as usize;
        let touched = bytes.get(first..first.checked_add(count)?)?;
        let mask = (1u128 << size) - 1;
        let fold = |word: u128, byte: &u8| word << 8 | u128::from(*byte);
        let raw = if self.big_endian {
            let unused = count as u32 * 8 - skipped - size;
            touched.iter().fold(0, fold) >> unused
        } else {
            touched.iter().rev().fold(0, fold) >> skipped
        };
        Some(self.extend((raw & mask) as u64))
    }
}

/// The bytes before the first zero.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    &bytes[..end]
}

/// Bytes as text; what is not UTF-8 is replaced.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_found_at_any_bit_in_both_byte_orders() {
        let check = |size_bits, signed, big_endian, position, expect: i64| {
            let bytes = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0xff];
            let load = IntLoad {
                size_bits,
                signed,
                big_endian,
            };
            assert_eq!(
                load.read(&bytes, position).map(|v| v as i64),
                Some(expect),
                "{load:?}"
            );
        };
        check(16, false, false, 0, 0x3412);
        check(16, false, true, 0, 0x1234);
        check(4, false, false, 4, 0x1);
        check(4, false, true, 4, 0x2);
        check(12, false, true, 4, 0x234);
        check(12, false, false, 4, 0x341);
        check(27, false, false, 5, 0x7856_3412 >> 5);
        check(8, true, true, 48, -34);
        check(3, true, false, 64, -1);
        check(64, false, false, 4, 0xff0debc9a7856341_u64 as i64);
    }

    #[test]
    fn no_integer_is_found_outside_of_the_bytes() {
        let load = IntLoad {
            size_bits: 32,
            signed: false,
            big_endian: false,
        };
        assert_eq!(load.read(&[0; 4], 0), Some(0));
        assert_eq!(load.read(&[0; 4], 1), None);
        assert_eq!(load.read(&[0; 4], 8), None);
        assert_eq!(load.read(&[0; 4], u64::MAX - 7), None);
        assert_eq!(align_up(33, 32), 64);
        assert_eq!(align_up(u64::MAX, 8), !7u64);
    }
}
