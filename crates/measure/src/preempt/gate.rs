//! A gate before which a thread sleeps until another one opens it: a futex and nothing else.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex::{self, Flags};

/// Counts how often it was opened; whoever waits has a number that it has seen.
#[derive(Debug, Default)]
pub(super) struct Gate(AtomicU32);

impl Gate {
    /// Lets everybody through who waits.
    pub(super) fn open(&self) {
        self.0.fetch_add(1, Ordering::Release);
        // Fails only for a bad address.
        futex::wake(&self.0, Flags::PRIVATE, i32::MAX.cast_unsigned()).ok();
    }

    /// Sleeps until it was opened more often than `seen`; how often that is.
    pub(super) fn wait(&self, seen: u32) -> u32 {
        loop {
            let opened = self.0.load(Ordering::Acquire);
            if opened != seen {
                return opened;
            }
            // A wake-up for nothing, or a gate that is open by now, is looked at again.
            futex::wait(&self.0, Flags::PRIVATE, seen, None).ok();
        }
    }
}
