//! An evaluation that is killed leaves what it closed, and another run goes on with it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Looks for something that must come, ten milliseconds apart.
const PATIENCE: usize = 3_000;

fn eval(words: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(["measure", "eval"]);
    command.args(words.split_whitespace()).current_dir(folder);
    command
}

fn ran(words: &str, folder: &Path) -> (Option<i32>, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = eval(words, folder).output().expect("rtscope starts");
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// How many intervals were closed.
fn closed(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.matches("\"line\":\"interval\"").count()
}

/// Waits until the evaluation in `folder` has closed an interval.
fn until_closed(folder: &Path) {
    let file = folder.join("a/intervals.ndjson");
    for _ in 0..PATIENCE {
        if closed(&file) > 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no interval was closed");
}

fn object(folder: &Path) -> Value {
    let object = std::fs::read(folder.join("a/eval.json")).expect("an object");
    serde_json::from_slice(&object).expect("JSON")
}

/// Processes whose command line holds `part`.
fn processes(part: &str) -> usize {
    let folders = std::fs::read_dir("/proc").expect("proc").flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    let has = |line: &Vec<u8>| {
        String::from_utf8_lossy(line)
            .replace('\0', " ")
            .contains(part)
    };
    lines.filter(has).count()
}

#[test]
fn a_killed_evaluation_goes_on_and_its_certificate_states_the_gap() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let asked = "--for 2s --no-hw --load none --cpu 0 --budget 10s --no-explain -o a";
    let mut child = eval(asked, folder.path());
    let mut child = child.stderr(Stdio::null()).spawn().expect("starts");
    until_closed(folder.path());
    // On a busy machine, it may be complete before the other one has looked.
    kill_process(Pid::from_child(&child), Signal::STOP).expect("stopped");
    let (code, text) = ran("--resume a", folder.path());
    assert!(code == Some(1) && text.contains("goes on"), "{text}");
    child.kill().expect("killed");
    child.wait().expect("reaped");

    let (code, text) = ran(
        &asked.replace("10s", "9s").replace("-o a", "--resume a"),
        folder.path(),
    );
    assert!(code == Some(1) && text.contains("--budget 9s"), "{text}");
    let (code, text) = ran(asked, folder.path());
    assert!(code == Some(1) && text.contains("--resume a"), "{text}");

    // Nobody allowed the gap.
    let (code, text) = ran("--resume a", folder.path());
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.contains("it was killed") && text.contains("--allow-gap"),
        "{text}"
    );
    let object = object(folder.path());
    assert_eq!(
        object["parts"].as_array().map(Vec::len),
        Some(2),
        "{object}"
    );
    let gap = &object["gaps"][0];
    assert_eq!(gap["why"], "killed", "{gap}");
    assert!(gap["duration_ns"].as_i64() > Some(0), "{gap}");
    let samples = |one: &Value| one["samples"].as_u64().expect("a number");
    let parts: u64 = object["parts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(samples)
        .sum();
    // Both are in one distribution: two seconds of a thousand samples, all but what was not closed.
    assert_eq!(samples(&object["threads"][0]), parts);
    assert!(parts >= 1_500, "{parts}");
}

/// Answers a program's questions for the time of day as if the clock had been set by the seconds
/// in a file: nobody sets the clock of the machine that runs the tests.
const SET_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("SET_BY"), "r") : NULL;
    long by = 0;
    if (file) {
        if (fscanf(file, "%ld", &by) != 1) by = 0;
        fclose(file);
    }
    now->tv_sec += by;
    return status;
}
"#;

/// The library of [`SET_CLOCK`].
fn set_clock(folder: &Path) -> PathBuf {
    let library = folder.join("clock.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-xc", "-", "-ldl", "-o"]);
    let mut cc = cc
        .arg(&library)
        .stdin(Stdio::piped())
        .spawn()
        .expect("cc starts");
    let mut source = cc.stdin.take().expect("a pipe");
    source.write_all(SET_CLOCK.as_bytes()).expect("cc reads");
    drop(source);
    assert!(cc.wait().expect("cc ends").success());
    library
}

#[test]
fn a_wall_clock_that_is_set_is_said_and_makes_no_gap_shorter() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let (set_by, library) = (folder.path().join("by"), set_clock(folder.path()));
    let set = |seconds: &str| {
        let new = folder.path().join("new");
        std::fs::write(&new, seconds).expect("written");
        std::fs::rename(&new, &set_by).expect("in one step");
    };
    let beside = |words: &str| {
        let mut command = eval(words, folder.path());
        command.env("LD_PRELOAD", &library).env("SET_BY", &set_by);
        command
    };
    let asked =
        "--for 8s --no-hw --load none --cpu 0 --interval 20ms --budget 1ns --no-explain -o a";
    let mut child = beside(asked).stderr(Stdio::null()).spawn().expect("starts");
    until_closed(folder.path());
    set("1000");
    let file = folder.path().join("a/intervals.ndjson");
    let before = closed(&file);
    // One that was begun before may close without a look at the clock; the next has looked.
    for _ in 0..PATIENCE {
        if closed(&file) >= before + 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
    let killed = Instant::now();
    // Back again, by most of the time for which nobody measures.
    std::thread::sleep(Duration::from_secs(2));
    set("998");
    let output = beside("--resume a").output().expect("rtscope starts");
    let waited_ns = killed.elapsed().as_nanos();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text.contains("the wall clock was set by 1000.0"), "{text}");

    let object = object(folder.path());
    let gap_ns = object["gaps"][0]["duration_ns"].as_i64().expect("known");
    assert!(gap_ns >= 2_000_000_000, "{gap_ns}");
    assert!(
        i128::from(gap_ns) <= waited_ns.cast_signed() + 2_000_000_000,
        "{gap_ns}"
    );
    let step = &object["parts"][0]["clock_set"][0];
    let (at_ns, by_ns) = (step["at_wall_ns"].as_i64(), step["by_ns"].as_i64());
    let by_ns = by_ns.expect("by how much");
    assert!((by_ns - 1_000_000_000_000).abs() < 1_000_000, "{step}");
    // Each sample was over the limit, and has the time that was shown then: 20 ms apart, but for
    // the one step.
    let listed = object["excursions"]["listed"].as_array().expect("listed");
    let first = listed.iter().filter(|one| one["part"] == 0);
    let mut times: Vec<i64> = first.filter_map(|one| one["at_wall_ns"].as_i64()).collect();
    times.sort_unstable();
    let jumps = times
        .windows(2)
        .filter(|pair| pair[1] - pair[0] > 500_000_000_000);
    assert_eq!(jumps.count(), 1, "{times:?}");
    let later = times
        .iter()
        .filter(|at| Some(**at) >= at_ns.map(|at| at - 100_000_000));
    assert!(later.count() > 10, "{times:?}");
}

#[test]
fn an_application_whose_evaluation_was_killed_dies_with_it_and_is_started_anew() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // It has a real-time thread; its number tells it from others.
    let interval = format!("1{:06}ns", std::process::id() % 1_000_000);
    let application = format!("measure cyclic --for 1m --cpu 0 --interval {interval}");
    let program = env!("CARGO_BIN_EXE_rtscope");
    let asked = format!("--for 4s --load none --budget 10s -o a -- {program} {application}");
    let mut child = eval(&asked, folder.path());
    child.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().expect("starts");
    until_closed(folder.path());
    let of_application = format!("rtscope {application}");
    assert_eq!(
        processes(&of_application),
        2,
        "the evaluation's line holds it too"
    );
    child.kill().expect("killed");
    child.wait().expect("reaped");
    for _ in 0..PATIENCE {
        if processes(&of_application) == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(processes(&of_application), 0, "it outlived us");

    let elsewhere = tempfile::tempdir().expect("a folder");
    let resume = format!("--resume {}/a --allow-gap 1h", folder.path().display());
    let (code, text) = ran(&resume, elsewhere.path());
    assert!(code == Some(1) && text.contains("folder was"), "{text}");
    let (code, text) = ran(&resume, folder.path());
    // Where the kernel hides wake-ups, somewhat is left unjudged.
    let proves = code == Some(0) || code == Some(3) && text.contains("could not be judged");
    assert!(proves && !text.contains("--allow-gap"), "{code:?} {text}");
    let object = object(folder.path());
    let parts = object["parts"].as_array().expect("parts");
    let number = |one: &Value, key: &str| one[key].as_u64().expect("a number");
    let judged: Vec<u64> = parts.iter().map(|part| number(part, "samples")).collect();
    assert!(
        judged.len() == 2 && judged.iter().all(|count| *count > 100),
        "{judged:?}"
    );
    let workload = &object["workload"];
    assert_eq!(number(workload, "activations"), judged.iter().sum::<u64>());
    let longest = parts.iter().map(|part| number(part, "max_ns")).max();
    assert_eq!(Some(number(workload, "max_ns")), longest);
    assert_eq!(object["gaps"][0]["why"], "killed");
    let seconds = number(&object, "elapsed_ns") / 1_000_000_000;
    assert!((3..=5).contains(&seconds), "{seconds} s");
}
