//! Gaps: moments in which a thread that never sleeps did not run. What hwlatdetect and oslat look
//! for, from user space and on any kernel.
//!
//! A thread on each CPU reads a counter again and again; two readings further apart than the
//! threshold are a gap. It loops for a part of each window, so that the machine goes on. Who took
//! the CPU is for the kernel's events to say; what they do not explain is the hardware's, the
//! firmware's or the hypervisor's.

mod reading;
mod spin;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use event::{Duration, Error, ErrorKind, Result};

pub use reading::{Plan, Reading};

use crate::worker;

/// Threads that look for gaps.
#[derive(Debug)]
pub struct Run {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Option<Reading>>>,
}

impl Run {
    /// Starts a thread for each CPU, and waits until each is what it is to be.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when a window is shorter than what is looped of it; else what
    /// keeps a thread from its CPU or its priority.
    pub fn start(plan: &Plan) -> Result<Run> {
        if plan.width > plan.window || plan.width <= Duration::ZERO {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "nobody can loop for longer than a window",
            )
            .found(format!("{} of {}", plan.width, plan.window))
            .fix("choose a --width of at most --window"));
        }
        let mut run = Run {
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::with_capacity(plan.cpus.len()),
        };
        for &cpu in &plan.cpus {
            let looker = spin::Looker::new(cpu, plan, &run.stop);
            let name = format!("rtscope-gap{}", cpu.0);
            let look = move || looker.look();
            let (_, thread) = worker::start(name, Some(cpu), plan.policy, look)?;
            run.threads.push(thread);
        }
        Ok(run)
    }

    /// Whether every thread has ended, which is before its time.
    pub fn is_over(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Ends all threads and gives what they found.
    ///
    /// # Errors
    /// When one of them panicked.
    pub fn finish(mut self) -> Result<Vec<Reading>> {
        self.end();
        let threads = std::mem::take(&mut self.threads).into_iter();
        // Everybody is joined before the first error is told.
        let readings: Vec<_> = threads.map(JoinHandle::join).collect();
        let reading = |found: std::thread::Result<Option<Reading>>| {
            let found = found.ok().flatten();
            found.ok_or_else(|| Error::new(ErrorKind::Io, "a measuring thread panicked"))
        };
        readings.into_iter().map(reading).collect()
    }

    fn end(&self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end();
    }
}
