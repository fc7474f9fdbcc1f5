//! Claims about a task that is stopped, in a recording without a watch's evidence: a stop is no
//! sleep, and does not end an activation.

use diagnosis::{Diagnosis, Query, TaskFilter, Until, diagnose};
use event::{Duration, Tid};
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const STOPPER: Task = Task::fair(200, "stopper");

const STOPPED: i64 = 4;
const TRACED: i64 = 8;

/// What is late by more than 3 ms: so many, and of so many nobody knows since when they were due.
#[track_caller]
fn check(trace: SyntheticTrace, late: usize, unknown: u64) -> Diagnosis {
    let query = Query {
        tasks: TaskFilter::from(Tid(VICTIM.tid)),
        until: Until::Block,
        threshold: Some(Duration::from_ms(3)),
        ..Query::default()
    };
    let found = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
    let counts = (found.activations.len(), found.basis.stopped_asleep);
    assert_eq!(counts, (late, unknown), "{found:#?}");
    found
}

/// The victim was woken at 1000 µs and runs since 1010 µs.
fn works() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
    let trace = trace.at(1_000).timer_irq().wake(VICTIM);
    trace.after(1).timer_irq_end().at(1_010).run(VICTIM)
}

/// It is stopped now, for 12 ms.
fn stopped(trace: SyntheticTrace, state: i64) -> SyntheticTrace {
    let trace = trace.leave(VICTIM, state, STOPPER).after(12_000);
    trace.wake(VICTIM).after(5).preempt(STOPPER, VICTIM)
}

#[test]
fn a_stop_in_the_work_does_not_end_it() {
    let says = |found: Diagnosis, what: &str| {
        let ledger = &found.activations[0].ledger;
        assert_eq!(ledger.terms[0].kind.to_string(), what);
        assert_eq!(ledger.terms[0].duration, Duration::from_us(12_000));
        assert!(found.verdict().expect("a verdict").conclusive);
    };
    let ends = |trace: SyntheticTrace| trace.after(1_000).block(VICTIM, Task::IDLE);
    let trace = stopped(works().at(2_000), STOPPED);
    says(check(ends(trace), 1, 0), "stopped by a signal");
    let trace = stopped(works().at(2_000), TRACED);
    says(check(ends(trace), 1, 0), "stopped for its tracer");
}

#[test]
fn a_task_that_is_stopped_in_its_sleep_may_not_have_been_due() {
    // The signal wakes it, it is stopped and, continued, goes on sleeping or works: nobody knows.
    let trace = SyntheticTrace::new().at(10).block(VICTIM, STOPPER);
    let trace = trace
        .at(1_000)
        .wake(VICTIM)
        .after(5)
        .preempt(STOPPER, VICTIM);
    let trace = stopped(trace.after(20), STOPPED);
    check(trace.after(500).block(VICTIM, STOPPER), 0, 1);
    // Not where all of it took less than what is late.
    let trace = SyntheticTrace::new().at(10).block(VICTIM, STOPPER);
    let trace = trace
        .at(1_000)
        .wake(VICTIM)
        .after(5)
        .preempt(STOPPER, VICTIM);
    let trace = trace.after(20).leave(VICTIM, STOPPED, STOPPER).after(1_000);
    let trace = trace.wake(VICTIM).after(5).preempt(STOPPER, VICTIM);
    check(trace.after(20).block(VICTIM, STOPPER), 0, 0);
}

#[test]
fn a_task_that_its_timer_woke_was_due_however_soon_it_is_stopped() {
    let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
    let trace = trace.hrtimer_start(0x1000, 1_000).at(1_000).timer_irq();
    let trace = trace
        .hrtimer_expire(0x1000)
        .wake(VICTIM)
        .hrtimer_done(0x1000);
    let trace = trace.after(1).timer_irq_end().at(1_010).run(VICTIM);
    let trace = stopped(trace.after(20), STOPPED);
    check(trace.after(500).block(VICTIM, STOPPER), 1, 0);
}

#[test]
fn an_activation_goes_on_while_its_task_is_stopped_at_the_traces_end() {
    let trace = works().at(2_000).leave(VICTIM, STOPPED, STOPPER);
    let trace = trace.at(9_000).wake(Task::fair(300, "other"));
    check(trace, 1, 0);
}

#[test]
fn who_is_stopped_in_its_sleep_is_late_since_a_timer_of_its_own_was_due() {
    // Released each 10 ms by a timer that it arms itself, it is stopped as it sleeps.
    let slept = |due_us: i64| {
        let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
        let trace = trace.hrtimer_start(0x1000, 1_000).at(1_000).timer_irq();
        let trace = trace.hrtimer_expire(0x1000).wake(VICTIM);
        let trace = trace.hrtimer_done(0x1000).after(1).timer_irq_end();
        let trace = trace.at(1_010).run(VICTIM).hrtimer_start(0x1000, due_us);
        let trace = trace.at(1_100).block(VICTIM, STOPPER).at(8_000);
        let trace = trace.wake(VICTIM).after(5).preempt(STOPPER, VICTIM);
        let trace = trace.hrtimer_cancel(0x1000).after(15);
        stopped(trace, STOPPED).after(500).block(VICTIM, STOPPER)
    };
    let found = check(slept(11_000), 1, 0);
    let late = &found.activations[0];
    // From 11,000 us, when it was due, to the end of 500 us of work.
    assert_eq!(late.latency(), Duration::from_us(9_527));
    let ledger = &late.ledger.terms;
    assert_eq!(ledger[0].kind.to_string(), "stopped by a signal");
    assert_eq!(ledger[0].duration, Duration::from_us(9_021));
    assert!(found.verdict().expect("a verdict").conclusive);
    // It goes on before it is due.
    check(slept(30_000), 0, 0);
}
