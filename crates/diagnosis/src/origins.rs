//! Since when activations are late that others handed on, without their ledgers: for budgets, which
//! judge the lengths of all.

use event::{Duration, Instant, Result, Tid, TimeRange};
use kernel_state::TaskFilter;
use trace::Trace;

use crate::model::Model;
use crate::query::{Query, Until};

/// An activation that began before its own wake-up, and not with the timer that ended its sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whose it was.
    pub tid: Tid,
    /// When what led to it began.
    pub begin: Instant,
    /// When it would have begun, had it been woken by the task that had the CPU then: nobody knows.
    /// The same as `begin` where that is no question.
    pub seems: Instant,
    /// When it ended: where its work was done, or the trace.
    pub end: Instant,
}

/// The origins of the activations of these tasks, in the order in which each task's ended; of what
/// ends before `until`, by the rules by which [`crate::diagnose`] finds what is late by `limit`.
///
/// # Errors
/// The trace cannot be read, or is of several machines.
pub fn origins(
    trace: &Trace,
    tasks: TaskFilter,
    limit: Duration,
    until: Instant,
) -> Result<Vec<Origin>> {
    Model::origins(
        trace,
        &Query {
            tasks,
            until: Until::Block,
            threshold: Some(limit),
            worst: 1,
            range: TimeRange {
                begin: Instant::MIN,
                end: until,
            },
            ..Query::default()
        },
    )
}
