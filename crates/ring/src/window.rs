//! What of a ring can be read: the protocols of the modes, as arithmetic.

use std::ops::Range;

use crate::{Layout, Mode};

/// The offsets of a ring's control at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes ever written.
    pub head: u64,
    /// Discard and block: bytes ever read. Overwrite: what the writer gave up.
    pub tail: u64,
}

/// The first offset that a writer at `head` cannot have destroyed. The sub-buffer that holds the
/// head replaces one of an earlier turn as a whole: an aborted write may have reached anywhere in
/// it. A head on a boundary counts as in the next sub-buffer.
pub fn overwritten_before(layout: &Layout, head: u64) -> u64 {
    let subbuffers = layout.ring_bytes / layout.subbuffer_bytes;
    let current = head / layout.subbuffer_bytes;
    current.saturating_sub(subbuffers - 1) * layout.subbuffer_bytes
}

/// What can be read, from the beginning of a record on. After the bytes were copied in the mode
/// overwrite, the head must be read again, and what lies before [`overwritten_before`] dropped.
/// `None` when the offsets contradict each other: such a process broke its own ring.
pub fn readable(layout: &Layout, mode: Mode, window: Window) -> Option<Range<u64>> {
    let Window { head, tail } = window;
    if !head.is_multiple_of(8) {
        return None;
    }
    match mode {
        Mode::Overwrite => Some(overwritten_before(layout, head)..head),
        Mode::Discard | Mode::Block => {
            let held = head.checked_sub(tail)?;
            (tail.is_multiple_of(8) && held <= layout.ring_bytes).then_some(tail..head)
        }
    }
}
