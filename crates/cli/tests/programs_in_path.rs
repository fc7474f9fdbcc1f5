//! Programs are found in PATH as a shell finds them: what cannot be run is none.
//! Needs no privilege.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs rtscope with `words` where PATH is `folder` alone.
fn rtscope(folder: &Path, words: &[&str]) -> Output {
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope.env("PATH", folder).args(words);
    rtscope.output().expect("rtscope starts")
}

#[test]
fn a_report_that_may_not_be_run_is_no_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("rtscope-report-mine");
    std::fs::write(&program, "#!/bin/sh\n").expect("a program");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o644)).expect("its mode");
    let output = rtscope(folder.path(), &["report", "mine", "trace"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("\n  found: 'mine'\n"), "{said}");
    assert!(said.contains("\n  fix:  "), "{said}");
}

#[test]
fn a_folder_of_the_name_of_a_program_is_no_program() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("jackd")).expect("a folder");
    let output = rtscope(folder.path(), &["doctor", "--json"]);
    let doctor: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(doctor["facts"]["jackd_path"], serde_json::Value::Null);
}

#[test]
fn how_the_kernel_preempts_itself_does_not_depend_on_path() {
    let preemption = |folder: &Path| {
        let output = rtscope(folder, &["doctor", "--json"]);
        let doctor: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        doctor["facts"]["scheduler"]["preemption"].clone()
    };
    let empty = tempfile::tempdir().expect("a folder");
    assert_eq!(preemption(empty.path()), preemption(Path::new("/usr/bin")));
}
