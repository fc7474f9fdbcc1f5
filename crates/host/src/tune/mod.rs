//! One change of the machine, tried and taken back.
//!
//! [`read()`] understands a command that changes the machine and says what it changes; [`Trial`]
//! makes the changes and takes them back, as often as wanted. What was found is in a file before
//! the first change is made, as the shield's is: [`undo`] is complete wherever whoever tried was
//! killed.
//!
//! # Design constraints
//! - Only what can be read and put back is tried; no command is run.
//! - A task that ended needs nothing; one that took over its id is left alone.

mod commands;
mod groups;
mod task;
mod words;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

pub use crate::change::Change;
pub use commands::read;
pub use task::{Policy, TaskId};

/// Where the state is, below the root. It goes with the settings when the machine starts again.
const STATE: &str = "run/rtscope-tune.json";
/// The version of the state's form.
const VERSION: u32 = 1;

/// Why a change could not be made, and what helps.
fn refused(change: &Change, error: std::io::Error) -> Error {
    if let Some(task) = change.gone() {
        let error = Error::new(ErrorKind::NotFound, "the task of the change has ended");
        return error
            .found(task.to_string())
            .fix("ps -eLo pid,tid,rtprio,comm lists tasks; diagnose again for the ids of now");
    }
    let found = format!("{change}: {error}");
    let fix = match (error.kind(), change) {
        (std::io::ErrorKind::PermissionDenied, _) => "run it with sudo".to_owned(),
        (std::io::ErrorKind::NotFound, Change::Write { path, .. }) => {
            let folder = path.parent().unwrap_or(path);
            format!("ls {} shows what is there", folder.display())
        }
        (_, Change::Affinity { .. }) => {
            "choose CPUs that are in /sys/devices/system/cpu/online and in the cpuset of the \
             task's group"
                .to_owned()
        }
        (_, Change::Schedule { .. }) => "chrt -m prints which priorities a policy takes".to_owned(),
        (_, Change::Write { path, .. }) => format!(
            "cat {} shows a value that the kernel takes; what is fixed at boot cannot be tried",
            path.display()
        ),
    };
    Error::io("the kernel refuses the change", error)
        .found(found)
        .fix(fix)
}

/// What is tried, or was when its process was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    version: u32,
    /// The process that tries.
    pub pid: u32,
    /// The commands, as they were given.
    pub commands: Vec<String>,
    /// What they change, in this order.
    pub changes: Vec<Change>,
}

/// A trial: its changes are on or off. Dropped, it takes them back.
#[derive(Debug)]
pub struct Trial {
    root: PathBuf,
    state: State,
    is_over: bool,
}

impl Trial {
    /// Writes down what is found before anything is changed.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] while another trial is under way or was left; what the
    /// operating system refuses.
    pub fn begin(root: &Path, commands: Vec<String>, changes: Vec<Change>) -> Result<Trial> {
        let state = State {
            version: VERSION,
            pid: std::process::id(),
            commands,
            changes,
        };
        save(root, &state)?;
        Ok(Trial {
            root: root.to_owned(),
            state,
            is_over: false,
        })
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// What the machine refuses; what was made until then is taken back.
    pub fn on(&self) -> Result<()> {
        for change in &self.state.changes {
            if let Err(error) = change.make() {
                self.off()?;
                return Err(refused(change, error));
            }
        }
        Ok(())
    }

    /// Takes the changes back.
    ///
    /// # Errors
    /// What cannot be restored.
    pub fn off(&self) -> Result<()> {
        take_back(&self.state)
    }

    /// Ends it with the changes as they are now.
    ///
    /// # Errors
    /// When the state cannot be removed.
    pub fn keep(mut self) -> Result<()> {
        self.is_over = true;
        remove(&self.root)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if !self.is_over && self.off().is_ok() {
            remove(&self.root).ok();
        }
    }
}

fn take_back(state: &State) -> Result<()> {
    let changes = state.changes.iter().rev();
    let left = changes.filter_map(|change| {
        let error = change.take_back().err()?;
        Some(format!("{change}: {error}"))
    });
    let left: Vec<String> = left.collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(
        Error::new(ErrorKind::Io, "not everything could be taken back")
            .found(left.join("; "))
            .fix("rtscope tune --undo tries again; a restart of the machine ends it in any case"),
    )
}

fn path(root: &Path) -> PathBuf {
    root.join(STATE)
}

fn remove(root: &Path) -> Result<()> {
    let removed = std::fs::remove_file(path(root));
    removed.map_err(|error| Error::io("cannot remove the state of the trial", error))
}

/// The trial that is under way, or was left by one that was killed.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when its file cannot be understood.
pub fn state(root: &Path) -> Result<Option<State>> {
    let path = path(root);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(format!("cannot read {}", path.display()), error)),
    };
    let found = serde_json::from_str::<State>(&text);
    match found {
        Ok(state) if state.version == VERSION => Ok(Some(state)),
        _ => Err(
            Error::new(ErrorKind::Corrupt, "the state of a trial makes no sense")
                .found(path.display().to_string())
                .fix("restart the machine, which ends every trial, or remove the file"),
        ),
    }
}

/// Writes the state before anything is changed, and sees it onto the disk.
fn save(root: &Path, state: &State) -> Result<()> {
    let path = path(root);
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => taken(root),
        _ => Error::io(
            format!("cannot keep the state in {}", path.display()),
            error,
        )
        .fix("run it with sudo"),
    };
    let text = serde_json::to_vec_pretty(state).map_err(|error| cannot(error.into()))?;
    // Whole or not at all: a link to a finished file cannot be half of it.
    let half = path.with_extension("json.part");
    let mut file = std::fs::File::create(&half).map_err(cannot)?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| std::fs::hard_link(&half, &path));
    std::fs::remove_file(&half).ok();
    linked.map_err(cannot)
}

/// Whether the process that tries is there.
pub fn is_under_way(state: &State) -> bool {
    Path::new("/proc").join(state.pid.to_string()).exists()
}

/// Another trial is under way, or was left.
fn taken(root: &Path) -> Error {
    match state(root) {
        Ok(Some(state)) if is_under_way(&state) => under_way(&state),
        Ok(_) => Error::new(
            ErrorKind::AlreadyExists,
            "a tune that was killed left what it tried",
        )
        .found(path(root).display().to_string())
        .fix("rtscope tune --undo"),
        Err(error) => error,
    }
}

/// Nobody takes back what a living process tries.
pub fn under_way(state: &State) -> Error {
    Error::new(ErrorKind::AlreadyExists, "a tune is under way")
        .found(format!("process {}", state.pid))
        .fix("wait for its end, or end it with Ctrl-C: it takes everything back")
}

/// Takes back what a trial left, in the reverse order; what it had changed.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is none; what cannot be restored, and the state then stays.
pub fn undo(root: &Path) -> Result<State> {
    let Some(state) = state(root)? else {
        return Err(Error::new(ErrorKind::NotFound, "nothing is being tried")
            .found(format!("no {}", path(root).display()))
            .fix("rtscope tune -h says how to try something"));
    };
    take_back(&state)?;
    remove(root)?;
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [
            ("proc/irq/7/smp_affinity_list", "0-1\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            ("run/nothing", ""),
        ];
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        folder
    }

    fn irq(root: &Path) -> Change {
        Change::Write {
            path: root.join("proc/irq/7/smp_affinity_list"),
            before: "0-1\n".to_owned(),
            after: "1".to_owned(),
        }
    }

    /// A plain file keeps what was written, without the line's end that the kernel shows.
    fn irq_now(root: &Path) -> String {
        std::fs::read_to_string(root.join("proc/irq/7/smp_affinity_list")).expect("read")
    }

    #[test]
    fn a_trial_is_on_and_off_and_leaves_what_it_found() {
        let machine = machine();
        let root = machine.path();
        std::fs::write(root.join("proc/irq/7/smp_affinity_list"), "0-1").expect("written");
        let mut change = irq(root);
        if let Change::Write { before, .. } = &mut change {
            *before = "0-1".to_owned();
        }
        let trial = Trial::begin(root, vec!["x".into()], vec![change]).expect("begun");
        trial.on().expect("on");
        assert_eq!(irq_now(root), "1");
        trial.off().expect("off");
        assert_eq!(irq_now(root), "0-1");
        trial.on().expect("on");
        let again = Trial::begin(root, vec![], vec![]).expect_err("one is under way");
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        let fix = again.fixed_by().unwrap_or_default();
        assert!(
            fix.contains("Ctrl-C") && !fix.contains("--undo"),
            "it lives: {fix}"
        );
        drop(trial);
        assert_eq!(irq_now(root), "0-1");
        assert_eq!(state(root).expect("read"), None);
    }

    #[test]
    fn what_a_killed_trial_left_is_taken_back_and_what_is_kept_stays() {
        let machine = machine();
        let root = machine.path();
        std::fs::write(root.join("proc/irq/7/smp_affinity_list"), "0-1").expect("written");
        let mut change = irq(root);
        if let Change::Write { before, .. } = &mut change {
            *before = "0-1".to_owned();
        }
        let trial = Trial::begin(root, vec!["x".into()], vec![change.clone()]).expect("begun");
        trial.on().expect("on");
        std::mem::forget(trial);
        assert_eq!(undo(root).expect("undone").commands, ["x"]);
        assert_eq!(irq_now(root), "0-1");
        assert_eq!(undo(root).expect_err("none").kind(), ErrorKind::NotFound);
        let trial = Trial::begin(root, vec![], vec![change]).expect("begun");
        trial.on().expect("on");
        trial.keep().expect("kept");
        assert_eq!(
            (irq_now(root).as_str(), state(root).expect("read")),
            ("1", None)
        );
    }

    #[test]
    fn a_refusal_says_the_kernels_reason_and_what_helps_against_that_one() {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let check = |change: Change, found: &str, fix: &str| {
            let error = change.make().expect_err("refused");
            let error = refused(&change, error);
            let said = error.value_found().unwrap_or_default();
            assert!(said.contains(found), "{error:#}");
            let said = error.fixed_by().unwrap_or_default();
            assert!(said.contains(fix) && !said.contains("sudo"), "{error:#}");
        };
        let task = TaskId::find(own).expect("our own");
        let affinity = |task: TaskId| Change::Affinity {
            task,
            before: "0".to_owned(),
            after: "1023".to_owned(),
        };
        check(affinity(task.clone()), "Invalid argument", "cpu/online");
        let before = task.policy().expect("its own");
        let after = before.with_policy(99, 1);
        let policy = Change::Schedule {
            task,
            before,
            after,
        };
        check(policy, "Invalid argument", "chrt -m");
        // A task that has ended is no reason to ask for rights.
        let ended = std::thread::spawn(|| {
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            TaskId::find(own).expect("our own")
        });
        let ended = ended.join().expect("it ends");
        while ended.is_there() {
            std::thread::yield_now();
        }
        check(affinity(ended), "(", "ps -eLo");
    }

    #[test]
    fn what_a_dead_tune_left_is_undone_by_undo() {
        let machine = machine();
        let root = machine.path();
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = child.id();
        child.wait().expect("it ends");
        let state = State {
            version: VERSION,
            pid,
            commands: vec![],
            changes: vec![],
        };
        save(root, &state).expect("saved");
        let error = Trial::begin(root, vec![], vec![]).expect_err("left");
        assert_eq!(error.fixed_by(), Some("rtscope tune --undo"), "{error:#}");
    }

    #[test]
    fn what_the_machine_refuses_is_taken_back_at_once() {
        let machine = machine();
        let root = machine.path();
        std::fs::write(root.join("proc/irq/7/smp_affinity_list"), "0-1").expect("written");
        let mut first = irq(root);
        if let Change::Write { before, .. } = &mut first {
            *before = "0-1".to_owned();
        }
        let second = Change::Write {
            path: root.join("proc/irq/9/smp_affinity_list"),
            before: "0".to_owned(),
            after: "1".to_owned(),
        };
        let trial = Trial::begin(root, vec![], vec![first, second]).expect("begun");
        let error = trial.on().expect_err("refused");
        assert!(
            error
                .value_found()
                .is_some_and(|found| found.contains("irq/9")),
            "{error:#}"
        );
        assert_eq!(irq_now(root), "0-1");
    }
}
