//! One sentence: who, what, how long, which share.

use event::{Duration, TimeRange};
use trace::TraceInfo;

use crate::advice;
use crate::at_work::{looks, seen_in};
use crate::clause::{called, clause};
use crate::culprits::{FURTHER_SHARE_MIN, culprits, matters, of_own_work};
use crate::diagnose::{is_virtual, steal_is_unreported};
use crate::excluded::excluded;
use crate::finding::{Culprit, Grade, LateActivation, Verdict, WaitedMutex};
use crate::host;
use crate::kept;
use crate::kernel_sleep;
use crate::kin;
use crate::locks;
use crate::model::Model;
use crate::policy::FairPolicy;
use crate::quota;
use crate::signature;
use crate::term::{Reason, TermKind};
use event::evidence::{BlockedOn, Stack, StepKind, TaskRef};

/// Causes of at least this share make the signature of a group.
const SIGNATURE_SHARE_MIN: f64 = 0.2;
/// The local timer, reschedule and function-call interrupts take no longer.
const VECTOR_MAX: Duration = Duration::from_ms(1);
/// Nor does it take longer to put a task on a run queue.
const DELIVERY_MAX: Duration = Duration::from_us(100);
/// A proven cause of at least this share carries a verdict although other time is unexplained.
const CARRYING_SHARE: f64 = 0.5;

/// So many looks at its own work are shown with their callers.
const LOOKS_SHOWN: usize = 3;

/// Why what the trace shows of the kernel's own work may be the work of the hypervisor. A task that
/// had the CPU had it, whoever slowed it down; one that was stopped wanted none.
fn hypervisor(info: &TraceInfo, late: &LateActivation, first: &Culprit) -> Option<String> {
    let (duration, stolen) = (first.duration, late.stolen_max);
    if late.unseen_max.share_of(duration) >= CARRYING_SHARE {
        let unseen = late.unseen_max;
        return Some(format!(
            "for {unseen} of it no CPU shows that the machine did not stand still"
        ));
    }
    let cannot_be = matches!(
        first.kind,
        TermKind::RunQueueWait { .. }
            | TermKind::Upstream { .. }
            | TermKind::GroupWeight { .. }
            | TermKind::LockWait { .. }
            | TermKind::PriorityInversion { .. }
            | TermKind::RuntimeUsedUp { .. }
            | TermKind::ClockSet { .. }
            | TermKind::Stopped { .. }
            | TermKind::TimerSlack
            | TermKind::Steal
    );
    if cannot_be {
        return None;
    }
    if stolen.share_of(duration) >= CARRYING_SHARE {
        return Some(format!(
            "up to {stolen} of it may have gone to the hypervisor"
        ));
    }
    // None of these works for so long.
    let longest = match first.kind {
        TermKind::Hardirq { irq, .. } if irq < 0 => VECTOR_MAX,
        TermKind::WakeupDelivery => DELIVERY_MAX,
        _ => Duration::MAX,
    };
    let still = duration >= longest && is_virtual(info);
    still.then(|| format!("the machine is virtual, and may have stood still for {duration}"))
}

/// For how long, in one piece, the machine may have stood still in the first cause: other CPUs say
/// so, or, where a timer was late on a virtual machine, no CPU shows the contrary.
pub(crate) fn unseen_max(model: &Model, late: &LateActivation) -> Duration {
    let culprits = culprits(late);
    let Some(first) = culprits.first() else {
        return Duration::ZERO;
    };
    let span = (first.range.begin.as_ns(), first.range.end.as_ns());
    let said = host::stood_still(model, first.cpu, span);
    // A timer's lateness begins whatever runs; the others need a stall in the few microseconds that
    // they really took.
    match first.kind {
        TermKind::InterruptsOff { .. } if model.is_virtual => {
            said.max(model.unseen_max(first.cpu, span))
        }
        TermKind::Steal => Duration::ZERO,
        _ => said,
    }
}

/// The kernel's own work, which may be a short one during which a host stood still.
fn is_kernels_own(first: &Culprit) -> bool {
    matches!(
        first.kind,
        TermKind::InterruptsOff { .. }
            | TermKind::PreemptionOff { .. }
            | TermKind::Nmi
            | TermKind::Hardirq { .. }
            | TermKind::Softirq { .. }
            | TermKind::StopClass { .. }
    )
}

/// Whether the task waited for less than the watch's threshold: the rest was others' time, before
/// it waited for them.
fn is_in_time(late: &LateActivation) -> bool {
    // A report of one that still waited needs no threshold.
    let over = late.hit.as_ref();
    let over = over.filter(|hit| hit.latency() >= hit.threshold);
    over.is_some_and(|hit| late.latency() < hit.threshold)
}

/// What a verdict says where nobody can tell a long section from a short one in which the host
/// stood still.
const UNWITNESSED: &str = " (The hypervisor below reports no steal, and no other CPU shows \
                           whether the machine stood still meanwhile.)";

/// Whether `first` is the kernel's own work, which may have been a short one while a hypervisor
/// that does not report it ran somebody else, and no other CPU's beats would show that.
fn is_unwitnessed(model: &Model, info: &TraceInfo, first: &Culprit) -> bool {
    let span = (first.range.begin.as_ns(), first.range.end.as_ns());
    is_kernels_own(first)
        && steal_is_unreported(info)
        && !model.would_show_stillness(first.cpu, span)
}

/// Whether the evidence carries a verdict that begins with `first`.
fn is_conclusive(info: &TraceInfo, late: &LateActivation, first: Option<&Culprit>) -> bool {
    let Some(first) = first.filter(|_| !is_in_time(late)) else {
        return false;
    };
    if hypervisor(info, late, first).is_some() {
        return false;
    }
    let carries = first.share >= CARRYING_SHARE;
    match late.ledger.grade {
        Grade::Lossy | Grade::Unrecorded => false,
        Grade::Censored | Grade::Paused => carries,
        Grade::Complete => carries || late.ledger.is_good() && !is_own_doing(late),
    }
}

/// The signature of an activation that its task's own work made long.
pub(crate) const OWN_WORK: &str = "own work";

/// The cause without what changes from run to run; tasks as `task` calls them.
pub(crate) fn signature(
    info: &TraceInfo,
    late: &LateActivation,
    task: impl Fn(&TaskRef) -> String,
) -> String {
    let culprits = culprits(late);
    if is_own_work(late) {
        return OWN_WORK.to_owned();
    }
    if !is_conclusive(info, late, culprits.first()) {
        return "unexplained".to_owned();
    }
    let named = culprits
        .iter()
        .enumerate()
        .filter(|(place, culprit)| *place == 0 || culprit.share >= SIGNATURE_SHARE_MIN)
        .map(|(_, culprit)| &culprit.kind);
    signature::signature(named, task)
}

pub(crate) fn verdict(model: &Model, info: &TraceInfo, late: &LateActivation) -> Verdict {
    let culprits = culprits(late);
    let conclusive = is_conclusive(info, late, culprits.first());
    let own = is_own_work(late);
    let mut sentence = sentence(model, info, late, (&culprits, conclusive));
    let first = culprits.first().filter(|_| conclusive);
    if first.is_some_and(|first| quota::is_untold(model, late, first)) {
        sentence += quota::UNTOLD;
    }
    sentence += &lowered(late);
    sentence += &kin::as_it_should(model, late, &culprits);
    if conclusive
        && culprits
            .first()
            .is_some_and(|first| is_unwitnessed(model, info, first))
    {
        sentence += UNWITNESSED;
    }
    let mutexes = mutexes(model, late);
    let advice = match (conclusive, own) {
        (true, _) => advice::advise(model, info, late, &culprits),
        (false, true) => {
            let others: Vec<Culprit> = besides(&culprits).cloned().collect();
            let advised = advice::advise(model, info, late, &others);
            advice::own_work(late, &mutexes, (others.is_empty(), advised))
        }
        (false, false) => vec![],
    };
    let unadvised = match conclusive {
        true => advice::unadvised(model, info, late, &culprits),
        false => Vec::new(),
    };
    let carried = culprits.first().filter(|_| conclusive);
    let excluded = carried.map(|first| excluded(model, info, late, first));
    let range = TimeRange {
        begin: late.origin,
        end: late.end,
    };
    // Nobody else is to blame for what its own work took.
    let culprits = match own && !conclusive {
        true => of_own_work(late, culprits),
        false => culprits,
    };
    let stacks = stacks(model, late, &culprits);
    Verdict {
        sentence,
        culprits,
        conclusive: conclusive || own,
        range,
        stacks,
        mutexes,
        excluded: excluded.unwrap_or_default(),
        advice,
        unadvised,
    }
}

/// The mutexes that it waited for, as the watch saw it block.
fn mutexes(model: &Model, late: &LateActivation) -> Vec<WaitedMutex> {
    let inside = late.origin..late.end;
    // One that took next to nothing is not the lock that anybody speaks of.
    let took_part = |lock: u64| {
        let waits = model.evidence.blocked.iter().filter(|blocked| {
            let is_own = blocked.task.tid == late.task.tid && inside.contains(&blocked.time);
            is_own && blocked.on == BlockedOn::Mutex && blocked.lock == lock
        });
        let waited: Duration = waits
            .map(|blocked| locks::woken_after(model, blocked, late.end) - blocked.time)
            .sum();
        waited.share_of(late.latency()) >= FURTHER_SHARE_MIN
    };
    let mut mutexes: Vec<WaitedMutex> = Vec::new();
    for blocked in &model.evidence.blocked {
        let is_own = blocked.task.tid == late.task.tid && inside.contains(&blocked.time);
        let is_new = mutexes.iter().all(|known| known.address != blocked.lock);
        if is_own && is_new && blocked.on == BlockedOn::Mutex && took_part(blocked.lock) {
            mutexes.push(WaitedMutex {
                waiter: blocked.task.clone(),
                since: blocked.time,
                address: blocked.lock,
                name: None,
            });
        }
    }
    mutexes
}

fn sentence(
    model: &Model,
    info: &TraceInfo,
    late: &LateActivation,
    (culprits, conclusive): (&[Culprit], bool),
) -> String {
    let task = late_task(model, late);
    let waits = matches!(late.ledger.grade, Grade::Censored)
        && late
            .steps
            .last()
            .is_none_or(|step| step.kind == StepKind::Waking);
    if late.latency() == Duration::ZERO && !waits {
        return format!(
            "{task} was not late on {}: it ran in the instant of its wake-up.",
            late.cpu
        );
    }
    if is_in_time(late) {
        return format!(
            "{task} was not late on {}: it slept until {} before it ran, and what others did \
             before that is not its latency.",
            late.cpu,
            late.latency()
        );
    }
    let head = format!("{task} {} on {}", what_happened(late, waits), late.cpu);
    let named = culprits
        .iter()
        .filter(|culprit| conclusive || matters(culprit));
    let told = |culprit: &Culprit| clause(culprit, late, &called(model, late, culprit));
    let clauses: Vec<_> = named.map(told).collect();
    // By share, not by time: no "then".
    let clauses = clauses.join("; and ");
    let unexplained = late.ledger.unexplained();
    let reason = why_unexplained(model, late);
    if conclusive {
        let rest = match late.ledger.is_good() {
            true => ".".to_owned(),
            false => format!("; {unexplained} are unexplained{reason}.{}", lowered(late)),
        };
        let raised = kept::lowered_themselves(model, &late.task, culprits);
        let lent = kept::borrowed(model, culprits);
        return format!("{head}: {clauses}{rest}{raised}{lent}");
    }
    if is_own_work(late) {
        let others: String = besides(culprits)
            .map(|culprit| format!("; and {}", told(culprit)))
            .collect();
        return format!("{head}: {}{others}.", own_doing(model, late));
    }
    let carries = |first: &&Culprit| first.share >= CARRYING_SHARE || late.ledger.is_good();
    let stolen = culprits.first().filter(carries);
    let stolen = stolen.and_then(|first| hypervisor(info, late, first));
    let why = doubt(model, late, stolen);
    let rest = format!("{unexplained} have no proven cause{reason}");
    if clauses.is_empty() {
        let why = match why {
            Some(why) if unexplained == Duration::ZERO => why,
            Some(why) => format!("{why}; {rest}"),
            None => rest,
        };
        return format!("{head}, and nobody can be named: {why}.");
    }
    let why = why.unwrap_or(rest);
    format!("{head}, and the evidence does not carry a verdict: {why}; what it shows: {clauses}.")
}

/// Why the most of what is unexplained is so, in brackets.
fn why_unexplained(model: &Model, late: &LateActivation) -> String {
    let reason = late.ledger.terms.iter().find_map(|term| match term.kind {
        TermKind::Unexplained(reason) => Some(reason),
        _ => None,
    });
    let slept = kernel_sleep::longest(model, late);
    let slept = slept.and_then(|slept| kernel_sleep::words(&slept.stack));
    match (reason, slept) {
        (Some(Reason::BlockedInKernel), Some(slept)) => format!(" ({slept})"),
        (Some(reason), _) => format!(" ({reason})"),
        (None, _) => String::new(),
    }
}

/// A sentence more where a real-time task was none any more at the end of its work: whoever was
/// ahead of it then had a right to be.
fn lowered(late: &LateActivation) -> String {
    let ended = late
        .steps
        .last()
        .filter(|step| step.kind == StepKind::Blocked);
    let prio = ended.map(|step| step.prio);
    match prio.filter(|prio| late.task.prio.is_real_time() && !prio.is_real_time()) {
        Some(prio) => format!(" It had lowered itself, or was lowered, to {prio} by then."),
        None => String::new(),
    }
}

/// What forbids a verdict, beside time that has no proven cause; `stolen`: it may be the host's.
fn doubt(model: &Model, late: &LateActivation, stolen: Option<String>) -> Option<String> {
    if let Some(slept) = late.slept_before.filter(|_| is_own_doing(late)) {
        let slept = slept.duration();
        return Some(format!(
            "it catches up with releases of its timer that passed while it slept for others, for \
             {slept}"
        ));
    }
    let is_unseen = late.hit.as_ref().is_some_and(|hit| hit.unseen);
    let why = match late.ledger.grade {
        Grade::Lossy if lacks_evidence(model, late) => "a part of what the watch saw is missing",
        Grade::Lossy | Grade::Paused => "events were lost inside it",
        Grade::Unrecorded if is_unseen => "its wake-up was not seen",
        Grade::Unrecorded => "a switch to it was not recorded",
        _ if stolen.is_some() => return stolen,
        Grade::Censored => "the window does not hold it whole",
        Grade::Complete => return None,
    };
    Some(why.to_owned())
}

/// Which others took a good part of what was the task's own work first.
fn besides(culprits: &[Culprit]) -> impl Iterator<Item = &Culprit> {
    let is_good_part = |culprit: &&Culprit| culprit.share >= FURTHER_SHARE_MIN;
    culprits.iter().filter(is_good_part)
}

/// Whether the watch may have seen more of it than the trace holds.
pub(crate) fn lacks_evidence(model: &Model, late: &LateActivation) -> bool {
    let range = TimeRange {
        begin: late.origin,
        end: late.end,
    };
    model.lacks_evidence(range, late.hit.as_ref().map(|hit| hit.end_kind))
}

/// The late task, with its policy where its priority does not show that.
fn late_task(model: &Model, late: &LateActivation) -> String {
    let (task, remark) = (&late.task, kin::remark(model, late));
    let (comm, tid, prio) = (&task.comm, task.tid, task.prio);
    match FairPolicy::of(model, task.tid).filter(|_| !task.prio.is_real_time()) {
        Some(policy) => format!("{comm} (tid {tid}, {prio}, {}{remark})", policy.name()),
        None => format!("{comm} (tid {tid}, {prio}{remark})"),
    }
}

/// What happened, and for how long. A response is told from the wait that begins it.
fn what_happened(late: &LateActivation, waits: bool) -> String {
    let latency = late.latency();
    let last = late.steps.last();
    let is_put_off = late
        .steps
        .first()
        .is_some_and(|step| step.kind == StepKind::Preempted);
    let is_at_work = |step: &crate::Step| {
        step.kind == StepKind::SwitchIn && step.time < late.end && late.hit.is_none()
    };
    match last.map(|step| step.kind) {
        _ if waits => format!("still waited {latency}"),
        Some(StepKind::Blocked) => format!("needed {latency} to the end of its work"),
        _ if last.is_some_and(is_at_work) => format!("was still at work after {latency}"),
        Some(StepKind::SwitchIn) if is_put_off => format!("was put off for {latency}"),
        _ => format!("was late by {latency}"),
    }
}

/// Whether the evidence shows that it was its own work that took most of it, also without what the
/// hypervisor may have taken. What of it lies in the window is known, whatever comes after.
fn is_own_work(late: &LateActivation) -> bool {
    let surely = own_run(late) - late.stolen_max;
    !is_in_time(late)
        && !is_out_of_runtime(late)
        && late.slept_before.is_none()
        && late.ledger.grade <= Grade::Paused
        && surely.share_of(late.latency()) >= CARRYING_SHARE
}

/// For how long the task ran itself.
fn own_run(late: &LateActivation) -> Duration {
    let own = late.ledger.terms.iter();
    let own = own.filter(|term| term.kind == TermKind::OwnRun);
    own.map(|term| term.duration).sum()
}

/// Whether most of it is the task's own run: then no other can be blamed for it.
fn is_own_doing(late: &LateActivation) -> bool {
    own_run(late).share_of(late.latency()) >= CARRYING_SHARE && !is_out_of_runtime(late)
}

/// Whether the task used up the runtime of its own deadline, which its own work did: that is one
/// cause, whichever of the two took longer.
fn is_out_of_runtime(late: &LateActivation) -> bool {
    let mut terms = late.ledger.terms.iter();
    terms.any(|term| {
        let is_own = |task: &TaskRef| task.tid == late.task.tid;
        let limit = matches!(&term.kind, TermKind::RuntimeUsedUp { task } if is_own(task));
        limit && term.duration.share_of(late.latency()) >= FURTHER_SHARE_MIN
    })
}

/// Nobody else's doing; what page faults took of it is not known.
fn own_doing(model: &Model, late: &LateActivation) -> String {
    let faults = match late.page_faults {
        _ if !advice::may_be_faults(late) => String::new(),
        1 => ", with a page fault in it".to_owned(),
        faults => format!(", with {faults} page faults in it"),
    };
    let seen = seen_in(model, late).map(|seen| format!(", seen in {seen}"));
    let seen = seen.unwrap_or_default();
    let share = own_run(late).share_of(late.latency()) * 100.0;
    format!(
        "it ran itself for {} ({share:.1} %){seen}{faults}",
        own_run(late)
    )
}

fn stacks(model: &Model, late: &LateActivation, culprits: &[Culprit]) -> Vec<(String, Stack)> {
    let mut stacks = Vec::new();
    let mut add = |what: String, stack: &Stack| {
        if !stack.is_empty() {
            stacks.push((what, stack.clone()));
        }
    };
    let overlaps =
        |begin, end, culprit: &Culprit| begin < culprit.range.end && culprit.range.begin < end;
    for culprit in culprits {
        for timer in &model.evidence.late_timers {
            if matches!(culprit.kind, TermKind::InterruptsOff { .. })
                && timer.cpu == culprit.cpu
                && overlaps(timer.expiry, timer.time, culprit)
            {
                add(
                    format!("{} where interrupts came back on", timer.interrupted),
                    &timer.stack,
                );
            }
        }
        for off in &model.evidence.preemption_off {
            if matches!(culprit.kind, TermKind::PreemptionOff { .. })
                && off.cpu == culprit.cpu
                && overlaps(off.begin, off.time, culprit)
            {
                add(format!("{} where it left the CPU", off.task), &off.stack);
            }
        }
    }
    if is_own_work(late) {
        for look in looks(model, late).take(LOOKS_SHOWN) {
            add(format!("{} at its own work", look.task), &look.stack);
        }
    }
    if let Some(slept) = kernel_sleep::longest(model, late) {
        add(
            format!("{} where it slept in its work", slept.task),
            &slept.stack,
        );
    }
    if let Some(hit) = &late.hit {
        if let Some(culprit) = &hit.culprit {
            add(
                format!("{culprit} when it left the CPU"),
                &hit.culprit_stack,
            );
        }
        add("the waker at the last wake-up".to_owned(), &hit.waker_stack);
        add(
            format!("{} where it had blocked before", hit.task),
            &hit.wakee_stack,
        );
    }
    stacks
}
