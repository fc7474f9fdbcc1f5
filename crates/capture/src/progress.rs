//! Up to when a trace that is being written is on the disk, for whoever reads it meanwhile
//! (`docs/format/live.md`).

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration as StdDuration;

use ctf::writer::write_error;
use event::{Duration, Error, ErrorKind, Instant, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The file below the root of a trace; eight bytes, little-endian, nanoseconds.
const FILE: &str = ".written-until";
/// How often what was recorded is brought to the disk.
const FLUSH_PERIOD: StdDuration = StdDuration::from_millis(500);
/// The same where it then goes to another host, which takes its time too.
const FLUSH_PERIOD_STREAMED: StdDuration = StdDuration::from_millis(250);
/// How often the rings are emptied, and whether the end has come is asked.
pub(crate) const POLL_PERIOD: StdDuration = StdDuration::from_millis(20);
/// So long a writer may stand still between reading its clock and making its record exist.
const STANDSTILL: Duration = Duration::from_ns(100_000_000);

/// The progress of a recording; the trace is whole up to where its slowest source is.
#[derive(Debug)]
pub(crate) struct Progress {
    path: PathBuf,
    file: File,
    /// How often it is brought to the disk.
    flush_period: StdDuration,
    /// Whether it is decided what becomes of the mark.
    is_settled: AtomicBool,
    /// Each source's instant, and the last that was said.
    reached: Mutex<(Vec<Instant>, Instant)>,
}

/// One of those who write a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source(usize);

impl Progress {
    /// Of the trace that is written below `root`, and goes to another host when it is streamed.
    pub fn create(root: &Path, is_streamed: bool) -> Result<Progress> {
        let path = root.join(FILE);
        let file = File::create(&path).map_err(|cause| write_error(&path, cause))?;
        // A file system without locks: then the process's number alone says who lives.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Progress {
            path,
            file,
            flush_period: match is_streamed {
                true => FLUSH_PERIOD_STREAMED,
                false => FLUSH_PERIOD,
            },
            is_settled: AtomicBool::new(false),
            reached: Mutex::new((Vec::new(), Instant::MIN)),
        })
    }

    /// How often what was recorded is brought to the disk.
    pub fn flush_period(&self) -> StdDuration {
        self.flush_period
    }

    /// Another source, which has reached nothing: until it does, nobody has.
    pub fn source(&self) -> Source {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.0.push(Instant::MIN);
        Source(reached.0.len() - 1)
    }

    /// All that happened for `source` before `at` was read, and is on the disk.
    pub fn reached(&self, source: Source, at: Instant) -> Result<()> {
        self.set(source, at - STANDSTILL)
    }

    /// Nothing more comes from `source`.
    pub fn over(&self, source: Source) -> Result<()> {
        self.set(source, Instant::MAX)
    }

    /// The trace ends unfinished: its mark stays, and its readers say what is missing.
    pub fn stay(&self) {
        self.is_settled.store(true, Ordering::Release);
    }

    /// The trace is whole: its mark goes, whoever else still holds on to this.
    pub fn finish(&self) {
        if !self.is_settled.swap(true, Ordering::AcqRel) {
            // Whoever reads it knows the end by the trace's final name.
            let _ = fs::remove_file(&self.path);
        }
    }

    fn set(&self, source: Source, at: Instant) -> Result<()> {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let (sources, said) = &mut *reached;
        sources[source.0] = at;
        let slowest = sources.iter().min().copied().unwrap_or(Instant::MIN);
        if slowest <= *said || slowest == Instant::MAX {
            return Ok(());
        }
        *said = slowest;
        let bytes = slowest.as_ns().to_le_bytes();
        let written = self.file.write_all_at(&bytes, 0);
        written.map_err(|cause| write_error(&self.path, cause))
    }
}

/// A trace that is complete has no such file.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A trace that is being written, or was when it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTrace {
    output: PathBuf,
    staged: PathBuf,
    /// The process that writes.
    pid: u32,
}

impl LiveTrace {
    /// The recording that will be `output`; `None` when that is there already.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when nobody records there.
    pub fn find(output: &Path) -> Result<Option<LiveTrace>> {
        if output.exists() {
            return Ok(None);
        }
        let parent = match output.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let begin = format!(".{name}.partial-");
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str().filter(|name| name.starts_with(&begin))?;
            let pid = half_written(name).filter(|pid| is_alive(*pid))?;
            Some((is_written(&entry.path()), entry.path(), pid))
        });
        // What somebody writes, before what a dead process of that number left.
        if let Some((_, staged, pid)) = found.max_by_key(|(is_written, ..)| *is_written) {
            return Ok(Some(LiveTrace {
                output: output.to_owned(),
                staged,
                pid,
            }));
        }
        Err(
            Error::new(ErrorKind::NotFound, "nobody records such a trace")
                .found(output.display().to_string())
                .fix("rtscope record -o DIR first, and name the same DIR here"),
        )
    }

    /// Where it is now.
    pub fn path(&self) -> &Path {
        match self.output.exists() {
            true => &self.output,
            false => &self.staged,
        }
    }

    /// Whether it has its final name.
    pub fn is_complete(&self) -> bool {
        self.output.exists()
    }

    /// Whether who wrote it is gone and left it half written, or took it away.
    pub fn is_abandoned(&self) -> bool {
        !is_alive(self.pid) && !self.is_complete()
    }

    /// Up to when it is on the disk; the first instant when it is nowhere yet.
    pub fn written_until(&self) -> Instant {
        read(&self.staged).unwrap_or(Instant::MIN)
    }
}

/// Up to when the trace below `root` is on the disk, when its writer has said it.
pub(crate) fn read(root: &Path) -> Option<Instant> {
    let mut bytes = [0; 8];
    let file = File::open(root.join(FILE)).ok()?;
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(Instant::from_ns(i64::from_le_bytes(bytes)))
}

/// Marks the trace below `to` as the one below `from` is, whose recorder was killed: readers say
/// that events are missing behind the end of each stream. False where that has no mark.
pub(crate) fn mark_alike(from: &Path, to: &Path) -> Result<bool> {
    if !is_marked(from) {
        return Ok(false);
    }
    let path = to.join(FILE);
    let copied = fs::copy(from.join(FILE), &path);
    copied.map_err(|cause| write_error(&path, cause))?;
    Ok(true)
}

/// Whether the trace below `root` is written by a recorder, or was when that was killed.
pub(crate) fn is_marked(root: &Path) -> bool {
    root.join(FILE).is_file()
}

/// Whether somebody writes the trace below `root` now, in whatever namespace: who does holds a
/// lock on its mark, which ends with its holder.
pub(crate) fn is_written(root: &Path) -> bool {
    let Ok(file) = File::open(root.join(FILE)) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Whether who wrote the trace below `root` is gone. A living process of its number says nothing
/// where that is ourselves.
pub(crate) fn is_left(root: &Path, pid: u32) -> bool {
    (!is_alive(pid) || pid == std::process::id()) && !is_written(root)
}

/// The process in `.NAME.partial-PID` and `.NAME.partial-PID.2`, as `ctf::writer::StagedDir` names
/// what it writes.
pub(crate) fn half_written(name: &str) -> Option<u32> {
    let (head, pid) = name.rsplit_once(".partial-")?;
    head.strip_prefix('.').filter(|name| !name.is_empty())?;
    let pid = match pid.split_once('.') {
        Some((pid, number)) => number.parse::<u32>().ok().map(|_| pid)?,
        None => pid,
    };
    pid.parse().ok()
}

/// Marks the folder `root` as a recorder does that is killed then.
#[cfg(test)]
pub(crate) fn mark(root: &Path, until: Instant) -> std::io::Result<()> {
    fs::write(root.join(FILE), until.as_ns().to_le_bytes())
}

pub(crate) fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_whole_up_to_where_its_slowest_source_is() {
        let folder = std::env::temp_dir().join(format!("rtscope-live-{}", std::process::id()));
        let staged = folder.join(format!(".trace.partial-{}", std::process::id()));
        fs::create_dir_all(&staged).expect("a folder");
        let output = folder.join("trace");
        let live = LiveTrace::find(&output)
            .expect("it is there")
            .expect("it is live");
        let check = |expect: Instant| assert_eq!(live.written_until(), expect);
        let at = |ns| Instant::from_ns(ns) + STANDSTILL;
        {
            let progress = Progress::create(&staged, false).expect("a file");
            let (one, other) = (progress.source(), progress.source());
            progress.reached(one, at(10)).expect("written");
            check(Instant::MIN);
            progress.reached(other, at(7)).expect("written");
            check(Instant::from_ns(7));
            progress.over(other).expect("written");
            check(Instant::from_ns(10));
            progress.over(one).expect("written");
            check(Instant::from_ns(10));
        }
        check(Instant::MIN);
        assert!(!live.is_complete() && !live.is_abandoned());
        fs::rename(&staged, &output).expect("the final name");
        assert!(live.is_complete());
        assert_eq!(live.path(), output);
        assert_eq!(LiveTrace::find(&output).expect("it is there"), None);
        assert!(LiveTrace::find(&folder.join("other")).is_err());
        fs::remove_dir_all(&folder).expect("cleared away");
    }
}
