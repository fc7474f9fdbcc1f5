//! A watch that runs beside what is measured.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

/// A running `rtscope watch`; ends with this.
pub struct Background {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Background {
    /// Starts the watch; returns when it is armed.
    ///
    /// # Errors
    /// What it said instead.
    pub fn start(mut command: Command) -> Result<Background> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the watch")?;
        let stdout = child.stdout.take().context("no stdout")?;
        let stderr = child.stderr.take().context("no stderr")?;
        let background = Background {
            child,
            stdout: BufReader::new(stdout),
        };
        let mut said = String::new();
        BufReader::new(stderr).read_line(&mut said)?;
        if !said.starts_with("watching") {
            bail!("the watch said: {said}");
        }
        Ok(background)
    }

    /// The next line that it prints; empty when it has ended.
    ///
    /// # Errors
    /// When its output cannot be read.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // SAFETY: a system call without pointers, on our own child that nobody has waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        self.child.wait().ok();
    }
}
