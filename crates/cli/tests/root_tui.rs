//! `rtscope watch --tui` in a terminal, which is tmux: it is filled, follows the terminal's size,
//! leaves the shell clean at Ctrl-Z, comes back, and ends at a key.

use std::process::Command;
use std::time::{Duration, Instant};

/// Long enough on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// What only the screen has.
const ON_SCREEN: &str = "who was in the way";

/// A terminal with a shell, on a server of its own, whose socket is in this folder.
struct Terminal(tempfile::TempDir);

impl Terminal {
    fn start() -> Terminal {
        let terminal = Terminal(tempfile::tempdir().expect("a folder"));
        let shell = "env PS1='ready> ' bash --norc --noprofile";
        let size = ["-x", "100", "-y", "30"];
        terminal.tmux(&[&["new-session", "-d"][..], &size, &[shell]].concat());
        terminal
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

    /// What the terminal shows, once that is as it should be.
    fn shows(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let text = self.tmux(&["capture-pane", "-p"]);
            if is_so(&text) {
                return text;
            }
            assert!(since.elapsed() < PATIENCE, "not {what}:\n{text}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn types(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"][..], keys].concat());
    }

    /// Whether the shell's terminal shows what is typed, and waits for whole lines.
    fn is_as_before(&self) {
        self.types(&[
            "stty -a | tr ' ;' '\\n\\n' | grep -cxE 'echo|icanon'",
            "Enter",
        ]);
        self.shows("echo and whole lines", |text| {
            text.lines().any(|line| line.trim() == "2")
        });
        self.types(&["clear", "Enter"]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_screen_follows_its_terminal_and_leaves_the_shell_clean() {
    let name = "a_screen_follows_its_terminal_and_leaves_the_shell_clean";
    let _alone = testkit::privileged();
    if which::which("tmux").is_err() {
        return testkit::skip(name, "tmux is not installed");
    }
    let terminal = Terminal::start();
    let rtscope = env!("CARGO_BIN_EXE_rtscope");
    let watch = format!("{rtscope} watch wakeup irq --tui --over 1us --rate 100/s");
    terminal.types(&[&watch, "Enter"]);
    let is_filled = |text: &str| {
        [ON_SCREEN, "wakeup", "irq", "the worst", "cost", " took "]
            .iter()
            .all(|words| text.contains(words))
    };
    terminal.shows("filled", is_filled);

    terminal.tmux(&["resize-window", "-x", "60", "-y", "20"]);
    let narrow = |text: &str| is_filled(text) && text.lines().all(|line| line.chars().count() < 60);
    terminal.shows("as narrow as the terminal", narrow);
    terminal.types(&["Tab"]);
    terminal.shows("the next histogram", |text| text.contains("irq, from"));

    terminal.types(&["C-z"]);
    let stopped = |text: &str| text.contains("Stopped") && !text.contains(ON_SCREEN);
    terminal.shows("the shell's again", stopped);
    terminal.is_as_before();
    terminal.types(&["fg", "Enter"]);
    terminal.shows("filled again", is_filled);

    terminal.types(&["q"]);
    let ended = |text: &str| text.contains("hits") && text.contains("in this process");
    terminal.shows("what it found in the end", |text| {
        ended(text) && !text.contains(ON_SCREEN)
    });
    terminal.is_as_before();
}
