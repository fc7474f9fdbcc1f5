//! What one culprit did, in words.

use event::Cpu;
use event::evidence::{PreemptionModel, TaskRef};

use crate::finding::{Culprit, LateActivation};
use crate::locks;
use crate::model::{GroupOf, Model};
use crate::term::{Short, TermKind, off_or_not, stopped};

/// What a limit on real-time tasks did to one of them.
fn limited(kind: &TermKind, who: &str, cpu: Cpu, there: &str) -> String {
    match kind {
        TermKind::Throttled { served: true, .. } => {
            format!(
                "real-time tasks had used up their share of the CPU, and the deadline server of \
                 fair tasks ran {who}{there} in its place for"
            )
        }
        TermKind::RuntimeUsedUp { .. } => format!(
            "{who} had used up the runtime of its own SCHED_DEADLINE, and waited for its next \
             period for"
        ),
        TermKind::Throttled { ran: Some(ran), .. } if !ran.prio.is_real_time() => format!(
            "real-time tasks had used up their share of the CPU, and the kernel ran {who}{there} \
             in its place (throttled) for"
        ),
        TermKind::Throttled { ran: Some(_), .. } => {
            format!("the scheduler ran {who}{there} in its place (throttled) for")
        }
        TermKind::Throttled { ran: None, .. } => {
            format!("the scheduler left {cpu} idle (throttled) for")
        }
        other => format!("{other} took {cpu} for"),
    }
}

/// Who had the CPU before it; with which priority it waited, where that is lower than the one it
/// began with.
fn ran_ahead(culprit: &Culprit, late: &LateActivation, who: &str, there: &str) -> String {
    if let Some(waiter) = &culprit.waiter {
        return format!("{who} ran{there} ahead of {waiter}, which it waits for, for");
    }
    let lower = culprit.waited_as;
    let lower = lower.filter(|prio| late.task.prio.beats(*prio));
    match lower {
        Some(prio) => format!("{who} ran ahead of it{there}, which had {prio} then, for"),
        None => format!("{who} ran ahead of it{there} for"),
    }
}

/// What the lock or the control group of a cause is called.
pub(crate) fn called(model: &Model, late: &LateActivation, culprit: &Culprit) -> String {
    let of_task = |of: &Option<TaskRef>| match of {
        None => ("its control group".to_owned(), late.task.tid.0),
        Some(of) => {
            let whose = format!("the control group of {of}, which it waits for");
            (whose, of.tid.0)
        }
    };
    let with = |(whose, _): (String, i32), folder: Option<String>| match folder {
        Some(folder) => format!("{whose} ({folder})"),
        None => whose,
    };
    let folder = |group: &GroupOf| group.folder.clone();
    match &culprit.kind {
        TermKind::LockWait { .. } | TermKind::PriorityInversion { .. } => {
            match locks::is_address_space(model, late, culprit) {
                true => format!(
                    "the kernel's lock of {}'s address space (mmap_lock)",
                    late.task.comm
                ),
                false => "a lock".to_owned(),
            }
        }
        TermKind::Quota { of } => {
            let of = of_task(of);
            let group = model.groups.out_of_quota(of.1).map(folder);
            with(of, group)
        }
        TermKind::GroupWeight { of } => {
            let of = of_task(of);
            let nice = late.task.prio.nice().unwrap_or(0);
            let lightest = model.groups.lighter_than(of.1, nice).into_iter().next();
            let set = lightest.and_then(|group| Some((group, group.weight.as_ref()?)));
            let set =
                set.map(|(group, (file, value, _))| format!("{}: {file} {value}", group.folder));
            with(of, set)
        }
        TermKind::Reclaim {
            short: Short::Group,
        } => {
            let of = of_task(&None);
            let group = model.groups.out_of_memory(of.1).map(folder);
            with(of, group)
        }
        _ => String::new(),
    }
}

/// What one culprit did, with what its lock or control group is `called`; its CPU only where it is
/// not the late task's.
pub(crate) fn clause(culprit: &Culprit, late: &LateActivation, called: &str) -> String {
    let Culprit {
        kind,
        duration,
        share,
        cpu,
        ..
    } = culprit;
    let who = kind.who(culprit.tasks);
    let there = match *cpu == late.cpu {
        true => String::new(),
        false => format!(" on {cpu}"),
    };
    let what = match kind {
        TermKind::InterruptsOff { function, .. } => {
            format!("{function}, run by {who}, kept interrupts off{there} for")
        }
        TermKind::IdleExit => format!("{cpu} needed to leave its idle state for"),
        TermKind::Steal => format!("the hypervisor took {cpu} away for"),
        TermKind::RunQueueWait { .. } => ran_ahead(culprit, late, &who, &there),
        TermKind::StopClass { .. } => format!("the stop-class thread {who} held {cpu} for"),
        TermKind::Upstream { .. } => format!("{who}, which it waits for, worked{there} for"),
        TermKind::PreemptionOff {
            function, model, ..
        } => kept_cpu(&who, *cpu, (function.as_deref(), *model)),
        TermKind::Stopped { how, signal, by } => match by {
            Some(_) => format!("it was {} by {who} for", stopped(*how, *signal)),
            None => format!("it was {} for", stopped(*how, *signal)),
        },
        TermKind::TimerSlack => "the slack that it allows its timer took".to_owned(),
        TermKind::ClockSet { by } => {
            format!("the clock of its timer was set by {by:#}, which made it late by")
        }
        TermKind::OwnCost => format!("rtscope's own work at a hit took{there}"),
        TermKind::Throttled { .. } | TermKind::RuntimeUsedUp { .. } => {
            limited(kind, &who, *cpu, &there)
        }
        TermKind::LockWait { halted, .. } => {
            let halted = halted.map(|how| format!(" and was {},", stopped(how, 0)));
            let halted = halted.unwrap_or_default();
            format!("{who} held {called} that it waited for,{halted} for")
        }
        TermKind::PriorityInversion { owner, .. } => {
            format!(
                "{who} ran{there} ahead of {owner}, which held {called} that it waited for, for"
            )
        }
        TermKind::Quota { .. } => format!("the CPU quota of {called} was used up for"),
        TermKind::GroupWeight { .. } => {
            format!("the weight of {called} let other fair tasks run ahead for")
        }
        TermKind::BlockIo => "it waited for a device for".to_owned(),
        TermKind::PageFault => "its page faults took".to_owned(),
        TermKind::Reclaim {
            short: Short::Group,
        } => format!("{called} was at its limit of memory, and it waited for some to be freed for"),
        TermKind::Reclaim {
            short: Short::Machine,
        } => "memory was short, and it waited for some to be freed for".to_owned(),
        TermKind::WakeupDelivery => format!("its wake-up took to reach {cpu}"),
        TermKind::Switch => format!("the switch to it{there} took"),
        TermKind::Migration => format!("its move to {cpu} took"),
        other => format!("{other} took {cpu} for"),
    };
    format!("{what} {duration} ({:.1} %)", share * 100.0)
}

/// Whoever kept a CPU for itself, in a function if that is known.
fn kept_cpu(who: &str, cpu: Cpu, (function, model): (Option<&str>, PreemptionModel)) -> String {
    let how = off_or_not(model);
    match function {
        Some(function) if model.is_full() => {
            format!("{who} kept {cpu} in {function} ({how}) for")
        }
        // Where the wake-up found it; it may have been elsewhere before and after.
        Some(function) => format!("{who} kept {cpu} ({how}; seen in {function}) for"),
        None => format!("{who}, of a lower priority, kept {cpu} ({how}) for"),
    }
}
