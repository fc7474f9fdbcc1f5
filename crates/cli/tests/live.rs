//! Check that a recording is printed while it is written: each event once, in the order of time,
//! and nothing missing at its end. Needs no privilege.

mod recorded;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use recorded::{Scene, compile_with_probe};

/// Writes numbers until its input ends.
const PROGRAM: &str = r#"
#include <poll.h>
#include <rtscope/event.h>
int main(void)
{
    struct pollfd input = {0, POLLIN, 0};
    for (int i = 0; poll(&input, 1, 1) == 0; i++)
        RTSCOPE_EVENT(robot, step, i32("i", i));
    return 0;
}
"#;

fn number(line: &str) -> Option<u64> {
    let (_, behind) = line.split_once("{ i = ")?;
    behind.split(' ').next()?.parse().ok()
}

#[test]
fn events_are_printed_while_they_are_recorded_once_and_to_the_last() {
    let program = compile_with_probe("live", PROGRAM, &[]);
    let scene = Scene::new();
    let rtscope = env!("CARGO_BIN_EXE_rtscope");
    let mut recorder = Command::new(rtscope)
        .args(["record", "--user", "robot", "-o"])
        .arg(scene.trace())
        .arg("--")
        .arg(program)
        .env("RTSCOPE_DIR", scene.shared())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("rtscope record");
    // Nobody records there yet, until somebody does.
    let staged = |entry: std::fs::DirEntry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with(".trace.partial-")
    };
    let parent = scene.trace().parent().expect("a folder").to_owned();
    while !std::fs::read_dir(&parent)
        .expect("the folder")
        .flatten()
        .any(staged)
    {
        assert_eq!(recorder.try_wait().expect("its state"), None, "it records");
        std::thread::yield_now();
    }
    let mut live = Command::new(rtscope)
        .args(["cat", "--live"])
        .arg(scene.trace())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rtscope cat --live");
    let mut lines = BufReader::new(live.stdout.take().expect("its lines")).lines();
    let mut numbers = Vec::new();
    while numbers.len() < 10 {
        let line = lines.next().expect("more lines").expect("text");
        numbers.extend(number(&line));
    }
    assert!(!scene.trace().exists(), "the recording goes on");
    drop(recorder.stdin.take());
    assert!(recorder.wait().expect("it ends").success());
    numbers.extend(lines.filter_map(|line| number(&line.expect("text"))));
    assert!(live.wait().expect("it ends").success());
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    let all = scene
        .events()
        .iter()
        .filter_map(|line| number(line))
        .count();
    assert_eq!(numbers.len(), all, "as the complete trace has");
}

/// `cat --live --user robot -- PROGRAM`, with temporary files in a folder of its own.
fn pass(scene: &Scene, temporary: &Path, program: &Path) -> Child {
    std::fs::create_dir(temporary).expect("a folder");
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope.args(["cat", "--live", "--user", "robot"]);
    rtscope.args(["--context", "procname", "--"]);
    rtscope.arg(program).env("RTSCOPE_DIR", scene.shared());
    rtscope.env("TMPDIR", temporary).stdin(Stdio::piped());
    rtscope.stdout(Stdio::piped()).stderr(Stdio::piped());
    rtscope.spawn().expect("rtscope cat --live")
}

fn is_empty(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).expect("a folder");
    entries.next().is_none()
}

#[test]
fn events_of_applications_are_printed_as_they_come_and_kept_nowhere() {
    let program = compile_with_probe("passing", PROGRAM, &[]);
    let scene = Scene::new();
    let temporary = scene.beside("temporary");
    let mut live = pass(&scene, &temporary, &program);
    let mut lines = BufReader::new(live.stdout.take().expect("its lines")).lines();
    let mut numbers = Vec::new();
    while numbers.len() < 10 {
        let line = lines.next().expect("more lines").expect("text");
        assert!(number(&line).is_none() || line.contains("procname = \"passing\""));
        numbers.extend(number(&line));
    }
    assert_eq!(live.try_wait().expect("its state"), None, "it goes on");
    drop(live.stdin.take());
    numbers.extend(lines.filter_map(|line| number(&line.expect("text"))));
    let ended = live.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert!(is_empty(&temporary) && is_empty(scene.shared()));
}

#[test]
fn who_reads_no_further_ends_the_recording() {
    let program = compile_with_probe("unread", PROGRAM, &[]);
    let scene = Scene::new();
    let temporary = scene.beside("temporary");
    let mut live = pass(&scene, &temporary, &program);
    let mut lines = BufReader::new(live.stdout.take().expect("its lines")).lines();
    lines.next().expect("a line").expect("text");
    drop(lines);
    // The program goes on: it is its user's.
    assert!(live.wait().expect("it ends").success());
    assert!(is_empty(&temporary));
}

#[test]
fn where_no_such_event_comes_the_reason_is_said() {
    let scene = Scene::new();
    let temporary = scene.beside("temporary");
    let live = pass(&scene, &temporary, Path::new("true"));
    let output = live.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("nothing was recorded for --user 'robot'"),
        "{said}"
    );
    assert!(is_empty(&temporary) && is_empty(scene.shared()));
}

#[test]
fn where_nobody_records_there_is_nothing_to_wait_for() {
    let scene = Scene::new();
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let output = rtscope.args(["cat", "--live"]).arg(scene.trace()).output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("nobody records such a trace"), "{said}");
}
