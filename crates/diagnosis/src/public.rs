//! From the ledger's keys to its public names, with the functions that stacks show.

use event::evidence::{Hit, PreemptionModel, PreemptionOff, StepKind, TaskRef};
use event::{Duration, Tid};

use crate::model::{Model, VersionId};
use crate::naming::{Key, SKEW_MAX_NS};
use crate::stacks::{
    interrupted_function, section_function, section_that_ended, was_interrupted, was_preempted,
};
use crate::term::{Reason, TermKind};

/// The public name; `target` is the tid whose activation it is.
pub(crate) fn public(
    model: &Model,
    key: Key,
    target: i32,
    preemption: PreemptionModel,
) -> TermKind {
    let task = |id: u32| {
        let version = model.tasks.version(VersionId(id));
        version.map(crate::model::Version::task_ref)
    };
    match key {
        Key::InterruptsOff(place) => interrupts_off(model, place),
        Key::Hardirq(irq) => TermKind::Hardirq {
            irq,
            name: model.irq_name(irq),
        },
        Key::Softirq(vector) => TermKind::Softirq { vector },
        Key::Ran(id) => match task(id) {
            Some(task) if task.tid.0 == target => TermKind::OwnRun,
            Some(task) => TermKind::Upstream { task },
            None => unknown(),
        },
        Key::Wait(id) => task(id).map_or_else(unknown, |behind| TermKind::RunQueueWait { behind }),
        Key::Stop(id) => task(id).map_or_else(unknown, |task| TermKind::StopClass { task }),
        Key::PreemptionOff(id, place) => {
            let off = place.and_then(|place| model.evidence.preemption_off.get(place));
            let preemption = off.map_or(preemption, |off| off.model.or(preemption));
            let function = off.and_then(|off| off_function(model, off, preemption));
            kept_by(task(id), function, preemption)
        }
        Key::Kept(id, hit) => {
            let (hit, task) = (model.evidence.hits.get(hit), task(id));
            let function = hit
                .zip(task.as_ref())
                .and_then(|(hit, task)| kept_function(model, hit, task.tid, preemption));
            kept_by(task, function, preemption)
        }
        Key::Throttled(id) => TermKind::Throttled {
            ran: id.and_then(task),
            served: false,
        },
        Key::Served(id) => TermKind::Throttled {
            ran: task(id),
            served: true,
        },
        Key::RuntimeUsedUp(tid) => runtime_used_up(model, tid),
        Key::Quota(tid) => TermKind::Quota {
            of: called_last(model, tid).filter(|_| tid != target),
        },
        Key::Weight(tid) => TermKind::GroupWeight {
            of: called_last(model, tid).filter(|_| tid != target),
        },
        Key::Stopped(place) => {
            let stop = model.evidence.stopped.get(place);
            stop.map_or_else(unknown, |stop| TermKind::Stopped {
                how: stop.how,
                signal: stop.signal,
                by: stop.by.clone(),
            })
        }
        Key::LockWait(id, halted) => {
            task(id).map_or_else(unknown, |owner| TermKind::LockWait { owner, halted })
        }
        Key::Inversion(owner, behind) => match (task(owner), task(behind)) {
            (Some(owner), Some(behind)) => TermKind::PriorityInversion { owner, behind },
            _ => unknown(),
        },
        other => of_nobody(other),
    }
}

/// The function that kept interrupts off until the late timer's interrupt of this place.
fn interrupts_off(model: &Model, place: usize) -> TermKind {
    let late = model.evidence.late_timers.get(place);
    let named = late.and_then(|late| Some((section_function(&late.stack)?, &late.interrupted)));
    named.map_or_else(unknown, |(function, task)| TermKind::InterruptsOff {
        function: function.to_owned(),
        task: task.clone(),
    })
}

/// A task as it is called last.
pub(crate) fn called_last(model: &Model, tid: i32) -> Option<TaskRef> {
    let known = model.tasks.find(tid, 0)?;
    let version = model.tasks.states[known.0 as usize].version;
    model
        .tasks
        .version(version)
        .map(crate::model::Version::task_ref)
}

/// A task of SCHED_DEADLINE has used up its runtime.
fn runtime_used_up(model: &Model, tid: i32) -> TermKind {
    called_last(model, tid).map_or_else(unknown, |task| TermKind::RuntimeUsedUp { task })
}

/// The public name of what names no task.
fn of_nobody(key: Key) -> TermKind {
    match key {
        Key::IdleExit => TermKind::IdleExit,
        Key::Steal => TermKind::Steal,
        Key::Nmi => TermKind::Nmi,
        Key::Delivery => TermKind::WakeupDelivery,
        Key::Slack => TermKind::TimerSlack,
        Key::ClockSet(ns) => TermKind::ClockSet {
            by: Duration::from_ns(ns),
        },
        Key::OwnCost => TermKind::OwnCost,
        Key::Io => TermKind::BlockIo,
        Key::PageFault => TermKind::PageFault,
        Key::Reclaim(short) => TermKind::Reclaim { short },
        Key::Migration => TermKind::Migration,
        Key::Switch => TermKind::Switch,
        Key::Unexplained(reason) => TermKind::Unexplained(reason),
        // Settled before, never left; the others have a task.
        _ => unknown(),
    }
}

fn kept_by(task: Option<TaskRef>, function: Option<&str>, model: PreemptionModel) -> TermKind {
    let function = function.map(str::to_owned);
    task.map_or_else(unknown, |task| TermKind::PreemptionOff {
        task,
        function,
        model,
    })
}

fn unknown() -> TermKind {
    TermKind::Unexplained(Reason::Contradiction)
}

/// The function in which `task` kept the CPU before `hit`. With full preemption, it is preempted
/// where its section ends. Without, it is at the next preemption point, which may be far from what
/// took the time: then the function that the wake-up's interrupt found says more. So it does where
/// another task, such as a stop-class thread, came between: the stack at the hit is that one's.
pub(crate) fn kept_function<'a>(
    model: &Model,
    hit: &'a Hit,
    task: Tid,
    preemption: PreemptionModel,
) -> Option<&'a str> {
    let at_end = || {
        let left = hit.culprit.as_ref().is_some_and(|by| by.tid == task);
        let preempted = left && was_preempted(&hit.culprit_stack);
        section_that_ended(&hit.culprit_stack).filter(|_| preempted)
    };
    let at_wake_up = || {
        let cpu = hit.steps.last()?.cpu;
        let waking = hit
            .steps
            .iter()
            .rfind(|step| step.kind == StepKind::Waking)?;
        let current = model.timeline(cpu)?.at(waking.time.as_ns()).task;
        let found = model.tasks.version(current)?.tid == task && waking.cpu == cpu;
        interrupted_function(&hit.waker_stack).filter(|_| found)
    };
    if preemption.is_full() {
        at_end().or_else(at_wake_up)
    } else {
        // Where it left is not what it was busy with when an interrupt found it.
        let found = || was_interrupted(&hit.waker_stack);
        at_wake_up().or_else(|| at_end().filter(|_| !found()))
    }
}

/// The function in which a task kept the CPU by its record: a hit of the same switch says more than
/// the record's stack where the task left at a preemption point.
fn off_function<'a>(
    model: &'a Model,
    off: &'a PreemptionOff,
    preemption: PreemptionModel,
) -> Option<&'a str> {
    let same_switch = |hit: &&Hit| {
        let by_task = hit
            .culprit
            .as_ref()
            .is_some_and(|by| by.tid == off.task.tid);
        by_task && (hit.end - off.time).as_ns().abs() <= SKEW_MAX_NS
    };
    let at_end = || section_that_ended(&off.stack);
    if preemption.is_full() {
        return at_end();
    }
    let mut hits = model.evidence.hits.iter();
    let shown = hits.find(same_switch);
    shown
        .and_then(|hit| kept_function(model, hit, off.task.tid, preemption))
        .or_else(at_end)
}
