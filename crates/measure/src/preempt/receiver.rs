//! Who receives messages: a thread of ours, or a process of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use event::{Error, Result, Tid};
use host::clock::Clock;
use host::task::{self, Policy};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::mechanism::Between;
use super::meeting::{BEGINS, READY, REFUSED};
use super::sides::{MessagePlan, Shared};
use super::way::Address;
use crate::worker;

const NAME: &str = "rtscope-recv";
/// How often we look whether a process is ready.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);

pub(super) enum Receiver {
    Thread(JoinHandle<Option<()>>),
    Process(Pid),
}

impl Receiver {
    /// Starts it, and waits until it is what it is to be.
    pub(super) fn start(shared: &Arc<Shared>, plan: &MessagePlan) -> Result<Receiver> {
        let (receiver, address) = match plan.between {
            Between::Threads => {
                let own = shared.clone();
                let (policy, place) = (Policy::Fifo(plan.prio), Some(plan.receiver));
                let (tid, thread) =
                    worker::start(NAME.into(), place, policy, move || receive(&own))?;
                let process = Tid(std::process::id().cast_signed());
                (Receiver::Thread(thread), Address { process, tid })
            }
            Between::Processes => {
                let pid = start_process(shared, plan)?;
                let tid = Tid(pid.as_raw_nonzero().get());
                (Receiver::Process(pid), Address { process: tid, tid })
            }
        };
        shared.channel.aim(address);
        Ok(receiver)
    }

    /// Waits for its end, of which it was told; one whose messages get `lost` may never hear of it.
    pub(super) fn end(self, lost: bool) {
        match self {
            Receiver::Thread(thread) if !lost => drop(thread.join()),
            // It sleeps, and ends with this process.
            Receiver::Thread(_) => {}
            Receiver::Process(pid) => {
                if lost {
                    kill_process(pid, Signal::KILL).ok();
                }
                waitpid(Some(pid), WaitOptions::empty()).ok();
            }
        }
    }
}

fn start_process(shared: &Shared, plan: &MessagePlan) -> Result<Pid> {
    let parent = std::process::id();
    // SAFETY: the child makes system calls on what was made before the fork, and ends by `_exit`:
    // nobody else's lock is waited for there, and nothing is dropped twice.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        be_process(shared, plan, parent);
    }
    let Some(pid) = Pid::from_raw(forked).filter(|_| forked > 0) else {
        let cause = std::io::Error::last_os_error();
        return Err(Error::io("cannot start a receiving process", cause).fix("see ulimit -u"));
    };
    while shared.meeting.state.load(Ordering::Acquire) == BEGINS {
        let ended = waitpid(Some(pid), WaitOptions::NOHANG);
        if !matches!(ended, Ok(None)) {
            return Err(refused());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    if shared.meeting.state.load(Ordering::Acquire) == REFUSED {
        waitpid(Some(pid), WaitOptions::empty()).ok();
        return Err(refused());
    }
    Ok(pid)
}

fn refused() -> Error {
    let cause = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    Error::io("a receiving process got no CPU or no priority", cause)
        .fix("sudo rtscope doctor names what is missing")
}

fn be_process(shared: &Shared, plan: &MessagePlan, parent: u32) -> ! {
    // Its parent's locked memory is not locked here.
    task::lock_memory().ok();
    task::call_yourself(NAME).ok();
    let tied = task::die_with_parent(parent, Signal::KILL);
    let policy = Policy::Fifo(plan.prio);
    let prepared = tied.and_then(|()| worker::prepare(Some(plan.receiver), policy));
    let state = if prepared.is_ok() { READY } else { REFUSED };
    shared.meeting.state.store(state, Ordering::Release);
    if prepared.is_ok() {
        receive(shared);
    }
    // SAFETY: the end of this process; what its parent has open stays so.
    unsafe { libc::_exit(0) }
}

fn receive(shared: &Shared) {
    let meeting = &shared.meeting;
    loop {
        shared.channel.receive();
        let now_ns = Clock::Monotonic.now_ns();
        if meeting.over.load(Ordering::Acquire) {
            return;
        }
        if !task::is_on(shared.receiver) {
            meeting.receiver_lost.store(true, Ordering::Release);
            return;
        }
        meeting.came_ns.store(now_ns, Ordering::Relaxed);
        meeting.received.fetch_add(1, Ordering::Release);
    }
}
