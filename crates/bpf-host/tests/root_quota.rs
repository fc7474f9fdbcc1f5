//! Check on the running kernel that a target whose control group is out of quota tells for how long
//! that kept it, by the kernel's own count, whatever else wants the CPU.

mod scene;

use std::time::Duration as Time;

use bpf_host::{Targets, Watch, WatchConfig};
use event::evidence::{EndKind, Records, Role, Throttled};
use event::{Duration, TaskPattern};
use scene::process::{Process, Sleep};
use scene::quota::Quota;
use scene::{STAGE, Victim};

const RUNTIME: Time = Time::from_millis(10);
/// The kernel's clocks are read a moment apart.
const APART: Duration = Duration::from_ms(3);

fn config(end: EndKind) -> WatchConfig {
    WatchConfig {
        targets: Targets::Tasks(vec![TaskPattern::parse("scene-vic*").expect("a name")]),
        threshold: Duration::from_ms(15),
        rate_limit_interval: Duration::ZERO,
        end,
        ..WatchConfig::default()
    }
}

/// Whether the kernel counts, for each run queue, how long quotas kept its tasks (since 6.6).
fn is_counted() -> bool {
    let types = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let name = b"throttled_clock_self_time\0";
    types.windows(name.len()).any(|part| part == name)
}

/// What a watch tells of a fair task that wants twice what its group may have, while another task
/// wants its CPU too; and what the group counted meanwhile, where it is the one with the quota.
fn watched(end: EndKind, below: usize) -> Option<(Records, i32, Time)> {
    let group = Quota::of(RUNTIME, below)?;
    let _innocent = Victim::start("scene-innocent", 0, || scene::spin(Time::from_millis(4)));
    let times = (Time::from_millis(2), 2 * RUNTIME);
    let victim = Process::working("scene-victim", STAGE, times, Sleep::Relative);
    victim.become_fair();
    group.take(&victim);
    let (watch, mut ring) = Watch::start(&config(end)).expect("a watch");
    let mut records = Records::default();
    for _ in 0..200 {
        ring.wait(Time::from_millis(20)).expect("hits");
        let more = watch.evidence().read().records;
        more.into_iter().for_each(|record| records.push(record));
        if records.throttled.len() > 1 && !records.moments.is_empty() {
            break;
        }
    }
    let counted = if below == 0 { group.kept() } else { Time::ZERO };
    let pid = victim.pid;
    drop(victim);
    Some((records, pid, counted))
}

#[test]
fn a_used_up_quota_is_told_with_the_time_that_it_took() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("quotas") {
        return;
    }
    if !is_counted() {
        return testkit::skip("quotas", "the kernel counts no such time of a run queue");
    }
    let check = |end: EndKind, below: usize| {
        let Some((records, pid, counted)) = watched(end, below) else {
            return testkit::skip("quotas", "no control groups with a CPU quota");
        };
        let is_mine = |one: &&Throttled| one.task.tid.0 == pid;
        let mine: Vec<_> = records.throttled.iter().filter(is_mine).collect();
        assert!(!mine.is_empty(), "{end:?} {below}: {records:#?}");
        let mut sum = Duration::ZERO;
        for one in &mine {
            let waited = one.time - one.begin;
            assert!(one.kept > Duration::ZERO, "{end:?} {below}: {one:#?}");
            assert!(one.kept <= waited + APART, "{end:?} {below}: {one:#?}");
            sum += one.kept;
        }
        if below == 0 {
            let counted = Duration::from_ns(counted.as_nanos() as i64);
            assert!(sum <= counted + APART, "{end:?}: {counted} but {mine:#?}");
        }
        let targets = records
            .moments
            .iter()
            .filter(|one| one.role == Role::Target);
        let mut targets = targets.filter(|one| one.task.tid.0 == pid).peekable();
        assert!(targets.peek().is_some(), "{end:?} {below}");
        assert!(
            targets.all(|one| one.is_limited()),
            "{end:?} {below}: {records:#?}"
        );
    };
    check(EndKind::SwitchIn, 0);
    check(EndKind::Blocked, 0);
    // Its own group has no quota, but one above it.
    check(EndKind::SwitchIn, 2);
    check(EndKind::Blocked, 2);
}

#[test]
fn what_a_quota_takes_from_others_is_told_too_as_a_target_may_wait_for_them() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("quotas") {
        return;
    }
    // An older kernel keeps all of a group at once, and the watch follows its targets alone.
    let types = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let name = b"throttle_cfs_rq_work";
    if !types.windows(name.len()).any(|part| part == name) {
        return testkit::skip(
            "quotas of others",
            "the kernel does not keep each task by itself",
        );
    }
    let Some(group) = Quota::of(RUNTIME, 0) else {
        return testkit::skip("quotas of others", "no control groups with a CPU quota");
    };
    let times = (Time::from_millis(2), 2 * RUNTIME);
    let owner = Process::working("scene-owner", STAGE, times, Sleep::Relative);
    owner.become_fair();
    group.take(&owner);
    let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
    let mut told = false;
    for _ in 0..200 {
        ring.wait(Time::from_millis(20)).expect("hits");
        let mut records = Records::default();
        let more = watch.evidence().read().records;
        more.into_iter().for_each(|record| records.push(record));
        let kept = records.throttled.iter();
        told = kept
            .filter(|one| one.task.tid.0 == owner.pid)
            .any(|one| one.kept > Duration::ZERO);
        if told {
            break;
        }
    }
    drop(owner);
    assert!(told);
}
