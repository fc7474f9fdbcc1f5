//! Bytes that begin at a block of memory, as writes past the page cache want them.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// Where the memory, the offset and the size of such a write begin and end: at multiples of the
/// largest block that a disk of today has.
pub(super) const BLOCK_BYTES: usize = 4096;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// As a `Vec<u8>`, with the first byte at a multiple of [`BLOCK_BYTES`] in memory.
#[derive(Default)]
pub(super) struct AlignedBytes {
    memory: Vec<MaybeUninit<Block>>,
    len: usize,
}

impl AlignedBytes {
    /// Forgets the bytes, keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Forgets all behind the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes room for so many more.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        if self.len + additional > self.memory.len() * BLOCK_BYTES {
            self.grow(self.len + additional);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let blocks = bytes
            .div_ceil(BLOCK_BYTES)
            .max(self.memory.len().saturating_mul(2));
        self.memory.resize(blocks, MaybeUninit::uninit());
    }

    /// Where the first byte is. There is room for what was reserved.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }

    /// Takes bytes that were written behind the last ones for part of them.
    ///
    /// # Safety
    /// All bytes up to `len` were written, and there was room for them.
    #[inline]
    pub unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.memory.len() * BLOCK_BYTES);
        self.len = len;
    }

    /// Appends `bytes`.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        // SAFETY: there is room behind the last byte, and nothing else refers to it.
        unsafe {
            let end = self.as_mut_ptr().add(self.len);
            end.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.len += bytes.len();
    }

    /// Forgets what is behind `len` bytes, or fills up to so many with zeros.
    pub fn zero_up_to(&mut self, len: usize) {
        let added = len.saturating_sub(self.len);
        self.reserve(added);
        // SAFETY: as above.
        unsafe {
            let end = self.as_mut_ptr().add(self.len);
            end.write_bytes(0, added);
        }
        self.len = len;
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: all bytes up to the length were written.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for AlignedBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }
}

impl std::fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_as_those_of_a_vector_and_begin_at_a_block() {
        let mut found = AlignedBytes::default();
        let mut expect = Vec::new();
        for round in 1..300_usize {
            let part = vec![round as u8; round * 37 % 500];
            found.extend_from_slice(&part);
            expect.extend_from_slice(&part);
            match round % 7 {
                3 => {
                    found.zero_up_to(expect.len() + round);
                    expect.resize(expect.len() + round, 0);
                }
                5 => {
                    found.truncate(expect.len() / 3 + 1);
                    expect.truncate(expect.len() / 3 + 1);
                }
                _ => (),
            }
            found[0] = round as u8;
            expect[0] = round as u8;
            assert_eq!(found[..], expect);
            assert!(found.as_ptr().addr().is_multiple_of(BLOCK_BYTES));
        }
        found.clear();
        assert!(found.is_empty());
    }
}
