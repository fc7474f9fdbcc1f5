//! What to measure, and what was found.

use std::sync::Arc;

use event::{Cpu, Duration, Tid};
use host::clock::Clock;
use host::task::Policy;

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
    /// The first instant is a multiple of a second, each thread this much after the one before.
    pub aligned: Option<Duration>,
    /// Who knows what the kernel did, when samples are to be split into phases.
    pub phases: Option<Arc<dyn PhaseSource>>,
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
