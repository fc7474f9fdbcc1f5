//! For how long control groups were out of their quota of CPU time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use event::{Duration, Tid};

use super::hierarchy::{folders_of, hierarchies};

/// The groups of processes from their own up to the roots, those that count it: each group's
/// folder, and for how long it was out of its quota since it was made, summed over CPUs.
pub fn out_of_quota(root: &Path, pids: impl Iterator<Item = u32>) -> BTreeMap<PathBuf, Duration> {
    let groups_of = |pid| std::fs::read_to_string(root.join(format!("proc/{pid}/cgroup")));
    let texts: BTreeSet<String> = pids.filter_map(|pid| groups_of(pid).ok()).collect();
    let hierarchies = hierarchies(root);
    let mut found = BTreeMap::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        for folder in folders_of(&hierarchies, line) {
            if found.contains_key(&folder) {
                continue;
            }
            let inside = folder.strip_prefix("/").unwrap_or(&folder);
            let stat = std::fs::read_to_string(root.join(inside).join("cpu.stat"));
            if let Some(time) = stat.ok().and_then(|text| throttled(&text)) {
                found.insert(folder, time);
            }
        }
    }
    found
}

/// What quotas kept tasks from since the look before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// All groups' time, summed over CPUs.
    pub total: Duration,
    /// Of each thread in such a group, the time of its group and of those above that.
    pub of_threads: BTreeMap<Tid, Duration>,
}

impl Kept {
    /// Adds what another look found.
    pub fn add(&mut self, other: &Kept) {
        self.total += other.total;
        for (thread, time) in &other.of_threads {
            *self.of_threads.entry(*thread).or_default() += *time;
        }
    }
}

/// Looks again and again at how long the groups of a machine were out of their quotas.
#[derive(Debug)]
pub struct Quotas {
    root: PathBuf,
    /// What each group had counted at the last look.
    counts: BTreeMap<PathBuf, Duration>,
    /// The threads in each group that was ever out of its quota, at the last look.
    threads: BTreeMap<PathBuf, BTreeSet<Tid>>,
}

impl Quotas {
    /// The machine below `root`, of which what comes from now on counts.
    pub fn begin(root: &Path) -> Quotas {
        let mut quotas = Quotas {
            root: root.to_owned(),
            counts: BTreeMap::new(),
            threads: BTreeMap::new(),
        };
        quotas.look(Duration::ZERO);
        quotas
    }

    /// What was counted since the last look, which was `since` ago: a group that was removed
    /// meanwhile, and had been out of its quota before, may have been so all that time.
    pub fn look(&mut self, since: Duration) -> Kept {
        let counts = counts(&self.root);
        let ever = counts.iter().filter(|(_, count)| **count > Duration::ZERO);
        let threads: BTreeMap<PathBuf, BTreeSet<Tid>> = ever
            .map(|(folder, _)| (folder.clone(), threads(folder)))
            .collect();
        let mut kept = Kept::default();
        let gone = self
            .threads
            .keys()
            .filter(|folder| !counts.contains_key(*folder));
        let gone = gone.map(|folder| (folder, since));
        let grown = counts.iter().map(|(folder, count)| {
            let before = self.counts.get(folder).copied().unwrap_or_default();
            (folder, (*count - before).max(Duration::ZERO))
        });
        for (folder, grown) in grown
            .chain(gone)
            .filter(|(_, grown)| *grown > Duration::ZERO)
        {
            kept.total += grown;
            // Who has left, or ended, was kept by it as well.
            let of_both = [&self.threads, &threads].into_iter();
            let members: BTreeSet<Tid> = of_both
                .filter_map(|threads| threads.get(folder))
                .flatten()
                .copied()
                .collect();
            for tid in members {
                *kept.of_threads.entry(tid).or_default() += grown;
            }
        }
        (self.counts, self.threads) = (counts, threads);
        kept
    }
}

/// All groups that count it, by their folders.
fn counts(root: &Path) -> BTreeMap<PathBuf, Duration> {
    let mut found = BTreeMap::new();
    for hierarchy in hierarchies(root) {
        let mount = hierarchy
            .mount
            .strip_prefix("/")
            .unwrap_or(&hierarchy.mount);
        let mount = root.join(mount);
        // Of the first version one hierarchy has it.
        if !mount.join("cpu.stat").exists() {
            continue;
        }
        let mut folders = vec![mount];
        while let Some(folder) = folders.pop() {
            let stat = std::fs::read_to_string(folder.join("cpu.stat"));
            folders.extend(inside(&folder));
            if let Some(count) = stat.ok().and_then(|text| throttled(&text)) {
                found.insert(folder, count);
            }
        }
    }
    found
}

/// The groups in a group.
fn inside(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.map(|entry| entry.path())
}

/// The threads in a group and in those below it.
fn threads(folder: &Path) -> BTreeSet<Tid> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        // Version 2, and version 1.
        let text = read("cgroup.threads").or_else(|| read("tasks"));
        let text = text.unwrap_or_default();
        found.extend(text.lines().filter_map(|line| line.parse().ok()).map(Tid));
        folders.extend(inside(&folder));
    }
    found
}

/// Version 2 counts microseconds, version 1 nanoseconds.
pub(super) fn throttled(stat: &str) -> Option<Duration> {
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

    #[test]
    fn what_a_group_counts_more_kept_those_in_it_and_below_also_who_has_left() {
        let machine = machine(&["cg/unified/a/b", "cg/unified/c", "cg/cpu/d", "proc/7"]);
        let root = machine.path();
        let write =
            |path: &str, text: &str| std::fs::write(root.join(path), text).expect("written");
        let count = |path: &str, us: u64| {
            write(
                &format!("cg/unified/{path}cpu.stat"),
                &format!("usage_usec 1\nthrottled_usec {us}\n"),
            );
        };
        count("", 0);
        count("a/", 100);
        count("a/b/", 5);
        count("c/", 0);
        write("cg/cpu/cpu.stat", "nr_throttled 0\nthrottled_time 0\n");
        write("cg/cpu/d/cpu.stat", "nr_throttled 2\nthrottled_time 7000\n");
        write("cg/cpu/d/tasks", "12\n");
        write("cg/unified/a/cgroup.threads", "10\n");
        write("cg/unified/a/b/cgroup.threads", "11\n");
        write("cg/unified/c/cgroup.threads", "13\n");
        let mut quotas = Quotas::begin(root);
        let since = Duration::from_us(50);
        assert_eq!(quotas.look(since), Kept::default());

        count("a/", 130);
        count("a/b/", 9);
        write("cg/unified/a/cgroup.threads", "");
        write("cg/cpu/d/cpu.stat", "nr_throttled 3\nthrottled_time 9000\n");
        let kept = |total_us: i64, of_threads: &[(i32, i64)]| Kept {
            total: Duration::from_us(total_us),
            of_threads: of_threads
                .iter()
                .map(|(tid, us)| (Tid(*tid), Duration::from_us(*us)))
                .collect(),
        };
        let expect = kept(36, &[(10, 30), (11, 34), (12, 2)]);
        assert_eq!(quotas.look(since), expect);
        assert_eq!(quotas.look(since), Kept::default());

        // The first time that it is out of its quota.
        count("c/", 4);
        assert_eq!(quotas.look(since), kept(4, &[(13, 4)]));
        // A group that is new.
        std::fs::create_dir(root.join("cg/unified/e")).expect("made");
        count("e/", 6);
        assert_eq!(quotas.look(since), kept(6, &[]));
        // One that goes.
        std::fs::remove_dir_all(root.join("cg/unified/c")).expect("removed");
        assert_eq!(quotas.look(since), kept(50, &[(13, 50)]));
        assert_eq!(quotas.look(since), Kept::default());
    }
}
