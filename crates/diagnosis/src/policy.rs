//! Policies that no priority shows: SCHED_BATCH and SCHED_IDLE have one as all fair tasks do.

use event::Tid;
use event::evidence::Role;

use crate::model::Model;

/// SCHED_BATCH and SCHED_IDLE, as the kernel numbers them.
const BATCH: u32 = 3;
const IDLE: u32 = 5;

/// A policy of fair tasks beside the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FairPolicy {
    /// It never preempts whoever runs.
    Batch,
    /// It runs where others leave the CPU, whatever its nice value.
    Idle,
}

impl FairPolicy {
    /// That of a late task, as the watch last saw it.
    pub fn of(model: &Model, tid: Tid) -> Option<FairPolicy> {
        let mut seen = model.evidence.moments.iter().rev();
        let last = seen.find(|moment| moment.role == Role::Target && moment.task.tid == tid)?;
        match last.policy {
            BATCH => Some(FairPolicy::Batch),
            IDLE => Some(FairPolicy::Idle),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            FairPolicy::Batch => "SCHED_BATCH",
            FairPolicy::Idle => "SCHED_IDLE",
        }
    }
}
