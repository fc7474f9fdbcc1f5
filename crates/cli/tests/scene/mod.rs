//! Scenes for the verdict on this kernel: a victim, a `rtscope watch --json` beside it, and faults,
//! all as threads of the test, each with a name, a priority and a CPU of its own.

#![allow(dead_code)] // each test file uses its part

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use event::Cpu;
use host::task::{self, Policy};
use serde_json::Value;

/// The kernel ends a real-time thread of ours that runs for longer without blocking.
const LEASH_US: u64 = 900_000;
/// Where hits and their snapshots go instead of a folder that vanishes.
const KEEP: &str = "RTSCOPE_KEEP";

/// The last CPU, which has the fewest interrupts, and another one.
pub fn cpus() -> (Cpu, Cpu) {
    let mut cpus = capture::capabilities::gather().machine.cpus_allowed;
    let last = cpus.pop().expect("a CPU");
    (last, cpus.pop().expect("two CPUs are needed"))
}

/// A thread called `name`, on `cpu`, of this priority, that does `work`.
pub fn thread<T: Send + 'static>(
    name: &str,
    cpu: Cpu,
    policy: Policy,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let name = name.to_owned();
    std::thread::spawn(move || {
        task::call_yourself(&name).expect("named");
        // In this order: who comes without a priority waits until the other hogs are done.
        task::become_real_time(policy, LEASH_US).expect("ranked");
        task::stay_on(cpu).expect("placed");
        work()
    })
}

/// Uses so much CPU time.
pub fn burn(ms: u64) {
    let until_ns = task::thread_cpu_ns() + ms * 1_000_000;
    while task::thread_cpu_ns() < until_ns {
        std::hint::spin_loop();
    }
}

/// Waits for so long.
pub fn pause(ms: u64) {
    std::thread::sleep(std::time::Duration::from_millis(ms));
}

/// The nice value of this thread.
pub fn renice(nice: i32) {
    // SAFETY: takes integers only; on Linux, 0 is this thread.
    let set = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    assert_eq!(set, 0, "nice {nice}");
}

/// This thread's id.
pub fn tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// A thread that wakes up every period and goes to sleep again.
pub struct Victim {
    /// Its thread id.
    pub tid: i32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Victim {
    /// One that begins now.
    pub fn start(cpu: Cpu, policy: Policy, period_us: u64) -> Victim {
        Victim::working(cpu, policy, period_us, || {})
    }

    /// One that does `work` at each wake-up.
    pub fn working(
        cpu: Cpu,
        policy: Policy,
        period_us: u64,
        mut work: impl FnMut() + Send + 'static,
    ) -> Victim {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = thread("scene-victim", cpu, policy, move || {
            sender.send(tid()).expect("the test waits");
            let mut due_ns = task::monotonic_ns();
            while !stopped.load(Ordering::Acquire) {
                due_ns = task::monotonic_ns().max(due_ns + period_us * 1000);
                task::sleep_until(due_ns);
                work();
            }
        });
        Victim {
            tid: receiver.recv().expect("the victim runs"),
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A `rtscope watch --json` of one thread.
pub struct Watch {
    child: Child,
    folder: PathBuf,
    _vanishes: Option<tempfile::TempDir>,
}

impl Watch {
    /// Watches thread `tid`; `case` names the folder if it is to be kept. Returns once armed.
    pub fn start(case: &str, tid: i32, more: &[&str]) -> Watch {
        Watch::start_with(case, tid, more, &[])
    }

    /// The same with variables in its environment.
    pub fn start_with(case: &str, tid: i32, more: &[&str], variables: &[(&str, &Path)]) -> Watch {
        let kept = std::env::var_os(KEEP).map(|folder| Path::new(&folder).join(case));
        let vanishes = kept
            .is_none()
            .then(|| tempfile::tempdir().expect("a folder"));
        let folder = kept.unwrap_or_else(|| vanishes.as_ref().expect("made").path().to_owned());
        // Who made it begin late is what most cases are about.
        let until = match more.contains(&"--until") {
            true => [].as_slice(),
            false => ["--until", "switch-in"].as_slice(),
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_rtscope"))
            .args(["watch", "--json", "--tid", &tid.to_string(), "-o"])
            .arg(&folder)
            .args(until)
            .args(["--keep", "100000"])
            .args(more)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let armed = lines.any(|line| line.starts_with("watching"));
        assert!(armed, "the watch did not start");
        // Nothing else may fill the pipe.
        std::thread::spawn(move || lines.count());
        Watch {
            child,
            folder,
            _vanishes: vanishes,
        }
    }

    /// Waits for its end; what it wrote, line by line. The snapshots are in the folder.
    pub fn finish(&mut self) -> Vec<Value> {
        let stdout = BufReader::new(self.child.stdout.take().expect("piped"));
        let lines = stdout.lines().map(|line| line.expect("read"));
        let lines: Vec<Value> = lines
            .map(|line| serde_json::from_str(&line).expect("a JSON object a line"))
            .collect();
        let status = self.child.wait().expect("ended");
        assert!(status.code().is_some_and(|code| code != 1), "{status}");
        lines
    }

    /// Where its snapshots are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Watch {
    /// A test that failed leaves no watch behind.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let pid = rustix::process::Pid::from_child(&self.child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
            self.child.wait().ok();
        }
    }
}

/// The lines that tell of hits.
pub fn hits(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["type"] == "hit").collect()
}

/// The names of the culprits in a hit's verdict, in order, each with its kind and milliseconds.
pub fn culprits(hit: &Value) -> Vec<(String, String, f64)> {
    let culprits = hit["diagnosis"]["verdict"]["culprits"].as_array();
    let culprits = culprits.unwrap_or_else(|| panic!("no verdict: {hit:#}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |culprit: &Value| {
        let ns = culprit["duration_ns"].as_i64().expect("a length");
        let name = text(&culprit["task"]["comm"]);
        (text(&culprit["kind"]), name, ns as f64 / 1e6)
    };
    culprits.iter().map(one).collect()
}

/// The verdict's sentence.
pub fn sentence(hit: &Value) -> &str {
    hit["diagnosis"]["verdict"]["sentence"]
        .as_str()
        .unwrap_or("no verdict")
}

/// The ledger of a hit: complete, good, and its terms the whole latency.
pub fn check_ledger(hit: &Value) {
    let activations = hit["diagnosis"]["activations"].as_array();
    for late in activations.into_iter().flatten() {
        let ledger = &late["ledger"];
        let terms = ledger["terms"].as_array().expect("terms");
        let sum: i64 = terms.iter().filter_map(|t| t["duration_ns"].as_i64()).sum();
        assert_eq!(Some(sum), late["latency_ns"].as_i64(), "{late:#}");
        assert_eq!(ledger["grade"], "complete", "{}", sentence(hit));
        assert_eq!(ledger["good"], true, "{} {ledger:#}", sentence(hit));
    }
}
