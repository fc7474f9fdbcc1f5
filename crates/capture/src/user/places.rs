//! Where directories of rings are: that of our user; for root those of all users, also in other
//! mount namespaces, as containers have them.

use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use event::{Error, ErrorKind, Result};
use ring::Directory;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, ResolveFlags};

/// Where the directories of users are.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
/// How their names begin; the user's id follows.
const PREFIX: &str = "rtscope-";
/// More mount namespaces are not looked into.
const NAMESPACES_MAX: usize = 256;
/// Of one, so many directories.
const DIRECTORIES_MAX: usize = 64;
/// The file system that shared memory is.
const TMPFS: i64 = 0x0102_1994;

/// A directory, its owner, and whether it is ours.
type Found = (PathBuf, u32, bool);

/// The directories to look into, with their owners, and whether each is ours: the one that was
/// asked for, else that of `RTSCOPE_DIR`, else that of our user; root looks into those of all.
pub(crate) fn directories(asked: Option<&Path>) -> Vec<Found> {
    let uid = rustix::process::geteuid().as_raw();
    if let Some(path) = named(asked) {
        return vec![(path, uid, true)];
    }
    let own = own_directory(uid);
    let mut all = vec![(own, uid, true)];
    if uid == 0 {
        let others = users_below(Path::new(SHARED_MEMORY)).filter(|(_, owner)| *owner != uid);
        all.extend(others.map(|(path, owner)| (path, owner, false)));
    }
    all
}

/// A directory in the shared memory of another mount namespace.
pub(super) struct Elsewhere {
    /// As it is told.
    pub path: PathBuf,
    pub owner: u32,
    /// Its parent, which no link on the way there can exchange.
    memory: Rc<OwnedFd>,
}

impl Elsewhere {
    /// Opens it.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn open(&self) -> Result<Directory> {
        let name = self.path.file_name().unwrap_or_default();
        let parent = format!("/proc/self/fd/{}", self.memory.as_raw_fd());
        let opened = Directory::open(&Path::new(&parent).join(name), self.owner)?;
        Ok(opened.called(&self.path))
    }
}

/// The directory that was named: by `asked`, else by `RTSCOPE_DIR`.
fn named(asked: Option<&Path>) -> Option<PathBuf> {
    let asked = asked.map(Path::to_owned);
    asked.or_else(|| std::env::var_os("RTSCOPE_DIR").map(PathBuf::from))
}

fn own_directory(uid: u32) -> PathBuf {
    Path::new(SHARED_MEMORY).join(format!("{PREFIX}{uid}"))
}

/// The user whose directory is called so.
fn user(name: &str) -> Option<u32> {
    let number = name.strip_prefix(PREFIX)?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| digits)
}

/// The directories of users below `folder`, with the users.
fn users_below(folder: &Path) -> impl Iterator<Item = (PathBuf, u32)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let user = user(entry.file_name().to_str()?)?;
        Some((entry.path(), user))
    })
}

/// What tells a file from all others, as it is now.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    let facts = fs::symlink_metadata(path).ok()?;
    Some((facts.dev(), facts.ino()))
}

/// The directories of rings in the shared memory of other mount namespaces. Their names say who
/// their users are in a user namespace of their own: here, whoever owns one is its user. None for
/// who is not root, or named a directory.
pub(super) fn elsewhere(asked: Option<&Path>) -> Vec<Elsewhere> {
    if !rustix::process::geteuid().is_root() || named(asked).is_some() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut seen: HashSet<PathBuf> = fs::read_link("/proc/self/ns/mnt").into_iter().collect();
    let mut memories: HashSet<(u64, u64)> =
        identity(Path::new(SHARED_MEMORY)).into_iter().collect();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_process = process.file_name().as_encoded_bytes()[0].is_ascii_digit();
        let Some(namespace) = is_process
            .then(|| fs::read_link(process.path().join("ns/mnt")).ok())
            .flatten()
        else {
            continue;
        };
        if seen.len() > NAMESPACES_MAX || !seen.insert(namespace) {
            continue;
        }
        found.extend(in_root(&process.path().join("root"), &mut memories));
    }
    found
}

/// The same of the mount namespace whose root this is, when its shared memory is another.
fn in_root(root: &Path, memories: &mut HashSet<(u64, u64)>) -> Vec<Elsewhere> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root_fd) = rustix::fs::openat(CWD, root, flags, Mode::empty()) else {
        return Vec::new();
    };
    // A link in there leads to somewhere in there.
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let memory = rustix::fs::openat2(
        &root_fd,
        SHARED_MEMORY,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        inside,
    );
    let Ok(memory) = memory else {
        return Vec::new();
    };
    let is_tmpfs = rustix::fs::fstatfs(&memory).is_ok_and(|facts| facts.f_type == TMPFS);
    let identity = rustix::fs::fstat(&memory).map(|facts| (facts.st_dev, facts.st_ino));
    if !is_tmpfs || !identity.is_ok_and(|identity| memories.insert(identity)) {
        return Vec::new();
    }
    let by_fd = PathBuf::from(format!("/proc/self/fd/{}", memory.as_raw_fd()));
    let names = users_below(&by_fd).take(DIRECTORIES_MAX);
    let memory = Rc::new(memory);
    let found = |(path, _): (PathBuf, u32)| {
        Some(Elsewhere {
            owner: fs::symlink_metadata(&path).ok()?.uid(),
            path: root.join("dev/shm").join(path.file_name()?),
            memory: Rc::clone(&memory),
        })
    };
    names.filter_map(found).collect()
}

/// As root, moves out of the way what stands where the directory of a user belongs and is
/// another's: nobody can make that user's programs or recorders do without rings. Gives what was
/// moved.
pub(crate) fn make_way(asked: Option<&Path>) -> Vec<Error> {
    if !rustix::process::geteuid().is_root() || named(asked).is_some() {
        return Vec::new();
    }
    let users = users_below(Path::new(SHARED_MEMORY));
    users
        .filter_map(|(path, user)| move_away(&path, user))
        .collect()
}

fn move_away(path: &Path, user: u32) -> Option<Error> {
    let owner = fs::symlink_metadata(path).ok()?.uid();
    // What root made is not an attack.
    if owner == user || owner == 0 {
        return None;
    }
    let name = format!(".not-of-user-{user}-{}-{owner}", std::process::id());
    let aside = Path::new(SHARED_MEMORY).join(name);
    let what = format!("{} was not of user {user}", path.display());
    let error = Error::new(ErrorKind::PermissionDenied, what);
    let flags = RenameFlags::NOREPLACE;
    Some(
        match rustix::fs::renameat_with(CWD, path, CWD, &aside, flags) {
            Ok(()) => error
                .found(format!(
                    "it was made by user {owner}, and is now {}",
                    aside.display()
                ))
                .fix("ask that user; remove it"),
            Err(errno) => error.found(format!("it was made by user {owner}; {errno}")),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_after_its_user_and_nothing_else_is_one() {
        let check = |name: &str, expect: Option<u32>| assert_eq!(user(name), expect, "{name}");
        check("rtscope-0", Some(0));
        check("rtscope-1000", Some(1000));
        for name in [
            "rtscope-",
            "rtscope-+5",
            "rtscope-5x",
            "rtscope-99999999999",
            "x-5",
        ] {
            check(name, None);
        }
    }
}
