//! How deep idle CPUs may sleep while we measure.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use event::{Cpu, Duration, Error, ErrorKind, Result};

/// The kernel's power management quality of service: Documentation/power/pm_qos_interface.rst.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// While it lives, no CPU enters an idle state that takes longer than asked to leave.
#[derive(Debug)]
pub struct WakeLatency {
    /// The request ends when the kernel sees the file closed.
    _request: File,
}

impl WakeLatency {
    /// Asks for at most `latency`, in whole microseconds; zero forbids every idle state but the
    /// lightest. None where the kernel has no idle states to choose from.
    ///
    /// # Errors
    /// When the device is there and refuses.
    pub fn request(latency: Duration) -> Result<Option<WakeLatency>> {
        if !Path::new(DEVICE).exists() {
            return Ok(None);
        }
        let latency_us = i32::try_from(latency.as_ns() / 1000).unwrap_or(i32::MAX);
        let written = File::options()
            .write(true)
            .open(DEVICE)
            .and_then(|mut file| {
                file.write_all(&latency_us.to_ne_bytes())?;
                Ok(file)
            });
        let request = written.map_err(|error| {
            Error::io(
                format!("cannot limit the idle states through {DEVICE}"),
                error,
            )
            .fix("run it with sudo, or measure with --power as-it-is")
        })?;
        Ok(Some(WakeLatency { _request: request }))
    }
}

/// While it lives, some CPUs enter no idle state but the lighter ones; then all is as it was. A
/// kill that cannot be caught leaves them so.
#[derive(Debug, Default)]
pub struct IdleStates {
    /// Files, and what they held.
    changed: Vec<(PathBuf, String)>,
}

impl IdleStates {
    /// Forbids `cpus` all states behind the one numbered `deepest`, and with -1 all. `root` is the
    /// file system's.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where a CPU has no idle states, and what is refused: nothing is
    /// changed then.
    pub fn limit(root: &Path, cpus: &[Cpu], deepest: i64) -> Result<IdleStates> {
        let mut limited = IdleStates::default();
        for cpu in cpus {
            let folder = root.join(format!("sys/devices/system/cpu/cpu{}/cpuidle", cpu.0));
            let states =
                (0..).map(|number| (number, folder.join(format!("state{number}/disable"))));
            let states: Vec<_> = states.take_while(|(_, file)| file.exists()).collect();
            if states.is_empty() {
                let what = format!("{cpu} has no idle states to choose from");
                let found = format!("nothing in {}", folder.display());
                return Err(Error::new(ErrorKind::NotFound, what).found(found));
            }
            for (_, file) in states.into_iter().filter(|(number, _)| *number > deepest) {
                let cannot = |error| Error::io(format!("cannot write {}", file.display()), error);
                let before = std::fs::read_to_string(&file).map_err(cannot)?;
                std::fs::write(&file, "1").map_err(cannot)?;
                limited.changed.push((file, before.trim().to_owned()));
            }
        }
        Ok(limited)
    }
}

impl Drop for IdleStates {
    fn drop(&mut self) {
        for (file, before) in self.changed.drain(..).rev() {
            // A CPU that is offline now has none to put back.
            std::fs::write(file, before).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `disable` of each of the three states of CPU 1 holds while it is limited, and then.
    fn limited(deepest: i64) -> [String; 2] {
        let root = tempfile::tempdir().expect("a folder");
        let file = |state: u32| {
            let folder = format!("sys/devices/system/cpu/cpu1/cpuidle/state{state}");
            root.path().join(folder).join("disable")
        };
        for (state, disabled) in [(0, "0\n"), (1, "0\n"), (2, "1\n")] {
            std::fs::create_dir_all(file(state).parent().expect("a folder")).expect("made");
            std::fs::write(file(state), disabled).expect("written");
        }
        let read = || {
            let texts = (0..3).map(|state| std::fs::read_to_string(file(state)).expect("text"));
            texts.map(|text| text.trim().to_owned()).collect::<String>()
        };
        let limit = IdleStates::limit(root.path(), &[Cpu(1)], deepest).expect("states");
        let meanwhile = read();
        drop(limit);
        [meanwhile, read()]
    }

    #[test]
    fn deeper_idle_states_are_forbidden_while_it_lives() {
        let check = |deepest: i64, expect: &str| assert_eq!(limited(deepest), [expect, "001"]);
        check(-1, "111");
        check(0, "011");
        check(1, "001");
        check(7, "001");
    }

    #[test]
    fn a_cpu_without_idle_states_is_refused_and_the_others_are_put_back() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root
            .path()
            .join("sys/devices/system/cpu/cpu0/cpuidle/state0");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join("disable"), "0").expect("written");
        let refused = IdleStates::limit(root.path(), &[Cpu(0), Cpu(1)], -1);
        assert_eq!(refused.expect_err("none").kind(), ErrorKind::NotFound);
        let text = std::fs::read_to_string(folder.join("disable"));
        assert_eq!(text.expect("text"), "0");
    }
}
