//! `--exec CMD`: a command for each hit, with the hit's JSON on stdin.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use event::{Error, Result};

/// The commands that still run.
#[derive(Default)]
pub struct Running(Vec<Child>);

impl Running {
    /// Starts `command` in a shell and hands it `json`. It is not waited for: the watch goes on.
    ///
    /// # Errors
    /// When the shell cannot be started.
    pub fn start(&mut self, command: &str, json: &str) -> Result<()> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped());
        let cannot = |error| Error::io(format!("cannot run '{command}'"), error);
        let mut child = shell.spawn().map_err(cannot)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read is its own affair. A hit fits into a pipe, so that
            // this does not wait for the reader.
            stdin.write_all(json.as_bytes()).ok();
        }
        self.0.push(child);
        Ok(())
    }

    /// Forgets those that have ended.
    pub fn reap(&mut self) {
        self.0
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Waits for all of them.
    pub fn finish(&mut self) {
        for child in &mut self.0 {
            child.wait().ok();
        }
        self.0.clear();
    }
}
