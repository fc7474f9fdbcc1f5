//! Locks on single bytes of files, which say whose something is: nobody waits for them, and they
//! end with their holder, however that ends. Only who may write to a file can hold one, so that
//! nobody else keeps what is not theirs.

use std::io;
use std::os::fd::AsRawFd;

/// Takes the lock on the byte at `place` for as long as `file` is open; whether it was free.
pub(crate) fn take(file: &impl AsRawFd, place: u32) -> io::Result<bool> {
    match ask(file, libc::F_OFD_SETLK, &mut on(place, libc::F_WRLCK)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives it back.
pub(crate) fn give_back(file: &impl AsRawFd, place: u32) -> io::Result<()> {
    ask(file, libc::F_OFD_SETLK, &mut on(place, libc::F_UNLCK))
}

/// Whether another holds it.
pub(crate) fn is_taken(file: &impl AsRawFd, place: u32) -> io::Result<bool> {
    // Who may only read can lock against writers, but not against readers.
    let mut lock = on(place, libc::F_RDLCK);
    ask(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

fn on(place: u32, kind: libc::c_int) -> libc::flock {
    // SAFETY: a structure of integers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = libc::off_t::from(place);
    lock.l_len = 1;
    lock
}

fn ask(file: &impl AsRawFd, what: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the structure is there for as long as the call lasts.
    match unsafe { libc::fcntl(file.as_raw_fd(), what, lock) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_byte_is_one_holders_until_its_file_is_closed_and_readers_keep_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        File::create(&path).expect("a file");
        let open = || File::options().read(true).write(true).open(&path);
        let (one, other) = (open().expect("open"), open().expect("open"));
        assert!(take(&one, 1).expect("asked"));
        assert!(take(&one, 1).expect("asked"), "it is its own");
        assert!(!take(&other, 1).expect("asked"));
        assert!(take(&other, 2).expect("asked"), "another byte");
        let reader = File::open(&path).expect("open");
        assert!(is_taken(&reader, 1).expect("asked"));
        assert!(!is_taken(&reader, 0).expect("asked"));
        drop(one);
        assert!(take(&other, 1).expect("asked"));
        give_back(&other, 1).expect("given back");
        assert!(!is_taken(&reader, 1).expect("asked"));
        assert!(take(&reader, 1).is_err(), "it may not write");
        let mut lock = on(1, libc::F_RDLCK);
        ask(&reader, libc::F_OFD_SETLK, &mut lock).expect("a reader's lock");
        assert!(!is_taken(&other, 1).expect("asked"), "it keeps nothing");
    }
}
