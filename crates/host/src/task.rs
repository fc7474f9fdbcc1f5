//! The few calls that make a thread a real-time task: its CPU, its policy, its memory, its leash.

use event::{Cpu, Duration, Error, ErrorKind, Result};
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{ClockId, CpuSet};

use crate::clock::Clock;

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER.
    Ordinary,
    /// SCHED_FIFO at 1 to 99.
    Fifo(u32),
    /// SCHED_RR at 1 to 99.
    RoundRobin(u32),
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_DEADLINE: so much time, until so long after each begin of a period.
    Deadline {
        /// CPU time in each period.
        runtime: Duration,
        /// From the begin of the period to the end of that time, at the latest.
        deadline: Duration,
        /// From one begin to the next.
        period: Duration,
    },
}

impl Policy {
    /// As `chrt` calls it, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Ordinary => "other",
            Policy::Fifo(_) => "fifo",
            Policy::RoundRobin(_) => "rr",
            Policy::Batch => "batch",
            Policy::Idle => "idle",
            Policy::Deadline { .. } => "deadline",
        }
    }

    /// Its real-time priority; 0 where it has none.
    pub fn prio(self) -> u32 {
        match self {
            Policy::Fifo(prio) | Policy::RoundRobin(prio) => prio,
            _ => 0,
        }
    }
}

/// Makes the kernel send `signal` to this process when its parent dies, however it dies.
///
/// # Errors
/// When the parent is gone already.
pub fn die_with_parent(parent: u32, signal: Signal) -> Result<()> {
    let set = rustix::process::set_parent_process_death_signal(Some(signal));
    set.map_err(|error| Error::io("cannot tie the task to its parent", error.into()))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    // It may have died between our start and the call above.
    if now != i32::try_from(parent).ok() {
        return Err(Error::new(
            ErrorKind::Interrupted,
            "who started this task is gone",
        ));
    }
    Ok(())
}

/// Keeps this thread on `cpu`.
///
/// # Errors
/// When there is no such CPU for us.
pub fn stay_on(cpu: Cpu) -> Result<()> {
    stay_within(&[cpu])
}

/// Keeps this thread on `cpus`.
///
/// # Errors
/// When none of them is there for us.
pub fn stay_within(cpus: &[Cpu]) -> Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if (cpu.0 as usize) < CpuSet::MAX_CPU {
            set.set(cpu.0 as usize);
        }
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| {
        let names: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        Error::io(format!("cannot run on {}", names.join(", ")), error.into())
            .fix("taskset -p $$ shows the CPUs that we may use")
    })
}

/// Whether this thread runs on `cpu`. One that stays there ([`stay_on`]) does not once the CPU went
/// offline or left its control group: the kernel moves it then, and tells nobody.
///
/// No system call: the C library reads the thread's own `rseq` area, or the vDSO.
#[inline]
pub fn is_on(cpu: Cpu) -> bool {
    // SAFETY: it takes nothing and touches only what belongs to the C library.
    let here = unsafe { libc::sched_getcpu() };
    here == cpu.0.cast_signed()
}

/// While it lives, the thread that made it, and what that starts, stay off a CPU.
#[derive(Debug)]
pub struct StayOff {
    before: CpuSet,
}

/// Keeps this thread off `cpu`: a hog there must not delay who conducts it.
///
/// # Errors
/// When no other CPU is left to us.
pub fn stay_off(cpu: Cpu) -> Result<StayOff> {
    let cannot = |error: rustix::io::Errno| {
        Error::io(format!("cannot leave {cpu}"), error.into())
            .fix("run it where two CPUs are allowed: taskset -p $$ shows them")
    };
    let before = rustix::thread::sched_getaffinity(None).map_err(cannot)?;
    let mut others = before;
    if (cpu.0 as usize) < CpuSet::MAX_CPU {
        others.unset(cpu.0 as usize);
    }
    rustix::thread::sched_setaffinity(None, &others).map_err(cannot)?;
    Ok(StayOff { before })
}

impl Drop for StayOff {
    fn drop(&mut self) {
        // A CPU that went away meanwhile is no reason to fail now.
        rustix::thread::sched_setaffinity(None, &self.before).ok();
    }
}

/// Gives this thread its name, as `ps` and the scheduler's events show it (15 bytes).
///
/// # Errors
/// When the name holds a zero byte.
pub fn call_yourself(name: &str) -> Result<()> {
    let refuse = || Error::new(ErrorKind::InvalidInput, "not a process name").found(name);
    let name = std::ffi::CString::new(name).map_err(|_| refuse())?;
    rustix::thread::set_name(&name)
        .map_err(|error| Error::io("cannot set the process name", error.into()))
}

/// The name of this thread as the kernel has it: cut to 15 bytes, wherever that is.
pub fn own_name() -> String {
    // Only a broken pointer would be refused.
    rustix::thread::name().map_or_else(
        |_| String::new(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Locks all memory, present and future: a page fault is not what is to be shown.
///
/// # Errors
/// When RLIMIT_MEMLOCK is too small.
pub fn lock_memory() -> Result<()> {
    use rustix::mm::{MlockAllFlags, mlockall};
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
        .map_err(|error| Error::io("cannot lock memory", error.into()).fix("run it with sudo"))
}

/// Schedules this thread by `policy`; the kernel kills it when it runs longer than
/// `runtime_max_us` without blocking.
///
/// # Errors
/// When the privilege or the control group's budget is missing.
pub fn become_real_time(policy: Policy, runtime_max_us: u64) -> Result<()> {
    let leash = Rlimit {
        current: Some(runtime_max_us),
        maximum: Some(runtime_max_us),
    };
    rustix::process::setrlimit(Resource::Rttime, leash)
        .map_err(|error| Error::io("cannot set RLIMIT_RTTIME", error.into()))?;
    schedule(policy)
}

/// Schedules this thread by `policy`.
///
/// # Errors
/// When the privilege or the control group's budget is missing.
pub fn schedule(policy: Policy) -> Result<()> {
    let number = match policy {
        Policy::Ordinary => libc::SCHED_OTHER,
        Policy::Fifo(_) => libc::SCHED_FIFO,
        Policy::RoundRobin(_) => libc::SCHED_RR,
        Policy::Batch => libc::SCHED_BATCH,
        Policy::Idle => libc::SCHED_IDLE,
        Policy::Deadline { .. } => libc::SCHED_DEADLINE,
    };
    let ns = |duration: Duration| duration.as_ns_unsigned();
    let (runtime_ns, deadline_ns, period_ns) = match policy {
        Policy::Deadline {
            runtime,
            deadline,
            period,
        } => (ns(runtime), ns(deadline), ns(period)),
        _ => (0, 0, 0),
    };
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: number as u32,
        sched_flags: 0,
        sched_nice: own_nice(),
        sched_priority: policy.prio().min(99),
        sched_runtime: runtime_ns,
        sched_deadline: deadline_ns,
        sched_period: period_ns,
    };
    // SAFETY: the kernel only reads the structure, of the size that it states, during the call.
    if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } != 0 {
        return Err(refused(policy, std::io::Error::last_os_error()));
    }
    Ok(())
}

/// The nice value of this thread, which only who may raise priorities could take back. A policy
/// that has none passes it over.
fn own_nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap_or(0)
}

/// The calling thread goes before all ordinary ones until the end of this, for what nothing is
/// measured beside; without the privilege it stays as it is.
#[derive(Debug)]
pub struct Hurry {
    nice_before: Option<i32>,
    /// What is set is this thread's: nobody else can take it back.
    _own: std::marker::PhantomData<*const ()>,
}

impl Hurry {
    /// The lowest that there is.
    const NICE: i32 = -20;

    /// Begins it.
    pub fn begin() -> Hurry {
        let before = own_nice();
        let is_set = rustix::process::setpriority_process(None, Self::NICE).is_ok();
        Hurry {
            nice_before: is_set.then_some(before),
            _own: std::marker::PhantomData,
        }
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        if let Some(nice) = self.nice_before {
            rustix::process::setpriority_process(None, nice).ok();
        }
    }
}

fn refused(policy: Policy, cause: std::io::Error) -> Error {
    let what = format!(
        "cannot run at the policy {} {}",
        policy.name(),
        policy.prio()
    );
    let fix = match (policy, cause.raw_os_error()) {
        // sched(7): it must be free to run on every CPU of its root domain, unless bandwidth is
        // not controlled, and all of them together may not take more than their share.
        (Policy::Deadline { .. }, Some(libc::EPERM)) => {
            "name no --cpu: the kernel pins no deadline task unless \
             sudo sysctl kernel.sched_rt_runtime_us=-1; sudo rtscope doctor names what else is \
             missing"
        }
        (Policy::Deadline { .. }, Some(libc::EBUSY)) => {
            "ask for less: a longer period (--interval, --task) or fewer threads; deadline tasks \
             have all the time that kernel.sched_rt_runtime_us leaves them"
        }
        _ => "sudo rtscope doctor names what is missing",
    };
    Error::io(what.trim_end_matches(" 0"), cause).fix(fix)
}

/// Schedules this thread as an ordinary task again.
///
/// # Errors
/// When the operating system refuses.
pub fn become_ordinary() -> Result<()> {
    schedule(Policy::Ordinary)
}

/// CLOCK_MONOTONIC now.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// The CPU time that this process has used.
pub fn process_cpu_ns() -> u64 {
    clock_ns(ClockId::ProcessCPUTime)
}

/// The CPU time that this thread has used.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until CLOCK_MONOTONIC shows `at_ns`.
pub fn sleep_until(at_ns: u64) {
    Clock::Monotonic.sleep_until(at_ns.cast_signed());
}
