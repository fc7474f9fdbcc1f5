//! The directory where the processes of a user put their ring files.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use event::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags};

use crate::RingFile;
use crate::layout::shown;
use crate::{made, owned};

/// Of a directory with more entries, the rest is not looked at in one go.
const ENTRIES_MAX: usize = 1 << 17;
/// The same where others wait for their turn.
const ENTRIES_OF_TURN_MAX: usize = 1 << 13;
/// For so long the memory of all files is what it was counted to be: of thousands that come at
/// once, each would count all others.
const MEMORY_STAYS: Duration = Duration::from_millis(20);
/// How often a file is locked or made anew that others exchange behind our back.
const TRIES_MAX: usize = 100;
/// How names of ring files begin.
const RINGS: &str = "rings-";
/// How names of links begin that processes without rings leave.
const WITHOUT_RINGS: &str = "without-";
/// How names of session files begin.
const SESSION: &str = "session-";
/// The files that the recorders of a directory lock, each one of them. Rings that have one recorder
/// have the first.
const RECORDERS: [&str; RECORDERS_MAX] = ["recorder", "recorder-2", "recorder-3", "recorder-4"];
/// So many recorders can be in a directory at the same time.
pub const RECORDERS_MAX: usize = abi::rings::SETS_MAX;
/// The byte of a session file that its recorder holds.
const ALIVE: u32 = 0;
/// More of a session file is not read; processes read no more either.
const SESSION_BYTES_MAX: usize = 4096;
/// More of a process's name is not told.
const NAME_CHARACTERS_MAX: usize = 64;
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

/// Held by one of the recorders of a directory. The file that it locks goes with it: only who holds
/// the lock on the file that bears the name removes it.
#[derive(Debug)]
pub struct RecorderLock {
    file: OwnedFd,
    directory: OwnedFd,
    name: &'static str,
}

/// What a recorder announced, for as long as it is there: others see whether it lives.
#[derive(Debug)]
pub struct Announced {
    name: String,
    _file: OwnedFd,
}

impl std::ops::Deref for Announced {
    type Target = str;

    /// Its name in the directory.
    fn deref(&self) -> &str {
        &self.name
    }
}

impl RecorderLock {
    /// Whether it is the first of the recorders, whose those rings are that have one.
    pub fn is_first(&self) -> bool {
        self.name == RECORDERS[0]
    }

    /// Whether the locked file is the one that others find.
    fn is_in_place(&self) -> bool {
        let own = rustix::fs::fstat(&self.file);
        let named = rustix::fs::statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW);
        let identity = |status: rustix::fs::Stat| (status.st_dev, status.st_ino);
        matches!((own, named), (Ok(own), Ok(named)) if identity(own) == identity(named))
    }
}

impl Drop for RecorderLock {
    fn drop(&mut self) {
        if self.is_in_place() {
            // What cannot be removed stays, and locks as well the next time.
            let _ = rustix::fs::unlinkat(&self.directory, self.name, AtFlags::empty());
        }
    }
}

/// An open directory that nobody but its owner (and root) can write to.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    owner: u32,
    /// Where a look that did not see all goes on.
    looking: RefCell<Option<Dir>>,
    /// The memory of all files, and when it was counted.
    memory_seen: Cell<Option<(Instant, u64)>>,
}

/// What one look saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// The names of ring files, sorted.
    pub rings: Vec<String>,
    /// What processes left that could make no rings, sorted by their links.
    pub without_rings: Vec<WithoutRings>,
    /// Whether that is the last of what there is; the next look begins anew.
    pub is_all: bool,
    /// Whether it is all that there is.
    pub is_whole: bool,
}

/// Whose something is, and who may do what with it; it should be `owner`'s.
fn whose(user: u32, owner: u32, mode: u32) -> String {
    let mode = mode & 0o7777;
    match user == owner {
        true => format!("owner {user}, mode {mode:o}"),
        false => format!("owner {user} (not {owner}), mode {mode:o}"),
    }
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
            .found(whose(status.st_uid, owner, status.st_mode))
            .fix("remove it, or choose another with RTSCOPE_DIR"));
        }
        let path = path.to_owned();
        Ok(Directory {
            fd,
            path,
            owner,
            looking: RefCell::new(None),
            memory_seen: Cell::new(None),
        })
    }

    /// Opens `path`, and makes it first when it is not there.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn open_or_make(path: &Path, owner: u32) -> Result<Directory> {
        match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Directory::open(path, owner),
            Err(errno) => {
                let what = format!("cannot make {}", path.display());
                let fix = "let RTSCOPE_DIR name another folder, here and for the applications";
                Err(Error::io(what, errno.into()).fix(fix))
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same, told as `path`: where it was opened says nothing to people.
    pub fn called(mut self, path: &Path) -> Directory {
        self.path = path.to_owned();
        self
    }

    /// Whose it is.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// What tells it from all others, by whatever path it was opened.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn identity(&self) -> Result<(u64, u64)> {
        let facts = rustix::fs::fstat(&self.fd).map_err(|errno| self.unreadable(errno))?;
        Ok((facts.st_dev, facts.st_ino))
    }

    /// The names of ring files, sorted.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn names(&self) -> Result<Vec<String>> {
        self.names_with([RINGS]).map(|[names]| names)
    }

    /// The memory of all files of rings here, also of those of other recorders, each once: as it
    /// was a moment ago, with what [`Directory::took`] was told since.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn memory_bytes(&self) -> Result<u64> {
        if let Some((at, bytes)) = self.memory_seen.get()
            && at.elapsed() < MEMORY_STAYS
        {
            return Ok(bytes);
        }
        let bytes = self.count_memory()?;
        self.memory_seen.set(Some((Instant::now(), bytes)));
        Ok(bytes)
    }

    /// Takes note that a file here took so much memory.
    pub fn took(&self, bytes: u64) {
        let seen = self.memory_seen.get();
        let more = seen.map(|(at, before)| (at, before.saturating_add(bytes)));
        self.memory_seen.set(more);
    }

    fn count_memory(&self) -> Result<u64> {
        /// Of the unit in which the kernel counts.
        const BLOCK_BYTES: u64 = 512;
        let mut dir = Dir::read_from(&self.fd).map_err(|errno| self.unreadable(errno))?;
        let mut bytes = 0_u64;
        for entry in dir.by_ref().take(ENTRIES_MAX) {
            let entry = entry.map_err(|errno| self.unreadable(errno))?;
            let name = entry.file_name();
            if !name.to_bytes().starts_with(RINGS.as_bytes()) {
                continue;
            }
            // One that ended meanwhile has none.
            if let Ok(facts) = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                // How wide the count of names is differs by machine.
                let names = u128::from(facts.st_nlink).max(1);
                let all = u128::from(facts.st_blocks.unsigned_abs()) * u128::from(BLOCK_BYTES);
                bytes = bytes.saturating_add((all / names) as u64);
            }
        }
        Ok(bytes)
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
            .fix("nothing now; keep it while a recording runs")),
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

    /// The lines of a session file; none when it is gone, or none that a recorder leaves.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn session(&self, name: &str) -> Result<Vec<String>> {
        let Some(file) = self.regular(name, OFlags::RDONLY)? else {
            return Ok(Vec::new());
        };
        let mut bytes = [0; SESSION_BYTES_MAX];
        let length = rustix::io::read(&file, &mut bytes)
            .map_err(|errno| Error::io(format!("cannot read the session {name}"), errno.into()))?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The next of all that a recorder looks for: as much as can be seen in a moment.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn look(&self) -> Result<Seen> {
        let mut looking = self.looking.borrow_mut();
        let begins = looking.is_none();
        let dir = match &mut *looking {
            Some(dir) => dir,
            none => none.insert(Dir::read_from(&self.fd).map_err(|errno| self.unreadable(errno))?),
        };
        let mut found = [const { Vec::new() }; 2];
        let is_all = self.names_of(dir, [RINGS, WITHOUT_RINGS], ENTRIES_OF_TURN_MAX, &mut found)?;
        if is_all {
            *looking = None;
        }
        let [rings, links] = found;
        let without_rings = links
            .into_iter()
            .filter_map(|link| self.without_rings(link));
        Ok(Seen {
            rings,
            without_rings: without_rings.collect(),
            is_all,
            is_whole: begins && is_all,
        })
    }

    /// When something was last added or taken away, in nanoseconds of the wall clock.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn changed_ns(&self) -> Result<i128> {
        let facts = rustix::fs::fstat(&self.fd).map_err(|errno| self.unreadable(errno))?;
        Ok(i128::from(facts.st_mtime) * 1_000_000_000 + i128::from(facts.st_mtime_nsec))
    }

    fn without_rings(&self, link: String) -> Option<WithoutRings> {
        let target = rustix::fs::readlinkat(&self.fd, link.as_str(), Vec::new()).ok()?;
        let target = target.to_string_lossy();
        let (errno, name) = target.split_once(' ')?;
        let mut words = link.strip_prefix(WITHOUT_RINGS)?.split('-');
        Some(WithoutRings {
            pid: words.next()?.parse().ok()?,
            began_ns: u64::from_str_radix(words.next()?, 16).ok()?,
            errno: errno.parse().ok()?,
            name: shown(name).chars().take(NAME_CHARACTERS_MAX).collect(),
            link,
        })
    }

    fn unreadable(&self, errno: rustix::io::Errno) -> Error {
        Error::io(format!("cannot read {}", self.path.display()), errno.into())
    }

    /// How many files of rings have a name of which `is_meant` says so.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn count(&self, is_meant: impl Fn(&String) -> bool) -> Result<usize> {
        let [names] = self.names_with([RINGS])?;
        Ok(names.iter().filter(|name| is_meant(name)).count())
    }

    /// The names that begin with each of the prefixes, sorted.
    fn names_with<const N: usize>(&self, prefixes: [&str; N]) -> Result<[Vec<String>; N]> {
        let mut all = [const { Vec::new() }; N];
        let mut dir = Dir::read_from(&self.fd).map_err(|errno| self.unreadable(errno))?;
        self.names_of(&mut dir, prefixes, ENTRIES_MAX, &mut all)?;
        Ok(all)
    }

    /// The same of the next entries of `dir`, `most` at most. Names are as the probe and recorders
    /// give them: who made up others made them for nobody. Whether there are no more.
    fn names_of<const N: usize>(
        &self,
        dir: &mut Dir,
        prefixes: [&str; N],
        most: usize,
        all: &mut [Vec<String>; N],
    ) -> Result<bool> {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        let mut count = 0;
        for entry in dir.by_ref().take(most) {
            count += 1;
            let entry = entry.map_err(|errno| self.unreadable(errno))?;
            let name = entry.file_name();
            if !name.to_bytes().iter().all(plain) {
                continue;
            }
            let name = name.to_string_lossy();
            for (names, prefix) in all.iter_mut().zip(prefixes) {
                if name.starts_with(prefix) {
                    names.push(name.clone().into_owned());
                }
            }
        }
        all.iter_mut().for_each(|names| names.sort());
        Ok(count < most)
    }

    /// Opens a regular file; `None` when it is gone, or is none. Nothing that stands there in place
    /// of a file is opened: opening a device may do something.
    fn regular(&self, name: &str, access: OFlags) -> Result<Option<OwnedFd>> {
        let failed =
            |errno: rustix::io::Errno| Error::io(format!("cannot open {name}"), errno.into());
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let status = rustix::fs::fstat(&place).map_err(failed)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        // By what was looked at: its name may mean another by now.
        let path = format!("/proc/self/fd/{}", place.as_raw_fd());
        let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map(Some)
            .map_err(failed)
    }

    /// Opens the ring file `name`. `None` when it is gone, or not yet complete.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] when it belongs to another user; otherwise as
    /// [`RingFile::new`].
    pub fn rings(&self, name: &str) -> Result<Option<RingFile>> {
        let Some(fd) = self.regular(name, OFlags::RDWR)? else {
            return self.none_or_no_file(name).map(|()| None);
        };
        let file = File::from(fd);
        let unreadable = |cause| Error::io(format!("cannot read the rings {name}"), cause);
        let status = file.metadata().map_err(unreadable)?;
        let trusted = status.uid() == self.owner && status.mode() & WRITABLE_BY_OTHERS == 0;
        if !trusted {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!("the rings {name} are not to be trusted"),
            )
            .found(whose(status.uid(), self.owner, status.mode())));
        }
        RingFile::new(file, name)
    }

    /// Fails where something stands in place of the rings `name`.
    fn none_or_no_file(&self, name: &str) -> Result<()> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => {
                let kind = FileType::from_raw_mode(status.st_mode);
                let what = format!("the rings {name} are no file");
                match kind {
                    // It came between two looks.
                    FileType::RegularFile => Ok(()),
                    _ => Err(Error::new(ErrorKind::Corrupt, what).found(format!("{kind:?}"))),
                }
            }
            Err(_) => Ok(()),
        }
    }

    /// Becomes one of the recorders of this directory, until the lock is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when there are [`RECORDERS_MAX`]; otherwise what the operating
    /// system says.
    pub fn lock(&self) -> Result<RecorderLock> {
        for name in RECORDERS {
            if let Some(lock) = self.lock_as(name)? {
                return Ok(lock);
            }
        }
        Err(self.is_recorded())
    }

    /// Is there instead of all recorders, until the locks are dropped.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when there is one; otherwise what the operating system says.
    pub fn lock_alone(&self) -> Result<Vec<RecorderLock>> {
        let lock = |name| self.lock_as(name)?.ok_or_else(|| self.is_recorded());
        RECORDERS.into_iter().map(lock).collect()
    }

    /// The same by one of their names; none where another has it.
    fn lock_as(&self, name: &'static str) -> Result<Option<RecorderLock>> {
        let failed = |errno: rustix::io::Errno| {
            Error::io(format!("cannot lock {}", self.path.display()), errno.into())
        };
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        for _ in 0..TRIES_MAX {
            let fd = made::make(&self.fd, name, flags, Mode::RUSR | Mode::WUSR);
            let file = fd.map_err(failed)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => (),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(failed(errno)),
            }
            let directory = self.fd.try_clone();
            let directory = directory.map_err(|cause| Error::io("cannot lock", cause))?;
            let lock = RecorderLock {
                file,
                directory,
                name,
            };
            // Else its last holder removed it behind our opening, and others lock another.
            if lock.is_in_place() {
                return Ok(Some(lock));
            }
        }
        Err(failed(rustix::io::Errno::BUSY))
    }

    fn is_recorded(&self) -> Error {
        Error::new(
            ErrorKind::AlreadyExists,
            "these processes are being recorded already",
        )
        .found(format!(
            "recorders hold {} ({RECORDERS_MAX} can)",
            self.path.display()
        ))
        .fix("end one first, or give both sides another directory with RTSCOPE_DIR")
    }

    /// Leaves a file that tells processes that start from now on which events are wanted. Returns
    /// its name, for [`Directory::remove`]; whoever announced it is there for as long as it holds
    /// that.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn announce(&self, patterns: &[String]) -> Result<Announced> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{SESSION}{}-{count}", std::process::id());
        if self.owner == 0 {
            // Processes of all users look for root's sessions.
            let open = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
            let _ = rustix::fs::fchmod(&self.fd, open);
        }
        let failed = |cause| Error::io(format!("cannot write {name}"), cause);
        // Never a file that is there already: it may lead to another's, or be none.
        let flags = OFlags::WRONLY | OFlags::EXCL;
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = made::make(&self.fd, &name, flags, mode)
            .or_else(|_| {
                rustix::fs::unlinkat(&self.fd, name.as_str(), AtFlags::empty())?;
                made::make(&self.fd, &name, flags, mode)
            })
            .map_err(|errno| failed(errno.into()))?;
        // Before others can open it, and lock it, and before it says anything.
        owned::take(&fd, ALIVE).map_err(failed)?;
        let readable = mode | Mode::RGRP | Mode::ROTH;
        rustix::fs::fchmod(&fd, readable).map_err(|errno| failed(errno.into()))?;
        let text = patterns.join("\n") + "\n";
        rustix::io::write(&fd, text.as_bytes()).map_err(|errno| failed(errno.into()))?;
        Ok(Announced { name, _file: fd })
    }

    /// Whether the recorder is there that left a session file; also where it has not written it
    /// yet.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn is_live(&self, name: &str) -> Result<bool> {
        let Some(file) = self.regular(name, OFlags::RDONLY)? else {
            return Ok(false);
        };
        let failed = |cause| Error::io(format!("cannot read the session {name}"), cause);
        let facts = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
        // Whoever wrote it has locked it before.
        match facts.st_size {
            0 => Ok(facts.st_nlink > 0),
            _ => owned::is_taken(&file, ALIVE).map_err(failed),
        }
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
