//! Single steps of several processes at once, each by a tracer of its own: does each step come
//! back, and how soon? (ssdd)
//!
//! # Design constraints
//! - Who steps a process is one thread from begin to end: the kernel takes ptrace from no other.
//! - A process ends with its tracer, and one whose step does not come back is killed: no run hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;

use event::{Duration, Error, Result};
use host::clock::Clock;
use host::task;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::histogram::{Histogram, Recorder};

/// A step that takes so long does not come back.
const LOST_NS: i64 = 10_000_000_000;
/// How often we look whether that is so.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);

/// What to try.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Processes, each with its tracer.
    pub forks: usize,
    /// Steps of each.
    pub steps: u64,
    /// The width of a histogram's bucket.
    pub bucket: Duration,
    /// How many buckets there are.
    pub buckets: usize,
}

/// What a tracer found.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The process, as the kernel calls it.
    pub pid: i32,
    /// From the request for a step to its report.
    pub latency: Histogram,
    /// What went wrong, and with which step from 1.
    pub wrong: Option<(u64, String)>,
}

#[derive(Debug)]
struct Shared {
    latency: Recorder,
    pid: AtomicI32,
    /// When the step began that is waited for; zero between two.
    since_ns: std::sync::atomic::AtomicI64,
    is_lost: AtomicBool,
}

#[derive(Debug)]
struct Tracer {
    shared: Arc<Shared>,
    thread: JoinHandle<Option<(u64, String)>>,
}

/// Tracers that step.
#[derive(Debug)]
pub struct Run {
    tracers: Vec<Tracer>,
    stop: Arc<AtomicBool>,
}

impl Run {
    /// Starts all tracers.
    ///
    /// # Errors
    /// When no more threads can be started.
    pub fn start(plan: &Plan) -> Result<Run> {
        let mut run = Run {
            tracers: Vec::with_capacity(plan.forks),
            stop: Arc::default(),
        };
        for number in 0..plan.forks {
            let shared = Arc::new(Shared {
                latency: Recorder::new(plan.bucket, plan.buckets),
                pid: AtomicI32::new(0),
                since_ns: 0.into(),
                is_lost: AtomicBool::new(false),
            });
            let (own, stop, steps) = (shared.clone(), run.stop.clone(), plan.steps);
            let thread = std::thread::Builder::new().name(format!("rtscope-ssd{number}"));
            let thread = thread.spawn(move || trace(&own, &stop, steps));
            let thread = thread
                .map_err(|error| Error::io("cannot start a tracer", error).fix("see ulimit -u"))?;
            run.tracers.push(Tracer { shared, thread });
        }
        Ok(run)
    }

    /// Whether all steps are made; ends the process whose step does not come back.
    pub fn is_over(&self) -> bool {
        let now_ns = Clock::Monotonic.now_ns();
        for tracer in &self.tracers {
            let shared = &tracer.shared;
            let since_ns = shared.since_ns.load(Ordering::Acquire);
            let pid = Pid::from_raw(shared.pid.load(Ordering::Acquire));
            if since_ns > 0
                && now_ns - since_ns > LOST_NS
                && !tracer.thread.is_finished()
                && let Some(pid) = pid
            {
                shared.is_lost.store(true, Ordering::Release);
                kill_process(pid, Signal::KILL).ok();
            }
        }
        self.tracers.iter().all(|one| one.thread.is_finished())
    }

    /// How many steps were made by now.
    pub fn steps(&self) -> u64 {
        let steps = self.tracers.iter().map(|one| one.shared.latency.read());
        steps.map(|latency| latency.samples).sum()
    }

    /// Ends it, each after the step at which it is, and gives what was found.
    pub fn finish(mut self) -> Vec<Reading> {
        self.end();
        let tracers = std::mem::take(&mut self.tracers);
        let reading = |one: Tracer| {
            let panicked = || Some((0, "its tracer panicked".to_owned()));
            Reading {
                wrong: one.thread.join().unwrap_or_else(|_| panicked()),
                pid: one.shared.pid.load(Ordering::Acquire),
                latency: one.shared.latency.read(),
            }
        };
        tracers.into_iter().map(reading).collect()
    }

    fn end(&self) {
        self.stop.store(true, Ordering::Release);
        while !self.is_over() {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end();
    }
}

/// The whole life of a tracer and its process.
fn trace(shared: &Shared, stop: &AtomicBool, steps: u64) -> Option<(u64, String)> {
    let parent = std::process::id();
    // SAFETY: the child makes system calls and spins: it waits for nobody's lock.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        be_stepped(parent);
    }
    let Some(child) = Pid::from_raw(pid).filter(|_| pid > 0) else {
        let why = std::io::Error::last_os_error();
        return Some((0, format!("there is no process for it: {why}")));
    };
    shared.pid.store(pid, Ordering::Release);
    let wrong = step_through(shared, child, stop, steps);
    kill_process(child, Signal::KILL).ok();
    // Stopped by its tracer it may have been told first of the step before.
    while let Ok(Some((_, status))) = waitpid(Some(child), WaitOptions::empty()) {
        if status.exited() || status.signaled() {
            break;
        }
    }
    wrong
}

/// A process that waits to be traced, and has something to step through then.
fn be_stepped(parent: u32) -> ! {
    let tied = task::die_with_parent(parent, Signal::KILL);
    // SAFETY: requests for ourselves, without memory.
    unsafe {
        let traced = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        if tied.is_err() || traced != 0 {
            libc::_exit(1);
        }
        libc::kill(libc::getpid(), libc::SIGSTOP);
    }
    loop {
        std::hint::spin_loop();
    }
}

fn step_through(
    shared: &Shared,
    child: Pid,
    stop: &AtomicBool,
    steps: u64,
) -> Option<(u64, String)> {
    if let Err(why) = stopped_for(child, libc::SIGSTOP) {
        return Some((0, why));
    }
    let pid = child.as_raw_nonzero().get();
    let mut before = place(pid);
    for step in 1..=steps {
        if stop.load(Ordering::Acquire) {
            break;
        }
        let begun_ns = Clock::Monotonic.now_ns();
        shared.since_ns.store(begun_ns, Ordering::Release);
        // SAFETY: a request for a process that we trace and that is stopped, without memory.
        if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, pid, 0, 0) } != 0 {
            let why = std::io::Error::last_os_error();
            return Some((step, format!("the step was refused: {why}")));
        }
        let stopped = stopped_for(child, libc::SIGTRAP);
        let came_ns = Clock::Monotonic.now_ns();
        shared.since_ns.store(0, Ordering::Release);
        match stopped {
            Err(_) if shared.is_lost.load(Ordering::Acquire) => {
                return Some((step, "the step did not come back within 10 s".to_owned()));
            }
            Err(why) => return Some((step, why)),
            Ok(()) => shared.latency.add(came_ns - begun_ns),
        }
        let now = place(pid);
        if now.is_some() && now == before {
            return Some((step, format!("it stands still at {:#x}", now.unwrap_or(0))));
        }
        before = now;
    }
    None
}

/// Waits until the process is stopped, and for nothing but this signal.
fn stopped_for(child: Pid, signal: i32) -> std::result::Result<(), String> {
    match waitpid(Some(child), WaitOptions::UNTRACED) {
        Ok(Some((_, status))) => match status.stopping_signal() {
            Some(found) if found == signal => Ok(()),
            Some(found) => Err(format!(
                "it stopped for signal {found}, and not for {signal}"
            )),
            None => Err(format!("it ended: status {:#x}", status.as_raw())),
        },
        Ok(None) => Err("it does not stop".to_owned()),
        Err(error) => Err(format!("nobody knows whether it stopped: {error}")),
    }
}

/// Where the process is in its code: no instruction of the loop that it is in jumps to itself.
#[cfg(target_arch = "x86_64")]
fn place(pid: i32) -> Option<u64> {
    // SAFETY: there is room for the registers, which are whole where the request succeeds.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        let got = libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers);
        (got == 0).then_some(registers.rip)
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn place(_pid: i32) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(forks: usize, steps: u64) -> Plan {
        Plan {
            forks,
            steps,
            bucket: Duration::from_us(1),
            buckets: 100,
        }
    }

    #[test]
    fn every_step_of_every_process_comes_back_and_none_is_left() {
        let run = Run::start(&plan(3, 50)).expect("tracers");
        while !run.is_over() {
            std::thread::sleep(LOOK_INTERVAL);
        }
        for reading in run.finish() {
            assert_eq!((reading.latency.samples, &reading.wrong), (50, &None));
            let gone = Pid::from_raw(reading.pid).map(rustix::process::test_kill_process);
            assert!(gone.is_some_and(|lives| lives.is_err()), "{reading:?}");
        }
    }

    #[test]
    fn a_process_that_somebody_kills_is_told_and_a_run_ends_when_it_is_told() {
        let run = Run::start(&plan(2, u64::MAX)).expect("tracers");
        while run.tracers.iter().any(|one| one.shared.latency.is_empty()) {
            std::thread::sleep(LOOK_INTERVAL);
        }
        let pid = Pid::from_raw(run.tracers[0].shared.pid.load(Ordering::Acquire));
        kill_process(pid.expect("a process"), Signal::KILL).expect("killed");
        while !run.tracers[0].thread.is_finished() {
            std::thread::sleep(LOOK_INTERVAL);
        }
        let found = run.finish();
        assert!(found[0].wrong.is_some(), "{:?}", found[0].wrong);
        assert_eq!(found[1].wrong, None);
    }
}
