//! `--exec CMD`: a command for each hit, with the hit's JSON on stdin.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use event::{Error, Result};
use serde_json::{Value, json};

use crate::signals::{self, Request};

/// So many run at once: more of them hang, and each more would, too.
const AT_ONCE_MAX: usize = 16;
/// The end of a watch waits so long for them.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(20);

/// The commands that still run, and how the others ended.
#[derive(Default)]
pub struct Running {
    children: Vec<Child>,
    counts: Counts,
}

/// How the commands ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    started: u64,
    /// Ended with another code than 0, or by a signal.
    failed: u64,
    /// Not started, because as many as may be still ran.
    refused: u64,
    /// Not over at the end.
    left: u64,
}

impl Running {
    /// Starts `command` in a shell and hands it `json`. It is not waited for: the watch goes on.
    ///
    /// # Errors
    /// When the shell cannot be started.
    pub fn start(&mut self, command: &str, json: &str) -> Result<()> {
        self.reap();
        if self.children.len() >= AT_ONCE_MAX {
            if self.counts.refused == 0 {
                note!(
                    "warning: --exec is not called for each hit: {AT_ONCE_MAX} still run\n  \
                     fix:  'timeout 10' before it ends those that hang"
                );
            }
            self.counts.refused += 1;
            return Ok(());
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped());
        let cannot = |error| {
            Error::io(format!("cannot run '{command}'"), error)
                .fix("leave --exec away, or make room for another process")
        };
        let mut child = shell.spawn().map_err(cannot)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A line: `cat >> FILE` makes JSON lines of several.
            let json = format!("{json}\n");
            // A command that does not read is its own affair, and may be of any hit that does not
            // fit into a pipe.
            std::thread::spawn(move || stdin.write_all(json.as_bytes()));
        }
        self.counts.started += 1;
        self.children.push(child);
        Ok(())
    }

    /// Forgets those that have ended; the first that failed is told.
    pub fn reap(&mut self) {
        let counts = &mut self.counts;
        self.children.retain_mut(|child| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                if !status.success() {
                    if counts.failed == 0 {
                        note!("warning: a command of --exec failed: {status}");
                    }
                    counts.failed += 1;
                }
                false
            }
            Err(_) => false,
        });
    }

    /// Waits for all of them, but not for ever: who hangs is left alone, and named.
    pub fn finish(&mut self) {
        self.finish_within(PATIENCE);
    }

    fn finish_within(&mut self, patience: Duration) {
        let end = Instant::now() + patience;
        self.reap();
        while !self.children.is_empty()
            && Instant::now() < end
            && signals::request() != Request::Discard
        {
            std::thread::sleep(LOOK);
            self.reap();
        }
        self.counts.left = self.children.len() as u64;
        let left = self.children.drain(..).map(|child| child.id().to_string());
        let left: Vec<String> = left.collect();
        if !left.is_empty() {
            note!(
                "warning: {} commands of --exec are not over, and run on: process {}\n  \
                 fix:  timeout 10 … in front of it ends those that hang",
                left.len(),
                left.join(", ")
            );
        }
    }

    /// What came of them, where that is not that all went well.
    pub fn text(&self) -> String {
        let Counts {
            started,
            failed,
            refused,
            left,
        } = self.counts;
        let parts = [
            (failed, "failed"),
            (left, "not over"),
            (refused, "not started"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match parts.is_empty() {
            true => String::new(),
            false => format!("--exec: {started} commands, {}\n", parts.join(", ")),
        }
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let counts = &self.counts;
        json!({
            "started": counts.started,
            "failed": counts.failed,
            "refused": counts.refused,
            "left": counts.left,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_counted_and_what_hangs_keeps_nobody() {
        let check = |command: &str, times: usize, expect: &str| {
            let mut running = Running::default();
            for _ in 0..times {
                running.start(command, "{}").expect("a shell");
            }
            let hangs = command.starts_with("exec sleep");
            let patience = if hangs { Duration::ZERO } else { PATIENCE };
            let still: Vec<u32> = running.children.iter().map(Child::id).collect();
            running.finish_within(patience);
            assert_eq!(running.text(), expect, "{command}");
            for id in still.iter().filter(|_| hangs) {
                let id = rustix::process::Pid::from_raw(*id as i32).expect("an id");
                rustix::process::kill_process(id, rustix::process::Signal::KILL).ok();
                rustix::process::waitpid(Some(id), rustix::process::WaitOptions::empty()).ok();
            }
        };
        check("cat > /dev/null", 2, "");
        check("exit 3", 2, "--exec: 2 commands, 2 failed\n");
        check(
            "/nonexistent 2>/dev/null",
            1,
            "--exec: 1 commands, 1 failed\n",
        );
        check("kill -9 $$", 1, "--exec: 1 commands, 1 failed\n");
        check("exec sleep 30", 1, "--exec: 1 commands, 1 not over\n");
        let all = AT_ONCE_MAX;
        let expect = format!("--exec: {all} commands, {all} not over, 2 not started\n");
        check("exec sleep 30", all + 2, &expect);
    }

    #[test]
    fn what_several_commands_append_to_a_file_is_a_line_each() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut running = Running::default();
        for _ in 0..3 {
            let command = format!("cat >> {}", file.path().display());
            running.start(&command, "{}").expect("a shell");
        }
        running.finish();
        let text = std::fs::read_to_string(file.path()).expect("read");
        assert_eq!(text, "{}\n".repeat(3));
    }

    #[test]
    fn a_command_that_does_not_read_holds_nobody_up() {
        let mut running = Running::default();
        let json = "x".repeat(1 << 20);
        running.start("exec sleep 30", &json).expect("a shell");
        let mut child = running.children.pop().expect("it runs");
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
}
