//! Claims about a task whose priority is changed in the midst of its work: who went ahead of it is
//! judged by the priority with which it left its CPU.

mod ledger;

use diagnosis::{Query, TaskFilter, Until, diagnose};
use event::Tid;
use ledger::{FAIR, HOG, VICTIM, idle_machine, timer_wakes_victim};
use testkit::{SyntheticTrace, Task};

/// The victim works for 2 ms, leaves its CPU as `left` for `other`, and is back as `back` after
/// 12 ms.
fn put_off(left: Task, other: Task, back: Task) -> SyntheticTrace {
    let trace = timer_wakes_victim(idle_machine(), 1_000).after(10);
    let trace = trace.run(VICTIM).after(2_000).preempt(left, other);
    let trace = trace.after(12_000).preempt(other, back);
    trace.after(1_000).block(back, Task::IDLE).after(1_000)
}

#[track_caller]
fn check(trace: SyntheticTrace, conclusive: bool, says: &str) {
    let query = Query {
        tasks: TaskFilter::from(Tid(VICTIM.tid)),
        until: Until::Block,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
    let verdict = diagnosis.verdict().expect("the victim was late");
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
    assert_eq!(verdict.conclusive, conclusive, "{}", verdict.sentence);
}

#[test]
fn who_is_lowered_in_the_midst_of_its_work_waits_by_its_new_priority() {
    let demoted = Task::fair(VICTIM.tid, VICTIM.comm);
    let ahead = "compile (tid 300, nice 0) ran ahead of it, which had nice 0 then, for 12.000 ms";
    check(put_off(demoted, FAIR, VICTIM), true, ahead);
    check(put_off(demoted, FAIR, demoted), true, ahead);
    // With its own priority only a limit on real-time tasks lets a fair one in.
    check(put_off(VICTIM, FAIR, VICTIM), true, "(throttled");
    // A real-time one goes ahead of it with either.
    let ahead =
        |lowered: &str| format!("burner (tid 200, rt 60) ran ahead of it{lowered} for 12.000 ms");
    check(
        put_off(demoted, HOG, VICTIM),
        true,
        &ahead(", which had nice 0 then,"),
    );
    check(put_off(VICTIM, HOG, VICTIM), true, &ahead(""));
    // Lowered below one that it went ahead of.
    let low = Task::rt(VICTIM.tid, VICTIM.comm, 10);
    check(
        put_off(low, HOG, VICTIM),
        true,
        &ahead(", which had rt 10 then,"),
    );
}
