//! Claims about a wake-up of which the trace does not show who made it: the task on the CPU, or an
//! interrupt in it. Both look the same where interrupts were not recorded.

use diagnosis::{Diagnosis, Query, TaskFilter, Until, diagnose};
use event::{Duration, Tid, Value};
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const LOWHOG: Task = Task::rt(200, "lowhog", 40);

const HARD: u64 = 0x08;
const SOFT: u64 = 0x10;

/// Of the victim, what is late by more than 3 ms.
fn query() -> Query {
    Query {
        tasks: TaskFilter::from(Tid(VICTIM.tid)),
        until: Until::Block,
        threshold: Some(Duration::from_ms(3)),
        ..Query::default()
    }
}

fn asked(trace: SyntheticTrace) -> Diagnosis {
    diagnose(&trace.build(), &query()).expect("the trace can be diagnosed")
}

/// So many are late, and of so many nobody knows.
#[track_caller]
fn check(trace: SyntheticTrace, late: usize, unknown: u64) -> Diagnosis {
    let found = asked(trace);
    let counts = (found.activations.len(), found.basis.unknown_wakers);
    assert_eq!(counts, (late, unknown), "{found:#?}");
    found
}

/// The hog works since it was woken at 1000 µs.
fn hog_works(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.at(10).block(VICTIM, Task::IDLE);
    trace.at(1_000).wake(LOWHOG).after(5).run(LOWHOG)
}

/// At 7000 µs the victim is woken on the hog's CPU, and works for 100 µs.
fn victim_is_woken(trace: SyntheticTrace) -> SyntheticTrace {
    victim_works(trace.at(7_000).wake(VICTIM))
}

fn victim_works(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.after(10).preempt(LOWHOG, VICTIM);
    trace.after(100).block(VICTIM, LOWHOG)
}

/// The expiry of some timer, so that the trace shows timers.
fn with_timers(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.at(1).timer_irq().hrtimer_expire(0x9000);
    trace.hrtimer_done(0x9000).after(1).timer_irq_end()
}

/// A wake-up, with ftrace's flags.
fn woken_with(trace: SyntheticTrace, task: Task, flags: u64) -> SyntheticTrace {
    let fields = [
        ("comm", Value::Text(task.comm.into())),
        ("tid", Value::Signed(task.tid.into())),
        ("prio", Value::Signed(i64::from(task.prio) - 100)),
        ("target_cpu", Value::Signed(0)),
        ("common_flags", Value::Unsigned(flags)),
    ];
    trace.event("sched_waking", &fields)
}

#[test]
fn who_is_woken_while_a_task_works_is_not_late_by_that_work() {
    let trace = hog_works(SyntheticTrace::new());
    check(victim_is_woken(trace), 0, 1);
    // A fair task's work was never anybody's wait.
    let fair = Task::fair(201, "compile");
    let trace = SyntheticTrace::new().at(10).block(VICTIM, fair);
    let trace = trace.at(7_000).wake(VICTIM).after(10).preempt(fair, VICTIM);
    check(trace.after(100).block(VICTIM, fair), 0, 0);
    // Nor can it be late where the hog was woken 2 ms before.
    let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
    let trace = trace.at(5_000).wake(LOWHOG).after(5).run(LOWHOG);
    check(victim_is_woken(trace), 0, 0);
}

#[test]
fn a_waker_counts_where_the_trace_shows_what_interrupts_it() {
    let of_lowhog = |found: Diagnosis| {
        let sentence = &found.verdict().expect("a verdict").sentence;
        assert!(sentence.contains("which it waits for"), "{sentence}");
    };
    let trace = hog_works(with_timers(SyntheticTrace::new()));
    of_lowhog(check(victim_is_woken(trace), 1, 0));
    // In a system call.
    let trace = hog_works(SyntheticTrace::new()).at(6_990);
    of_lowhog(check(victim_is_woken(trace.call("futex")), 1, 0));
    // That is over.
    let trace = hog_works(SyntheticTrace::new()).at(6_990);
    let trace = trace.call("futex").after(5).call_end("futex");
    check(victim_is_woken(trace), 0, 1);
}

#[test]
fn the_flags_of_the_wake_up_tell_who_made_it() {
    let trace = |begins: SyntheticTrace, flags: u64| {
        let trace = begins.at(10).block(VICTIM, Task::IDLE).at(1_000);
        let trace = woken_with(trace, LOWHOG, 0).after(5).run(LOWHOG);
        victim_works(woken_with(trace.at(7_000), VICTIM, flags))
    };
    check(trace(SyntheticTrace::new(), 0), 1, 0);
    check(trace(SyntheticTrace::new(), HARD), 0, 0);
    // A softirq of which no event came, also where timers are shown.
    check(trace(SyntheticTrace::new(), SOFT), 0, 1);
    check(trace(with_timers(SyntheticTrace::new()), SOFT), 0, 1);
}

#[test]
fn an_interrupt_that_is_seen_makes_the_wake_up() {
    // Of a device, whose events are the only ones of interrupts.
    let trace = hog_works(SyntheticTrace::new()).at(7_000).irq(24, "card");
    let trace = trace.after(1).wake(VICTIM).after(1).irq_end(24);
    check(victim_works(trace), 0, 0);
}

#[test]
fn who_ran_ahead_is_accused_from_the_wake_up_on_whoever_made_it() {
    // The hog goes first, and is late for it; what it did before the wake-up is not its doing.
    let hog = Task::rt(200, "hog", 60);
    let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
    let trace = trace.at(1_000).wake(hog).after(5).run(hog);
    let trace = trace.at(2_000).wake(VICTIM).at(8_000).block(hog, VICTIM);
    let found = check(trace.after(100).block(VICTIM, Task::IDLE), 1, 0);
    let ledger = &found.activations[0].ledger;
    assert_eq!(ledger.total, Duration::from_us(6_100));
    assert_eq!(
        ledger.terms[0].kind.to_string(),
        "run-queue wait behind hog (tid 200, rt 60)"
    );
}

#[test]
fn a_softirq_raised_while_a_task_works_is_not_that_tasks() {
    let trace = hog_works(SyntheticTrace::new()).at(7_000).softirq_raise(3);
    let trace = trace.after(2).softirq(3).after(1).wake(VICTIM);
    let found = asked(victim_works(trace.after(1).softirq_end(3)));
    assert!(found.activations.is_empty(), "{found:#?}");
}

#[test]
fn a_softirq_in_its_thread_may_have_been_raised_before_that_thread_was_woken() {
    const SERVER: Task = Task::fair(12, "ksoftirqd/0");
    let hog = Task::rt(200, "hog", 60);
    let trace = |raised: bool| {
        let trace = SyntheticTrace::new().at(10).block(VICTIM, hog);
        let trace = trace.at(1_000).irq(36, "eth0");
        let trace = match raised {
            true => trace.softirq_raise(3),
            false => trace,
        };
        let trace = trace.after(2).wake(SERVER).after(2).irq_end(36);
        let trace = trace.at(5_000).block(hog, SERVER).after(5).softirq(3);
        let trace = trace.after(5).wake(VICTIM).after(5).preempt(SERVER, VICTIM);
        let trace = trace.at(5_500).block(VICTIM, SERVER);
        trace
            .after(5)
            .softirq_end(3)
            .after(5)
            .block(SERVER, Task::IDLE)
    };
    check(trace(true), 1, 0);
    check(trace(false), 0, 1);
}

#[test]
fn who_leaves_a_cpu_on_which_it_was_not_seen_to_come_may_have_waited() {
    let check = |comes_in: bool, until: Until, late: usize, doubted: u64| {
        let trace = SyntheticTrace::new().cpus(2).shows_timers().at(1);
        let trace = trace
            .block(VICTIM, Task::IDLE)
            .at(1_000)
            .wake_for(VICTIM, 1);
        let trace = match comes_in {
            true => trace.cpu(1).after(5).run(VICTIM),
            // The first event of CPU 1 shows it there, 9 ms behind its wake-up.
            false => trace.cpu(1),
        };
        let query = Query { until, ..query() };
        let trace = trace.at(10_000).block(VICTIM, Task::IDLE).build();
        let found = diagnose(&trace, &query).expect("the trace can be diagnosed");
        let counts = (found.activations.len(), found.basis.doubted);
        assert_eq!(counts, (late, doubted), "{found:#?}");
    };
    check(true, Until::SwitchIn, 0, 0);
    check(false, Until::SwitchIn, 0, 1);
    // How long it took to the end of its work is known.
    check(true, Until::Block, 1, 0);
    check(false, Until::Block, 1, 0);
}
