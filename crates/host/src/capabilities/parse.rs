//! Texts of `/proc` and `/sys`, read without a system.

use super::Preemption;

/// Capability numbers (`include/uapi/linux/capability.h`).
pub const CAP_IPC_LOCK: u32 = 14;
pub const CAP_SYS_ADMIN: u32 = 21;
pub const CAP_SYS_NICE: u32 = 23;
pub const CAP_SYSLOG: u32 = 34;
pub const CAP_PERFMON: u32 = 38;
pub const CAP_BPF: u32 = 39;

/// The effective capabilities in `/proc/self/status`, a bit each.
pub fn effective_capabilities(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// The first mount of `kind` in `/proc/mounts` that has `option` (any, when it is empty).
pub fn mount_of<'a>(mounts: &'a str, kind: &str, option: &str) -> Option<&'a str> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (path, found, options) = (words.next()?, words.next()?, words.next()?);
        let has_option = option.is_empty() || options.split(',').any(|word| word == option);
        (found == kind && has_option).then_some(path)
    })
}

/// The folder of this process below the mount of version 1 `controller`, in `/proc/self/cgroup`.
pub fn cgroup_v1<'a>(cgroups: &'a str, controller: &str) -> Option<&'a str> {
    cgroups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers
            .split(',')
            .any(|word| word == controller)
            .then_some(path)
    })
}

/// The offset of the monotonic clock in `/proc/self/timens_offsets`; 0 where the kernel has no time
/// namespaces.
pub fn clock_offset_ns(offsets: &str) -> i64 {
    let offset = |line: &str| -> Option<i64> {
        let mut words = line.strip_prefix("monotonic")?.split_whitespace();
        let (seconds, ns): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
    };
    offsets.lines().find_map(offset).unwrap_or(0)
}

/// The choice in force in a line such as `none [integrity] confidentiality` or `none (full)`.
pub fn choice(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| {
        let square = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'));
        square.or_else(|| {
            word.strip_prefix('(')
                .and_then(|word| word.strip_suffix(')'))
        })
    })
}

/// Where the preemption model can be read, the surest first.
#[derive(Default)]
pub struct PreemptionSources<'a> {
    /// `uname -v`.
    pub uname_version: &'a str,
    /// `/sys/kernel/debug/sched/preempt`, where debugfs is mounted.
    pub debugfs: &'a str,
    /// `/proc/cmdline`.
    pub command_line: &'a str,
    /// The kernel's configuration.
    pub config: &'a str,
}

/// The preemption model in force: PREEMPT_DYNAMIC kernels decide at boot.
pub fn preemption(sources: &PreemptionSources) -> Preemption {
    let words: Vec<&str> = sources.uname_version.split_whitespace().collect();
    if words.contains(&"PREEMPT_RT") {
        return Preemption::Rt;
    }
    let from_boot = sources.command_line.split_whitespace();
    let from_boot = from_boot
        .filter_map(|word| word.strip_prefix("preempt="))
        .next_back();
    choice(sources.debugfs)
        .and_then(named_preemption)
        .or_else(|| from_boot.and_then(named_preemption))
        .or_else(|| configured_preemption(sources.config))
        .or_else(|| words.contains(&"PREEMPT").then_some(Preemption::Full))
        .unwrap_or_default()
}

fn named_preemption(name: &str) -> Option<Preemption> {
    let known = [
        Preemption::None,
        Preemption::Voluntary,
        Preemption::Lazy,
        Preemption::Full,
    ];
    known
        .into_iter()
        .find(|preemption| preemption.name() == name)
}

fn configured_preemption(config: &str) -> Option<Preemption> {
    let choices = [
        ("CONFIG_PREEMPT_RT=y", Preemption::Rt),
        ("CONFIG_PREEMPT_NONE=y", Preemption::None),
        ("CONFIG_PREEMPT_VOLUNTARY=y", Preemption::Voluntary),
        ("CONFIG_PREEMPT_LAZY=y", Preemption::Lazy),
        ("CONFIG_PREEMPT=y", Preemption::Full),
    ];
    choices.into_iter().find_map(|(line, preemption)| {
        config
            .lines()
            .any(|found| found == line)
            .then_some(preemption)
    })
}

/// Whether this text of `/proc/self/uid_map` is that of the first user namespace, or of a kernel
/// without any.
pub fn is_first_user_namespace(uid_map: &str) -> bool {
    let words: Vec<&str> = uid_map.split_whitespace().collect();
    matches!(words[..], [] | ["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preemption_model_is_what_was_decided_at_boot() {
        let check = |sources: PreemptionSources, expect: Preemption| {
            assert_eq!(preemption(&sources), expect, "{}", sources.uname_version);
        };
        let dynamic = "#1 SMP PREEMPT_DYNAMIC Mon";
        let config = "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y";
        let base = || PreemptionSources {
            uname_version: dynamic,
            config,
            ..Default::default()
        };
        check(base(), Preemption::None);
        check(
            PreemptionSources {
                command_line: "quiet preempt=full",
                ..base()
            },
            Preemption::Full,
        );
        check(
            PreemptionSources {
                debugfs: "none voluntary (lazy)\n",
                command_line: "preempt=full",
                ..base()
            },
            Preemption::Lazy,
        );
        let rt = PreemptionSources {
            uname_version: "#1 SMP PREEMPT_RT",
            ..base()
        };
        check(rt, Preemption::Rt);
        let old = PreemptionSources {
            uname_version: "#1 SMP PREEMPT",
            ..Default::default()
        };
        check(old, Preemption::Full);
        check(
            PreemptionSources {
                uname_version: dynamic,
                ..Default::default()
            },
            Preemption::Unknown,
        );
    }

    #[test]
    fn capabilities_are_the_effective_ones() {
        let status = "CapPrm:\t000001ffffffffff\nCapEff:\t0000008000200000\n";
        let mask = effective_capabilities(status);
        assert!(mask & (1 << CAP_BPF) != 0 && mask & (1 << CAP_SYS_ADMIN) != 0);
        assert!(mask & (1 << CAP_PERFMON) == 0);
        assert_eq!(effective_capabilities("CapEff:\tnonsense"), 0);
    }

    #[test]
    fn a_mount_is_found_by_kind_and_option() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                      nodev /sys/kernel/tracing tracefs rw,relatime 0 0\n";
        assert_eq!(mount_of(mounts, "tracefs", ""), Some("/sys/kernel/tracing"));
        assert_eq!(
            mount_of(mounts, "cgroup", "cpu"),
            Some("/sys/fs/cgroup/cpu")
        );
        assert_eq!(mount_of(mounts, "cgroup", "memory"), None);
        assert_eq!(mount_of("broken", "tracefs", ""), None);
    }

    #[test]
    fn the_control_group_of_a_controller_is_found_among_many() {
        let cgroups = "4:memory:/a\n3:cpu,cpuacct:/b\n0::/\n";
        assert_eq!(cgroup_v1(cgroups, "cpu"), Some("/b"));
        assert_eq!(cgroup_v1(cgroups, "cpuset"), None);
    }

    #[test]
    fn a_choice_is_what_stands_in_brackets() {
        assert_eq!(
            choice("none [integrity] confidentiality"),
            Some("integrity")
        );
        assert_eq!(choice("(none) voluntary full"), Some("none"));
        assert_eq!(choice("none integrity"), None);
    }

    #[test]
    fn the_first_user_namespace_is_known_by_its_map() {
        let check = |map: &str, expect: bool| {
            assert_eq!(is_first_user_namespace(map), expect, "{map}");
        };
        check("         0          0 4294967295\n", true);
        check("", true);
        check("         0       1000          1\n", false);
        check(
            "         0     100000      65536\n         65536 1 1\n",
            false,
        );
    }
}
