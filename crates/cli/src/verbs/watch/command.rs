//! `watch -- COMMAND`: held until the watch is armed, so that its first activation is seen.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command as Process, ExitStatus};
use std::time::Instant;

use diagnosis::quoted;
use event::{Error, ErrorKind, Result, Tid};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::heard::Written;
use super::orphans::{self, Orphan, orphans};

/// Who was asked to end has so long.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// How often we look whether it has.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);

/// A command's process. It is ended when the watch does not come to let it run.
pub(in crate::verbs) struct Command {
    child: Child,
    name: String,
    runs: bool,
    ended: Option<Instant>,
}

impl Command {
    /// Starts a process that stops before it becomes the command. Its output goes where `written`
    /// says, else where ours goes.
    ///
    /// # Errors
    /// When there is no shell, or the process ended at once.
    pub fn hold(words: &[OsString], written: Option<Written>) -> Result<Command> {
        orphans::adopt()?;
        Command::hold_by(Process::new("sh"), words, written)
    }

    /// The same of a command that the kernel kills when we die: nobody else would end it. What it
    /// started then is found by its environment (`doctor --clean`).
    ///
    /// # Errors
    /// As [`Command::hold`].
    pub fn hold_while_we_live(words: &[OsString], written: Option<Written>) -> Result<Command> {
        let mut shell = Process::new("sh");
        let (name, value) = measure::load::mark();
        shell.env(name, value);
        let dies = || {
            let signal = Some(Signal::KILL);
            Ok(rustix::process::set_parent_process_death_signal(signal)?)
        };
        // SAFETY: one call of the system, which touches no memory.
        unsafe { shell.pre_exec(dies) };
        Command::hold_by(shell, words, written)
    }

    fn hold_by(
        mut shell: Process,
        words: &[OsString],
        written: Option<Written>,
    ) -> Result<Command> {
        let name = words
            .first()
            .map(|word| word.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let cannot = |error| Error::io(format!("cannot start {name}"), error);
        // The shell would be watched in its place, until it says so.
        if let Some(why) = no_program(&name) {
            return Err(refused(&name, why));
        }
        // The process keeps its id when it becomes the command, and has its name until then, too.
        let held = "printf %s \"${1##*/}\" > /proc/$$/comm; kill -STOP $$; exec \"$@\"";
        shell.args(["-c", held, "rtscope"]).args(words);
        if let Some(Written { stdout, stderr }) = written {
            shell.stdout(stdout).stderr(stderr);
        }
        let child = capture::with_given_limit(&mut shell)
            .spawn()
            .map_err(cannot)?;
        let command = Command {
            child,
            name: name.clone(),
            runs: false,
            ended: None,
        };
        let stopped = waitpid(command.pid(), WaitOptions::UNTRACED);
        let stopped = stopped.map_err(|errno| cannot(errno.into()))?;
        match stopped.is_some_and(|(_, status)| status.stopped()) {
            true => Ok(command),
            false => Err(
                Error::new(ErrorKind::Interrupted, "the command ended before the watch")
                    .found(name)
                    .fix("start it by itself, and watch it with --pid"),
            ),
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Its process id.
    pub fn id(&self) -> Tid {
        Tid(self.child.id() as i32)
    }

    /// What is said of it where the watch ends before it does, or before `orphans` do.
    pub fn left(&mut self, orphans: &[Orphan]) -> Option<String> {
        let goes_on = self.ended().is_none();
        let (name, id) = (&self.name, self.child.id());
        if goes_on {
            return Some(format!(
                "{name} goes on without the watch; kill {id} ends it\n"
            ));
        }
        (!orphans.is_empty()).then(|| orphans::text(name, orphans))
    }

    /// Who goes on though it has ended: what it started and did not wait for.
    pub fn orphans(&mut self) -> Vec<Orphan> {
        match self.ended() {
            Some(_) => orphans(self.child.id()),
            None => Vec::new(),
        }
    }

    /// Lets it run.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn go(&mut self) -> Result<()> {
        let cannot = |errno: rustix::io::Errno| {
            Error::io(format!("cannot let {} run", self.name), errno.into())
        };
        if let Some(pid) = self.pid() {
            kill_process(pid, Signal::CONT).map_err(cannot)?;
        }
        self.runs = true;
        Ok(())
    }

    /// Ends it, if it still runs; how it ended if it did so by itself.
    ///
    /// # Errors
    /// When the operating system does not tell.
    pub fn end(&mut self) -> Result<Option<ExitStatus>> {
        let cannot = |error| Error::io(format!("cannot end {}", self.name), error);
        if let Some(status) = self.child.try_wait().map_err(cannot)? {
            return Ok(Some(status));
        }
        if let Some(pid) = self.pid() {
            // It may end meanwhile.
            kill_process(pid, Signal::TERM).ok();
        }
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            if self.child.try_wait().map_err(cannot)?.is_some() {
                return Ok(None);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        self.child.kill().map_err(cannot)?;
        self.child.wait().map_err(cannot)?;
        Ok(None)
    }

    /// Since when it has ended; what it said of failure is said once.
    pub fn ended(&mut self) -> Option<Instant> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some(Instant::now());
            if !status.success() {
                note!("{} failed: {status}", self.name);
            }
        }
        self.ended
    }
}

/// Why a shell would find no program of this name that it may run; none where it finds one.
fn no_program(name: &str) -> Option<Refusal> {
    if name.contains('/') {
        return refusal(Path::new(name));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders);
    let refusals = folders.map(|folder| refusal(&folder.join(name)));
    // As a shell does it: one that may be run goes before one that may not.
    let mut found = Some(Refusal::NotThere);
    for refused in refusals.filter(|_| !name.is_empty()) {
        match refused {
            None => return None,
            Some(Refusal::NotThere) => (),
            why => found = why,
        }
    }
    found
}

/// Why a file is no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    NotThere,
    Folder,
    NotExecutable,
}

fn refusal(path: &Path) -> Option<Refusal> {
    if path.is_dir() {
        return Some(Refusal::Folder);
    }
    if !path.exists() {
        return Some(Refusal::NotThere);
    }
    let may_run = rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    (!may_run).then_some(Refusal::NotExecutable)
}

/// That `name` cannot be started.
fn refused(name: &str, why: Refusal) -> Error {
    let (kind, found, fix) = match why {
        Refusal::NotThere => (
            ErrorKind::NotFound,
            "no such program".to_owned(),
            "check the command's name and its path".to_owned(),
        ),
        Refusal::Folder => (
            ErrorKind::InvalidInput,
            "a folder".to_owned(),
            "name a program in it".to_owned(),
        ),
        Refusal::NotExecutable => (
            ErrorKind::PermissionDenied,
            "a file that may not be run".to_owned(),
            format!("chmod +x {}, if it is a program", quoted(name)),
        ),
    };
    Error::new(kind, format!("cannot start {name}"))
        .found(found)
        .fix(fix)
}

impl Drop for Command {
    fn drop(&mut self) {
        if !self.runs {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_refused_before_a_shell_is_watched_in_its_place() {
        let check = |name: &str, expect: Option<&str>| {
            let found = no_program(name).map(|why| refused(name, why));
            let found = found
                .as_ref()
                .map(|error| error.value_found().unwrap_or_default());
            assert_eq!(found, expect, "{name}");
        };
        check("sh", None);
        check("/bin/sh", None);
        check("/etc", Some("a folder"));
        check("/etc/passwd", Some("a file that may not be run"));
        check("/nonexistent/prog", Some("no such program"));
        check("no-such-program", Some("no such program"));
        check("", Some("no such program"));
        let held = Command::hold(&["/bin/true".into()], None).expect("held");
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", held.id()));
        assert_eq!(
            comm.expect("its name"),
            "true\n",
            "as the command is called"
        );
        let refused = Command::hold(&["/nonexistent/prog".into()], None)
            .err()
            .expect("refused");
        assert!(refused.fixed_by().is_some());
    }
}
