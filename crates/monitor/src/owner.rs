//! Who writes a store: one process, which holds a lock on a file beside it and has its number in
//! there.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use event::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, flock};

/// Holds the lock until it is dropped; the kernel takes it back when the process dies.
#[derive(Debug)]
pub(crate) struct Owner {
    _file: File,
}

impl Owner {
    /// Takes the lock of the store at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] names the process that has it.
    pub(crate) fn take(path: &Path) -> Result<Owner> {
        let mut name = path.as_os_str().to_owned();
        name.push("-owner");
        let failed = |cause| {
            Error::io(format!("cannot lock the store {}", path.display()), cause)
                .fix("make its folder, or name another store with --store FILE")
        };
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&name)
            .map_err(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            let what = format!("another monitor writes the store {}", path.display());
            return Err(Error::new(ErrorKind::AlreadyExists, what)
                .found(named(text.trim()))
                .fix("end that one, or give this one a store of its own with --store FILE"));
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Owner { _file: file })
    }
}

/// A process by its number, with its name where it can be had.
fn named(pid: &str) -> String {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match comm.trim_end() {
        "" => format!("process {pid}"),
        comm => format!("{comm} (pid {pid})"),
    }
}
