//! CPU shielding: some CPUs for real-time tasks alone, all else on the others.
//!
//! [`plan`] reads what the machine is set to and says every change, [`apply`] makes them, [`undo`]
//! takes them back. What was found is in a file before the first change is made, so that the undo
//! is complete wherever whoever applied it was killed.
//!
//! # Design constraints
//! - Each [`Step`] can be taken back whether it was made or not.
//! - A machine without one of the settings is shielded by the others.
//! - All paths are below a root, so that tests have a machine of their own.

mod boot;
mod list;
mod plan;
mod tasks;
mod threads;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::change::{self, Change};

pub use boot::{boot_line, boot_notes, tuned_profile};
pub use list::list;
pub use plan::plan;
pub use tasks::TaskMask;
pub(crate) use tasks::start_of;
pub use threads::InterruptPrio;

/// Where the state is, below the root. It goes with the settings when the machine starts again.
const STATE: &str = "run/rtscope-shield.json";
/// The version of the state's form.
const VERSION: u32 = 2;
/// What lets groups have CPUs of their own, and what takes that back.
const ENABLE: &str = "+cpuset";
const DISABLE: &str = "-cpuset";

/// One step to a shield, with its way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A setting of the machine, or a thread of the kernel, is changed.
    Set(Change),
    /// A control group lets those below it have CPUs of their own.
    Enable {
        /// The file that lists what its groups may control.
        path: PathBuf,
        /// What it held.
        before: String,
    },
    /// A control group is made.
    Make {
        /// Its folder.
        path: PathBuf,
        /// Who takes its tasks when it goes: the file that lists those of its parent.
        tasks: PathBuf,
    },
    /// A text is written into a file of a group that was made, and goes with it.
    Inside {
        /// The file.
        path: PathBuf,
        /// What is written.
        after: String,
    },
    /// All tasks that may be moved go from one control group to another.
    Move {
        /// The file that lists those of the first.
        from: PathBuf,
        /// The file that lists those of the second.
        to: PathBuf,
    },
}

impl Step {
    /// The step as a line of shell, for people.
    pub fn shell(&self) -> String {
        let echo = |text: &str, path: &Path| format!("echo {text} > {}", path.display());
        match self {
            Step::Set(Change::Write { path, after, .. }) | Step::Inside { path, after } => {
                echo(after, path)
            }
            Step::Set(Change::Affinity { task, after, .. }) => {
                format!("taskset -cp {after} {} # {}", task.tid, task.comm)
            }
            Step::Set(Change::Schedule { task, after, .. }) => {
                format!("chrt {} {} # {}", after.chrt(), task.tid, task.comm)
            }
            Step::Enable { path, .. } => echo(ENABLE, path),
            Step::Make { path, .. } => format!("mkdir {}", path.display()),
            Step::Move { from, to } => {
                let (from, to) = (from.display(), to.display());
                format!("for task in $(cat {from}); do echo $task > {to}; done")
            }
        }
    }

    /// Whether the shield is none without it; else a refusal is told and passed over.
    fn is_essential(&self) -> bool {
        !matches!(self, Step::Set(_))
    }

    fn make(&self) -> std::io::Result<()> {
        match self {
            // Who is gone is in nobody's way.
            Step::Set(change) if change.gone().is_some() => Ok(()),
            Step::Set(change) => change.make(),
            Step::Enable { path, .. } => change::write(path, ENABLE),
            Step::Inside { path, after } => change::write(path, after),
            Step::Make { path, .. } => match std::fs::create_dir(path) {
                // A folder that a killed undo left is as good.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
                other => other,
            },
            Step::Move { from, to } => tasks::move_all(from, to),
        }
    }

    fn take_back(&self) -> std::io::Result<()> {
        match self {
            Step::Set(change) => change.take_back(),
            Step::Enable { path, before } => change::put_back(path, before, DISABLE),
            Step::Inside { .. } => Ok(()),
            Step::Make { path, tasks } => {
                if !path.exists() {
                    return Ok(());
                }
                let own = path.join(tasks.file_name().unwrap_or_default());
                if own.exists() {
                    tasks::move_all(&own, tasks)?;
                }
                std::fs::remove_dir(path)
            }
            Step::Move { from, to } if to.exists() => tasks::move_all(to, from),
            Step::Move { .. } => Ok(()),
        }
    }
}

/// A shield: what it is, what it changes, what was found before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shield {
    /// The version of this form.
    version: u32,
    /// The shielded CPUs, as the kernel lists them.
    pub cpus: String,
    /// The CPUs that everything else gets.
    pub housekeeping: String,
    /// The file that takes the tasks that are to run inside; none without control groups.
    pub entrance: Option<PathBuf>,
    /// What is changed, in this order.
    pub changes: Vec<Step>,
    /// Where each task was allowed to run.
    pub tasks: Vec<TaskMask>,
    /// Who takes it down when its command has ended; none where somebody does by hand.
    #[serde(default)]
    pub keeper: Option<Keeper>,
}

/// A process that takes its shield down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// Its number.
    pub pid: u32,
    /// When it began, by the clock of `/proc`: the next of that number is another.
    pub began_ticks: u64,
}

/// What an undo did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// Settings that were as before already, or are again.
    pub restored: usize,
    /// Those that are not, each with the reason.
    pub left: Vec<String>,
}

fn state_path(root: &Path) -> PathBuf {
    root.join(STATE)
}

/// The shield that is up, or was begun.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when its file cannot be understood.
pub fn state(root: &Path) -> Result<Option<Shield>> {
    let path = state_path(root);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(format!("cannot read {}", path.display()), error)),
    };
    let corrupt = |found: String| {
        Error::new(ErrorKind::Corrupt, "the state of the shield makes no sense")
            .found(format!("{}: {found}", path.display()))
            .fix("restart the machine, which ends every shield, or remove the file")
    };
    let shield: Shield = serde_json::from_str(&text).map_err(|error| corrupt(error.to_string()))?;
    if shield.version != VERSION {
        return Err(corrupt(format!("version {}", shield.version)));
    }
    Ok(Some(shield))
}

/// Puts `shield` up; what the machine refused, a line each. When an essential change is refused,
/// everything is taken back.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when a shield is up; what the operating system refused.
pub fn apply(root: &Path, shield: &Shield) -> Result<Vec<String>> {
    save(root, shield)?;
    let mut refused = Vec::new();
    for step in &shield.changes {
        let Err(error) = step.make() else { continue };
        let what = format!("{}: {error}", step.shell());
        if step.is_essential() {
            undo(root)?;
            return Err(Error::io("the machine refuses a shield", error)
                .found(what)
                .fix("rtscope shield --cpu LIST without --apply shows every step"));
        }
        refused.push(what);
    }
    Ok(refused)
}

/// Writes the state before anything is changed, and sees it onto the disk.
fn save(root: &Path, shield: &Shield) -> Result<()> {
    let path = state_path(root);
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::new(ErrorKind::AlreadyExists, "a shield is up already")
                .found(path.display().to_string())
                .fix("rtscope shield --undo")
        }
        _ => Error::io(
            format!("cannot keep the state in {}", path.display()),
            error,
        )
        .fix("run it with sudo"),
    };
    let text = serde_json::to_vec_pretty(shield).map_err(|error| cannot(error.into()))?;
    // Whole or not at all: a link to a finished file cannot be half of it.
    let half = path.with_extension("json.part");
    let mut file = std::fs::File::create(&half).map_err(cannot)?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| std::fs::hard_link(&half, &path));
    std::fs::remove_file(&half).ok();
    linked.map_err(cannot)
}

/// Takes down whatever shield is up, or was begun, in the reverse order. What cannot be restored is
/// told, and the state stays, so that it can be tried again.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is none, and [`state`]'s.
pub fn undo(root: &Path) -> Result<Undone> {
    let Some(shield) = state(root)? else {
        return Err(Error::new(ErrorKind::NotFound, "no shield is up")
            .found(format!("no {}", state_path(root).display()))
            .fix("rtscope shield --cpu LIST --apply puts one up"));
    };
    let mut undone = Undone::default();
    for step in shield.changes.iter().rev() {
        match step.take_back() {
            Ok(()) => undone.restored += 1,
            Err(error) => undone.left.push(format!("{}: {error}", step.shell())),
        }
    }
    undone.left.extend(tasks::restore(&shield.tasks));
    if undone.left.is_empty() {
        let removed = std::fs::remove_file(state_path(root));
        removed.map_err(|error| Error::io("cannot remove the shield's state", error))?;
    }
    Ok(undone)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use event::Cpu;

    use super::*;

    /// A machine with two interrupts, one of which may not be moved here, and no control groups.
    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [
            ("proc/mounts", "proc /proc proc rw 0 0\n"),
            ("proc/irq/7/smp_affinity_list", "0-3\n"),
            ("proc/irq/9/smp_affinity_list", "0\n"),
            ("proc/irq/default_smp_affinity", "f\n"),
            ("proc/sys/kernel/watchdog_cpumask", "0-3\n"),
            ("proc/sys/vm/stat_interval", "1\n"),
            ("sys/devices/virtual/workqueue/cpumask", "f\n"),
            ("sys/kernel/rcu_normal", "0\n"),
            ("run/nothing", ""),
        ];
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        folder
    }

    fn files(root: &Path) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("read").flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    let text = std::fs::read_to_string(entry.path()).expect("read");
                    found.insert(entry.path(), text);
                }
            }
        }
        found
    }

    fn cpus(numbers: &[u32]) -> Vec<Cpu> {
        numbers.iter().copied().map(Cpu).collect()
    }

    #[test]
    fn a_list_of_cpus_is_the_kernels() {
        let check = |numbers: &[u32], expect: &str| assert_eq!(list(&cpus(numbers)), expect);
        check(&[], "");
        check(&[3], "3");
        check(&[0, 1, 2, 8, 10, 11], "0-2,8,10-11");
    }

    #[test]
    fn a_shield_moves_what_ran_on_its_cpus_and_leaves_the_rest() {
        let machine = machine();
        let root = machine.path();
        let shield = plan(root, &cpus(&[2, 3]), &cpus(&[0, 1, 2, 3]), &[]).expect("planned");
        assert_eq!(apply(root, &shield).expect("applied"), [""; 0]);
        let check = |path: &str, expect: &str| {
            let found = std::fs::read_to_string(root.join(path)).expect("read");
            assert_eq!(found.trim_end(), expect, "{path}");
        };
        check("proc/irq/7/smp_affinity_list", "0-1");
        check("proc/irq/9/smp_affinity_list", "0");
        check("proc/irq/default_smp_affinity", "3");
        check("sys/devices/virtual/workqueue/cpumask", "3");
        check("proc/sys/kernel/watchdog_cpumask", "0-1");
        assert_eq!(state(root).expect("read"), Some(shield.clone()));
        let again = apply(root, &shield).expect_err("one is up");
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn wherever_it_was_killed_the_undo_restores_every_byte() {
        let machine = machine();
        let root = machine.path();
        let before = files(root);
        let shield = plan(root, &cpus(&[1]), &cpus(&[0, 1, 2, 3]), &[]).expect("planned");
        assert!(shield.changes.len() >= 5, "{:?}", shield.changes);
        for made in 0..=shield.changes.len() {
            save(root, &shield).expect("saved");
            shield.changes[..made]
                .iter()
                .for_each(|step| step.make().expect("made"));
            let undone = undo(root).expect("undone");
            assert_eq!(undone.left, [""; 0]);
            assert_eq!(files(root), before, "killed after {made} changes");
        }
        assert_eq!(undo(root).expect_err("none").kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_setting_that_cannot_be_restored_is_told_and_its_state_stays() {
        let machine = machine();
        let root = machine.path();
        let shield = plan(root, &cpus(&[1]), &cpus(&[0, 1]), &[]).expect("planned");
        apply(root, &shield).expect("applied");
        let irq = root.join("proc/irq/7/smp_affinity_list");
        std::fs::remove_file(&irq).expect("removed");
        // Takes everything, and keeps nothing of it.
        std::os::unix::fs::symlink("/dev/null", &irq).expect("linked");
        let undone = undo(root).expect("tried");
        assert_eq!(undone.left.len(), 1, "{undone:?}");
        assert!(state(root).expect("read").is_some());
    }

    #[test]
    fn all_cpus_or_none_are_no_shield() {
        let machine = machine();
        let check = |shielded: &[u32]| {
            let error =
                plan(machine.path(), &cpus(shielded), &cpus(&[0, 1]), &[]).expect_err("none");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.fixed_by().is_some());
        };
        check(&[]);
        check(&[0, 1]);
    }
}
