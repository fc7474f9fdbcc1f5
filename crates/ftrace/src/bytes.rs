//! Numbers of either byte order inside of bytes that nobody vouches for.

/// The order of a number's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The least significant byte first.
    #[default]
    Little,
    /// The most significant byte first.
    Big,
}

impl Order {
    /// The number of two bytes at `at`; none outside of the bytes.
    #[inline]
    pub fn u16_at(self, bytes: &[u8], at: usize) -> Option<u16> {
        let word = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Order::Little => u16::from_le_bytes(*word),
            Order::Big => u16::from_be_bytes(*word),
        })
    }

    /// The number of four bytes at `at`; none outside of the bytes.
    #[inline]
    pub fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Order::Little => u32::from_le_bytes(*word),
            Order::Big => u32::from_be_bytes(*word),
        })
    }

    /// The number of eight bytes at `at`; none outside of the bytes.
    #[inline]
    pub fn u64_at(self, bytes: &[u8], at: usize) -> Option<u64> {
        let word = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Order::Little => u64::from_le_bytes(*word),
            Order::Big => u64::from_be_bytes(*word),
        })
    }

    /// The number of 1, 2, 4 or 8 bytes at `at`, sign-extended when it is signed; none outside of
    /// the bytes.
    #[inline]
    pub fn integer_at(self, bytes: &[u8], at: usize, size: u8, signed: bool) -> Option<i64> {
        let value = match size {
            8 => self.u64_at(bytes, at)?,
            4 => u64::from(self.u32_at(bytes, at)?),
            2 => u64::from(self.u16_at(bytes, at)?),
            _ => u64::from(*bytes.get(at)?),
        };
        Some(narrowed(value as i64, u32::from(size.min(8)) * 8, signed))
    }
}

/// The low `bits` of a number, sign-extended when they are signed.
#[inline]
pub(crate) fn narrowed(value: i64, bits: u32, signed: bool) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    match signed {
        true => value << shift >> shift,
        false => ((value as u64) << shift >> shift) as i64,
    }
}

/// The bytes before the first zero byte, or all of them.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_in_its_order_and_width_and_never_outside() {
        let bytes = [0x80, 0x01, 0x02, 0xff];
        let check = |order: Order, at, size, signed, expect| {
            assert_eq!(order.integer_at(&bytes, at, size, signed), expect);
        };
        check(Order::Little, 0, 2, false, Some(0x0180));
        check(Order::Big, 0, 2, true, Some(-0x7fff));
        check(Order::Big, 0, 4, false, Some(0x8001_02ff));
        check(Order::Little, 3, 1, true, Some(-1));
        check(Order::Little, 1, 4, true, None);
        check(Order::Little, usize::MAX, 1, true, None);
    }

    #[test]
    fn a_number_keeps_only_the_bits_that_it_has_room_for() {
        assert_eq!(narrowed(0x1_0000_0001, 32, true), 1);
        assert_eq!(narrowed(0xffff_ffff, 32, true), -1);
        assert_eq!(narrowed(-1, 8, false), 255);
        assert_eq!(narrowed(-1, 64, false), -1);
    }
}
