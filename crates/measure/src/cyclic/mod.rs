//! Threads that sleep until an instant and note how late they run: what cyclictest measures.
//!
//! [`Run::start`] makes the threads; they count from one common instant, so that what they do to
//! each other is the same in every run. [`Run::read`] looks at their figures while they go on,
//! a [`Pauser`] lets them rest while something else has their CPUs, [`Run::finish`] ends them.
//!
//! # Design constraints
//! - The thread's loop is its sleep, one clock read, a look at where it runs and
//!   [`crate::histogram::Recorder::add`].
//!   On a clock that can be set, it also looks whether it was.
//! - An instant that has passed already is skipped and counted, not made up for: a thread that is
//!   late by three periods is late once.
//! - What is no lateness is no sample: a sleep over which the clock was set, and whatever a thread
//!   does on another CPU once its own has gone.

mod gate;
mod mark;
mod measured;
mod newest;
mod pause;
mod phases;
mod plan;
mod shared;
mod sleep;
mod thread;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use event::{Duration, Error, ErrorKind, Instant, Result, Tid};

pub use mark::TraceMark;
pub use pause::Pauser;
pub use phases::{PHASES, PhaseFigures, PhaseSource, Stamps};
pub use plan::{Begin, Break, Plan, Reading, Sample, Sleep, ThreadPlan};

use self::gate::Gate;
use self::shared::{Figures, Running, Shared};
use crate::nudge;
use host::clock::Clock;

/// From the last thread's readiness to the first instant: everybody sleeps by then.
const LEAD_NS: i64 = 20_000_000;
/// How often we look whether the threads have ended.
const END_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);

/// A measurement that goes on.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    threads: Vec<Running>,
    begin: Begin,
}

/// Reads the figures of a measurement that goes on, or has ended.
#[derive(Clone, Debug)]
pub struct Reader(Vec<(Tid, ThreadPlan, Arc<Figures>)>);

impl Run {
    /// Starts all threads, and lets them measure once each is what it is to be.
    ///
    /// # Errors
    /// As [`Run::hold`].
    pub fn start(plan: &Plan) -> Result<Run> {
        let run = Run::hold(plan)?;
        run.go();
        Ok(run)
    }

    /// Starts all threads, and waits until each is what it is to be: they rest until
    /// [`Run::go`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a plan without threads or with an interval that the clock
    /// cannot tell from zero; else what kept a thread from its priority or its CPU. No thread is
    /// left then.
    pub fn hold(plan: &Plan) -> Result<Run> {
        check(plan)?;
        nudge::prepare();
        let shared = Arc::new(Shared {
            clock: plan.clock,
            samples: plan.samples,
            break_over_ns: plan.break_over.map_or(i64::MAX, Duration::as_ns),
            kept_over_ns: plan.kept_over.map_or(i64::MIN, Duration::as_ns),
            gate: Gate::default(),
            measured: measured::Measured::default(),
            broken: OnceLock::new(),
            mark: plan.mark.clone(),
        });
        let mut run = Run {
            shared,
            threads: Vec::with_capacity(plan.threads.len()),
            begin: plan.begin,
        };
        for (number, one) in plan.threads.iter().enumerate() {
            match thread::start(number, one, plan, &run.shared) {
                Ok(running) => run.threads.push(running),
                Err(error) => {
                    run.end();
                    return Err(error);
                }
            }
        }
        Ok(run)
    }

    /// Lets the threads measure from a common instant on, unless they do.
    pub fn go(&self) {
        let mut begin_ns = self.shared.first_instant_ns();
        if self.begin.at_second {
            begin_ns = (begin_ns / 1_000_000_000 + 1) * 1_000_000_000;
        }
        begin_ns += self.begin.after.as_ns();
        if self.shared.gate.open(begin_ns) {
            self.shared.measured.begin();
        }
        self.wake();
    }

    fn wake(&self) {
        for running in &self.threads {
            running.thread.thread().unpark();
        }
    }

    /// Who lets the threads rest, from another thread.
    pub fn pauser(&self) -> Pauser {
        let one = |running: &Running| {
            let handle = running.thread.thread().clone();
            (handle, running.figures.clone())
        };
        Pauser::new(&self.shared, self.threads.iter().map(one).collect())
    }

    /// For how long the threads have measured until now, without their rests.
    pub fn measured(&self) -> Duration {
        let figures = self.threads.iter().map(|running| &running.figures);
        self.shared.measured.so_far(Figures::ended(figures))
    }

    /// When the thread of this number had its last sample; none while it goes on.
    pub fn ended_of(&self, tid: Tid) -> Option<Instant> {
        let mut threads = self.threads.iter();
        let running = threads.find(|running| running.tid == tid)?;
        Figures::ended(std::iter::once(&running.figures))
    }

    /// The threads, in the order of the plan.
    pub fn tids(&self) -> Vec<Tid> {
        self.threads.iter().map(|running| running.tid).collect()
    }

    /// Whether every thread has ended by itself.
    pub fn is_over(&self) -> bool {
        let mut threads = self.threads.iter();
        threads.all(|running| running.thread.is_finished())
    }

    /// Whether one of the threads has all of its samples.
    pub fn has_one_done(&self) -> bool {
        self.threads.iter().any(|running| {
            let lost_cpu = running.figures.lost_cpu.load(Ordering::Relaxed);
            running.thread.is_finished() && !lost_cpu
        })
    }

    /// The clock that the threads sleep on.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// The sample that ended it, when one did.
    pub fn broken(&self) -> Option<Break> {
        self.shared.broken.get().copied()
    }

    /// What every thread has found so far; it does not notice.
    pub fn read(&self) -> Vec<Reading> {
        self.reader().read()
    }

    /// The samples that thread `place` of the plan kept, from number `from` on.
    pub fn newest(&self, place: usize, from: u64) -> Vec<Sample> {
        let running = self.threads.get(place);
        running.map_or_else(Vec::new, |running| running.figures.newest.read(from))
    }

    /// Who reads that from another thread.
    pub fn reader(&self) -> Reader {
        let one = |running: &Running| {
            let (plan, figures) = (running.plan.clone(), running.figures.clone());
            (running.tid, plan, figures)
        };
        Reader(self.threads.iter().map(one).collect())
    }

    /// Has the threads sleep towards new instants: the clock was set, and where it was set back the
    /// old ones lie far ahead.
    pub fn begin_anew(&self) {
        for running in &self.threads {
            nudge::nudge(&running.thread);
        }
    }

    /// Ends all threads, in their sleep: what they kept can be read to its end then.
    pub fn stop(&self) {
        self.end();
    }

    /// The same, and gives what they found.
    pub fn finish(mut self) -> Vec<Reading> {
        self.end();
        let threads = std::mem::take(&mut self.threads);
        let end = |running: Running| {
            // A panic there is a defect here, and its figures are whole all the same.
            running.thread.join().ok();
            running.figures.read(running.tid, running.plan)
        };
        threads.into_iter().map(end).collect()
    }

    /// Returns when no thread runs any more.
    fn end(&self) {
        self.shared.gate.close();
        self.wake();
        let ended = |running: &Running| running.thread.is_finished();
        while !self.threads.iter().all(ended) {
            // One that was about to sleep did not notice: again.
            self.begin_anew();
            std::thread::sleep(END_INTERVAL);
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// An instant at which everybody who is woken now sleeps again.
    fn first_instant_ns(&self) -> i64 {
        self.clock.now_ns() + LEAD_NS
    }
}

impl Reader {
    /// Whether a thread has a sample.
    pub fn has_begun(&self) -> bool {
        let mut threads = self.0.iter();
        threads.any(|(_, _, figures)| !figures.latency.is_empty())
    }

    /// As [`Run::newest`].
    pub fn newest(&self, place: usize, from: u64) -> Vec<Sample> {
        let thread = self.0.get(place);
        thread.map_or_else(Vec::new, |(_, _, figures)| figures.newest.read(from))
    }

    /// What every thread has found so far; it does not notice.
    pub fn read(&self) -> Vec<Reading> {
        let one = |(tid, plan, figures): &(Tid, ThreadPlan, Arc<Figures>)| {
            figures.read(*tid, plan.clone())
        };
        self.0.iter().map(one).collect()
    }
}

fn check(plan: &Plan) -> Result<()> {
    if plan.threads.is_empty() {
        return Err(
            Error::new(ErrorKind::InvalidInput, "no thread to measure with")
                .fix("name a CPU that is on, as in --cpu 0"),
        );
    }
    if plan.phases.is_some() && plan.clock != Clock::Monotonic {
        let what = "phases are known on the clock of the kernel's own instants alone";
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found(format!("the clock {}", plan.clock.name()))
            .fix("choose --clock monotonic, or go without --phases"));
    }
    let intervals = plan.threads.iter().map(|thread| thread.interval);
    intervals
        .min()
        .map_or(Ok(()), |shortest| plan.clock.check_interval(shortest))
}
