//! Recordings of one kernel, opened together. No verb knows what happened between those that do not
//! overlap; no verb counts twice what two of them tell. Needs no privilege.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Text of ftrace, 40 ms on a CPU from `begin_ms` on: a thread is woken every 10 ms, runs after 0.1
/// and sleeps after 4 ms.
fn write(path: &Path, begin_ms: u64, cpu: u32) {
    let mut text = String::from("# tracer: nop\n#\n");
    let mut line = |at_us: u64, task: &str, what: &str| {
        let (s, us) = (at_us / 1_000_000, at_us % 1_000_000);
        let _ = writeln!(text, "  {task} [{cpu:03}] d..2. {s}.{us:06}: {what}");
    };
    for turn in 0..4 {
        let at_us = begin_ms * 1_000 + turn * 10_000;
        let waking = "sched_waking: comm=app pid=100 prio=120 target_cpu=000";
        line(at_us, "<idle>-0", waking);
        let begins = "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                      next_comm=app next_pid=100 next_prio=120";
        line(at_us + 100, "<idle>-0", begins);
        let ends = "sched_switch: prev_comm=app prev_pid=100 prev_prio=120 prev_state=S ==> \
                    next_comm=swapper/0 next_pid=0 next_prio=120";
        line(at_us + 4_000, "app-100", ends);
    }
    std::fs::write(path, text).expect("room");
}

fn rtscope(words: &[&str], traces: &[PathBuf]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let output = command.args(words).args(traces).output();
    output.expect("rtscope starts")
}

/// Asks a verb of one recording, and of two with 1.9 s between them: exit codes, and what is said
/// of two alone.
#[track_caller]
fn check(words: &[&str], codes: [i32; 2], says: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    let traces = ["a", "b"].map(|name| dir.path().join(name));
    write(&traces[0], 100_000, 0);
    write(&traces[1], 102_000, 0);
    for (traces, code) in [&traces[..1], &traces].into_iter().zip(codes) {
        let output = rtscope(words, traces);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert_eq!(said.contains(says), traces.len() > 1, "{words:?}: {said}");
    }
}

#[test]
fn between_two_recordings_a_cpu_is_unknown_and_not_idle() {
    check(&["report", "states"], [0, 3], "CPU 0: 1966.000 ms");
    check(&["report", "cputop"], [0, 3], "CPU 0: 1966.000 ms");
    let losses = "none of the traces was recorded then";
    check(&["cat"], [0, 3], losses);
}

#[test]
fn a_budget_is_not_held_between_two_recordings() {
    let rule = ["check", "--rule", "wake-up of app within 1ms"];
    check(&rule, [0, 3], "inconclusive");
}

/// Asks every verb that follows the kernel of two recordings, the second one of `cpu` from
/// `begin_ms` on; the first one is of CPU 0, from 100 s on for 40 ms.
#[track_caller]
fn check_overlap((begin_ms, cpu): (u64, u32), refused: bool) {
    let dir = tempfile::tempdir().expect("a folder");
    let traces = ["a", "b"].map(|name| dir.path().join(name));
    write(&traces[0], 100_000, 0);
    write(&traces[1], begin_ms, cpu);
    let copy = dir.path().join("copy").display().to_string();
    let verbs: [&[&str]; 6] = [
        &["report", "states"],
        &["report", "cputop"],
        &["check", "--rule", "wake-up of app within 1ms"],
        &["diagnose"],
        &["convert", "--to", "ctf1", "--output", &copy],
        &["cat"],
    ];
    for words in verbs {
        let output = rtscope(words, &traces);
        let said = String::from_utf8_lossy(&output.stderr);
        let refused = refused && words[0] != "cat";
        let says = said.contains("both have switches of CPU 0 at 100.0");
        assert_eq!(says, refused, "{words:?}: {said}");
        assert_eq!(
            output.status.code() == Some(1),
            refused,
            "{words:?}: {said}"
        );
    }
}

#[test]
fn what_two_recordings_tell_of_one_cpu_is_never_counted_twice() {
    // Begun meanwhile, or a copy.
    check_overlap((100_015, 0), true);
    check_overlap((100_000, 0), true);
}

#[test]
fn recordings_that_follow_each_other_or_are_of_different_cpus_are_one() {
    // The first one's last event is 34 ms behind its begin.
    check_overlap((100_034, 0), false);
    check_overlap((100_040, 0), false);
    check_overlap((100_015, 1), false);
}
