//! Files that a recorder makes in the directory of a user.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Opens or makes `name` in `directory`. In the shared memory of a user namespace nobody can own a
/// file who has no number there, as root of a rootless container's host: it is made as the user
/// whose directory it is.
pub(crate) fn make(
    directory: &OwnedFd,
    name: &str,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CREATE | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, name, flags, mode) {
        Err(Errno::OVERFLOW) => {
            let _owner = AsOwner::of(directory.as_fd())?;
            rustix::fs::openat(directory, name, flags, mode)
        }
        made => made,
    }
}

/// While this is there, files that this thread makes are another's.
struct AsOwner {
    user_before: libc::uid_t,
    group_before: libc::gid_t,
}

impl AsOwner {
    fn of(directory: BorrowedFd<'_>) -> Result<AsOwner, Errno> {
        let facts = rustix::fs::fstat(directory)?;
        // The group first: afterwards it takes a right that only root has.
        // SAFETY: both calls take a number, and change this thread alone.
        unsafe {
            let group_before = libc::setfsgid(facts.st_gid) as libc::gid_t;
            let user_before = libc::setfsuid(facts.st_uid) as libc::uid_t;
            Ok(AsOwner {
                user_before,
                group_before,
            })
        }
    }
}

impl Drop for AsOwner {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe {
            libc::setfsuid(self.user_before);
            libc::setfsgid(self.group_before);
        }
    }
}
