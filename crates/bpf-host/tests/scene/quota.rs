//! A control group with a CPU quota.

use std::path::PathBuf;
use std::time::Duration;

use super::process::Process;

/// A control group with a quota, of either version; removed when dropped, when it is empty.
pub struct Quota {
    group: PathBuf,
    file_of_time: &'static str,
}

impl Quota {
    /// So much of each 100 ms for all that is in the group, which is `below` levels below the one
    /// that has the quota. None where the machine has no such groups.
    pub fn of(runtime: Duration, below: usize) -> Option<Quota> {
        let first_version = PathBuf::from("/sys/fs/cgroup/cpu");
        let unified = !first_version.exists();
        let root = if unified {
            PathBuf::from("/sys/fs/cgroup")
        } else {
            first_version
        };
        let mut group = root.join(format!("rtscope-test-quota-{}", std::process::id()));
        std::fs::create_dir(&group).ok()?;
        let us = runtime.as_micros();
        let (file, words) = match unified {
            true => ("cpu.max", format!("{us} 100000")),
            false => ("cpu.cfs_quota_us", us.to_string()),
        };
        let mut quota = Quota {
            group: group.clone(),
            file_of_time: if unified {
                "throttled_usec"
            } else {
                "throttled_time"
            },
        };
        std::fs::write(group.join(file), words).ok()?;
        for level in 0..below {
            group = group.join(format!("level-{level}"));
            std::fs::create_dir(&group).ok()?;
            quota.group = group.clone();
        }
        Some(quota)
    }

    pub fn take(&self, process: &Process) {
        std::fs::write(self.group.join("cgroup.procs"), process.pid.to_string()).unwrap();
    }

    /// How long, by the group's own count, quotas kept it; only of the group that has one.
    pub fn kept(&self) -> Duration {
        let stat = std::fs::read_to_string(self.group.join("cpu.stat")).unwrap();
        let line = stat
            .lines()
            .find(|line| line.starts_with(self.file_of_time));
        let value: u64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        match self.file_of_time {
            "throttled_usec" => Duration::from_micros(value),
            _ => Duration::from_nanos(value),
        }
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Who was in it is gone by then; a zombie may keep the folder for a moment.
        let mut group = self.group.clone();
        while group.components().any(|part| {
            part.as_os_str()
                .to_string_lossy()
                .starts_with("rtscope-test-quota-")
        }) {
            let gone = (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                std::fs::remove_dir(&group).is_ok()
            });
            if !gone || !group.pop() {
                return;
            }
        }
    }
}
