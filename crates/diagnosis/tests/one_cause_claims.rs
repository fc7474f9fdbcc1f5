//! What one task did is one cause, and the largest is named first.

use diagnosis::{Diagnosis, Query, TaskFilter, diagnose};
use event::Tid;
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const HOG: Task = Task::rt(200, "hog", 60);
const OTHER: Task = Task::rt(201, "other", 70);
const LOW: Task = Task::fair(300, "low");
const STOPPER: Task = Task::rt(22, "migration/0", 99);

fn ask(trace: SyntheticTrace) -> Diagnosis {
    let query = Query {
        tasks: TaskFilter::from(Tid(VICTIM.tid)),
        worst: 1,
        ..Query::default()
    };
    diagnose(&trace.build(), &query).expect("the trace can be diagnosed")
}

/// The verdict is conclusive and names these causes, each with its microseconds, in this order.
fn check(trace: SyntheticTrace, expect: &[(&str, i64)]) {
    let diagnosis = ask(trace);
    let verdict = diagnosis.verdict().expect("the victim was activated");
    let named = verdict.culprits.iter();
    let named: Vec<_> = named
        .map(|culprit| (culprit.kind.to_string(), culprit.duration.as_ns() / 1_000))
        .collect();
    let named: Vec<_> = named
        .iter()
        .map(|(name, us)| (name.as_str(), *us))
        .collect();
    assert_eq!(named, expect, "{}", verdict.sentence);
    assert!(verdict.conclusive, "{}", verdict.sentence);
}

/// `task` has the CPU, and an interrupt wakes the victim at 1 ms.
fn woken_behind(task: Task) -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10).block(VICTIM, task);
    let trace = trace.at(1_000).irq(9, "eth0").wake(VICTIM);
    trace.irq_end(9)
}

#[test]
fn a_task_that_is_renamed_while_others_wait_is_one_cause() {
    let renamed = Task {
        comm: "encoder",
        ..HOG
    };
    // Under either name it had the CPU for less than the other one.
    let trace = woken_behind(HOG).at(5_000).preempt(HOG, OTHER);
    let trace = trace.at(10_000).block(OTHER, HOG);
    let trace = trace.at(10_500).rename(HOG, "encoder");
    let trace = trace.at(13_000).block(renamed, VICTIM);
    let expect = [
        ("run-queue wait behind hog (tid 200, rt 60)", 6_999),
        ("run-queue wait behind other (tid 201, rt 70)", 5_000),
    ];
    check(trace, &expect);
}

#[test]
fn another_thread_that_got_the_id_is_another_cause() {
    let child = Task::rt(HOG.tid, "child", 55);
    let trace = woken_behind(HOG).at(4_000).exit(HOG).end(HOG, OTHER);
    let trace = trace.at(9_000).fork(OTHER, child).wakeup_new(child, 0);
    let trace = trace.at(10_000).block(OTHER, child);
    let trace = trace.at(14_000).block(child, VICTIM);
    let expect = [
        ("run-queue wait behind other (tid 201, rt 70)", 6_000),
        ("run-queue wait behind child (tid 200, rt 55)", 4_000),
        ("run-queue wait behind hog (tid 200, rt 60)", 2_999),
    ];
    check(trace, &expect);
}

#[test]
fn who_kept_the_cpu_and_ran_ahead_goes_before_who_did_less_than_both() {
    let boosted = Task {
        prio: HOG.prio,
        ..LOW
    };
    let trace = woken_behind(LOW).at(5_000).boost(LOW, HOG.prio);
    let trace = trace.at(8_000).preempt(boosted, STOPPER);
    let trace = trace.at(13_000).block(STOPPER, boosted);
    let trace = trace.at(14_000).block(boosted, VICTIM);
    let expect = [
        ("run-queue wait behind low (tid 300, rt 60)", 4_000),
        (
            "preemption off or no preemption point in low (tid 300, nice 0)",
            3_999,
        ),
        ("stop class: migration/0 (tid 22, rt 99)", 5_000),
    ];
    check(trace, &expect);
}

#[test]
fn a_switch_that_took_longer_than_anybody_is_named_first() {
    let trace = woken_behind(LOW).after(6).preempt(LOW, STOPPER);
    let trace = trace.after(4).block(STOPPER, VICTIM);
    let diagnosis = ask(trace);
    let verdict = diagnosis.verdict().expect("the victim was activated");
    let first = verdict.culprits.first().expect("a cause");
    assert_eq!(first.kind.to_string(), "switch", "{}", verdict.sentence);
    assert!(
        verdict
            .sentence
            .contains("the switch to it took 6.000 us (54.5 %)"),
        "{}",
        verdict.sentence
    );
    // Who took longer than the switch goes first, as ever.
    let trace = woken_behind(LOW).after(6).preempt(LOW, STOPPER);
    let trace = trace.after(8).block(STOPPER, VICTIM);
    check(trace, &[("stop class: migration/0 (tid 22, rt 99)", 8)]);
}
