//! A recording of a fair task whose control group is out of its quota accuses none of those who run
//! meanwhile, and says what may have kept it.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration as Time;

use capture::{RecordConfig, record};
use diagnosis::{Diagnosis, Group, Query, TaskFilter, TermKind, Until, diagnose};
use event::Duration;
use trace::Trace;

/// Works for so many milliseconds of its own time, and sleeps, again and again.
const PROGRAM: &str = "
import ctypes, sys, time
name, group, work_ms, sleep_ms = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
if group: open(group + '/cgroup.procs', 'w').write('0')
ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
while True:
    begin = time.thread_time()
    while (time.thread_time() - begin) * 1e3 < work_ms: pass
    if sleep_ms: time.sleep(sleep_ms / 1e3)
";

/// Ends with this.
struct Running(Child);

impl Running {
    fn start(name: &str, group: &str, work_ms: &str, sleep_ms: &str) -> Running {
        let mut command = Command::new("taskset");
        command.args(["-c", "1", "python3", "-c", PROGRAM]);
        command.args([name, group, work_ms, sleep_ms]);
        Running(command.spawn().expect("taskset and python3 are there"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A control group of either version with a quota; removed with this.
struct Limited(PathBuf);

impl Limited {
    /// 15 ms of each 100. None where the machine has no such groups.
    fn make() -> Option<Limited> {
        let first = PathBuf::from("/sys/fs/cgroup/cpu");
        let (root, file, words) = match first.exists() {
            true => (first, "cpu.cfs_quota_us", "15000"),
            false => (PathBuf::from("/sys/fs/cgroup"), "cpu.max", "15000 100000"),
        };
        let group = Limited(root.join(format!("rtscope-test-recorded-{}", std::process::id())));
        std::fs::create_dir(&group.0).ok()?;
        std::fs::write(group.0.join(file), words).ok()?;
        Some(group)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // Who was in it may be there for a moment.
        let is_gone = || std::fs::remove_dir(&self.0).is_ok();
        let _ = (0..100).any(|_| {
            std::thread::sleep(Time::from_millis(10));
            is_gone()
        });
    }
}

fn recorded() -> Diagnosis {
    let folder = tempfile::tempdir().expect("a folder");
    let config = RecordConfig {
        duration: Some(Duration::from_ms(2_500)),
        ..RecordConfig::new(folder.path().join("t"))
    };
    let facts = capture::capabilities::gather();
    let path = record(&config, &facts, "test").expect("recorded").path;
    let query = Query {
        tasks: TaskFilter::parse(&["quota-victim"]).expect("a name"),
        threshold: Some(Duration::from_ms(25)),
        worst: 0,
        until: Until::Block,
        ..Query::default()
    };
    diagnose(&Trace::open(path).expect("opens"), &query).expect("diagnosed")
}

#[test]
fn who_runs_while_a_quota_keeps_a_task_is_not_accused() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("quotas of a recording") {
        return;
    }
    let Some(group) = Limited::make() else {
        return testkit::skip(
            "quotas of a recording",
            "no control groups with a CPU quota",
        );
    };
    let _innocents = ["innocent-a", "innocent-b"].map(|name| Running::start(name, "", "1000", "0"));
    let folder = group.0.to_string_lossy().into_owned();
    // 8 ms of 28, where it may have 15 of 100.
    let _victim = Running::start("quota-victim", &folder, "8", "20");
    std::thread::sleep(Time::from_millis(500));
    let diagnosis = recorded();
    let late = diagnosis.activations.len();
    assert!(late > 5, "{late} late activations");
    // Whatever its own work took, is proven.
    let accuses = |group: &&Group| {
        let first = group.verdict.culprits.first();
        let first = first.map(|culprit| &culprit.kind);
        group.verdict.conclusive && matches!(first, Some(TermKind::RunQueueWait { .. }))
    };
    let accused = diagnosis.groups.iter().filter(accuses);
    let accused: Vec<_> = accused.map(|group| &group.verdict.sentence).collect();
    assert!(accused.is_empty(), "{accused:#?}");
    let worst = &diagnosis.groups[0].verdict.sentence;
    assert!(
        worst.contains("ran out of its CPU quota around then"),
        "{worst}"
    );
}
