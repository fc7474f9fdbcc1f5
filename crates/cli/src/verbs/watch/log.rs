//! Every late activation, a line of JSON in the folder of snapshots, whether it has one or not.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use event::evidence::TaskRef;
use event::{Duration, Error, Instant, Result};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Its name in the folder.
const NAME: &str = "late.ndjson";
/// The schema of its lines.
const SCHEMA: &str = "rtscope.late";
const SCHEMA_VERSION: u32 = 1;

/// The file. It comes with the first line.
#[derive(Debug)]
pub(super) struct Log {
    path: std::path::PathBuf,
    file: Option<File>,
}

/// What a line says.
pub(super) struct Line<'a> {
    /// Where the latency begins and ends.
    pub origin: Instant,
    pub end: Instant,
    pub task: &'a TaskRef,
    pub cause: &'a str,
    /// Whether a snapshot's ledger proves it.
    pub exact: bool,
    pub snapshot: Option<&'a Path>,
}

impl Log {
    pub fn new(folder: &Path) -> Log {
        Log {
            path: folder.join(NAME),
            file: None,
        }
    }

    /// Adds a line.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, line: &Line<'_>) -> Result<()> {
        let wall_ns = line.end.as_ns() + wall_offset_ns();
        let name = |path: &Path| {
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        let object = json!({
            "schema": SCHEMA,
            "version": SCHEMA_VERSION,
            "wall_ns": wall_ns,
            "origin_ns": line.origin.as_ns(),
            "end_ns": line.end.as_ns(),
            "latency_ns": (line.end - line.origin).as_ns(),
            "task": {
                "tid": line.task.tid.0,
                "comm": line.task.comm,
                "prio": line.task.prio.lttng(),
                "priority": line.task.prio.to_string(),
            },
            "cause": line.cause,
            "exact": line.exact,
            "snapshot": line.snapshot.and_then(name),
        });
        let cannot = |error| {
            let what = format!("cannot write {}", self.path.display());
            Error::io(what, error).fix("give --output a folder with room, or --no-snapshot")
        };
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let opened = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&self.path);
                none.insert(opened.map_err(cannot)?)
            }
        };
        // One write, so that the lines of two watches do not mix.
        file.write_all(format!("{object}\n").as_bytes())
            .map_err(cannot)
    }
}

/// The snapshots that the log in `folder` names: each with its cause and the latency. What is no
/// line of it is left out, as the end of one that a full disk cut.
pub(super) fn earlier(folder: &Path) -> Vec<(String, String, Duration)> {
    let text = std::fs::read(folder.join(NAME)).unwrap_or_default();
    let line = |line: &[u8]| {
        let line: Value = serde_json::from_slice(line).ok()?;
        let name = line["snapshot"].as_str()?;
        // A name is a folder here, and no way to elsewhere.
        let is_name = Path::new(name).file_name() == Some(name.as_ref());
        let latency = Duration::from_ns(line["latency_ns"].as_i64()?);
        let cause = line["cause"].as_str()?.to_owned();
        (line["schema"] == SCHEMA && is_name).then(|| (name.to_owned(), cause, latency))
    };
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// Wall clock minus CLOCK_MONOTONIC now.
pub(super) fn wall_offset_ns() -> i64 {
    let read = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec
            .saturating_mul(1_000_000_000)
            .saturating_add(time.tv_nsec)
    };
    read(ClockId::Realtime).saturating_sub(read(ClockId::Monotonic))
}

#[cfg(test)]
mod tests {
    use event::{Prio, Tid};

    use super::*;

    #[test]
    fn each_late_activation_is_a_line_and_a_second_watch_adds_to_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let task = TaskRef {
            tid: Tid(7),
            comm: "loop".to_owned(),
            prio: Prio::from_rt(50),
        };
        for exact in [true, false] {
            let line = Line {
                origin: Instant::from_ns(1_000),
                end: Instant::from_ns(6_001_000),
                task: &task,
                cause: "own work",
                exact,
                snapshot: exact.then_some(Path::new("/x/hit-0001")),
            };
            Log::new(folder.path()).write(&line).expect("written");
        }
        let text = std::fs::read_to_string(folder.path().join(NAME)).expect("the file");
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["latency_ns"], 6_000_000);
        // On the scale of every other answer: below zero is real-time.
        assert_eq!(lines[0]["task"]["prio"], -51);
        assert_eq!(lines[0]["task"]["priority"], "rt 50");
        assert_eq!(
            (&lines[0]["snapshot"], &lines[0]["exact"]),
            (&json!("hit-0001"), &json!(true))
        );
        assert_eq!(
            (&lines[1]["snapshot"], &lines[1]["exact"]),
            (&json!(null), &json!(false))
        );
        assert!(lines[0]["wall_ns"].as_i64() > Some(1_600_000_000_000_000_000));
        // A watch that begins anew knows which snapshots there are, and heeds no other path.
        let elsewhere = text.replace("hit-0001", "../hit-0001");
        std::fs::write(folder.path().join(NAME), text + &elsewhere + "{\"sch").expect("written");
        let known = (
            "hit-0001".to_owned(),
            "own work".to_owned(),
            Duration::from_ms(6),
        );
        assert_eq!(earlier(folder.path()), [known]);
    }
}
