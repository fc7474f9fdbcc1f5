//! `watch -- COMMAND`: held until the watch is armed, so that its first activation is seen.

use std::ffi::OsString;
use std::process::{Child, Command as Process};
use std::time::Instant;

use event::{Error, ErrorKind, Result, Tid};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::heard::Written;

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
        let name = words
            .first()
            .map(|word| word.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let cannot = |error| Error::io(format!("cannot start {name}"), error);
        let mut shell = Process::new("sh");
        // The process keeps its id when it becomes the command.
        shell
            .args(["-c", "kill -STOP $$; exec \"$@\"", "rtscope"])
            .args(words);
        if let Some(Written { stdout, stderr }) = written {
            shell.stdout(stdout).stderr(stderr);
        }
        let child = shell.spawn().map_err(cannot)?;
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

impl Drop for Command {
    fn drop(&mut self) {
        if !self.runs {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}
