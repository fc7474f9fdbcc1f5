//! What a run of a load took of the kernel, by the kernel's own account: a program that only says
//! that it did its work makes neither processes nor bytes.

use std::fs;

/// Where the account of a run begins, or ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// The id of a process that was made then: they are given out in turn.
    pub(super) pid: u32,
    /// Bytes that we and all whose end was waited for have written; none where the kernel does not
    /// count them (`CONFIG_TASK_IO_ACCOUNTING`).
    pub(super) written: Option<u64>,
}

/// What a run needs at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Processes, its first included.
    pub(super) processes: u64,
    /// Bytes written.
    pub(super) written: u64,
}

impl Account {
    /// Now, where `pid` was made a moment ago.
    pub(super) fn now(pid: u32) -> Account {
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        Account {
            pid,
            written: written(&io),
        }
    }

    /// What a run between the two lacks of what it `needs`; nothing where nobody counted.
    pub(super) fn lacks(self, end: Account, needs: Needs) -> Option<String> {
        // Where they have begun anew nobody knows how many there were.
        let made = end.pid.checked_sub(self.pid).map(u64::from);
        if let Some(made) = made.filter(|made| *made < needs.processes) {
            let least = needs.processes;
            return Some(format!("made {made} processes in a run that takes {least}"));
        }
        let written = end.written?.checked_sub(self.written?)?;
        let least = needs.written;
        (written < least).then(|| format!("wrote {written} bytes in a run that takes {least}"))
    }
}

/// Out of a process's account of its I/O.
fn written(io: &str) -> Option<u64> {
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_the_processes_or_the_bytes_that_it_takes_is_none() {
        let check = |pid: u32, written: Option<u64>, expect: Option<&str>| {
            let begin = Account {
                pid: 100,
                written: Some(5_000),
            };
            let needs = Needs {
                processes: 41,
                written: 4_000,
            };
            let found = begin.lacks(Account { pid, written }, needs);
            assert_eq!(found.as_deref(), expect, "{pid} {written:?}");
        };
        check(141, Some(9_000), None);
        check(141, None, None);
        check(
            103,
            Some(9_000),
            Some("made 3 processes in a run that takes 41"),
        );
        check(
            141,
            Some(5_300),
            Some("wrote 300 bytes in a run that takes 4000"),
        );
        // The ids began anew.
        check(7, Some(9_000), None);
    }

    #[test]
    fn what_was_written_is_read_by_its_name() {
        assert_eq!(written("rchar: 7\nwchar: 80\nsyscr: 1\n"), Some(80));
        assert_eq!(written(""), None);
    }
}
