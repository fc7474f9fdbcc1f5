//! What stands on the terminal for a while fits it, and nothing of it is left when the terminal
//! became narrower meanwhile. The terminal is tmux; needs no privilege.

use std::process::Command;
use std::time::{Duration, Instant};

/// Long enough on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal that runs a command, on a server of its own, whose socket is in this folder.
struct Terminal(tempfile::TempDir);

impl Terminal {
    /// None where there is no tmux.
    fn start(test: &str, columns: u32, command: &str) -> Option<Terminal> {
        if which::which("tmux").is_err() {
            testkit::skip(test, "tmux is not installed");
            return None;
        }
        let terminal = Terminal(tempfile::tempdir().expect("a folder"));
        let columns = columns.to_string();
        let shell = format!("echo before; {command}; echo after; exec cat");
        let size = ["-x", &columns, "-y", "30"];
        terminal.tmux(&[&["new-session", "-d"][..], &size, &[&shell]].concat());
        Some(terminal)
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.0.path().join("socket"));
        tmux.args(["-f", "/dev/null"]).args(words);
        let output = tmux.env("TERM", "xterm").output().expect("tmux starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// All lines, also those that scrolled away, once they are as they should be.
    fn lines(&self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let since = Instant::now();
        loop {
            let text = self.tmux(&["capture-pane", "-p", "-S", "-"]);
            let lines: Vec<String> = text.trim_end().lines().map(str::to_owned).collect();
            if is_so(&lines) {
                return lines;
            }
            assert!(since.elapsed() < PATIENCE, "not {what}:\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn resize(&self, columns: u32) {
        self.tmux(&["resize-window", "-x", &columns.to_string()]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn count(lines: &[String], part: &str) -> usize {
    lines.iter().filter(|line| line.contains(part)).count()
}

#[test]
fn a_live_table_fits_the_terminal_and_leaves_nothing_behind() {
    let rtscope = env!("CARGO_BIN_EXE_rtscope");
    let command = format!("{rtscope} measure cyclic --policy other --cpu 0 --for 1h");
    let Some(terminal) = Terminal::start("a live table", 200, &command) else {
        return;
    };
    // The heading's last word, and another one of it.
    for (columns, there, absent) in [
        (200, " picture", "no such column"),
        (120, " picture", "no such column"),
        (80, "p99.9       max missed", "picture"),
        (60, "avg       max missed", "p50"),
    ] {
        terminal.resize(columns);
        let is_fitted = |lines: &[String]| {
            let heading = lines.iter().find(|line| line.starts_with("CPU"));
            let fits = |line: &String| line.ends_with(there) && !line.contains(absent);
            heading.is_some_and(fits) && count(lines, "Ctrl-C ends it") == 1
        };
        let lines = terminal.lines(&format!("fitted to {columns}"), is_fitted);
        assert_eq!(count(&lines, "CPU  "), 1, "{lines:#?}");
    }
    terminal.tmux(&["send-keys", "C-c"]);
    let lines = terminal.lines("ended", |lines| count(lines, "after") == 1);
    assert_eq!(count(&lines, "before"), 1, "{lines:#?}");
    assert_eq!(count(&lines, "CPU  "), 1, "{lines:#?}");
    assert_eq!(count(&lines, "Ctrl-C ends it"), 0, "{lines:#?}");
}

#[test]
fn a_live_line_is_cut_to_the_terminal_and_leaves_nothing_behind() {
    let rtscope = env!("CARGO_BIN_EXE_rtscope");
    let folder = tempfile::tempdir().expect("a folder");
    let command = format!(
        "RTSCOPE_DIR={0} {rtscope} record --user none --duration 1h -o {0}/trace",
        folder.path().display()
    );
    let Some(terminal) = Terminal::start("a live line", 40, &command) else {
        return;
    };
    // `1.5 s` alone, in five letters or more: narrower than that, it goes on in a second row.
    let is_shown = |lines: &[String]| lines.last().is_some_and(|line| line.ends_with(" s"));
    terminal.lines("shown", is_shown);
    terminal.resize(4);
    let is_cut = |lines: &[String]| lines.last().is_some_and(|line| line.len() <= 3);
    terminal.lines("cut", is_cut);
    terminal.resize(40);
    let lines = terminal.lines("shown again", is_shown);
    let behind = lines
        .iter()
        .skip_while(|line| !line.starts_with("recording"));
    assert_eq!(behind.count(), 2, "{lines:#?}");
}
