//! Root's look for the directories of all users, also in other mount namespaces, as containers have
//! them: by and by, so that who fills a folder or makes namespaces keeps nobody's events waiting.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, ReadDir};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use event::{Error, Result};
use ring::Directory;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::places::{self, SHARED_MEMORY};

/// More mount namespaces and roots are not looked into, of those that one user made; root's are all
/// that no user namespace of others has.
const NAMESPACES_MAX: usize = 256;
const NAMESPACES_OF_OTHERS_MAX: usize = 64;
/// Of one, so many directories, among so many entries.
const DIRECTORIES_MAX: usize = 64;
const ENTRIES_MAX: usize = 4096;
/// The file system that shared memory is.
const TMPFS: i64 = 0x0102_1994;
/// Entries between two looks at the clock.
const ENTRIES_OF_STEP: usize = 64;
/// The system call ioctl's number for the user who made a user namespace.
const NS_GET_OWNER_UID: u32 = 0xb704;

/// The entries of a folder, by and by.
struct Walk {
    folder: &'static str,
    at: Option<ReadDir>,
}

impl Walk {
    fn of(folder: &'static str) -> Walk {
        Walk { folder, at: None }
    }

    /// Goes on until `until`, or to the end; whether it was the end.
    fn step(&mut self, until: StdInstant, mut each: impl FnMut(&OsStr)) -> bool {
        if self.at.is_none() {
            self.at = fs::read_dir(self.folder).ok();
        }
        let Some(entries) = &mut self.at else {
            return true;
        };
        loop {
            for _ in 0..ENTRIES_OF_STEP {
                match entries.next() {
                    Some(Ok(entry)) => each(&entry.file_name()),
                    // What cannot be read on is read anew.
                    Some(Err(_)) | None => {
                        self.at = None;
                        return true;
                    }
                }
            }
            if StdInstant::now() >= until {
                return false;
            }
        }
    }
}

/// A directory that was found.
pub(super) struct Found {
    /// As it is told.
    pub path: PathBuf,
    /// What opening it said.
    pub directory: Result<Directory>,
    /// Who answers for it: its user; where another has made the user namespace, that one.
    pub user: u32,
    /// Whether it is in another mount namespace, or below another root.
    pub is_elsewhere: bool,
}

impl Found {
    /// The directory of `user` where everybody finds it.
    pub fn here(path: PathBuf, user: u32, directory: Result<Directory>) -> Found {
        Found {
            path,
            directory,
            user,
            is_elsewhere: false,
        }
    }
}

/// What a part of a look found.
#[derive(Default)]
pub(super) struct Part {
    pub found: Vec<Found>,
    /// What stood in the place of directories and was moved away.
    pub moved: Vec<Error>,
    /// Whether nothing is left to be looked at; the next look begins anew.
    pub is_all: bool,
}

/// The look that goes on.
pub(super) struct Finder {
    /// None where there is nothing to look for: who is not root, or named a directory.
    looking: Option<Looking>,
}

struct Looking {
    users: Walk,
    processes: Walk,
    has_users: bool,
    namespaces: Namespaces,
}

/// What was seen of mount namespaces, and of roots in them, in this look.
#[derive(Default)]
struct Namespaces {
    seen: HashSet<(PathBuf, PathBuf)>,
    memories: HashSet<(u64, u64)>,
    /// By the users who made them.
    counts: HashMap<u32, usize>,
}

impl Finder {
    pub fn new(asked: Option<&Path>) -> Finder {
        let looks = rustix::process::geteuid().is_root() && !places::is_named(asked);
        Finder {
            looking: looks.then(|| Looking {
                users: Walk::of(SHARED_MEMORY),
                processes: Walk::of("/proc"),
                has_users: false,
                namespaces: Namespaces::here(),
            }),
        }
    }

    /// Begins at the begin again.
    pub fn begin_anew(&mut self) {
        if let Some(looking) = &mut self.looking {
            *looking = Looking {
                users: Walk::of(SHARED_MEMORY),
                processes: Walk::of("/proc"),
                has_users: false,
                namespaces: Namespaces::here(),
            };
        }
    }

    /// Looks on, for so long.
    pub fn look(&mut self, slice: StdDuration) -> Part {
        let until = StdInstant::now() + slice;
        let mut part = Part::default();
        let Some(looking) = &mut self.looking else {
            part.is_all = true;
            return part;
        };
        if !looking.has_users {
            looking.has_users = looking.users.step(until, |name| user(name, &mut part));
        }
        if looking.has_users {
            let namespaces = &mut looking.namespaces;
            part.is_all = looking
                .processes
                .step(until, |name| namespaces.add(name, &mut part.found));
        }
        if part.is_all {
            self.begin_anew();
        }
        part
    }
}

/// The directories of other mount namespaces that are found in so long.
pub(super) fn elsewhere(asked: Option<&Path>, most: StdDuration) -> Vec<Found> {
    let mut found = Vec::new();
    if let Some(mut looking) = Finder::new(asked).looking {
        let namespaces = &mut looking.namespaces;
        let until = StdInstant::now() + most;
        looking
            .processes
            .step(until, |name| namespaces.add(name, &mut found));
    }
    found
}

/// A directory of another user's, or what stands in its place.
fn user(name: &OsStr, part: &mut Part) {
    let Some(user) = name.to_str().and_then(places::user) else {
        return;
    };
    let path = Path::new(SHARED_MEMORY).join(name);
    part.moved.extend(places::move_away(&path, user));
    if user != 0 {
        let directory = Directory::open(&path, user);
        part.found.push(Found::here(path, user, directory));
    }
}

impl Namespaces {
    /// All but our own are others.
    fn here() -> Namespaces {
        Namespaces {
            seen: root_of(Path::new("/proc/self")).into_iter().collect(),
            memories: places::identity(Path::new(SHARED_MEMORY))
                .into_iter()
                .collect(),
            counts: HashMap::new(),
        }
    }

    /// The directories that a process has in a mount namespace, or below a root, that was not seen
    /// yet.
    fn add(&mut self, process: &OsStr, found: &mut Vec<Found>) {
        if !process.as_encoded_bytes()[0].is_ascii_digit() {
            return;
        }
        let process = Path::new("/proc").join(process);
        let Some(root) = root_of(&process) else {
            return;
        };
        if self.seen.contains(&root) {
            return;
        }
        let maker = maker(&process);
        let count = self.counts.entry(maker).or_default();
        let most = match maker {
            0 => NAMESPACES_MAX,
            _ => NAMESPACES_OF_OTHERS_MAX,
        };
        if *count >= most {
            return;
        }
        *count += 1;
        self.seen.insert(root);
        self.add_root(&process.join("root"), maker, found);
    }

    /// Those of the mount namespace whose root this is, when its shared memory is another. Their
    /// names say who their users are in a user namespace of their own: here, whoever owns one is
    /// its user.
    fn add_root(&mut self, root: &Path, maker: u32, found: &mut Vec<Found>) {
        let Some(memory) = shared_memory(root) else {
            return;
        };
        let is_tmpfs = rustix::fs::fstatfs(&memory).is_ok_and(|facts| facts.f_type == TMPFS);
        let identity = rustix::fs::fstat(&memory).map(|facts| (facts.st_dev, facts.st_ino));
        if !is_tmpfs || !identity.is_ok_and(|identity| self.memories.insert(identity)) {
            return;
        }
        let by_fd = PathBuf::from(format!("/proc/self/fd/{}", memory.as_raw_fd()));
        let entries = fs::read_dir(&by_fd).into_iter().flatten().flatten();
        let names = entries.take(ENTRIES_MAX).map(|entry| entry.file_name());
        let names = names.filter(|name| name.to_str().and_then(places::user).is_some());
        for name in names.take(DIRECTORIES_MAX) {
            let path = by_fd.join(&name);
            if let Ok(facts) = fs::symlink_metadata(&path) {
                let told = root.join("dev/shm").join(&name);
                let directory = Directory::open(&path, facts.uid());
                found.push(Found {
                    directory: directory.map(|directory| directory.called(&told)),
                    path: told,
                    user: if maker == 0 { facts.uid() } else { maker },
                    is_elsewhere: true,
                });
            }
        }
    }
}

/// Whose files a process sees: its mount namespace, and where in it its root is (`chroot`).
fn root_of(process: &Path) -> Option<(PathBuf, PathBuf)> {
    let namespace = fs::read_link(process.join("ns/mnt")).ok()?;
    let root = fs::read_link(process.join("root")).ok()?;
    Some((namespace, root))
}

/// The shared memory below another root: a link in there leads to somewhere in there.
fn shared_memory(root: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, root, flags, Mode::empty()).ok()?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(&root, SHARED_MEMORY, flags, Mode::empty(), inside).ok()
}

/// The user who made the user namespace of a process; root of the one that nobody made, and where
/// the kernel does not say.
fn maker(process: &Path) -> u32 {
    let mut uid: libc::uid_t = 0;
    if let Ok(namespace) = File::open(process.join("ns/user")) {
        // SAFETY: the kernel writes one number, where there is room for it.
        let said =
            unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_OWNER_UID as _, &raw mut uid) };
        if said < 0 {
            return 0;
        }
    }
    uid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_on_where_it_stopped_and_sees_each_entry() {
        let mut walk = Walk::of("/proc/self/");
        let all = fs::read_dir("/proc/self/").expect("a folder").count();
        let mut seen = 0;
        let mut steps = 0;
        // A time that is over: each step is the shortest.
        while !walk.step(StdInstant::now(), |_| seen += 1) {
            steps += 1;
        }
        assert_eq!((seen, steps), (all, all / ENTRIES_OF_STEP));
    }
}
