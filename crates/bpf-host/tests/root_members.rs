//! Check on the running kernel that tasks are meant by where they are, as they come and go.

mod scene;

use std::path::{Path, PathBuf};
use std::time::{Duration as Time, Instant};

use abi::monitor::GROUP_NAMED;
use bpf_host::{Members, MonitorConfig, PhaseMonitor, Targets, Watch, WatchConfig};
use event::{Duration, GroupId, GroupName, Tid};
use scene::STAGE;
use scene::process::Process;

/// A control group of version 2; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// None where the machine has no such groups.
    fn path(name: &str) -> Option<PathBuf> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let mounted = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (folder, kind) = (words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(folder))
        })?;
        Some(mounted.join(format!("{name}-{}", std::process::id())))
    }

    fn make(path: &Path) -> Group {
        std::fs::create_dir(path).expect("a control group");
        Group(path.to_owned())
    }

    fn take(&self, pid: i32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("moved");
    }

    fn id(&self) -> GroupId {
        use std::os::unix::fs::MetadataExt as _;
        let inode = self.0.metadata().expect("a folder").ino();
        GroupId {
            hierarchy: 0,
            id: inode,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its tasks are killed before; the kernel takes a moment to let them go.
        let end = Instant::now() + Time::from_secs(5);
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::yield_now();
        }
    }
}

fn watch(members: Members) -> Watch {
    let config = WatchConfig {
        targets: Targets::Tasks(vec![]),
        members,
        threshold: Duration::MAX,
        ..WatchConfig::default()
    };
    Watch::start(&config).expect("a watch").0
}

fn samples(watch: &Watch) -> u64 {
    watch.statistics().expect("read").samples
}

/// Waits for an activation of whoever is meant.
fn is_sampled(watch: &Watch) -> bool {
    let (before, end) = (samples(watch), Instant::now() + Time::from_secs(5));
    while samples(watch) == before && Instant::now() < end {
        std::thread::sleep(Time::from_millis(1));
    }
    samples(watch) > before
}

/// Three of its activations, which another watch sees.
fn runs(of: &Process) {
    let it = watch(Members {
        family: Some(Tid(of.pid)),
        ..Members::default()
    });
    for _ in 0..3 {
        assert!(is_sampled(&it), "a command's process is of its family");
    }
}

#[test]
fn a_group_that_is_made_later_has_its_members_from_then_on_and_loses_who_leaves() {
    let _privileged = testkit::privileged();
    let name = "a_group_that_is_made_later_has_its_members_from_then_on_and_loses_who_leaves";
    let Some(path) = Group::path("rtscope-members") else {
        return testkit::skip(name, "no control groups of version 2 are mounted");
    };
    let file = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("text");
    let watch = watch(Members {
        group_names: vec![
            GroupName::parse("rtscope-nobody*").expect("a name"),
            GroupName::parse(&format!("{}*", &file[..file.len() - 1])).expect("a name"),
        ],
        ..Members::default()
    });
    let victim = Process::start("members", STAGE);
    runs(&victim);
    assert_eq!(samples(&watch), 0, "nobody is meant yet");
    let group = Group::make(&path);
    group.take(victim.pid);
    assert!(is_sampled(&watch), "it is a member now");
    let outside = path.parent().expect("a mount").join("cgroup.procs");
    std::fs::write(outside, victim.pid.to_string()).expect("moved");
    // What was under way then ends as it began.
    runs(&victim);
    let left = samples(&watch);
    runs(&victim);
    assert_eq!(samples(&watch), left, "it is none any more");
    drop(victim);
}

#[test]
fn a_group_below_one_that_is_meant_is_meant_too() {
    let _privileged = testkit::privileged();
    let name = "a_group_below_one_that_is_meant_is_meant_too";
    let Some(path) = Group::path("rtscope-above") else {
        return testkit::skip(name, "no control groups of version 2 are mounted");
    };
    let above = Group::make(&path);
    let below = Group::make(&path.join("below"));
    let victim = Process::start("members", STAGE);
    below.take(victim.pid);
    let is_seen = |groups: Vec<GroupId>| {
        is_sampled(&watch(Members {
            groups,
            ..Members::default()
        }))
    };
    assert!(is_seen(vec![above.id()]));
    assert!(is_seen(vec![below.id()]));
    drop((victim, below, above));
}

#[test]
fn the_monitor_counts_who_is_in_a_group_that_is_meant_and_nobody_else_by_that() {
    let _privileged = testkit::privileged();
    let name = "the_monitor_counts_who_is_in_a_group_that_is_meant_and_nobody_else_by_that";
    let Some(path) = Group::path("rtscope-counted") else {
        return testkit::skip(name, "no control groups of version 2 are mounted");
    };
    let group = Group::make(&path);
    let victim = Process::start("members", STAGE);
    let config = MonitorConfig {
        members: Members {
            groups: vec![group.id()],
            ..Members::default()
        },
        ..MonitorConfig::default()
    };
    let mut monitor = PhaseMonitor::start(&config).expect("it starts");
    let mut named = || {
        runs(&victim);
        let interval = monitor.close();
        let of_group = interval.series.iter();
        let of_group = of_group.filter(|series| series.group & GROUP_NAMED != 0);
        of_group.map(|series| series.count()).sum::<u64>()
    };
    assert_eq!(named(), 0, "it is no member yet");
    group.take(victim.pid);
    assert!(named() > 0, "it is a member now");
    drop((victim, group));
}
