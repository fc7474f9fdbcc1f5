//! The lines of a measurement's file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Portion;

/// Its form.
pub const SCHEMA: &str = "rtscope.eval.intervals";
/// And the version of that.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// The first: what was asked, and of which machine.
    Head(Head),
    /// A run begins, or goes on.
    Begin(Begin),
    /// What was measured before anything was explained.
    Plain(Plain),
    /// An interval closed.
    Interval(Interval),
    /// The run ended by itself.
    End {
        /// Whether it measured for as long as was asked.
        complete: bool,
    },
}

/// What a run that goes on must have in common with those before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// The words of its command line that say what is measured.
    pub command: Vec<String>,
    /// Machine, kernel, program and budget by their names.
    pub same: BTreeMap<String, String>,
}

/// When and where a run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// In nanoseconds since 1970.
    pub at_wall_ns: i64,
    /// The start of the machine (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// For how long that had run (CLOCK_BOOTTIME), which nobody sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_boot_ns: Option<i64>,
}

/// What was measured before anything was explained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plain {
    /// For how long.
    pub elapsed_ns: i64,
    /// By each thread.
    pub threads: Vec<ThreadPortion>,
    /// Samples over the limit.
    pub excursions: Vec<Excursion>,
    /// How many more there were.
    pub excursions_left_out: u64,
}

/// What an interval brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, in nanoseconds since 1970.
    pub from_wall_ns: i64,
    /// When it ended.
    pub until_wall_ns: i64,
    /// For how long the machine had run when it ended (CLOCK_BOOTTIME).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_boot_ns: Option<i64>,
    /// When the wall clock was set meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock_set: Vec<ClockSet>,
    /// For how long it was measured.
    pub elapsed_ns: i64,
    /// By each thread.
    pub threads: Vec<ThreadPortion>,
    /// Samples over the limit: the longest of the interval.
    pub excursions: Vec<Excursion>,
    /// How many more there were.
    pub excursions_left_out: u64,
    /// The loads of this run until then.
    pub loads: Vec<LoadState>,
    /// By an application in the place of the threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadPortion>,
}

/// The wall clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSet {
    /// What it showed then, in nanoseconds since 1970.
    pub at_wall_ns: i64,
    /// By how much, forwards or (negative) backwards.
    pub by_ns: i64,
}

/// What an application did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadPortion {
    /// Its activations that were judged.
    pub judged: u64,
    /// Pairs of a bucket of the kernel's histogram and how many of these are in it.
    pub buckets: Vec<(u16, u64)>,
    /// The longest of this run until then.
    pub longest_ns: Option<i64>,
    /// Activations over the threshold.
    pub late: u64,
    /// Hits that were lost.
    pub lost: u64,
    /// How often it said itself that it was late.
    pub said_late: u64,
    /// Activations that may have been over the threshold and are not known.
    pub unseen: u64,
}

/// What a thread gained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadPortion {
    /// Its samples.
    pub latency: Portion,
    /// Instants that had passed before it could sleep towards them.
    pub missed: u64,
    /// Whether its CPU was taken from it by then.
    pub lost_cpu: bool,
}

/// A sample over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excursion {
    /// The thread's place in the plan.
    pub thread: usize,
    /// When the thread ran at last, in nanoseconds since 1970.
    pub at_wall_ns: i64,
    /// How late that was.
    pub latency_ns: i64,
}

/// What a load was until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadState {
    /// Which one.
    pub name: String,
    /// As [`crate::load::State::name`] has it.
    pub state: String,
    /// Why it was none.
    pub why: Option<String>,
}
