//! `record --raw` keeps the kernel's pages, and `convert` makes the trace of them. Needs root.

mod recorded;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use recorded::run;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Sleeps again and again.
const PROGRAM: &str = r#"
#include <time.h>
int main(void)
{
    struct timespec time = {0, 500000};
    for (int i = 0; i < 200; i++)
        nanosleep(&time, 0);
    return 0;
}
"#;

fn rtscope(words: &[&str], path: &Path) -> Command {
    let mut command = Command::new(RTSCOPE);
    command.args(words).arg(path);
    command
}

/// Of each event of the kernel's CPUs its time, its name, its CPU and its fields.
fn events(trace: &Path) -> Vec<String> {
    let printed = rtscope(&["cat", "--clock-trace"], trace).output();
    let printed = printed.expect("it runs");
    // 3: events are missing, as the test means it.
    assert!(matches!(printed.status.code(), Some(0 | 3)), "{printed:?}");
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let event = |line: &str| {
        let (time, rest) = line.split_once("] ")?;
        let (head, body) = rest.split_once(": { cpu_id = ")?;
        let name = head.rsplit(' ').next()?;
        let is_own = name.starts_with("lttng_statedump_") || name.starts_with("rtscope_");
        let cpu = body.split(' ').next()?;
        let fields = body.rsplit_once("}, {")?.1;
        (!is_own).then(|| format!("{time} {name} {cpu} {fields}"))
    };
    let mut events: Vec<String> = text.lines().filter_map(event).collect();
    // What happened in one instant on two CPUs has no order.
    events.sort();
    events
}

/// The number before `word` in a text.
fn before(text: &str, word: &str) -> u64 {
    let found = text.split_once(word);
    let number = found.and_then(|(head, _)| head.split_ascii_whitespace().last());
    let number = number.and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no number before '{word}': {text}"))
}

const EVENTS: &str = "sched_switch,sched_waking,timer,irq";

/// The scheduler's pages, and what BPF reads beside them.
const CALLS_TOO: &str = "sched_switch,syscall_entry_getpgid";

#[test]
fn a_raw_recording_becomes_the_trace_with_the_same_events() {
    let _alone = testkit::privileged();
    let program = recorded::compile("cc", "raw", PROGRAM, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let (raw, trace) = (folder.path().join("raw"), folder.path().join("trace"));
    let mut record = rtscope(
        &[
            "record",
            "--raw",
            "--events",
            EVENTS,
            "--context",
            "tid,irq_context",
            "-o",
        ],
        &raw,
    );
    let said = run(record.arg("--").arg(&program));
    let refused = rtscope(&["info"], &raw).output().expect("it runs");
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("rtscope convert"), "{refused}");

    run(rtscope(&["convert", "--to", "ctf", "-o"], &trace).arg(&raw));
    let (ours, pages) = (events(&trace), events(&raw.join("raw")));
    assert!(ours.len() > 400, "{}", ours.len());
    assert_eq!(ours.len() as u64, before(&said, " events in "), "{said}");
    assert!(
        ours == pages,
        "{:?}",
        ours.iter().zip(&pages).find(|(a, b)| a != b)
    );
    // And what only the recorder knows.
    let text = run(&mut rtscope(&["cat"], &trace));
    for word in [
        "lttng_statedump_process_state",
        "rtscope_current",
        "irq_context = ( \"hardirq\"",
    ] {
        assert!(text.contains(word), "no {word}");
    }
    run(&mut rtscope(&["report", "cputop"], &trace));
    let theirs = run(Command::new("babeltrace2").arg(trace.join("kernel")));
    assert_eq!(theirs.lines().count(), text.lines().count());
}

#[test]
fn what_the_rings_lost_is_in_the_trace() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let (raw, trace) = (folder.path().join("raw"), folder.path().join("trace"));
    let load = "dd if=/dev/zero of=/dev/null bs=1 count=200000 2>&1";
    let events = "syscalls:sys_enter_write,syscalls:sys_exit_write";
    // By ftrace: with a filter BPF leaves them to it.
    let filter = "syscalls:sys_enter_write: count == 1";
    let mut record = rtscope(
        &[
            "record", "--raw", "--events", events, "--filter", filter, "--buffer", "64K", "-o",
        ],
        &raw,
    );
    let said = run(record.args(["--", "sh", "-c", load]));
    let (read, lost) = (before(&said, " events in "), before(&said, " lost, "));
    assert!(lost > 0, "{said}");
    let converted = rtscope(&["convert", "--to", "ctf", "-o"], &trace)
        .arg(&raw)
        .output();
    assert_eq!(converted.expect("it runs").status.code(), Some(3));
    let info = rtscope(&["info", "--json"], &trace)
        .output()
        .expect("it runs");
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!(info["losses"]["discarded"].as_u64(), Some(lost), "{said}");
    let count = self::events(&trace).len() as u64;
    assert!(count > 0 && count <= read, "{count} of {read}");
}

#[test]
fn what_a_killed_recorder_kept_is_converted_and_says_so() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut record = rtscope(
        &["record", "--raw", "--events", CALLS_TOO, "-o"],
        &folder.path().join("raw"),
    );
    let mut recorder = record.spawn().expect("it starts");
    let partial = || {
        let entries = std::fs::read_dir(folder.path()).expect("a folder");
        let mut paths = entries.flatten().map(|entry| entry.path());
        paths.find(|path| path.join("raw/recording.json").is_file())
    };
    let size = |path: &Path, cpu: u32| {
        let file = path.join(format!("raw/per_cpu/cpu{cpu}/trace_pipe_raw"));
        std::fs::metadata(file).map_or(0, |facts| facts.len())
    };
    let begin = Instant::now();
    let path = loop {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "no page was kept"
        );
        match partial() {
            Some(path) if size(&path, 0) > 0 => break path,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    recorder.kill().expect("it is killed");
    recorder.wait().expect("it ended");
    let trace = folder.path().join("trace");
    let converted = rtscope(&["convert", "--to", "ctf", "-o"], &trace)
        .arg(&path)
        .output();
    let converted = converted.expect("it runs");
    let said = String::from_utf8_lossy(&converted.stderr).into_owned();
    assert_eq!(converted.status.code(), Some(3), "{said}");
    assert!(said.contains("was killed"), "{said}");
    assert!(!events(&trace).is_empty());
    // System calls were on their way too: every stream says that its end is missing.
    let info = rtscope(&["info", "--json"], &trace).output();
    let info: serde_json::Value =
        serde_json::from_slice(&info.expect("it runs").stdout).expect("JSON");
    let places = info["losses"]["uncounted_places"].as_u64();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    assert!(places >= Some(2 * cpus), "{info}");
    run(Command::new(RTSCOPE).args(["doctor", "--clean"]));
}

#[test]
fn what_was_damaged_or_cut_is_a_loss() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let raw = folder.path().join("raw");
    let mut record = rtscope(
        &["record", "--raw", "--events", "sched_switch,timer", "-o"],
        &raw,
    );
    run(record.args(["--duration", "500ms"]));
    let pages = raw.join("raw/per_cpu/cpu0/trace_pipe_raw");
    let whole = std::fs::read(&pages).expect("pages");
    assert!(whole.len() >= 3 * 4096, "{} bytes", whole.len());
    let check = |bytes: &[u8], name: &str| {
        std::fs::write(&pages, bytes).expect("written");
        let trace = folder.path().join(name);
        let mut convert = rtscope(&["convert", "--to", "ctf", "-o"], &trace);
        let converted = convert.arg(&raw).output().expect("it runs");
        let said = String::from_utf8_lossy(&converted.stderr).into_owned();
        assert_eq!(converted.status.code(), Some(3), "{name}: {said}");
        assert!(said.contains("could not be read"), "{name}: {said}");
        let info = rtscope(&["info", "--json"], &trace)
            .output()
            .expect("it runs");
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
        assert!(
            info["losses"]["discarded"].as_u64() > Some(0),
            "{name}: {info}"
        );
    };
    check(&whole[..whole.len() - 4096 - 7], "cut");
    let mut damaged = whole;
    // A record whose length, in the word behind its header, leads out of the page.
    damaged[4096 + 16..4096 + 24].copy_from_slice(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f]);
    check(&damaged, "damaged");
}
