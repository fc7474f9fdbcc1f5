//! Where directories of rings are: that of our user; for root those of all users.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use ring::Directory;
use rustix::fs::{AtFlags, CWD, Mode, RenameFlags};

/// Where the directories of users are.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
/// How their names begin; the user's id follows.
const PREFIX: &str = "rtscope-";
/// How often a place is taken that somebody else takes again and again.
const TRIES_MAX: u32 = 100;

/// A directory, its owner, and whether it is ours.
type Found = (PathBuf, u32, bool);

/// The directories to look into, with their owners, and whether each is ours: the one that was
/// asked for, else that of `RTSCOPE_DIR`, else that of our user; root looks into those of all.
pub(crate) fn directories(asked: Option<&Path>) -> Vec<Found> {
    let (own, uid) = own(asked);
    let mut all = vec![(own, uid, true)];
    if uid == 0 && !is_named(asked) {
        let others = users_below(Path::new(SHARED_MEMORY)).filter(|(_, owner)| *owner != uid);
        all.extend(others.map(|(path, owner)| (path, owner, false)));
    }
    all
}

/// The directory that is ours, and our user: the one that was named, else that of our user.
pub(crate) fn own(asked: Option<&Path>) -> (PathBuf, u32) {
    let uid = rustix::process::geteuid().as_raw();
    (named(asked).unwrap_or_else(|| own_directory(uid)), uid)
}

/// The directory that was named: by `asked`, else by `RTSCOPE_DIR`.
fn named(asked: Option<&Path>) -> Option<PathBuf> {
    let asked = asked.map(Path::to_owned);
    asked.or_else(|| std::env::var_os("RTSCOPE_DIR").map(PathBuf::from))
}

/// Whether there is such a directory: then it is the only one.
pub(crate) fn is_named(asked: Option<&Path>) -> bool {
    named(asked).is_some()
}

fn own_directory(uid: u32) -> PathBuf {
    Path::new(SHARED_MEMORY).join(format!("{PREFIX}{uid}"))
}

/// The user whose directory is called so.
pub(super) fn user(name: &str) -> Option<u32> {
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

/// Opens our own directory, which is made where it is not there. As root, what others put in its
/// place is moved away, which is told in `moved`.
pub(super) fn open_own(path: &Path, uid: u32, moved: &mut Vec<Error>) -> Result<Directory> {
    for _ in 0..TRIES_MAX {
        match Directory::open_or_make(path, uid) {
            // Who made it anew behind our back may do so once more.
            Err(error) => match uid == 0 && path == own_directory(uid) {
                true => moved.push(move_away(path, uid).ok_or(error)?),
                false => return Err(error),
            },
            opened => return opened,
        }
    }
    Directory::open_or_make(path, uid)
}

/// As root, moves out of the way what stands where the directory of a user belongs and is
/// another's: nobody can make that user's programs or recorders do without rings. Gives what was
/// moved.
pub(crate) fn make_way(asked: Option<&Path>) -> Vec<Error> {
    if !rustix::process::geteuid().is_root() || is_named(asked) {
        return Vec::new();
    }
    let users = users_below(Path::new(SHARED_MEMORY));
    users
        .filter_map(|(path, user)| move_away(&path, user))
        .collect()
}

/// The same of one. What root made is not an attack.
pub(super) fn move_away(path: &Path, user: u32) -> Option<Error> {
    let owner = fs::symlink_metadata(path).ok()?.uid();
    if owner == user || owner == 0 {
        return None;
    }
    let what = format!("{} was not of user {user}", path.display());
    let error = Error::new(ErrorKind::PermissionDenied, what);
    Some(match put_aside(path, user) {
        Ok(aside) => error
            .found(format!(
                "it was made by user {owner}, and is now {}",
                aside.display()
            ))
            .fix("ask that user; remove it"),
        Err(errno) => error.found(format!("it was made by user {owner}; {errno}")),
    })
}

/// Gives what is at `path` another name. Root gets a directory of its own there in the same moment:
/// nobody comes in between.
fn put_aside(path: &Path, user: u32) -> rustix::io::Result<PathBuf> {
    for _ in 0..TRIES_MAX {
        // A name that nobody can have taken before.
        let drawn = RandomState::new().build_hasher().finish();
        let name = format!(".not-of-user-{user}-{drawn:x}");
        let aside = Path::new(SHARED_MEMORY).join(name);
        let moved = match user {
            0 => exchange(path, &aside),
            _ => rustix::fs::renameat_with(CWD, path, CWD, &aside, RenameFlags::NOREPLACE),
        };
        match moved {
            Err(rustix::io::Errno::EXIST) => (),
            moved => return moved.map(|()| aside),
        }
    }
    Err(rustix::io::Errno::EXIST)
}

fn exchange(path: &Path, aside: &Path) -> rustix::io::Result<()> {
    rustix::fs::mkdirat(CWD, aside, Mode::RWXU)?;
    let moved = rustix::fs::renameat_with(CWD, path, CWD, aside, RenameFlags::EXCHANGE);
    if moved.is_err() {
        // It is gone by itself; so is ours.
        let _ = rustix::fs::unlinkat(CWD, aside, AtFlags::REMOVEDIR);
    }
    moved
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
