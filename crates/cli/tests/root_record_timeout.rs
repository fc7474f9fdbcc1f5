//! `timeout 5 rtscope record …`: timeout(1) signals its child and then the group, which has the
//! child in it once more; the recording is kept always. So it is when its terminal is closed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Records, by way of a shell that says `before`, and signals twice that its terminal is closed:
/// what is said of a recording that is kept.
fn hung_up(before: &str, words: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let record = "exec \"$0\" record --events sched_switch -o \"$1\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before} {record} {words} 2>&1")]);
    shell.arg(env!("CARGO_BIN_EXE_rtscope")).arg(&trace);
    let mut child = shell.stdout(Stdio::piped()).spawn().expect("sh starts");
    let mut said = BufReader::new(child.stdout.take().expect("its words"));
    let mut text = String::new();
    while !text.contains("recording ") {
        assert_ne!(said.read_line(&mut text).expect("text"), 0, "{text}");
    }
    // By the shell and by the kernel; it may have ended by the first.
    for _ in 0..2 {
        let mut kill = Command::new("kill");
        kill.arg("-HUP").arg(child.id().to_string());
        let _ = kill.stderr(Stdio::null()).status();
    }
    said.read_to_string(&mut text).expect("text");
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status}: {text}");
    assert!(trace.join("kernel/metadata").exists(), "{text}");
    text
}

#[test]
fn a_recording_whose_terminal_is_closed_is_kept_and_nohup_keeps_it_going() {
    let _alone = testkit::privileged();
    // Who runs the tests may ignore the signal, and then nobody can be asked by it.
    let status = std::fs::read_to_string("/proc/self/status").expect("ours");
    let ignored = status.lines().find(|line| line.starts_with("SigIgn:"));
    if ignored.is_some_and(|line| line.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f'])) {
        return testkit::skip("a terminal that is closed", "SIGHUP is ignored here");
    }
    let text = hung_up("", "");
    assert!(text.contains("recorded "), "{text}");
    let text = hung_up("trap '' HUP;", "--duration 1s");
    let (_, length) = text.split_once(" events in ").expect("a length");
    let seconds = length.split_once(" s on ").map(|(seconds, _)| seconds);
    let seconds = seconds.and_then(|seconds| seconds.parse::<f64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 1.0), "{text}");
}

/// Whether this process has a program or a map of BPF open: it looks what the machine allows.
fn has_bpf(pid: u32) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let mut links = open.into_iter().flatten().flatten();
    links.any(|entry| {
        let link = std::fs::read_link(entry.path()).unwrap_or_default();
        link.to_string_lossy().starts_with("anon_inode:bpf")
    })
}

/// Asks a recording to stop before it has begun: its exit code, and what it said.
fn stopped_at_once(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut record = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    record.args(["record", "--events", "sched_switch", "-o"]);
    record.arg(folder.join("trace")).args(words);
    record.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = record.spawn().expect("rtscope starts");
    while !has_bpf(child.id()) && child.try_wait().expect("ours").is_none() {}
    let mut kill = Command::new("kill");
    kill.arg("-TERM").arg(child.id().to_string());
    // It may have been quicker, and has ended.
    let _ = kill.stderr(Stdio::null()).status();
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn who_is_asked_to_stop_before_it_records_keeps_that_moment_or_says_that_there_is_nothing() {
    let _alone = testkit::privileged();
    for _ in 0..testkit::runs(RUNS) {
        let folder = tempfile::tempdir().expect("a folder");
        let (code, said) = stopped_at_once(folder.path(), &["--duration", "20s"]);
        assert_eq!(code, Some(0), "{said}");
        let metadata = folder.path().join("trace/kernel/metadata");
        assert!(metadata.exists(), "{said}");
        // Whoever asks by a command wants it no more.
        let folder = tempfile::tempdir().expect("a folder");
        let ran = folder.path().join("ran");
        let ran_text = ran.to_string_lossy().into_owned();
        let (code, said) = stopped_at_once(folder.path(), &["--", "touch", &ran_text]);
        let is_there = folder.path().join("trace").exists();
        match code {
            Some(1) => {
                assert!(said.contains("nothing was recorded"), "{said}");
                assert!(
                    said.contains("fix:") && !is_there && !ran.exists(),
                    "{said}"
                );
            }
            // It was quicker than the signal.
            code => assert!(
                code == Some(0) && is_there && ran.exists(),
                "{code:?}: {said}"
            ),
        }
    }
}
