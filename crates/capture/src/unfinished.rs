//! Traces whose recorder was killed: found by their names, and given the names that they were to
//! have. What was written stays as it is; [`trace::Trace`] tells a loss at the end of each stream.

use std::fs;
use std::path::{Path, PathBuf};

use ctf::writer::rename_new;
use event::{Error, ErrorKind, Instant, Result};

use crate::kernel_trace::STATEDUMP_FILE;
use crate::progress;
use crate::progress::half_written;
use crate::user::PARTS;

/// A trace whose recorder is gone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unfinished {
    /// Where it is: `.NAME.partial-PID`, `.NAME.partial-PID.2`.
    pub path: PathBuf,
    /// The process that wrote it.
    pub pid: u32,
    /// Up to when it is whole; none when that was never said.
    pub written_until: Option<Instant>,
}

impl Unfinished {
    /// The trace at `path`; none when it is no trace that a recorder writes, or its recorder lives.
    pub fn at(path: &Path) -> Option<Unfinished> {
        let pid = half_written(path.file_name()?.to_str()?)?;
        let is_left = progress::is_marked(path) && progress::is_left(path, pid);
        is_left.then(|| Unfinished {
            path: path.to_owned(),
            pid,
            written_until: progress::read(path),
        })
    }

    /// All in `folder`, by their names.
    pub fn all_in(folder: &Path) -> Vec<Unfinished> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .filter_map(|entry| Unfinished::at(&entry.path()))
            .collect();
        found.sort();
        found
    }

    /// Whether any event was written.
    pub fn holds_events(&self) -> bool {
        holds_packets(&self.path)
    }

    /// Whether nothing at all was written but how far it is: its recorder had not begun.
    pub fn is_empty(&self) -> bool {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name());
        names.all(|name| name.as_encoded_bytes().starts_with(b"."))
    }

    /// Removes it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.path)
            .map_err(|cause| Error::io(format!("cannot remove {}", self.path.display()), cause))
    }

    /// Whether another host gets it: what was delivered is no longer here.
    pub fn is_streamed(&self) -> bool {
        relay::is_spool(&self.path)
    }

    /// What the trace was to be called.
    pub fn output(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix('.').unwrap_or(&name);
        let name = name.rsplit_once(".partial-").map_or(name, |(name, _)| name);
        self.path.with_file_name(name)
    }

    /// Gives it the name `output`, or else that which it was to have.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when something has that name; otherwise what the operating
    /// system says.
    pub fn finish(&self, output: Option<&Path>) -> Result<PathBuf> {
        let output = output.map_or_else(|| self.output(), Path::to_owned);
        if self.is_streamed() {
            // Another host has what came before.
            relay::cut_delivered(&self.path)?;
        }
        match rename_new(&self.path, &output) {
            Ok(()) => Ok(output),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let path = self.path.display();
                Err(error.fix(format!("rtscope recover {path} -o ANOTHER")))
            }
            Err(error) => Err(error),
        }
    }
}

/// The unfinished trace at `path`.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when none is there.
pub fn unfinished(path: &Path) -> Result<Unfinished> {
    Unfinished::at(path).ok_or_else(|| {
        let folder = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let all = Unfinished::all_in(folder.unwrap_or(Path::new(".")));
        let fix = match &all[..] {
            [] => "rtscope doctor lists what killed runs left".to_owned(),
            [first, ..] => format!("rtscope recover {}", first.path.display()),
        };
        Error::new(
            ErrorKind::InvalidInput,
            "not a trace that a killed recorder left",
        )
        .found(path.display().to_string())
        .fix(fix)
    })
}

/// Whether a trace below `root` has a packet of events.
pub(crate) fn holds_packets(root: &Path) -> bool {
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let of_processes = entries(&root.join(PARTS)).map(|entry| entry.path());
    let traces = of_processes.chain([root.join("kernel")]);
    traces.flat_map(|trace| entries(&trace)).any(|file| {
        let name = file.file_name();
        let is_other = ["metadata", STATEDUMP_FILE]
            .iter()
            .any(|kind| name.as_encoded_bytes().starts_with(kind.as_bytes()));
        // Channels have the names that were asked for.
        let holds = |facts: fs::Metadata| facts.is_file() && facts.len() > 0;
        !is_other && file.metadata().is_ok_and(holds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_a_dead_recorder_gets_its_name_and_replaces_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        // The largest process id of Linux is 2^22.
        let left = folder.path().join(".trace.partial-99999999");
        fs::create_dir(&left).expect("a folder");
        assert_eq!(Unfinished::at(&left), None, "who converts says no progress");
        progress::mark(&left, Instant::from_ns(7)).expect("marked");
        let [found] = &Unfinished::all_in(folder.path())[..] else {
            panic!("one is there")
        };
        assert_eq!(found.written_until, Some(Instant::from_ns(7)));
        let taken = folder.path().join("trace");
        fs::create_dir_all(taken.join("mine")).expect("a folder");
        let refused = found.finish(None).expect_err("the name is taken");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        let output = found.finish(Some(&folder.path().join("other")));
        assert!(output.expect("finished").is_dir() && !left.exists());

        let second = folder.path().join(".run.partial-99999999.2");
        fs::create_dir(&second).expect("a folder");
        progress::mark(&second, Instant::from_ns(7)).expect("marked");
        let found = Unfinished::at(&second).expect("one is there");
        assert_eq!(found.output(), folder.path().join("run"));
    }

    #[test]
    fn what_nothing_was_written_of_is_known_from_a_stream_of_any_name() {
        let check = |file: Option<&str>, expect: (bool, bool)| {
            let folder = tempfile::tempdir().expect("a folder");
            let left = folder.path().join(".trace.partial-99999999");
            fs::create_dir(&left).expect("a folder");
            progress::mark(&left, Instant::from_ns(7)).expect("marked");
            if let Some(name) = file {
                fs::create_dir(left.join("kernel")).expect("a folder");
                fs::write(left.join("kernel").join(name), "bytes").expect("written");
            }
            let found = Unfinished::at(&left).expect("left");
            assert_eq!((found.is_empty(), found.holds_events()), expect, "{file:?}");
            found.remove().expect("removed");
            assert!(!left.exists());
        };
        check(None, (true, false));
        check(Some("metadata"), (false, false));
        check(Some("statedump_0"), (false, false));
        check(Some("channel0_0"), (false, true));
        check(Some("irqs_1"), (false, true));
    }

    #[test]
    fn a_trace_that_is_still_written_is_not_unfinished() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!(".trace.partial-{}", std::process::id());
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("a folder");
        let progress = progress::Progress::create(&path, false).expect("a file");
        assert_eq!(Unfinished::at(&path), None);
        assert!(unfinished(&path).is_err());
        // Killed, and its number is ours now, as of each recorder in a container.
        progress.stay();
        drop(progress);
        assert!(Unfinished::at(&path).is_some());
    }
}
