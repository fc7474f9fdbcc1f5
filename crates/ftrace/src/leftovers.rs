//! Instances of runs that were killed: found by name and owner, removed on request.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use event::{Error, Result};

use crate::Tracefs;
use crate::instance;

/// A process that began no later than so after its instance may have made it: clocks are read in
/// steps of ten milliseconds.
const SAME_TIME: Duration = Duration::from_secs(1);
/// So often it is tried, five milliseconds apart.
const REMOVE_TRIES: usize = 20;

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
    /// Every instance named `rtscope-PID-N` whose process `PID` no longer exists: there is none of
    /// that number, or one that began after the instance was made.
    ///
    /// # Errors
    /// When the directory of instances cannot be read.
    pub fn list(tracefs: &Tracefs) -> Result<Vec<Leftover>> {
        Leftover::all(tracefs, |owner, path| match began(owner) {
            None => true,
            Some(began) => made(path).is_some_and(|made| began > made + SAME_TIME),
        })
    }

    fn all(tracefs: &Tracefs, is_meant: impl Fn(u32, &Path) -> bool) -> Result<Vec<Leftover>> {
        let directory = tracefs.root().join("instances");
        let entries = fs::read_dir(&directory)
            .map_err(|error| Error::io(format!("cannot read {}", directory.display()), error))?;
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let mut leftovers: Vec<_> = names
            .filter_map(|name| {
                let (pid, path) = (owner(&name)?, directory.join(&name));
                is_meant(pid, &path).then_some(Leftover { name, pid, path })
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
        Leftover::all(tracefs, |owner, _| owner == pid)
    }

    /// Removes it where nobody has its files open, and touches nothing of it otherwise: its process
    /// may live where its number means nothing to us. Whether it is gone.
    pub fn remove_if_unused(&self) -> bool {
        // The kernel switches its events off itself.
        fs::remove_dir(&self.path).is_ok()
    }

    /// As [`Leftover::remove_if_unused`], and waits a moment for who reads it to be gone.
    ///
    /// # Errors
    /// When the kernel refuses for another reason than that somebody has its files open.
    pub fn remove(&self) -> Result<bool> {
        for _ in 0..REMOVE_TRIES {
            match fs::remove_dir(&self.path) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => {
                    let what = format!("cannot remove the instance {}", self.path.display());
                    return Err(Error::io(what, error).fix("run it with sudo"));
                }
            }
        }
        Ok(false)
    }
}

/// When a process began; none when there is none, or only its death is to be heard of.
fn began(pid: u32) -> Option<SystemTime> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may hold anything; from the state on, words have their places (proc(5)).
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split_whitespace();
    let is_dead = matches!(words.next(), Some("Z" | "X"));
    let ticks: u64 = words.nth(18)?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let age = uptime - ticks as f64 / per_second as f64;
    (!is_dead).then(|| SystemTime::now() - Duration::from_secs_f64(age.max(0.0)))
}

/// When an instance was made: nothing changes its folder afterwards.
fn made(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
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
    fn a_process_began_when_it_did_and_a_dead_one_never() {
        let before = SystemTime::now() - Duration::from_millis(50);
        let mut child = std::process::Command::new("sleep")
            .arg("9")
            .spawn()
            .expect("starts");
        let found = began(child.id()).expect("it lives");
        assert!(found > before - SAME_TIME && found < SystemTime::now() + SAME_TIME);
        child.kill().expect("killed");
        let is_over = || began(child.id()).is_none();
        while !is_over() {
            std::thread::yield_now();
        }
        child.wait().expect("ended");
        assert_eq!(began(child.id()), None);
    }

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
