//! The limit on a control group's share of the CPU, in both versions, with those of the groups
//! above it: the least of them holds.

use std::path::{Path, PathBuf};

use super::Change;
use crate::groups::{folders_of, hierarchies};

/// What lifts every limit that a task is under.
pub(super) fn lift_quota(root: &Path, tid: i32) -> Vec<Change> {
    let cgroups = std::fs::read_to_string(root.join(format!("proc/{tid}/cgroup")));
    let cgroups = cgroups.unwrap_or_default();
    let hierarchies = hierarchies(root);
    let folders = cgroups
        .lines()
        .flat_map(|line| folders_of(&hierarchies, line));
    let mut changes = Vec::new();
    for folder in folders {
        let folder = root.join(folder.strip_prefix("/").unwrap_or(&folder));
        let second = folder.join("cpu.max");
        changes.extend(write(second, "max", |text| text.starts_with("max")));
        let first = folder.join("cpu.cfs_quota_us");
        changes.extend(write(first, "-1", |text| text.starts_with('-')));
    }
    changes
}

fn write(path: PathBuf, after: &str, is_so: fn(&str) -> bool) -> Option<Change> {
    let before = std::fs::read_to_string(&path)
        .ok()
        .filter(|text| !is_so(text))?;
    Some(Change::Write {
        path,
        before,
        after: after.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_above_a_task_is_lifted_wherever_its_version_is_mounted() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for (path, text) in [
            (
                "proc/7/cgroup",
                "2:cpu,cpuacct:/a/b\n1:memory:/x\n0::/s/t\n",
            ),
            (
                "proc/self/mounts",
                "cgroup /mnt/cg1 cgroup rw,cpu,cpuacct 0 0\ncgroup2 /cgroup cgroup2 rw 0 0\n",
            ),
            ("proc/self/cgroup", "2:cpu,cpuacct:/\n1:memory:/\n0::/\n"),
            ("mnt/cg1/a/b/cpu.cfs_quota_us", "-1\n"),
            ("mnt/cg1/a/cpu.cfs_quota_us", "50000\n"),
            ("cgroup/s/t/cpu.max", "max 100000\n"),
            ("cgroup/s/cpu.max", "20000 100000\n"),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let changes = lift_quota(root, 7);
        let changes = changes.iter().map(ToString::to_string);
        let prefix = root.display().to_string();
        let changes: Vec<String> = changes.map(|one| one.replace(&prefix, "")).collect();
        assert_eq!(
            changes,
            [
                "/mnt/cg1/a/cpu.cfs_quota_us: 50000 -> -1",
                "/cgroup/s/cpu.max: 20000 100000 -> max"
            ]
        );
        assert!(lift_quota(root, 8).is_empty());
    }
}
