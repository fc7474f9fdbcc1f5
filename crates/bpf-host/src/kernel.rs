//! Capabilities of the running kernel that the watch needs: CPUs, preemption model, names of
//! interrupts, and where per-CPU variables lie.

use std::fs;

use event::evidence::PreemptionModel;
use event::{Cpu, Error, Result, vectors};
use libbpf_rs::btf::{Btf, types};

/// The number of CPUs that this machine may have: one more than the highest possible number.
pub(crate) fn cpus_max() -> Result<u32> {
    let count = libbpf_rs::num_possible_cpus().map_err(|error| {
        Error::io(
            "cannot count the CPUs",
            std::io::Error::other(error.to_string()),
        )
        .fix("mount -t sysfs sysfs /sys")
    })?;
    Ok(count as u32)
}

/// The CPUs that are on; none when the kernel does not say.
pub(crate) fn cpus_on() -> Vec<Cpu> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    Cpu::parse_list(&text).unwrap_or_default()
}

/// The preemption model in force. With dynamic preemption only debugfs names it; without debugfs
/// the boot's own choice is taken from the kernel's version line when that leaves no doubt.
pub(crate) fn preemption_model() -> PreemptionModel {
    if fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1") {
        return PreemptionModel::Rt;
    }
    if let Ok(text) = fs::read_to_string("/sys/kernel/debug/sched/preempt") {
        return model_in_parentheses(&text);
    }
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    model_of_boot(&read("/proc/cmdline"), &read("/proc/version"))
}

/// `none voluntary (full) lazy`: the one in parentheses is in force.
fn model_in_parentheses(text: &str) -> PreemptionModel {
    let chosen = text
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    chosen.map_or(PreemptionModel::Unknown, |(name, _)| model_named(name))
}

fn model_of_boot(command_line: &str, version: &str) -> PreemptionModel {
    let words = |text: &str, found: &str| text.split_ascii_whitespace().any(|word| word == found);
    if words(version, "PREEMPT_RT") {
        return PreemptionModel::Rt;
    }
    let mut options = command_line
        .split_ascii_whitespace()
        .filter_map(|w| w.strip_prefix("preempt="));
    match options.next_back() {
        Some(name) => model_named(name),
        None if words(version, "PREEMPT") => PreemptionModel::Full,
        None => PreemptionModel::Unknown,
    }
}

fn model_named(name: &str) -> PreemptionModel {
    match name {
        "none" => PreemptionModel::None,
        "voluntary" => PreemptionModel::Voluntary,
        "lazy" => PreemptionModel::Lazy,
        "full" => PreemptionModel::Full,
        _ => PreemptionModel::Unknown,
    }
}

/// The handlers of an interrupt, comma-separated as the kernel lists them.
pub(crate) fn irq_name(irq: i32) -> String {
    match vectors::vector(irq) {
        Some(vector) => vector.tag.into(),
        None => fs::read_to_string(format!("/sys/kernel/irq/{irq}/actions"))
            .map_or_else(|_| String::new(), |names| names.trim().to_owned()),
    }
}

/// Where per-CPU variables lie, counted from `hrtimer_bases` of the same CPU: a timer's handler has
/// that address at hand, and kernels without KALLSYMS_ALL give no other way to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerCpuOffsets {
    /// KVM's `steal_time`; zero: not there.
    pub steal: i64,
    /// `__irq_regs`, the interrupted registers; zero: not there.
    pub irq_regs: i64,
    /// `runqueues`: who runs on another CPU; zero: not there.
    pub rq: i64,
}

impl PerCpuOffsets {
    pub(crate) fn of(btf: &Btf<'_>) -> Self {
        let Some(base) = per_cpu_offset(btf, "hrtimer_bases") else {
            return PerCpuOffsets::default();
        };
        let from_base = |name| per_cpu_offset(btf, name).map_or(0, |offset| offset - base);
        PerCpuOffsets {
            steal: from_base("steal_time"),
            irq_regs: from_base("__irq_regs"),
            rq: from_base("runqueues"),
        }
    }
}

/// Where the count of interrupts and of preemption lies, counted from the same CPU's run queue;
/// zero where nobody can say (x86 before 6.15, where it is in a structure, and other machines).
pub(crate) fn preempt_count_offset(btf: &Btf<'_>) -> i64 {
    let offset = |name| per_cpu_offset(btf, name);
    match (offset("__preempt_count"), offset("runqueues")) {
        (Some(count), Some(queue)) => count - queue,
        _ => 0,
    }
}

fn per_cpu_offset(btf: &Btf<'_>, name: &str) -> Option<i64> {
    let variable = btf.type_by_name::<types::Var<'_>>(name)?.type_id();
    let section = btf.type_by_name::<types::DataSec<'_>>(".data..percpu")?;
    section
        .iter()
        .find(|info| info.ty == variable)
        .map(|info| i64::from(info.offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_in_force_is_the_one_in_parentheses() {
        let check = |text, expect| assert_eq!(model_in_parentheses(text), expect);
        check("(none) voluntary full lazy\n", PreemptionModel::None);
        check("none voluntary full (lazy)\n", PreemptionModel::Lazy);
        check("none voluntary full\n", PreemptionModel::Unknown);
    }

    #[test]
    fn without_debugfs_a_dynamic_kernel_is_known_only_by_its_command_line() {
        let check = |line, version, expect| assert_eq!(model_of_boot(line, version), expect);
        check(
            "quiet",
            "Linux #1 SMP PREEMPT_DYNAMIC",
            PreemptionModel::Unknown,
        );
        check(
            "preempt=none",
            "Linux #1 SMP PREEMPT_DYNAMIC",
            PreemptionModel::None,
        );
        check("quiet", "Linux #1 SMP PREEMPT_RT", PreemptionModel::Rt);
        check("quiet", "Linux #1 SMP PREEMPT", PreemptionModel::Full);
    }
}
