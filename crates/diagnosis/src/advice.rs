//! What to change: a base of rules, each with its reason, its command and its check.

use event::{Cpu, Duration, kernel_threads};
use trace::TraceInfo;

use crate::finding::{Advice, Culprit, LateActivation};
use event::evidence::PreemptionModel;
use event::evidence::{StepKind, TaskRef};

use kernel_state::softirq_name;

use crate::term::TermKind;

/// What a rule may look at.
struct Case<'a> {
    info: &'a TraceInfo,
    late: &'a LateActivation,
    culprit: &'a Culprit,
}

/// A rule: its name, and its advice where it applies.
type Rule = (&'static str, fn(&Case<'_>) -> Option<(String, String)>);

/// The kernel's own work is worth a boot option from this share of the latency on.
const ISOLATE_SHARE_MIN: f64 = 0.1;

/// Ranks above belong to the kernel's own watchdog and stop threads.
const RAISE_MAX: u32 = 98;
/// Digits of a threshold that people would type.
const THRESHOLD_DIGITS: u32 = 3;

/// All rules; within one culprit, the most effective and the safest first: moving one task harms
/// nobody else, a higher rank may.
const RULES: [Rule; 21] = [
    ("move-interrupt-thread", move_interrupt_thread),
    ("move-task", move_task),
    ("lower-task", lower_task),
    ("renice-task", renice_task),
    ("raise-victim", raise_victim),
    ("make-real-time", make_real_time),
    ("widen-affinity", widen_affinity),
    ("inherit-priority", inherit_priority),
    ("hold-lock-shorter", hold_lock_shorter),
    ("lift-quota", lift_quota),
    ("lock-memory", lock_memory),
    ("hand-on-io", hand_on_io),
    ("move-interrupt", move_interrupt),
    ("move-softirq", move_softirq),
    ("quiet-console", quiet_console),
    ("move-task-that-blocks", move_section),
    ("full-preemption", full_preemption),
    ("limit-idle-states", limit_idle_states),
    ("lift-throttling", lift_throttling),
    ("pin-virtual-cpus", pin_virtual_cpus),
    ("isolate-cpu", isolate_cpu),
];

/// The advice for all culprits, in their order, each rule's advice once.
pub(crate) fn advise(info: &TraceInfo, late: &LateActivation, culprits: &[Culprit]) -> Vec<Advice> {
    // A watch that did not tell its threshold: half of what was seen.
    let half = Duration::from_ns(late.latency().as_ns() / 2);
    let threshold = late.hit.as_ref().map_or(half, |hit| hit.threshold);
    let then_check = format!(
        "rtscope watch --task {} --over {:#}",
        quoted(&late.task.comm),
        rounded(threshold)
    );
    let mut advice: Vec<Advice> = Vec::new();
    for culprit in culprits {
        let case = Case {
            info,
            late,
            culprit,
        };
        for (rule, applies) in RULES {
            let Some((because, command)) = applies(&case) else {
                continue;
            };
            if advice.iter().all(|given| given.command != command) {
                advice.push(Advice {
                    rule,
                    because,
                    command,
                    then_check: then_check.clone(),
                });
            }
        }
    }
    advice
}

/// Down to a few digits, and never zero.
fn rounded(threshold: Duration) -> Duration {
    let ns = threshold.as_ns().max(1);
    let unit = 10_i64.pow((ns.ilog10() + 1).saturating_sub(THRESHOLD_DIGITS));
    Duration::from_ns(ns / unit * unit)
}

/// `command` with `{}` for the task, for the culprit's one task or for all of its name.
fn for_culprit(culprit: &Culprit, task: &TaskRef, command: &str) -> String {
    if culprit.tasks == 1 {
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
    format!(
        "for tid in $(pgrep -w -x {}); do {}; done",
        quoted(&pattern),
        command.replace("{}", "$tid")
    )
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
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

fn behind<'a>(case: &'a Case<'_>) -> Option<&'a TaskRef> {
    match &case.culprit.kind {
        TermKind::RunQueueWait { behind } => Some(behind),
        _ => None,
    }
}

/// Threads that the kernel binds to their CPU: moving them is refused.
fn is_bound(task: &TaskRef) -> bool {
    kernel_threads::is_bound(task.comm.as_bytes())
}

fn move_interrupt_thread(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case)?;
    let irq = kernel_threads::irq_of_thread(task.comm.as_bytes())?;
    let others = other_cpus(case.info, case.culprit.cpu)?;
    let because = format!(
        "{} handles interrupt {irq} on {}",
        task.comm, case.culprit.cpu
    );
    Some((
        because,
        format!("echo {others} > /proc/irq/{irq}/smp_affinity_list"),
    ))
}

fn move_task(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| !is_bound(task))?;
    let culprit = case.culprit;
    let others = other_cpus(case.info, culprit.cpu)?;
    let (cpu, victim) = (culprit.cpu, &case.late.task.comm);
    let because = if culprit.tasks > 1 {
        // Where they end before anybody can move them, their parent is the one to move.
        format!(
            "{} tasks called {} share {cpu} with {victim}; their parent hands CPUs and rank on",
            culprit.tasks, task.comm
        )
    } else {
        format!("{} shares {cpu} with {victim}", task.comm)
    };
    // One thread, not its process: the victim may be a thread of it.
    let command = for_culprit(culprit, task, &format!("taskset -pc {others} {{}}"));
    Some((because, command))
}

fn lower_task(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| !is_bound(task))?;
    let (low, low_rank) = lowest(case)?;
    let rank = task.prio.rt()?;
    let below = low_rank
        .checked_sub(1)
        .filter(|below| *below >= 1 && rank >= low_rank)?;
    let because = format!("{} has rt {rank}, {low} has rt {low_rank}", task.comm);
    let command = for_culprit(case.culprit, task, &format!("chrt -r -p {below} {{}}"));
    Some((because, command))
}

/// The real-time tasks that the activation hangs on, the late one last: each that a step wakes.
fn chain<'a>(case: &'a Case<'_>) -> Vec<(i32, &'a str, u32)> {
    let woken = case.late.steps.iter();
    let woken = woken.filter(|step| step.kind == StepKind::Waking);
    let woken = woken.map(|step| (step.id, step.comm.as_str(), step.prio));
    let late = &case.late.task;
    let all = woken.chain([(late.tid.0, late.comm.as_str(), late.prio)]);
    let mut tasks: Vec<(i32, &str, u32)> = Vec::new();
    for (tid, comm, prio) in all {
        if let Some(rank) = prio.rt() {
            tasks.retain(|known| known.0 != tid);
            tasks.push((tid, comm, rank));
        }
    }
    tasks
}

/// Who of the chain has the lowest rank: above it, a task holds up the activation.
fn lowest<'a>(case: &'a Case<'_>) -> Option<(&'a str, u32)> {
    case.late.task.prio.rt()?;
    let tasks = chain(case).into_iter();
    let low = tasks.min_by_key(|(_, _, rank)| *rank)?;
    Some((low.1, low.2))
}

fn renice_task(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| !is_bound(task))?;
    let (victim, nice) = (case.late.task.prio.nice()?, task.prio.nice()?);
    (nice < victim).then_some(())?;
    let because = format!(
        "{} has nice {nice}, {} has nice {victim}",
        task.comm, case.late.task.comm
    );
    let command = for_culprit(case.culprit, task, "renice -n 19 -p {}");
    Some((because, command))
}

/// Only where nothing can be put below the victim.
fn raise_victim(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| !is_bound(task))?;
    let victim = &case.late.task;
    let rank = task.prio.rt()?;
    let is_lowest = match lowest(case) {
        Some((_, low_rank)) => low_rank == 1,
        None => victim.prio.nice().is_some(),
    };
    let above = rank
        .checked_add(1)
        .filter(|above| is_lowest && *above <= RAISE_MAX)?;
    let because = format!(
        "{} has {}: nothing real-time goes below it. Check first that it never runs for long: \
         at rt {above} it holds up everything below",
        victim.comm, victim.prio
    );
    // Whoever leads to it must not stay behind either.
    let others = chain(case).into_iter();
    let others = others.filter(|(tid, _, own)| *tid != victim.tid.0 && *own < above);
    let tids = others.map(|(tid, ..)| tid).chain([victim.tid.0]);
    let commands: Vec<_> = tids
        .map(|tid| format!("chrt -f -p {above} {tid}"))
        .collect();
    Some((because, commands.join(" && ")))
}

fn make_real_time(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case)?;
    if case.late.task.prio.is_real_time() || task.prio.is_real_time() {
        return None;
    }
    let because = format!(
        "{} and {} share the CPU as equals",
        case.late.task.comm, task.comm
    );
    Some((because, format!("chrt -f -p 10 {}", case.late.task.tid)))
}

/// A real-time task that waits while another CPU idles, or runs what it beats, was not allowed
/// there: it would have gone.
fn widen_affinity(case: &Case<'_>) -> Option<(String, String)> {
    behind(case)?;
    let late = case.late;
    late.task.prio.is_real_time().then_some(())?;
    let free = late.free_meanwhile.first()?;
    let mut cpus = late.free_meanwhile.clone();
    cpus.push(late.cpu);
    cpus.sort();
    let list: Vec<_> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
    let because = format!(
        "{free} was free for it meanwhile, and {} stayed here",
        late.task.comm
    );
    let command = format!("taskset -pc {} {}", list.join(","), late.task.tid);
    Some((because, command))
}

fn inherit_priority(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::PriorityInversion { owner, .. } = &case.culprit.kind else {
        return None;
    };
    let because = format!(
        "{} holds the lock without the rank of those who wait",
        owner.comm
    );
    let change = "pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) for that mutex";
    Some((because, change.to_owned()))
}

fn hold_lock_shorter(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::LockWait { owner } = &case.culprit.kind else {
        return None;
    };
    let because = format!("{} holds the lock for all of its work", owner.comm);
    let change = format!(
        "let {} prepare outside the lock, and hold it for the hand-over",
        owner.comm
    );
    Some((because, change))
}

fn lift_quota(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::Quota).then_some(())?;
    let because = "its control group used up its share of the CPU".to_owned();
    let tid = case.late.task.tid;
    let command = format!("echo max > /sys/fs/cgroup$(cut -d: -f3 /proc/{tid}/cgroup)/cpu.max");
    Some((because, command))
}

fn lock_memory(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::PageFault).then_some(())?;
    let because = format!(
        "{} works on pages that are not there yet",
        case.late.task.comm
    );
    let change = "mlockall(MCL_CURRENT | MCL_FUTURE) before the work, and touch its buffers once";
    Some((because, change.to_owned()))
}

fn hand_on_io(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::BlockIo).then_some(())?;
    let because = format!("{} waits for the device itself", case.late.task.comm);
    let change = "hand the data to another thread, which writes it".to_owned();
    Some((because, change))
}

fn move_interrupt(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::Hardirq { irq, name } = &case.culprit.kind else {
        return None;
    };
    let others = other_cpus(case.info, case.culprit.cpu).filter(|_| *irq >= 0)?;
    let because = format!("interrupt {irq} {name} is handled on {}", case.culprit.cpu);
    Some((
        because,
        format!("echo {others} > /proc/irq/{irq}/smp_affinity_list"),
    ))
}

fn move_softirq(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::Softirq { vector } = case.culprit.kind else {
        return None;
    };
    let name = softirq_name(vector)?;
    let victim = case.late.task.tid;
    let others = other_cpus(case.info, case.culprit.cpu)?;
    let because = format!(
        "softirq {name} runs where its interrupt does, on {}",
        case.culprit.cpu
    );
    Some((because, format!("taskset -pc {others} {victim}")))
}

/// How the kernel's functions that write messages to a console are called.
const CONSOLE_NAMES: [&str; 3] = ["console_", "vprintk", "_console_write"];

/// A serial line takes milliseconds for a message, and whoever prints it waits for the line with
/// interrupts or preemption off, unless the console has a thread of its own.
fn quiet_console(case: &Case<'_>) -> Option<(String, String)> {
    let (TermKind::InterruptsOff { function, .. }
    | TermKind::PreemptionOff {
        function: Some(function),
        ..
    }) = &case.culprit.kind
    else {
        return None;
    };
    let prints = |name: &str| function.contains(name);
    CONSOLE_NAMES.into_iter().any(prints).then_some(())?;
    let because = format!("{function} writes a kernel message to a slow console");
    let command = "dmesg -n 1   # emergencies only; the log keeps all, boot with quiet";
    Some((because, command.to_owned()))
}

fn move_section(case: &Case<'_>) -> Option<(String, String)> {
    let (TermKind::InterruptsOff { task, .. } | TermKind::PreemptionOff { task, .. }) =
        &case.culprit.kind
    else {
        return None;
    };
    let task = Some(task).filter(|task| !is_bound(task) && !task.tid.is_idle())?;
    let others = other_cpus(case.info, case.culprit.cpu)?;
    let because = format!("{} runs that code on {}", task.comm, case.culprit.cpu);
    let command = for_culprit(case.culprit, task, &format!("taskset -pc {others} {{}}"));
    Some((because, command))
}

fn full_preemption(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::PreemptionOff { model, .. } = &case.culprit.kind else {
        return None;
    };
    if model.is_full() || *model == PreemptionModel::Unknown {
        return None;
    }
    let because = format!("the kernel's preemption model is '{}'", model.name());
    Some((
        because,
        "echo full > /sys/kernel/debug/sched/preempt".to_owned(),
    ))
}

fn limit_idle_states(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::IdleExit).then_some(())?;
    let because = format!("{} was in a deep idle state", case.culprit.cpu);
    Some((
        because,
        format!("cpupower -c {} idle-set -D 10", case.culprit.cpu.0),
    ))
}

fn lift_throttling(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::Throttled { .. }).then_some(())?;
    let because = "real-time tasks used up their share of the CPU".to_owned();
    Some((
        because,
        "sysctl -w kernel.sched_rt_runtime_us=-1".to_owned(),
    ))
}

fn pin_virtual_cpus(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::Steal).then_some(())?;
    let cpu = case.culprit.cpu.0;
    let because = "the host ran something else on this virtual CPU".to_owned();
    Some((
        because,
        format!("virsh vcpupin DOMAIN {cpu} HOST_CPU   # on the host"),
    ))
}

fn isolate_cpu(case: &Case<'_>) -> Option<(String, String)> {
    if case.culprit.share < ISOLATE_SHARE_MIN {
        return None;
    }
    let local_timer = matches!(case.culprit.kind, TermKind::Hardirq { irq, .. } if irq < 0);
    let stop = matches!(case.culprit.kind, TermKind::StopClass { .. });
    (local_timer || stop).then_some(())?;
    let cpu = case.culprit.cpu.0;
    let because = format!("the kernel's own work runs on CPU {cpu}");
    Some((
        because,
        format!("boot with isolcpus=managed_irq,domain,{cpu} nohz_full={cpu}"),
    ))
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
