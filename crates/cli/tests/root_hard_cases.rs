//! The verdict in cases that are hard to tell, made on this kernel: what is named, and in which
//! order. `RTSCOPE_KEEP=FOLDER` keeps the snapshots.

mod scene;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use event::Cpu;
use host::capabilities::Preemption;
use host::task::{self, Policy};
use rustix::process::Resource;
use rustix::thread::CpuSet;
use scene::{Victim, Watch, burn, culprits, pause, thread};
use serde_json::Value;

/// What a culprit measured may differ from what it was told to burn: interrupts in its time.
const TOLERANCE: f64 = 0.05;
/// When a victim was due in its period is not known: half of the period of 5 ms, either way.
const PERIOD_HALF_MS: f64 = 2.5;

/// A virtual machine that stands still for a moment spoils an attempt.
const ATTEMPTS: usize = 4;
/// A timer that is later than this, without a fault of ours, is such a moment.
const LATE_TIMER_NS: i64 = 1_000_000;
/// Entries of a poll that takes some milliseconds.
const POLLED_MAX: u64 = 20_000;
/// As deep as the kernel lets epolls watch each other.
const EPOLLS_NESTED: usize = 4;

/// Makes `fault` beside a victim of priority `policy` under a watch, and returns the first hit over
/// `over`.
fn hit_of(case: &str, policy: Policy, over: &str, fault: impl Fn(Cpu, Cpu, i32)) -> Value {
    let (cpu, other) = scene::cpus();
    let _off = task::stay_off(cpu).expect("out of the way");
    for attempt in 0..ATTEMPTS {
        let victim = Victim::start(cpu, policy, 5_000);
        let case = format!("{case}-{attempt}");
        let hit = hit_of_tid(&case, victim.tid, over, || fault(cpu, other, victim.tid));
        if !spoiled(&hit) {
            return hit;
        }
    }
    panic!("{case}: this machine stood still in each of {ATTEMPTS} attempts");
}

/// Whether the timer came late by itself: a hypervisor's doing, and no fault of ours.
fn spoiled(hit: &Value) -> bool {
    let steps = hit["hit"]["steps"].as_array().expect("steps");
    let time_ns = |place: usize| steps.get(place).and_then(|step| step["time_ns"].as_i64());
    let late_ns = time_ns(1)
        .zip(time_ns(0))
        .map_or(0, |(next, first)| next - first);
    let timer = steps[0]["kind"] == "timer_expiry";
    timer && late_ns > LATE_TIMER_NS
}

/// The first hit of thread `tid` over `over`, when `fault` is made.
fn hit_of_tid(case: &str, tid: i32, over: &str, fault: impl FnOnce()) -> Value {
    let more = ["--over", over, "--max-hits", "1", "--for", "5s"];
    let mut watch = Watch::start(case, tid, &more);
    pause(100);
    fault();
    let lines = watch.finish();
    let hit = scene::hits(&lines).first().copied().cloned();
    let hit = hit.unwrap_or_else(|| panic!("{case}: nothing was late: {lines:#?}"));
    eprintln!("{case}: {}", scene::sentence(&hit));
    hit
}

/// The verdict names exactly these, in this order: kind, name, milliseconds.
fn check(hit: &Value, expect: &[(&str, &str, f64)]) {
    scene::check_ledger(hit);
    let named = culprits(hit);
    let same = |(found, expect): (&(String, String, f64), &(&str, &str, f64))| {
        let length = (found.2 - expect.2).abs() <= expect.2 * TOLERANCE + PERIOD_HALF_MS;
        found.0 == expect.0 && found.1 == expect.1 && length
    };
    let all = named.len() == expect.len() && named.iter().zip(expect).all(same);
    assert!(all, "{expect:?} expected: {}", scene::sentence(hit));
}

#[test]
fn two_hogs_in_sequence_are_named_in_the_order_of_their_share() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("two_hogs_in_sequence_are_named_in_the_order_of_their_share") {
        return;
    }
    let hit = hit_of("sequence", Policy::Fifo(20), "30ms", |cpu, _, _| {
        let first = thread("hog-short", cpu, Policy::Fifo(60), || burn(25));
        let second = thread("hog-long", cpu, Policy::Fifo(60), || burn(60));
        first.join().expect("ended");
        second.join().expect("ended");
    });
    // When the victim was due is up to its period.
    check(
        &hit,
        &[
            ("run_queue_wait", "hog-long", 60.0),
            ("run_queue_wait", "hog-short", 22.5),
        ],
    );
}

#[test]
fn a_hog_that_starts_while_the_victim_is_late_is_named_beside_the_first() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_hog_that_starts_while_the_victim_is_late_is_named_beside_the_first") {
        return;
    }
    let hit = hit_of("late-already", Policy::Fifo(20), "30ms", |cpu, other, _| {
        let first = thread("hog-first", cpu, Policy::Fifo(60), || burn(30));
        pause(15);
        // It comes with a priority above the first one's, and preempts it.
        let second = thread("hog-second", cpu, Policy::Fifo(70), || burn(50));
        assert_ne!(cpu, other);
        first.join().expect("ended");
        second.join().expect("ended");
    });
    check(
        &hit,
        &[
            ("run_queue_wait", "hog-second", 50.0),
            ("run_queue_wait", "hog-first", 27.5),
        ],
    );
}

#[test]
fn a_round_robin_neighbour_of_the_victims_own_priority_is_named() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_round_robin_neighbour_of_the_victims_own_priority_is_named") {
        return;
    }
    let hit = hit_of("neighbour", Policy::RoundRobin(20), "30ms", |cpu, _, _| {
        let neighbour = thread("neighbour", cpu, Policy::RoundRobin(20), || burn(70));
        neighbour.join().expect("ended");
    });
    check(&hit, &[("run_queue_wait", "neighbour", 67.5)]);
}

#[test]
fn work_upstream_and_what_delayed_it_are_both_named() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("work_upstream_and_what_delayed_it_are_both_named") {
        return;
    }
    let (cpu, _) = scene::cpus();
    let _off = task::stay_off(cpu).expect("out of the way");
    let (sender, receiver) = mpsc::channel::<()>();
    let slow = Arc::new(AtomicBool::new(false));
    let works = slow.clone();
    // The victim sleeps on the relay, which sleeps on the timer.
    let relay = Victim::working(cpu, Policy::Fifo(50), 5_000, move || {
        if works.swap(false, Ordering::AcqRel) {
            burn(20);
        }
        sender.send(()).ok();
    });
    let (told, victim_tid) = mpsc::channel();
    let target = thread("scene-target", cpu, Policy::Fifo(20), move || {
        told.send(scene::tid()).expect("the test waits");
        while receiver.recv().is_ok() {}
    });
    let tid = victim_tid.recv().expect("the target runs");
    let hit = hit_of_tid("relay", tid, "40ms", || {
        slow.store(true, Ordering::Release);
        let hog = thread("hog", cpu, Policy::Fifo(60), || burn(40));
        hog.join().expect("ended");
    });
    drop(relay);
    target.join().expect("ended");
    check(
        &hit,
        &[
            ("run_queue_wait", "hog", 37.5),
            ("upstream", "scene-victim", 20.0),
        ],
    );
}

/// In one system call, without a place where this kernel would let go of the CPU: as often as a
/// process may, the same chain of epolls.
fn long_system_call() {
    use rustix::event::epoll::{CreateFlags, EventData, EventFlags, add, create};
    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    let mut chain = vec![eventfd(1, EventfdFlags::empty()).expect("made")];
    for _ in 0..EPOLLS_NESTED {
        let outer = create(CreateFlags::empty()).expect("made");
        let inner = chain.last().expect("it begins with one");
        add(&outer, inner, EventData::new_u64(0), EventFlags::IN).expect("added");
        chain.push(outer);
    }
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let most = limit.current.unwrap_or(u64::MAX).min(POLLED_MAX) as usize;
    let outermost = chain.last().expect("it begins with one");
    let mut all: Vec<_> = (0..most)
        .map(|_| PollFd::new(outermost, PollFlags::IN))
        .collect();
    let ready = poll(&mut all, Some(&rustix::event::Timespec::default())).expect("polled");
    assert_eq!(ready, most);
}

#[test]
fn a_fair_task_in_a_long_system_call_is_named_with_the_function() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_fair_task_in_a_long_system_call_is_named_with_the_function") {
        return;
    }
    let model = capture::capabilities::gather().scheduler.preemption;
    if model != Preemption::None {
        let test = "a_fair_task_in_a_long_system_call_is_named_with_the_function";
        return testkit::skip(test, "this kernel is preempted in system calls");
    }
    let hit = hit_of("system-call", Policy::Fifo(20), "2ms", |cpu, _, _| {
        let poll_often = || (0..100).for_each(|_| long_system_call());
        let busy = thread("poller", cpu, Policy::Ordinary, poll_often);
        busy.join().expect("ended");
    });
    let named = culprits(&hit);
    let (kind, name, _) = &named[0];
    assert_eq!((kind.as_str(), name.as_str()), ("preemption_off", "poller"));
    let culprit = &hit["diagnosis"]["verdict"]["culprits"][0];
    assert_eq!(culprit["model"], "none", "{culprit:#}");
    // Somewhere in the poll: that is what the wake-up's interrupt found.
    let function = culprit["function"].as_str().unwrap_or_default();
    let stack = hit["hit"]["waker_stack"].to_string();
    let found = stack.contains(function) && stack.contains("do_sys_poll");
    assert!(!function.is_empty() && found, "{culprit:#} {stack}");
}

#[test]
fn a_victim_that_is_moved_while_it_waits_blames_whom_it_waited_behind() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_victim_that_is_moved_while_it_waits_blames_whom_it_waited_behind") {
        return;
    }
    let hit = hit_of("moved", Policy::Fifo(20), "20ms", |cpu, other, victim| {
        let hog = thread("hog", cpu, Policy::Fifo(60), || burn(60));
        pause(40);
        let mut set = CpuSet::new();
        set.set(other.0 as usize);
        let victim = rustix::process::Pid::from_raw(victim);
        rustix::thread::sched_setaffinity(victim, &set).expect("moved");
        hog.join().expect("ended");
    });
    scene::check_ledger(&hit);
    let named = culprits(&hit);
    assert_eq!(named[0].1, "hog", "{}", scene::sentence(&hit));
    let late = &hit["diagnosis"]["activations"][0];
    assert_eq!(late["cpu"], scene::cpus().1.0, "it ran on the other CPU");
}

#[test]
fn fair_hogs_of_a_better_nice_value_are_named_before_a_fair_victim() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("fair_hogs_of_a_better_nice_value_are_named_before_a_fair_victim") {
        return;
    }
    let hit = hit_of("nice", Policy::Ordinary, "20ms", |cpu, _, _| {
        let hogs = ["greedy-1", "greedy-2", "greedy-3", "greedy-4"].map(|name| {
            thread(name, cpu, Policy::Ordinary, || {
                scene::renice(-20);
                burn(250);
            })
        });
        for hog in hogs {
            hog.join().expect("ended");
        }
    });
    scene::check_ledger(&hit);
    // Others run here too, and a fair victim waits behind them as well.
    let named = culprits(&hit);
    let waits = named.iter().all(|(kind, ..)| kind == "run_queue_wait");
    let greedy = named.iter().any(|(_, name, _)| name.starts_with("greedy-"));
    assert!(waits && greedy, "{}", scene::sentence(&hit));
}
