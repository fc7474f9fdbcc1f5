//! What stands on the terminal for a while fits it, and nothing of it is left when the terminal
//! became narrower meanwhile. The terminal is tmux; needs no privilege.

use testkit::Terminal;

/// As many as a terminal has.
const ROWS: u32 = 30;

/// A terminal that runs a command, between two lines of its own.
fn start(test: &str, columns: u32, command: &str) -> Option<Terminal> {
    let shell = format!("echo before; {command}; echo after; exec cat");
    Terminal::start(test, columns, &shell)
}

fn count(lines: &[String], part: &str) -> usize {
    lines.iter().filter(|line| line.contains(part)).count()
}

#[test]
fn a_live_table_fits_the_terminal_and_leaves_nothing_behind() {
    let rtscope = env!("CARGO_BIN_EXE_rtscope");
    let command = format!("{rtscope} measure cyclic --policy other --cpu 0 --for 1h");
    let Some(terminal) = start("a live table", 200, &command) else {
        return;
    };
    // The heading's last word, and another one of it.
    for (columns, there, absent) in [
        (200, " picture", "no such column"),
        (120, " picture", "no such column"),
        (80, "p99.9       max missed", "picture"),
        (60, "avg       max missed", "p50"),
    ] {
        terminal.resize(columns, ROWS);
        let is_fitted = |lines: &[String]| {
            let heading = lines.iter().find(|line| line.starts_with("CPU"));
            let fits = |line: &String| line.ends_with(there) && !line.contains(absent);
            heading.is_some_and(fits) && count(lines, "Ctrl-C ends it") == 1
        };
        let lines = terminal.lines(&format!("fitted to {columns}"), is_fitted);
        assert_eq!(count(&lines, "CPU  "), 1, "{lines:#?}");
    }
    terminal.types(&["C-c"]);
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
    let Some(terminal) = start("a live line", 40, &command) else {
        return;
    };
    // `1.5 s` alone, in five letters or more: narrower than that, it goes on in a second row.
    let is_shown = |lines: &[String]| lines.last().is_some_and(|line| line.ends_with(" s"));
    terminal.lines("shown", is_shown);
    terminal.resize(4, ROWS);
    let is_cut = |lines: &[String]| lines.last().is_some_and(|line| line.len() <= 3);
    terminal.lines("cut", is_cut);
    terminal.resize(40, ROWS);
    let lines = terminal.lines("shown again", is_shown);
    let behind = lines
        .iter()
        .skip_while(|line| !line.starts_with("recording"));
    assert_eq!(behind.count(), 2, "{lines:#?}");
}
