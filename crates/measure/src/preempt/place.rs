//! The CPU where threads have to stay: the first that finds itself elsewhere tells the others.

use std::sync::atomic::{AtomicBool, Ordering};

use event::Cpu;

use host::task;

/// A CPU, and whether the kernel took it from a thread.
#[derive(Debug)]
pub(super) struct Place {
    cpu: Cpu,
    is_lost: AtomicBool,
}

impl Place {
    pub(super) fn new(cpu: Cpu) -> Place {
        let is_lost = AtomicBool::new(false);
        Place { cpu, is_lost }
    }

    /// Whether this thread is there; if not, the place is lost from now on.
    pub(super) fn is_here(&self) -> bool {
        let is_here = task::is_on(self.cpu);
        if !is_here {
            self.is_lost.store(true, Ordering::Release);
        }
        is_here
    }

    /// Whether a thread found itself elsewhere.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// The CPU, when it is lost.
    pub(super) fn lost_cpu(&self) -> Option<Cpu> {
        self.is_lost().then_some(self.cpu)
    }
}
