//! A measurement that rests while something else has its CPUs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Thread;

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
        self.shared.rests.begin();
        self.shared.gate.lend();
        let rests = |(_, figures): &(_, Arc<Figures>)| figures.rests.load(Ordering::SeqCst);
        while !self.threads.iter().all(rests) {
            std::thread::sleep(LOOK_INTERVAL);
        }
        let done = work();
        self.shared.rests.end();
        self.shared.gate.take_back(self.shared.first_instant_ns());
        self.wake();
        done
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
