//! What to change: a base of rules, each with its reason, its command and its check. Advice is
//! offered where the evidence shows that it would have prevented this miss, and where the machine
//! takes it.

mod groups;
mod limits;
mod machine;
mod own_work;
mod tasks;

pub(crate) use own_work::{may_be_faults, own_work};

use event::{Cpu, Duration, Tid};
use trace::TraceInfo;

use crate::culprits::FURTHER_SHARE_MIN;
use crate::finding::{Advice, Culprit, LateActivation};
use crate::kin;
use crate::model::Model;
use event::evidence::{StepKind, TaskRef};

/// What a rule may look at.
struct Case<'a> {
    model: &'a Model,
    info: &'a TraceInfo,
    late: &'a LateActivation,
    culprit: &'a Culprit,
}

/// A rule: its name, and its advice where it applies.
type Rule = (&'static str, fn(&Case<'_>) -> Option<(String, String)>);

/// What keeps page faults out of a task's work.
const LOCK_MEMORY: &str =
    "mlockall(MCL_CURRENT | MCL_FUTURE) before the work, and touch its buffers once";

/// Digits of a threshold that people would type.
const THRESHOLD_DIGITS: u32 = 3;

/// All rules; within one culprit, the most effective and the safest first: moving one task harms
/// nobody else, a higher priority may.
const RULES: [Rule; 31] = [
    ("move-interrupt-thread", tasks::move_interrupt_thread),
    ("move-task", tasks::move_task),
    ("leave-deadline", tasks::leave_deadline),
    ("lower-task", tasks::lower_task),
    ("renice-task", tasks::renice_task),
    ("raise-victim", tasks::raise_victim),
    ("leave-idle-policy", tasks::leave_idle_policy),
    ("raise-weight", tasks::raise_weight),
    ("widen-affinity", tasks::widen_affinity),
    ("spare-address-space", tasks::spare_address_space),
    ("raise-owner", tasks::raise_owner),
    ("inherit-priority", tasks::inherit_priority),
    ("hold-lock-shorter", tasks::hold_lock_shorter),
    ("hand-on-sooner", tasks::hand_on_sooner),
    ("lift-quota", groups::lift_quota),
    ("raise-group-weight", groups::raise_weight),
    ("lift-memory-limit", groups::lift_memory_limit),
    ("serve-faults", tasks::serve_faults),
    ("lock-memory", tasks::lock_memory),
    ("hand-on-io", tasks::hand_on_io),
    ("move-interrupt", machine::move_interrupt),
    ("move-softirq", machine::move_softirq),
    ("quiet-console", machine::quiet_console),
    ("move-task-that-blocks", tasks::move_section),
    ("full-preemption", machine::full_preemption),
    ("limit-idle-states", machine::limit_idle_states),
    ("raise-runtime", limits::raise_runtime),
    ("leave-share", limits::leave_share),
    ("lift-throttling", machine::lift_throttling),
    ("pin-virtual-cpus", machine::pin_virtual_cpus),
    ("isolate-cpu", machine::isolate_cpu),
];

/// The advice for the culprits, in their order, each rule's advice once. Where the end of one cause
/// would have been enough, only such causes get any; else all do, all of it is needed, and the best
/// against each comes before other ways.
pub(crate) fn advise(
    model: &Model,
    info: &TraceInfo,
    late: &LateActivation,
    culprits: &[Culprit],
) -> Vec<Advice> {
    let alone = is_one_enough(late, culprits);
    // Nothing is taken from a real-time task for the sake of a thread that nobody waits for.
    let spares = kin::is_ordinary(model, late);
    let then_check = then_check(late, check_threshold(late));
    let mut ranked: Vec<(usize, Advice)> = Vec::new();
    let (all, culprits) = (culprits, culprits.iter().enumerate());
    let culprits = culprits.filter(|(_, one)| counts(late, all, one));
    for (cause, culprit) in culprits.filter(|(_, one)| !(spares && kin::is_real_times(one))) {
        let case = Case {
            model,
            info,
            late,
            culprit,
        };
        let mut rank = 0;
        for (rule, applies) in RULES {
            let Some((because, command)) = applies(&case) else {
                continue;
            };
            if ranked.iter().all(|(_, given)| given.command != command) {
                let advice = Advice {
                    rule,
                    because,
                    command,
                    then_check: then_check.clone(),
                    alone,
                    cause,
                };
                ranked.push((rank, advice));
                rank += 1;
            }
        }
    }
    if !alone {
        ranked.sort_by_key(|(rank, _)| *rank);
    }
    ranked.into_iter().map(|(_, advice)| advice).collect()
}

/// The causes that matter and against which no rule has anything, as the ledger calls them.
pub(crate) fn unadvised(
    model: &Model,
    info: &TraceInfo,
    late: &LateActivation,
    culprits: &[Culprit],
) -> Vec<String> {
    let has_advice = |culprit: &&Culprit| {
        let case = Case {
            model,
            info,
            late,
            culprit,
        };
        RULES.iter().any(|(_, applies)| applies(&case).is_some())
    };
    if is_one_enough(late, culprits) {
        let mut enough = culprits.iter().filter(|culprit| is_enough(late, culprit));
        // Any one of them is enough; nobody needs any against the others.
        if enough.any(|culprit| has_advice(&culprit)) {
            return Vec::new();
        }
    }
    let numbered = culprits.iter().enumerate();
    let mattering = numbered.filter(|(cause, one)| *cause == 0 || one.share >= FURTHER_SHARE_MIN);
    let without = mattering.map(|(_, culprit)| culprit);
    let without = without.filter(|culprit| !has_advice(culprit));
    let text = |culprit: &Culprit| culprit.kind.text(culprit.tasks);
    without.map(text).collect()
}

/// Whether the end of one of the causes would have been enough.
fn is_one_enough(late: &LateActivation, culprits: &[Culprit]) -> bool {
    culprits.iter().any(|culprit| is_enough(late, culprit))
}

/// Whether advice against a cause is worth its trouble: of a small one only where it is what is
/// missing to be in time, beside the end of all that took a good part.
fn counts(late: &LateActivation, culprits: &[Culprit], culprit: &Culprit) -> bool {
    if is_one_enough(late, culprits) {
        return is_enough(late, culprit);
    }
    let is_good_part = |culprit: &&Culprit| culprit.share >= FURTHER_SHARE_MIN;
    let took = |all: &mut dyn Iterator<Item = &Culprit>| -> Duration {
        all.map(|culprit| culprit.duration).sum()
    };
    let rest = late.latency() - took(&mut culprits.iter().filter(is_good_part));
    let least = late.latency() - took(&mut culprits.iter());
    let is_missing = rest > threshold(late) && least <= threshold(late);
    is_good_part(&culprit) || is_missing
}

/// Whether without this cause it would not have been late.
fn is_enough(late: &LateActivation, culprit: &Culprit) -> bool {
    late.latency() - culprit.duration <= threshold(late)
}

/// What counts as late: a watch that did not tell means half of what was seen.
fn threshold(late: &LateActivation) -> Duration {
    let half = Duration::from_ns(late.latency().as_ns() / 2);
    late.hit.as_ref().map_or(half, |hit| hit.threshold)
}

/// The threshold of the watch that shows whether the advice helped, as people would type it.
pub fn check_threshold(late: &LateActivation) -> Duration {
    rounded(threshold(late))
}

/// The watch that shows whether the advice helped.
fn then_check(late: &LateActivation, threshold: Duration) -> String {
    let task = quoted(&late.task.comm);
    format!("rtscope watch --task {task} --over {threshold:#}")
}

impl Case<'_> {
    /// Who of the chain waited when the cause began: the late task, or one that leads to it.
    fn waiter(&self) -> TaskRef {
        if let Some(waiter) = &self.culprit.waiter {
            return waiter.clone();
        }
        let steps = self.late.steps.iter();
        let begun = steps.filter(|step| step.time <= self.culprit.range.begin);
        let mut tasks = begun
            .filter(|step| matches!(step.kind, StepKind::Waking | StepKind::SwitchIn))
            .map(task_of);
        let late = &self.late.task;
        let mut waiter = tasks.next_back().unwrap_or_else(|| late.clone());
        // It may have been called otherwise as it began; an answer has one name for it.
        if waiter.tid == late.tid {
            waiter.comm.clone_from(&late.comm);
        }
        waiter
    }
}

/// The task of a step.
fn task_of(step: &crate::Step) -> TaskRef {
    TaskRef {
        tid: Tid(step.id),
        comm: step.comm.clone(),
        prio: step.prio,
    }
}

/// Down to a few digits, and never zero.
fn rounded(threshold: Duration) -> Duration {
    let ns = threshold.as_ns().max(1);
    let unit = 10_i64.pow((ns.ilog10() + 1).saturating_sub(THRESHOLD_DIGITS));
    Duration::from_ns(ns / unit * unit)
}

/// `command` with `{}` for the task, for the culprit's one task or for all of its name but those
/// that the activation hangs on.
fn for_culprit(case: &Case<'_>, task: &TaskRef, command: &str) -> String {
    if case.culprit.tasks == 1 {
        return command.replace("{}", &task.tid.to_string());
    }
    let escaped = |c: char| -> String {
        let special = r".[]()*+?^$|\{}".contains(c);
        if special {
            format!(r"\{c}")
        } else {
            c.to_string()
        }
    };
    let pattern: String = task.comm.chars().map(escaped).collect();
    let chain = tasks::chain(case.late);
    let same = chain.iter().filter(|known| known.comm == task.comm);
    let same: Vec<_> = same.map(|known| known.tid.to_string()).collect();
    let but = match same.is_empty() {
        true => String::new(),
        false => format!(" | grep -vxE '{}'", same.join("|")),
    };
    format!(
        "for tid in $(pgrep -w -x {}{but}); do {}; done",
        quoted(&pattern),
        command.replace("{}", "$tid")
    )
}

/// A name as a shell takes it.
pub fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

/// The CPUs that are left when one is given up, as a list for `taskset`; none when there is one.
fn other_cpus(info: &TraceInfo, cpu: Cpu) -> Option<String> {
    let others: Vec<_> = info
        .cpus
        .iter()
        .filter(|other| **other != cpu)
        .map(|other| other.0.to_string())
        .collect();
    (!others.is_empty()).then(|| others.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_where_a_shell_would_split_it() {
        let check = |name: &str, expect: &str| assert_eq!(quoted(name), expect);
        check("jackd", "jackd");
        check("Client manageme", "'Client manageme'");
        check("it's", r"'it'\''s'");
        check("", "''");
    }

    #[test]
    fn a_threshold_is_rounded_down_to_what_people_would_type() {
        let check = |ns: i64, expect: &str| {
            assert_eq!(format!("{:#}", rounded(Duration::from_ns(ns))), expect);
        };
        check(25_000_000, "25ms");
        check(118_117_023, "118ms");
        check(1_234_567, "1.23ms");
        check(7, "7ns");
        check(0, "1ns");
    }
}
