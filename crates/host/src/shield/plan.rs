//! What a shield changes on this machine, from what it is set to.

use std::path::{Path, PathBuf};

use event::{Cpu, Error, ErrorKind, Result};

use super::threads::{self, InterruptPrio};
use super::{Change, Shield, Step, VERSION, list, tasks};

/// The control group of the shielded tasks.
const INSIDE: &str = "rtscope-shield";
/// That of all others, where they need one (version 1).
const OUTSIDE: &str = "rtscope-system";
/// Seconds between two sums of the kernel's counters of memory (Documentation/admin-guide/sysctl).
const STAT_INTERVAL: &str = "60";

/// Files that hold a mask of CPUs in hexadecimal: new interrupts, unbound workqueues, write-back.
pub(super) const MASKS: [&str; 3] = [
    "proc/irq/default_smp_affinity",
    "sys/devices/virtual/workqueue/cpumask",
    "sys/devices/virtual/workqueue/writeback/cpumask",
];

/// Settings of the kernel that keep its own work away: timers go to housekeeping CPUs, grace
/// periods of RCU interrupt nobody, counters of memory are summed less often.
pub(super) const SETTINGS: [(&str, &str); 3] = [
    ("proc/sys/kernel/timer_migration", "1"),
    ("sys/kernel/rcu_normal", "1"),
    ("proc/sys/vm/stat_interval", STAT_INTERVAL),
];

/// The shield of `shielded` on a machine whose CPUs `online` are on, with these priorities of
/// interrupt threads; nothing is changed.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when no CPU is shielded, or none is left; [`ErrorKind::NotFound`]
/// where no interrupt thread has such a name.
pub fn plan(
    root: &Path,
    shielded: &[Cpu],
    online: &[Cpu],
    interrupt_prios: &[InterruptPrio],
) -> Result<Shield> {
    let housekeeping: Vec<Cpu> = others(online, shielded);
    if shielded.is_empty() || housekeeping.is_empty() {
        let what = "a shield needs CPUs inside and CPUs outside";
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found(format!("'{}' of '{}'", list(shielded), list(online)))
            .fix("choose some of the CPUs, as in --cpu 2-3"));
    }
    let mut planner = Planner {
        root,
        inside: list(shielded),
        outside: list(&housekeeping),
        shielded,
        changes: Vec::new(),
    };
    planner.interrupts();
    for mask in MASKS {
        planner.write(root.join(mask), &hexadecimal(&housekeeping));
    }
    let watchdog = root.join("proc/sys/kernel/watchdog_cpumask");
    planner.write(watchdog, &planner.outside.clone());
    for (path, value) in SETTINGS {
        planner.write(root.join(path), value);
    }
    planner.changes.extend(threads::confine(root, shielded));
    let prioritized = threads::prioritize(root, interrupt_prios)?;
    planner.changes.extend(prioritized);
    let entrance = planner.control_groups();
    Ok(Shield {
        keeper: None,
        version: VERSION,
        cpus: planner.inside,
        housekeeping: planner.outside,
        entrance,
        changes: planner.changes,
        tasks: tasks::masks(root),
    })
}

struct Planner<'a> {
    root: &'a Path,
    inside: String,
    outside: String,
    shielded: &'a [Cpu],
    changes: Vec<Step>,
}

impl Planner<'_> {
    /// A setting that takes back its own text. What holds the wanted value already is left alone.
    fn write(&mut self, path: PathBuf, after: &str) {
        let Ok(before) = std::fs::read_to_string(&path) else {
            return;
        };
        if before.trim_end() != after {
            self.changes.push(Step::Set(Change::Write {
                path,
                before,
                after: after.to_owned(),
            }));
        }
    }

    /// Every interrupt that may come on a shielded CPU goes to those of the others that it may use
    /// already, or to all of them.
    fn interrupts(&mut self) {
        let folders = std::fs::read_dir(self.root.join("proc/irq"));
        let mut numbers: Vec<u32> = folders
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            let path = self
                .root
                .join(format!("proc/irq/{number}/smp_affinity_list"));
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let cpus = Cpu::parse_list(&text).unwrap_or_default();
            if !cpus.iter().any(|cpu| self.shielded.contains(cpu)) {
                continue;
            }
            let free = list(&others(&cpus, self.shielded));
            let after = if free.is_empty() {
                self.outside.clone()
            } else {
                free
            };
            self.write(path, &after);
        }
    }

    /// Takes the CPUs from all tasks; the file that lets tasks in.
    fn control_groups(&mut self) -> Option<PathBuf> {
        let mounts = std::fs::read_to_string(self.root.join("proc/mounts")).unwrap_or_default();
        let (version_2, version_1) = (cgroup_2(&mounts), cgroup_1(&mounts));
        let below = |mount: &str| self.root.join(mount.trim_start_matches('/'));
        if let Some(mount) = version_1.map(below) {
            return Some(self.version_1(&mount));
        }
        let mount = version_2.map(below)?;
        let controllers = std::fs::read_to_string(mount.join("cgroup.controllers"));
        let has = |text: &str| text.split_whitespace().any(|word| word == "cpuset");
        controllers.ok().filter(|text| has(text))?;
        Some(self.version_2(&mount))
    }

    /// A partition of its own: the kernel takes its CPUs from everybody else.
    fn version_2(&mut self, mount: &Path) -> PathBuf {
        let subtree = mount.join("cgroup.subtree_control");
        let before = std::fs::read_to_string(&subtree).unwrap_or_default();
        if !before.split_whitespace().any(|word| word == "cpuset") {
            self.changes.push(Step::Enable {
                path: subtree,
                before,
            });
        }
        let (folder, entrance) = (mount.join(INSIDE), mount.join(INSIDE).join("cgroup.procs"));
        self.make(&folder, mount.join("cgroup.procs"));
        self.write_inside(folder.join("cpuset.cpus"), &self.inside.clone());
        self.write_inside(folder.join("cpuset.cpus.partition"), "root");
        entrance
    }

    /// Two groups, and everybody in the other one.
    fn version_1(&mut self, mount: &Path) -> PathBuf {
        let mems = std::fs::read_to_string(mount.join("cpuset.mems")).unwrap_or_default();
        let tasks = mount.join("tasks");
        let (inside, outside) = (self.inside.clone(), self.outside.clone());
        for (name, cpus) in [(INSIDE, inside), (OUTSIDE, outside)] {
            let folder = mount.join(name);
            self.make(&folder, tasks.clone());
            self.write_inside(folder.join("cpuset.cpus"), &cpus);
            self.write_inside(folder.join("cpuset.mems"), mems.trim_end());
        }
        self.changes.push(Step::Move {
            from: tasks,
            to: mount.join(OUTSIDE).join("tasks"),
        });
        mount.join(INSIDE).join("tasks")
    }

    fn make(&mut self, folder: &Path, tasks: PathBuf) {
        self.changes.push(Step::Make {
            path: folder.to_owned(),
            tasks,
        });
    }

    /// In a group that we make: it goes with the group.
    fn write_inside(&mut self, path: PathBuf, after: &str) {
        self.changes.push(Step::Inside {
            path,
            after: after.to_owned(),
        });
    }
}

fn others(all: &[Cpu], without: &[Cpu]) -> Vec<Cpu> {
    let free = |cpu: &Cpu| !without.contains(cpu);
    all.iter().copied().filter(free).collect()
}

/// The mount point of version 2.
fn cgroup_2(mounts: &str) -> Option<&str> {
    let mut lines = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    lines.find_map(|words| (words.get(2) == Some(&"cgroup2")).then_some(words[1]))
}

/// The mount point of version 1's cpusets.
fn cgroup_1(mounts: &str) -> Option<&str> {
    let mut lines = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    lines.find_map(|words| {
        let options = words.get(3)?.split(',');
        let is_it = words[2] == "cgroup" && options.into_iter().any(|word| word == "cpuset");
        is_it.then_some(words[1])
    })
}

/// CPUs as the kernel's masks have them: words of 32 bits, the highest first.
pub(super) fn hexadecimal(cpus: &[Cpu]) -> String {
    let words = cpus.iter().map(|cpu| cpu.0 / 32).max().unwrap_or(0);
    let word = |number: u32| {
        let bits = cpus.iter().filter(|cpu| cpu.0 / 32 == number);
        bits.fold(0u32, |word, cpu| word | 1 << (cpu.0 % 32))
    };
    let highest = format!("{:x}", word(words));
    let lower = (0..words)
        .rev()
        .map(|number| format!(",{:08x}", word(number)));
    highest + &lower.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_words_of_32_cpus_the_highest_first() {
        let check = |numbers: &[u32], expect: &str| {
            let cpus: Vec<Cpu> = numbers.iter().copied().map(Cpu).collect();
            assert_eq!(hexadecimal(&cpus), expect);
        };
        check(&[0, 1], "3");
        check(&[5], "20");
        check(&[0, 33], "2,00000001");
    }

    #[test]
    fn both_versions_of_control_groups_are_found_where_they_are_mounted() {
        let hybrid = "cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(cgroup_1(hybrid), Some("/sys/fs/cgroup/cpuset"));
        assert_eq!(cgroup_2(hybrid), Some("/sys/fs/cgroup/unified"));
        assert_eq!(cgroup_1("cgroup /c cgroup rw,cpu,cpuacct 0 0\n"), None);
    }

    #[test]
    fn the_plan_follows_the_version_of_the_control_groups() {
        let check = |mounts: &str, files: &[(&str, &str)], expect: &[&str]| {
            let folder = tempfile::tempdir().expect("a folder");
            let root = folder.path();
            for (path, text) in files.iter().chain(&[("proc/mounts", mounts)]) {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                std::fs::write(path, text).expect("written");
            }
            let shield = plan(root, &[Cpu(1)], &[Cpu(0), Cpu(1)], &[]).expect("planned");
            let prefix = root.display().to_string();
            let lines = shield
                .changes
                .iter()
                .map(|change| change.shell().replace(&prefix, ""));
            assert_eq!(lines.collect::<Vec<_>>(), expect);
        };
        check(
            "cgroup2 /cg cgroup2 rw 0 0\n",
            &[
                ("cg/cgroup.controllers", "cpuset cpu\n"),
                ("cg/cgroup.subtree_control", "cpu\n"),
            ],
            &[
                "echo +cpuset > /cg/cgroup.subtree_control",
                "mkdir /cg/rtscope-shield",
                "echo 1 > /cg/rtscope-shield/cpuset.cpus",
                "echo root > /cg/rtscope-shield/cpuset.cpus.partition",
            ],
        );
        check(
            "cgroup /cg cgroup rw,cpuset 0 0\n",
            &[("cg/cpuset.mems", "0\n")],
            &[
                "mkdir /cg/rtscope-shield",
                "echo 1 > /cg/rtscope-shield/cpuset.cpus",
                "echo 0 > /cg/rtscope-shield/cpuset.mems",
                "mkdir /cg/rtscope-system",
                "echo 0 > /cg/rtscope-system/cpuset.cpus",
                "echo 0 > /cg/rtscope-system/cpuset.mems",
                "for task in $(cat /cg/tasks); do echo $task > /cg/rtscope-system/tasks; done",
            ],
        );
        check("", &[], &[]);
    }
}
