//! `rtscope watch --tui` in a terminal, which is tmux: it is filled, follows the terminal's size,
//! leaves the shell clean at Ctrl-Z, comes back, and ends at a key.

use testkit::Terminal;

/// What only the screen has.
const ON_SCREEN: &str = "who was in the way";

/// Whether the shell's terminal shows what is typed, and waits for whole lines.
fn is_as_before(terminal: &Terminal) {
    terminal.types(&[
        "stty -a | tr ' ;' '\\n\\n' | grep -cxE 'echo|icanon'",
        "Enter",
    ]);
    terminal.shows("echo and whole lines", |text| {
        text.lines().any(|line| line.trim() == "2")
    });
    terminal.types(&["clear", "Enter"]);
}

#[test]
fn a_screen_follows_its_terminal_and_leaves_the_shell_clean() {
    let name = "a_screen_follows_its_terminal_and_leaves_the_shell_clean";
    let _alone = testkit::privileged();
    let shell = "env PS1='ready> ' bash --norc --noprofile";
    let Some(terminal) = Terminal::start(name, 100, shell) else {
        return;
    };
    let rtscope = env!("CARGO_BIN_EXE_rtscope");
    let watch = format!("{rtscope} watch wakeup irq --tui --over 1us --rate 100/s");
    terminal.types(&[&watch, "Enter"]);
    let is_filled = |text: &str| {
        [ON_SCREEN, "wakeup", "irq", "the worst", "cost", " took "]
            .iter()
            .all(|words| text.contains(words))
    };
    terminal.shows("filled", is_filled);

    terminal.resize(60, 20);
    let narrow = |text: &str| is_filled(text) && text.lines().all(|line| line.chars().count() < 60);
    terminal.shows("as narrow as the terminal", narrow);
    terminal.types(&["Tab"]);
    terminal.shows("the next histogram", |text| text.contains("irq, from"));

    terminal.types(&["C-z"]);
    let stopped = |text: &str| text.contains("Stopped") && !text.contains(ON_SCREEN);
    terminal.shows("the shell's again", stopped);
    is_as_before(&terminal);
    terminal.types(&["fg", "Enter"]);
    terminal.shows("filled again", is_filled);

    terminal.types(&["q"]);
    let ended = |text: &str| text.contains("hits") && text.contains("in this process");
    terminal.shows("what it found in the end", |text| {
        ended(text) && !text.contains(ON_SCREEN)
    });
    is_as_before(&terminal);
}
