//! What was pushed where: a file beside the store, and a lock so that one process pushes at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::part::Known;

const VERSION: u32 = 1;

/// What one target has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pushed {
    /// The number of the newest interval.
    pub last_id: i64,
    /// By day and boot, and by day of the watch's lines: the file that was written last.
    pub parts: BTreeMap<String, Known>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Everything {
    version: u32,
    targets: BTreeMap<String, Pushed>,
}

/// The file, locked until it is dropped.
#[derive(Debug)]
pub(crate) struct State {
    path: PathBuf,
    all: Everything,
    _lock: File,
}

impl State {
    /// Takes the lock and reads what there is. What cannot be read counts as nothing: all is pushed
    /// again, to the same names.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when another process pushes this store.
    pub fn open(store: &Path) -> Result<State> {
        let beside = |suffix: &str| {
            let mut name = store.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let (path, lock_path) = (beside("-pushed"), beside("-pushing"));
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|cause| {
                Error::io(format!("cannot lock {}", lock_path.display()), cause)
                    .fix("push as the user that writes the store, or push a copy of it")
            })?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let what = "another process pushes this store";
            return Err(Error::new(ErrorKind::AlreadyExists, what)
                .found(store.display().to_string())
                .fix("wait until it has ended"));
        }
        let text = std::fs::read(&path).unwrap_or_default();
        let all: Everything = serde_json::from_slice(&text).unwrap_or_default();
        let all = match all.version {
            VERSION => all,
            _ => Everything::default(),
        };
        Ok(State {
            path,
            all,
            _lock: lock,
        })
    }

    /// Whether something was pushed there before.
    pub fn knows(&self, target: &str) -> bool {
        self.all.targets.contains_key(target)
    }

    /// What a target has.
    pub fn of(&mut self, target: &str) -> &mut Pushed {
        self.all.targets.entry(target.to_owned()).or_default()
    }

    /// Writes it down: whole, or as it was before.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn save(&mut self) -> Result<()> {
        self.all.version = VERSION;
        let mut partial = self.path.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let text = serde_json::to_vec(&self.all).unwrap_or_default();
        let write = || {
            let mut file = File::create(&partial)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&partial, &self.path)
        };
        write().map_err(|cause| {
            Error::io(format!("cannot write {}", self.path.display()), cause)
                .fix("free some room beside the store")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_known_to_the_next_one_and_two_at_once_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("monitor.db");
        let mut state = State::open(&store).expect("a state");
        let refused = State::open(&store).expect_err("it is taken");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        state.of("a").last_id = 7;
        state.save().expect("saved");
        drop(state);
        let mut state = State::open(&store).expect("a state");
        assert!(state.knows("a") && !state.knows("b"));
        assert_eq!(state.of("a").last_id, 7);
        drop(state);
        std::fs::write(folder.path().join("monitor.db-pushed"), "{\"version\": 1").expect("cut");
        assert!(!State::open(&store).expect("a state").knows("a"));
    }
}
