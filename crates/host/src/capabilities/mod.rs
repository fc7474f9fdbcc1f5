//! What this kernel, these privileges and this machine allow, verb by verb.
//!
//! Three steps, the outer two testable without a system: [`parse`](self) reads texts of `/proc` and
//! `/sys`, [`gather`] does the I/O and fills plain [`Capabilities`], [`Capabilities::stand`] judges
//! them. Every error about a privilege or a kernel feature comes from [`Capabilities::require`], so
//! that a verb refuses with the words that `rtscope doctor` prints.
//!
//! # Design constraints
//! - A feature is probed, never derived from a version number.
//! - Gathering leaves nothing behind on the machine and needs no privilege. What is found out by
//!   loading programs is handed in: nothing here links libbpf.

mod doubts;
mod gather;
mod hypervisor;
mod parse;
mod rules;
#[cfg(test)]
mod tests;

use event::Cpu;
use serde::Serialize;

pub use gather::{gather, gather_cpus};
pub use hypervisor::StealReport;
pub use rules::{Effect, Lack, Rung, Stand, Verb};

/// All capabilities that the rules judge.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Capabilities {
    /// Who we are.
    pub privileges: Privileges,
    /// The kernel's event tracer.
    pub tracefs: Tracefs,
    /// The kernel's programs.
    pub bpf: Bpf,
    /// Real-time scheduling.
    pub scheduler: Scheduler,
    /// The machine below.
    pub machine: Machine,
    /// Where `jackd` is, when it is installed.
    pub jackd_path: Option<String>,
}

/// Who we are: the user and the effective capabilities that matter here.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Privileges {
    /// Effective user id.
    pub uid: u32,
    /// In a user namespace that is not the first, whose capabilities count for nothing here.
    pub in_user_namespace: bool,
    /// CAP_SYS_ADMIN, as all others one of the first user namespace.
    pub sys_admin: bool,
    /// CAP_BPF.
    pub bpf: bool,
    /// CAP_PERFMON.
    pub perfmon: bool,
    /// CAP_SYS_NICE: real-time priorities for any task.
    pub sys_nice: bool,
    /// CAP_SYSLOG: kernel addresses.
    pub syslog: bool,
    /// RLIMIT_MEMLOCK in bytes; none when unlimited.
    pub memlock_bytes: Option<u64>,
    /// RLIMIT_RTPRIO: the highest real-time priority without CAP_SYS_NICE.
    pub rtprio_max: u64,
    /// Memory cannot be locked: neither CAP_IPC_LOCK nor a limit that is high enough.
    pub memory_lock_refused: bool,
    /// How deep idle CPUs sleep is not ours to limit.
    pub idle_limit_refused: bool,
}

/// The kernel's event tracer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tracefs {
    /// Where it is mounted.
    pub mountpoint: Option<String>,
    /// Whether we may write its files.
    pub writable: bool,
    /// Whether instances of our own can be made.
    pub instances: bool,
    /// Whether the events of the scheduler can be recorded.
    pub sched_events: bool,
    /// Whether `/proc/kallsyms` shows addresses to us: stacks have names.
    pub kernel_symbols: bool,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Option<i64>,
    /// How functions of the kernel are recorded; none where nobody looked.
    pub functions: Option<Functions>,
}

/// How functions of the kernel are recorded here.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Functions {
    /// Where they begin and where they return.
    BothEnds,
    /// So of this many at most, by probes; of more where they begin alone.
    Probed(usize),
    /// Where they begin alone.
    Entries,
    /// Not at all: why.
    Refused(String),
}

/// The kernel's programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bpf {
    /// Whether the kernel describes its own types (`/sys/kernel/btf/vmlinux`).
    pub btf: bool,
    /// Why an empty program could not be attached; none when it could.
    pub refused: Option<String>,
    /// `kernel.unprivileged_bpf_disabled`.
    pub unprivileged_disabled: Option<i64>,
    /// The lockdown mode in force, when there is one: `confidentiality` forbids reading the kernel.
    pub lockdown: Option<String>,
    /// Whether the run time of programs can be counted: our cost is known.
    pub statistics: bool,
    /// Whether the code that a late timer interrupted can be read.
    pub interrupted_registers: bool,
    /// Whether the time that a hypervisor took can be read.
    pub steal: bool,
    /// The tracepoints that the kernel lacks.
    pub absent: Vec<AbsentTracepoint>,
}

/// A tracepoint that the kernel lacks, and what is lost with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AbsentTracepoint {
    /// Its name.
    pub name: String,
    /// What a watch cannot do without it.
    pub without: String,
}

/// How the running kernel preempts itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// The kernel does not say.
    #[default]
    Unknown,
    /// Only where it sleeps or returns to user space.
    None,
    /// At explicit points too.
    Voluntary,
    /// At the tick for fair tasks, at once for real-time ones.
    Lazy,
    /// Wherever preemption is not disabled.
    Full,
    /// PREEMPT_RT.
    Rt,
}

impl Preemption {
    /// The name that the kernel's own settings use.
    pub fn name(self) -> &'static str {
        match self {
            Preemption::Unknown => "unknown",
            Preemption::None => "none",
            Preemption::Voluntary => "voluntary",
            Preemption::Lazy => "lazy",
            Preemption::Full => "full",
            Preemption::Rt => "rt",
        }
    }
}

/// What ordinary tasks get of a CPU that a real-time task wants for itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FairServer {
    /// So much of each period, on the CPU where it is most; none where the kernel lets nobody read
    /// it.
    pub runtime_ns: Option<i64>,
    /// The period there.
    pub period_ns: Option<i64>,
}

/// Real-time scheduling.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scheduler {
    /// The preemption model in force.
    pub preemption: Preemption,
    /// `kernel.sched_rt_runtime_us`: µs per period for real-time tasks; -1 = no limit.
    pub rt_runtime_us: Option<i64>,
    /// `kernel.sched_rt_period_us`.
    pub rt_period_us: Option<i64>,
    /// The deadline server of ordinary tasks, which since Linux 6.12 does what `rt_runtime_us` did
    /// before; none where the kernel has none, or keeps its settings (debugfs) from us.
    pub fair_server: Option<FairServer>,
    /// The real-time budget of our control group, where the kernel has RT_GROUP_SCHED: 0 forbids
    /// real-time priorities even to root.
    pub cgroup_rt_runtime_us: Option<i64>,
    /// That control group's folder.
    pub cgroup: Option<String>,
}

/// What disturbs tasks without anybody's asking; none where the kernel does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Background {
    /// Whether `irqbalance` runs, which moves interrupts from CPU to CPU.
    pub irqbalance: bool,
    /// `transparent_hugepage/enabled`: `always` has pages copied and merged behind every task.
    pub huge_pages: Option<String>,
    /// Whether pages are unmapped and moved after the tasks that use them (`numa_balancing`), on a
    /// machine with more than one node.
    pub numa_balancing: Option<bool>,
    /// Whether a non-maskable interrupt looks for CPUs that hang (`nmi_watchdog`).
    pub nmi_watchdog: Option<bool>,
}

/// The machine below.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// `uname -r`.
    pub kernel_release: String,
    /// CPUs that are on.
    #[serde(serialize_with = "numbers")]
    pub cpus_online: Vec<Cpu>,
    /// CPUs that this process may use.
    #[serde(serialize_with = "numbers")]
    pub cpus_allowed: Vec<Cpu>,
    /// CPUs that the scheduler leaves alone (`isolcpus=`).
    #[serde(serialize_with = "numbers")]
    pub cpus_isolated: Vec<Cpu>,
    /// The kernel's clocksource.
    pub clocksource: Option<String>,
    /// How far our clock is ahead of the one that the kernel stamps its events with: of a time
    /// namespace.
    pub clock_offset_ns: i64,
    /// Whether a hypervisor runs below.
    pub virtualised: bool,
    /// Whether the time that it takes can be known.
    pub steal: StealReport,
    /// The frequency governors in use, each once; empty where there are none.
    pub governors: Vec<String>,
    /// What the kernel was started with.
    pub command_line: String,
    /// Whether threads share cores, where the kernel says it.
    pub smt_active: Option<bool>,
    /// The longest that leaving an idle state may take, in µs, of the states that are allowed.
    pub idle_exit_us_max: Option<i64>,
    /// Interrupts that may come on an isolated CPU.
    pub irqs_on_isolated: Vec<u32>,
    /// What the kernel and its daemons do by themselves, at any time.
    pub background: Background,
}

fn numbers<S: serde::Serializer>(cpus: &[Cpu], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cpus.iter().map(|cpu| cpu.0))
}
