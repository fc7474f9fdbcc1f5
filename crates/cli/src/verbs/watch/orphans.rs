//! Who goes on where a command has ended: what it started and did not wait for, as a program does
//! that puts itself into the background.

use event::{Error, Result, plain_text};
use host::processes::{Stat, stats};
use rustix::process::{getpid, set_child_subreaper};
use serde_json::{Value, json};

/// So many are named.
const NAMED_MAX: usize = 5;

/// From now on who descends from us, and whose parent ends, is our child.
///
/// # Errors
/// When the kernel refuses it.
pub(super) fn adopt() -> Result<()> {
    let cannot = |errno: rustix::io::Errno| {
        Error::io("cannot find out who outlives the command", errno.into())
            .fix("start the program by itself, and watch it with --process")
    };
    set_child_subreaper(Some(getpid())).map_err(cannot)
}

/// A process whose parents have ended.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::verbs) struct Orphan {
    pub pid: u32,
    pub comm: String,
}

impl Orphan {
    /// For programs.
    pub fn json(&self) -> Value {
        json!({"pid": self.pid, "comm": self.comm})
    }
}

/// Our children that have not ended, but for one of them.
pub(super) fn orphans(command: u32) -> Vec<Orphan> {
    let own = std::process::id();
    let is_one = |stat: &Stat| stat.parent == own && !stat.is_dead && stat.pid != command;
    let found = stats().into_iter().filter(is_one);
    let mut found: Vec<Orphan> = found
        .map(|stat| Orphan {
            pid: stat.pid,
            comm: name(stat.pid),
        })
        .collect();
    found.sort_by_key(|one| one.pid);
    found
}

/// How a process calls itself.
fn name(pid: u32) -> String {
    let comm = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    plain_text(comm.trim_ascii_end())
}

/// What is said of them.
pub(super) fn text(command: &str, orphans: &[Orphan]) -> String {
    let named = orphans.iter().take(NAMED_MAX);
    let named: Vec<String> = named
        .map(|one| format!("{} (pid {})", one.comm, one.pid))
        .collect();
    let more = match orphans.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let pids = orphans.iter().map(|one| format!(" --pid {}", one.pid));
    let pids: String = pids.collect();
    format!(
        "{command} has ended, and what it started goes on, no longer watched: {}{more}\n  \
         fix:  rtscope watch{pids}\n",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_lives_is_found() {
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("1000").spawn().expect("sleep starts");
        // It may not have become that program yet.
        let is_it = |one: &Orphan| one.pid == child.id() && !one.comm.is_empty();
        assert!(orphans(0).iter().any(is_it));
        assert!(!orphans(child.id()).iter().any(is_it));
        child.kill().and_then(|()| child.wait()).expect("it ends");
        let pid = child.id();
        assert!(!orphans(0).iter().any(|one| one.pid == pid));
    }

    #[test]
    fn all_have_the_command_that_watches_them_and_few_are_named() {
        let orphans = |count: u32| {
            let orphans = (1..=count).map(|pid| Orphan {
                pid,
                comm: "dmn".into(),
            });
            orphans.collect::<Vec<_>>()
        };
        let one = text("./daemon", &orphans(1));
        assert!(one.contains("dmn (pid 1)\n"), "{one}");
        assert!(one.ends_with("rtscope watch --pid 1\n"), "{one}");
        let many = text("./daemon", &orphans(7));
        assert!(many.contains("dmn (pid 5) and 2 more"), "{many}");
        assert!(many.ends_with("--pid 6 --pid 7\n"), "{many}");
    }
}
