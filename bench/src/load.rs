//! The load under which all is measured: hackbench of rt-tests, and a 1 kHz timer.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::child;

const TIMER_PERIOD: Duration = Duration::from_millis(1);
/// A pipe takes sixteen of them.
const MESSAGE_BYTES: u32 = 4096;
/// More than any measurement lasts.
const LOOPS_FOR_EVER: u64 = 1_000_000_000;

/// Refuses to begin without the load.
///
/// # Errors
/// Without hackbench.
pub fn require() -> Result<()> {
    if !child::exists("hackbench") {
        bail!("hackbench is needed as a load: apt-get install rt-tests");
    }
    Ok(())
}

/// hackbench with threads and pipes: `groups` × (`fds` senders and `fds` receivers). Threads, so
/// that the death of one process ends them all.
fn hackbench(groups: u32, fds: u32, loops: u64) -> Command {
    let mut command = Command::new("hackbench");
    command.args(["--threads", "--pipe"]);
    for (flag, value) in [
        ("--groups", u64::from(groups)),
        ("--fds", u64::from(fds)),
        ("--loops", loops),
    ] {
        command.arg(format!("{flag}={value}"));
    }
    command
}

/// Seconds that a fixed amount of hackbench's work takes, by its own clock.
///
/// # Errors
/// When it fails, or says something else.
pub fn hackbench_s(groups: u32, fds: u32, loops: u64) -> Result<f64> {
    let text = child::output(&mut hackbench(groups, fds, loops))?;
    time_line(&text).with_context(|| format!("hackbench said no time: {text}"))
}

/// The same of messages that soon fill a pipe: senders and receivers switch all the time.
///
/// # Errors
/// As [`hackbench_s`].
pub fn switching_hackbench_s(groups: u32, fds: u32, loops: u64) -> Result<f64> {
    let mut command = hackbench(groups, fds, loops);
    // hackbench 2.4 does not take the long name of this one.
    let text = child::output(command.args(["-s", &MESSAGE_BYTES.to_string()]))?;
    time_line(&text).with_context(|| format!("hackbench said no time: {text}"))
}

fn time_line(text: &str) -> Option<f64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("Time: ")?.trim().parse().ok())
}

/// A load that runs while this lives.
pub struct Load {
    hackbench: Child,
    stop: Arc<AtomicBool>,
    timer: Option<JoinHandle<()>>,
}

impl Load {
    /// Two tasks a CPU that wake each other, and a task that a timer wakes a thousand times a
    /// second.
    ///
    /// # Errors
    /// When hackbench cannot be started.
    pub fn start(groups: u32, fds: u32) -> Result<Load> {
        let mut command = hackbench(groups, fds, LOOPS_FOR_EVER);
        let hackbench = command
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start hackbench")?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let timer = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                std::thread::sleep(TIMER_PERIOD);
            }
        });
        Ok(Load {
            hackbench,
            stop,
            timer: Some(timer),
        })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It may be gone already, which is what we want.
        self.hackbench.kill().ok();
        self.hackbench.wait().ok();
        if let Some(timer) = self.timer.take() {
            timer.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_from_what_hackbench_says() {
        let said = "Running in threaded mode\nEach sender will pass 100 messages\nTime: 0.018\n";
        assert_eq!(time_line(said), Some(0.018));
        assert_eq!(time_line("SENDER: write"), None);
    }
}
