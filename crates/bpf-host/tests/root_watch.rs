//! Check on the running kernel that a watch tells the chain of a late task as it was.

mod scene;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration as Time;

use bpf_host::{HitRing, Targets, Watch, WatchConfig};
use event::evidence::{EndKind, Hit, StepKind, irq};
use event::{Cpu, Duration, Instant, TaskPattern, Tid};
use scene::{STAGE, Victim, hog};

/// The hogs of these scenes run for 40 ms, which is far over this.
const THRESHOLD: Duration = Duration::from_ms(15);
const HOG: Time = Time::from_millis(40);

fn config(targets: Targets) -> WatchConfig {
    WatchConfig {
        targets,
        threshold: THRESHOLD,
        rate_limit_interval: Duration::ZERO,
        ..WatchConfig::default()
    }
}

fn named(pattern: &str) -> Targets {
    Targets::Tasks(vec![TaskPattern::parse(pattern).expect("names tasks")])
}

/// The hits within half a second that are the scene's: on a busy machine, the rest of the kernel
/// may make a task late too.
fn collect(ring: &mut HitRing) -> Vec<Hit> {
    let mut hits = all(ring);
    let by_hog = |hit: &Hit| {
        hit.culprit
            .as_ref()
            .is_some_and(|task| task.comm == "scene-hog")
    };
    hits.retain(by_hog);
    hits
}

/// The hits that come within half a second.
fn all(ring: &mut HitRing) -> Vec<Hit> {
    let mut hits = Vec::new();
    for _ in 0..5 {
        hits.extend(ring.wait(Time::from_millis(100)).unwrap());
    }
    hits
}

fn kinds(hit: &Hit) -> Vec<StepKind> {
    hit.steps.iter().map(|step| step.kind).collect()
}

#[test]
fn a_hog_makes_one_hit_with_the_timers_chain_and_the_hogs_name() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_hog_makes_one_hit_with_the_timers_chain_and_the_hogs_name") {
        return;
    }
    let victim = Victim::start("scene-victim", 10, || ());
    let (watch, mut ring) = Watch::start(&config(named("scene-vic*"))).unwrap();
    hog(20, HOG);
    let hits = collect(&mut ring);
    assert_eq!(hits.len(), 1, "{hits:#?}");
    let hit = &hits[0];

    use StepKind::*;
    assert_eq!(
        kinds(hit),
        [TimerExpiry, Hardirq, Hrtimer, Waking, SwitchIn],
        "{hit:#?}"
    );
    assert!(
        hit.steps
            .windows(2)
            .all(|pair| pair[0].time <= pair[1].time),
        "{hit:#?}"
    );
    assert_eq!(hit.steps[0].time, hit.origin);
    assert_eq!(hit.steps[1].id, irq::LOCAL_TIMER);
    assert!(hit.steps.iter().all(|step| step.cpu == Cpu(STAGE as u32)));
    assert_eq!(
        (hit.task.tid, hit.task.prio.rt()),
        (Tid(victim.tid), Some(10))
    );
    let culprit = hit.culprit.as_ref().unwrap();
    assert_eq!(
        (culprit.comm.as_str(), culprit.prio.rt()),
        ("scene-hog", Some(20))
    );
    // The victim sleeps for 2 ms: it is late by the hog's run, but for at most that.
    let hog_ns = HOG.as_nanos() as i64;
    assert!(
        (hog_ns - 3_000_000..hog_ns + 50_000_000).contains(&hit.latency().as_ns()),
        "{hit:#?}"
    );
    assert!(!hit.waker_stack.is_empty() && !hit.wakee_stack.is_empty());
    // Nobody counts while we compare.
    drop(victim);
    let statistics = watch.statistics().unwrap();
    assert!(statistics.samples > 10 && statistics.histogram.samples() == statistics.samples);
    assert!(statistics.worst >= hit.latency());
}

/// A task that works for longer than `work` at each wake-up, and is woken from another CPU just as
/// it goes to sleep again: sooner or later, by some nanoseconds.
fn woken_as_it_sleeps(name: &str, work: Time, times: u64) {
    let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("an eventfd");
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            scene::become_task(name, STAGE, 10);
            for number in 1..=times {
                rustix::io::read(&bell, &mut [0; 8]).expect("rung");
                scene::spin(work);
                done.store(number, Ordering::Release);
            }
        });
        scope.spawn(|| {
            scene::become_task("scene-bell", scene::ASIDE, 0);
            for number in 0..times {
                while done.load(Ordering::Acquire) < number {
                    std::hint::spin_loop();
                }
                (0..number % 64).for_each(|_| std::hint::spin_loop());
                rustix::io::write(&bell, &1u64.to_ne_bytes()).expect("it rings");
            }
        });
    });
}

#[test]
fn an_activation_that_ends_on_two_cpus_at_once_is_told_once_and_as_long_as_it_was() {
    const NAME: &str =
        "an_activation_that_ends_on_two_cpus_at_once_is_told_once_and_as_long_as_it_was";
    let _privileged = testkit::privileged();
    if !testkit::two_cpus(NAME) {
        return;
    }
    let threshold = Duration::from_us(20);
    let (watch, mut ring) = Watch::start(&WatchConfig {
        threshold,
        end: EndKind::Blocked,
        rate_limit_interval: Duration::from_ms(100_000),
        notes_late: true,
        ..config(named("scene-woken"))
    })
    .unwrap();
    let mut late = watch.late_ones().unwrap();
    let mut told = Vec::new();
    for _ in 0..3 {
        woken_as_it_sleeps("scene-woken", Time::from_micros(25), 1_500);
        let hits = ring.take().unwrap().into_iter();
        told.extend(hits.map(|hit| (hit.origin, hit.latency())));
        let short = late.take().unwrap().into_iter();
        told.extend(short.map(|late| (late.origin, late.latency())));
    }
    assert!(told.len() > 1_000, "{}", told.len());
    told.sort();
    let brief = told.iter().filter(|(_, latency)| *latency < threshold);
    assert_eq!(brief.count(), 0, "of {}", told.len());
    let twice = told.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    assert_eq!(twice.count(), 0, "of {}", told.len());
}

#[test]
fn a_hit_that_ends_as_another_cpu_wakes_its_task_has_its_steps_where_they_were() {
    const NAME: &str =
        "a_hit_that_ends_as_another_cpu_wakes_its_task_has_its_steps_where_they_were";
    let _privileged = testkit::privileged();
    if !testkit::two_cpus(NAME) {
        return;
    }
    let (_watch, mut ring) = Watch::start(&WatchConfig {
        threshold: Duration::from_us(20),
        end: EndKind::Blocked,
        rate_limit_interval: Duration::ZERO,
        ..config(named("scene-woken"))
    })
    .unwrap();
    let mut hits = Vec::new();
    for _ in 0..60 {
        woken_as_it_sleeps("scene-woken", Time::from_micros(25), 60);
        hits.extend(ring.take().unwrap());
    }
    assert!(hits.len() > 1_000, "{}", hits.len());
    let without: Vec<_> = hits.iter().filter(|hit| hit.steps.is_empty()).collect();
    assert!(without.is_empty(), "of {}: {without:#?}", hits.len());
    // The first activation of each thread began elsewhere, before it came on the stage.
    let was_woken = hits
        .iter()
        .filter(|hit| hit.steps[0].kind == StepKind::Waking);
    let went_elsewhere = |hit: &&Hit| {
        hit.steps
            .last()
            .is_some_and(|step| step.cpu.0 != STAGE as u32)
    };
    let elsewhere: Vec<_> = was_woken.filter(went_elsewhere).collect();
    assert!(elsewhere.is_empty(), "of {}: {elsewhere:#?}", hits.len());
}

#[test]
fn a_filter_that_does_not_fit_lets_nothing_through() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_filter_that_does_not_fit_lets_nothing_through") {
        return;
    }
    // No kernel gives anybody this number; the first process may be busy.
    const NOBODY: i32 = 4_194_304;
    let victim = Victim::start("scene-victim", 10, || ());
    let check = |change: &dyn Fn(&mut WatchConfig), expect: bool| {
        let mut config = config(named("scene-victim"));
        change(&mut config);
        let (watch, mut ring) = Watch::start(&config).unwrap();
        hog(20, HOG);
        let hits = ring.wait(Time::from_millis(300)).unwrap();
        assert_eq!(!hits.is_empty(), expect, "{config:?}");
        assert_eq!(
            watch.statistics().unwrap().samples > 0,
            expect,
            "{config:?}"
        );
    };
    check(&|config| config.irqs = Some(vec![irq::LOCAL_TIMER]), true);
    check(&|config| config.irqs = Some(vec![12345]), false);
    check(&|config| config.cpus = Some(vec![Cpu(STAGE as u32)]), true);
    check(&|config| config.cpus = Some(vec![Cpu(0)]), false);
    check(&|config| config.softirq = Some(3), false);
    check(&|config| config.targets = named("scene-hog?"), false);
    check(
        &|config| config.targets = Targets::Tasks(vec![TaskPattern::Tid(Tid(victim.tid))]),
        true,
    );
    check(
        &|config| config.targets = Targets::Tasks(vec![TaskPattern::Tid(Tid(NOBODY))]),
        false,
    );
    let (own, our_name) = (
        std::process::id(),
        std::fs::read_to_string("/proc/self/comm").unwrap(),
    );
    let process = format!("process:{}", our_name.trim_end());
    check(
        &|config| config.targets = named(&format!("pid:{own}")),
        true,
    );
    check(
        &|config| config.targets = named(&format!("pid:{NOBODY}")),
        false,
    );
    check(&|config| config.targets = named(&process), true);
    check(
        &|config| config.targets = named("process:scene-victim"),
        false,
    );
    check(&|config| config.targets = named("scene-vict[a-m]m"), true);
    check(&|config| config.targets = named("scene-vict[!a-m]m"), false);
    check(
        &|config| config.min_prio = Some(event::Prio::from_rt(10)),
        true,
    );
    check(
        &|config| config.min_prio = Some(event::Prio::from_rt(11)),
        false,
    );
}

#[test]
fn what_the_rate_limit_holds_back_is_told_in_short_and_is_never_the_worst() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("what_the_rate_limit_holds_back_is_told_in_short_and_is_never_the_worst")
    {
        return;
    }
    let victim = Victim::start("scene-victim", 10, || ());
    let mut config = config(named("scene-victim"));
    config.rate_limit_interval = Duration::from_ms(10_000);
    config.notes_late = true;
    // A bucket of the histogram begins there.
    config.threshold = Duration::from_ns(1 << 24);
    let (watch, mut ring) = Watch::start(&config).unwrap();
    let mut held_back = watch.late_ones().unwrap();
    // The first is the worst, unless the machine makes another one longer.
    hog(20, 2 * HOG);
    (0..3).for_each(|_| hog(20, HOG));
    // Nobody counts while we compare.
    drop(victim);
    let hits: Vec<_> = all(&mut ring)
        .iter()
        .map(event::evidence::Hit::latency)
        .collect();
    assert!(
        hits.is_sorted_by(|before, after| before < after),
        "{hits:?}"
    );
    let late = held_back.take().unwrap();
    let worst = late.iter().map(event::evidence::LateOne::latency).max();
    assert!(worst <= hits.last().copied(), "{late:?}");
    let statistics = watch.statistics().unwrap();
    assert!(statistics.suppressed >= 1, "{statistics:?}");
    assert_eq!(late.len() as u64, statistics.suppressed, "{late:?}");
    let is_over = |(from, ..): &(Duration, Duration, u64)| *from >= config.threshold;
    let over = statistics.histogram.counts().filter(is_over);
    assert_eq!(
        over.map(|(.., count)| count).sum::<u64>(),
        statistics.suppressed + hits.len() as u64
    );
}

#[test]
fn what_the_rate_limit_gives_to_ordinary_tasks_no_real_time_task_lacks() {
    let _privileged = testkit::privileged();
    let ordinary = Victim::start("scene-gui", 0, || ());
    let urgent = Victim::start("scene-audio", 30, || ());
    let mut config = config(named("scene-[ag]u*"));
    config.rate_limit_interval = Duration::from_ms(10_000);
    let (_watch, mut ring) = Watch::start(&config).unwrap();
    // The ordinary one alone, and for longer.
    (0..2).for_each(|_| hog(20, 3 * HOG));
    hog(40, HOG);
    let late = all(&mut ring);
    let is_late = |victim: &Victim| late.iter().any(|hit| hit.task.tid.0 == victim.tid);
    assert!(is_late(&ordinary), "{late:?}");
    assert!(is_late(&urgent), "{late:?}");
}

#[test]
fn a_task_that_is_late_all_the_time_takes_not_every_place_that_the_rate_leaves() {
    let _privileged = testkit::privileged();
    const INTERVAL: Duration = Duration::from_ms(3_000);
    let always = Victim::start("scene-always", 10, || ());
    let seldom = Victim::start("scene-seldom", 15, || ());
    let mut config = config(named("scene-[as]*"));
    config.rate_limit_interval = INTERVAL;
    let (_watch, mut ring) = Watch::start(&config).unwrap();
    // The one alone, as its worst; then both, in the same interval.
    hog(12, 3 * HOG);
    hog(20, HOG);
    std::thread::sleep(Time::from_nanos(INTERVAL.as_ns_unsigned()));
    // The next place is the other's, although this one is late before it.
    hog(12, HOG);
    hog(20, HOG);
    let late = all(&mut ring);
    let is_late = |victim: &Victim| late.iter().any(|hit| hit.task.tid.0 == victim.tid);
    assert!(is_late(&always), "{late:?}");
    assert!(is_late(&seldom), "{late:?}");
}

#[test]
fn our_own_threads_are_watched_only_when_they_are_named() {
    let _privileged = testkit::privileged();
    let victim = Victim::start("scene-victim", 10, || ());
    let (_every, mut of_every) = Watch::start(&config(Targets::RealTime)).unwrap();
    let (_named, mut of_named) = Watch::start(&config(named("scene-victim"))).unwrap();
    hog(20, HOG);
    let of_victim = |hits: Vec<Hit>| {
        let tids = hits.iter().map(|hit| hit.task.tid.0);
        tids.filter(|tid| *tid == victim.tid).count()
    };
    assert!(of_victim(collect(&mut of_named)) > 0);
    assert_eq!(of_victim(collect(&mut of_every)), 0);
}

#[test]
fn only_a_new_worst_is_reported_when_asked() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("only_a_new_worst_is_reported_when_asked") {
        return;
    }
    let _victim = Victim::start("scene-victim", 10, || ());
    let mut config = config(named("scene-victim"));
    config.new_worst_only = true;
    let (watch, mut ring) = Watch::start(&config).unwrap();
    for hog_ms in [60, 30, 120] {
        hog(20, Time::from_millis(hog_ms));
        std::thread::sleep(Time::from_millis(20));
    }
    let latencies: Vec<_> = collect(&mut ring).iter().map(Hit::latency).collect();
    assert!(
        latencies.len() >= 2 && latencies.is_sorted(),
        "{latencies:?}"
    );
    assert!(watch.statistics().unwrap().suppressed >= 1);
}

#[test]
fn a_relay_hands_its_chain_on_to_the_task_that_it_wakes() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_relay_hands_its_chain_on_to_the_task_that_it_wakes") {
        return;
    }
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let end = std::thread::spawn(move || {
        scene::become_task("scene-end", STAGE, 10);
        while receive.recv().is_ok() {}
    });
    let relay = Victim::start("scene-relay", 12, move || send.send(()).unwrap());
    let (watch, mut ring) = Watch::start(&config(named("scene-end"))).unwrap();
    hog(20, HOG);
    let mut hits = all(&mut ring);
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.latency()));
    drop(watch);
    let (relay_tid, _) = (relay.tid, drop(relay));
    end.join().unwrap();

    use StepKind::*;
    let chain = [
        TimerExpiry,
        Hardirq,
        Hrtimer,
        Waking,
        SwitchIn,
        Waking,
        SwitchIn,
    ];
    assert_eq!(kinds(&hits[0]), chain, "{hits:#?}");
    assert_eq!(
        (hits[0].steps[3].id, hits[0].steps[4].id),
        (relay_tid, relay_tid)
    );
    assert_eq!(hits[0].steps[6].comm, "scene-end");
}

/// Of the victim nothing is late but waits that are still open.
fn waits_alone() -> WatchConfig {
    let mut config = config(named("scene-victim"));
    config.threshold = Duration::from_ms(10_000);
    config.waiting_after = Some(THRESHOLD);
    config
}

/// 200 activations of a task that another one wakes so far apart.
fn asked_by_another(apart: Time) -> Vec<Hit> {
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let done = AtomicU64::new(0);
    let config = WatchConfig {
        threshold: Duration::from_ns(1),
        ..config(named("scene-asked"))
    };
    let mut hits = Vec::new();
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            scene::become_task("scene-asked", STAGE, 10);
            for () in receive {
                done.fetch_add(1, Ordering::Release);
            }
        });
        let (_watch, mut ring) = Watch::start(&config).unwrap();
        for number in 0..200 {
            send.send(()).unwrap();
            while done.load(Ordering::Acquire) == number {
                std::hint::spin_loop();
            }
            scene::spin(apart);
            hits.extend(ring.take().unwrap());
        }
        hits.extend(all(&mut ring));
        drop(send);
    });
    hits
}

/// When its task was woken.
fn woken(hit: &Hit) -> Option<Instant> {
    let waking = hit.steps.iter().rfind(|step| step.kind == StepKind::Waking);
    waking.map(|step| step.time)
}

#[test]
fn of_who_wakes_a_task_all_the_time_no_stack_is_taken() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("of_who_wakes_a_task_all_the_time_no_stack_is_taken") {
        return;
    }
    // How many activations began so long after the one before, and how many of these have a stack.
    let check = |apart: Time, is_meant: fn(Duration) -> bool| {
        let hits = asked_by_another(apart);
        let pairs = hits.windows(2).filter(|pair| {
            let times = woken(&pair[0]).zip(woken(&pair[1]));
            times.is_some_and(|(last, now)| is_meant(now - last))
        });
        let stacks: Vec<bool> = pairs.map(|pair| !pair[1].waker_stack.is_empty()).collect();
        let taken = stacks.iter().filter(|taken| **taken).count();
        assert!(stacks.len() > 20, "{} of {}", stacks.len(), hits.len());
        (stacks.len(), taken)
    };
    let (often, taken) = check(Time::from_micros(20), |gap| gap < Duration::from_us(500));
    assert_eq!(taken, 0, "{often}");
    let (rare, taken) = check(Time::from_millis(2), |gap| gap > Duration::from_ms(2));
    assert!(taken > rare / 2, "{taken} of {rare}");
}

#[test]
fn a_target_that_still_waits_is_reported_once_while_it_waits() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_target_that_still_waits_is_reported_once_while_it_waits") {
        return;
    }
    let _victim = Victim::start("scene-victim", 10, || ());
    let (watch, mut ring) = Watch::start(&waits_alone()).unwrap();
    // Real-time: on a busy machine, a fair thread may not run while the hog does.
    let look = || {
        scene::become_task("scene-look", scene::ASIDE, 30);
        let hog = std::thread::spawn(|| hog(20, Time::from_millis(200)));
        let mut hits = Vec::new();
        while !hog.is_finished() {
            watch.check_waiting().unwrap();
            hits.extend(ring.wait(Time::from_millis(5)).unwrap());
        }
        hog.join().unwrap();
        hits
    };
    let mut hits = std::thread::scope(|scope| scope.spawn(look).join().unwrap());
    // Its end is told too.
    hits.retain(|hit| hit.end_kind == EndKind::Waiting);
    assert_eq!(hits.len(), 1, "{hits:#?}");
    assert_eq!(
        hits[0].steps.last().map(|step| step.kind),
        Some(StepKind::Waking)
    );
}

#[test]
fn a_wait_beyond_the_time_out_that_is_over_before_a_look_is_counted() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_wait_beyond_the_time_out_that_is_over_before_a_look_is_counted") {
        return;
    }
    let _victim = Victim::start("scene-victim", 10, || ());
    let (watch, mut ring) = Watch::start(&waits_alone()).unwrap();
    let hog = std::thread::spawn(|| hog(20, HOG));
    hog.join().unwrap();
    std::thread::sleep(Time::from_millis(20));
    watch.check_waiting().unwrap();
    assert_eq!(all(&mut ring).len(), 0, "nobody looked while it waited");
    let overlooked = watch.statistics().unwrap().overlooked;
    assert!(overlooked >= 1, "{overlooked}");
}

#[test]
fn a_chain_can_end_where_the_target_blocks_or_returns_to_user_space() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_chain_can_end_where_the_target_blocks_or_returns_to_user_space") {
        return;
    }
    let _victim = Victim::start("scene-victim", 10, || scene::spin(Time::from_millis(20)));
    let check = |end: EndKind, expect: Option<StepKind>| {
        let mut config = config(named("scene-victim"));
        config.end = end;
        let (watch, mut ring) = Watch::start(&config).unwrap();
        let hits = all(&mut ring);
        assert_eq!(
            hits.first().map(|hit| hit.steps.last().unwrap().kind),
            expect,
            "{hits:#?}"
        );
        assert!(watch.statistics().unwrap().samples > 1);
    };
    // 20 ms of work lie after the return and before the block.
    check(EndKind::Blocked, Some(StepKind::Blocked));
    check(EndKind::UserReturn, None);
}

#[test]
fn a_victim_that_exits_in_the_middle_leaves_the_watch_whole() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_victim_that_exits_in_the_middle_leaves_the_watch_whole") {
        return;
    }
    let (watch, mut ring) = Watch::start(&config(named("scene-*"))).unwrap();
    for _ in 0..20 {
        drop(Victim::start("scene-short", 10, || ()));
    }
    let _victim = Victim::start("scene-victim", 10, || ());
    hog(20, HOG);
    let hits = collect(&mut ring);
    assert!(
        hits.iter().any(|hit| hit.task.comm == "scene-victim"),
        "{hits:#?}"
    );
    assert_eq!(watch.statistics().unwrap().repaired, 0);
}

#[test]
fn two_watches_at_once_see_the_same_chain() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("two_watches_at_once_see_the_same_chain") {
        return;
    }
    let _victim = Victim::start("scene-victim", 10, || ());
    let watches = [(); 2].map(|()| Watch::start(&config(named("scene-victim"))).unwrap());
    hog(20, HOG);
    let [one, other] = watches.map(|(_watch, mut ring)| collect(&mut ring));
    assert_eq!((one.len(), other.len()), (1, 1), "{one:#?} {other:#?}");
    assert_eq!(one[0].origin, other[0].origin);
    assert_eq!(kinds(&one[0]), kinds(&other[0]));
}
