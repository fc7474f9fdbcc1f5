//! A packet's bytes, written bit by bit where a type asks for it.
//!
//! A little-endian integer's bits fill a byte from its least significant bit, a big-endian
//! integer's from its most significant.

use super::aligned::AlignedBytes;

/// The bytes of an open packet.
#[derive(Debug, Default)]
pub(super) struct PacketBytes {
    pub bytes: AlignedBytes,
    /// Bits of the last byte that are not used yet.
    unused_bits: u8,
}

impl PacketBytes {
    /// Forgets the bytes, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.unused_bits = 0;
    }

    /// Forgets all behind the first `bits`, where an event ends: the next begins on a byte.
    pub fn truncate(&mut self, bits: u64) {
        self.bytes.truncate(bits.div_ceil(8) as usize);
        self.unused_bits = (self.bytes.len() as u64 * 8).saturating_sub(bits) as u8;
    }

    /// Whether the next bit begins a byte.
    #[inline]
    pub fn is_at_byte(&self) -> bool {
        self.unused_bits == 0
    }

    /// How many bits are written.
    pub fn len_bits(&self) -> u64 {
        self.bytes.len() as u64 * 8 - u64::from(self.unused_bits)
    }

    /// Fills up with zeros to a multiple of `align_bits`, a power of two.
    pub fn align(&mut self, align_bits: u32) {
        let mask = u64::from(align_bits.max(1)) - 1;
        self.grow((self.len_bits() + mask) & !mask);
    }

    /// Zeros up to this length; never shorter.
    fn grow(&mut self, bits: u64) {
        self.bytes.zero_up_to(bits.div_ceil(8) as usize);
        self.unused_bits = (self.bytes.len() as u64 * 8 - bits) as u8;
    }

    /// Appends whole bytes, on a byte.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        if self.unused_bits != 0 {
            self.align(8);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the lowest `size_bits` of `value`, where the last ended.
    pub fn integer(&mut self, value: u64, size_bits: u8, big_endian: bool) {
        let size = usize::from(size_bits);
        if self.unused_bits == 0 && size.is_multiple_of(8) {
            return match big_endian {
                true => {
                    let bytes = (value << (64 - size)).to_be_bytes();
                    self.bytes.extend_from_slice(&bytes[..size / 8]);
                }
                false => self
                    .bytes
                    .extend_from_slice(&value.to_le_bytes()[..size / 8]),
            };
        }
        let begin = self.len_bits();
        self.grow(begin + u64::from(size_bits));
        for place in 0..u64::from(size_bits) {
            let (byte, bit) = (((begin + place) / 8) as usize, ((begin + place) % 8) as u8);
            let (shift, bit) = match big_endian {
                true => (u64::from(size_bits) - 1 - place, 7 - bit),
                false => (place, bit),
            };
            self.bytes[byte] |= ((value >> shift & 1) as u8) << bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_fill_a_byte_from_the_end_that_their_order_says() {
        let check = |integers: &[(u64, u8)], big_endian: bool, expect: &[u8]| {
            let mut packet = PacketBytes::default();
            for (value, size_bits) in integers {
                packet.integer(*value, *size_bits, big_endian);
            }
            assert_eq!(packet.bytes[..], *expect);
            let sizes: u64 = integers.iter().map(|(_, size)| u64::from(*size)).sum();
            assert_eq!(packet.len_bits(), sizes);
        };
        check(&[(0b101, 3), (0b11, 2)], false, &[0b11101]);
        check(&[(0b101, 3), (0b11, 2)], true, &[0b1011_1000]);
        check(&[(1, 3), (0x1234, 16)], false, &[0xa1, 0x91, 0]);
        check(&[(0x1234, 16)], true, &[0x12, 0x34]);
        check(&[(0x12_3456, 24)], false, &[0x56, 0x34, 0x12]);
        check(
            &[(u64::MAX, 64), (0, 1)],
            false,
            &[255, 255, 255, 255, 255, 255, 255, 255, 0],
        );
    }

    #[test]
    fn alignment_fills_with_zeros() {
        let mut packet = PacketBytes::default();
        packet.integer(1, 1, false);
        packet.align(32);
        packet.append(&[7]);
        assert_eq!(packet.bytes[..], [1, 0, 0, 0, 7]);
        packet.align(1);
        assert_eq!(packet.len_bits(), 40);
    }
}
