//! What was found for one budget.

use std::collections::BTreeMap;

use event::TimeRange;

use super::rules::Budget;

/// What a trace says about a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It holds.
    Held,
    /// It does not.
    Broken,
    /// The trace does not carry a statement, and why.
    Inconclusive(String),
}

/// What was found for one budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetFinding {
    /// The budget.
    pub budget: Budget,
    /// The judgement.
    pub judgement: Judgement,
    /// Samples that count.
    pub samples: u64,
    /// Of these, how many were over the limit.
    pub over: u64,
    /// Samples that do not count because events are missing in them.
    pub unsure: u64,
    /// Others whose end was not recorded, but is known to have come within the limit.
    pub within: u64,
    /// Samples that the trace's end cuts off before their limit.
    pub open: u64,
    /// Activations that do not count because they began before the trace.
    pub unseen: u64,
    /// Others whose wake-up was not recorded: nobody knows how long they took.
    pub unwoken: u64,
    /// Of `unsure` those whose thread was stopped, perhaps before it was due.
    pub stopped: u64,
    /// Samples that are over only if the task that had the CPU woke their thread: nobody knows.
    pub unknown_wakers: u64,
    /// Start-ups of threads, up to the first sleep, that took longer than the limit: a response is
    /// judged to the switch-in there.
    pub long_start_ups: u64,
    /// Those of them that did not end with a sleep: of such a thread no work is judged, only waits.
    pub unslept: u64,
    /// Releases of their timers that passed in samples that are over, and were served over the
    /// limit later: each was a job of its own, which has no sample.
    pub passed: u64,
    /// Others that are over, of threads that were meant by a name and are called otherwise by then.
    pub renamed: u64,
    /// The threads whose samples count, by id.
    pub threads: BTreeMap<i32, String>,
    /// The longest sample that counts.
    pub worst: Option<TimeRange>,
    /// Sleeps for locks of programs are told from the end of work.
    pub locks_known: bool,
    /// What cannot be told from the end of the work, of responses.
    pub inside: Option<SleepsInside>,
}

/// Threads that their own timers wake steadily slept in between for what others did: where such a
/// sleep is inside of the work, that took longer than any sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SleepsInside {
    /// Cycles in which they did.
    pub cycles: u64,
    /// How often they did.
    pub sleeps: u64,
    /// The longest of these cycles: from the timer to the end of the last work before the next.
    pub worst: TimeRange,
    /// How many of them are longer than the limit.
    pub over: u64,
}
