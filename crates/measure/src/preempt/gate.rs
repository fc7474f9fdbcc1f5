//! A gate before which a thread sleeps until another one opens it: a futex and nothing else.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex::{self, Flags};

/// Counts how often it was opened; whoever waits has a number that it has seen.
#[derive(Debug, Default)]
pub(super) struct Gate(AtomicU32);

impl Gate {
    /// Lets everybody of this process through who waits.
    pub(super) fn open(&self) {
        self.open_for(Flags::PRIVATE);
    }

    /// Lets everybody through who waits with the same flags.
    pub(super) fn open_for(&self, flags: Flags) {
        self.0.fetch_add(1, Ordering::Release);
        // Fails only for a bad address.
        futex::wake(&self.0, flags, i32::MAX.cast_unsigned()).ok();
    }

    /// Sleeps until it was opened more often than `seen`; how often that is.
    pub(super) fn wait(&self, seen: u32) -> u32 {
        self.wait_with(seen, Flags::PRIVATE)
    }

    /// The same, for who opens it with these flags.
    pub(super) fn wait_with(&self, seen: u32, flags: Flags) -> u32 {
        loop {
            let opened = self.0.load(Ordering::Acquire);
            if opened != seen {
                return opened;
            }
            // A wake-up for nothing, or a gate that is open by now, is looked at again.
            futex::wait(&self.0, flags, seen, None).ok();
        }
    }
}
