//! The directory where the processes of a user put their ring files.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use event::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags};

use crate::RingFile;

/// Files beyond this are not looked at.
const FILES_MAX: usize = 4096;
/// How names of ring files begin.
const RINGS: &str = "rings-";
/// How names of links begin that processes without rings leave.
const WITHOUT_RINGS: &str = "without-";
/// How names of session files begin.
const SESSION: &str = "session-";
/// The file that the recorder of a directory locks.
const RECORDER: &str = "recorder";
/// More of a session file is not read; processes read no more either.
const SESSION_BYTES_MAX: usize = 4096;
/// Bits that let others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A process that could make no rings, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutRings {
    /// Its id, as it sees itself.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// When it tried, in nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// What the operating system said.
    pub errno: i32,
    /// The name of the link in the directory.
    pub link: String,
}

/// Held by the one recorder of a directory. The file that it locks goes with it: only who holds
/// the lock on the file that bears the name removes it.
#[derive(Debug)]
pub struct RecorderLock {
    file: OwnedFd,
    directory: OwnedFd,
}

impl RecorderLock {
    /// Whether the locked file is the one that others find.
    fn is_in_place(&self) -> bool {
        let own = rustix::fs::fstat(&self.file);
        let named = rustix::fs::statat(&self.directory, RECORDER, AtFlags::SYMLINK_NOFOLLOW);
        let identity = |status: rustix::fs::Stat| (status.st_dev, status.st_ino);
        matches!((own, named), (Ok(own), Ok(named)) if identity(own) == identity(named))
    }
}

impl Drop for RecorderLock {
    fn drop(&mut self) {
        if self.is_in_place() {
            // What cannot be removed stays, and locks as well the next time.
            let _ = rustix::fs::unlinkat(&self.directory, RECORDER, AtFlags::empty());
        }
    }
}

/// An open directory that nobody but its owner (and root) can write to.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    owner: u32,
}

impl Directory {
    /// Opens `path`, which must belong to `owner`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it is not there, [`ErrorKind::PermissionDenied`] when it
    /// belongs to somebody else or others may write to it; otherwise what the operating system
    /// says. A symbolic link is an error.
    pub fn open(path: &Path, owner: u32) -> Result<Directory> {
        let failed = |errno: rustix::io::Errno| {
            Error::io(format!("cannot open {}", path.display()), errno.into())
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(failed)?;
        let status = rustix::fs::fstat(&fd).map_err(failed)?;
        if status.st_uid != owner || status.st_mode & WRITABLE_BY_OTHERS != 0 {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!("{} is not to be trusted", path.display()),
            )
            .found(format!(
                "owner {} (not {owner}), mode {:o}",
                status.st_uid,
                status.st_mode & 0o7777
            ))
            .mend("remove it, or choose another with RTSCOPE_DIR"));
        }
        let path = path.to_owned();
        Ok(Directory { fd, path, owner })
    }

    /// Opens `path`, and makes it first when it is not there.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn open_or_make(path: &Path, owner: u32) -> Result<Directory> {
        match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Directory::open(path, owner),
            Err(errno) => Err(Error::io(
                format!("cannot make {}", path.display()),
                errno.into(),
            )),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of ring files, sorted.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn names(&self) -> Result<Vec<String>> {
        self.names_with([RINGS]).map(|[names]| names)
    }

    /// Whether it is still a directory that somebody else can find.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it was removed; otherwise what the operating system says.
    pub fn check_is_there(&self) -> Result<()> {
        let path = self.path.display();
        let facts = rustix::fs::fstat(&self.fd);
        let facts =
            facts.map_err(|errno| Error::io(format!("cannot read {path}"), errno.into()))?;
        match facts.st_nlink {
            0 => Err(Error::new(
                ErrorKind::NotFound,
                format!("programs that start are not recorded: {path} was removed"),
            )
            .found("no such directory any more")
            .mend("nothing now; keep it while a recording runs")),
            _ => Ok(()),
        }
    }

    /// The names of session files, sorted.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn sessions(&self) -> Result<Vec<String>> {
        self.names_with([SESSION]).map(|[names]| names)
    }

    /// The lines of a session file; none when it is gone.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn session(&self, name: &str) -> Result<Vec<String>> {
        let failed = |errno: rustix::io::Errno| {
            Error::io(format!("cannot read the session {name}"), errno.into())
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(Vec::new()),
            opened => opened.map_err(failed)?,
        };
        let mut bytes = [0; SESSION_BYTES_MAX];
        let length = rustix::io::read(&fd, &mut bytes).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The names of ring files, sorted, and what processes left that could make no rings, sorted by
    /// their links: all that a recorder looks for, by one reading.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn look(&self) -> Result<(Vec<String>, Vec<WithoutRings>)> {
        let read = |link: String| {
            let target = rustix::fs::readlinkat(&self.fd, link.as_str(), Vec::new()).ok()?;
            let target = target.to_string_lossy();
            let (errno, name) = target.split_once(' ')?;
            let mut words = link.strip_prefix(WITHOUT_RINGS)?.split('-');
            Some(WithoutRings {
                pid: words.next()?.parse().ok()?,
                began_ns: u64::from_str_radix(words.next()?, 16).ok()?,
                errno: errno.parse().ok()?,
                name: name.to_owned(),
                link,
            })
        };
        let [names, links] = self.names_with([RINGS, WITHOUT_RINGS])?;
        Ok((names, links.into_iter().filter_map(read).collect()))
    }

    /// The names that begin with each of the prefixes, sorted; so many of each at most.
    fn names_with<const N: usize>(&self, prefixes: [&str; N]) -> Result<[Vec<String>; N]> {
        let failed = |errno: rustix::io::Errno| {
            Error::io(format!("cannot read {}", self.path.display()), errno.into())
        };
        let mut all = [const { Vec::new() }; N];
        for entry in Dir::read_from(&self.fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy();
            for (names, prefix) in all.iter_mut().zip(prefixes) {
                if name.starts_with(prefix) && names.len() < FILES_MAX {
                    names.push(name.clone().into_owned());
                }
            }
        }
        all.iter_mut().for_each(|names| names.sort());
        Ok(all)
    }

    /// Opens the ring file `name`. `None` when it is gone, or not yet complete.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] when it belongs to another user; otherwise as
    /// [`RingFile::new`].
    pub fn rings(&self, name: &str) -> Result<Option<RingFile>> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => {
                return Err(Error::io(
                    format!("cannot open the rings {name}"),
                    errno.into(),
                ));
            }
        };
        let unreadable = |cause| Error::io(format!("cannot read the rings {name}"), cause);
        let status = file.metadata().map_err(unreadable)?;
        let trusted = status.uid() == self.owner && status.mode() & WRITABLE_BY_OTHERS == 0;
        if !status.is_file() || !trusted {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!("the rings {name} are not to be trusted"),
            )
            .found(format!(
                "owner {} (not {}), mode {:o}",
                status.uid(),
                self.owner,
                status.mode()
            )));
        }
        RingFile::new(file, name)
    }

    /// Becomes the one recorder of this directory, until the lock is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when there is one; otherwise what the operating system says.
    pub fn lock(&self) -> Result<RecorderLock> {
        let failed = |errno: rustix::io::Errno| {
            Error::io(format!("cannot lock {}", self.path.display()), errno.into())
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let fd = rustix::fs::openat(&self.fd, RECORDER, flags, Mode::RUSR | Mode::WUSR);
            let file = fd.map_err(failed)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => (),
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(self.is_recorded()),
                Err(errno) => return Err(failed(errno)),
            }
            let directory = self.fd.try_clone();
            let directory = directory.map_err(|cause| Error::io("cannot lock", cause))?;
            let lock = RecorderLock { file, directory };
            // Else its last holder removed it behind our opening, and others lock another.
            if lock.is_in_place() {
                return Ok(lock);
            }
        }
    }

    fn is_recorded(&self) -> Error {
        Error::new(
            ErrorKind::AlreadyExists,
            "these processes are being recorded already",
        )
        .found(format!("a recorder holds {}", self.path.display()))
        .mend("end it first, or give both sides another directory with RTSCOPE_DIR")
    }

    /// Leaves a file that tells processes that start from now on which events are wanted. Returns
    /// its name, for [`Directory::remove`].
    ///
    /// # Errors
    /// What the operating system says.
    pub fn announce(&self, patterns: &[String]) -> Result<String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{SESSION}{}-{count}", std::process::id());
        if self.owner == 0 {
            // Processes of all users look for root's sessions.
            let open = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
            let _ = rustix::fs::fchmod(&self.fd, open);
        }
        let failed = |cause| Error::io(format!("cannot write {name}"), cause);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let fd = rustix::fs::openat(&self.fd, name.as_str(), flags, mode)
            .map_err(|errno| failed(errno.into()))?;
        let text = patterns.join("\n") + "\n";
        rustix::io::write(&fd, text.as_bytes()).map_err(|errno| failed(errno.into()))?;
        Ok(name)
    }

    /// Removes a file; one that is gone is no error.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn remove(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::io(format!("cannot remove {name}"), errno.into())),
        }
    }
}
