//! A program that works, recordings by ftrace itself, and a pairing of events that has nothing from
//! the one in the kernel.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use event::Instant;

/// From an event to another one of the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    pub key: u64,
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl Interval {
    pub fn overlaps(&self, other: &Interval) -> bool {
        self.begin_ns <= other.end_ns && other.begin_ns <= self.end_ns
    }

    /// Whether a thread of this process did what it begins with: nobody watches its own.
    pub fn by_process(&self, process: u64, text: &str) -> bool {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("our tasks");
        let names: Vec<_> = tasks
            .map(|task| {
                task.expect("a task")
                    .file_name()
                    .into_string()
                    .expect("a tid")
            })
            .collect();
        let stamp = format!(
            "{}.{:06}",
            self.begin_ns / 1_000_000_000,
            self.begin_ns / 1000 % 1_000_000
        );
        let mut lines = text.lines().filter(|line| line.contains(&stamp));
        lines.any(|line| {
            let head = line.split('[').next().unwrap_or_default();
            let tid = head.trim_end().rsplit('-').next().unwrap_or_default();
            names.iter().any(|name| name == tid)
        })
    }
}

/// Pairs events (time, whether it ends, key): an end belongs to the last begin of its key.
pub fn paired(mut events: Vec<(i64, bool, u64)>) -> Vec<Interval> {
    // What is both ends before it begins.
    events.sort_by_key(|(time_ns, is_end, _)| (*time_ns, !is_end));
    let mut open: HashMap<u64, i64> = HashMap::new();
    let mut intervals = Vec::new();
    for (time_ns, is_end, key) in events {
        if !is_end {
            open.insert(key, time_ns);
        } else if let Some(begin_ns) = open.remove(&key) {
            intervals.push(Interval {
                key,
                begin_ns,
                end_ns: time_ns,
            });
        }
    }
    intervals.sort();
    intervals
}

pub fn now() -> Instant {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Instant::from_ns(now.tv_sec * 1_000_000_000 + now.tv_nsec)
}

/// An instance of ftrace that is removed with it.
struct Recording(PathBuf);

impl Drop for Recording {
    fn drop(&mut self) {
        fs::write(self.0.join("events/enable"), "0").ok();
        fs::remove_dir(&self.0).ok();
    }
}

/// What `act` returns, and ftrace's own text of the events that came meanwhile.
pub fn recorded<T>(events: &[&str], act: impl FnOnce() -> T) -> (T, String) {
    let path = Path::new("/sys/kernel/tracing/instances");
    let path = path.join(format!("rtscope-{}-pair-test", std::process::id()));
    fs::create_dir(&path).expect("an instance");
    let recording = Recording(path);
    let write = |file: &str, text: &str| fs::write(recording.0.join(file), text).expect(file);
    write("trace_clock", "mono");
    write("buffer_size_kb", "4096");
    for event in events {
        write(&format!("events/{event}/enable"), "1");
    }
    let done = act();
    for event in events {
        write(&format!("events/{event}/enable"), "0");
    }
    let text = fs::read_to_string(recording.0.join("trace")).expect("a trace");
    assert!(!text.contains("LOST"), "the buffer was too small");
    (done, text)
}

/// The number behind `name=` in a line.
fn number(line: &str, name: &str) -> Option<u64> {
    let at = line.rfind(&format!(" {name}="))? + name.len() + 2;
    let digits: String = line[at..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// The kernel's number of nice 0; what LTTng calls 20.
const PRIO_MAX: u64 = 120;

/// Wake-ups of real-time and fair tasks and switches to tasks, out of ftrace's text, in
/// nanoseconds cut to microseconds as it prints them.
pub fn wakeups_and_switches(text: &str) -> Vec<(i64, bool, u64)> {
    let event = |line: &str| {
        let stamp = line.split(": ").next()?.split_whitespace().last()?;
        let (seconds, micros) = stamp.split_once('.')?;
        let time_ns =
            seconds.parse::<i64>().ok()? * 1_000_000_000 + micros.parse::<i64>().ok()? * 1000;
        if line.contains(" sched_waking: ") {
            let is_meant = number(line, "prio")? <= PRIO_MAX;
            return is_meant.then_some((time_ns, false, number(line, "pid")?));
        }
        let is_switch = line.contains(" sched_switch: ");
        is_switch.then_some((time_ns, true, number(line, "next_pid")?))
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(event).collect()
}

/// A program that says when its work began and ended.
pub struct Work {
    pub program: PathBuf,
    _folder: tempfile::TempDir,
}

impl Work {
    pub fn build() -> Work {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("work");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pair_scene/work.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O2", "-Wall", "-o"])
            .arg(&program)
            .arg(source);
        assert!(compiler.status().expect("a C compiler").success());
        Work {
            program,
            _folder: folder,
        }
    }

    /// Runs it for so many pieces; when each began and ended, by what it wrote down.
    pub fn run(&self, pieces: u32) -> Vec<Interval> {
        let output = Command::new(&self.program)
            .arg(pieces.to_string())
            .output()
            .expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let line = |line: &str| {
            let mut words = line
                .split(' ')
                .map(|word| word.parse::<i64>().expect("a number"));
            let mut next = || words.next().expect("three numbers");
            Interval {
                key: next() as u64,
                begin_ns: next(),
                end_ns: next(),
            }
        };
        text.lines().map(line).collect()
    }
}
