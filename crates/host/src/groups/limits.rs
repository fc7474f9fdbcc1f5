//! What the control groups of a task give it and keep from it: weights, quotas, memory.

use std::path::{Path, PathBuf};

use event::Duration;

use super::hierarchy::{folders_of, hierarchies};
use super::quota::throttled;

/// A control group of a task, with what it has of the limits that its hierarchy knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// How many groups lie between it and the task's own.
    pub level: u32,
    /// Its folder.
    pub folder: PathBuf,
    /// Its share of the CPU beside its siblings, as its file has it: `cpu.weight` of the second
    /// version, `cpu.shares` of the first, of a session the nice value's. None where no group has
    /// one: in the root.
    pub weight: Option<Weight>,
    /// Whether it has a quota of the CPU.
    pub has_quota: bool,
    /// For how long it was out of that since it was made, summed over CPUs.
    pub throttled: Duration,
    /// How much memory it may have, by the strictest of its files.
    pub memory: Option<MemoryLimit>,
}

/// What a group's share of the CPU is set by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The name of the file.
    pub file: &'static str,
    /// What it says.
    pub value: u64,
    /// What it says of a group that nobody gave another one.
    pub usual: u64,
}

/// How much memory a group may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The name of the file.
    pub file: &'static str,
    /// What it says.
    pub limit_bytes: u64,
    /// How much it has.
    pub used_bytes: u64,
}

/// A group of `cpu.idle` has this weight, whatever its file says (the kernel's `WEIGHT_IDLEPRIO`).
const IDLE_SHARES: u64 = 3;

/// The first version says so where there is no limit: as many pages as a number can count.
const LIMITS_END_BYTES: u64 = 1 << 62;

/// The groups of a thread that know of CPUs or of memory, from its own up to the roots; nothing
/// where it has ended.
pub fn of_task(root: &Path, tid: u32) -> Vec<GroupLimits> {
    let process = root.join(format!("proc/{tid}"));
    let text = std::fs::read_to_string(process.join("cgroup")).unwrap_or_default();
    let hierarchies = hierarchies(root);
    let mut found = Vec::new();
    let mut is_in_root = true;
    for line in text.lines() {
        let folders = folders_of(&hierarchies, line);
        let top = folders.len().saturating_sub(1);
        for (level, folder) in folders.into_iter().enumerate() {
            let inside = root.join(folder.strip_prefix("/").unwrap_or(&folder));
            // The root of a hierarchy competes with nobody.
            let group = GroupLimits {
                level: level as u32,
                folder: folder.components().collect(),
                ..read(&inside, level == top)
            };
            is_in_root &= group.weight.is_none();
            if group.weight.is_some() || group.memory.is_some() || level == top {
                found.push(group);
            }
        }
    }
    found.extend(session(root, &process).filter(|_| is_in_root));
    found
}

/// What a group's files say.
fn read(folder: &Path, is_root: bool) -> GroupLimits {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let weight = |(file, usual)| {
        let value = number(file)?;
        Some(Weight { file, value, usual })
    };
    let weights = [("cpu.weight", 100), ("cpu.shares", 1024)];
    let mut weight = weights.into_iter().find_map(weight).filter(|_| !is_root);
    if number("cpu.idle") == Some(1) {
        weight = weight.map(|_| Weight {
            file: "cpu.idle",
            value: IDLE_SHARES,
            usual: 1024,
        });
    }
    let second = text("cpu.max").map(|text| !text.starts_with("max"));
    let first = || text("cpu.cfs_quota_us").map(|text| !text.starts_with('-'));
    let stat = text("cpu.stat").and_then(|text| throttled(&text));
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"));
    let files = ["memory.max", "memory.high", "memory.limit_in_bytes"];
    let limits = files.into_iter().filter_map(|file| {
        let limit = number(file).filter(|bytes| *bytes < LIMITS_END_BYTES)?;
        Some((limit, file))
    });
    let memory = limits.min().zip(used);
    GroupLimits {
        weight,
        has_quota: second.or_else(first).unwrap_or(false),
        throttled: stat.unwrap_or_default(),
        memory: memory.map(|((limit_bytes, file), used_bytes)| MemoryLimit {
            file,
            limit_bytes,
            used_bytes,
        }),
        ..GroupLimits::default()
    }
}

/// The session of a process: where the kernel shares CPUs by sessions, tasks outside of all groups
/// compete as theirs do.
fn session(root: &Path, process: &Path) -> Option<GroupLimits> {
    let is_on = std::fs::read_to_string(root.join("proc/sys/kernel/sched_autogroup_enabled"));
    is_on.ok().filter(|text| text.trim() == "1")?;
    let folder = process.join("autogroup");
    let text = std::fs::read_to_string(&folder).ok()?;
    let nice: i32 = text.trim().rsplit(' ').next()?.parse().ok()?;
    let inside = folder.strip_prefix(root).ok()?;
    Some(GroupLimits {
        folder: Path::new("/").join(inside),
        weight: Some(Weight {
            file: "autogroup",
            value: (1024.0 * 1.25_f64.powi(-nice)).round() as u64,
            usual: 1024,
        }),
        ..GroupLimits::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    #[test]
    fn all_that_groups_of_both_versions_give_a_thread_is_read_up_to_the_roots() {
        let machine = machine(&["cg/cpu/a/b", "cg/unified/x", "proc/7", "proc/sys/kernel"]);
        let root = machine.path();
        let write =
            |path: &str, text: &str| std::fs::write(root.join(path), text).expect("written");
        write("proc/7/cgroup", "7:cpu,cpuacct:/a/b\n0::/x\n");
        write("proc/7/autogroup", "/autogroup-5 nice 0\n");
        write("proc/sys/kernel/sched_autogroup_enabled", "1\n");
        write("cg/cpu/cpu.shares", "1024\n");
        write("cg/cpu/a/cpu.shares", "10\n");
        write("cg/cpu/a/cpu.cfs_quota_us", "25000\n");
        write("cg/cpu/a/cpu.stat", "nr_throttled 2\nthrottled_time 7000\n");
        write("cg/cpu/a/b/cpu.shares", "1024\n");
        write("cg/cpu/a/b/cpu.cfs_quota_us", "-1\n");
        write("cg/unified/x/memory.max", "max\n");
        write("cg/unified/x/memory.high", "4096\n");
        write("cg/unified/x/memory.current", "4000\n");
        let found = || -> Vec<String> {
            let told = |group: &GroupLimits| {
                let weight = group.weight.as_ref();
                let weight = weight.map(|weight| (weight.file, weight.value));
                let memory = group.memory.as_ref();
                let memory = memory.map(|one| (one.file, one.limit_bytes, one.used_bytes));
                let (level, folder) = (group.level, group.folder.display());
                let (quota, ns) = (group.has_quota, group.throttled.as_ns());
                format!("{level} {folder} {weight:?} {quota} {ns} {memory:?}")
            };
            of_task(root, 7).iter().map(told).collect()
        };
        let expect = [
            "0 /cg/cpu/a/b Some((\"cpu.shares\", 1024)) false 0 None",
            "1 /cg/cpu/a Some((\"cpu.shares\", 10)) true 7000 None",
            "2 /cg/cpu None false 0 None",
            "0 /cg/unified/x None false 0 Some((\"memory.high\", 4096, 4000))",
            "1 /cg/unified None false 0 None",
        ];
        assert_eq!(found(), expect);
        write("cg/cpu/a/cpu.idle", "1\n");
        assert!(
            found()[1].contains("Some((\"cpu.idle\", 3))"),
            "{:?}",
            found()
        );
        // Outside of all groups its session counts.
        write("proc/7/cgroup", "7:cpu,cpuacct:/\n");
        write("proc/7/autogroup", "/autogroup-5 nice 10\n");
        let expect = [
            "0 /cg/cpu None false 0 None",
            "0 /proc/7/autogroup Some((\"autogroup\", 110)) false 0 None",
        ];
        assert_eq!(found(), expect);
        write("proc/sys/kernel/sched_autogroup_enabled", "0\n");
        assert_eq!(found(), expect[..1]);
        assert_eq!(of_task(root, 8), []);
    }
}
