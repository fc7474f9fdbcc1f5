//! `rtscope watch TRACKER…` from its words to its lines, files and exit code.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use testkit::tracefs_instances;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Starts trackers in `folder`; when it returns, they see everything.
fn start(folder: &Path, words: &[&str]) -> Child {
    let mut watch = Command::new(RTSCOPE);
    watch.arg("watch").args(words).current_dir(folder);
    watch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = watch.spawn().expect("rtscope starts");
    let stderr = watch.stderr.take().expect("stderr");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let armed = lines.find(|line| line.starts_with("watching "));
    assert!(armed.is_some(), "it ended before it was armed");
    // The rest is read, so that it never waits for us.
    std::thread::spawn(move || lines.for_each(drop));
    watch
}

fn json_lines(text: &str) -> Vec<Value> {
    let json = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(json).collect()
}

/// Sleeps under a name of its own.
fn sleep_once(folder: &Path, seconds: &str) {
    let program = folder.join("scene-sleep");
    std::fs::copy("/bin/sleep", &program).expect("copied");
    let status = Command::new(&program).arg(seconds).status();
    assert!(status.expect("sleep starts").success());
}

fn finish(watch: Child) -> (Output, String) {
    let output = watch.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout.clone()).expect("utf-8");
    (output, text)
}

#[test]
fn two_trackers_see_one_sleep_and_all_actions_are_done() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let before = tracefs_instances();
    let words = "syscall offcpu --task scene-sleep --over 90ms --json --stacks --max-hits 2 \
                 --for 20s --rate 1000/s --log log.jsonl -o snapshots --buffer 256K";
    let mut words: Vec<_> = words.split_whitespace().collect();
    words.extend(["--exec", "cat > told-$$"]);
    let watch = start(folder.path(), &words);
    sleep_once(folder.path(), "0.1");
    let (output, text) = finish(watch);

    assert_eq!(output.status.code(), Some(2), "{text}");
    let lines = json_lines(&text);
    let [first, second, end] = &lines[..] else {
        panic!("two hits and an end: {text}");
    };
    for (hit, tracker, series, key) in [
        (first, "offcpu", "blocked", "scene-sleep"),
        (second, "syscall", "system call", "clock_nanosleep"),
    ] {
        assert_eq!(hit["tracker"], tracker, "{hit}");
        assert_eq!(hit["series"], series, "{hit}");
        assert!(
            hit["key"].as_str().expect("a key").starts_with(key),
            "{hit}"
        );
        assert_eq!(hit["task"]["comm"], "scene-sleep", "{hit}");
        assert!(hit["duration_ns"].as_i64() >= Some(100_000_000), "{hit}");
        let stack = hit["stack"].to_string();
        assert!(stack.contains("nanosleep"), "where it waited: {hit}");
        let snapshot = hit["snapshot"].as_str().expect("a snapshot");
        assert!(
            folder
                .path()
                .join(snapshot)
                .join("kernel/metadata")
                .exists(),
            "{hit}"
        );
    }
    // The call contains the time off the CPU.
    assert!(first["begin_ns"].as_i64() >= second["begin_ns"].as_i64());
    assert!(first["end_ns"].as_i64() <= second["end_ns"].as_i64());
    assert_eq!(end["type"], "end");
    let trackers = end["trackers"].as_array().expect("trackers");
    assert_eq!(trackers[0]["series"][0]["worst"]["key"], "clock_nanosleep");
    let kept = std::fs::read_to_string(folder.path().join("log.jsonl")).expect("a log");
    assert_eq!(json_lines(&kept), lines);
    let entries = std::fs::read_dir(folder.path()).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let told = names.filter(|name| name.to_string_lossy().starts_with("told-"));
    assert_eq!(told.count(), 2, "a command for each");
    assert_eq!(tracefs_instances(), before);
}

#[test]
fn a_snapshot_reaches_back_to_where_its_interval_began_whatever_was_told_meanwhile() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = "offcpu --task scene-sleep --over 200ms --json --max-hits 2 --for 20s \
                 --rate 1000/s -o snapshots --buffer 1M";
    let words: Vec<_> = words.split_whitespace().collect();
    let watch = start(folder.path(), &words);
    std::thread::scope(|scope| {
        for seconds in ["0.25", "0.4"] {
            let folder = folder.path().join(seconds);
            std::fs::create_dir(&folder).expect("a folder");
            scope.spawn(move || sleep_once(&folder, seconds));
        }
    });
    let (output, text) = finish(watch);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let lines = json_lines(&text);
    let [first, second, _] = &lines[..] else {
        panic!("two hits and an end: {text}");
    };
    assert!(second["begin_ns"].as_i64() < first["end_ns"].as_i64());
    let snapshot = second["snapshot"].as_str().expect("a snapshot");
    let info = Command::new(RTSCOPE)
        .args(["info", snapshot, "--json"])
        .current_dir(folder.path())
        .output()
        .expect("rtscope starts");
    let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    let first_ns = &info["events_range"]["first_ns"];
    let reaches_back = first_ns.is_i64() && first_ns.as_i64() <= second["begin_ns"].as_i64();
    assert!(reaches_back, "{first_ns} {second}");
}

#[test]
fn what_lasts_too_long_is_reported_while_it_lasts() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = "syscall --task scene-sleep --only clock_nanosleep --timeout 30ms --json \
                 --max-hits 1 --for 20s";
    let words: Vec<_> = words.split_whitespace().collect();
    let watch = start(folder.path(), &words);
    sleep_once(folder.path(), "1");
    let (output, text) = finish(watch);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let hit = &json_lines(&text)[0];
    assert_eq!(
        (&hit["open"], &hit["key"]),
        (&true.into(), &"clock_nanosleep".into())
    );
    let duration_ns = hit["duration_ns"].as_i64().expect("a duration");
    assert!((30_000_000..1_000_000_000).contains(&duration_ns), "{hit}");
}

#[test]
fn a_pair_of_events_is_measured_with_all_that_trackers_have() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = "--from syscall_entry_clock_nanosleep --to syscall_exit_clock_nanosleep/ret==0 \
                 --task scene-sleep --over 90ms --json --max-hits 1 --for 20s --hdr hdr.log \
                 -o snapshots --buffer 1M";
    let words: Vec<_> = words.split_whitespace().collect();
    let watch = start(folder.path(), &words);
    sleep_once(folder.path(), "0.1");
    let (output, text) = finish(watch);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let lines = json_lines(&text);
    let [hit, end] = &lines[..] else {
        panic!("a hit and an end: {text}");
    };
    assert_eq!(hit["tracker"], "pair", "{hit}");
    let series = "syscall_entry_clock_nanosleep to syscall_exit_clock_nanosleep";
    assert_eq!(hit["series"], series, "{hit}");
    let tid = hit["task"]["tid"].as_i64().expect("a tid");
    assert_eq!(hit["key"], tid.to_string(), "the same thread: {hit}");
    assert!(hit["duration_ns"].as_i64() >= Some(100_000_000), "{hit}");
    // Where its time went: nearly all of it is the sleep.
    let parts = hit["request"]["parts"].as_array().expect("parts");
    let total = |part: &Value| part["total_ns"].as_i64().expect("nanoseconds");
    let sum: i64 = parts.iter().map(total).sum();
    assert_eq!(Some(sum), hit["duration_ns"].as_i64(), "{hit}");
    let lossy = hit["request"]["lossy"] == true;
    assert!(lossy || parts[0]["did"] == "blocked", "{hit}");
    assert!(lossy || parts[0]["by"] == "a timer", "{hit}");
    let pair = &end["trackers"][0]["pair"];
    assert!(pair["from"]["matched"].as_u64() >= Some(1), "{end}");
    assert!(pair["to"]["seen"].as_u64() >= pair["to"]["matched"].as_u64());
    let log = std::fs::read_to_string(folder.path().join("hdr.log")).expect("a log");
    assert!(
        log.starts_with("#[Histogram log format version 1.3]"),
        "{log}"
    );
    assert!(
        log.contains("Tag=pair.syscall_entry_clock_nanosleep_to_"),
        "{log}"
    );
}
