//! A real-time task that is made late once, on cue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// What a watch looks for.
pub const VICTIM_NAME: &str = "bench-victim";
/// Between the victim's period and the hog's run.
pub const THRESHOLD: &str = "10ms";
const HOG_NAME: &str = "bench-hog";
const VICTIM_PRIO: i32 = 10;
const HOG_PRIO: i32 = 20;
const PERIOD: Duration = Duration::from_millis(5);
const HOG_RUN: Duration = Duration::from_millis(30);

/// The victim and the hog, on the last CPU; both end with this.
pub struct LateTask {
    stop: Arc<AtomicBool>,
    cue: Option<Sender<()>>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl LateTask {
    /// Starts both; nothing is late yet.
    ///
    /// # Errors
    /// When a thread cannot be started, or cannot become a real-time task.
    pub fn start() -> Result<LateTask> {
        let stop = Arc::new(AtomicBool::new(false));
        let (cue, cued) = channel();
        let seen = Arc::clone(&stop);
        let (ready, started) = channel();
        let victim = std::thread::Builder::new()
            .name(VICTIM_NAME.into())
            .spawn(move || {
                become_real_time(VICTIM_PRIO)?;
                // Nobody listens any more where the experiment failed to start.
                ready.send(()).ok();
                while !seen.load(Ordering::Relaxed) {
                    std::thread::sleep(PERIOD);
                }
                Ok(())
            })?;
        let hog = std::thread::Builder::new()
            .name(HOG_NAME.into())
            .spawn(move || {
                become_real_time(HOG_PRIO)?;
                while cued.recv().is_ok() {
                    let begin = Instant::now();
                    while begin.elapsed() < HOG_RUN {
                        std::hint::spin_loop();
                    }
                }
                Ok(())
            })?;
        let experiment = LateTask {
            stop,
            cue: Some(cue),
            threads: vec![victim, hog],
        };
        if started.recv().is_err() {
            experiment.finish()?;
            bail!("the victim did not start");
        }
        Ok(experiment)
    }

    /// Makes the victim late now.
    ///
    /// # Errors
    /// When the hog could not become a real-time task.
    pub fn provoke(&self) -> Result<()> {
        let cue = self.cue.as_ref().context("the hog has ended")?;
        cue.send(()).context("the hog has ended")
    }

    /// Ends both.
    ///
    /// # Errors
    /// Why one of them could not do its part.
    pub fn finish(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.cue = None;
        for thread in self.threads.drain(..) {
            let Ok(ended) = thread.join() else {
                bail!("a thread of the experiment panicked");
            };
            ended?;
        }
        Ok(())
    }
}

/// Puts this thread on the last CPU as SCHED_FIFO.
///
/// # Errors
/// When it may not.
pub fn become_real_time(prio: i32) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    // SAFETY: all zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is far below the size of the set, which refuses others.
    unsafe { libc::CPU_SET(cpus - 1, &mut set) };
    // SAFETY: the kernel only reads the set, during the call.
    if unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } != 0 {
        return Err(std::io::Error::last_os_error()).context("cannot stay on a CPU");
    }
    let param = libc::sched_param {
        sched_priority: prio,
    };
    // SAFETY: the kernel only reads the structure, during the call.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) } != 0 {
        return Err(std::io::Error::last_os_error()).context("cannot become a real-time task");
    }
    Ok(())
}
