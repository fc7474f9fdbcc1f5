//! Where sessions are found again: a folder for each in the runtime folder of their user, with a
//! lock that its process holds, a socket on which it answers, and what is known of it.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::SessionName;

/// Names another runtime folder.
const VARIABLE: &str = "RTSCOPE_RUNTIME_DIR";
/// What helps against a folder of sessions that is another's, who need not take it away.
const OTHER_FOLDER: &str = "name another in each shell: export RTSCOPE_RUNTIME_DIR=$HOME/.rtscope";
/// The files of a session.
const LOCK: &str = "lock";
pub(super) const SOCKET: &str = "socket";
const FACTS: &str = "session.json";
/// How often a lock is taken anew that its last holder removed behind our opening.
const TRIES_MAX: usize = 100;

/// What is known of a session whose process may be gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub pid: u32,
    pub output: PathBuf,
    pub begin_wall_ns: i64,
    /// Whether rings kept their newest events.
    pub flight: bool,
    /// All that it was asked for, as a file of settings.
    #[serde(default)]
    pub settings: String,
}

/// The sessions of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sessions {
    root: PathBuf,
}

impl Sessions {
    /// Those of our user: below `RTSCOPE_RUNTIME_DIR`, else `/run/rtscope` for root, else
    /// `XDG_RUNTIME_DIR`, else a folder of the user's in `/tmp`.
    pub fn of_this_user() -> Sessions {
        let uid = rustix::process::geteuid().as_raw();
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let root = match (named(VARIABLE), named("XDG_RUNTIME_DIR")) {
            (Some(folder), _) => PathBuf::from(folder),
            (None, _) if uid == 0 => PathBuf::from("/run/rtscope"),
            (None, Some(folder)) => Path::new(&folder).join("rtscope"),
            (None, None) => PathBuf::from(format!("/tmp/rtscope-runtime-{uid}")),
        };
        Sessions {
            root: root.join("sessions"),
        }
    }

    /// Those below `root`.
    pub fn below(root: impl Into<PathBuf>) -> Sessions {
        Sessions { root: root.into() }
    }

    /// Where a session writes what nobody reads: warnings, and why it died.
    ///
    /// # Errors
    /// When the runtime folder cannot be made, or is another's.
    pub fn log(&self) -> Result<File> {
        self.make()?;
        let path = self.root.join(".log");
        let mut options = fs::OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        options
            .open(&path)
            .map_err(|cause| Error::io(format!("cannot write {}", path.display()), cause))
    }

    /// Makes the folder, which nobody else may look into.
    fn make(&self) -> Result<()> {
        let root = self.root.display();
        let failed = |cause| {
            Error::io(format!("cannot make the folder of sessions {root}"), cause)
                .fix(format!("name another by {VARIABLE}=DIR"))
        };
        // First: where what is around it is another's, nothing of ours is made there.
        if self.is_there()? {
            return Ok(());
        }
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root);
        made.map_err(failed)?;
        self.is_there().map(|_| ())
    }

    /// Whether there is a folder of sessions. Of one that is not ours alone nothing is read: who
    /// can write there could say of any process that it was a session, and of any folder that its
    /// archives are there.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] where it, or what is around it, is another's.
    pub fn is_there(&self) -> Result<bool> {
        let around = self.root.parent().unwrap_or(Path::new("/"));
        let uid = rustix::process::geteuid().as_raw();
        // Whoever owns what is around it could put another in its place.
        let may_be_around = |facts: &fs::Metadata| facts.uid() == uid || facts.uid() == 0;
        let is_ours = |facts: &fs::Metadata| {
            facts.is_dir() && facts.uid() == uid && facts.mode() & 0o022 == 0
        };
        Ok(self.is_trusted(around, &may_be_around)? && self.is_trusted(&self.root, &is_ours)?)
    }

    /// Whether `path` is there; an error where it is and does not suit.
    fn is_trusted(&self, path: &Path, suits: &dyn Fn(&fs::Metadata) -> bool) -> Result<bool> {
        let facts = match fs::symlink_metadata(path) {
            Ok(facts) => facts,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(cause) => {
                let what = format!("cannot look at {}", path.display());
                return Err(Error::io(what, cause).fix(OTHER_FOLDER));
            }
        };
        if suits(&facts) {
            return Ok(true);
        }
        let (root, path) = (self.root.display(), path.display());
        let what = format!("the folder of sessions {root} is not ours alone");
        let (user, mode) = (facts.uid(), facts.mode() & 0o7777);
        Err(Error::new(ErrorKind::PermissionDenied, what)
            .found(format!("{path} is user {user}'s, mode {mode:o}"))
            .fix(OTHER_FOLDER))
    }

    /// The names of all sessions, also of those whose process is gone.
    pub fn names(&self) -> Vec<SessionName> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| SessionName::parse(entry.file_name().to_str()?).ok())
            .collect();
        names.sort();
        names
    }

    pub(super) fn folder(&self, name: &SessionName) -> PathBuf {
        self.root.join(name.as_str())
    }

    /// What is known of a session; none when there is none of that name.
    pub(super) fn facts(&self, name: &SessionName) -> Option<Facts> {
        let text = fs::read_to_string(self.folder(name).join(FACTS)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// What a session was started with, as a file of settings, also of one that died; none when
    /// there is none of that name.
    pub fn settings(&self, name: &SessionName) -> Option<String> {
        self.facts(name).map(|facts| facts.settings)
    }

    /// Takes the name for a session of this process.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when a session has it, also one that died.
    pub(super) fn take(&self, name: &SessionName) -> Result<Place> {
        self.make()?;
        let Some(place) = self.lock(name)? else {
            let what = format!("a session called {name} is running");
            let facts = self.facts(name);
            let process = facts.map(|facts| format!("process {}", facts.pid));
            return Err(Error::new(ErrorKind::AlreadyExists, what)
                .found(process.unwrap_or_else(|| "it begins just now".to_owned()))
                .fix(format!(
                    "take another name, or stop it: rtscope record stop {name}"
                )));
        };
        if let Some(facts) = self.facts(name) {
            // Not ours to remove: its archive is still to be finished.
            place.leave();
            let what = format!("a session called {name} died and was not cleared away");
            return Err(Error::new(ErrorKind::AlreadyExists, what)
                .found(format!(
                    "process {} is gone; it wrote to {}",
                    facts.pid,
                    facts.output.display()
                ))
                .fix(format!("rtscope record stop {name} finishes its archive")));
        }
        Ok(place)
    }

    /// The session's folder with its lock; none while its process lives.
    pub(super) fn lock(&self, name: &SessionName) -> Result<Option<Place>> {
        let folder = self.folder(name);
        let path = folder.join(LOCK);
        let failed = |cause| Error::io(format!("cannot lock {}", path.display()), cause);
        for _ in 0..TRIES_MAX {
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Err(cause) if cause.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(failed(cause));
                }
                _ => (),
            }
            let mut options = fs::OpenOptions::new();
            options.create(true).truncate(false).write(true).mode(0o600);
            let lock = match options.open(&path) {
                Ok(lock) => lock,
                // Its last holder removed the folder meanwhile.
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => continue,
                Err(cause) => return Err(failed(cause)),
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => (),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(failed(errno.into())),
            }
            let held = lock.metadata().map_err(failed)?;
            let is_in_place = fs::metadata(&path).is_ok_and(|now| now.ino() == held.ino());
            if is_in_place {
                let directory = File::open(&folder).map_err(failed)?;
                return Ok(Some(Place {
                    folder,
                    directory,
                    _lock: lock,
                    stays: false,
                }));
            }
        }
        Err(failed(std::io::ErrorKind::ResourceBusy.into()))
    }
}

/// A session's folder, whose lock we hold; removed when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    directory: File,
    _lock: File,
    stays: bool,
}

impl Place {
    /// Lets go of the lock and leaves the rest.
    pub fn leave(mut self) {
        self.stays = true;
    }

    /// The path of the socket, which is short however long the folder's is.
    pub fn socket(&self) -> PathBuf {
        socket(&self.directory)
    }

    /// Writes down what is known of the session.
    pub fn tell(&self, facts: &Facts) -> Result<()> {
        let path = self.folder.join(FACTS);
        let new = self.folder.join(".session.json.new");
        let text = serde_json::to_string(facts).unwrap_or_default();
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|cause| Error::io(format!("cannot write {}", path.display()), cause))
    }
}

/// The socket in a session's folder.
pub(super) fn socket(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.stays {
            // The lock last: as long as it is there, it is held.
            for file in [FACTS, SOCKET, ".session.json.new", LOCK] {
                let _ = fs::remove_file(self.folder.join(file));
            }
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            pid: 99_999_999,
            output: "/nowhere".into(),
            begin_wall_ns: 7,
            flight: false,
            settings: String::new(),
        }
    }

    #[test]
    fn a_name_is_taken_once_and_free_again_when_its_session_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = Sessions::below(folder.path().join("sessions"));
        let name = SessionName::parse("night").expect("a name");
        let held = sessions.take(&name).expect("free");
        let error = sessions.take(&name).expect_err("taken");
        assert_eq!(error.value_found(), Some("it begins just now"));
        held.tell(&facts()).expect("told");
        let error = sessions.take(&name).expect_err("taken");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(error.value_found(), Some("process 99999999"));
        assert!(error.what().contains("is running"), "{error:#}");
        assert_eq!(sessions.names(), std::slice::from_ref(&name));
        drop(held);
        assert_eq!(sessions.names(), []);
        drop(sessions.take(&name).expect("free again"));
    }

    #[test]
    fn the_name_of_a_session_that_died_is_not_taken_silently() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = Sessions::below(folder.path().join("sessions"));
        let name = SessionName::parse("night").expect("a name");
        let held = sessions.take(&name).expect("free");
        held.tell(&facts()).expect("told");
        fs::write(held.folder.join(SOCKET), "").expect("a socket that nobody reads");
        held.leave();
        let error = sessions.take(&name).expect_err("dead");
        assert!(error.what().contains("died"), "{error:#}");
        let fix = error.fixed_by().expect("a remedy");
        assert!(fix.contains("rtscope record stop night"), "{fix}");
        assert_eq!(sessions.facts(&name), Some(facts()), "nothing is lost");
        drop(
            sessions
                .lock(&name)
                .expect("a lock")
                .expect("nobody has it"),
        );
        sessions.take(&name).expect("free again");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("sessions");
        fs::create_dir(&root).expect("a folder");
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).expect("opened");
        let name = SessionName::parse("night").expect("a name");
        let error = Sessions::below(&root).take(&name).expect_err("not ours");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }
}
