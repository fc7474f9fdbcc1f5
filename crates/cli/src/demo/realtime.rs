//! The few calls that make a process a real-time task, tied to its parent and on a leash.

use event::{Cpu, Error, ErrorKind, Result};
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{ClockId, CpuSet};

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER.
    Ordinary,
    /// SCHED_FIFO at 1 to 99.
    Fifo(u32),
    /// SCHED_RR at 1 to 99.
    RoundRobin(u32),
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
            "the demo that started this task is gone",
        ));
    }
    Ok(())
}

/// Keeps this thread on `cpu`.
///
/// # Errors
/// When there is no such CPU for us.
pub fn stay_on(cpu: Cpu) -> Result<()> {
    let mut set = CpuSet::new();
    if (cpu.0 as usize) < CpuSet::MAX_CPU {
        set.set(cpu.0 as usize);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| Error::io(format!("cannot run on {cpu}"), error.into()))
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
            .mend("run it where two CPUs are allowed: taskset -p $$ shows them")
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
        .map_err(|error| Error::io("cannot lock memory", error.into()).mend("run it with sudo"))
}

/// Schedules this thread by `policy`; the kernel kills it when it runs longer than
/// `runtime_max_us` without blocking.
///
/// # Errors
/// When the privilege or the control group's budget is missing.
pub fn become_real_time(policy: Policy, runtime_max_us: u64) -> Result<()> {
    let (number, prio) = match policy {
        Policy::Ordinary => return Ok(()),
        Policy::Fifo(prio) => (libc::SCHED_FIFO, prio),
        Policy::RoundRobin(prio) => (libc::SCHED_RR, prio),
    };
    let leash = Rlimit {
        current: Some(runtime_max_us),
        maximum: Some(runtime_max_us),
    };
    rustix::process::setrlimit(Resource::Rttime, leash)
        .map_err(|error| Error::io("cannot set RLIMIT_RTTIME", error.into()))?;
    let param = libc::sched_param {
        sched_priority: prio.min(99) as libc::c_int,
    };
    // SAFETY: the kernel only reads the structure, during the call.
    if unsafe { libc::sched_setscheduler(0, number, &raw const param) } != 0 {
        let cause = std::io::Error::last_os_error();
        return Err(Error::io("cannot become a real-time task", cause)
            .mend("sudo rtscope doctor names what is missing"));
    }
    Ok(())
}

/// Schedules this thread as an ordinary task again.
///
/// # Errors
/// When the operating system refuses.
pub fn become_ordinary() -> Result<()> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel only reads the structure, during the call.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const param) } == 0 {
        return Ok(());
    }
    let cause = std::io::Error::last_os_error();
    Err(Error::io("cannot become an ordinary task", cause))
}

/// CLOCK_MONOTONIC now.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
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
    let (seconds, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    let at = libc::timespec {
        tv_sec: seconds as i64,
        tv_nsec: ns as i64,
    };
    // SAFETY: the kernel only reads `at`; no remainder is wanted for an absolute time.
    while unsafe {
        let at = &raw const at;
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            at,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}
