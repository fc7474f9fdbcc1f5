//! The receiver's folders: below each host's name its traces, under a temporary name while they
//! come in.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as StdInstant};

use ctf::writer::{rename_new, write_error};
use event::{Error, ErrorKind, Result};

/// Below the root of a trace while it is written (`docs/format/live.md`).
const WRITTEN_UNTIL: &str = ".written-until";
/// Below the root of a trace: of which recording it is, so that its sender finds it again.
const FROM: &str = ".from";
/// A recording that does not come back for so long is left as it is.
pub(crate) const AWAY_MAX: Duration = Duration::from_secs(600);
/// A recording has no more traces at a time.
const TRACES_MAX: usize = 4096;
/// No more recordings are remembered.
const RECORDINGS_MAX: usize = 4096;

/// The number that a recording gives itself.
pub(crate) type RecordingId = [u8; 16];

/// Where traces of hosts come in.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    recordings: Mutex<HashMap<RecordingId, Arc<Mutex<Recording>>>>,
}

/// A recording of some host, over all its connections.
pub(crate) struct Recording {
    pub host: String,
    /// Of the connection that may write.
    pub generation: u64,
    /// Its traces that are not complete, by their names.
    pub traces: HashMap<String, PathBuf>,
    /// Since when it has no connection.
    left: Option<StdInstant>,
    /// Ends the connection of before.
    hang_up: Option<Box<dyn FnOnce() + Send>>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recording of {}", self.host)
    }
}

/// What became of a trace whose sender asks for it.
#[derive(Debug)]
pub(crate) enum Found {
    /// It is written in this folder.
    Going(PathBuf),
    /// It has its final name.
    Complete,
}

impl Store {
    /// Traces come in below `root`, which is made.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(root: &Path) -> Result<Store> {
        fs::create_dir_all(root).map_err(|cause| write_error(root, cause))?;
        Ok(Store {
            root: root.to_owned(),
            recordings: Mutex::default(),
        })
    }

    /// Where they come in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn all(&self) -> MutexGuard<'_, HashMap<RecordingId, Arc<Mutex<Recording>>>> {
        self.recordings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of this recording, and its generation: whoever had one before has it no more.
    pub(crate) fn join(
        &self,
        id: RecordingId,
        host: &str,
        hang_up: Box<dyn FnOnce() + Send>,
    ) -> Option<(Arc<Mutex<Recording>>, u64)> {
        let mut all = self.all();
        if !all.contains_key(&id) && all.len() >= RECORDINGS_MAX {
            return None;
        }
        let recording = all.entry(id).or_insert_with(|| {
            Arc::new(Mutex::new(Recording {
                host: host.to_owned(),
                generation: 0,
                traces: HashMap::new(),
                left: None,
                hang_up: None,
            }))
        });
        let recording = Arc::clone(recording);
        drop(all);
        let mut locked = lock(&recording);
        if locked.host != host {
            return None;
        }
        if let Some(hang_up) = locked.hang_up.replace(hang_up) {
            hang_up();
        }
        locked.generation += 1;
        locked.left = None;
        let generation = locked.generation;
        drop(locked);
        Some((recording, generation))
    }

    /// The connection of this generation is over.
    pub(crate) fn leave(&self, recording: &Mutex<Recording>, generation: u64) {
        let mut recording = lock(recording);
        if recording.generation == generation {
            recording.left = Some(StdInstant::now());
            recording.hang_up = None;
        }
    }

    /// Leaves what recordings began that have been away for `away_min`: their traces get their
    /// names, and keep the mark of what is not complete. Gives their paths.
    pub fn settle(&self, away_min: Duration) -> Vec<PathBuf> {
        let mut settled = Vec::new();
        self.all().retain(|_, recording| {
            let mut recording = lock(recording);
            let is_away = recording
                .left
                .is_some_and(|left| left.elapsed() >= away_min);
            if !is_away {
                return true;
            }
            for (name, staged) in recording.traces.drain() {
                let path = staged.with_file_name(name);
                // Where that fails it stays what it is.
                settled.push(match rename_new(&staged, &path) {
                    Ok(()) => path,
                    Err(_) => staged,
                });
            }
            false
        });
        settled
    }

    /// The folder of the trace `name`; made when it is new.
    pub(crate) fn trace(
        &self,
        id: &RecordingId,
        recording: &mut Recording,
        name: &str,
    ) -> Result<Found> {
        if let Some(staged) = recording.traces.get(name).filter(|staged| staged.is_dir()) {
            return Ok(Found::Going(staged.clone()));
        }
        let host = self.root.join(&recording.host);
        fs::create_dir_all(&host).map_err(|cause| write_error(&host, cause))?;
        let path = host.join(name);
        let staged = host.join(format!(".{name}.partial-{}", std::process::id()));
        let from = hex(id);
        let there = begun(&host, name);
        match there.iter().find(|there| is_from(there, &from)) {
            Some(there) if *there == path && !path.join(WRITTEN_UNTIL).exists() => {
                return Ok(Found::Complete);
            }
            Some(there) if *there == staged => (),
            Some(there) => rename_new(there, &staged)?,
            None if !there.is_empty() || path.symlink_metadata().is_ok() => {
                let what = "the host has a trace of this name already";
                return Err(Error::new(ErrorKind::AlreadyExists, what)
                    .found(format!("{}/{name}", recording.host))
                    .fix("record under another name, or move that one away"));
            }
            None => make(&staged, &from)?,
        }
        if recording.traces.len() >= TRACES_MAX {
            let what = "the recording has too many traces at a time";
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        recording.traces.insert(name.to_owned(), staged.clone());
        Ok(Found::Going(staged))
    }

    /// Gives a trace its final name; one that is not whole keeps its mark.
    pub(crate) fn finish(
        &self,
        recording: &mut Recording,
        name: &str,
        is_whole: bool,
    ) -> Result<PathBuf> {
        let Some(staged) = recording.traces.get(name) else {
            let what = "a trace ends that did not begin";
            return Err(Error::new(ErrorKind::InvalidInput, what).found(name.to_owned()));
        };
        let path = staged.with_file_name(name);
        if is_whole {
            // A trace that is whole has none.
            let _ = fs::remove_file(staged.join(WRITTEN_UNTIL));
        }
        rename_new(staged, &path)?;
        recording.traces.remove(name);
        Ok(path)
    }

    /// Removes a trace that nobody wants.
    pub(crate) fn forget(&self, recording: &mut Recording, name: &str) -> Result<()> {
        let Some(staged) = recording.traces.remove(name) else {
            return Ok(());
        };
        fs::remove_dir_all(&staged).map_err(|cause| write_error(&staged, cause))
    }
}

/// The lock of a recording.
pub(crate) fn lock(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Folders of the trace `name`, whoever began them.
fn begun(host: &Path, name: &str) -> Vec<PathBuf> {
    let head = format!(".{name}.partial-");
    let is_begun = |file: &str| {
        let pid = file.strip_prefix(&head);
        pid.is_some_and(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let entries = fs::read_dir(host).into_iter().flatten().flatten();
    let found = entries.filter(|entry| {
        let file = entry.file_name();
        let is_named = file
            .to_str()
            .is_some_and(|file| file == name || is_begun(file));
        is_named && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    found.map(|entry| entry.path()).collect()
}

fn is_from(folder: &Path, from: &str) -> bool {
    fs::read_to_string(folder.join(FROM)).is_ok_and(|there| there.trim() == from)
}

fn make(staged: &Path, from: &str) -> Result<()> {
    let made = || -> std::io::Result<()> {
        fs::create_dir(staged)?;
        fs::write(staged.join(FROM), format!("{from}\n"))?;
        File::create(staged.join(WRITTEN_UNTIL)).map(drop)
    };
    made().map_err(|cause| {
        // Half of one would be taken for another's.
        let _ = fs::remove_dir_all(staged);
        write_error(staged, cause)
    })
}

fn hex(id: &RecordingId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file of a trace that comes in.
#[derive(Debug)]
pub(crate) struct Incoming {
    path: PathBuf,
    /// Where a whole one is written until it is complete.
    new: Option<PathBuf>,
    pub size_bytes: u64,
}

impl Incoming {
    /// The file at `below` in the trace `staged`; how much of it is there.
    pub fn open(staged: &Path, below: &Path, is_whole: bool) -> Result<Incoming> {
        let path = staged.join(below);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|cause| write_error(folder, cause))?;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let new = is_whole.then(|| path.with_file_name(format!(".{name}.new")));
        let size_bytes = match &new {
            Some(new) => {
                File::create(new).map_err(|cause| write_error(new, cause))?;
                0
            }
            None => fs::metadata(&path).map_or(0, |facts| facts.len()),
        };
        Ok(Incoming {
            path,
            new,
            size_bytes,
        })
    }

    /// Adds bytes at its end; after an error none of them.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let path = self.new.as_ref().unwrap_or(&self.path);
        let failed = |cause| write_error(path, cause);
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).open(path);
        let file = file.map_err(failed)?;
        if let Err(cause) = file.write_all_at(bytes, self.size_bytes) {
            // Half a packet would spoil those before it.
            let _ = file.set_len(self.size_bytes);
            return Err(failed(cause));
        }
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }

    /// A whole file takes its place.
    pub fn put(&mut self) -> Result<()> {
        let Some(new) = &self.new else {
            return Ok(());
        };
        fs::rename(new, &self.path).map_err(|cause| write_error(&self.path, cause))
    }

    /// Whether it takes its place at once.
    pub fn is_whole(&self) -> bool {
        self.new.is_some()
    }
}

/// Says up to when the trace `staged` is whole.
pub(crate) fn say_until(staged: &Path, time_ns: i64) -> Result<()> {
    let path = staged.join(WRITTEN_UNTIL);
    let written = File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.write_all_at(&time_ns.to_le_bytes(), 0));
    written.map_err(|cause| write_error(&path, cause))
}
