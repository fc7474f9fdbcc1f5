//! Instances of runs that were killed: found by name and owner, removed on request.

use std::fs;
use std::path::{Path, PathBuf};

use event::{Error, Result};

use crate::Tracefs;
use crate::instance;

/// An instance of rtscope whose process is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The name of the instance.
    pub name: String,
    /// The process that made it.
    pub pid: u32,
    path: PathBuf,
}

impl Leftover {
    /// Every instance named `rtscope-PID-N` whose process `PID` no longer exists.
    ///
    /// # Errors
    /// When the directory of instances cannot be read.
    pub fn list(tracefs: &Tracefs) -> Result<Vec<Leftover>> {
        Leftover::all(tracefs, |owner| {
            !Path::new("/proc").join(owner.to_string()).exists()
        })
    }

    fn all(tracefs: &Tracefs, is_meant: impl Fn(u32) -> bool) -> Result<Vec<Leftover>> {
        let directory = tracefs.root().join("instances");
        let entries = fs::read_dir(&directory)
            .map_err(|error| Error::io(format!("cannot read {}", directory.display()), error))?;
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let mut leftovers: Vec<_> = names
            .filter_map(|name| {
                let pid = owner(&name)?;
                is_meant(pid).then(|| Leftover {
                    path: directory.join(&name),
                    name,
                    pid,
                })
            })
            .collect();
        leftovers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(leftovers)
    }

    /// Every instance of the process `pid`, which is known to be gone: another may have its number
    /// by now, or it still waits for its parent.
    ///
    /// # Errors
    /// When the directory of instances cannot be read.
    pub fn of(tracefs: &Tracefs, pid: u32) -> Result<Vec<Leftover>> {
        Leftover::all(tracefs, |owner| owner == pid)
    }

    /// Removes it where nobody has its files open, and touches nothing of it otherwise: its process
    /// may live where its number means nothing to us. Whether it is gone.
    pub fn remove_if_unused(&self) -> bool {
        // The kernel switches its events off itself.
        fs::remove_dir(&self.path).is_ok()
    }

    /// Switches its events off and removes it.
    ///
    /// # Errors
    /// When the kernel refuses, because somebody has its files open.
    pub fn remove(&self) -> Result<()> {
        instance::remove(&self.path)
    }
}

/// The process in `rtscope-PID-N`; none when the name is not ours.
fn owner(name: &str) -> Option<u32> {
    let (pid, serial) = name.strip_prefix(instance::NAME_PREFIX)?.split_once('-')?;
    serial.parse::<u32>().ok()?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_our_own_pattern_are_ours() {
        assert_eq!(owner("rtscope-12-3"), Some(12));
        for name in [
            "rtscope",
            "rtscope-12",
            "rtscope-x-1",
            "rtscope-1-x",
            "other-1-2",
            "foo",
        ] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
