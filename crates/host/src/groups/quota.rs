//! For how long control groups were out of their quota of CPU time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use event::Duration;

use super::hierarchy::{Hierarchy, hierarchies};

/// The groups of processes from their own up to the roots, those that count it: each group's
/// folder, and for how long it was out of its quota since it was made, summed over CPUs.
pub fn out_of_quota(root: &Path, pids: impl Iterator<Item = u32>) -> BTreeMap<PathBuf, Duration> {
    let groups_of = |pid| std::fs::read_to_string(root.join(format!("proc/{pid}/cgroup")));
    let texts: BTreeSet<String> = pids.filter_map(|pid| groups_of(pid).ok()).collect();
    let hierarchies = hierarchies(root);
    let mut found = BTreeMap::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let mut parts = line.splitn(3, ':');
        let number = parts.next().and_then(|word| word.parse().ok());
        let is_it = |hierarchy: &&Hierarchy| Some(hierarchy.number) == number;
        let hierarchy = hierarchies.iter().find(is_it);
        let Some((hierarchy, path)) = hierarchy.zip(parts.nth(1)) else {
            continue;
        };
        for path in Path::new(path).ancestors() {
            let path = path.strip_prefix("/").unwrap_or(path);
            let folder = hierarchy.mount.join(path);
            if found.contains_key(&folder) {
                continue;
            }
            let inside = folder.strip_prefix("/").unwrap_or(&folder);
            let stat = std::fs::read_to_string(root.join(inside).join("cpu.stat"));
            if let Some(time) = stat.ok().and_then(|text| parse(&text)) {
                found.insert(folder, time);
            }
        }
    }
    found
}

/// Version 2 counts microseconds, version 1 nanoseconds.
fn parse(stat: &str) -> Option<Duration> {
    stat.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", us) => us.trim().parse().ok().map(Duration::from_us),
        ("throttled_time", ns) => ns.trim().parse().ok().map(Duration::from_ns),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    #[test]
    fn each_group_above_a_process_is_told_in_both_versions() {
        let machine = machine(&["cg/cpu/a/b", "cg/unified/x/y", "proc/7"]);
        let root = machine.path();
        let write =
            |path: &str, text: &str| std::fs::write(root.join(path), text).expect("written");
        write(
            "proc/7/cgroup",
            "7:cpu,cpuacct:/a/b\n2:name=systemd:/\n0::/x/y\n",
        );
        write(
            "cg/cpu/a/b/cpu.stat",
            "nr_periods 4\nnr_throttled 2\nthrottled_time 5000\n",
        );
        write(
            "cg/unified/x/cpu.stat",
            "usage_usec 1\nthrottled_usec 6\nnr_bursts 0\n",
        );
        write("cg/unified/x/y/cpu.stat", "usage_usec 1\n");
        let found = out_of_quota(root, [7].into_iter()).into_iter();
        let found: Vec<(String, i64)> = found
            .map(|(folder, time)| (folder.display().to_string(), time.as_ns()))
            .collect();
        let expect = [("/cg/cpu/a/b", 5_000), ("/cg/unified/x", 6_000)];
        assert_eq!(found, expect.map(|(folder, ns)| (folder.to_owned(), ns)));
        assert_eq!(out_of_quota(root, [8].into_iter()), BTreeMap::new());
    }
}
