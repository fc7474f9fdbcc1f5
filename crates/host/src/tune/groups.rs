//! The limit on a control group's share of the CPU, in both versions, with those of the groups
//! above it: the least of them holds.

use std::path::{Path, PathBuf};

use super::Change;

/// What lifts every limit that a task is under.
pub(super) fn lift_quota(root: &Path, tid: i32) -> Vec<Change> {
    let cgroups = std::fs::read_to_string(root.join(format!("proc/{tid}/cgroup")));
    let cgroups = cgroups.unwrap_or_default();
    let mut changes = Vec::new();
    for line in cgroups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if controllers.is_empty() {
            let mounts = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
            let files = mounts
                .iter()
                .flat_map(|mount| above(&root.join(mount), path, "cpu.max"));
            changes.extend(
                files.filter_map(|file| write(file, "max", |text| text.starts_with("max"))),
            );
        } else if controllers.split(',').any(|one| one == "cpu") {
            let mounts = ["cpu", "cpu,cpuacct"].map(|name| root.join("sys/fs/cgroup").join(name));
            let files = mounts.iter().find(|mount| mount.is_dir());
            let files = files
                .into_iter()
                .flat_map(|mount| above(mount, path, "cpu.cfs_quota_us"));
            changes
                .extend(files.filter_map(|file| write(file, "-1", |text| text.starts_with('-'))));
        }
    }
    changes
}

/// The files of this name of a group and of all above it.
fn above(mount: &Path, path: &str, name: &str) -> Vec<PathBuf> {
    let folder = mount.join(path.trim_start_matches('/'));
    let folders = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(mount));
    folders.map(|folder| folder.join(name)).collect()
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
    fn every_limit_above_a_task_is_lifted_in_both_versions() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for (path, text) in [
            (
                "proc/7/cgroup",
                "2:cpu,cpuacct:/a/b\n1:memory:/x\n0::/s/t\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/s/t/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/s/cpu.max", "20000 100000\n"),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let changes = lift_quota(root, 7);
        let changes = changes.iter().map(ToString::to_string);
        let prefix = format!("{}/sys/fs/cgroup", root.display());
        let changes: Vec<String> = changes.map(|one| one.replace(&prefix, "")).collect();
        assert_eq!(
            changes,
            [
                "/cpu,cpuacct/a/cpu.cfs_quota_us: 50000 -> -1",
                "/s/cpu.max: 20000 100000 -> max"
            ]
        );
        assert!(lift_quota(root, 8).is_empty());
    }
}
