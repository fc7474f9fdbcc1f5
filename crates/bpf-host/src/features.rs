//! What this kernel and these privileges allow a watch: plain facts, found by trying, never by
//! version.

use std::fs;

use event::ErrorKind;
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::{MapType, ProgramType};

use crate::kernel::PerCpuOffsets;
use crate::object;
use crate::statistics::RunTimeStatistics;

/// Capabilities by number (include/uapi/linux/capability.h).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// The tracepoints that a watch may use, and what is lost without each. Those of vectors are not
/// here: a kernel without one has no such interrupt.
const TRACEPOINTS: [(&str, &str); 16] = [
    ("sched_switch", "no watch at all"),
    ("sched_waking", "no watch at all"),
    ("sched_wakeup_new", "new tasks have no chain"),
    ("task_newtask", "new tasks are not seen"),
    ("task_rename", "renamed tasks keep their first match"),
    (
        "irq_handler_entry",
        "chains do not begin at device interrupts",
    ),
    (
        "irq_handler_exit",
        "chains do not begin at device interrupts",
    ),
    ("softirq_raise", "chains begin at softirq entry"),
    ("softirq_entry", "chains do not pass through softirqs"),
    ("softirq_exit", "chains do not pass through softirqs"),
    ("hrtimer_start", "timers armed after their expiry look late"),
    (
        "hrtimer_expire_entry",
        "chains do not begin at timer expiry",
    ),
    ("hrtimer_expire_exit", "chains do not begin at timer expiry"),
    ("nmi_handler", "NMIs are not seen"),
    (
        "sched_set_need_resched_tp",
        "no evidence of late preemptions",
    ),
    ("sys_exit", "chains cannot end at the return to user space"),
];

/// A tracepoint, whether the kernel's BTF describes it, and what its absence costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracepointFact {
    /// Its name.
    pub name: &'static str,
    /// Whether programs can be attached to it with typed arguments.
    pub present: bool,
    /// What a watch cannot do without it.
    pub without: &'static str,
}

/// Capabilities about BPF on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The kernel describes its types (`/sys/kernel/btf/vmlinux`).
    pub btf: bool,
    /// The effective user.
    pub uid: u32,
    /// CAP_BPF, or CAP_SYS_ADMIN, which implies it.
    pub cap_bpf: bool,
    /// CAP_PERFMON, or CAP_SYS_ADMIN, which implies it.
    pub cap_perfmon: bool,
    /// CAP_SYS_ADMIN itself: BPF statistics need it.
    pub cap_sys_admin: bool,
    /// The limit of locked memory in bytes; none: unlimited. Kernels since 5.11 do not use it.
    pub memlock_bytes: Option<u64>,
    /// `none`, `integrity` or `confidentiality`; none: the kernel has no lockdown.
    pub lockdown: Option<String>,
    /// The system calls of BPF answer.
    pub bpf: bool,
    /// Typed tracepoint programs exist.
    pub tracing_programs: bool,
    /// The BPF ring buffer exists.
    pub ring_buffer: bool,
    /// Task storage exists.
    pub task_storage: bool,
    /// The task iterator exists.
    pub task_iterator: bool,
    /// `sched_switch` says in which state the task left (Linux 5.18, fa2c3254d7cf).
    pub switch_state: bool,
    /// The run time of programs can be counted.
    pub statistics: bool,
    /// The interrupted instruction of a late timer can be read.
    pub interrupted_registers: bool,
    /// Paravirtual steal can be read.
    pub steal: bool,
    /// Why an empty program cannot be attached to `sched_switch`; none: it can.
    pub attach_failure: Option<String>,
    /// Every tracepoint that a watch may use.
    pub tracepoints: Vec<TracepointFact>,
}

impl Features {
    /// Finds all facts; needs no privilege, but without it several are false.
    pub fn probe() -> Features {
        let mut features = Features::probe_basics();
        features.ring_buffer = MapType::RingBuf.is_supported().unwrap_or(false);
        features.task_storage = MapType::TaskStorage.is_supported().unwrap_or(false);
        features.statistics = RunTimeStatistics::enable().is_ok();
        features.attach_failure = try_attach();
        if let Some(btf) = vmlinux() {
            let present = |name| has_tracepoint(&btf, name);
            features.tracepoints = TRACEPOINTS
                .map(|(name, without)| TracepointFact {
                    name,
                    present: present(name),
                    without,
                })
                .to_vec();
            features.task_iterator = btf
                .type_by_name::<types::Struct<'_>>("bpf_iter__task")
                .is_some();
            features.switch_state = tracepoint_arguments(&btf, "sched_switch") == Some(4);
            let offsets = PerCpuOffsets::of(&btf);
            features.interrupted_registers = offsets.irq_regs != 0;
            features.steal = offsets.steal != 0;
        }
        features
    }

    /// The facts that explain most failures, and cost nothing to find.
    pub(crate) fn probe_basics() -> Features {
        let capabilities = effective_capabilities();
        let has = |capability: u32| capabilities >> capability & 1 == 1;
        Features {
            btf: fs::metadata("/sys/kernel/btf/vmlinux").is_ok_and(|file| file.len() > 0),
            uid: rustix::process::geteuid().as_raw(),
            cap_bpf: has(CAP_BPF) || has(CAP_SYS_ADMIN),
            cap_perfmon: has(CAP_PERFMON) || has(CAP_SYS_ADMIN),
            cap_sys_admin: has(CAP_SYS_ADMIN),
            memlock_bytes: rustix::process::getrlimit(rustix::process::Resource::Memlock).current,
            lockdown: lockdown(),
            bpf: MapType::Array.is_supported().unwrap_or(false),
            tracing_programs: ProgramType::Tracing.is_supported().unwrap_or(false),
            ..Features::default()
        }
    }

    /// The basic fact that forbids BPF programs, as kind, value found and fix; none: none does.
    pub fn explanation(&self) -> Option<(ErrorKind, String, String)> {
        if !self.cap_bpf || !self.cap_perfmon {
            let found = format!("uid {} without CAP_BPF and CAP_PERFMON", self.uid);
            return Some((
                ErrorKind::PermissionDenied,
                found,
                "run it with sudo".into(),
            ));
        }
        if !self.btf {
            let fix = "boot a kernel with CONFIG_DEBUG_INFO_BTF=y";
            return Some((
                ErrorKind::Unsupported,
                "no /sys/kernel/btf/vmlinux".into(),
                fix.into(),
            ));
        }
        if self.lockdown.as_deref() == Some("confidentiality") {
            let fix = "boot with lockdown=integrity, or without lockdown";
            let found = "kernel lockdown is 'confidentiality'";
            return Some((ErrorKind::PermissionDenied, found.into(), fix.into()));
        }
        if !self.bpf {
            let fix = "boot a kernel with CONFIG_BPF_SYSCALL=y; leave a container that forbids it";
            return Some((
                ErrorKind::Unsupported,
                "the bpf system call fails".into(),
                fix.into(),
            ));
        }
        None
    }

    /// Whether the tracepoint is there; false for names that no watch uses.
    pub fn has(&self, tracepoint: &str) -> bool {
        self.tracepoints
            .iter()
            .any(|fact| fact.name == tracepoint && fact.present)
    }
}

/// The kernel's own BTF.
pub(crate) fn vmlinux() -> Option<Btf<'static>> {
    Btf::from_vmlinux().ok()
}

/// Whether programs can be attached to the tracepoint with typed arguments.
pub(crate) fn has_tracepoint(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<types::Typedef<'_>>(&format!("btf_trace_{name}"))
        .is_some()
}

/// Whether programs can be attached to the function.
pub(crate) fn has_function(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<types::Func<'_>>(name).is_some()
}

/// The number of a tracepoint's arguments, its private data not counted.
fn tracepoint_arguments(btf: &Btf<'_>, name: &str) -> Option<usize> {
    let typedef = btf.type_by_name::<types::Typedef<'_>>(&format!("btf_trace_{name}"))?;
    let pointer = types::Ptr::try_from(typedef.next_type()?).ok()?;
    let function = types::FuncProto::try_from(pointer.next_type()?).ok()?;
    function.len().checked_sub(1)
}

fn try_attach() -> Option<String> {
    let attached = object::open(object::EMPTY)
        .and_then(|empty| object::load(empty, |program| program == "nothing"))
        .and_then(|empty| object::attach(&empty, |_| true));
    attached.err().map(|error| error.to_string())
}

/// `[none] integrity confidentiality`: the one in brackets.
fn lockdown() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_missing_thing_explains_a_failure() {
        let check = |change: fn(&mut Features), expect: Option<&str>| {
            let mut features = Features {
                btf: true,
                cap_bpf: true,
                cap_perfmon: true,
                bpf: true,
                ..Features::default()
            };
            change(&mut features);
            let found = features.explanation().map(|(_, found, _)| found);
            assert_eq!(found.as_deref(), expect);
        };
        check(|_| (), None);
        check(
            |f| f.cap_bpf = false,
            Some("uid 0 without CAP_BPF and CAP_PERFMON"),
        );
        check(|f| f.btf = false, Some("no /sys/kernel/btf/vmlinux"));
        let locked = Some("kernel lockdown is 'confidentiality'");
        check(|f| f.lockdown = Some("confidentiality".into()), locked);
        check(|f| f.lockdown = Some("integrity".into()), None);
        check(|f| f.bpf = false, Some("the bpf system call fails"));
    }
}
