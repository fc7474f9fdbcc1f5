//! Bytes that begin at a block of memory, as writes past the page cache want them.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Where the memory, the offset and the size of such a write begin and end: at multiples of the
/// largest block that a disk of today has.
pub(super) const BLOCK_BYTES: usize = 4096;
/// Memory of this size is asked for in one page, which such a write then looks up once.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// From so many bytes on the rest of a huge page is worth having.
const HUGE_FROM_BYTES: usize = HUGE_PAGE_BYTES / 2;

/// As a `Vec<u8>`, with the first byte at a multiple of [`BLOCK_BYTES`] in memory.
#[derive(Default)]
pub(super) struct AlignedBytes {
    memory: Option<Memory>,
    len: usize,
}

/// Memory that was allocated by its layout.
struct Memory {
    begin: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// For at least so many bytes.
    fn new(bytes: usize) -> Memory {
        let align = match bytes >= HUGE_FROM_BYTES {
            true => HUGE_PAGE_BYTES,
            false => BLOCK_BYTES,
        };
        let layout = Layout::from_size_align(bytes, align).map(|layout| layout.pad_to_align());
        let layout = layout.expect("a packet that memory can hold");
        // SAFETY: the size is not zero.
        let Some(begin) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout);
        };
        if align == HUGE_PAGE_BYTES {
            use rustix::mm::{Advice, madvise};
            let place = begin.as_ptr().cast();
            // Where there are no such pages usual ones do.
            // SAFETY: advice on memory of our own changes nothing in it.
            let _ = unsafe { madvise(place, layout.size(), Advice::LinuxHugepage) };
        }
        Memory { begin, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated by this layout.
        unsafe { dealloc(self.begin.as_ptr(), self.layout) };
    }
}

// SAFETY: whoever has it owns the memory alone.
unsafe impl Send for Memory {}
// SAFETY: as above; it is changed by its owner only.
unsafe impl Sync for Memory {}

impl AlignedBytes {
    /// Forgets the bytes, keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Forgets all behind the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// How many bytes the memory holds that is there.
    pub fn room_bytes(&self) -> usize {
        self.memory
            .as_ref()
            .map_or(0, |memory| memory.layout.size())
    }

    /// Makes room for so many more.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        if self.len + additional > self.room_bytes() {
            self.grow(self.len + additional);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let bytes = bytes.max(2 * self.room_bytes());
        let mut grown = AlignedBytes {
            memory: Some(Memory::new(bytes)),
            len: 0,
        };
        grown.extend_from_slice(self);
        *self = grown;
    }

    /// Where the first byte is. There is room for what was reserved.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        match &self.memory {
            Some(memory) => memory.begin.as_ptr(),
            None => NonNull::dangling().as_ptr(),
        }
    }

    /// Takes bytes that were written behind the last ones for part of them.
    ///
    /// # Safety
    /// All bytes up to `len` were written, and there was room for them.
    #[inline]
    pub unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.room_bytes());
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
        match &self.memory {
            // SAFETY: all bytes up to the length were written.
            Some(memory) => unsafe { std::slice::from_raw_parts(memory.begin.as_ptr(), self.len) },
            None => &[],
        }
    }
}

impl DerefMut for AlignedBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            // SAFETY: as above.
            Some(memory) => unsafe {
                std::slice::from_raw_parts_mut(memory.begin.as_ptr(), self.len)
            },
            None => &mut [],
        }
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
        found.zero_up_to(HUGE_FROM_BYTES);
        assert!(found.as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES));
        assert_eq!(found[..expect.len()], expect);
        found.clear();
        assert!(found.is_empty());
    }
}
