//! An evaluation that is killed leaves what it closed, and another run goes on with it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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
