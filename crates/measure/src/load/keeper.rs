//! Between who measures and the load: it ends the load when the other has gone, however it went.

use std::fs;
use std::os::fd::AsFd;
use std::process::{Child, Stdio};

use event::{Error, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, Signal};
use rustix::thread::UnshareFlags;

use super::kind::{GOODBYE, PIPE_WHOLE};
use super::{LoadOrder, left};
use host::task;

/// Out of memory, we stay: a few pages, and somebody has to clean up. Whoever measures has locked
/// its memory, so that killing it gives nothing at once, and the kernel looks for another.
const OOM_SCORE: &str = "-1000";

/// Why a load was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Whoever measured needs it no longer.
    Told,
    /// Whoever measured died.
    Orphaned,
}

/// Keeps a load until the end of our input, which whoever measures holds; all of it is gone then.
/// Why it ended before its time goes to our output; we stay, as somebody has to clean up when
/// whoever measures dies later.
///
/// # Errors
/// What the operating system refused.
pub fn keep(order: &LoadOrder) -> Result<Over> {
    let kept = start(order).and_then(|worker| until_over(order, worker));
    if let Err(error) = &kept {
        tell(&error.to_string());
    }
    kept
}

/// Whoever measures reads it; one that is dead needs it no longer.
fn tell(why: &str) {
    let told = why.get(..PIPE_WHOLE).unwrap_or(why);
    rustix::io::write(std::io::stdout(), told.as_bytes()).ok();
}

fn start(order: &LoadOrder) -> Result<Child> {
    task::call_yourself("rtscope-load")?;
    // Who was stopped must go on to see the end of its input.
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT)).ok();
    let cannot = |what: &str| {
        let what = format!("the load {} cannot {what}", order.load.name());
        move |error| Error::io(what, error)
    };
    if let Some(group) = &order.cgroup {
        let joined = fs::write(group.join("cgroup.procs"), std::process::id().to_string());
        joined.map_err(cannot("join its control group"))?;
    }
    task::stay_within(&order.cpus)?;
    // Without the privilege, as likely as whoever measures, but smaller.
    fs::write("/proc/self/oom_score_adj", OOM_SCORE).ok();
    // SAFETY: it changes nothing but in which namespace our children are; we have one thread.
    let apart = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID) };
    if apart.is_err() {
        // Without the privilege: what loses its parent becomes our child, and is found there.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
    }
    let mut worker = order.process("work");
    worker.stdin(Stdio::piped());
    worker.spawn().map_err(cannot("start"))
}

fn until_over(order: &LoadOrder, mut worker: Child) -> Result<Over> {
    let cannot = |error: rustix::io::Errno| Error::io("cannot keep a load", error.into());
    let pid = rustix::process::Pid::from_child(&worker);
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(cannot)?;
    let input = std::io::stdin();
    let mut both = [
        PollFd::new(&input, PollFlags::IN),
        PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN),
    ];
    wait_for(&mut both).map_err(cannot)?;
    let told = !both[0].revents().is_empty();
    worker.kill().ok();
    let status = worker.wait();
    // With a namespace all of it has gone with its first process.
    left::kill_below(std::process::id());
    if !told {
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let noted = fs::read_to_string(order.folder.join(super::WHY)).ok();
        tell(&noted.unwrap_or_else(|| format!("its worker ended: {status}")));
        wait_for(&mut both[..1]).map_err(cannot)?;
    }
    // Nobody may be left who would.
    fs::remove_dir_all(&order.folder).ok();
    let mut said = [0; GOODBYE.len()];
    let goodbye = rustix::io::read(&input, &mut said);
    Ok(match goodbye {
        Ok(1..) => Over::Told,
        _ => Over::Orphaned,
    })
}

fn wait_for(any: &mut [PollFd]) -> rustix::io::Result<()> {
    loop {
        match poll(any, None) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}
