//! A watch that runs beside what is measured.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

/// A running `rtscope watch`; ends with this.
pub struct Background {
    child: Child,
    /// None where a file has it.
    stdout: Option<BufReader<ChildStdout>>,
    /// Kept open: what the watch says later must not fail.
    stderr: BufReader<ChildStderr>,
}

impl Background {
    /// Starts the watch; returns when it is armed.
    ///
    /// # Errors
    /// What it said instead.
    pub fn start(command: Command) -> Result<Background> {
        Background::start_into(command, Stdio::piped())
    }

    /// The same, with what it prints in a file: nobody has to read it meanwhile.
    ///
    /// # Errors
    /// As [`Background::start`].
    pub fn start_into_file(command: Command, file: File) -> Result<Background> {
        Background::start_into(command, file.into())
    }

    fn start_into(mut command: Command, stdout: Stdio) -> Result<Background> {
        let mut child = command
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the watch")?;
        let stdout = child.stdout.take();
        let stderr = child.stderr.take().context("no stderr")?;
        let mut background = Background {
            child,
            stdout: stdout.map(BufReader::new),
            stderr: BufReader::new(stderr),
        };
        let mut said = String::new();
        loop {
            let begin = said.len();
            if background.stderr.read_line(&mut said)? == 0 {
                bail!("the watch ended at once: {said}");
            }
            if said[begin..].starts_with("watching") {
                return Ok(background);
            }
        }
    }

    /// The next line that it prints; empty when it has ended.
    ///
    /// # Errors
    /// When its output cannot be read.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.read_line(&mut line)?;
        }
        Ok(line)
    }
}

impl Background {
    /// Ends the watch; the last line that it prints.
    ///
    /// # Errors
    /// When its output cannot be read.
    pub fn finish(mut self) -> Result<String> {
        self.interrupt();
        let mut last = String::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(last);
            }
            last = line;
        }
    }

    fn interrupt(&self) {
        // SAFETY: a system call without pointers, on our own child that nobody has waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.interrupt();
        self.child.wait().ok();
    }
}
