//! Golden tests of the two helps of the program and of each verb, which need no privilege.
//! `RTSCOPE_BLESS=1 cargo test -p cli --test help` rewrites the golden files; review the diff.

use std::path::PathBuf;
use std::process::{Command, Output};

fn rtscope(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words).env_clear().env("COLUMNS", "80");
    command.output().expect("rtscope starts")
}

/// Verbs that people type.
const VERBS: &[&str] = &[
    "doctor",
    "demo",
    "watch",
    "measure",
    "measure cyclic",
    "measure hw",
    "measure preempt",
    "measure deadline",
    "measure queuelat",
    "measure ssdd",
    "measure eval",
    "measure loop",
    "monitor",
    "monitor report",
    "monitor export",
    "monitor push",
    "shield",
    "tune",
    "diagnose",
    "receive",
    "record",
    "record start",
    "record stop",
    "record status",
    "record rotate",
    "record snapshot",
    "record clear",
    "record dump",
    "record track",
    "record untrack",
    "record save",
    "record list",
    "cat",
    "convert",
    "info",
    "report",
    "check",
    "diff",
    "view",
    "snapshot",
    "recover",
];

/// Compares the help that `words` print with the golden file `name`.
fn check(words: &[&str], name: &str) {
    let output = rtscope(words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    let help = String::from_utf8(output.stdout).expect("utf-8");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("RTSCOPE_BLESS").is_some() {
        std::fs::write(&path, &help).expect("golden file written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(help, golden, "{words:?} differs from {}", path.display());
}

/// A terminal has 24 lines of 80 columns.
fn check_fits(words: &[&str]) {
    let help = String::from_utf8(rtscope(words).stdout).expect("utf-8");
    assert!(help.lines().count() <= 24, "{words:?}:\n{help}");
}

#[test]
fn the_short_help_fits_a_screen_and_is_as_reviewed() {
    check(&["-h"], "help-short.txt");
    check_fits(&["-h"]);
}

#[test]
fn the_long_help_teaches_exit_codes_and_signals_and_is_as_reviewed() {
    check(&["--help"], "help-long.txt");
}

#[test]
fn each_verb_has_a_short_help_that_fits_a_screen_and_shows_an_example() {
    for verb in VERBS {
        let mut words: Vec<_> = verb.split(' ').collect();
        words.push("-h");
        let name = format!("help-{}.txt", verb.replace(' ', "-"));
        check(&words, &name);
        check_fits(&words);
        let help = String::from_utf8(rtscope(&words).stdout).expect("utf-8");
        assert!(help.contains("Example"), "{help}");
    }
}

#[test]
fn a_mistake_on_the_command_line_is_exit_code_1_on_stderr() {
    for words in [
        &["frobnicate"][..],
        &["doctor", "--frobnicate"],
        &["doctor", "--output", "x"],
    ] {
        let output = rtscope(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{words:?}"
        );
    }
}

#[test]
fn the_time_after_which_a_verb_ends_is_called_for_or_duration() {
    let verbs = [
        "watch",
        "monitor",
        "record",
        "measure cyclic",
        "measure hw",
        "measure eval",
    ];
    for (verb, flag) in verbs
        .iter()
        .flat_map(|verb| [(verb, "--for"), (verb, "--duration")])
    {
        let mut words: Vec<_> = verb.split(' ').collect();
        // Refused before anything begins, but only by its own name.
        words.extend([flag, "never"]);
        let said = String::from_utf8(rtscope(&words).stderr).expect("utf-8");
        assert!(!said.contains("no such flag"), "{words:?}: {said}");
        assert!(said.contains("never"), "{words:?}: {said}");
    }
}

#[test]
fn a_closed_pipe_is_success() {
    let script = format!(
        "{} --generate man | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_rtscope")
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .output()
        .expect("bash starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
}

#[test]
fn an_error_that_cannot_be_told_ends_with_the_code_of_an_error() {
    let check = |stderr: &str| {
        let script = format!(
            "{} diagnose /nowhere {stderr}; echo $?",
            env!("CARGO_BIN_EXE_rtscope")
        );
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", &script]).output().expect("bash starts");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "1",
            "{stderr}"
        );
    };
    check("2>/dev/full");
    // A pipe whose reader has gone, as `2>&1 | head -1` leaves it.
    check("2> >(exec <&-)");
    check("2>&-");
}
