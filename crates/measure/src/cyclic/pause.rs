//! A measurement that rests while something else has its CPUs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Thread;

use event::{Duration, Instant};

use super::shared::{Figures, Shared};

/// How often we look whether everybody rests.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);

/// Lets the threads of a measurement rest.
#[derive(Debug)]
pub struct Pauser {
    shared: Arc<Shared>,
    threads: Vec<(Thread, Arc<Figures>)>,
}

impl Pauser {
    pub(super) fn new(shared: &Arc<Shared>, threads: Vec<(Thread, Arc<Figures>)>) -> Pauser {
        Pauser {
            shared: shared.clone(),
            threads,
        }
    }

    /// Does `work` while the threads rest, each after its present sleep. They go on from a new
    /// common instant then, unless they were ended meanwhile; who had not begun does so then, if
    /// that was asked meanwhile.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.shared.gate.lend();
        let rests = |(_, figures): &(_, Arc<Figures>)| figures.rests.load(Ordering::SeqCst);
        while !self.threads.iter().all(rests) {
            std::thread::sleep(LOOK_INTERVAL);
        }
        self.shared.measured.end(self.ended());
        let done = work();
        if self.shared.gate.take_back(self.shared.first_instant_ns()) {
            self.shared.measured.begin();
        }
        self.wake();
        done
    }

    /// As [`super::Run::measured`].
    pub fn measured(&self) -> Duration {
        self.shared.measured.so_far(self.ended())
    }

    /// Whether every thread has ended.
    pub fn has_ended(&self) -> bool {
        self.ended().is_some()
    }

    /// When the last thread ended; none while one goes on.
    fn ended(&self) -> Option<Instant> {
        Figures::ended(self.threads.iter().map(|(_, figures)| figures))
    }

    /// Ends the measurement.
    pub fn end(&self) {
        self.shared.gate.close();
        self.wake();
    }

    fn wake(&self) {
        self.threads.iter().for_each(|(thread, _)| thread.unpark());
    }
}
