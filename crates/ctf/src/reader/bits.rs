//! Integers at any bit of a packet, of either byte order.
//!
//! CTF counts a little-endian integer's bits from the least significant bit of its first byte, a
//! big-endian integer's from the most significant.

use std::borrow::Cow;

/// In which order an integer's bits are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
    /// As little-endian, then the first bit last.
    LittleReversed,
    /// As big-endian, then the first bit last.
    BigReversed,
    /// Seven bits a byte, the lowest first, until a byte without its highest bit.
    Leb128,
}

impl Order {
    pub fn of(big_endian: bool) -> Order {
        if big_endian {
            Order::Big
        } else {
            Order::Little
        }
    }

    fn is_big(self) -> bool {
        matches!(self, Order::Big | Order::BigReversed)
    }
}

/// How an integer is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntLoad {
    /// 64 for those of variable length.
    pub size_bits: u8,
    pub signed: bool,
    pub order: Order,
}

/// Bytes of the longest integer of variable length that is read: 64 bits need ten.
pub(crate) const LEB128_BYTES_MAX: usize = 10;

/// `position` rounded up to a multiple of `align_bits`, a power of two; saturates.
#[inline]
pub(crate) fn align_up(position: u64, align_bits: u32) -> u64 {
    let mask = u64::from(align_bits) - 1;
    position.saturating_add(mask) & !mask
}

/// `N` bytes from byte `at`.
#[inline]
pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.first_chunk().copied()
}

impl IntLoad {
    /// Whether [`IntLoad::read_bytes`] can read it, where it begins with a byte.
    pub fn is_little(self) -> bool {
        self.order == Order::Little && (1..=64).contains(&self.size_bits)
    }

    /// A [little-endian](IntLoad::is_little) integer at byte `at`, sign-extended when it is signed;
    /// none outside of the bytes.
    #[inline]
    pub fn read_bytes(self, bytes: &[u8], at: usize) -> Option<u64> {
        let Some(word) = bytes_at::<8>(bytes, at) else {
            return self.read_bits(bytes, at as u64 * 8);
        };
        Some(self.of_word(word))
    }

    /// The same in the first of these bytes.
    #[inline]
    pub fn of_word(self, word: [u8; 8]) -> u64 {
        let unused = (64 - u32::from(self.size_bits)) & 63;
        let high = u64::from_le_bytes(word) << unused;
        match self.signed {
            true => ((high as i64) >> unused) as u64,
            false => high >> unused,
        }
    }

    /// The integer at bit `position`, sign-extended when it is signed; none outside of the bytes.
    #[inline]
    pub fn read(self, bytes: &[u8], position: u64) -> Option<u64> {
        let skipped = (position & 7) as u32;
        let size = u32::from(self.size_bits);
        // A word from the first byte on holds all bits, unless it would reach beyond the bytes.
        let word = usize::try_from(position / 8)
            .ok()
            .and_then(|at| bytes_at::<8>(bytes, at))
            .filter(|_| (1..=64 - skipped).contains(&size));
        let (Some(word), Order::Little | Order::Big) = (word, self.order) else {
            return self.read_bits(bytes, position);
        };
        let unused = 64 - size;
        let high = match self.order {
            Order::Big => u64::from_be_bytes(word) << skipped,
            _ => u64::from_le_bytes(word) >> skipped << unused,
        };
        Some(match self.signed {
            true => ((high as i64) >> unused) as u64,
            false => high >> unused,
        })
    }

    /// The integer of variable length at bit `position` and its bytes; none outside of the bytes
    /// or beyond 64 bits.
    pub fn read_leb128(self, bytes: &[u8], position: u64) -> Option<(u64, usize)> {
        let at = usize::try_from(position / 8).ok()?;
        let mut raw = 0u128;
        for (place, byte) in bytes.get(at..)?.iter().take(LEB128_BYTES_MAX).enumerate() {
            raw |= u128::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 != 0 {
                continue;
            }
            let bits = 7 * (place as u32 + 1);
            let negative = self.signed && byte & 0x40 != 0;
            if negative {
                raw |= u128::MAX << bits;
            }
            let fits = match self.signed {
                true => i64::try_from(raw as i128).is_ok(),
                false => u64::try_from(raw).is_ok(),
            };
            return fits.then_some((raw as u64, place + 1));
        }
        None
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
        if self.order == Order::Leb128 {
            return self.read_leb128(bytes, position).map(|(value, _)| value);
        }
        let size = u32::from(self.size_bits);
        let skipped = (position & 7) as u32;
        let first = usize::try_from(position / 8).ok()?;
        let count = (skipped + size).div_ceil(8) as usize;
        let touched = bytes.get(first..first.checked_add(count)?)?;
        let mask = (1u128 << size) - 1;
        let fold = |word: u128, byte: &u8| word << 8 | u128::from(*byte);
        let raw = if self.order.is_big() {
            let unused = count as u32 * 8 - skipped - size;
            touched.iter().fold(0, fold) >> unused
        } else {
            touched.iter().rev().fold(0, fold) >> skipped
        };
        let raw = (raw & mask) as u64;
        let reversed = matches!(self.order, Order::LittleReversed | Order::BigReversed);
        Some(self.extend(if reversed {
            raw.reverse_bits() >> (64 - size)
        } else {
            raw
        }))
    }
}

/// Where the first zero byte is, looked for in words.
#[inline]
pub(crate) fn first_zero(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut words = bytes.chunks_exact(8);
    for (place, word) in words.by_ref().enumerate() {
        let word = u64::from_le_bytes(*word.first_chunk()?);
        // The lowest byte whose high bit is set here is the first that is zero.
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(place * 8 + zeros.trailing_zeros() as usize / 8);
        }
    }
    let rest = words.remainder();
    let place = rest.iter().position(|byte| *byte == 0)?;
    Some(bytes.len() - rest.len() + place)
}

/// The bytes before the first zero.
#[inline]
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    &bytes[..first_zero(bytes).unwrap_or(bytes.len())]
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
                order: Order::of(big_endian),
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
    fn the_first_zero_is_found_wherever_it_is() {
        for length in 0..20 {
            let mut bytes = vec![0x80; length];
            assert_eq!(first_zero(&bytes), None);
            for place in (0..length).rev() {
                bytes[place] = 0;
                assert_eq!(first_zero(&bytes), Some(place), "{length}");
            }
        }
    }

    #[test]
    fn bits_in_the_other_order_are_turned_around() {
        let check = |size_bits, order, position, expect: u64| {
            let load = IntLoad {
                size_bits,
                signed: false,
                order,
            };
            assert_eq!(load.read(&[0x12, 0x34], position), Some(expect), "{load:?}");
        };
        check(8, Order::LittleReversed, 0, 0x48);
        check(16, Order::BigReversed, 0, 0x2c48);
        check(4, Order::LittleReversed, 4, 0x8);
        check(4, Order::BigReversed, 4, 0x4);
    }

    #[test]
    fn an_integer_of_variable_length_ends_with_its_last_byte() {
        let check = |signed, bytes: &[u8], expect: Option<(i64, usize)>| {
            let load = IntLoad {
                size_bits: 64,
                signed,
                order: Order::Leb128,
            };
            let found = load.read_leb128(bytes, 0);
            assert_eq!(found.map(|(v, n)| (v as i64, n)), expect, "{bytes:?}");
        };
        check(false, &[0x05], Some((5, 1)));
        check(false, &[0xe5, 0x8e, 0x26, 0xff], Some((624_485, 3)));
        check(true, &[0x7f], Some((-1, 1)));
        check(true, &[0xc0, 0xbb, 0x78], Some((-123_456, 3)));
        check(true, &[0x3f], Some((63, 1)));
        check(false, &[0x80, 0x00], Some((0, 2)));
        check(false, &[0x80], None);
        check(false, &[0xff; 10], None);
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        check(false, &most, Some((-1, 10)));
        let beyond = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        check(false, &beyond, None);
    }

    #[test]
    fn no_integer_is_found_outside_of_the_bytes() {
        let load = IntLoad {
            size_bits: 32,
            signed: false,
            order: Order::Little,
        };
        assert_eq!(load.read(&[0; 4], 0), Some(0));
        assert_eq!(load.read(&[0; 4], 1), None);
        assert_eq!(load.read(&[0; 4], 8), None);
        assert_eq!(load.read(&[0; 4], u64::MAX - 7), None);
        assert_eq!(align_up(33, 32), 64);
        assert_eq!(align_up(u64::MAX, 8), !7u64);
    }
}
