//! Whether the threads of a measurement measure, rest, or end: one word that each of them reads
//! before it sleeps.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// They wait until it opens; so they begin.
const SHUT: u8 = 0;
/// They measure.
const OPEN: u8 = 1;
/// They end. Nothing follows.
const CLOSED: u8 = 2;
/// Something else has their CPUs, and they had not begun before.
const LENT: u8 = 3;
/// Something else has their CPUs; they go on when it is over.
const LENT_MEANWHILE: u8 = 4;

/// Shut at first. Whoever opens or closes it wakes who waits.
///
/// While their CPUs are lent nothing opens it but [`Gate::take_back`]: who lent them looks after
/// [`Gate::lend`] whether everybody rests, and from then on everybody does.
///
/// ```text
///         open            lend                  open               take_back
///   SHUT -----> OPEN     SHUT -> LENT          LENT -> MEANWHILE   LENT      -> SHUT
///                        OPEN -> MEANWHILE                         MEANWHILE -> OPEN
/// ```
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: AtomicU8,
    /// The common first instant; written before it opens.
    begin_ns: AtomicI64,
}

impl Gate {
    /// Whether a thread shall take another sample. In one order with [`Gate::lend`] and what the
    /// thread says of its rest: either it sees that its CPU is lent, or it is seen not to rest.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state.load(Ordering::SeqCst) == OPEN
    }

    /// Opens it, unless it was closed: from `begin_ns` on, everybody measures. Where their CPUs are
    /// lent, that is when these are given back. Whether it is open.
    pub fn open(&self, begin_ns: i64) -> bool {
        self.change(|state| match state {
            SHUT => {
                self.begin_ns.store(begin_ns, Ordering::Relaxed);
                OPEN
            }
            LENT => LENT_MEANWHILE,
            other => other,
        });
        self.is_open()
    }

    /// Everybody shall rest until [`Gate::take_back`].
    pub fn lend(&self) {
        self.change(|state| match state {
            SHUT => LENT,
            OPEN => LENT_MEANWHILE,
            other => other,
        });
    }

    /// The CPUs are theirs again: from `begin_ns` on, everybody measures who was to. Whether it is
    /// open.
    pub fn take_back(&self, begin_ns: i64) -> bool {
        self.change(|state| match state {
            LENT => SHUT,
            LENT_MEANWHILE => {
                self.begin_ns.store(begin_ns, Ordering::Relaxed);
                OPEN
            }
            other => other,
        });
        self.is_open()
    }

    /// Everybody shall end.
    pub fn close(&self) {
        self.state.store(CLOSED, Ordering::SeqCst);
    }

    /// Nobody reads the first instant before the state says that it is open.
    fn change(&self, next: impl Fn(u8) -> u8) {
        let order = Ordering::SeqCst;
        let next = |state| Some(next(state));
        // It never refuses.
        self.state.fetch_update(order, order, next).ok();
    }

    /// Waits until it opens, and gives the first instant; none when it is closed.
    pub fn wait(&self) -> Option<i64> {
        loop {
            match self.state.load(Ordering::SeqCst) {
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
        gate.lend();
        assert!(!gate.is_open());
        gate.take_back(9);
        assert_eq!(gate.wait(), Some(9));
        gate.close();
        gate.open(11);
        gate.lend();
        gate.take_back(13);
        assert_eq!((gate.is_open(), gate.wait()), (false, None));
    }

    #[test]
    fn nobody_measures_on_lent_cpus_whoever_asks() {
        // Before they began, and after.
        for begun in [false, true] {
            let gate = Gate::default();
            if begun {
                gate.open(1);
            }
            gate.lend();
            gate.open(2);
            assert!(!gate.is_open(), "begun before: {begun}");
            gate.take_back(3);
            assert_eq!((gate.is_open(), gate.wait()), (true, Some(3)));
        }
        let never_asked = Gate::default();
        never_asked.lend();
        never_asked.take_back(3);
        assert!(!never_asked.is_open(), "nobody asked for a begin");
    }
}
