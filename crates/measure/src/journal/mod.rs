//! A measurement on disk while it goes on: a line for each interval as it closes, each on the disk
//! before the next begins. A run that is killed leaves all intervals that were closed, and can be
//! gone on with.
//!
//! # Design constraints
//! - A line is written by one call and synced. One that was cut short, because we were killed or
//!   the disk was full, is none: whoever goes on removes it.
//! - Lines say what was gained since the line before: they add up, however many runs wrote them.
//! - One run at a time: the file is locked while somebody writes it.

mod line;
mod record;

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, flock};

pub use line::{
    Begin, ClockSet, Excursion, Head, Interval, Line, LoadState, Plain, SCHEMA, ThreadPortion,
    VERSION, WorkloadPortion,
};
pub use record::{Part, Record};

/// The file in the folder of a measurement.
pub const FILE: &str = "intervals.ndjson";

/// A file that takes lines.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// Whether a folder holds one.
pub fn is_in(folder: &Path) -> bool {
    std::fs::metadata(folder.join(FILE)).is_ok_and(|file| file.len() > 0)
}

impl Journal {
    /// A new one, with its head on the disk.
    ///
    /// # Errors
    /// What the operating system refuses; also where there is one already.
    pub fn create(folder: &Path, head: &Head) -> Result<Journal> {
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true).open(&path);
        let file = file.map_err(|error| cannot("make", &path, error))?;
        let journal = Journal { file, path };
        journal.lock()?;
        journal.append(&Line::Head(head.clone()))?;
        // The name, too.
        let named = File::open(folder).and_then(|folder| folder.sync_all());
        named.map_err(|error| cannot("write", &journal.path, error))?;
        Ok(journal)
    }

    /// That of a run that ended or was killed, to go on with, and what stands in it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is none, [`ErrorKind::Corrupt`] where it was changed,
    /// and [`ErrorKind::InvalidInput`] while its run goes on.
    pub fn resume(folder: &Path) -> Result<(Journal, Record)> {
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).open(&path);
        let file = file.map_err(|error| {
            cannot("read", &path, error).fix("name the folder of an evaluation: its -o")
        })?;
        let mut journal = Journal { file, path };
        journal.lock()?;
        let mut bytes = Vec::new();
        let read = journal.file.read_to_end(&mut bytes);
        read.map_err(|error| cannot("read", &journal.path, error))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |end| end + 1);
        let record = Record::read(&bytes[..whole], &journal.path)?;
        if whole < bytes.len() {
            // Cut short with its writer.
            let cut = journal.file.set_len(whole as u64);
            cut.map_err(|error| cannot("write", &journal.path, error))?;
        }
        Ok((journal, record))
    }

    /// Adds a line; it is on the disk when this returns.
    ///
    /// # Errors
    /// When it is not: nothing of it is there then.
    pub fn append(&self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)
            .map_err(|error| cannot("write", &self.path, std::io::Error::other(error)))?;
        text.push('\n');
        let length = self.file.metadata().map(|file| file.len());
        let written = length.and_then(|length| {
            let written = (&self.file).write_all(text.as_bytes());
            written
                .and_then(|()| self.file.sync_data())
                .inspect_err(|_| {
                    // Half a line before the next would be two that nobody can read.
                    self.file.set_len(length).ok();
                })
        });
        written.map_err(|error| cannot("write", &self.path, error))
    }

    fn lock(&self) -> Result<()> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(_) => {
                let what = "this measurement goes on";
                let found = format!("{} is locked by its run", self.path.display());
                Err(Error::new(ErrorKind::InvalidInput, what)
                    .found(found)
                    .fix(format!(
                        "fuser {} says by which process",
                        self.path.display()
                    )))
            }
        }
    }
}

fn cannot(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::io(format!("cannot {what} {}", path.display()), error)
        .fix("df says whether there is room, ls -l who may write")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{Portion, Recorder};
    use event::Duration;

    const WIDTH: Duration = Duration::from_ns(1000);

    fn head() -> Head {
        Head {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            command: vec!["--for".to_owned(), "7d".to_owned()],
            same: [("kernel".to_owned(), "6.12".to_owned())].into(),
        }
    }

    fn begin(boot: &str) -> Line {
        Line::Begin(Begin {
            at_wall_ns: 1,
            boot: boot.to_owned(),
            since_boot_ns: Some(2),
        })
    }

    /// An interval of a second, whose one thread was late by each of these.
    fn interval(from_s: i64, samples_ns: &[i64]) -> Line {
        let recorder = Recorder::new(WIDTH, 10);
        samples_ns.iter().for_each(|&ns| recorder.add(ns));
        Line::Interval(Interval {
            from_wall_ns: from_s * 1_000_000_000,
            until_wall_ns: (from_s + 1) * 1_000_000_000,
            since_boot_ns: Some(3),
            clock_set: vec![],
            elapsed_ns: 1_000_000_000,
            threads: vec![ThreadPortion {
                latency: Portion::between(None, &recorder.read()),
                missed: 0,
                lost_cpu: false,
            }],
            excursions: vec![Excursion {
                thread: 0,
                at_wall_ns: from_s * 1_000_000_000 + 7,
                latency_ns: 9_000,
            }],
            excursions_left_out: 1,
            loads: vec![],
            workload: None,
        })
    }

    /// A file with a run that closed three intervals, and one that closed none.
    fn written(folder: &Path) {
        let journal = Journal::create(folder, &head()).expect("a file");
        let lines = [
            begin("a"),
            interval(10, &[1, 2_500]),
            interval(11, &[7_000]),
            interval(12, &[]),
            begin("b"),
        ];
        lines
            .iter()
            .for_each(|line| journal.append(line).expect("room"));
    }

    #[test]
    fn all_intervals_that_were_closed_are_there_wherever_the_file_was_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        written(folder.path());
        let path = folder.path().join(FILE);
        let bytes = std::fs::read(&path).expect("a file");
        let first = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .expect("a head")
            + 1;
        // Each is synced, which takes its time: around the ends of lines, and here and there.
        let is_tried = |cut: &usize| {
            let ends = bytes[cut - 1..].iter().take(3).any(|byte| *byte == b'\n');
            ends || cut.is_multiple_of(61)
        };
        for cut in (first..=bytes.len()).filter(is_tried) {
            std::fs::write(&path, &bytes[..cut]).expect("written");
            let lines = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            let closed = lines.saturating_sub(2).min(3);
            let (journal, record) = Journal::resume(folder.path()).expect("a record");
            let found: usize = record.parts.iter().map(|part| part.intervals.len()).sum();
            assert_eq!(found, closed, "cut at {cut}");
            assert_eq!(record.elapsed(), Duration::from_ms(1_000 * closed as i64));
            // What is written behind it can be read.
            journal.append(&begin("c")).expect("room");
            journal.append(&interval(90, &[1])).expect("room");
            drop(journal);
            let (_, record) = Journal::resume(folder.path()).expect("a record");
            let last = record.parts.last().expect("a part");
            assert_eq!(
                (last.begin.boot.as_str(), last.wall_ns().0),
                ("c", 90_000_000_000)
            );
        }
    }

    #[test]
    fn a_file_that_was_changed_is_an_error_with_its_line() {
        let check = |change: &dyn Fn(String) -> String, expect: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            written(folder.path());
            let path = folder.path().join(FILE);
            let text = change(std::fs::read_to_string(&path).expect("text"));
            std::fs::write(&path, text).expect("written");
            let error = Journal::resume(folder.path()).expect_err("changed");
            let told = format!("{error:#}");
            assert!(told.contains(expect), "{expect}: {told}");
        };
        check(
            &|text| text.replacen("\"line\":\"interval\"", "\"line\":\"i\"", 1),
            "line 3 of",
        );
        check(
            &|text| text.replacen("\"version\":1", "\"version\":9", 1),
            "version 9",
        );
        check(
            &|text| text.replacen("{\"line\":\"begin\"", "x", 1),
            "line 2 of",
        );
        check(
            &|text| text.lines().skip(1).collect::<Vec<_>>().join("\n") + "\n",
            "line 1 of",
        );
        check(&|_| String::new(), "line 1 of");
        let again = |text: String| text.clone() + text.lines().next().expect("a head") + "\n";
        check(&again, "cannot stand here");
    }

    #[test]
    fn one_run_at_a_time_writes() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::create(folder.path(), &head()).expect("a file");
        let error = Journal::resume(folder.path()).expect_err("it goes on");
        assert!(error.to_string().contains("goes on"), "{error}");
        assert!(Journal::create(folder.path(), &head()).is_err());
        drop(journal);
        assert!(Journal::resume(folder.path()).is_ok());
        let nothing = tempfile::tempdir().expect("a folder");
        assert!(Journal::resume(nothing.path()).is_err());
    }

    #[test]
    fn a_part_has_its_longest_of_each_stretch_its_excursions_and_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        written(folder.path());
        let (journal, record) = Journal::resume(folder.path()).expect("a record");
        assert_eq!((record.parts.len(), record.is_complete()), (1, false));
        let part = &record.parts[0];
        assert_eq!(
            (part.ended, part.wall_ns()),
            (None, (10_000_000_000, 13_000_000_000))
        );
        let (kept, left_out) = part.excursions();
        assert_eq!((kept.count(), left_out), (3, 3));
        let series = |stretch_ms: i64| {
            let points = part.series(0, Duration::from_ms(stretch_ms)).into_iter();
            let ns = points.map(|(at, longest)| (at.as_ns() / 1_000_000, longest.as_ns()));
            ns.collect::<Vec<_>>()
        };
        assert_eq!(series(1_000), [(1_000, 2_500), (2_000, 7_000)]);
        assert_eq!(series(2_000), [(2_000, 7_000)]);
        assert_eq!(series(9_000), [(3_000, 7_000)]);
        assert!(part.series(1, WIDTH).is_empty());
        journal.append(&Line::End { complete: true }).expect("room");
        drop(journal);
        // The run that closed nothing ended: it is no part.
        let (_, record) = Journal::resume(folder.path()).expect("a record");
        assert!(!record.is_complete());
    }
}
