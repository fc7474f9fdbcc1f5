//! How a late task stands to those that were asked for, and to the others of its process.

use event::evidence::{Kin, StepKind, TaskRef};

use crate::finding::{Culprit, LateActivation};
use crate::model::Model;
use crate::term::TermKind;

/// Whether the late task is not real-time, and other threads of its process are: nobody waits for
/// such a thread to be in time.
pub(crate) fn is_ordinary(model: &Model, late: &LateActivation) -> bool {
    let task = &late.task;
    if task.prio.is_real_time() {
        return false;
    }
    if late.hit.as_ref().is_some_and(|hit| hit.ordinary) {
        return true;
    }
    let Some(process) = model.tasks.process_of(task.tid.0) else {
        return false;
    };
    // A priority that was lent makes nobody a real-time thread.
    let is_lent = |one: &TaskRef| model.boosts.iter().any(|boost| boost.owner == one.tid.0);
    model.tasks.known().any(|one| {
        one.prio.is_real_time()
            && one.tid != task.tid
            && model.tasks.process_of(one.tid.0) == Some(process)
            && !is_lent(&one)
    })
}

/// Whether a cause is that a real-time task went before.
pub(crate) fn is_real_times(culprit: &Culprit) -> bool {
    match &culprit.kind {
        TermKind::RunQueueWait { behind } | TermKind::PriorityInversion { behind, .. } => {
            behind.prio.is_real_time()
        }
        TermKind::InterruptsOff { task, .. } | TermKind::PreemptionOff { task, .. } => {
            task.prio.is_real_time()
        }
        _ => false,
    }
}

/// What a reader has to know of a late task beside its name, id and priority; empty for most.
pub(crate) fn remark(model: &Model, late: &LateActivation) -> String {
    let kin = late.hit.as_ref().map_or(Kin::Asked, |hit| hit.kin);
    match kin {
        Kin::Asked if is_ordinary(model, late) => {
            ", an ordinary thread beside real-time ones".to_owned()
        }
        Kin::Asked => String::new(),
        Kin::Near | Kin::Stranger => waker(late),
    }
}

/// Who woke the late task, which nobody asked for.
fn waker(late: &LateActivation) -> String {
    let own = late.task.tid.0;
    let steps = late.hit.as_ref().map_or(&late.steps, |hit| &hit.steps);
    let woken = steps
        .iter()
        .rposition(|step| step.kind == StepKind::Waking && step.id == own);
    let before = &steps[..woken.unwrap_or(0)];
    let is_other = |step: &&event::evidence::Step| {
        step.kind == StepKind::SwitchIn && step.id != own && step.id > 0
    };
    match before.iter().rfind(is_other) {
        Some(waker) => format!(", woken by {}", waker.comm),
        None => ", not asked for".to_owned(),
    }
}

/// A sentence more where an ordinary thread waited for real-time tasks.
pub(crate) fn as_it_should(model: &Model, late: &LateActivation, culprits: &[Culprit]) -> String {
    let waits = is_ordinary(model, late) && culprits.iter().any(is_real_times);
    match waits {
        true => " Real-time tasks go before such a thread, as they should.".to_owned(),
        false => String::new(),
    }
}
