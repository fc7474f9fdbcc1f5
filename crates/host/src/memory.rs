//! The memory that is left for this process: of the machine, and of the control groups that it is
//! in, which end whoever takes more.

use std::path::{Path, PathBuf};

use crate::groups::{folders_of, hierarchies};

/// The files of a control group that say how much its members may have, and have.
struct Interface {
    most: &'static str,
    used: &'static str,
    /// Begins the line of pages of files, which go when others are needed.
    given_back: &'static str,
}

/// Of both versions.
const INTERFACES: [Interface; 2] = [
    Interface {
        most: "memory.max",
        used: "memory.current",
        given_back: "inactive_file ",
    },
    Interface {
        most: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        given_back: "total_inactive_file ",
    },
];

/// Bytes that can still be taken on the machine below `root`; the most where nobody knows.
pub fn left(root: &Path) -> u64 {
    let machine = number(&root.join("proc/meminfo"), "MemAvailable:");
    let machine = machine.map_or(u64::MAX, |kib| kib.saturating_mul(1024));
    let own = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let hierarchies = hierarchies(root);
    let folders = own.lines().flat_map(|line| folders_of(&hierarchies, line));
    let least = folders.filter_map(|folder| left_in(root, folder)).min();
    machine.min(least.unwrap_or(u64::MAX))
}

/// What a group leaves to whoever is in it; none where it has no bound.
fn left_in(root: &Path, folder: PathBuf) -> Option<u64> {
    let folder = root.join(folder.strip_prefix("/").unwrap_or(&folder));
    INTERFACES.iter().find_map(|interface| {
        let most = number(&folder.join(interface.most), "")?;
        let used = number(&folder.join(interface.used), "")?;
        let files = number(&folder.join("memory.stat"), interface.given_back).unwrap_or(0);
        Some(most.saturating_sub(used.saturating_sub(files)))
    })
}

/// The number behind `key`, which begins a line of a small file.
fn number(path: &Path, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left on a machine with these files.
    fn check(files: &[(&str, &str)], expect: u64) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        assert_eq!(left(root.path()), expect, "{files:?}");
    }

    #[test]
    fn what_is_left_is_no_more_than_the_machine_has_and_than_any_group_gives() {
        check(&[], u64::MAX);
        let machine = ("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    5 kB\n");
        check(&[machine], 5 * 1024);
        let second = [
            ("proc/self/mounts", "cgroup2 /groups cgroup2 rw 0 0\n"),
            ("proc/self/cgroup", "0::/a/b\n"),
            ("groups/a/b/memory.max", "max\n"),
            ("groups/a/b/memory.current", "1\n"),
            ("groups/a/memory.max", "1000\n"),
            ("groups/a/memory.current", "700\n"),
            ("groups/a/memory.stat", "anon 600\ninactive_file 50\n"),
        ];
        check(&[&[machine], &second[..]].concat(), 350);
        check(&[("proc/meminfo", "MemAvailable: 0 kB\n")], 0);
        // Wherever it is mounted, and beside other controllers.
        let first = [
            (
                "proc/self/mounts",
                "cgroup /cg/all cgroup rw,cpu,memory 0 0\n",
            ),
            ("proc/self/cgroup", "4:cpu,memory:/a\n0::/\n"),
            ("cg/all/a/memory.limit_in_bytes", "1000\n"),
            ("cg/all/a/memory.usage_in_bytes", "1200\n"),
            ("cg/all/a/memory.stat", "total_inactive_file 300\n"),
        ];
        check(&first, 100);
    }
}
