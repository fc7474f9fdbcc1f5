//! Whether the threads of a measurement measure, rest, or end: one word that each of them reads
//! before it sleeps.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// They wait until it opens; so they begin.
const SHUT: u8 = 0;
/// They measure.
const OPEN: u8 = 1;
/// They end. Nothing follows.
const CLOSED: u8 = 2;

/// Shut at first. Whoever opens or closes it wakes who waits.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: AtomicU8,
    /// The common first instant; written before it opens.
    begin_ns: AtomicI64,
}

impl Gate {
    /// Whether a thread shall take another sample.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OPEN
    }

    /// Opens it, unless it was closed: from `begin_ns` on, everybody measures.
    pub fn open(&self, begin_ns: i64) {
        self.begin_ns.store(begin_ns, Ordering::Relaxed);
        self.change(SHUT, OPEN);
    }

    /// Everybody shall rest.
    pub fn shut(&self) {
        self.change(OPEN, SHUT);
    }

    /// Everybody shall end.
    pub fn close(&self) {
        self.state.store(CLOSED, Ordering::Release);
    }

    fn change(&self, from: u8, to: u8) {
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        // Another state is one that the change does not apply to.
        self.state.compare_exchange(from, to, success, failure).ok();
    }

    /// Waits until it opens, and gives the first instant; none when it is closed.
    pub fn wait(&self) -> Option<i64> {
        loop {
            match self.state.load(Ordering::Acquire) {
                OPEN => return Some(self.begin_ns.load(Ordering::Relaxed)),
                CLOSED => return None,
                _ => std::thread::park(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_opens_for_nobody() {
        let gate = Gate::default();
        assert!(!gate.is_open());
        gate.open(7);
        assert_eq!((gate.is_open(), gate.wait()), (true, Some(7)));
        gate.shut();
        assert!(!gate.is_open());
        gate.open(9);
        assert_eq!(gate.wait(), Some(9));
        gate.close();
        gate.open(11);
        gate.shut();
        assert_eq!((gate.is_open(), gate.wait()), (false, None));
    }
}
