//! How many files a recorder can have open: one of many processes needs more than shells give.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What this process was given.
static GIVEN: OnceLock<Rlimit> = OnceLock::new();
/// Of rings and what is written of them: so many files of each process at most, on a machine with a
/// few CPUs.
const OF_PROCESS: u64 = 6;

/// Raises the limit as far as the system lets us.
pub(crate) fn raise() {
    let given = GIVEN.get_or_init(|| getrlimit(Resource::Nofile));
    let most = Rlimit {
        current: given.maximum,
        ..*given
    };
    // Where it is refused, fewer processes find room, which each of them is told.
    let _ = setrlimit(Resource::Nofile, most);
}

/// A program that we start has the limit that we were given: some go through all numbers up to it,
/// others can deal with no larger ones.
pub fn with_given_limit(command: &mut Command) -> &mut Command {
    let Some(given) = GIVEN.get().copied() else {
        return command;
    };
    let give = move || setrlimit(Resource::Nofile, given).map_err(io::Error::from);
    // SAFETY: between fork and exec it makes one system call, and takes no memory.
    unsafe { command.pre_exec(give) }
}

/// So many files a recorder must be able to open for so many processes of one folder.
pub(crate) fn needed(processes: usize) -> u64 {
    processes as u64 * OF_PROCESS * 2
}

/// So many processes of one folder are recorded at most: those of one user leave half of the files
/// to others.
pub(crate) fn processes_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit / 2 / OF_PROCESS).max(1) as usize
}
