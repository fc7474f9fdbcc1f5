//! Bad input and missing privileges: each a three-part message on stderr and exit code 1, and
//! nothing left behind. Needs root to give privileges away.

use std::path::Path;
use std::process::{Command, Output};

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

fn run(words: &[&str], folder: &Path) -> Output {
    Command::new(RTSCOPE)
        .args(words)
        .current_dir(folder)
        .output()
        .expect("rtscope starts")
}

/// Runs as a user without any privilege.
fn run_as_nobody(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            "65534",
            "--clear-groups",
            "--inh-caps=-all",
            RTSCOPE,
        ])
        .args(words);
    command
        .current_dir(folder)
        .output()
        .expect("setpriv starts")
}

/// Checks that `output` is a refusal in three parts that says `what`.
fn check_refused(output: &Output, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(stderr.contains(what), "no '{what}' in: {stderr}");
    assert!(
        stderr.contains("found:") && stderr.contains("mend:"),
        "{stderr}"
    );
}

fn instances() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/kernel/tracing/instances").expect("tracefs is mounted");
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("rtscope-")).collect()
}

#[test]
fn words_without_a_meaning_are_refused_with_a_remedy() {
    let _alone = testkit::privileged();
    let before = instances();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &[&str], what: &str| check_refused(&run(words, folder.path()), what);
    check(&["watch", "--over", "0ms"], "--over of zero");
    check(&["watch", "--over", "25"], "no unit");
    check(&["watch", "--over", "25parsec"], "unknown unit");
    check(&["watch", "--cpu", "8000"], "there is no CPU 8000");
    check(&["watch", "--tid", "4194304"], "there is no such task");
    check(
        &["watch", "--irq", "no such interrupt"],
        "no interrupt has such a name",
    );
    check(&["watch", "--softirq", "disk"], "no such softirq");
    check(
        &["record", "--events", "nonsuch", "--duration", "1s"],
        "no such event",
    );
    check(&["record", "--duration", "0s"], "--duration of zero");
    check(&["record", "--filter", "sched_switch"], "--filter is not");
    check(
        &["cat", ".", "--filter", "prio =="],
        "the filter cannot be read",
    );
    check(&["demo", "hog", "--cpu", "8000"], "there is no CPU 8000");
    assert_eq!(instances(), before, "something is left in tracefs");
}

#[test]
fn a_trace_that_is_none_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    for verb in ["diagnose", "cat"] {
        for trace in ["absent", "empty"] {
            check_refused(&run(&[verb, trace], folder.path()), trace);
        }
    }
}

#[test]
fn an_output_that_is_there_or_read_only_is_refused_and_left_alone() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("taken")).expect("a folder");
    let words = ["record", "-o", "taken", "--duration", "100ms"];
    check_refused(&run(&words, folder.path()), "there already");
    let words = ["record", "-o", "/proc/nowhere/t", "--duration", "100ms"];
    assert_eq!(run(&words, folder.path()).status.code(), Some(1));
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("listed")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn without_privileges_each_verb_says_what_to_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &[&str]| {
        let output = run_as_nobody(words, Path::new("/"));
        check_refused(&output, "cannot run here");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("sudo"),
            "{output:?}"
        );
    };
    if !run_as_nobody(&["--version"], folder.path())
        .status
        .success()
        && !run_as_nobody(&["--version"], Path::new("/"))
            .status
            .success()
    {
        let why = "the build folder is closed to other users";
        return testkit::skip("without_privileges_each_verb_says_what_to_type", why);
    }
    check(&["watch", "--over", "25ms"]);
    check(&["record", "--duration", "1s"]);
    check(&["demo", "hog"]);
    let doctor = run_as_nobody(&["doctor"], Path::new("/"));
    assert!(doctor.status.success(), "{doctor:?}");
}
