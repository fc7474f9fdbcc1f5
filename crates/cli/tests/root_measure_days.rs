//! An evaluation that is killed leaves what it closed, and another run goes on with it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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

#[test]
fn a_killed_evaluation_goes_on_and_its_certificate_states_the_gap() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let asked = "--for 2s --no-hw --load none --cpu 0 --budget 10s --no-explain -o a";
    let mut child = eval(asked, folder.path());
    let mut child = child.stderr(Stdio::null()).spawn().expect("starts");
    let file = folder.path().join("a/intervals.ndjson");
    for _ in 0..PATIENCE {
        if closed(&file) > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
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
    let object = std::fs::read(folder.path().join("a/eval.json")).expect("an object");
    let object: Value = serde_json::from_slice(&object).expect("JSON");
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
