//! `rtscope info --strict`: what a format's standard forbids is an error, and a warning without it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn rtscope(words: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words).arg(dir);
    command.output().expect("rtscope starts")
}

/// A trace without events, and with this metadata behind its first line.
fn trace(rest: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = "trace { major = 1; minor = 8; byte_order = le; };";
    let text = format!("/* CTF 1.8 */\n{trace}\n{rest}");
    fs::write(dir.path().join("metadata"), text).expect("written");
    dir
}

const TWICE: &str = "struct s { string a; string a; };\nenv { a = \"b\" \"c\"; };";

#[test]
fn metadata_that_breaks_the_standard_is_a_warning_and_with_strict_an_error() {
    let dir = trace(TWICE);
    let plain = rtscope(&["info"], dir.path());
    let said = String::from_utf8_lossy(&plain.stderr);
    assert_eq!(plain.status.code(), Some(0), "{said}");
    for what in [
        "warning: ",
        "line 3: the field 'a' twice",
        "line 4: two texts",
        "--strict",
    ] {
        assert!(said.contains(what), "'{what}' in: {said}");
    }
    let strict = rtscope(&["info", "--strict"], dir.path());
    let (out, said) = (
        String::from_utf8_lossy(&strict.stdout),
        String::from_utf8_lossy(&strict.stderr),
    );
    assert_eq!(strict.status.code(), Some(1), "{said}");
    assert!(said.contains("2 of the metadata"), "{said}");
    assert!(
        out.contains("metadata line 3: the field 'a' twice"),
        "{out}"
    );
}

#[test]
fn json_has_the_places() {
    let dir = trace(TWICE);
    let output = rtscope(&["info", "--json"], dir.path());
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let part = &found["parts"][0];
    assert_eq!(part["violation_count"], 2);
    assert_eq!(part["violations"][0]["line"], 3);
}

#[test]
fn other_verbs_that_read_it_warn_too() {
    let dir = trace(TWICE);
    let out = tempfile::tempdir().expect("a folder");
    let path = out.path().join("out").to_string_lossy().into_owned();
    for words in [
        &["cat"][..],
        &["convert", "--to", "json", "-o", &path],
        &["report", "cputop"],
    ] {
        let said = rtscope(words, dir.path());
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains("breaks CTF 1.8"), "{words:?}: {said}");
    }
}

#[test]
fn a_trace_that_keeps_to_the_standard_is_fine() {
    let dir = trace("");
    let output = rtscope(&["info", "--strict"], dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said, "");
}

#[test]
fn bytes_that_make_no_sense_are_refused_too() {
    let dir = trace(
        "stream { event.header := struct { integer { size = 8; } id; }; };\nevent { id = 1; };",
    );
    fs::write(dir.path().join("stream"), [1, 9]).expect("written");
    let plain = rtscope(&["info"], dir.path());
    assert_eq!(plain.status.code(), Some(3), "read as far as it can be");
    let strict = rtscope(&["info", "--strict"], dir.path());
    let said = String::from_utf8_lossy(&strict.stderr);
    assert_eq!(strict.status.code(), Some(1), "{said}");
    assert!(said.contains("of bytes that make no sense"), "{said}");
}
