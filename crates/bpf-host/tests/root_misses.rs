//! Check on the running kernel that misses of which no wake-up tells are reported: work that
//! outlasts its period, targets that somebody stops, what was under way before the watch, what is
//! open when it ends.

mod scene;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Time;

use bpf_host::{HitRing, Targets, Watch, WatchConfig};
use event::evidence::{
    Blocked, BlockedOn, EndKind, Hit, Moment, Records, ReleaseKind, Role, Steal, StepKind,
    StopKind, Stopped,
};
use event::{Cpu, Duration, Prio, TaskPattern};
use scene::process::{Freezer, Process, Sleep, Traced};
use scene::{ASIDE, STAGE, Victim, fault, hog};

const THRESHOLD: Duration = Duration::from_ms(15);
const STOP: Time = Time::from_millis(50);
/// How often a scene is begun that a busy machine may let end before the watch begins.
const TRIES: usize = 5;

fn config(end: EndKind) -> WatchConfig {
    WatchConfig {
        targets: Targets::Tasks(vec![TaskPattern::parse("scene-vic*").expect("a name")]),
        threshold: THRESHOLD,
        rate_limit_interval: Duration::ZERO,
        end,
        ..WatchConfig::default()
    }
}

fn two_cpus() -> bool {
    testkit::two_cpus("misses without a wake-up")
}

/// All hits until `done`, and what follows at once.
fn hits(ring: &mut HitRing, done: impl FnOnce()) -> Vec<Hit> {
    done();
    let mut hits = ring.wait(Time::from_millis(20)).expect("hits");
    hits.extend(ring.wait(Time::from_millis(20)).expect("hits"));
    hits
}

fn records(watch: &Watch) -> Records {
    let mut records = Records::default();
    let all = watch.evidence().read().records;
    all.into_iter().for_each(|record| records.push(record));
    records
}

#[test]
fn work_that_outlasts_its_period_is_a_miss_in_each_period_that_it_misses() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    const PERIODS: usize = 6;
    let check = |policy: scene::Policy, end: EndKind, over_ms: i64, expect: usize| {
        let mut config = config(end);
        config.threshold = Duration::from_ms(over_ms);
        let (watch, mut ring) = Watch::start(&config).expect("a watch");
        let hits = hits(&mut ring, || scene::overrun(policy, PERIODS));
        assert!(hits.len() >= expect, "{policy:?} {end:?}: {hits:#?}");
        let lost = watch.statistics().expect("counters");
        assert_eq!((lost.dropped, lost.lost), (0, 0), "{policy:?} {end:?}");
        let released = records(&watch).released;
        let overruns = released
            .iter()
            .filter(|one| one.why == ReleaseKind::Overrun);
        assert!(
            overruns.count() + 1 >= expect,
            "{policy:?} {end:?} {released:#?}"
        );
    };
    // 12 ms of work in a period of 10 ms: the k-th activation begins 2·k ms late, and ends 12 ms
    // after that.
    let fifo = scene::Policy::Fifo(10);
    check(fifo, EndKind::Blocked, 11, PERIODS - 1);
    check(fifo, EndKind::SwitchIn, 1, PERIODS - 2);
    check(fifo, EndKind::UserReturn, 1, PERIODS - 2);
    check(scene::Policy::Fair, EndKind::Blocked, 11, PERIODS - 1);
}

#[test]
fn a_target_that_is_late_already_when_the_watch_begins_is_seen_to_catch_up() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let mut config = config(EndKind::SwitchIn);
    config.threshold = Duration::from_ms(2);
    // Real-time: on a busy machine, a fair thread would begin the watch behind the victim's end.
    let look = move || {
        scene::become_task("scene-look", ASIDE, 30);
        // Longer than a watch takes to begin, which may be a second beside a busy neighbour.
        let victim = std::thread::spawn(|| scene::overrun(scene::Policy::Fifo(10), 130));
        std::thread::sleep(STOP);
        let (_watch, mut ring) = Watch::start(&config).expect("a watch");
        hits(&mut ring, || victim.join().expect("it ends"))
    };
    let hits = std::thread::spawn(look).join().expect("it looked");
    assert!(hits.len() >= 3, "{hits:#?}");
}

#[test]
fn a_deadline_task_that_runs_out_of_budget_is_late() {
    let _privileged = testkit::privileged();
    let (_watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
    // 12 ms of work at 6 ms in 10 ms last for 16 ms.
    let hits = hits(&mut ring, || scene::over_budget(3));
    assert!(hits.len() >= 2, "{hits:#?}");
}

#[test]
fn who_stops_a_target_is_named_with_the_time_that_it_lost() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let own = (
        scene::tid(),
        std::fs::read_to_string("/proc/thread-self/comm").expect("a name"),
    );
    let check = |how: StopKind, end: EndKind, is_told: bool, stop: &dyn Fn(&Process)| {
        let victim = Process::start("scene-victim", STAGE);
        let (watch, mut ring) = Watch::start(&config(end)).expect("a watch");
        let hits = hits(&mut ring, || stop(&victim));
        let long = hits
            .iter()
            .filter(|hit| hit.latency() >= Duration::from_ms(45));
        assert_eq!(long.count(), 1, "{how:?} {end:?}: {hits:#?}");
        let is_it = |stopped: &&Stopped| stopped.task.tid.0 == victim.pid && stopped.how == how;
        let stopped = records(&watch).stopped;
        let stop = stopped.iter().find(is_it).expect("evidence of the stop");
        let by = stop.by.as_ref().map(|by| (by.tid.0, by.comm.as_str()));
        let expect = Some((own.0, own.1.trim_end()));
        assert_eq!(by, expect.filter(|_| is_told), "{stopped:#?}");
    };
    let end = EndKind::SwitchIn;
    check(StopKind::Signal, end, true, &|victim| victim.stop_for(STOP));
    check(StopKind::Signal, EndKind::Blocked, true, &|victim| {
        victim.stop_for(STOP)
    });
    check(StopKind::Traced, end, true, &|victim| {
        Traced::seize(victim).stop_for(STOP);
    });
    match Freezer::with_own_group() {
        // The freezer of the first version has no event.
        Some(freezer) => check(StopKind::Frozen, end, freezer.is_unified, &|victim| {
            freezer.take(victim);
            freezer.freeze_for(STOP);
        }),
        None => testkit::skip("freezer", "no control groups with a freezer"),
    }
}

#[test]
fn who_is_stopped_in_its_sleep_is_late_only_since_that_was_to_end() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let freezer = Freezer::with_own_group();
    let check = |end: EndKind, sleep: Sleep, pause_ms: u64, expect: bool| {
        let pause = std::time::Duration::from_millis(pause_ms);
        let victim = Process::sleeping("scene-victim", STAGE, pause, sleep);
        let (watch, mut ring) = Watch::start(&config(end)).expect("a watch");
        // What its sleep has for a timer is known of those that begin under the watch.
        while expect && watch.statistics().expect("counters").samples == 0 {
            std::thread::yield_now();
        }
        let hits = hits(&mut ring, || match (&freezer, expect) {
            // Both ways to stop it, in turn.
            (Some(freezer), true) if end == EndKind::Blocked => {
                freezer.take(&victim);
                freezer.freeze_for(STOP);
            }
            _ => victim.stop_for(STOP),
        });
        let by_stop = |hit: &&Hit| {
            let first = hit.steps.first();
            first.is_some_and(|step| step.kind == StepKind::Blocked)
        };
        let found = hits.iter().any(|hit| by_stop(&hit));
        let stops = records(&watch).stopped;
        assert_eq!(found, expect, "{end:?} {sleep:?}: {hits:#?} {stops:#?}");
    };
    let all = [
        Sleep::Relative,
        Sleep::Absolute,
        Sleep::Futex,
        Sleep::Poll,
        Sleep::TimerFile,
    ];
    for (end, sleeps) in [
        (EndKind::SwitchIn, &all[1..3]),
        (EndKind::Blocked, &all[..]),
    ] {
        for &sleep in sleeps {
            // Stopped for 50 ms of a sleep of 20 s, and of one of 20 ms that ends meanwhile.
            check(end, sleep, 20_000, false);
            check(end, sleep, 20, true);
        }
    }
}

#[test]
fn what_it_does_behind_the_sleep_in_which_it_was_stopped_is_part_of_the_miss() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    const WORK: Time = Time::from_millis(4);
    let check = |sleep: Sleep| {
        let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
        let beat = (Time::from_millis(20), WORK);
        let victim = Process::working("scene-victim", STAGE, beat, sleep);
        while watch.statistics().expect("counters").samples < 2 {
            std::thread::yield_now();
        }
        let hits = hits(&mut ring, || {
            victim.until_asleep();
            victim.stop_for(STOP);
            // Its work is over by its next sleep but one.
            std::thread::sleep(STOP);
        });
        // Where it was stopped in its work after all, that is no less than this.
        let miss = hits
            .iter()
            .find(|hit| hit.latency() >= Duration::from_ms(25));
        let miss = miss.unwrap_or_else(|| panic!("{sleep:?}: {hits:#?}"));
        let woken = miss
            .steps
            .iter()
            .rfind(|step| step.kind == StepKind::Waking);
        let worked = woken.map(|woken| miss.end - woken.time).expect("a wake-up");
        let least = Duration::from_ns(WORK.as_nanos() as i64);
        assert!(worked >= least, "{sleep:?} {worked}: {miss:#?}");
    };
    check(Sleep::Relative);
    check(Sleep::Absolute);
    check(Sleep::Futex);
    check(Sleep::Poll);
    check(Sleep::TimerFile);
}

#[test]
fn each_job_that_a_task_catches_up_with_behind_a_stop_is_an_activation() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    const JOBS: u32 = 40;
    let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
    let beat = (Time::from_millis(10), Time::from_millis(1));
    let hits = hits(&mut ring, || {
        let victim = Process::periodic("scene-victim", STAGE, beat, JOBS);
        victim.until_asleep();
        victim.stop_for(STOP);
        victim.wait();
    });
    let statistics = watch.statistics().expect("counters");
    // From its name to its first sleep is its start.
    assert_eq!(
        statistics.samples,
        u64::from(JOBS),
        "{statistics:#?} {hits:#?}"
    );
    let stops = records(&watch).stopped;
    assert_eq!(stops.len(), 1, "{stops:#?}");
}

#[test]
fn who_waits_for_its_child_of_vfork_counts_as_frozen_to_the_kernel_and_is_not() {
    let _privileged = testkit::privileged();
    let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
    let make = || {
        scene::become_task("scene-victim", STAGE, 10);
        // SAFETY: the child calls only what a signal handler may.
        unsafe {
            let flags = libc::CLONE_VFORK | libc::SIGCHLD;
            if libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) == 0 {
                Sleep::Relative.run(STOP.as_nanos() as i64);
                libc::_exit(0);
            }
            libc::wait(std::ptr::null_mut());
        }
    };
    let hits = hits(&mut ring, || {
        std::thread::spawn(make).join().expect("it ends");
    });
    let stopped = records(&watch).stopped;
    assert!(stopped.is_empty(), "{stopped:#?}");
    let is_long = |hit: &&Hit| hit.latency() >= Duration::from_ms(45);
    assert!(hits.iter().any(|hit| is_long(&hit)), "{hits:#?}");
}

#[test]
fn a_target_that_is_stopped_already_when_the_watch_begins_is_reported() {
    let _privileged = testkit::privileged();
    let victim = Process::start("scene-victim", STAGE);
    let mut watched = None;
    victim.stop_around(|| {
        watched = Some(Watch::start(&config(EndKind::SwitchIn)).expect("a watch"));
        std::thread::sleep(STOP);
    });
    let (_watch, mut ring) = watched.expect("it began");
    let hits = hits(&mut ring, || ());
    let longest = hits
        .iter()
        .find(|hit| hit.latency() >= Duration::from_ms(45));
    assert!(longest.is_some_and(|hit| hit.stale), "{hits:#?}");
}

#[test]
fn a_page_fault_that_another_task_serves_late_is_part_of_the_activation() {
    let _privileged = testkit::privileged();
    let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
    let hits = hits(&mut ring, || fault::served_after(STOP));
    let longest = hits.iter().map(Hit::latency).max();
    assert!(longest >= Some(Duration::from_ms(45)), "{hits:#?}");
    let blocked = records(&watch).blocked;
    assert!(
        blocked.iter().any(|one| one.on == BlockedOn::Fault),
        "{blocked:#?}"
    );
}

#[test]
fn a_lock_without_an_owner_is_waited_for_inside_and_a_counter_ends_the_work() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let watched = |play: fn()| {
        let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
        let hits = hits(&mut ring, play);
        let blocked = records(&watch).blocked;
        let is_lock = |one: &Blocked| one.on == BlockedOn::Mutex;
        let locks: Vec<_> = blocked.into_iter().filter(is_lock).collect();
        (hits, locks)
    };
    let (hits, locks) = watched(|| scene::behind_lock(STOP));
    let longest = hits.iter().map(Hit::latency).max();
    assert!(longest >= Some(Duration::from_ms(45)), "{hits:#?}");
    assert!(!locks.is_empty(), "{hits:#?}");
    // Each of these sleeps is for the next work; in one, the counter is 2.
    let (hits, _) = watched(|| scene::behind_counter(Time::from_millis(40), 5));
    let longest = hits.iter().map(Hit::latency).max();
    assert!(longest < Some(Duration::from_ms(38)), "{hits:#?}");
}

#[test]
fn who_sleeps_for_one_word_alone_waits_there_for_its_work() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    // A busy machine makes others late, by less; and one of many is its start.
    let check = |play: &dyn Fn(), expect: RangeInclusive<usize>, unknown: u64| {
        let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
        let hits = hits(&mut ring, play);
        let is_late = |hit: &&Hit| hit.latency() >= Duration::from_ms(50);
        assert!(
            expect.contains(&hits.iter().filter(is_late).count()),
            "{hits:#?}"
        );
        let longest = hits.iter().map(Hit::latency).max();
        assert!(longest < Some(Duration::from_ms(120)), "{hits:#?}");
        assert!(watch.statistics().expect("counters").dropped >= unknown);
    };
    let works = |long: usize| {
        let mut works = [Time::from_millis(1); 16];
        works[long] = STOP;
        works
    };
    // One of the first works, by which it is known, is told by nobody.
    check(&|| scene::parked(&works(3)), 0..=0, 1);
    check(&|| scene::parked(&works(12)), 1..=1, 0);
    check(&|| scene::served_behind_lock(STOP, 12), 11..=12, 0);
}

#[test]
fn a_lock_of_several_readers_is_told_from_one_of_a_single_one() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    for (readers, expect) in [(1, BlockedOn::Mutex), (3, BlockedOn::Readers)] {
        let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
        let hits = hits(&mut ring, || scene::behind_readers(STOP, readers));
        let longest = hits.iter().map(Hit::latency).max();
        assert!(longest >= Some(Duration::from_ms(45)), "{hits:#?}");
        let blocked = records(&watch).blocked;
        let is_told = |one: &Blocked| one.on == expect;
        assert!(blocked.iter().any(is_told), "{readers}: {blocked:#?}");
    }
}

#[test]
fn a_timers_slack_is_told_where_it_alone_may_break_the_budget() {
    let _privileged = testkit::privileged();
    let (watch, mut ring) = Watch::start(&config(EndKind::SwitchIn)).expect("a watch");
    let hits = hits(&mut ring, || scene::slack(Time::from_millis(60), 4));
    let records = records(&watch);
    let slack = records
        .released
        .iter()
        .filter(|one| one.why == ReleaseKind::Slack);
    // Other timers may serve one earlier.
    assert!(
        !hits.is_empty() && slack.count() >= hits.len(),
        "{hits:#?} {records:#?}"
    );
    let first = &records.released[0];
    assert_eq!(first.slack, Duration::from_ms(60));
}

/// A watch that begins while a hog keeps the victim waiting, for [`STOP`] more. `None` when the
/// hog's own limit ended it before that.
fn watch_behind_a_hog(victim: i32) -> Option<(Watch, HitRing)> {
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    // Real-time: on a busy machine, a fair thread would begin the watch behind the hog's end.
    let look = move || {
        scene::become_task("scene-look", ASIDE, 30);
        let hog = scene::hog_until(20, &until);
        // It stays so: the hog holds the CPU already.
        scene::until_runnable(victim);
        let watched = Watch::start(&config(EndKind::SwitchIn)).expect("a watch");
        std::thread::sleep(STOP);
        let is_held = !hog.is_finished();
        over.store(true, Ordering::Relaxed);
        hog.join().expect("the hog ends");
        is_held.then_some(watched)
    };
    std::thread::spawn(look).join().expect("it looked")
}

#[test]
fn a_target_that_waits_already_when_the_watch_begins_is_reported() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let victim = Victim::start("scene-victim", 10, || ());
    // On a busy machine, it may take longer to begin a watch than a hog may run.
    let watched = (0..TRIES).find_map(|_| watch_behind_a_hog(victim.tid));
    let (_watch, mut ring) = watched.expect("it begins before the hog's limit");
    let mut hits = hits(&mut ring, || ());
    // The machine itself may make it late once more, where it takes a virtual CPU away.
    let by_hog = |hit: &Hit| {
        let culprit = hit.culprit.as_ref();
        culprit.is_some_and(|task| task.comm == "scene-hog")
    };
    hits.retain(by_hog);
    let [hit] = hits.as_slice() else {
        panic!("{hits:#?}");
    };
    assert!(hit.stale, "its origin was not seen: {hit:#?}");
    assert!(hit.latency() >= Duration::from_ms(45), "{hit:#?}");
}

/// A target that computes while a watch begins, and while a hog takes its CPU for 30 ms. `None`
/// when its own limit ended it before that.
fn hits_of_one_that_computes() -> Option<Vec<Hit>> {
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    let computes = std::thread::spawn(move || {
        scene::become_task("scene-victim", STAGE, 10);
        scene::spin_until(&until);
    });
    // Real-time: on a busy machine, a fair thread would begin the watch behind the target's end.
    let look = move || {
        scene::become_task("scene-look", ASIDE, 30);
        let (_watch, mut ring) = Watch::start(&config(EndKind::SwitchIn)).expect("a watch");
        let hits = hits(&mut ring, || hog(20, Time::from_millis(30)));
        let computed = !computes.is_finished();
        over.store(true, Ordering::Relaxed);
        computes.join().expect("it ends");
        computed.then_some(hits)
    };
    std::thread::spawn(look).join().expect("it looked")
}

#[test]
fn a_target_that_only_computes_is_judged_by_its_waits() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    // On a busy machine, it may take longer to begin a watch than anybody computes here.
    let hits = (0..TRIES).find_map(|_| hits_of_one_that_computes());
    let hits = hits.expect("it begins before the end of the computation");
    let longest = hits
        .iter()
        .max_by_key(|hit| hit.latency())
        .expect("it waited");
    assert_eq!(longest.steps[0].kind, StepKind::Preempted, "{longest:#?}");
    let culprit = longest.culprit.as_ref().map(|task| task.comm.as_str());
    assert_eq!(culprit, Some("scene-hog"), "{longest:#?}");
    assert!(longest.latency() >= Duration::from_ms(28), "{longest:#?}");
}

#[test]
fn a_target_that_waits_names_who_runs_and_its_end_is_the_same_hit() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let _victim = Victim::start("scene-victim", 10, || ());
    let mut config = config(EndKind::SwitchIn);
    config.threshold = Duration::from_ms(10_000);
    config.waiting_after = Some(THRESHOLD);
    let (watch, mut ring) = Watch::start(&config).expect("a watch");
    let look = || {
        scene::become_task("scene-look", ASIDE, 30);
        let hog = std::thread::spawn(|| hog(20, Time::from_millis(100)));
        let mut hits = Vec::new();
        while !hog.is_finished() {
            watch.check_waiting().expect("it looks");
            hits.extend(ring.wait(Time::from_millis(5)).expect("hits"));
        }
        hog.join().expect("the hog ends");
        hits.extend(ring.wait(Time::from_millis(20)).expect("hits"));
        hits
    };
    let hits = std::thread::scope(|scope| scope.spawn(look).join().expect("it looked"));
    let ends: Vec<_> = hits.iter().map(|hit| (hit.id, hit.end_kind)).collect();
    assert_eq!(
        ends,
        [(1, EndKind::Waiting), (1, EndKind::SwitchIn)],
        "{hits:#?}"
    );
    let running = hits[0].culprit.as_ref().expect("somebody runs");
    assert_eq!(
        (running.comm.as_str(), running.prio.rt()),
        ("scene-hog", Some(20))
    );
    assert!(hits[1].latency() > hits[0].latency());
    let moments = records(&watch).moments;
    let of = |role| moments.iter().filter(move |one| one.role == role);
    assert!(of(Role::Running).all(|one| one.policy == 1), "{moments:#?}");
    // One for the report and one for the end.
    assert_eq!(of(Role::Target).count(), 2, "{moments:#?}");
}

#[test]
fn an_activation_that_is_open_when_the_watch_ends_is_reported() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    let victim = Victim::start("scene-victim", 10, move || scene::spin_until(&until));
    let (watch, mut ring) = Watch::start(&config(EndKind::Blocked)).expect("a watch");
    // Under way when the watch began, or later: it is not over before we say so.
    let mut open = Vec::new();
    while open.is_empty() {
        watch.check_open().expect("it looks");
        open.extend(ring.wait(Time::from_millis(5)).expect("hits"));
    }
    over.store(true, Ordering::Relaxed);
    drop(victim);
    // A hit that its CPU still fills ends a wait without being there.
    let deadline = std::time::Instant::now() + Time::from_secs(2);
    let mut ended = Vec::new();
    while ended.is_empty() && std::time::Instant::now() < deadline {
        ended.extend(ring.wait(Time::from_millis(20)).expect("hits"));
    }
    assert_eq!(
        (open.len(), open[0].end_kind),
        (1, EndKind::Waiting),
        "{open:#?}"
    );
    let same: Vec<_> = ended.iter().filter(|hit| hit.id == open[0].id).collect();
    assert!(
        matches!(same.as_slice(), [end] if end.end_kind == EndKind::Blocked),
        "{ended:#?}"
    );
}

#[test]
fn steal_is_read_from_every_cpu_at_one_moment() {
    let _privileged = testkit::privileged();
    if !bpf_host::Features::probe().steal {
        return testkit::skip("steal of every CPU", "no account of steal");
    }
    let (watch, _ring) = Watch::start(&config(EndKind::SwitchIn)).expect("a watch");
    let steal = watch.steal();
    // A CPU is known once its timer has come, each at its own time.
    let cpus_of = |found: &[Steal]| -> BTreeSet<Cpu> { found.iter().map(|one| one.cpu).collect() };
    let deadline = std::time::Instant::now() + Time::from_secs(2);
    let mut found = Vec::new();
    while cpus_of(&found).len() < 2 && std::time::Instant::now() < deadline {
        std::thread::sleep(Time::from_millis(10));
        steal.look();
        steal.record();
        found = records(&watch).steal;
    }
    assert!(cpus_of(&found).len() >= 2, "{found:#?}");
    assert!(
        found
            .iter()
            .all(|one| one.begin < one.time && one.steal <= one.time - one.begin)
    );
}

#[test]
fn the_worst_is_reported_however_few_reports_are_allowed() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let _victim = Victim::start("scene-victim", 10, || ());
    let mut config = config(EndKind::SwitchIn);
    config.new_worst_only = true;
    config.threshold = Duration::from_ns(1);
    config.rate_limit_interval = Duration::from_ms(60_000);
    let (watch, mut ring) = Watch::start(&config).expect("a watch");
    let hits = hits(&mut ring, || {
        hog(20, Time::from_millis(5));
        hog(20, Time::from_millis(30));
    });
    let reported = hits.iter().map(Hit::latency).max();
    let worst = watch.statistics().expect("counters").worst;
    assert!(
        reported.is_some_and(|longest| longest >= Duration::from_ms(28)),
        "{hits:#?}"
    );
    assert!(
        reported >= Some(worst),
        "{worst} was counted, {reported:?} reported"
    );
}

#[test]
fn who_is_killed_in_the_midst_of_its_work_ends_that_there() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let mut command = std::process::Command::new("sh");
    let mut child = command.args(["-c", "while :; do :; done"]).spawn();
    let child = child.as_mut().expect("it starts");
    let config = WatchConfig {
        targets: Targets::Tasks(vec![TaskPattern::Pid(event::Tid(child.id() as i32))]),
        ..config(EndKind::Blocked)
    };
    let (watch, mut ring) = Watch::start(&config).expect("a watch");
    let hits = hits(&mut ring, || {
        std::thread::sleep(2 * STOP);
        child.kill().expect("killed");
        child.wait().expect("it ends");
    });
    let [hit] = hits.as_slice() else {
        panic!("{hits:#?}, {:?}", watch.statistics());
    };
    assert_eq!(
        (hit.end_kind, hit.task.tid.0),
        (EndKind::Blocked, child.id() as i32)
    );
    assert!(
        hit.latency() >= Duration::from_ms(2 * STOP.as_millis() as i64),
        "{hit:#?}"
    );
}

#[test]
fn what_dies_before_it_is_back_in_its_program_is_counted_as_dropped() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let victim = Process::start("scene-victim", STAGE);
    let (watch, mut ring) = Watch::start(&config(EndKind::UserReturn)).expect("a watch");
    let hits = hits(&mut ring, || {
        let hog = std::thread::spawn(|| hog(20, Time::from_millis(60)));
        scene::until_runnable(victim.pid);
        std::thread::sleep(Time::from_millis(20));
        victim.kill();
        hog.join().expect("the hog ends");
        victim.wait();
    });
    let statistics = watch.statistics().expect("counters");
    assert_eq!(
        (hits.len() as u64 + statistics.dropped),
        1,
        "{hits:#?} {statistics:?}"
    );
    assert!(
        hits.iter()
            .all(|hit| hit.steps.last().map(|step| step.kind) == Some(StepKind::UserReturn))
    );
}

#[test]
fn who_raised_itself_for_a_while_is_seen_to_leave_the_cpu_as_it_lowers_itself() {
    let _privileged = testkit::privileged();
    if !two_cpus() {
        return;
    }
    let _victim = Victim::start("scene-victim", 50, || ());
    let (watch, mut ring) = Watch::start(&config(EndKind::SwitchIn)).expect("a watch");
    let mut raised = 0;
    // As a mutex with a ceiling does.
    let hits = hits(&mut ring, || raised = scene::hog_with_ceiling(10, 60, STOP));
    assert!(!hits.is_empty());
    let moments = records(&watch).moments;
    let is_it = |one: &&Moment| one.role == Role::Lowered && one.task.tid.0 == raised;
    let lowered = moments.iter().find(is_it);
    let lowered = lowered.unwrap_or_else(|| panic!("{moments:#?}"));
    // It came lower than that: only an interrupt meanwhile saw it.
    assert_eq!(
        lowered.prio_when_it_came(),
        Prio::from_rt(60),
        "{lowered:?}"
    );
}
