//! The kinds of loads.

use std::path::PathBuf;

use event::{Error, Result};

/// Who the load belongs to, in the environment of all its processes.
pub(super) const OWNER: &str = "RTSCOPE_LOAD";
/// What whoever measures writes to the load's keeper before it closes the keeper's input.
pub(super) const GOODBYE: &[u8] = b".";
/// So many bytes at most are in a pipe whole or not at all (PIPE_BUF).
pub(super) const PIPE_WHOLE: usize = 4096;

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Processes that send each other messages: the scheduler's load.
    Hackbench,
    /// CPU, memory, disk and timers.
    StressNg,
    /// A compiler, again and again.
    Compile,
}

impl Load {
    /// All of them.
    pub const ALL: [Load; 3] = [Load::Hackbench, Load::StressNg, Load::Compile];

    /// As it is typed and written.
    pub fn name(self) -> &'static str {
        match self {
            Load::Hackbench => "hackbench",
            Load::StressNg => "stress-ng",
            Load::Compile => "compile",
        }
    }

    /// The load of that name.
    pub fn named(name: &str) -> Option<Load> {
        Load::ALL.into_iter().find(|load| load.name() == name)
    }

    /// What it counts; the first is how often it completed its work.
    pub fn counters(self) -> &'static [&'static str] {
        match self {
            Load::Hackbench => &["runs", "messages", "message_bytes", "forks"],
            Load::StressNg => &["goes", "cpu_ops", "vm_ops", "hdd_ops", "timer_ops"],
            Load::Compile => &["files", "object_bytes"],
        }
    }

    /// The program, and what installs it.
    pub(super) fn program(self) -> (&'static str, &'static str) {
        match self {
            Load::Hackbench => ("hackbench", "sudo apt install rt-tests"),
            Load::StressNg => ("stress-ng", "sudo apt install stress-ng"),
            Load::Compile => ("cc", "sudo apt install gcc"),
        }
    }

    /// Where its program is.
    pub(super) fn find(self) -> Result<PathBuf> {
        let (program, install) = self.program();
        which::which(program).map_err(|_| {
            let what = format!("there is no {program} for the load {}", self.name());
            Error::new(event::ErrorKind::NotFound, what)
                .found(format!("no {program} in PATH"))
                .fix(install)
        })
    }

    /// How many of it run side by side.
    pub(super) fn slots(self, cpus: usize) -> usize {
        match self {
            Load::Compile => cpus.max(1),
            Load::Hackbench | Load::StressNg => 1,
        }
    }
}
