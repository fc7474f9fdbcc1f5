//! Claims about a task that is stopped, in a recording without a watch's evidence: a stop is no
//! sleep, and does not end an activation.

use diagnosis::{Diagnosis, Query, TaskFilter, Until, diagnose};
use event::{Duration, Tid, Value};
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

/// The victim is stopped now, for 12 ms.
fn stopped(trace: SyntheticTrace, state: i64) -> SyntheticTrace {
    let trace = trace.leave(VICTIM, state, STOPPER).after(12_000);
    trace.wake(VICTIM).after(5).preempt(STOPPER, VICTIM)
}

/// The same of another task, by a signal.
fn stopped_task(trace: SyntheticTrace, task: Task) -> SyntheticTrace {
    let trace = trace.leave(task, STOPPED, STOPPER).after(12_000);
    trace.wake(task).after(5).preempt(STOPPER, task)
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

/// The stopper runs on CPU 1, and does this as `us`; then CPU 0 goes on.
fn stopper_does(
    trace: SyntheticTrace,
    us: i64,
    event: &str,
    fields: &[(&'static str, Value<'static>)],
) -> SyntheticTrace {
    let trace = trace.cpu(1).at(us - 10).run(STOPPER);
    trace.at(us).event(event, fields).cpu(0)
}

fn signal(number: i64, code: i64, to: Task) -> [(&'static str, Value<'static>); 3] {
    [
        ("sig", Value::Signed(number)),
        ("code", Value::Signed(code)),
        ("tid", Value::Signed(to.tid.into())),
    ]
}

/// The first term says so, for 12 ms, and the verdict is proven.
#[track_caller]
fn is_stopped(trace: SyntheticTrace, what: &str) {
    let found = check(trace.after(1_000).block(VICTIM, Task::IDLE), 1, 0);
    let terms = &found.activations[0].ledger.terms;
    assert_eq!(terms[0].kind.to_string(), what);
    assert_eq!(terms[0].duration, Duration::from_us(12_000));
    assert!(found.verdict().expect("a verdict").conclusive);
}

#[test]
fn who_sent_the_signal_is_named() {
    let sent = |to: Task| stopper_does(works(), 1_990, "signal_generate", &signal(19, 0, to));
    let by = "stopped (SIGSTOP) by stopper (tid 200, nice 0)";
    is_stopped(stopped(sent(VICTIM).at(2_000), STOPPED), by);
    // Another task's, or one that lets it go on.
    let other = stopped(sent(Task::fair(300, "other")).at(2_000), STOPPED);
    is_stopped(other, "stopped by a signal");
    let goes_on = sent(VICTIM).at(1_995).cpu(1);
    let goes_on = goes_on
        .event("signal_generate", &signal(18, 0, VICTIM))
        .cpu(0);
    is_stopped(stopped(goes_on.at(2_000), STOPPED), "stopped by a signal");
}

#[test]
fn the_tracer_is_whom_a_task_tells_that_it_stops() {
    const CLD_TRAPPED: i64 = 4;
    let tells = |code: i64| {
        let trace = works().cpu(1).at(1_500).run(STOPPER).cpu(0).at(1_999);
        let trace = trace.event("signal_generate", &signal(17, code, STOPPER));
        stopped(trace.at(2_000), TRACED)
    };
    is_stopped(
        tells(CLD_TRAPPED),
        "stopped for its tracer by stopper (tid 200, nice 0)",
    );
    is_stopped(tells(1), "stopped for its tracer");
}

#[test]
fn who_is_frozen_with_its_group_does_not_sleep() {
    const SLEEPS: i64 = 1;
    let path = |name: &'static str, path: &'static str| (name, Value::Text(path.into()));
    let frozen = |of: &'static str, group: &'static str| {
        let member = [("tid", Value::Signed(VICTIM.tid.into())), path("path", of)];
        let trace = works().event("rtscope_statedump_cgroup", &member);
        let group = [("root", Value::Signed(0)), path("path", group)];
        let trace = stopper_does(trace, 1_990, "cgroup_freeze", &group).at(2_000);
        stopped(trace, SLEEPS)
    };
    let by = "frozen with its control group by stopper (tid 200, nice 0)";
    is_stopped(frozen("/app.slice/robot.service", "/app.slice"), by);
    is_stopped(frozen("/app.slice", "/app.slice"), by);
    // Of another group it sleeps.
    check(frozen("/app.slice", "/app.slice/robot.service"), 0, 0);
    check(frozen("/apps", "/app"), 0, 0);
}

#[test]
fn who_waits_for_a_task_that_is_stopped_in_its_sleep_is_late_since_that_was_due() {
    const PRODUCER: Task = Task::rt(300, "producer", 60);
    // The producer is released each 10 ms, and wakes the victim; at 8000 us it is stopped.
    let trace = |stops: bool| {
        let trace = SyntheticTrace::new().at(5).block(VICTIM, PRODUCER);
        let trace = trace.at(10).block(PRODUCER, Task::IDLE);
        let trace = trace.hrtimer_start(0x1000, 1_000).at(1_000).timer_irq();
        let trace = trace.hrtimer_expire(0x1000).wake(PRODUCER);
        let trace = trace.hrtimer_done(0x1000).after(1).timer_irq_end();
        let trace = trace.at(1_010).run(PRODUCER).hrtimer_start(0x1000, 11_000);
        let trace = trace.at(1_100).block(PRODUCER, STOPPER);
        let trace = match stops {
            true => {
                let trace = trace.at(8_000).wake(PRODUCER).after(5);
                let trace = trace.preempt(STOPPER, PRODUCER).hrtimer_cancel(0x1000);
                stopped_task(trace.after(15), PRODUCER)
            }
            false => {
                let trace = trace.at(11_000).timer_irq().hrtimer_expire(0x1000);
                let trace = trace.wake(PRODUCER).hrtimer_done(0x1000).after(1);
                trace.timer_irq_end().after(5).preempt(STOPPER, PRODUCER)
            }
        };
        let trace = trace.after(300).wake(VICTIM).after(5);
        let trace = trace.block(PRODUCER, VICTIM).after(100);
        trace.block(VICTIM, STOPPER)
    };
    check(trace(false), 0, 0);
    let found = check(trace(true), 1, 0);
    let late = &found.activations[0];
    // From 11,000 us, when the producer was due, to the end of the work: 9_021 us it was stopped.
    assert_eq!(late.latency(), Duration::from_us(9_433));
    let term = &late.ledger.terms[0];
    assert_eq!(term.kind.to_string(), "stopped by a signal");
    assert_eq!(term.duration, Duration::from_us(9_021));
}
