//! A packet's bytes, written bit by bit where a type asks for it.
//!
//! A little-endian integer's bits fill a byte from its least significant bit, a big-endian
//! integer's from its most significant.

/// The bytes of an open packet.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketBytes {
    pub bytes: Vec<u8>,
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
        self.bytes.resize(bits.div_ceil(8) as usize, 0);
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

    /// Appends the lowest `header_bytes` of `header`, at most eight, and two parts, on a byte. The
    /// hot path of a recorder: most parts have one or two words, and a call for each, or a look at
    /// the capacity, costs as much as the copy.
    #[inline(always)]
    pub fn append_event(
        &mut self,
        header: u64,
        header_bytes: usize,
        context: &[u8],
        fields: &[u8],
    ) {
        debug_assert!(self.is_at_byte());
        // Known where this is called, and gone there.
        assert!(header_bytes <= 8);
        let parts_bytes = context.len() + fields.len();
        self.bytes.reserve(8 + parts_bytes);
        let length = self.bytes.len();
        // SAFETY: there is room for eight bytes and both parts behind the length, which grows by
        // what was written of them.
        unsafe {
            let end = self.bytes.as_mut_ptr().add(length);
            end.cast::<u64>().write_unaligned(header.to_le());
            let behind_header = end.add(header_bytes);
            copy_words(context, behind_header);
            copy_words(fields, behind_header.add(context.len()));
            self.bytes.set_len(length + header_bytes + parts_bytes);
        }
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

/// Copies `part`: one or two words without a call.
///
/// # Safety
/// There is room for it at `to`.
#[inline(always)]
unsafe fn copy_words(part: &[u8], to: *mut u8) {
    let from = part.as_ptr();
    // SAFETY: the length was looked at, and the caller made room.
    unsafe {
        match part.len() {
            8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            16 => to.cast::<[u8; 16]>().write(from.cast::<[u8; 16]>().read()),
            length => to.copy_from_nonoverlapping(from, length),
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
            assert_eq!(packet.bytes, expect);
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
        assert_eq!(packet.bytes, [1, 0, 0, 0, 7]);
        packet.align(1);
        assert_eq!(packet.len_bits(), 40);
    }

    #[test]
    fn an_event_is_its_header_and_both_parts_whatever_their_lengths() {
        let check = |header_bytes: usize, context: &[u8], fields: &[u8]| {
            let mut packet = PacketBytes::default();
            packet.append(&[9, 9, 9]);
            packet.append_event(0x0807_0605_0403_0201, header_bytes, context, fields);
            let header = &[1, 2, 3, 4, 5, 6, 7, 8][..header_bytes];
            assert_eq!(packet.bytes, [&[9, 9, 9], header, context, fields].concat());
        };
        let bytes: Vec<u8> = (100..180).collect();
        for header_bytes in [4, 6, 8] {
            for length in 0..40 {
                check(header_bytes, &bytes[..length], &bytes[40..80 - length]);
                check(header_bytes, &[], &bytes[..length]);
            }
        }
    }
}
