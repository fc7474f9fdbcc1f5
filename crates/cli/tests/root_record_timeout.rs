//! `timeout 5 rtscope record …`: timeout(1) signals its child and then the group, which has the
//! child in it once more; the recording is kept always.

use std::process::Command;

/// With 100 it takes a minute.
const RUNS: u32 = 6;

#[test]
fn a_recording_that_a_timeout_ends_is_kept() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // A child of one that has the same limit: up to four signals come.
    let nested = ["timeout", "0.2", "timeout", "0.2"];
    for run in 0..testkit::runs(RUNS) {
        let words = &nested[..if run % 2 == 0 { 2 } else { 4 }];
        let trace = folder.path().join(run.to_string());
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(env!("CARGO_BIN_EXE_rtscope"));
        command.args(["record", "--events", "sched_switch", "-o"]);
        let output = command.arg(&trace).output().expect("timeout starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("discard"), "run {run}: {said}");
        // A machine that is slow to start it may be stopped before there is anything to keep.
        if said.contains("recording until") {
            assert!(trace.join("kernel/metadata").exists(), "run {run}: {said}");
        }
    }
}
