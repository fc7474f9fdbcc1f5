//! The I/O: fills [`Capabilities`] from this machine. Needs no privilege and leaves nothing behind.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use event::Cpu;
use flate2::read::GzDecoder;
use rustix::fs::Access;
use rustix::process::{Resource, getrlimit};

use super::hypervisor;
use super::parse::{self, PreemptionSources};
use super::{
    Background, Bpf, Capabilities, FairServer, Machine, Preemption, Privileges, Scheduler, Tracefs,
};
use crate::processes::processes;

/// The capabilities of this machine, now, for this process. What the kernel does with programs is
/// found out by trying, which is up to the caller: `bpf`, all but a setting that is read here.
pub fn gather(bpf: Bpf) -> Capabilities {
    let mounts = text("/proc/mounts");
    Capabilities {
        privileges: privileges(),
        tracefs: tracefs(&mounts),
        machine: machine(bpf.steal),
        bpf: Bpf {
            unprivileged_disabled: number("/proc/sys/kernel/unprivileged_bpf_disabled"),
            ..bpf
        },
        scheduler: scheduler(&mounts),
        jackd_path: program("jackd"),
    }
}

/// Which CPUs there are, and which are ours; of all else the capabilities say nothing. What asks
/// the kernel no more begins at once: to read its types (BTF) takes milliseconds.
pub fn gather_cpus() -> Capabilities {
    Capabilities {
        machine: cpus(),
        ..Capabilities::default()
    }
}

/// The text of a file; empty when it cannot be read, which the rules treat as "not there".
fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn number(path: impl AsRef<Path>) -> Option<i64> {
    text(path).trim().parse().ok()
}

fn word(path: impl AsRef<Path>) -> Option<String> {
    let text = text(path).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn privileges() -> Privileges {
    let mask = parse::effective_capabilities(&text("/proc/self/status"));
    let in_user_namespace = !parse::is_first_user_namespace(&text("/proc/self/uid_map"));
    // Of such a namespace they are none to what needs them here.
    let has = |capability: u32| !in_user_namespace && mask & (1 << capability) != 0;
    Privileges {
        in_user_namespace,
        uid: rustix::process::geteuid().as_raw(),
        sys_admin: has(parse::CAP_SYS_ADMIN),
        bpf: has(parse::CAP_BPF),
        perfmon: has(parse::CAP_PERFMON),
        sys_nice: has(parse::CAP_SYS_NICE),
        syslog: has(parse::CAP_SYSLOG),
        memlock_bytes: getrlimit(Resource::Memlock).current,
        rtprio_max: getrlimit(Resource::Rtprio).current.unwrap_or(99),
        memory_lock_refused: !has(parse::CAP_IPC_LOCK)
            && getrlimit(Resource::Memlock)
                .current
                .is_some_and(|bytes| bytes < LOCKED_BYTES),
        idle_limit_refused: Path::new(IDLE_LIMIT).exists()
            && rustix::fs::access(IDLE_LIMIT, Access::WRITE_OK).is_err(),
    }
}

/// A measuring process locks about so much.
const LOCKED_BYTES: u64 = 64 << 20;
/// Whoever writes there limits how deep idle CPUs sleep.
const IDLE_LIMIT: &str = "/dev/cpu_dma_latency";

fn tracefs(mounts: &str) -> Tracefs {
    let mountpoint = parse::mount_of(mounts, "tracefs", "").map(str::to_owned);
    let root = PathBuf::from(mountpoint.as_deref().unwrap_or("/sys/kernel/tracing"));
    let may = |name: &str, access: Access| rustix::fs::access(root.join(name), access).is_ok();
    Tracefs {
        // Instances of our own are all that we write, and the list of events what we read first.
        writable: may("available_events", Access::READ_OK) && may("instances", Access::WRITE_OK),
        instances: may("instances", Access::WRITE_OK),
        sched_events: may("events/sched/sched_switch/format", Access::READ_OK),
        kernel_symbols: kernel_symbols(),
        kptr_restrict: number("/proc/sys/kernel/kptr_restrict"),
        functions: None,
        mountpoint,
    }
}

/// Whether the first lines of kallsyms show an address that is not hidden as zero.
fn kernel_symbols() -> bool {
    use std::io::Read;
    let mut start = [0; 4096];
    let read = std::fs::File::open("/proc/kallsyms").and_then(|mut file| file.read(&mut start));
    let start = String::from_utf8_lossy(&start[..read.unwrap_or(0)]).into_owned();
    // Per-CPU symbols may honestly be at zero, so that one line is not enough.
    let mut addresses = start.lines().filter_map(|line| line.split(' ').next());
    addresses.any(|address| address.bytes().any(|digit| digit != b'0'))
}

fn scheduler(mounts: &str) -> Scheduler {
    let cgroup = parse::mount_of(mounts, "cgroup", "cpu").and_then(|mount| {
        let cgroups = text("/proc/self/cgroup");
        let path = parse::cgroup_v1(&cgroups, "cpu")?;
        Some(Path::new(mount).join(path.trim_start_matches('/')))
    });
    let budget = cgroup
        .as_ref()
        .and_then(|path| number(path.join("cpu.rt_runtime_us")));
    Scheduler {
        preemption: preemption(),
        rt_runtime_us: number("/proc/sys/kernel/sched_rt_runtime_us"),
        rt_period_us: number("/proc/sys/kernel/sched_rt_period_us"),
        fair_server: fair_server(),
        cgroup_rt_runtime_us: budget,
        cgroup: cgroup.map(|path| path.display().to_string()),
    }
}

/// Its settings are a folder for each CPU.
fn fair_server() -> Option<FairServer> {
    let folders = std::fs::read_dir("/sys/kernel/debug/sched/fair_server").ok()?;
    let server = |folder: std::fs::DirEntry| FairServer {
        runtime_ns: number(folder.path().join("runtime")),
        period_ns: number(folder.path().join("period")),
    };
    let servers = folders.flatten().map(server);
    servers.max_by_key(|server| server.runtime_ns)
}

fn preemption() -> Preemption {
    let uname = rustix::system::uname();
    let version = uname.version().to_string_lossy().into_owned();
    let release = uname.release().to_string_lossy().into_owned();
    parse::preemption(&PreemptionSources {
        uname_version: &version,
        debugfs: &text("/sys/kernel/debug/sched/preempt"),
        command_line: &text("/proc/cmdline"),
        config: &kernel_config(&release),
    })
}

/// The kernel's configuration from where distributions put it; empty when it is nowhere.
fn kernel_config(release: &str) -> String {
    let plain = text(format!("/boot/config-{release}"));
    if !plain.is_empty() {
        return plain;
    }
    std::fs::File::open("/proc/config.gz")
        .map(unzipped)
        .unwrap_or_default()
}

/// Empty where it is no whole gzip of a text.
fn unzipped(zipped: impl Read) -> String {
    let mut plain = String::new();
    let read = GzDecoder::new(zipped).read_to_string(&mut plain);
    read.map(|_| plain).unwrap_or_default()
}

fn cpus() -> Machine {
    let cpus = |path: &str| Cpu::parse_list(&text(path)).unwrap_or_default();
    let online = cpus("/sys/devices/system/cpu/online");
    Machine {
        cpus_allowed: cpus_allowed(&online),
        cpus_isolated: cpus("/sys/devices/system/cpu/isolated"),
        cpus_online: online,
        ..Machine::default()
    }
}

/// `account`: whether the kernel has a place for what a hypervisor takes.
fn machine(account: bool) -> Machine {
    let cpus = cpus();
    let governors: BTreeSet<String> = cpus
        .cpus_online
        .iter()
        .filter_map(|cpu| {
            word(format!(
                "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor",
                cpu.0
            ))
        })
        .collect();
    let cpuinfo = text("/proc/cpuinfo");
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let virtualised = Path::new("/sys/hypervisor/type").exists()
        || flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let command_line = word("/proc/cmdline").unwrap_or_default();
    Machine {
        kernel_release: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        clocksource: word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_offset_ns: parse::clock_offset_ns(&text("/proc/self/timens_offsets")),
        steal: hypervisor::steal_report(virtualised, hypervisor::leaves(), account, &command_line),
        virtualised,
        governors: governors.into_iter().collect(),
        command_line,
        smt_active: number("/sys/devices/system/cpu/smt/active").map(|active| active == 1),
        idle_exit_us_max: idle_exit_us_max(),
        irqs_on_isolated: irqs_on(&cpus.cpus_isolated),
        background: background(),
        ..cpus
    }
}

fn background() -> Background {
    let on = |path: &str| number(path).map(|value| value != 0);
    let nodes = Path::new("/sys/devices/system/node/node1").exists();
    let huge_pages = text("/sys/kernel/mm/transparent_hugepage/enabled");
    Background {
        irqbalance: is_running("irqbalance"),
        huge_pages: parse::choice(&huge_pages).map(str::to_owned),
        numa_balancing: on("/proc/sys/kernel/numa_balancing").map(|on| on && nodes),
        nmi_watchdog: on("/proc/sys/kernel/nmi_watchdog"),
    }
}

/// Whether a process has this name.
fn is_running(name: &str) -> bool {
    let mut names = processes().filter_map(|pid| word(format!("/proc/{pid}/comm")));
    names.any(|found| found == name)
}

/// Of CPU 0, whose states are those of all, as far as we look.
fn idle_exit_us_max() -> Option<i64> {
    let states = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cpuidle").ok()?;
    let allowed = states.flatten().map(|state| state.path());
    let allowed = allowed.filter(|state| number(state.join("disable")) == Some(0));
    allowed
        .filter_map(|state| number(state.join("latency")))
        .max()
}

/// The interrupts that may come on one of these CPUs.
fn irqs_on(cpus: &[Cpu]) -> Vec<u32> {
    if cpus.is_empty() {
        return Vec::new();
    }
    let folders = std::fs::read_dir("/proc/irq")
        .into_iter()
        .flatten()
        .flatten();
    let irqs = folders.filter_map(|folder| {
        let irq: u32 = folder.file_name().to_str()?.parse().ok()?;
        let list = text(folder.path().join("smp_affinity_list"));
        let allowed = Cpu::parse_list(&list).unwrap_or_default();
        allowed.iter().any(|cpu| cpus.contains(cpu)).then_some(irq)
    });
    let mut irqs: Vec<u32> = irqs.collect();
    irqs.sort_unstable();
    irqs
}

fn cpus_allowed(online: &[Cpu]) -> Vec<Cpu> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return online.to_vec();
    };
    online
        .iter()
        .copied()
        .filter(|cpu| set.is_set(cpu.0 as usize))
        .collect()
}

/// Where `name` is in PATH.
fn program(name: &str) -> Option<String> {
    let path = which::which(name).ok()?;
    Some(path.display().to_string())
}
