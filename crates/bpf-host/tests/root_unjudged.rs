//! Check on the running kernel that no activation of a target leaves without a word: what cannot be
//! judged is counted with its reason.

mod scene;

use std::io::{Read, Write};
use std::time::Duration as Time;

use bpf_host::{HitRing, Statistics, Targets, Watch, WatchConfig};
use event::evidence::{EndKind, Hit, StepKind};
use event::{Cpu, Duration, TaskPattern};
use scene::{STAGE, Victim};

fn config(over: Duration) -> WatchConfig {
    WatchConfig {
        targets: Targets::Tasks(vec![TaskPattern::parse("scene-vic*").expect("a name")]),
        threshold: over,
        rate_limit_interval: Duration::ZERO,
        end: EndKind::Blocked,
        ..WatchConfig::default()
    }
}

fn taken(ring: &mut HitRing) -> Vec<Hit> {
    let mut hits = ring.wait(Time::from_millis(20)).expect("hits");
    hits.extend(ring.wait(Time::from_millis(20)).expect("hits"));
    hits
}

fn look_away() {
    std::thread::sleep(Time::from_millis(40));
}

fn until(watch: &Watch, holds: impl Fn(&Statistics) -> bool) {
    while !holds(&watch.statistics().expect("counters")) {
        std::thread::yield_now();
    }
}

#[test]
fn who_runs_behind_a_wake_up_that_was_not_seen_is_judged_from_its_timer_and_counted() {
    let _privileged = testkit::privileged();
    let work = || scene::spin(Time::from_millis(4));
    let _victim = Victim::start("scene-victim", 10, work);
    let (mut watch, mut ring) = Watch::start(&config(Duration::from_ms(3))).expect("a watch");
    until(&watch, |counted| counted.samples > 1);
    taken(&mut ring);
    let seen = watch.statistics().expect("counters").samples;
    watch
        .without_wake_ups(false, look_away)
        .expect("it looks again");
    let counted = watch.statistics().expect("counters");
    assert!(counted.unseen > 0, "{counted:?}");
    assert!(counted.samples > seen, "{counted:?}");
    let hits = taken(&mut ring);
    let due = |hit: &&Hit| hit.unseen && hit.steps[0].kind == StepKind::TimerExpiry;
    let hit = hits.iter().find(due);
    let hit = hit.unwrap_or_else(|| panic!("{hits:#?}"));
    assert_eq!(
        (hit.origin, hit.stale),
        (hit.steps[0].time, false),
        "{hit:#?}"
    );
}

#[test]
fn who_runs_behind_a_switch_that_was_not_seen_is_counted_as_it_arms_its_next_timer() {
    let _privileged = testkit::privileged();
    let _victim = Victim::start("scene-victim", 10, || ());
    let config = WatchConfig {
        end: EndKind::SwitchIn,
        ..config(Duration::from_ms(1_000))
    };
    let (mut watch, _ring) = Watch::start(&config).expect("a watch");
    until(&watch, |counted| counted.samples > 1);
    let before = watch.statistics().expect("counters");
    watch
        .without_wake_ups(true, look_away)
        .expect("it looks again");
    let after = watch.statistics().expect("counters");
    assert!(after.unseen > before.unseen, "{before:?} {after:?}");
}

#[test]
fn a_wait_of_which_neither_begin_nor_end_was_seen_is_in_time_only_where_its_timer_proves_it() {
    let _privileged = testkit::privileged();
    let check = |over: Duration, may_be_late: bool| {
        let work = || scene::spin(Time::from_micros(200));
        let _victim = Victim::start("scene-victim", 10, work);
        let config = WatchConfig {
            end: EndKind::SwitchIn,
            ..config(over)
        };
        let (mut watch, _ring) = Watch::start(&config).expect("a watch");
        until(&watch, |counted| counted.samples > 1);
        let before = watch.statistics().expect("counters");
        watch
            .without_wake_ups(true, look_away)
            .expect("it looks again");
        let after = watch.statistics().expect("counters");
        assert!(after.unseen > before.unseen, "{after:?}");
        let undated = after.undated - before.undated;
        assert_eq!(undated > 0, may_be_late, "{over}: {after:?}");
    };
    check(Duration::from_us(100), true);
    check(Duration::from_ms(1_000), false);
}

#[test]
fn who_is_called_otherwise_in_the_midst_of_a_late_activation_is_counted() {
    let _privileged = testkit::privileged();
    let check = |late: bool, expect: (u64, u64)| {
        let (watch, _ring) = Watch::start(&config(Duration::from_ms(5))).expect("a watch");
        let renamed = move || {
            scene::become_task("scene-victim", STAGE, 10);
            std::thread::sleep(Time::from_millis(2));
            scene::spin(Time::from_millis(if late { 8 } else { 0 }));
            scene::become_task("scene-other", STAGE, 10);
            std::thread::sleep(Time::from_millis(2));
        };
        std::thread::spawn(renamed).join().expect("it ends");
        let counted = watch.statistics().expect("counters");
        assert_eq!((counted.unmeant, counted.renamed), expect, "{counted:?}");
    };
    check(true, (1, 1));
    check(false, (0, 1));
}

const START: Time = Time::from_millis(8);

fn sleep_shortly() {
    std::thread::sleep(Time::from_millis(1));
}

/// Takes the watched name, and its priority only then.
fn becomes_a_victim_late() {
    scene::become_task("scene-victim", STAGE, 0);
    scene::spin(START);
    scene::become_task("scene-victim", STAGE, 10);
    for _ in 0..5 {
        sleep_shortly();
    }
}

/// Is born with the watched name.
fn is_born_a_victim() {
    scene::become_task("scene-other", STAGE, 10);
    sleep_shortly();
    scene::become_task("scene-victim", STAGE, 10);
    sleep_shortly();
    std::thread::spawn(becomes_another_priority)
        .join()
        .expect("it ends");
}

fn becomes_another_priority() {
    scene::spin(START);
    scene::become_task("scene-victim", STAGE, 11);
    sleep_shortly();
}

/// Takes the watched name for each job.
fn takes_the_name_twice() {
    for _ in 0..2 {
        scene::become_task("scene-victim", STAGE, 10);
        scene::spin(START);
        sleep_shortly();
        scene::become_task("scene-other", STAGE, 10);
        sleep_shortly();
    }
}

/// Takes the watched name, and ends without a sleep.
fn is_a_job() {
    scene::become_task("scene-victim", STAGE, 10);
    scene::spin(START);
}

#[test]
fn what_a_task_does_under_its_name_before_its_first_sleep_is_its_start_and_no_miss() {
    let _privileged = testkit::privileged();
    let check = |body: fn(), hits: usize, start_ups: u64| {
        let (watch, mut ring) = Watch::start(&config(Duration::from_ms(5))).expect("a watch");
        std::thread::spawn(body).join().expect("it ends");
        watch.check_open().expect("looked");
        let counted = watch.statistics().expect("counters");
        let found = taken(&mut ring);
        assert_eq!(
            (found.len(), counted.start_ups),
            (hits, start_ups),
            "{found:#?}"
        );
        assert_eq!((counted.dropped, counted.unslept), (0, 0), "{counted:?}");
    };
    check(becomes_a_victim_late, 0, 1);
    check(is_born_a_victim, 0, 1);
    check(takes_the_name_twice, 1, 1);
    check(is_a_job, 1, 0);
}

/// A thread that blocks so often in one activation: it writes where there is no room.
fn blocks(times: usize) {
    let (mut read, mut write) = std::io::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            scene::become_task("scene-victim", STAGE, 10);
            std::thread::sleep(Time::from_millis(2));
            for _ in 0..times + 16 {
                write.write_all(&[0; 4096]).expect("written");
            }
        });
        std::thread::sleep(Time::from_millis(10));
        let is_full = |read: &std::io::PipeReader| {
            rustix::io::ioctl_fionread(read).expect("a pipe") >= 16 * 4096
        };
        for _ in 0..times {
            while !is_full(&read) {
                std::thread::yield_now();
            }
            read.read_exact(&mut [0; 4096]).expect("read");
        }
        while read.read(&mut [0; 4096]).expect("read") > 0 {}
    });
}

#[test]
fn evidence_that_more_blocks_overwrote_than_a_ring_holds_is_said_to_be_gone() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a reader beside the writer") {
        return;
    }
    let check = |times: usize, expect: bool| {
        let (watch, mut ring) = Watch::start(&config(Duration::from_ms(3))).expect("a watch");
        std::thread::spawn(move || blocks(times))
            .join()
            .expect("it ends");
        let hits = taken(&mut ring);
        let longest = hits.iter().max_by_key(|hit| hit.latency()).expect("late");
        let found = watch.evidence().read();
        let is_of_it =
            |gone: &&bpf_host::Gone| gone.cpu == Cpu(STAGE as u32) && gone.before > longest.origin;
        let gone = found.gone.iter().any(|gone| is_of_it(&gone));
        assert_eq!(gone, expect, "{:?} {longest:#?}", found.gone);
    };
    check(20, false);
    // Some of so many find room at once.
    check(1_500, true);
}
