//! A terminal for tests of what people see: tmux, on a server of its own.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::skip;

/// Long enough on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at the terminal.
const LOOK_INTERVAL: Duration = Duration::from_millis(30);

/// A terminal that runs a command. The server's socket is in this folder; it ends with this value.
pub struct Terminal(tempfile::TempDir);

impl Terminal {
    /// Runs a shell's command in a terminal of so many columns and 30 rows; none where there is no
    /// tmux, which is said of the test.
    pub fn start(test: &str, columns: u32, command: &str) -> Option<Terminal> {
        let mut version = Command::new("tmux");
        version.arg("-V").stdout(Stdio::null());
        if version.status().is_err() {
            skip(test, "tmux is not installed");
            return None;
        }
        let terminal = Terminal(tempfile::tempdir().expect("a folder"));
        let columns = columns.to_string();
        let size = ["-x", &columns, "-y", "30"];
        terminal.tmux(&[&["new-session", "-d"][..], &size, &[command]].concat());
        Some(terminal)
    }

    /// Runs one of tmux's commands; returns what it prints.
    pub fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.0.path().join("socket"));
        tmux.args(["-f", "/dev/null"]).args(words);
        let output = tmux.env("TERM", "xterm").output().expect("tmux starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Presses keys, by tmux's names, or types texts.
    pub fn types(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"][..], keys].concat());
    }

    /// Gives the terminal another size; its program is told, as by a person who drags its corner.
    pub fn resize(&self, columns: u32, rows: u32) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// What the terminal shows, once that is as it should be.
    pub fn shows(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        self.captured(what, &["capture-pane", "-p"], is_so)
    }

    /// All lines, also those that scrolled away, once they are as they should be.
    pub fn lines(&self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let lines =
            |text: &str| -> Vec<String> { text.trim_end().lines().map(str::to_owned).collect() };
        let capture = ["capture-pane", "-p", "-S", "-"];
        lines(&self.captured(what, &capture, |text| is_so(&lines(text))))
    }

    fn captured(&self, what: &str, capture: &[&str], is_so: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let text = self.tmux(capture);
            if is_so(&text) {
                return text;
            }
            assert!(since.elapsed() < PATIENCE, "not {what}:\n{text}");
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
