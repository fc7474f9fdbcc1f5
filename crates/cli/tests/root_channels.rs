//! Channels: buffers of their own for some events, in one trace. Needs root.

mod recorded;
mod session;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use event::{Cpu, Instant};
use rustix::process::{Pid, Signal, kill_process};
use session::Night;
use trace::{Item, Trace};

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");
const FORK: &str = "sched_process_fork";
/// The same event in two instances has two times.
const APART_NS: i64 = 1_000_000;

/// A thread that was made: when, where, and its number.
type Fork = (Instant, Option<Cpu>, i64);

/// The threads that were made, and what the trace says it lost.
fn read(path: &Path) -> (Vec<Fork>, Vec<trace::Lost>) {
    let trace = Trace::open(path).expect("a trace");
    let classes = trace.classes();
    let (mut forks, mut lost) = (Vec::new(), Vec::new());
    let mut cursor = trace.cursor(event::TimeRange::ALL);
    let read = cursor.each(|item| {
        match item {
            Item::Event(event) => {
                let class = &classes[event.class().0 as usize];
                if class.name == FORK {
                    let child = class.field("child_tid").expect("a field");
                    forks.push((event.time(), event.cpu(), event.i64(child)));
                }
            }
            Item::Lost(one) => lost.push(*one),
            Item::Damage(_) => (),
        }
        Ok(())
    });
    read.expect("counted");
    (forks, lost)
}

/// Makes `count` processes, one after the other: their numbers.
fn make(count: usize) -> Vec<i64> {
    let mut made = Vec::new();
    for _ in 0..count {
        let mut child = Command::new("true").spawn().expect("a child");
        made.push(i64::from(child.id()));
        child.wait().expect("it ends");
    }
    made
}

/// Of these forks those that are ours, in their order.
fn ours(forks: &[Fork], made: &[i64]) -> Vec<i64> {
    let all = forks.iter().map(|(.., child)| *child);
    all.filter(|child| made.contains(child)).collect()
}

#[test]
fn an_event_comes_in_its_channel_alone_in_each_archive_of_one_trace() {
    let _alone = testkit::privileged();
    let night = Night::new();
    let few = "few events=sched_process_fork,syscalls:sys_enter_getppid buffer=64K";
    night.says("start", &["--events", "sched", "--channel", few]);
    let mut made = make(20);
    night.says("rotate", &[]);
    made.extend(make(20));
    let status = night.status();
    let rings = status["cpus"].as_array().expect("rings");
    let of_few = rings.iter().filter(|ring| ring["channel"] == "few");
    let bytes: Vec<_> = of_few.map(|ring| ring["buffer_bytes"].as_u64()).collect();
    assert!(
        !bytes.is_empty() && bytes.iter().all(|bytes| *bytes == Some(64 << 10)),
        "{status}"
    );
    assert!(
        rings.iter().any(|ring| ring["channel"] == "channel0"),
        "{status}"
    );
    night.says("stop", &[]);
    let archives = night.archives();
    assert_eq!(archives.len(), 2);
    let mut seen = Vec::new();
    for archive in &archives {
        seen.extend(ours(&read(archive).0, &made));
        let kernel = archive.join("kernel");
        assert!(kernel.join("few_0").exists() && kernel.join("channel0_0").exists());
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        night.check_babeltrace("an_event_comes_in_its_channel", &name);
    }
    assert_eq!(seen, made, "each once, in order");
}

/// Makes many processes.
fn busy() -> Child {
    let script = "i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).stdout(Stdio::null());
    shell.spawn().expect("sh starts")
}

/// Runs a recorder that stands still for a while as others are busy, so that its buffers fill: what
/// it said, and those others.
fn stopped_meanwhile(record: &mut Command) -> (String, [Child; 2]) {
    let record = record.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = record.spawn().expect("it starts");
    let mut said = BufReader::new(recorder.stderr.take().expect("piped")).lines();
    let begun = said.find(|line| matches!(line, Ok(line) if line.starts_with("recording")));
    assert!(begun.is_some(), "it never began");
    let send = |signal| kill_process(Pid::from_child(&recorder), signal).expect("it is there");
    send(Signal::STOP);
    let others = [busy(), busy()];
    std::thread::sleep(Duration::from_millis(700));
    send(Signal::CONT);
    let output = recorder.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    (String::from_utf8_lossy(&output.stdout).into_owned(), others)
}

#[test]
fn what_a_full_channel_refuses_lies_in_a_hole_that_the_trace_states() {
    let _alone = testkit::privileged();
    let night = Night::new();
    night.says("start", &["--events", FORK, "--buffer", "8M"]);
    let trace = night.scene.beside("trace");
    let small = "small mode=discard buffer=8K \
                 events=sched_process_fork,sched_waking,sched_stat_runtime,sched_process_exec";
    let mut record = Command::new(RTSCOPE);
    record.args(["record", "--channel", small, "--duration", "3s", "-o"]);
    let (said, mut others) = stopped_meanwhile(record.arg(&trace));
    for other in &mut others {
        other.wait().expect("it ends");
    }
    night.says("stop", &[]);
    let (all, _) = read(&night.archives()[0]);
    let (seen, lost) = read(&trace);
    let lost_count: u64 = lost.iter().filter_map(|one| one.count).sum();
    assert!(
        lost_count > 0 && said.contains(&format!(", {lost_count} lost")),
        "{said}"
    );
    let opened = Trace::open(&trace).expect("a trace");
    let window = opened.range().expect("a range");
    let is_missing = |fork: &&Fork| !seen.iter().any(|(.., child)| *child == fork.2);
    // Both begin and end apart from each other.
    let is_inside = |fork: &&Fork| {
        (fork.0 - window.begin).as_ns() > APART_NS && (window.end - fork.0).as_ns() > APART_NS
    };
    let missing: Vec<_> = all.iter().filter(is_missing).filter(is_inside).collect();
    assert!(!missing.is_empty(), "nothing of them was refused: {said}");
    for (time, cpu, child) in missing {
        let holds = |one: &&trace::Lost| {
            one.cpu == *cpu
                && (*time - one.range.begin).as_ns() >= -APART_NS
                && (one.range.end - *time).as_ns() >= -APART_NS
        };
        assert!(
            lost.iter().any(|one| holds(&one)),
            "{child} at {time:?} on {cpu:?}"
        );
    }
}

#[test]
fn a_recording_whose_events_are_all_in_channels_says_of_none_that_it_is_missing() {
    let _alone = testkit::privileged();
    let night = Night::new();
    let trace = night.scene.beside("trace");
    let mut record = Command::new(RTSCOPE);
    record.args(["record", "--buffer", "16M", "-o"]).arg(&trace);
    record.args(["--channel", "all events=sched_switch,sched_process_fork"]);
    record.args(["--channel", "calls events=syscalls:sys_enter_wait4"]);
    record.args(["--", "sh", "-c", "/bin/true; /bin/true"]);
    let output = record.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let (forks, lost) = read(&trace);
    assert!(!forks.is_empty(), "{said}");
    assert_eq!(lost, []);
    assert!(!said.contains("  calls:"), "{said}");
    assert!(said.contains("  system calls: "), "{said}");
}

#[test]
fn what_makes_no_sense_of_channels_is_refused() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &[&str], expect: &str| {
        let mut record = Command::new(RTSCOPE);
        record
            .arg("record")
            .args(words)
            .args(["--duration", "1s", "-o"]);
        let output = record.arg(folder.path().join("trace")).output();
        let output = output.expect("rtscope starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(
            said.contains(expect) && said.contains("fix:"),
            "{words:?}: {said}"
        );
    };
    let (one, two) = ("a events=irq", "b events=irq:irq_handler_entry");
    check(
        &["--channel", one, "--channel", two],
        "irq:irq_handler_entry: a and b",
    );
    check(&["--channel", "a events=nonsense"], "'nonsense'");
    check(
        &["--channel", "a events=irq buffer=99T"],
        "larger than the memory",
    );
    check(
        &["--channel", one, "--raw"],
        "--raw keeps the pages of one channel",
    );
    let filter = "sched_switch: next_prio < 0";
    check(
        &["--channel", one, "--filter", filter],
        "a filter on an event not recorded",
    );
}
