//! What to measure, and what was found.

use std::sync::Arc;

use event::{Cpu, Duration, Tid};
use host::clock::Clock;
use host::task::Policy;

use super::mark::TraceMark;
use super::phases::{PhaseFigures, PhaseSource};
use crate::histogram::Histogram;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The threads.
    pub threads: Vec<ThreadPlan>,
    /// The clock that they sleep on.
    pub clock: Clock,
    /// Each thread ends after so many samples; none for until told.
    pub samples: Option<u64>,
    /// All end when a sample is longer than this.
    pub break_over: Option<Duration>,
    /// The width of a bucket of the histograms.
    pub bucket: Duration,
    /// How many buckets there are.
    pub buckets: usize,
    /// Of so many samples beyond the last bucket the numbers are kept.
    pub overflows_named: usize,
    /// When the threads begin.
    pub begin: Begin,
    /// The first sample that a thread has this long after its begin is the last of all.
    pub sampled_for: Option<Duration>,
    /// How the threads sleep.
    pub sleep: Sleep,
    /// Each thread keeps so many of its newest samples for [`super::Run::newest`]; zero for none.
    pub kept: usize,
    /// Only of those that are longer than this.
    pub kept_over: Option<Duration>,
    /// What all threads are called; else each has a name of ours with its number.
    pub called: Option<&'static str>,
    /// What the sample that ends the measurement is marked with in the kernel's own trace.
    pub mark: Option<Arc<TraceMark>>,
    /// Who knows what the kernel did, when samples are to be split into phases.
    pub phases: Option<Arc<dyn PhaseSource>>,
}

/// When the threads of a measurement begin: at a common instant, soon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// That instant is the begin of a second.
    pub at_second: bool,
    /// All begin so long after it.
    pub after: Duration,
    /// Each thread begins so long after the one before.
    pub apart: Duration,
    /// The first sample is due an interval after a thread's begin, else at it.
    pub with_interval: bool,
}

/// How a thread sleeps from one instant to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sleep {
    /// Until the instant.
    #[default]
    Until,
    /// For the interval, counted from whenever it goes to sleep.
    For,
    /// Until the signal of a timer of its own.
    Timer,
}

/// One sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its number, from zero.
    pub number: u64,
    /// How late it was.
    pub latency: Duration,
    /// When the thread ran, on the clock that it slept on.
    pub at_ns: i64,
}

/// One thread of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPlan {
    /// Where it stays; none for wherever the scheduler puts it.
    pub cpu: Option<Cpu>,
    /// How it is scheduled.
    pub policy: Policy,
    /// From one instant to the next.
    pub interval: Duration,
}

/// What a thread has found so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The thread, as the kernel calls it.
    pub tid: Tid,
    /// What it was asked to do.
    pub plan: ThreadPlan,
    /// From each instant to the moment when the thread ran, seen by itself.
    pub latency: Histogram,
    /// Instants that had passed before the thread could sleep towards them.
    pub missed: u64,
    /// Sleeps over which the clock was set: no samples.
    pub unmeasured: u64,
    /// Whether its CPU was taken from it, by hotplug or by a control group; it ended then.
    pub lost_cpu: bool,
    /// The samples split into phases, when that was asked.
    pub phases: Option<PhaseFigures>,
}

/// A sample that ended the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Break {
    /// Which of the threads, in the order of the plan.
    pub thread: usize,
    /// The number of the sample, counted from zero.
    pub sample: u64,
    /// How late it was.
    pub latency: Duration,
}
