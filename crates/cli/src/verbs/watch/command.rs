//! `watch -- COMMAND`: held until the watch is armed, so that its first activation is seen.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command as Process, ExitStatus};
use std::time::Instant;

use event::{Error, ErrorKind, Result, Tid};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::heard::Written;

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
        if !is_program(&name) {
            return Err(cannot(std::io::ErrorKind::NotFound.into())
                .fix("check the command's name and its path, and that it may be run"));
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

    /// What is said of it where the watch ends before it does.
    pub fn left(&mut self) -> Option<String> {
        let goes_on = self.ended().is_none();
        let (name, id) = (&self.name, self.child.id());
        goes_on.then(|| format!("{name} goes on without the watch; kill {id} ends it\n"))
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
                eprintln!("{} failed: {status}", self.name);
            }
        }
        self.ended
    }
}

/// Whether a shell would find a program of this name that it may run.
fn is_program(name: &str) -> bool {
    let may_run = |path: &Path| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if name.contains('/') {
        return may_run(Path::new(name));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    !name.is_empty() && std::env::split_paths(&folders).any(|folder| may_run(&folder.join(name)))
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
        let check = |name: &str, expect: bool| assert_eq!(is_program(name), expect, "{name}");
        check("sh", true);
        check("/bin/sh", true);
        check("/etc", false);
        check("/etc/passwd", false);
        check("/nonexistent/prog", false);
        check("no-such-program", false);
        check("", false);
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
