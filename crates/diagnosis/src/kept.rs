//! A task of a lower priority that has the CPU while another one waits: whether it kept it, or
//! whether the scheduler left it there. A task in user code can be preempted at every interrupt.

use event::evidence::{Hit, PreemptionOff, Role, StepKind, TaskRef};
use event::{Instant, Tid};

use crate::finding::Culprit;
use crate::model::{Model, MomentKind, VersionId};
use crate::naming::{PICK_GUARD_NS, SKEW_MAX_NS};
use crate::phases::{Doing, Phase, Since};
use crate::public;
use crate::stacks::{found_user_code, left_user_code};
use crate::term::TermKind;

/// What the evidence shows of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing but that it had the CPU.
    Nothing,
    /// It ran code of its own, but nothing tells since when the scheduler let it.
    UserCode,
    /// From here on the scheduler had looked, and had left it the CPU.
    LeftThere(i64),
    /// A deadline server ran it.
    Served,
    /// It left in the call by which it lowered itself.
    Lowered,
    /// As the waiting task came on its run queue, the scheduler did not ask it to leave the CPU: it
    /// went first then.
    WentFirst,
    /// Nothing, for so long that it may have had a higher priority for a while.
    Raised,
}

/// The limit on real-time tasks, and the server of fair tasks, keep so much of a second for those.
const SHARE_NS: i64 = 50_000_000;

/// Whether the scheduler was seen to prefer others to runnable real-time tasks on the CPU not long
/// before: else the task may have had a priority that no event shows.
pub(crate) fn is_limited(model: &Model, phase: &Phase) -> bool {
    let timeline = phase.cpu.and_then(|cpu| model.timeline(cpu));
    let mut seen = false;
    if let Some(timeline) = timeline {
        let begin_ns = phase.begin_ns.saturating_sub(SHARE_NS);
        timeline.slices(begin_ns, phase.end_ns, |slice| {
            seen |= slice.occupant.is_throttled()
        });
    }
    seen || was_served(model, phase)
}

/// Whether a deadline server was seen at work on the CPU not long before.
fn was_served(model: &Model, phase: &Phase) -> bool {
    let (begin_ns, end_ns) = (phase.begin_ns - SHARE_NS, phase.end_ns + SKEW_MAX_NS);
    let lately = |time: Instant| (begin_ns..end_ns).contains(&time.as_ns());
    let moments = &model.evidence.moments;
    let mut served = moments.iter().filter(|moment| moment.is_served());
    let mut off = model.evidence.preemption_off.iter();
    served.any(|moment| Some(moment.cpu) == phase.cpu && lately(moment.time))
        || off.any(|off| off.is_served() && Some(off.cpu) == phase.cpu && lately(off.time))
}

/// Whether a deadline server ran `tid` as it left the CPU at the end of `phase`, or as it had the
/// CPU then.
fn is_served(model: &Model, phase: &Phase, tid: Tid) -> bool {
    let end = Instant::from_ns(phase.end_ns);
    let mut moments = model.evidence.moments.iter();
    let by_moment = moments.any(|moment| {
        let is_it = moment.role == Role::Running && moment.task.tid == tid;
        is_it && moment.is_served() && (moment.time - end).as_ns().abs() <= SKEW_MAX_NS
    });
    by_moment || records_of(model, phase, tid).any(PreemptionOff::is_served)
}

/// Who lent a task the priority with which it ran ahead, and waits for its lock.
pub(crate) fn lender(model: &Model, task: &TaskRef, culprit: &Culprit) -> Option<i32> {
    let (begin_ns, end_ns) = (culprit.range.begin.as_ns(), culprit.range.end.as_ns());
    let mut boosts = model.boosts.iter();
    let lent = boosts.find(|boost| {
        let then = boost.begin_ns < end_ns && begin_ns < boost.end_ns;
        then && boost.owner == task.tid.0 && task.prio.is_real_time()
    });
    lent.map(|boost| boost.waiter)
}

/// A sentence more for each who ran ahead of others by a priority that was lent to it.
pub(crate) fn borrowed(model: &Model, culprits: &[Culprit]) -> String {
    let lent = |culprit: &Culprit| {
        let TermKind::RunQueueWait { behind } = &culprit.kind else {
            return None;
        };
        let lender = lender(model, behind, culprit)?;
        let lender = public::called_last(model, lender)?;
        Some(format!(
            " {} had that priority lent, as {lender} waited for a lock that it held.",
            behind.comm
        ))
    };
    culprits.iter().filter_map(lent).collect()
}

/// A sentence more for each who ran ahead of others by a priority that it had set itself, and gave
/// up as it left the CPU: as what it is told, it would not have gone first.
pub(crate) fn lowered_themselves(model: &Model, late: &TaskRef, culprits: &[Culprit]) -> String {
    let lowered = |culprit: &Culprit| {
        let TermKind::RunQueueWait { behind } = &culprit.kind else {
            return None;
        };
        let mut moments = model.evidence.moments.iter();
        let moment = moments.find(|moment| {
            let is_it = moment.role == Role::Lowered && moment.task.tid == behind.tid;
            is_it && moment.task.prio == behind.prio && moment.cpu == culprit.cpu
        })?;
        let (came, comm, now) = (moment.prio_when_it_came(), &behind.comm, behind.prio);
        let waiter = culprit.waiter.as_ref().unwrap_or(late);
        let then = match came.beats(now) && !waiter.prio.beats(came) {
            true => came.to_string(),
            false => "a higher priority".to_owned(),
        };
        Some(format!(
            " {comm} had {then} meanwhile, and lowered itself to {now} as it left: its program \
             sets that priority."
        ))
    };
    culprits.iter().filter_map(lowered).collect()
}

/// Whether `task`, as which its run in `phase` ended, left the CPU in the call by which it lowered
/// itself. It was in its own code before that call, and the scheduler had left it the CPU: if it
/// came as low as it left, it had raised itself in between.
fn has_lowered_itself(model: &Model, phase: &Phase, task: VersionId) -> bool {
    let Some(version) = model.tasks.version(task) else {
        return false;
    };
    let (begin_ns, end_ns) = (phase.begin_ns - SKEW_MAX_NS, phase.end_ns + SKEW_MAX_NS);
    model.evidence.moments.iter().any(|moment| {
        let in_phase = (begin_ns..end_ns).contains(&moment.time.as_ns());
        let is_it = moment.role == Role::Lowered && moment.task.tid == version.tid;
        is_it && in_phase && Some(moment.cpu) == phase.cpu && moment.task.prio == version.prio
    })
}

/// The records of the time for which `tid` did not leave the CPU to whoever waits in `phase`.
fn records_of<'a>(
    model: &'a Model,
    phase: &'a Phase,
    tid: Tid,
) -> impl Iterator<Item = &'a PreemptionOff> {
    let end = Instant::from_ns(phase.end_ns);
    model.evidence.preemption_off.iter().filter(move |off| {
        let here = Some(off.cpu) == phase.cpu && off.task.tid == tid;
        here && (off.time - end).as_ns().abs() <= SKEW_MAX_NS
    })
}

/// What the evidence shows of `task`, which has the CPU of `phase`.
pub(crate) fn shown(model: &Model, phase: &Phase, task: VersionId) -> Shown {
    let Some(tid) = model.tasks.version(task).map(|version| version.tid) else {
        return Shown::Nothing;
    };
    if is_served(model, phase, tid) {
        return Shown::Served;
    }
    if has_lowered_itself(model, phase, task) {
        return Shown::Lowered;
    }
    if went_first(model, phase, tid) {
        return Shown::WentFirst;
    }
    let here = is_woken_here(model, phase);
    if here && was_found_in_user_code(model, phase, tid) {
        return Shown::LeftThere(phase.begin_ns);
    }
    let span = (phase.begin_ns + PICK_GUARD_NS, phase.end_ns);
    let seen = model.user_code_of(tid.0, span);
    let left = left_in_user_code(model, phase, tid)
        || records_of(model, phase, tid).any(PreemptionOff::was_in_user_mode);
    match (seen.iter().min(), seen.iter().max()) {
        // On the way back from the wake-up, the kernel asked the scheduler.
        (Some(first_ns), _) if here => Shown::LeftThere(*first_ns),
        // A wake-up elsewhere may not have been noticed before: but on the way back from this.
        (Some(first_ns), Some(last_ns)) if first_ns < last_ns || left => {
            Shown::LeftThere(*first_ns)
        }
        (Some(_), _) => Shown::UserCode,
        _ if left => Shown::UserCode,
        _ => Shown::Nothing,
    }
}

/// Whether `had`, the task on the CPU as the waiting one came on its run queue, was not asked to
/// leave it, as the scheduler asks each that goes behind (`wakeup_preempt`, kernel/sched/core.c).
fn went_first(model: &Model, phase: &Phase, had: Tid) -> bool {
    let (Doing::Waiting { tid, .. }, Some(cpu)) = (phase.doing, phase.cpu) else {
        return false;
    };
    let Some(timeline) = model.timeline(cpu) else {
        return false;
    };
    let span = (phase.begin_ns, phase.end_ns);
    let log = model.moments(tid, cpu, Instant::from_ns(span.0), Instant::from_ns(span.1));
    log.iter().any(|moment| {
        let on_cpu = model.tasks.version(timeline.at(moment.time_ns).task);
        moment.goes_behind && on_cpu.is_some_and(|task| task.tid == had)
    })
}

/// Whether the CPU itself put the waiting task on its run queue.
fn is_woken_here(model: &Model, phase: &Phase) -> bool {
    let (Doing::Waiting { tid, since, .. }, Some(cpu)) = (phase.doing, phase.cpu) else {
        return false;
    };
    let begin = Instant::from_ns(phase.begin_ns.saturating_sub(SKEW_MAX_NS));
    let log = model.moments(tid, cpu, begin, Instant::from_ns(phase.begin_ns));
    let waking = log.iter().rfind(|moment| moment.kind == MomentKind::Waking);
    let by_cpu = waking.is_some_and(|waking| u32::from(waking.by) == cpu.0);
    since == Since::Wakeup && by_cpu
}

/// The hit that ended this wait.
fn hit_of<'a>(model: &'a Model, phase: &Phase) -> Option<&'a Hit> {
    let end = Instant::from_ns(phase.end_ns);
    model.evidence.hits.iter().find(|hit| {
        let here = hit.steps.last().map(|step| step.cpu) == phase.cpu;
        here && (hit.end - end).as_ns().abs() <= SKEW_MAX_NS
    })
}

/// Whether the interrupt that made the wake-up found the task in user code.
fn was_found_in_user_code(model: &Model, phase: &Phase, tid: Tid) -> bool {
    let Some(hit) = hit_of(model, phase).filter(|hit| found_user_code(&hit.waker_stack)) else {
        return false;
    };
    let mut steps = hit.steps.iter();
    let waking = steps.rfind(|step| step.kind == StepKind::Waking);
    let timeline = phase.cpu.and_then(|cpu| model.timeline(cpu));
    let (Some(waking), Some(timeline)) = (waking, timeline) else {
        return false;
    };
    let had = model.tasks.version(timeline.at(waking.time.as_ns()).task);
    had.is_some_and(|had| had.tid == tid) && Some(waking.cpu) == phase.cpu
}

/// Whether the task was in user code when the interrupt came after which it left.
fn left_in_user_code(model: &Model, phase: &Phase, tid: Tid) -> bool {
    let by_record = records_of(model, phase, tid).any(|off| left_user_code(&off.stack));
    let by_hit = hit_of(model, phase).is_some_and(|hit| {
        let is_it = hit.culprit.as_ref().is_some_and(|by| by.tid == tid);
        is_it && left_user_code(&hit.culprit_stack)
    });
    by_record || by_hit
}
