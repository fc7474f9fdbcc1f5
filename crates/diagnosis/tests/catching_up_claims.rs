//! Claims about a task that slept for others amid a cycle of its own timer, for longer than a
//! cycle, and catches up with its releases then: what made it late was that sleep, and its own work
//! behind it is no cause.

use diagnosis::{Diagnosis, Query, TaskFilter, Until, diagnose};
use event::{Duration, Tid};
use testkit::{SyntheticTrace, Task};

const LOOP: Task = Task::rt(100, "loop", 50);
const CHILD: Task = Task::fair(200, "child");
const PERIOD_US: i64 = 10_000;
const WORK_US: i64 = 200;

fn released(trace: SyntheticTrace, at_us: i64) -> SyntheticTrace {
    let trace = trace.at(at_us).timer_irq().hrtimer_expire(7).wake(LOOP);
    trace.hrtimer_done(7).after(1).timer_irq_end()
}

/// Twelve cycles in time. In the last one it sleeps for its child for so long. Then it has a turn
/// of work for each release that has passed, and `more_us` of work.
fn sleeps_for_its_child(asleep_us: i64, more_us: i64) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(0).run(LOOP).at(10);
    trace = trace.hrtimer_start(7, PERIOD_US).block(LOOP, Task::IDLE);
    for turn in 1..12 {
        trace = released(trace, turn * PERIOD_US).after(5).run(LOOP);
        trace = trace
            .after(WORK_US)
            .hrtimer_start(7, (turn + 1) * PERIOD_US);
        trace = trace.block(LOOP, Task::IDLE);
    }
    let mut now_us = 12 * PERIOD_US;
    trace = released(trace, now_us).after(5).run(LOOP).after(20);
    trace = trace
        .block(LOOP, CHILD)
        .after(asleep_us)
        .wake(LOOP)
        .after(5);
    trace = trace.preempt(CHILD, LOOP).after(WORK_US + more_us);
    now_us += 31 + asleep_us + WORK_US + more_us;
    for turn in 13.. {
        trace = trace.hrtimer_start(7, turn * PERIOD_US);
        if turn * PERIOD_US > now_us {
            break;
        }
        trace = released(trace, now_us + 2).after(WORK_US);
        now_us += 3 + WORK_US;
    }
    trace.block(LOOP, Task::IDLE).after(100).nmi(1)
}

fn asked(trace: SyntheticTrace) -> Diagnosis {
    let query = Query {
        tasks: TaskFilter::from(Tid(LOOP.tid)),
        until: Until::Block,
        threshold: Some(Duration::from_ms(3)),
        ..Query::default()
    };
    diagnose(&trace.build(), &query).expect("the trace can be diagnosed")
}

#[test]
fn who_catches_up_behind_a_sleep_of_many_cycles_is_not_late_by_its_own_work() {
    let found = asked(sleeps_for_its_child(300_000, 0));
    let verdict = found.verdict().expect("a verdict");
    assert!(!verdict.conclusive, "{}", verdict.sentence);
    let why = "passed while it slept for others, for 300.000 ms";
    assert!(verdict.sentence.contains(why), "{}", verdict.sentence);
    assert!(verdict.advice.is_empty(), "{:?}", verdict.advice);
}

#[test]
fn who_slept_shortly_and_works_for_long_is_late_by_its_own_work() {
    let found = asked(sleeps_for_its_child(2_000, 6_000));
    let verdict = found.verdict().expect("a verdict");
    assert!(verdict.conclusive, "{}", verdict.sentence);
    assert!(
        verdict.sentence.contains("it ran itself"),
        "{}",
        verdict.sentence
    );
}
