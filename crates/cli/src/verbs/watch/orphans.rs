//! Who goes on where a command has ended: what it started and did not wait for, as a program does
//! that puts itself into the background.

use event::{Error, Result, plain_text};
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
    pub pid: i32,
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
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = folders.filter_map(|folder| std::fs::read(folder.path().join("stat")).ok());
    let found = stats.filter_map(|stat| child_of(&stat, getpid().as_raw_pid()));
    let mut found: Vec<Orphan> = found
        .filter(|one| one.pid.cast_unsigned() != command)
        .collect();
    found.sort_by_key(|one| one.pid);
    found
}

/// The process of a line of `/proc/PID/stat` (proc_pid_stat(5)), if it has that parent and lives.
fn child_of(stat: &[u8], parent: i32) -> Option<Orphan> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(stat.get(..open)?).ok()?;
    let mut rest = std::str::from_utf8(stat.get(close + 1..)?)
        .ok()?
        .split_whitespace();
    let lives = !matches!(rest.next()?, "Z" | "X");
    let is_child = rest.next()?.parse() == Ok(parent);
    (lives && is_child).then(|| Orphan {
        pid: pid.trim().parse().unwrap_or_default(),
        comm: plain_text(stat.get(open + 1..close).unwrap_or_default()),
    })
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
    fn a_child_that_lives_is_found_whatever_it_is_called() {
        let check = |stat: &str, expect: Option<(i32, &str)>| {
            let found = child_of(stat.as_bytes(), 7);
            let found = found.as_ref().map(|one| (one.pid, one.comm.as_str()));
            assert_eq!(found, expect, "{stat}");
        };
        check("42 (dmn) S 7 42 42 0", Some((42, "dmn")));
        check("42 (a) b (c) R 7 42", Some((42, "a) b (c")));
        check("42 (dmn) S 1 42", None);
        check("42 (dmn) Z 7 42", None);
        check("", None);
    }

    #[test]
    fn all_have_the_command_that_watches_them_and_few_are_named() {
        let orphans = |count: i32| {
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
