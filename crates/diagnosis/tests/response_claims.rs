//! What is claimed of activations that are judged to the end of their work: which they are, and
//! which part of them is whose.

use diagnosis::{Diagnosis, Query, TaskFilter, Until, diagnose};
use event::{Duration, Tid};
use testkit::{SyntheticTrace, Task};

const LOOP: Task = Task::rt(100, "loop", 50);
const HOG: Task = Task::rt(200, "hog", 60);
const FAIR: Task = Task::fair(300, "server");

fn asked(trace: SyntheticTrace, tasks: TaskFilter, until: Until) -> Diagnosis {
    let query = Query {
        tasks,
        until,
        ..Query::default()
    };
    diagnose(&trace.build(), &query).expect("the trace can be diagnosed")
}

/// The activations of `task`, the longest first: microseconds before it ran, of its own work, in
/// which it was put off.
#[track_caller]
fn check(trace: SyntheticTrace, task: Task, expect: &[(i64, i64, i64)]) -> Diagnosis {
    let found = asked(trace, TaskFilter::from(Tid(task.tid)), Until::Block);
    let us = |length: Duration| length.as_ns() / 1000;
    let parts = found.activations.iter().filter_map(|late| late.parts());
    let parts = parts.map(|parts| (us(parts.before), us(parts.own_work), us(parts.put_off)));
    assert_eq!(parts.collect::<Vec<_>>(), expect, "{found:#?}");
    found
}

/// `task` is woken at 1000 µs and runs 10 µs later.
fn begun(task: Task) -> SyntheticTrace {
    let idle = SyntheticTrace::new().at(10).block(task, Task::IDLE);
    let woken = idle.at(1000).timer_irq().wake(task);
    woken.after(1).timer_irq_end().at(1010).run(task)
}

fn sentence(diagnosis: &Diagnosis) -> &str {
    &diagnosis.verdict().expect("something was late").sentence
}

#[test]
fn work_of_its_own_is_told_apart_from_the_wait_before_it() {
    for task in [LOOP, FAIR] {
        let trace = begun(task).at(7010).block(task, Task::IDLE);
        let found = check(trace, task, &[(10, 6000, 0)]);
        let name = if task.tid == LOOP.tid {
            "loop (tid 100, rt 50)"
        } else {
            "server (tid 300, nice 0)"
        };
        assert_eq!(
            sentence(&found),
            format!(
                "{name} needed 6.010 ms to the end of its work on CPU 0: it ran itself for \
                     6.000 ms (99.8 %)."
            )
        );
        assert_eq!(found.groups[0].signature, "own work");
    }
}

#[test]
fn the_slack_of_a_timer_is_told_from_its_arming_too() {
    let asked = |soft_us: i64, over_ms: i64| {
        let trace = SyntheticTrace::new()
            .shows_timers()
            .at(10)
            .run(FAIR)
            .at(500);
        let trace = trace.hrtimer_start_with_slack(0x1000, soft_us, 41_000);
        let trace = trace.at(510).block(FAIR, Task::IDLE).at(40_000).timer_irq();
        let trace = trace.hrtimer_expire(0x1000).after(2).wake(FAIR);
        let trace = trace.hrtimer_done(0x1000).after(1).timer_irq_end();
        let trace = trace.after(5).run(FAIR).after(100).block(FAIR, Task::IDLE);
        let query = Query {
            tasks: TaskFilter::from(Tid(FAIR.tid)),
            threshold: Some(Duration::from_ms(over_ms)),
            ..Query::default()
        };
        diagnose(&trace.build(), &query).expect("the trace can be diagnosed")
    };
    let late = asked(3_000, 5);
    assert!(
        sentence(&late).contains("the slack that it allows its timer took 37.000 ms (100.0 %)"),
        "{late:#?}"
    );
    assert_eq!(late.groups[0].signature, "timer_slack");
    assert!(asked(3_000, 50).activations.is_empty());
    // Less than half of what is allowed is none of the late time.
    assert!(asked(39_000, 5).activations.is_empty());
}

#[test]
fn a_task_that_is_lowered_in_the_midst_of_its_work_is_told_with_both_priorities() {
    let says = |then: Task| {
        let trace = begun(LOOP).at(1100).preempt(then, FAIR);
        let trace = trace.at(4_000).preempt(FAIR, then);
        let trace = trace.at(4_100).block(then, Task::IDLE);
        let found = asked(trace, TaskFilter::from(Tid(LOOP.tid)), Until::Block);
        sentence(&found).to_owned()
    };
    let by_then = "It had lowered itself, or was lowered, to nice 0 by then.";
    let lowered = says(Task::fair(LOOP.tid, LOOP.comm));
    assert!(
        lowered.contains("loop (tid 100, rt 50) needed"),
        "{lowered}"
    );
    assert!(lowered.ends_with(by_then), "{lowered}");
    let same = says(LOOP);
    assert!(!same.contains("lowered"), "{same}");
}

#[test]
fn a_verdict_about_its_own_work_names_that_and_no_short_interrupt_before_it() {
    let named = |trace: SyntheticTrace| {
        let trace = trace.at(7010).block(LOOP, Task::IDLE);
        let found = asked(trace, TaskFilter::from(Tid(LOOP.tid)), Until::Block);
        let culprits = &found.verdict().expect("something was late").culprits;
        let tags = culprits.iter().map(|culprit| culprit.kind.tag());
        tags.collect::<Vec<_>>()
    };
    let interrupted = |us: i64| {
        let trace = begun(LOOP).at(2000).irq(24, "sound");
        trace.after(us).irq_end(24)
    };
    assert_eq!(named(begun(LOOP)), ["own_run"]);
    assert_eq!(named(interrupted(20)), ["own_run"]);
    // A good part of it.
    assert_eq!(named(interrupted(900)), ["own_run", "hardirq"]);
}

#[test]
fn what_others_take_of_the_work_is_theirs() {
    let trace = begun(LOOP).at(1100).wake(HOG).after(1).preempt(LOOP, HOG);
    let trace = trace
        .at(9100)
        .block(HOG, LOOP)
        .at(9200)
        .block(LOOP, Task::IDLE);
    let found = check(trace, LOOP, &[(10, 192, 7998)]);
    let said = sentence(&found);
    assert!(
        said.contains("hog (tid 200, rt 60) ran ahead of it for 7.998 ms"),
        "{said}"
    );
}

#[test]
fn a_sleep_in_the_kernel_is_inside_the_work_and_a_sleep_for_the_next_is_its_end() {
    let trace = begun(LOOP).at(1100).block_uninterruptible(LOOP, Task::IDLE);
    let trace = trace
        .at(3100)
        .wake(LOOP)
        .after(10)
        .run(LOOP)
        .at(3200)
        .block(LOOP, Task::IDLE);
    check(trace, LOOP, &[(10, 179, 2011)]);
    let trace = begun(LOOP).at(1100).block(LOOP, Task::IDLE);
    let trace = trace
        .at(3100)
        .wake(LOOP)
        .after(10)
        .run(LOOP)
        .at(3200)
        .block(LOOP, Task::IDLE);
    check(trace, LOOP, &[(10, 90, 0), (11, 89, 0)]);
}

#[test]
fn work_that_goes_on_at_the_end_of_the_trace_is_as_long_as_it_was_seen() {
    let trace = begun(LOOP).at(9010).nmi(1);
    let found = check(trace, LOOP, &[(10, 7999, 1)]);
    assert!(
        sentence(&found)
            .contains("was still at work after 8.010 ms on CPU 0: it ran itself for 7.999 ms"),
        "{found:?}"
    );
}

#[test]
fn a_task_whose_begin_was_not_seen_is_judged_by_its_waits() {
    let trace = SyntheticTrace::new()
        .at(10)
        .run(LOOP)
        .at(1100)
        .wake(HOG)
        .after(1);
    let trace = trace
        .preempt(LOOP, HOG)
        .at(6102)
        .block(HOG, LOOP)
        .at(20_000)
        .nmi(1);
    let found = asked(trace, TaskFilter::from(Tid(LOOP.tid)), Until::Block);
    let latencies: Vec<_> = found
        .activations
        .iter()
        .map(|late| late.latency())
        .collect();
    assert_eq!(latencies, [Duration::from_us(5000)]);
    let said = sentence(&found);
    assert!(said.contains("was put off for 5.000 ms"), "{said}");
    assert!(
        said.contains("hog (tid 200, rt 60) ran ahead of it for 5.000 ms (100.0 %)"),
        "{said}"
    );
}

#[test]
fn a_begin_that_was_not_seen_is_counted_and_not_judged() {
    let trace = SyntheticTrace::new()
        .at(10)
        .run(LOOP)
        .at(500)
        .block(LOOP, Task::IDLE);
    let asked = |trace: SyntheticTrace| asked(trace, TaskFilter::from(Tid(LOOP.tid)), Until::Block);
    let found = asked(trace.clone());
    assert_eq!((found.basis.activations, found.basis.unjudged), (0, 1));
    assert_eq!(found.basis.may_be_late(), 0);
    // The next one begins in the trace: its wake-up is missing, also where it is not seen to come.
    let came = trace.clone().at(1_000).run(LOOP);
    for trace in [came, trace] {
        let found = asked(trace.at(1_500).block(LOOP, Task::IDLE));
        assert_eq!((found.basis.unjudged, found.basis.may_be_late()), (1, 1));
    }
}

#[test]
fn a_wait_for_a_page_begins_nothing_where_the_begin_was_not_seen() {
    let trace = SyntheticTrace::new()
        .at(10)
        .run(HOG)
        .at(9_000)
        .block(HOG, LOOP)
        .at(9_100)
        .block_uninterruptible(LOOP, Task::IDLE)
        .at(9_200)
        .wake(LOOP)
        .at(9_210)
        .run(LOOP)
        .at(9_300)
        .block(LOOP, Task::IDLE);
    let found = asked(trace.clone(), TaskFilter::from(Tid(LOOP.tid)), Until::Block);
    assert_eq!((found.basis.activations, found.basis.unjudged), (0, 1));
    // The next one is seen whole.
    let trace = trace.at(9_400).wake(LOOP).at(9_410).run(LOOP);
    let trace = trace.at(9_500).block(LOOP, Task::IDLE);
    let found = asked(trace, TaskFilter::from(Tid(LOOP.tid)), Until::Block);
    assert_eq!((found.basis.activations, found.basis.unjudged), (1, 1));
}

#[test]
fn without_a_name_those_who_were_put_off_come_before_those_who_work_for_long() {
    let trace = begun(HOG).at(1100).wake(LOOP).at(9000).block(HOG, LOOP);
    let trace = trace.at(9100).block(LOOP, Task::IDLE);
    let found = asked(trace, TaskFilter::default(), Until::Block);
    let groups: Vec<_> = found
        .groups
        .iter()
        .map(|group| group.signature.as_str())
        .collect();
    assert_eq!(groups, ["run_queue_wait:hog", "own work"]);
}

#[test]
fn to_the_switch_in_the_work_does_not_count() {
    let trace = begun(LOOP).at(7010).block(LOOP, Task::IDLE);
    let found = asked(trace, TaskFilter::from(Tid(LOOP.tid)), Until::SwitchIn);
    assert_eq!(found.activations[0].latency(), Duration::from_us(10));
}

#[test]
fn the_last_work_of_a_task_that_ends_is_judged_and_that_of_one_that_was_just_made_is_not() {
    check(
        begun(LOOP).at(7010).end(LOOP, Task::IDLE),
        LOOP,
        &[(10, 6000, 0)],
    );
    let made = SyntheticTrace::new()
        .at(10)
        .fork(HOG, LOOP)
        .wakeup_new(LOOP, 0);
    let made = made.at(20).run(LOOP).at(7010).block(LOOP, Task::IDLE);
    let found = asked(made, TaskFilter::from(Tid(LOOP.tid)), Until::Block);
    let latencies: Vec<_> = found
        .activations
        .iter()
        .map(|late| late.latency())
        .collect();
    assert!(
        latencies
            .iter()
            .all(|latency| *latency < Duration::from_us(20)),
        "{found:?}"
    );
}
