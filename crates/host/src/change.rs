//! One change of the machine, with its way back: for a shield, and for what is tried.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::tune::{Policy, TaskId};

/// One change of the machine, with its way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A text is written into a file of the kernel.
    Write {
        /// The file.
        path: PathBuf,
        /// What it held.
        before: String,
        /// What is written.
        after: String,
    },
    /// A task gets other CPUs.
    Affinity {
        /// Which one.
        task: TaskId,
        /// Where it was allowed to run, as a list.
        before: String,
        /// Where it is to run.
        after: String,
    },
    /// A task gets another policy, priority or nice value.
    Schedule {
        /// Which one.
        task: TaskId,
        /// What it had.
        before: Policy,
        /// What it is to have.
        after: Policy,
    },
}

impl Change {
    pub(crate) fn make(&self) -> std::io::Result<()> {
        match self {
            Change::Write { path, after, .. } => write(path, after),
            Change::Affinity { task, after, .. } => task.set_affinity(after),
            Change::Schedule { task, after, .. } => task.set_policy(after),
        }
    }

    /// The task that it is about, where it is about one, and that is gone.
    pub(crate) fn gone(&self) -> Option<&TaskId> {
        match self {
            Change::Write { .. } => None,
            Change::Affinity { task, .. } | Change::Schedule { task, .. } => {
                Some(task).filter(|task| !task.is_there())
            }
        }
    }

    /// Takes it back, whether it is in force or not. A task that is gone needs nothing.
    pub(crate) fn take_back(&self) -> std::io::Result<()> {
        match self {
            Change::Write { path, before, .. } => put_back(path, before, chosen(before)),
            Change::Affinity { task, before, .. } if task.is_there() => task.set_affinity(before),
            Change::Schedule { task, before, .. } if task.is_there() => task.set_policy(before),
            Change::Affinity { .. } | Change::Schedule { .. } => Ok(()),
        }
    }
}

/// From what to what, for people.
impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Write {
                path,
                before,
                after,
            } => {
                let before = chosen(before).trim_end();
                write!(f, "{}: {before} -> {after}", path.display())
            }
            Change::Affinity {
                task,
                before,
                after,
            } => write!(f, "{task}: CPUs {before} -> {after}"),
            Change::Schedule {
                task,
                before,
                after,
            } => write!(f, "{task}: {before} -> {after}"),
        }
    }
}

/// What to write to get a setting back: of a choice, the one in brackets.
pub(crate) fn chosen(text: &str) -> &str {
    let bracketed = |open: char, close: char| {
        let (_, rest) = text.split_once(open)?;
        Some(rest.split_once(close)?.0)
    };
    bracketed('[', ']')
        .or_else(|| bracketed('(', ')'))
        .unwrap_or(text)
}

/// Into a file that is there; the kernel's files are made by nobody.
pub(crate) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::options()
        .write(true)
        .truncate(true)
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// Writes `undo` into a file, so that it holds what it held `before`. An interrupt or a group that
/// is gone has no setting any more.
pub(crate) fn put_back(path: &Path, before: &str, undo: &str) -> std::io::Result<()> {
    let Ok(now) = std::fs::read_to_string(path) else {
        return Ok(());
    };
    if now == before {
        return Ok(());
    }
    write(path, undo)?;
    let now = std::fs::read_to_string(path)?;
    match now == before {
        true => Ok(()),
        false => {
            let text = format!("it is {now:?} instead of {before:?}");
            Err(std::io::Error::other(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_written_back_by_the_word_in_brackets_and_all_else_as_it_was() {
        let check = |text: &str, expect: &str| assert_eq!(chosen(text), expect);
        check("always [madvise] never\n", "madvise");
        check("none (voluntary) full\n", "voluntary");
        check("0-1\n", "0-1\n");
        check("50000 100000\n", "50000 100000\n");
    }

    #[test]
    fn a_change_is_told_in_one_line() {
        let check = |before: &str, expect: &str| {
            let change = Change::Write {
                path: "/proc/irq/7/smp_affinity_list".into(),
                before: before.to_owned(),
                after: "1".to_owned(),
            };
            let expect = format!("/proc/irq/7/smp_affinity_list: {expect} -> 1");
            assert_eq!(change.to_string(), expect);
        };
        check("0-1\n", "0-1");
        check("always [madvise] never\n", "madvise");
    }
}
