//! What the trackers of the kernel measure: intervals, each with whoever was in it.

use super::TaskRef;
use super::stack::{Stack, symbolise};
use crate::{Cpu, Duration, Instant};

/// One interval that a tracker measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// When it began.
    pub begin: Instant,
    /// When it ended, or when it was looked at.
    pub end: Instant,
    /// What it was about, as a number that the tracker chose: a call, an interrupt, a function.
    pub key: u64,
    /// Tells equal keys apart: a process, for addresses.
    pub group: u32,
    /// One more number of the tracker's own: a result, a sector, a tid.
    pub detail: u64,
    /// And another one: a port.
    pub more: u16,
    /// Where it ended.
    pub cpu: Cpu,
    /// Which of the tracker's intervals it is.
    pub series: usize,
    /// It had not ended when it was looked at.
    pub is_open: bool,
    /// Whose it is.
    pub task: Option<TaskRef>,
    /// Who ended it, or was in its way.
    pub other: Option<TaskRef>,
    /// A name that came with it; may be empty.
    pub label: String,
}

impl Tracked {
    /// How long it took, or has taken so far.
    pub fn duration(&self) -> Duration {
        self.end - self.begin
    }
}

/// An interval that a tracker reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedHit {
    /// The interval.
    pub tracked: Tracked,
    /// Where its task waited or was interrupted; may be empty.
    pub stack: Stack,
    /// Where the other one was; may be empty.
    pub other_stack: Stack,
}

impl TrackedHit {
    /// Names the functions of its stacks.
    pub fn symbolise(&mut self, name: impl Fn(u64) -> String) {
        symbolise(&mut self.stack, &name);
        symbolise(&mut self.other_stack, &name);
    }
}
