//! Rules about interrupts, the kernel and the machine.

use event::evidence::PreemptionModel;
use kernel_state::softirq_name;

use super::{Case, other_cpus};
use crate::diagnose::is_virtual;
use crate::stacks::A_BPF_PROGRAM;
use crate::term::TermKind;

/// The kernel's own work is worth a boot option from this share of the latency on.
const ISOLATE_SHARE_MIN: f64 = 0.1;
/// How the kernel's functions that write messages to a console are called.
const CONSOLE_NAMES: [&str; 3] = ["console_", "vprintk", "_console_write"];

pub(super) fn move_interrupt(case: &Case<'_>) -> Option<(String, String)> {
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

pub(super) fn move_softirq(case: &Case<'_>) -> Option<(String, String)> {
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

/// A serial line takes milliseconds for a message, and whoever prints it waits for the line with
/// interrupts or preemption off, unless the console has a thread of its own.
pub(super) fn quiet_console(case: &Case<'_>) -> Option<(String, String)> {
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

/// Whether the machine said that it refuses to turn what is in debugfs.
fn refuses_debugfs(case: &Case<'_>) -> bool {
    debugfs_is(case, "refused")
}

fn debugfs_is(case: &Case<'_>, what: &str) -> bool {
    let said = case.info.environment.get("rtscope_debugfs");
    said.is_some_and(|said| said == what)
}

/// A knob of the scheduler in debugfs, which is mounted where that may be needed.
fn turn_knob(case: &Case<'_>, knob: &str, value: &str) -> String {
    let turn = format!("echo {value} > {knob}");
    match debugfs_is(case, "allowed") {
        true => turn,
        false => format!("[ -e {knob} ] || mount -t debugfs none /sys/kernel/debug; {turn}"),
    }
}

/// The first kernel whose fair tasks have a deadline server in place of the limit's share.
const SERVER_SINCE: (u32, u32) = (6, 12);

/// Whether the kernel's fair tasks have a deadline server, as far as its release tells.
fn has_fair_server(case: &Case<'_>) -> Option<bool> {
    let release = case.info.environment.get("kernel_release")?;
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    Some((number()?, number()?) >= SERVER_SINCE)
}

/// Only a kernel that was built with a choice has one.
pub(super) fn full_preemption(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::PreemptionOff {
        model, function, ..
    } = &case.culprit.kind
    else {
        return None;
    };
    // Most kinds of BPF programs run with preemption off under every model.
    if function.as_deref() == Some(A_BPF_PROGRAM) {
        return None;
    }
    if model.is_full() || *model == PreemptionModel::Unknown {
        return None;
    }
    let version = case.info.environment.get("kernel_version");
    let has_choice = version.is_none_or(|version| version.contains("PREEMPT_DYNAMIC"));
    has_choice.then_some(())?;
    let model = format!("the kernel's preemption model is '{}'", model.name());
    if refuses_debugfs(case) {
        let because = format!("{model}, and this kernel lets nobody change it while it runs");
        return Some((because, "boot with preempt=full".to_owned()));
    }
    let because = format!("{model} (if debugfs refuses it, boot with preempt=full)");
    let command = turn_knob(case, "/sys/kernel/debug/sched/preempt", "full");
    Some((because, command))
}

/// A virtual CPU halts: it has no states to choose from.
pub(super) fn limit_idle_states(case: &Case<'_>) -> Option<(String, String)> {
    let is_exit = matches!(case.culprit.kind, TermKind::IdleExit);
    (is_exit && !is_virtual(case.info)).then_some(())?;
    let because = format!("{} was in a deep idle state", case.culprit.cpu);
    let command = format!("cpupower -c {} idle-set -D 10", case.culprit.cpu.0);
    Some((because, command))
}

/// Kernels with a deadline server for fair tasks have no other limit: it lets real-time tasks be
/// whatever the limit on these is. Older kernels have only that.
pub(super) fn lift_throttling(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::Throttled { served, .. } = &case.culprit.kind else {
        return None;
    };
    let has_server = if *served {
        Some(true)
    } else {
        has_fair_server(case)
    };
    if has_server != Some(false) && refuses_debugfs(case) {
        return None;
    }
    let of_kernels =
        "by their deadline server or, in older kernels, by the limit on real-time tasks";
    let kept_by = match has_server {
        Some(true) => "by their deadline server",
        Some(false) => "by the limit on real-time tasks",
        None => of_kernels,
    };
    let because = format!(
        "real-time tasks used up their share of the CPU: fair tasks keep the rest, {kept_by}"
    );
    let cpu = case.culprit.cpu.0;
    let server = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let limit = "sysctl -w kernel.sched_rt_runtime_us=-1";
    let command = match has_server {
        Some(true) => turn_knob(case, &server, "0"),
        Some(false) => limit.to_owned(),
        None => format!("if [ -e {server} ]; then echo 0 > {server}; else {limit}; fi"),
    };
    Some((because, command))
}

pub(super) fn pin_virtual_cpus(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::Steal).then_some(())?;
    let cpu = case.culprit.cpu.0;
    let because = "the host ran something else on this virtual CPU".to_owned();
    Some((
        because,
        format!("virsh vcpupin DOMAIN {cpu} HOST_CPU   # on the host"),
    ))
}

pub(super) fn isolate_cpu(case: &Case<'_>) -> Option<(String, String)> {
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
