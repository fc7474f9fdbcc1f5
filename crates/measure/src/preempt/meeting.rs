//! What a sender and its receiver both see, also when the receiver is a process of its own.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use event::{Error, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::gate::Gate;

/// All zero at first, which is what each of them begins with.
#[repr(C)]
pub(super) struct Board {
    /// When the newest message came; written before it is counted.
    pub(super) came_ns: AtomicI64,
    /// How many came.
    pub(super) received: AtomicU64,
    /// For the receiver: this is the end.
    pub(super) over: AtomicBool,
    /// The receiver found itself on another CPU, and ended.
    pub(super) receiver_lost: AtomicBool,
    /// Of a receiving process: one of the values below.
    pub(super) state: AtomicU32,
    pub(super) gate: Gate,
    /// For who makes it one ([`libc::sem_init`]).
    pub(super) semaphore: UnsafeCell<libc::sem_t>,
}

/// It is not yet what it is to be.
pub(super) const BEGINS: u32 = 0;
/// It receives.
pub(super) const READY: u32 = 1;
/// It got no CPU or no priority, and ended.
pub(super) const REFUSED: u32 = 2;

/// A board in memory that stays the same memory after a fork.
pub(super) struct Meeting(NonNull<Board>);

// SAFETY: it is a pointer to what all threads may use: atomics, and a semaphore that the C library
// lets any thread use.
unsafe impl Send for Meeting {}
// SAFETY: as above.
unsafe impl Sync for Meeting {}

impl Meeting {
    pub(super) fn new() -> Result<Meeting> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        let bytes = size_of::<Board>();
        // SAFETY: new memory, wherever the kernel puts it.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        let refused = |errno: rustix::io::Errno| {
            Error::io("no memory for two processes", errno.into()).fix("ulimit -v unlimited")
        };
        let board = NonNull::new(mapped.map_err(refused)?.cast::<Board>());
        board
            .map(Meeting)
            .ok_or_else(|| refused(rustix::io::Errno::NOMEM))
    }
}

impl Deref for Meeting {
    type Target = Board;

    fn deref(&self) -> &Board {
        // SAFETY: mapped until the drop, aligned as pages are, and all zero is a board.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        // SAFETY: mapped by ourselves with this length; nobody has a reference any more.
        unsafe { munmap(self.0.as_ptr().cast(), size_of::<Board>()) }.ok();
    }
}
