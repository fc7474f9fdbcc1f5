//! The memory that is left for us: of the machine, and of the control groups that we are in, which
//! end whoever takes more.

use std::path::{Path, PathBuf};

/// A control group's files, in both versions of the interface.
struct Interface {
    /// Where its line in `/proc/self/cgroup` has this,
    mark: &'static str,
    /// its folder is below this one.
    root: &'static str,
    most: &'static str,
    used: &'static str,
    /// Pages of files, which go when others are needed.
    given_back: &'static str,
}

const INTERFACES: [Interface; 2] = [
    Interface {
        mark: "0::",
        root: "/sys/fs/cgroup",
        most: "memory.max",
        used: "memory.current",
        given_back: "inactive_file ",
    },
    Interface {
        mark: ":memory:",
        root: "/sys/fs/cgroup/memory",
        most: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        given_back: "total_inactive_file ",
    },
];

/// Bytes that can still be taken; the most where nobody knows.
pub(crate) fn left() -> u64 {
    let machine = number(Path::new("/proc/meminfo"), "MemAvailable:");
    let machine = machine.map_or(u64::MAX, |kib| kib.saturating_mul(1024));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of = |interface: &Interface| {
        let mut lines = groups.lines();
        let path = lines.find_map(|line| line.split_once(interface.mark))?.1;
        let folder = PathBuf::from(format!("{}{path}", interface.root));
        let folders = folder.ancestors();
        let own = folders.take_while(|folder| folder.starts_with(interface.root));
        own.filter_map(|folder| left_in(folder, interface)).min()
    };
    let least = INTERFACES.iter().filter_map(of).min();
    machine.min(least.unwrap_or(u64::MAX))
}

/// What a group leaves to whoever is in it; none where it has no bound.
fn left_in(folder: &Path, interface: &Interface) -> Option<u64> {
    let most = number(&folder.join(interface.most), "")?;
    let used = number(&folder.join(interface.used), "")?;
    let files = number(&folder.join("memory.stat"), interface.given_back).unwrap_or(0);
    Some(most.saturating_sub(used.saturating_sub(files)))
}

/// The number behind `key`, which begins a line of a small file.
fn number(path: &Path, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let rest = lines.find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_no_more_than_the_machine_has_and_than_a_group_gives() {
        let machine = number(Path::new("/proc/meminfo"), "MemTotal:").expect("a size");
        assert!(left() > 0 && left() <= machine * 1024);
        let folder = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        let check = |most: &str, expect: Option<u64>| {
            put("memory.max", most);
            assert_eq!(left_in(folder.path(), &INTERFACES[0]), expect, "{most}");
        };
        put("memory.current", "700\n");
        put("memory.stat", "anon 600\ninactive_file 50\n");
        check("1000\n", Some(350));
        check("600\n", Some(0));
        check("max\n", None);
    }
}
