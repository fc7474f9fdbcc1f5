//! A monitor with trackers: every interval that ends is in one of its intervals of time, by scope,
//! and in whatever is told of the store.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration as Time;

use monitor::{Interval, Kind, Range, Scope, Store};
use rustix::process::{Pid, Signal, kill_process};

const CALLER: &str = "tracked-caller";
const PAIR: &str = "pair_syscall_entry_getppid_to_syscall_exit_getppid";
/// In each step; a step is a tenth of the monitor's intervals.
const CALLS: u64 = 40;
const STEPS: u64 = 45;

fn rtscope(words: &[&str], store: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let output = command.args(words).arg(store).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Calls `getppid` so often, over several intervals of the monitor.
fn call() {
    let name = std::thread::Builder::new().name(CALLER.to_owned());
    let caller = name.spawn(|| {
        for _ in 0..STEPS {
            for _ in 0..CALLS {
                let _ = rustix::process::getppid();
            }
            std::thread::sleep(Time::from_millis(100));
        }
    });
    caller.expect("a thread").join().expect("it calls");
}

/// A monitor that counts, until it is dropped.
struct Monitor(Child);

impl Monitor {
    fn start(words: &[&str], store: &Path) -> Monitor {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        let command = command.args(words).arg(store).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let is_armed = |line: String| line.contains("an interval every");
        assert!(said.any(|line| line.is_ok_and(is_armed)));
        std::thread::spawn(move || said.count());
        Monitor(child)
    }

    fn end(&mut self) {
        let pid = Pid::from_raw(self.0.id() as i32).expect("an id");
        kill_process(pid, Signal::INT).expect("sent");
        assert!(self.0.wait().expect("it ends").success());
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn counted(store: &Path) -> Vec<Interval> {
    let mut all = Vec::new();
    let read = Store::open(store)
        .expect("a store")
        .read(Range::ALL, |_, interval| {
            all.push(interval);
            Ok(())
        });
    read.expect("it reads");
    all
}

#[test]
fn every_interval_of_a_pair_is_in_one_interval_of_time_and_a_tracker_counts_by_scope() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("monitor.db");
    let words = [
        "monitor",
        "--every",
        "1s",
        "--task",
        CALLER,
        "--all",
        "--tracker",
        "softirq",
        "--from",
        "syscall_entry_getppid",
        "--to",
        "syscall_exit_getppid",
        "--store",
    ];
    let mut monitor = Monitor::start(&words, &store);
    call();
    monitor.end();
    let all = counted(&store);
    let mut sum = Interval::default();
    let pair = Kind::tracked("pair", "syscall_entry_getppid to syscall_exit_getppid", "");
    assert_eq!(pair.name(), PAIR);
    let with_pair = all
        .iter()
        .filter(|one| one.phase(Scope::Named, pair.clone()).is_some());
    assert!(with_pair.count() >= 4, "over several intervals of time");
    for one in all {
        sum.append(one);
    }
    let samples = |scope, kind: &Kind| {
        let phase = sum.phase(scope, kind.clone());
        phase.map_or(0, |phase| phase.histogram.samples())
    };
    let missed = sum.head.lost_tracked;
    let named = samples(Scope::Named, &pair);
    assert!(
        named <= STEPS * CALLS && named + missed >= STEPS * CALLS,
        "{named}, lost {missed}"
    );
    assert!(samples(Scope::All, &pair) >= named);
    assert_eq!(
        samples(Scope::RealTime, &pair),
        0,
        "it is no real-time task"
    );
    let worst = sum.worst_of(Scope::Named, pair.clone()).expect("a longest");
    let victim = worst.victim.as_ref().map(|task| task.name.as_str());
    assert_eq!(victim, Some(CALLER), "{worst:?}");
    let softirqs = samples(Scope::All, &Kind::tracked("softirq", "run", ""));
    assert!(softirqs > 0, "{softirqs}");
    let told = text(&rtscope(
        &["monitor", "report", "--scope", "named", "--store"],
        &store,
    ));
    assert!(
        told.contains(PAIR) && told.contains("ended by tracked-caller"),
        "{told}"
    );
    let told = text(&rtscope(&["monitor", "export", "--store"], &store));
    assert!(told.contains(&format!(",named,{PAIR},")), "{told:.2000}");
}

#[test]
fn a_monitor_counts_for_as_long_as_it_is_asked_to_however_long_its_programs_take_to_load() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("monitor.db");
    let words = [
        "monitor",
        "--for",
        "1s",
        "--tracker",
        "syscall",
        "--tracker",
        "softirq",
        "--store",
    ];
    rtscope(&words, &store);
    let counted = counted(&store);
    let elapsed: event::Duration = counted.iter().map(|one| one.head.elapsed).sum();
    assert!(elapsed >= event::Duration::from_ms(1000), "{elapsed}");
}

#[test]
fn the_watch_that_a_monitor_starts_is_in_none_of_its_trackers() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("monitor.db");
    let snapshots = folder.path().join("snapshots");
    let words = [
        "monitor",
        "--every",
        "1s",
        "--all",
        "--over",
        "1s",
        "--snapshots",
        snapshots.to_str().expect("a text"),
        "--tracker",
        "offcpu",
        "--store",
    ];
    let mut monitor = Monitor::start(&words, &store);
    std::thread::sleep(Time::from_secs(4));
    monitor.end();
    let all = counted(&store);
    let tracked = all.iter().flat_map(|one| &one.worst);
    let tracked = tracked.filter(|worst| worst.phase.phase().is_none());
    let names = tracked.filter_map(|worst| Some(worst.victim.as_ref()?.name.clone()));
    let names: Vec<_> = names.collect();
    assert!(!names.is_empty());
    // The recorder of the watch is real-time and wakes a few times a second.
    let ours = names.iter().any(|name| name.starts_with("rtscope"));
    assert!(!ours, "{names:?}");
}
