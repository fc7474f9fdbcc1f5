//! What the ledger claims for an activation that ends where its task blocks for good: locks and
//! their owners, devices, page faults on the way.

mod inside;

use diagnosis::{Query, TaskFilter, diagnose};
use event::{Tid, Value};
use inside::check;
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const OWNER: Task = Task::rt(200, "owner", 30);
const MIDDLE: Task = Task::rt(300, "middle", 40);
const HOG: Task = Task::rt(400, "hog", 60);

const LOCK: i64 = 2;
const MUTEX: i64 = 3;
const FAULT: i64 = 4;
const WRITE: i64 = 5;
const SPIN: i64 = 6;

/// The victim is scheduled in on CPU 0 at 1010 µs, woken at 1000 µs, ahead of the owner of the
/// lock.
fn activated() -> SyntheticTrace {
    activated_after(SyntheticTrace::new())
}

/// The same behind other events.
fn activated_after(trace: SyntheticTrace) -> SyntheticTrace {
    trace
        .at(10)
        .block(VICTIM, Task::IDLE)
        .after(10)
        .wake(OWNER)
        .after(10)
        .run(OWNER)
        .at(1000)
        .timer_irq()
        .wake(VICTIM)
        .after(1)
        .timer_irq_end()
        .at(1010)
        .preempt(OWNER, VICTIM)
}

/// A hit of the victim, from its wake-up to where it blocks now, at `end_us`.
fn ends(trace: SyntheticTrace, victim: Task, end_us: i64) -> SyntheticTrace {
    let tid = victim.tid;
    let steps = [
        (1_000_000, 7, 0, tid),
        (1_010_000, 8, 0, tid),
        (end_us * 1000, 10, 0, tid),
    ];
    let trace = trace.at(end_us).block(victim, Task::IDLE);
    trace.hit(1, victim, OWNER, &steps)
}

/// The victim waits for the lock from 1100 µs on; the owner goes on with its work.
fn waits_for(on: i64, owner: Task) -> SyntheticTrace {
    activated()
        .at(1100)
        .blocked(VICTIM, on, Some(owner), &[])
        .block(VICTIM, OWNER)
}

/// The owner lets go of the lock now, and the victim works for 50 µs more.
fn released(trace: SyntheticTrace) -> SyntheticTrace {
    trace.wake(VICTIM).after(1).preempt(OWNER, VICTIM).after(50)
}

#[test]
fn a_lock_is_charged_to_its_owner_while_that_one_runs() {
    for on in [LOCK, MUTEX] {
        let trace = released(waits_for(on, OWNER).at(3100));
        let expect = [
            ("lock held by owner (tid 200, rt 30)", 2000),
            ("own run", 140),
            ("switch", 9),
            ("interrupt: local timer", 2),
            ("wake-up delivery", 1),
        ];
        check(ends(trace, VICTIM, 3152), VICTIM, &expect);
    }
}

#[test]
fn a_mutex_of_a_program_is_told_with_its_place_and_has_the_name_that_it_is_given() {
    let check = |on: i64, expect: &[(i32, u64)]| {
        let trace = ends(released(waits_for(on, OWNER).at(3100)), VICTIM, 3152);
        let mut diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        diagnosis.name_mutexes(|tid, at, address| {
            assert_eq!((tid, at.as_ns()), (Tid(VICTIM.tid), 1_100_000));
            Some(format!("lock at {address}"))
        });
        let mutexes = &diagnosis.verdict().expect("a verdict").mutexes;
        let found = mutexes
            .iter()
            .map(|mutex| (mutex.waiter.tid.0, mutex.address));
        assert_eq!(found.collect::<Vec<_>>(), expect);
        let named = |name: &Option<String>| name.as_deref() == Some("lock at 4096");
        assert!(
            mutexes.iter().all(|mutex| named(&mutex.name)),
            "{mutexes:?}"
        );
    };
    check(MUTEX, &[(VICTIM.tid, 0x1000)]);
    // The address of a lock of the kernel's is none of a program.
    check(LOCK, &[]);
}

#[test]
fn whoever_runs_ahead_of_the_owner_is_named_with_it() {
    let trace = waits_for(MUTEX, OWNER)
        .at(1500)
        .wake(MIDDLE)
        .after(1)
        .preempt(OWNER, MIDDLE)
        .at(6502)
        .block(MIDDLE, OWNER)
        .at(7000);
    let expect = [
        (
            "lock held by owner (tid 200, rt 30), preempted for middle (tid 300, rt 40)",
            5000,
        ),
        ("lock held by owner (tid 200, rt 30)", 900),
        ("own run", 140),
        ("switch", 9),
        ("interrupt: local timer", 2),
        ("wake-up delivery", 1),
    ];
    check(ends(released(trace), VICTIM, 7052), VICTIM, &expect);
}

#[test]
fn a_lock_that_another_task_lets_go_of_accuses_nobody() {
    let trace = released(waits_for(MUTEX, MIDDLE).at(3100));
    let expect = [
        (
            "unexplained: it waited for a lock, nothing proves whose",
            2000,
        ),
        ("own run", 140),
        ("switch", 9),
        ("interrupt: local timer", 2),
        ("wake-up delivery", 1),
    ];
    check(ends(trace, VICTIM, 3152), VICTIM, &expect);
}

#[test]
fn a_sleep_inside_the_work_is_what_the_kernel_says_of_it() {
    let sleeps = |on: i64, stack: &[&'static str], name: &str| {
        let trace = activated()
            .at(1100)
            .blocked(VICTIM, on, None, stack)
            .block(VICTIM, OWNER);
        let trace = trace.at(3100).irq(24, "disk").wake(VICTIM).irq_end(24);
        let trace = trace.after(1).preempt(OWNER, VICTIM).after(50);
        let expect = [
            (name, 2000),
            ("own run", 140),
            ("switch", 9),
            ("interrupt: local timer", 2),
            ("wake-up delivery", 1),
        ];
        check(ends(trace, VICTIM, 3152), VICTIM, &expect);
    };
    sleeps(1, &["io_schedule+0x1"], "waiting for a device");
    sleeps(1, &["handle_mm_fault+0x1"], "page fault");
    let group = ["reclaim_throttle+0x1", "try_to_free_mem_cgroup_pages+0x1"];
    let memory = "waiting for memory of its control group";
    sleeps(0, &group, memory);
    // Also where the memory is asked for by a page fault.
    let fault = ["__mem_cgroup_handle_over_high+0x1", "handle_mm_fault+0x1"];
    sleeps(0, &fault, memory);
    sleeps(0, &["try_to_free_pages+0x1"], "waiting for memory");
    let why = "unexplained: it slept in the kernel, no event says for what";
    sleeps(0, &["msleep+0x1"], why);
}

#[test]
fn a_device_is_waited_for_while_it_has_a_request() {
    const DISK: u64 = 254 << 20;
    const LOOP: u64 = 7 << 20;
    let request = |dev: u64, tid: i32| {
        [
            ("dev", Value::Unsigned(dev)),
            ("sector", Value::Unsigned(2048)),
            ("nr_sector", Value::Unsigned(8)),
            ("tid", Value::Signed(tid.into())),
            ("rwbs", Value::Unsigned(1)),
        ]
    };
    let check_with = |of_loop: Option<i32>, dev: u64, issued_us: i64, expect: [(&str, i64); 2]| {
        let trace = activated().at(1_100);
        let trace = match of_loop {
            Some(tid) => trace.event("block_rq_issue", &request(LOOP, tid)),
            None => trace,
        };
        let trace = trace
            .blocked(VICTIM, 1, None, &["io_schedule+0x1"])
            .block(VICTIM, OWNER);
        let request = request(dev, 77);
        let trace = trace.at(issued_us).event("block_rq_issue", &request);
        let trace = trace.at(11_100).irq(24, "disk");
        let trace = trace.event("block_rq_complete", &request);
        let trace = trace.wake(VICTIM).irq_end(24).after(1);
        let trace = ends(trace.preempt(OWNER, VICTIM).after(50), VICTIM, 11_152);
        let query = Query {
            tasks: TaskFilter::from(Tid(VICTIM.tid)),
            worst: 1,
            ..Query::default()
        };
        let found = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
        let terms = &found.activations[0].ledger.terms;
        let of = |name: &str| {
            let named = terms.iter();
            let named = named.filter(|term| term.kind.to_string().contains(name));
            named.map(|term| term.duration.as_ns() / 1_000).sum::<i64>()
        };
        for (name, us) in expect {
            assert_eq!(of(name), us, "{name}: {terms:?}");
        }
    };
    let check_from = |dev: u64, issued_us: i64, expect: [(&str, i64); 2]| {
        check_with(None, dev, issued_us, expect);
    };
    let (device, idle) = ("waiting for a device", "and none had a request");
    // Issued a moment behind the begin of the wait.
    check_from(DISK, 1_110, [(device, 10_000), (idle, 0)]);
    // Who was to ask it came late.
    check_from(DISK, 9_100, [(device, 2_000), (idle, 8_000)]);
    // A loop's requests are served by a thread, which may wait for a CPU itself.
    check_from(LOOP, 1_110, [(device, 0), (idle, 10_000)]);
    // Whoever asks the disk meanwhile need not be that thread.
    let all_idle = [(device, 0), (idle, 10_000)];
    check_with(Some(VICTIM.tid), DISK, 1_110, all_idle);
    check_with(Some(77), DISK, 1_110, [(device, 10_000), (idle, 0)]);
}

#[test]
fn a_page_fault_that_a_program_serves_is_that_programs_to_answer_sooner() {
    let advised = |stack: &[&'static str]| {
        let trace = activated()
            .at(1100)
            .blocked(VICTIM, FAULT, None, stack)
            .block(VICTIM, OWNER);
        let trace = trace.at(9100).wake(VICTIM).after(1);
        let trace = trace.preempt(OWNER, VICTIM).after(50);
        let trace = ends(trace, VICTIM, 9152);
        let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        let verdict = diagnosis.verdict().expect("a verdict");
        assert!(verdict.conclusive, "{}", verdict.sentence);
        let rules = verdict.advice.iter();
        let rules: Vec<_> = rules
            .map(|one| (one.rule, one.because.contains("owner (tid 200")))
            .collect();
        rules
    };
    let stack = ["handle_userfault+0x3b", "handle_mm_fault+0x1"];
    assert_eq!(advised(&stack), [("serve-faults", true)]);
    assert_eq!(advised(&stack[1..]), [("lock-memory", false)]);
}

/// A sleep for the lock of an address space in a system call.
const MUNMAP: [&str; 6] = [
    "schedule+0x23",
    "schedule_preempt_disabled+0x11",
    "rwsem_down_write_slowpath+0x21d",
    "down_write_killable+0x5c",
    "__vm_munmap+0xa7",
    "__x64_sys_munmap+0x17",
];

/// A sleep for the kernel's own lock, as a page fault or a system call leads to.
const MMAP_LOCK: [&str; 4] = [
    "schedule+0x23",
    "rwsem_down_read_slowpath+0x11",
    "lock_mm_and_find_vma+0x8",
    "exc_page_fault+0x7e",
];

#[test]
fn a_lock_without_a_known_owner_is_that_of_who_lets_go_of_it_since_it_slept_last() {
    let sleeps = |on: i64, stack: &[&'static str]| {
        let trace = activated().at(1100).blocked(VICTIM, on, None, stack);
        trace.block(VICTIM, OWNER)
    };
    let rest = [
        ("own run", 140),
        ("switch", 9),
        ("interrupt: local timer", 2),
        ("wake-up delivery", 1),
    ];
    let held = |expect: &[(&str, i64)], trace: SyntheticTrace, end_us: i64| {
        let expect: Vec<_> = expect.iter().chain(&rest).copied().collect();
        check(ends(trace, VICTIM, end_us), VICTIM, &expect);
    };
    let owner = "lock held by owner (tid 200, rt 30)";
    let unknown = "unexplained: it waited for a lock, nothing proves whose";
    // The kernel's lock, in a page fault too, and a futex in which no owner is written.
    for (on, stack) in [
        (0, &MMAP_LOCK[..]),
        (FAULT, &MMAP_LOCK[..]),
        (MUTEX, &[][..]),
        (LOCK, &[][..]),
    ] {
        held(&[(owner, 2000)], released(sleeps(on, stack).at(3100)), 3152);
        // It slept until 2 ms: whose the lock was then nobody knows.
        let slept = sleeps(on, stack).at(1500).block(OWNER, Task::IDLE).at(2100);
        let slept = slept
            .irq(9, "eth0")
            .wake(OWNER)
            .irq_end(9)
            .run(OWNER)
            .at(3100);
        first_two(ends(released(slept), VICTIM, 3152), [unknown, owner]);
        // Another one runs ahead of it: the inversion has both names.
        let preempted = sleeps(on, stack).at(1500).wake(MIDDLE).after(1);
        let preempted = preempted.preempt(OWNER, MIDDLE).at(6502);
        let preempted = preempted.block(MIDDLE, OWNER).at(7000);
        let inversion =
            "lock held by owner (tid 200, rt 30), preempted for middle (tid 300, rt 40)";
        held(
            &[(inversion, 5000), (owner, 900)],
            released(preempted),
            7052,
        );
        // Nobody lets go of it but an interrupt.
        let trace = sleeps(on, stack)
            .at(3100)
            .irq(24, "disk")
            .wake(VICTIM)
            .irq_end(24);
        let trace = ends(
            trace.after(1).preempt(OWNER, VICTIM).after(50),
            VICTIM,
            3152,
        );
        first_two(trace, [unknown, "own run"]);
    }
}

/// The names of the two largest terms.
fn first_two(trace: SyntheticTrace, expect: [&str; 2]) {
    let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
    let terms = &diagnosis.activations[0].ledger.terms;
    let names: Vec<_> = terms.iter().map(|term| term.kind.to_string()).collect();
    assert_eq!(names[..2], expect);
}

#[test]
fn an_inversion_without_a_known_owner_gets_its_advice() {
    let trace = activated().at(1100).blocked(VICTIM, MUTEX, None, &[]);
    let trace = trace.block(VICTIM, OWNER).at(1500).wake(MIDDLE).after(1);
    let trace = trace
        .preempt(OWNER, MIDDLE)
        .at(6502)
        .block(MIDDLE, OWNER)
        .at(7000);
    let trace = ends(released(trace), VICTIM, 7052);
    let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
    let verdict = diagnosis.verdict().expect("a verdict");
    assert_eq!(
        verdict.advice[0].rule, "inherit-priority",
        "{}",
        verdict.sentence
    );
}

#[test]
fn the_lock_of_an_address_space_has_its_name_and_no_advice_about_mutexes() {
    // The owner runs until 1.5 ms, another one ahead of it until 6.5 ms, then it lets go.
    let preempted = |on: i64, stack: &[&'static str]| {
        let trace = activated().at(1100).blocked(VICTIM, on, None, stack);
        let trace = trace.block(VICTIM, OWNER).at(1500).wake(MIDDLE).after(1);
        let trace = trace.preempt(OWNER, MIDDLE).at(6502);
        released(trace.block(MIDDLE, OWNER).at(7000))
    };
    let check = |trace: SyntheticTrace, is_address_space: bool, rules: &[&str]| {
        let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        let verdict = diagnosis.verdict().expect("a verdict");
        let sentence = &verdict.sentence;
        let name = "held the kernel's lock of victim's address space (mmap_lock) that it waited";
        assert_eq!(sentence.contains(name), is_address_space, "{sentence}");
        let found: Vec<_> = verdict.advice.iter().map(|advice| advice.rule).collect();
        assert_eq!(found, rules, "{sentence}");
        // One advice may be against several causes.
        let unadvised = &verdict.unadvised;
        assert!(!is_address_space || unadvised.is_empty(), "{unadvised:?}");
        verdict.mutexes.len()
    };
    let only = ["spare-address-space"];
    for (on, stack) in [(FAULT, &MMAP_LOCK[..]), (0, &MUNMAP[..])] {
        check(ends(preempted(on, stack), VICTIM, 7052), true, &only);
    }
    // A short wait for a mutex behind it is neither the sentence's lock nor told.
    let trace = preempted(0, &MUNMAP).after(1);
    let trace = trace.blocked(VICTIM, MUTEX, None, &[]).block(VICTIM, OWNER);
    let trace = released(trace.after(100));
    assert_eq!(check(ends(trace, VICTIM, 7300), true, &only), 0);
    // Another lock of the kernel's.
    let inode = [
        "rwsem_down_write_slowpath+0x1",
        "down_write+0x2",
        "ext4_buffered_write+0x1",
    ];
    let shorter = "hold-lock-shorter";
    check(ends(preempted(0, &inode), VICTIM, 7052), false, &[shorter]);
    let mutex = ends(preempted(MUTEX, &[]), VICTIM, 7052);
    check(mutex, false, &["inherit-priority", shorter]);
}

#[test]
fn who_holds_an_address_space_and_is_fair_is_to_be_raised_or_to_read_less_often() {
    let (saver, other) = (Task::fair(200, "saver"), Task::fair(300, "other"));
    let advised = |process: i32| {
        let member = |tid: i32, pid: i32| {
            [
                ("tid", Value::Signed(tid.into())),
                ("pid", Value::Signed(pid.into())),
                ("name", Value::Text("saver".into())),
            ]
        };
        let dump = "lttng_statedump_process_state";
        let trace = SyntheticTrace::new().event(dump, &member(200, process));
        let trace = trace.event(dump, &member(100, 100));
        let trace = trace.at(10).block(VICTIM, Task::IDLE).after(10).wake(saver);
        let trace = trace.after(10).run(saver).at(1000).timer_irq().wake(VICTIM);
        let trace = trace
            .after(1)
            .timer_irq_end()
            .at(1010)
            .preempt(saver, VICTIM);
        let trace = trace.at(1100).blocked(VICTIM, 0, None, &MUNMAP);
        let trace = trace.block(VICTIM, saver).at(1500).wake(other).after(1);
        let trace = trace.preempt(saver, other).at(6502).preempt(other, saver);
        let trace = trace.at(7000).wake(VICTIM).after(1).preempt(saver, VICTIM);
        let diagnosis = diagnose(&ends(trace, VICTIM, 7052).build(), &Query::default());
        let diagnosis = diagnosis.expect("diagnosed");
        let verdict = diagnosis.verdict().expect("a verdict");
        let advice = verdict.advice.iter();
        let advice: Vec<_> = advice.map(|one| (one.rule, one.command.clone())).collect();
        advice
    };
    let own = advised(100);
    assert!(
        own[0].1.contains("let no thread of its process fork"),
        "{own:?}"
    );
    let raise = ("raise-owner", "chrt -f -p 50 200".to_owned());
    assert!(own.contains(&raise), "{own:?}");
    let foreign = advised(200);
    assert!(
        foreign[0].1.contains("let saver read /proc/100/smaps"),
        "{foreign:?}"
    );
}

#[test]
fn the_limit_of_memory_that_was_reached_gets_the_advice_and_a_kernels_trifle_none() {
    let check = |limits: bool, rules: &[&str], unadvised: usize| {
        let stack = ["reclaim_throttle+0x1", "try_to_free_mem_cgroup_pages+0x1"];
        let trace = activated().at(1100).blocked(VICTIM, 0, None, &stack);
        let trace = released(trace.block(VICTIM, OWNER).at(7000));
        // 0.3 ms behind another one, of 8.9 ms in all.
        let trace = trace.wake(HOG).after(1).preempt(VICTIM, HOG).after(300);
        let trace = ends(trace.block(HOG, VICTIM).after(2500), VICTIM, 9855);
        let trace = match limits {
            true => trace
                .group_limits(VICTIM, (0, "/cg/m/a"), ("", 0, 0), (false, 0), ("", 0, 0))
                .group_limits(
                    VICTIM,
                    (1, "/cg/m"),
                    ("", 0, 0),
                    (false, 0),
                    ("memory.limit_in_bytes", 64 << 20, 60 << 20),
                ),
            false => trace,
        };
        let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        let verdict = diagnosis.verdict().expect("a verdict");
        let sentence = &verdict.sentence;
        assert!(verdict.conclusive && sentence.contains("hog"), "{sentence}");
        let advice = verdict.advice.iter();
        let found: Vec<_> = advice.map(|one| one.rule).collect();
        assert_eq!(found, rules, "{sentence}");
        assert_eq!(
            verdict.unadvised.len(),
            unadvised,
            "{:?}",
            verdict.unadvised
        );
        verdict.advice.first().map(|one| one.command.clone())
    };
    let command = check(true, &["lift-memory-limit"], 0);
    let expect = "echo -1 > /cg/m/memory.limit_in_bytes";
    assert_eq!(command.as_deref(), Some(expect));
    // Nobody knows which: then that is said, and no advice is about what took a thirtieth.
    check(false, &[], 1);
}

#[test]
fn a_clock_that_was_set_is_the_cause_and_nobody_is_accused() {
    // The victim sleeps by the wall clock, for 10 ms each time; before the third time the clock is
    // set. Its timers lie on its stack, at another place for each call.
    let wall_ns: i64 = 1_700_000_000_000_000_000;
    let expire = |trace: SyntheticTrace, us: i64, set_ns: i64| {
        let now = Value::Signed(wall_ns + us * 1_000 + set_ns);
        let timer = [("hrtimer", Value::Unsigned(us as u64)), ("now", now)];
        let trace = trace
            .at(us)
            .late_timer(us - set_ns / 1_000, Task::IDLE, 2, 0, &[]);
        let trace = trace
            .timer_irq()
            .event("timer_hrtimer_expire_entry", &timer);
        let trace = trace.wake(VICTIM).hrtimer_done(us as u64).timer_irq_end();
        trace.after(5).run(VICTIM).after(100)
    };
    let check = |set_ns: i64, says: bool| {
        let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
        let trace = expire(trace, 500_000, 0).block(VICTIM, Task::IDLE);
        let trace = expire(trace, 510_000, set_ns);
        // The watch says when the timer expired by the clock as it is now.
        let woken_us = 510_000;
        let steps = [
            ((woken_us - 400_000) * 1_000, 1, 0, 0x2000),
            (woken_us * 1_000, 3, 0, -1),
            (woken_us * 1_000, 4, 0, 0x2000),
            (woken_us * 1_000, 7, 0, VICTIM.tid),
            ((woken_us + 6) * 1_000, 8, 0, VICTIM.tid),
        ];
        let trace = trace.at(woken_us + 6).hit(1, VICTIM, Task::IDLE, &steps);
        let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        let verdict = diagnosis.verdict().expect("a verdict");
        let sentence = &verdict.sentence;
        assert_eq!(verdict.conclusive, says, "{sentence}");
        assert_eq!(
            sentence.contains("the clock of its timer was set by"),
            says,
            "{sentence}"
        );
    };
    check(400_000_000, true);
    check(0, false);
    // Another clock, and a little adjustment.
    check(37_000_000_000, false);
    check(300_000, false);
}

#[test]
fn a_timer_of_the_wall_clock_is_late_since_its_expiry_in_a_recording_too() {
    let wall_us = 1_700_000_000_000_000;
    let trace = SyntheticTrace::new().at(10).run(VICTIM);
    let trace = trace.hrtimer_start(0x2000, wall_us + 1_000);
    let trace = trace.after(1).block(VICTIM, Task::IDLE);
    let now = Value::Signed((wall_us + 61_000) * 1_000);
    let timer = [("hrtimer", Value::Unsigned(0x2000)), ("now", now)];
    let trace = trace.at(61_000).timer_irq();
    let trace = trace.event("timer_hrtimer_expire_entry", &timer);
    let trace = trace.wake(VICTIM).hrtimer_done(0x2000).timer_irq_end();
    let trace = trace.after(5).run(VICTIM).after(100);
    let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
    let activation = &diagnosis.activations[0];
    assert_eq!(activation.origin.as_ns(), 1_000_000, "{activation:?}");
}

#[test]
fn an_owner_that_waits_for_another_task_itself_is_not_the_cause() {
    let check = |waker: Task, expect: &str| {
        let trace = waits_for(LOCK, OWNER).at(1200).block(OWNER, waker);
        let trace = trace.at(3000).wake(OWNER).block(waker, OWNER);
        let trace = ends(released(trace.at(3100)), VICTIM, 3152);
        let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        let longest = &diagnosis.activations[0].ledger.terms[0];
        assert_eq!(longest.kind.to_string(), expect);
        assert!(longest.duration.as_ns() >= 1_799_000, "{longest:?}");
    };
    check(Task::IDLE, "lock held by owner (tid 200, rt 30)");
    check(
        Task::fair(7, "kworker/0:1"),
        "lock held by owner (tid 200, rt 30)",
    );
    let waits = "unexplained: the owner of its lock waited for another task itself";
    check(MIDDLE, waits);
}

#[test]
fn an_owner_that_is_stopped_is_told_with_that_and_whoever_continues_it_is_no_owner() {
    let check = |state: i64, how: &str| {
        let stopper = Task::fair(7, "stopper");
        let trace = waits_for(LOCK, OWNER).at(1200).leave(OWNER, state, stopper);
        let trace = trace.at(3000).wake(OWNER).after(1).preempt(stopper, OWNER);
        let trace = ends(released(trace.at(3100)), VICTIM, 3152);
        let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        let longest = &diagnosis.activations[0].ledger.terms[0];
        let owner = "lock held by owner (tid 200, rt 30)";
        assert_eq!(
            longest.kind.to_string(),
            format!("{owner}, which was {how}")
        );
        assert!(longest.duration.as_ns() >= 1_799_000, "{longest:?}");
        let verdict = diagnosis.verdict().expect("a verdict");
        let says =
            format!("owner (tid 200, rt 30) held a lock that it waited for, and was {how}, for");
        assert!(
            verdict.conclusive && verdict.sentence.contains(&says),
            "{verdict:?}"
        );
    };
    check(4, "stopped by a signal");
    check(8, "stopped for its tracer");
}

const LAST: Task = Task::rt(400, "last", 20);

/// The victim's lock is that of the owner, who waits for one of the last from 1200 µs on, or did so
/// at 900 µs already; `recorded`: as the watch saw it. The last runs until 7000 µs, but for what
/// `goes_on` lets run ahead of it.
fn chained(
    before: bool,
    recorded: Option<Task>,
    goes_on: impl Fn(SyntheticTrace) -> SyntheticTrace,
) -> (String, i64) {
    let waits = |trace: SyntheticTrace| match recorded {
        Some(owner) => trace.blocked(OWNER, LOCK, Some(owner), &[]),
        None => trace,
    };
    let trace = match before {
        false => waits(waits_for(LOCK, OWNER).at(1200)).block(OWNER, LAST),
        true => {
            let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
            let trace = trace.at(20).wake(OWNER).after(10).run(OWNER);
            let trace = trace.at(900).block(OWNER, LAST).at(1000).timer_irq();
            let trace = trace.wake(VICTIM).after(1).timer_irq_end();
            let trace = trace.at(1010).preempt(LAST, VICTIM).at(1100);
            let trace = trace.blocked(VICTIM, LOCK, Some(OWNER), &[]);
            waits(trace).block(VICTIM, LAST)
        }
    };
    let trace = goes_on(trace).at(7000).wake(OWNER).preempt(LAST, OWNER);
    let trace = ends(released(trace.at(7100)), VICTIM, 7152);
    let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
    let longest = &diagnosis.activations[0].ledger.terms[0];
    (longest.kind.to_string(), longest.duration.as_ns() / 1000)
}

#[test]
fn the_owners_of_locks_that_wait_for_each_other_are_followed_to_the_last() {
    let preempted = |trace: SyntheticTrace| {
        let trace = trace.at(1500).wake(MIDDLE).after(1).preempt(LAST, MIDDLE);
        trace.at(6502).block(MIDDLE, LAST)
    };
    let works = |trace: SyntheticTrace| trace;
    let inversion = "lock held by last (tid 400, rt 20), preempted for middle (tid 300, rt 40)";
    let last = "lock held by last (tid 400, rt 20)";
    let unknown = "unexplained: the owner of its lock waited for another task itself";
    for (before, since_us) in [(false, 1200), (true, 1100)] {
        let found = chained(before, Some(LAST), preempted);
        assert_eq!(found, (inversion.to_owned(), 5000), "{before}");
        let found = chained(before, Some(LAST), works);
        assert_eq!(found, (last.to_owned(), 7001 - since_us), "{before}");
        // Nothing says for what it slept, or another one had that lock.
        for recorded in [None, Some(MIDDLE)] {
            let found = chained(before, recorded, works);
            assert_eq!(found, (unknown.to_owned(), 7000 - since_us), "{before}");
        }
    }
    // It sleeps with its lock.
    let sleeps = |trace: SyntheticTrace| {
        let trace = trace.at(1500).block(LAST, Task::IDLE);
        trace
            .at(6500)
            .timer_irq()
            .wake(LAST)
            .timer_irq_end()
            .run(LAST)
    };
    let found = chained(false, Some(LAST), sleeps);
    assert_eq!(found.0, last);
}

#[test]
fn what_a_task_spun_for_a_lock_is_not_its_own_work() {
    // Nothing tells the spinning from the work before it.
    let spins = |trace: SyntheticTrace| {
        let trace = trace
            .cpu(1)
            .at(3100)
            .blocked(VICTIM, SPIN, Some(OWNER), &[]);
        let trace = trace.waking(VICTIM, 0).cpu(0);
        let trace = ends(trace, VICTIM, 3152);
        let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        let verdict = diagnosis.verdict().expect("a verdict").clone();
        assert!(!verdict.conclusive, "{}", verdict.sentence);
        let longest = &diagnosis.activations[0].ledger.terms[0];
        let spun = "unexplained: it spun for another task's lock, nothing says since when";
        assert_eq!(longest.kind.to_string(), spun);
        longest.duration.as_ns() / 1000
    };
    assert_eq!(spins(activated()), 2090);
    // The kernel tells of its own locks when the spinning began.
    let lock = |flags| {
        [
            ("lock_addr", Value::Unsigned(1)),
            ("flags", Value::Unsigned(flags)),
        ]
    };
    let trace = activated()
        .at(1500)
        .event("lock_contention_begin", &lock(1));
    let trace = trace.at(3100).event("lock_contention_end", &lock(0)[..1]);
    let diagnosis = diagnose(&ends(trace, VICTIM, 3152).build(), &Query::default());
    let diagnosis = diagnosis.expect("diagnosed");
    let longest = &diagnosis.activations[0].ledger.terms[0];
    assert_eq!(longest.duration.as_ns(), 1_600_000, "{longest:?}");
    assert!(longest.kind.is_unexplained(), "{longest:?}");
}

#[test]
fn who_lends_its_priority_and_keeps_its_cpu_spins_for_the_owner() {
    // The owner runs on CPU 1, has the victim's priority from 1100 µs on, its own again at 3100.
    let begun = || {
        let trace = SyntheticTrace::new().cpu(1).at(5).block(VICTIM, Task::IDLE);
        let trace = trace
            .after(1)
            .wake(OWNER)
            .after(1)
            .preempt(Task::IDLE, OWNER);
        let trace = trace.cpu(0).at(1000).timer_irq().wake(VICTIM).after(1);
        let trace = trace.timer_irq_end().at(1010).preempt(Task::IDLE, VICTIM);
        trace.at(1100).boost(OWNER, VICTIM.prio)
    };
    let boosted = Task {
        prio: VICTIM.prio,
        ..OWNER
    };
    let back = |trace: SyntheticTrace| trace.cpu(1).at(3100).boost(boosted, OWNER.prio);
    let check = |trace: SyntheticTrace, expect: &[(&str, i64)]| {
        let diagnosis = diagnose(&ends(trace.cpu(0), VICTIM, 3152).build(), &Query::default());
        let diagnosis = diagnosis.expect("diagnosed");
        let terms = diagnosis.activations[0].ledger.terms.iter();
        let found: Vec<_> = terms
            .map(|term| (term.kind.to_string(), term.duration.as_ns() / 1000))
            .filter(|(_, us)| *us >= 40)
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(kind, us)| (kind.as_str(), *us))
            .collect();
        assert_eq!(found, expect);
    };
    let owner = "lock held by owner (tid 200, rt 50)";
    check(back(begun()), &[(owner, 2000), ("own run", 142)]);
    // It was not seen to be woken, or was: the same.
    let woken = back(begun())
        .after(1)
        .blocked(VICTIM, SPIN, Some(OWNER), &[]);
    check(woken.waking(VICTIM, 0), &[(owner, 2000), ("own run", 142)]);
    // It would sleep while the owner has no CPU: whatever it does then, it does not spin.
    let leaves = begun().cpu(1).at(1500).preempt(boosted, MIDDLE);
    let back_at = leaves.at(2600).block(MIDDLE, boosted);
    let nobody = "unexplained: it waited for a lock, nothing proves whose";
    check(
        back(back_at),
        &[(nobody, 1100), (owner, 900), ("own run", 142)],
    );
    // It is preempted meanwhile, twice, and goes on with it.
    let pulse = Task::rt(400, "pulse", 99);
    let put_off = |trace: SyntheticTrace, at_us: i64| {
        let trace = trace.at(at_us).preempt(VICTIM, pulse);
        trace.after(50).block(pulse, VICTIM)
    };
    let behind = "run-queue wait behind pulse (tid 400, rt 99)";
    let twice = put_off(put_off(begun(), 1500), 2000);
    check(
        back(twice),
        &[(owner, 1900), ("own run", 142), (behind, 100)],
    );
    // One that calls the kernel meanwhile spins no more.
    let calls = begun().at(2000).call("getpid").after(1).call_end("getpid");
    check(back(calls), &[("own run", 2142)]);
    // Somebody else's priority tells of no wait of this one's.
    let lent = activated()
        .at(1100)
        .boost(Task::rt(300, "low", 20), MIDDLE.prio);
    check(lent, &[("own run", 2142)]);
}

#[test]
fn who_does_not_read_what_it_writes_is_not_known() {
    let trace = activated()
        .at(1100)
        .blocked(VICTIM, WRITE, None, &[])
        .block(VICTIM, OWNER);
    let trace = ends(released(trace.at(3100)), VICTIM, 3152);
    let expect = [
        (
            "unexplained: what it wrote into was full, nothing says why nobody read",
            2000,
        ),
        ("own run", 140),
        ("switch", 9),
        ("interrupt: local timer", 2),
        ("wake-up delivery", 1),
    ];
    check(trace, VICTIM, &expect);
}

#[test]
fn an_interrupts_thread_is_woken_by_it_although_its_handler_has_ended() {
    let thread = Task::rt(400, "irq/24-snd", 50);
    let trace = SyntheticTrace::new()
        .shows_timers()
        .at(10)
        .block(VICTIM, Task::IDLE)
        .at(100)
        .wake(MIDDLE)
        .run(MIDDLE)
        .at(1000)
        .irq(24, "snd")
        .after(2)
        .irq_end_to_thread(24)
        .after(1)
        .wake(thread)
        .after(6)
        .preempt(MIDDLE, thread)
        .after(20)
        .wake(VICTIM)
        .after(9)
        .block(thread, VICTIM);
    let expect = [
        ("upstream work of irq/24-snd (tid 400, rt 50)", 20),
        ("run-queue wait behind irq/24-snd (tid 400, rt 50)", 9),
        ("switch", 6),
        ("interrupt 24 snd", 3),
        ("wake-up delivery", 2),
    ];
    check(trace, VICTIM, &expect);
}

#[test]
fn a_softirq_that_wakes_an_interrupts_thread_keeps_its_time() {
    let thread = Task::rt(400, "irq/24-snd", 50);
    let fair = Task::fair(500, "fair");
    // The clock tells no instants apart that are this near.
    let trace = SyntheticTrace::new().at(10).block(fair, Task::IDLE);
    let trace = trace.run(MIDDLE).wakeup(fair, 0).at(30).irq(24, "snd");
    let trace = trace.irq_end_to_thread(24).softirq(9).at(50);
    let trace = trace.wakeup(thread, 0).softirq_end(9);
    let trace = trace.block(MIDDLE, thread).block(thread, fair);
    let expect = [
        ("softirq RCU", 20),
        ("run-queue wait behind middle (tid 300, rt 40)", 20),
    ];
    check(trace, fair, &expect);
}

#[test]
fn a_run_of_its_own_accuses_nobody_and_says_how_many_page_faults_it_had() {
    let fault = |trace: SyntheticTrace, address: u64| {
        let trace = trace.after(500);
        trace.event("page_fault_user", &[("address", Value::Unsigned(address))])
    };
    let other = Task::fair(400, "compile");
    let before = SyntheticTrace::new().cpu(1).at(5).run(other).cpu(0);
    // Two that may have been of huge pages.
    let trace = fault(fault(activated_after(before), 1 << 21), 2 << 21);
    // Another task's, at the same time.
    let trace = fault(trace.cpu(1), 3 << 21).cpu(0);
    let query = Query::default();
    let diagnosis = diagnose(&ends(trace, VICTIM, 4010).build(), &query).expect("a diagnosis");
    let verdict = diagnosis.verdict().expect("the victim was activated");
    assert_eq!(
        verdict.sentence,
        "victim (tid 100, rt 50) needed 3.010 ms to the end of its work on CPU 0: it ran itself \
         for 3.000 ms (99.7 %), with 2 page faults in it."
    );
}

#[test]
fn memory_is_to_be_locked_once_whatever_its_page_faults_took() {
    // It works for most of the time, meets pages in that, and waits for one.
    let fault = |trace: SyntheticTrace, page: u64| {
        let address = ("address", Value::Unsigned(page << 12));
        trace.after(5).event("page_fault_user", &[address])
    };
    let trace = (0..200).fold(activated_after(SyntheticTrace::new()), fault);
    let trace = trace
        .at(4_000)
        .blocked(VICTIM, 1, None, &["handle_mm_fault+0x1"]);
    let trace = trace.block(VICTIM, OWNER).at(5_500).irq(24, "disk");
    let trace = trace
        .wake(VICTIM)
        .irq_end(24)
        .after(1)
        .preempt(OWNER, VICTIM);
    let trace = ends(trace, VICTIM, 6_000).build();
    let diagnosis = diagnose(&trace, &Query::default()).expect("a diagnosis");
    let verdict = diagnosis.verdict().expect("a verdict");
    let rules: Vec<_> = verdict.advice.iter().map(|advice| advice.rule).collect();
    assert_eq!(
        rules,
        ["profile-own-work", "lock-memory"],
        "{}",
        verdict.sentence
    );
}

#[test]
fn memory_is_to_be_locked_where_page_faults_may_have_taken_a_tenth() {
    let check = |addresses: &[u64], end_us: i64, expect: bool| {
        let fault = |trace: SyntheticTrace, address: &u64| {
            let address = ("address", Value::Unsigned(*address));
            trace.after(5).event("page_fault_user", &[address])
        };
        let trace = activated_after(SyntheticTrace::new());
        let trace = addresses.iter().fold(trace, fault);
        let trace = ends(trace, VICTIM, end_us).build();
        let diagnosis = diagnose(&trace, &Query::default()).expect("a diagnosis");
        let verdict = diagnosis.verdict().expect("a verdict");
        let rules: Vec<_> = verdict.advice.iter().map(|advice| advice.rule).collect();
        let wanted: &[&str] = match expect {
            true => &["lock-memory", "profile-own-work"],
            false => &["profile-own-work"],
        };
        let context = format!("{} to {end_us}: {}", addresses.len(), verdict.sentence);
        assert_eq!(rules, wanted, "{context}");
        // What is no reason is not in the sentence.
        let faults = format!("{} page faults in it", addresses.len());
        assert_eq!(verdict.sentence.contains(&faults), expect, "{context}");
    };
    // A garbage collection meets a page after the other: 73 small ones take 0.4 ms at most.
    let small: Vec<u64> = (0..73).map(|page| 4096 * page).collect();
    check(&small, 4_010, true);
    check(&small, 30_010, false);
    // A huge page is there after one fault.
    let huge = [1 << 21, 2 << 21];
    check(&huge, 4_010, true);
    check(&huge, 21_010, false);
    check(&[4096, 8192], 4_010, false);
}
