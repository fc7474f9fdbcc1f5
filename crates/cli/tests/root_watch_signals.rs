//! A watch that is asked to end, killed, or not alone: what it says and what it leaves.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use cli::demo::process::{Part, PartSpec};
use cli::flags::PartRole;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::{Leftovers, tracefs_instances};

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Starts a watch that takes a snapshot of nearly every wake-up of a real-time task.
fn start(folder: &Path, words: &[&str]) -> Child {
    let mut watch = Command::new(RTSCOPE);
    watch.args(["watch", "--json"]).args(words);
    watch.stdout(Stdio::piped()).stderr(Stdio::piped());
    watch.current_dir(folder).spawn().expect("rtscope starts")
}

/// Waits until the watch says that it is armed.
fn wait_until_armed(watch: &mut Child) {
    use std::io::{BufRead, BufReader};
    let stderr = watch.stderr.take().expect("stderr");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let armed = lines.find(|line| line.starts_with("watching "));
    assert!(armed.is_some(), "it ended before it was armed");
    // The rest is read, so that the watch never waits for us.
    std::thread::spawn(move || lines.for_each(drop));
}

/// A real-time task that wakes up every 5 ms until it is dropped.
fn victim() -> Part {
    let cpus = capture::capabilities::gather().machine.cpus_allowed;
    Part::start(&PartSpec {
        program: RTSCOPE.into(),
        role: PartRole::Victim,
        name: "signals-victim".into(),
        cpu: *cpus.last().expect("a CPU"),
        prio: 20,
        round_robin: false,
        length_us: 5_000,
    })
    .expect("started")
}

fn send(watch: &Child, signal: Signal) {
    let pid = Pid::from_raw(watch.id() as i32).expect("a process id");
    kill_process(pid, signal).expect("sent");
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let json = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(json).collect()
}

#[test]
fn what_a_killed_watch_leaves_is_removed() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let before = Leftovers::before(Path::new(RTSCOPE));
    let _victim = victim();
    let mut delay_ms = u64::from(std::process::id()) % 53;
    for _ in 0..20 {
        // From before the first instance is made until after the first snapshots.
        delay_ms = (delay_ms + 97) % 600;
        let mut watch = start(folder.path(), &["--over", "1us", "--rate", "100/s"]);
        std::thread::sleep(Duration::from_millis(delay_ms));
        watch.kill().expect("killed");
        watch.wait().expect("reaped");
        before.check_removed(folder.path(), delay_ms);
    }
}

#[test]
fn whose_reader_has_gone_ends_with_the_code_of_what_it_saw() {
    use std::io::{BufRead, BufReader};
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let _victim = victim();
    // Of the first hit, as `| head -1`.
    let check = |words: &[&str], tracker: &[&str]| {
        let mut watch = Command::new(RTSCOPE);
        watch.arg("watch").args(tracker).args(words);
        watch.args(["--task", "signals-victim", "--for", "60s"]);
        watch.stdout(Stdio::piped()).stderr(Stdio::null());
        let started = std::time::Instant::now();
        let mut watch = watch.current_dir(folder.path()).spawn().expect("starts");
        let mut stdout = BufReader::new(watch.stdout.take().expect("a pipe"));
        let read = stdout.read_line(&mut String::new());
        assert!(read.is_ok_and(|length| length > 0), "{tracker:?}");
        drop(stdout);
        let code = watch.wait().expect("reaped").code();
        assert_eq!(code, Some(2), "{tracker:?} {words:?}");
        assert!(started.elapsed() < Duration::from_secs(60), "it went on");
    };
    let over = ["--over", "1ns", "--rate", "100/s", "--no-snapshot"];
    check(&over, &["--json"]);
    check(&over, &[]);
    check(&over[..2], &["wakeup", "--json"]);
}

#[test]
fn two_watches_see_the_same_at_once() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let before = tracefs_instances();
    let _victim = victim();
    let words = ["--for", "3s", "--over", "1us", "--rate", "5/s"];
    let watches = [start(folder.path(), &words), start(folder.path(), &words)];
    // Both have ended before anything is claimed: a failure leaves nobody behind.
    let outputs = watches.map(|watch| watch.wait_with_output().expect("it ends"));
    for output in outputs {
        let lines = lines(&output);
        let end = lines.last().unwrap_or_else(|| panic!("{output:?}"));
        assert_eq!(end["type"], "end", "{output:?}");
        // A wake-up each 5 ms; the machine may have been away for a while.
        assert!(end["samples"].as_u64() >= Some(50), "{end}");
        // Each hit has a snapshot of its own, though both write into one folder.
        let hits: Vec<_> = lines.iter().filter(|line| line["type"] == "hit").collect();
        assert!(!hits.is_empty(), "{end}");
        for hit in hits {
            assert!(
                hit["snapshot"]["path"].is_string(),
                "{}",
                hit["snapshot_error"]
            );
        }
    }
    assert_eq!(tracefs_instances(), before);
}

#[test]
fn the_first_signal_reports_and_another_within_a_second_is_the_same() {
    let _alone = testkit::privileged();
    let before = tracefs_instances();
    for signal in [Signal::INT, Signal::TERM] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut watch = start(folder.path(), &["--over", "10s"]);
        wait_until_armed(&mut watch);
        send(&watch, signal);
        let output = watch.wait_with_output().expect("it ends");
        // It ended as asked, and nobody was there to judge.
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert_eq!(
            lines(&output).last().map(|line| line["type"].clone()),
            Some("end".into())
        );
        // Nothing came into the folder of snapshots: it is gone again.
        assert!(!folder.path().join("rtscope-snapshots").exists());

        let mut watch = start(folder.path(), &["--over", "10s"]);
        wait_until_armed(&mut watch);
        send(&watch, signal);
        // Two at once would be one; the watch looks for its end four times a second.
        std::thread::sleep(Duration::from_millis(5));
        send(&watch, signal);
        let output = watch.wait_with_output().expect("it ends");
        let last = lines(&output).last().map(|line| line["type"].clone());
        assert_eq!(last, Some("end".into()), "{output:?}");
    }
    assert_eq!(tracefs_instances(), before);
}

/// Waits until the armed thread sleeps: a signal wakes only who does.
fn wait_until_it_sleeps(watch: &Child) {
    let name = format!("rtscope/{}", watch.id());
    let tasks = Path::new("/proc").join(watch.id().to_string()).join("task");
    let sleeps = || {
        std::fs::read_dir(&tasks)
            .expect("it lives")
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok())
            .any(|stat| stat.contains(&format!("({name}) S")))
    };
    for _ in 0..500 {
        if sleeps() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the armed thread did not go to sleep");
}

/// Waits until the recorder of the watch is on, or off.
fn wait_for_recorder(watch: &Child, on: &str) {
    let name = format!("rtscope-{}-0", watch.id());
    let switch = Path::new("/sys/kernel/tracing/instances").join(name);
    for _ in 0..500 {
        let text = std::fs::read_to_string(switch.join("tracing_on")).expect("an instance");
        if text.trim() == on {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the recorder did not become {on}");
}

#[test]
fn a_watch_that_was_stopped_for_a_while_records_again() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut watch = start(folder.path(), &["--over", "10s"]);
    wait_until_armed(&mut watch);
    wait_for_recorder(&watch, "1");
    wait_until_it_sleeps(&watch);
    // The signal wakes the armed thread, which the recorder's trigger takes for a hit.
    send(&watch, Signal::STOP);
    wait_for_recorder(&watch, "0");
    send(&watch, Signal::CONT);
    wait_for_recorder(&watch, "1");
    send(&watch, Signal::INT);
    let output = watch.wait_with_output().expect("it ends");
    // Nobody was there to judge.
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
