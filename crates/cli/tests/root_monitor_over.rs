//! A monitor with a limit: what is later has its ledger in the store and its snapshot on disk, and
//! the watch that found it never outlives the monitor.

mod scene;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration as Time, Instant};

use abi::monitor::Phase;
use event::{Duration, Prio};
use host::task::Policy;
use monitor::{Interval, Range, Scope, Store};
use rustix::process::{Pid, Signal, kill_process};
use scene::{Victim, burn, cpus, pause, thread};

const OVER: Duration = Duration::from_ms(5);
const HOG: &str = "over-hog";
const END_MAX: Time = Time::from_secs(30);

/// A monitor with a watch beside it, until it is dropped.
struct Running {
    child: Child,
    /// Where it serves its page.
    url: String,
}

impl Running {
    /// One that is armed.
    fn start(store: &Path) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rtscope"))
            .args(["monitor", "--every", "1h", "--over", "5ms"])
            .args(["--port", "0", "--store"])
            .arg(store)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = child.stdout.take().expect("a pipe");
        let url = BufReader::new(stdout).lines().next();
        let url = url.expect("a line").expect("text");
        let url = url.strip_suffix("metrics").expect("its address").to_owned();
        let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut is_said =
            |words: &str| said.any(|line| line.is_ok_and(|line| line.contains(words)));
        assert!(is_said("watching every real-time task for more than 5ms"));
        std::thread::spawn(move || said.count());
        Running { child, url }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32).expect("an id")
    }

    /// The process of the watch.
    fn watch(&self) -> i32 {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.expect("the kernel tells children");
        let first = children.split_whitespace().next().expect("a watch");
        first.parse().expect("an id")
    }
}

/// The head and the body of an answer of `url`.
fn get(url: &str, path: &str) -> (String, String) {
    let mut curl = Command::new("curl");
    let output = curl
        .args(["--silent", "--include"])
        .arg(format!("{url}{path}"))
        .output();
    let output = output.expect("curl is there");
    assert!(output.status.success(), "{output:?}");
    let answer = String::from_utf8(output.stdout).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn intervals(store: &Path) -> Vec<Interval> {
    let mut all = Vec::new();
    let store = Store::open(store).expect("a store");
    let read = store.read(Range::ALL, |_, interval| {
        all.push(interval);
        Ok(())
    });
    read.expect("it reads");
    all
}

/// Keeps the victim from its CPU until the watch has written a snapshot of it.
fn be_late(snapshots: &Path) {
    let (cpu, _) = cpus();
    let begun = Instant::now();
    let _victim = Victim::start(cpu, Policy::Fifo(50), 2_000);
    while !snapshots.join("late.ndjson").exists() {
        assert!(
            begun.elapsed() < END_MAX,
            "no snapshot in {}",
            snapshots.display()
        );
        thread(HOG, cpu, Policy::Fifo(60), || burn(20))
            .join()
            .expect("it burns");
        pause(500);
    }
}

#[test]
fn what_is_over_the_limit_has_its_ledger_in_the_store_and_its_snapshot_on_disk() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("monitor.db");
    let mut running = Running::start(&store);
    be_late(&folder.path().join("monitor.db-snapshots"));
    kill_process(running.pid(), Signal::INT).expect("sent");
    running.child.wait().expect("it ends");
    let all = intervals(&store);
    let [interval] = all.as_slice() else {
        panic!("{} intervals", all.len());
    };
    let is_ours = |late: &&monitor::Late| {
        let victim = late.victim.as_ref();
        victim.is_some_and(|task| task.name == "scene-victim") && late.proven
    };
    let found = interval.late.iter().filter(is_ours);
    let late = found.max_by_key(|late| late.latency);
    let late = late.unwrap_or_else(|| panic!("{:?}", interval.late));
    assert!(late.latency > OVER, "{late:?}");
    let (first, time) = &late.ledger[0];
    assert!(
        first.contains(HOG) && *time > Duration::from_ms(3),
        "{late:?}"
    );
    assert!(
        late.sentence.contains(HOG) && late.cause.contains(HOG),
        "{late:?}"
    );
    assert!(!late.advice.is_empty(), "{late:?}");
    let snapshot = PathBuf::from(late.snapshot.as_ref().expect("a snapshot"));
    assert!(snapshot.is_dir(), "{late:?}");
    // The longest that was counted is the one that was watched.
    let worst = interval.worst_of(Scope::RealTime, Phase::TimerWakeupSwitch);
    let worst = worst.expect("samples");
    let victim = worst.victim.as_ref().expect("somebody");
    if victim.name == "scene-victim" && Prio(victim.prio) == Prio::from_rt(50) {
        let of_it = interval.late_of(worst).expect("it was over the limit");
        let apart = (of_it.latency - worst.value).as_ns().abs();
        assert!(apart < 1_000_000, "{of_it:?} beside {worst:?}");
    }
    // Nobody counts the watch itself.
    let names = interval
        .worst
        .iter()
        .filter_map(|worst| worst.victim.as_ref());
    assert!(
        names
            .into_iter()
            .all(|task| !task.name.starts_with("rtscope"))
    );
}

#[test]
fn a_running_monitor_serves_the_whole_answer_of_a_snapshot_and_no_other_folder() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let running = Running::start(&folder.path().join("monitor.db"));
    let snapshots = folder.path().join("monitor.db-snapshots");
    be_late(&snapshots);
    let line = std::fs::read_to_string(snapshots.join("late.ndjson")).expect("a log");
    let line: serde_json::Value =
        serde_json::from_str(line.lines().next().expect("a line")).expect("JSON");
    let path = line["snapshot"].as_str().expect("its snapshot");
    let name = path.rsplit('/').next().expect("a name");
    let (head, body) = get(&running.url, &format!("api/v1/late?snapshot={name}"));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(
        head.to_lowercase().contains("content-type: text/html"),
        "{head}"
    );
    assert!(body.contains("<html") && body.contains(HOG), "{body:.2000}");
    let (head, body) = get(&running.url, "api/v1/late?snapshot=..");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    assert!(body.contains("there is no such snapshot"), "{body}");
}

#[test]
fn a_watch_whose_monitor_is_killed_ends_and_takes_its_recorder_with_it() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut running = Running::start(&folder.path().join("monitor.db"));
    let watch = running.watch();
    let has_recorder = || {
        let all = std::fs::read_dir("/sys/kernel/tracing/instances").expect("tracefs");
        let names = all.map(|one| one.expect("a name").file_name());
        let own = format!("rtscope-{watch}-");
        names
            .into_iter()
            .any(|name| name.to_string_lossy().starts_with(&own))
    };
    assert!(has_recorder());
    running.child.kill().expect("it runs");
    running.child.wait().expect("it ends");
    let begun = Instant::now();
    let process = PathBuf::from(format!("/proc/{watch}"));
    while process.exists() || has_recorder() {
        assert!(begun.elapsed() < END_MAX, "the watch outlives its monitor");
        pause(20);
    }
}
