//! What the workloads share: programs that are run to their end, and servers that end with us.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::child;

/// What runs again and again.
pub(super) trait Load {
    /// Runs once; how long that took, in seconds.
    fn run_s(&self) -> Result<f64>;
}

/// A program that is run again and again, in a folder of its own that goes away with it.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) words: Vec<String>,
    pub(super) folder: tempfile::TempDir,
}

impl Program {
    /// Its command, in its folder.
    pub(super) fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(self.name);
        command
            .args(&self.words)
            .args(more)
            .current_dir(self.folder.path());
        command
    }
}

impl Load for Program {
    fn run_s(&self) -> Result<f64> {
        Ok(child::run(&mut self.command(&["run"]))?.wall.as_secs_f64())
    }
}

/// A server that we started; ends with this.
pub(super) struct Server(Child);

impl Server {
    /// Starts it and waits until it is there.
    ///
    /// # Errors
    /// When it ends at once, or is not there in time.
    pub(super) fn start(
        command: &mut Command,
        within: Duration,
        is_there: impl Fn() -> bool,
    ) -> Result<Server> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = child
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let mut server = Server(child);
        let begin = Instant::now();
        while !is_there() {
            if let Some(status) = server.0.try_wait()? {
                bail!("{name} ended at once: {status}");
            }
            if begin.elapsed() > within {
                bail!("{name} does not answer");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
