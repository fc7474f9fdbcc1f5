//! What the ledger claims where events are lost, cut off or were never recorded.

mod ledger;

use diagnosis::{Diagnosis, Grade, Query, diagnose};
use ledger::{FAIR, FAIR_TOO, HOG, SECOND, VICTIM, ask, check, idle_machine, timer_wakes_victim};
use testkit::{SyntheticTrace, Task};

#[test]
fn lost_events_leave_a_hole_that_nobody_is_accused_of() {
    let trace = timer_wakes_victim(idle_machine().at(500).run(HOG), 1000);
    let trace = trace
        .lost(2005, 3005)
        .at(4005)
        .preempt(FAIR, HOG)
        .at(5005)
        .block(HOG, VICTIM);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 2_000_000),
        ("unexplained: events were lost there", 2_000_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Lossy);
}

#[test]
fn an_activation_that_is_open_at_the_windows_end_is_censored() {
    let trace = timer_wakes_victim(idle_machine().at(500).run(HOG), 1000);
    let trace = trace.at(6005).timer_irq();
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 5_000_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Censored);
}

#[test]
fn time_before_a_cpus_first_switch_is_an_edge() {
    let trace = SyntheticTrace::new()
        .cpu(0)
        .at(1000)
        .irq(9, "eth0")
        .after(4)
        .wake(VICTIM);
    let trace = trace.after(1).irq_end(9).at(2006).block(HOG, VICTIM);
    let expect = [
        ("unexplained: outside the recorded window", 1_000_000),
        ("interrupt 9 eth0", 5_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Censored);
}

#[test]
fn a_wake_up_of_a_task_that_is_still_on_a_cpu_begins_nothing() {
    // Woken before it blocks: it stays. Much later it blocks, and a timer wakes it.
    let trace = idle_machine().at(100).run(VICTIM).at(150).wake(VICTIM);
    let trace = trace.at(900).block(VICTIM, Task::IDLE);
    let trace = timer_wakes_victim(trace, 1000).after(1).run(VICTIM);
    let diagnosis = ask(trace);
    assert_eq!(diagnosis.basis.activations, 1);
    assert_eq!(diagnosis.activations[0].latency().as_ns(), 6_000);
}

#[test]
fn a_wake_up_between_the_decision_to_block_and_the_switch_is_not_missed() {
    let trace = idle_machine()
        .at(100)
        .run(VICTIM)
        .at(150)
        .cpu(1)
        .waking(VICTIM, 0);
    let trace = trace
        .cpu(0)
        .at(152)
        .block(VICTIM, HOG)
        .at(154)
        .wakeup(VICTIM, 0);
    let diagnosis = ask(trace.at(250).block(HOG, VICTIM));
    assert_eq!(diagnosis.activations[0].latency().as_ns(), 100_000);
}

#[test]
fn a_wait_across_the_begin_of_another_cpus_events_proves_no_decision_of_the_scheduler() {
    // The victim may have run on CPU 1, whose events begin at 2000 µs.
    let trace = SyntheticTrace::new()
        .at(20)
        .block(VICTIM, HOG)
        .at(1000)
        .irq(9, "eth0");
    let trace = trace
        .after(4)
        .wake(VICTIM)
        .irq_end(9)
        .at(1505)
        .block(HOG, FAIR);
    let trace = trace.cpu(1).at(2000).block(SECOND, Task::IDLE).cpu(0);
    let trace = trace.at(3005).preempt(FAIR, VICTIM);
    let expect = [
        ("unexplained: outside the recorded window", 1_500_000),
        ("run-queue wait behind burner (tid 200, rt 60)", 500_000),
        ("interrupt 9 eth0", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Censored);
}

#[test]
fn switches_that_a_filter_left_out_are_not_laid_at_the_kernels_door() {
    let check = |filtered: Option<&str>, expect: &str| {
        let mut trace = idle_machine();
        if let Some(events) = filtered {
            trace = trace.environment("rtscope_filtered_events", events);
        }
        let hog_runs = trace.at(900).cpu(1).waking(HOG, 0).cpu(0);
        let trace = timer_wakes_victim(hog_runs, 1000)
            .at(3000)
            .block(HOG, VICTIM)
            .at(3010)
            .block(VICTIM, Task::IDLE);
        let diagnosis = ask(trace);
        let said: Vec<_> = diagnosis.warnings.iter().map(|w| &w.what).collect();
        let is_said = said.iter().any(|what| what.as_str() == expect);
        assert!(is_said, "{filtered:?}: {said:?}");
    };
    let by_kernel = "this kernel did not record 1 switch; it was inferred";
    let by_filter = "the recording's filter left out 1 switch; it was inferred";
    check(None, by_kernel);
    check(Some("sched_waking"), by_kernel);
    check(Some("sched_switch,sched_waking"), by_filter);
}

#[test]
fn in_a_trace_of_some_tasks_alone_nobody_else_is_accused() {
    // The switches between FAIR, which the victim left the CPU to, and HOG, which it took it from,
    // are not recorded: FAIR_TOO may have run, too.
    let tracked = |tid: i32| [("tid", event::Value::Signed(i64::from(tid)))];
    let trace = SyntheticTrace::new().environment("rtscope_tracked_tasks", "npt");
    let trace = trace.event("rtscope_tracked", &tracked(VICTIM.tid));
    let trace = trace.at(100).block(VICTIM, FAIR);
    let trace = timer_wakes_victim(trace.at(900), 1000);
    let trace = trace
        .at(3005)
        .block(FAIR, VICTIM)
        .at(3015)
        .block(VICTIM, HOG);
    // HOG is woken by the victim, and what it does is not recorded.
    let trace = trace.at(4000).block(FAIR, VICTIM).at(4010).wake(HOG);
    let trace = trace
        .at(4020)
        .block(VICTIM, HOG)
        .at(9000)
        .block(HOG, VICTIM);
    let trace = trace.at(9010).block(VICTIM, FAIR).build();
    let query = Query {
        worst: 9,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace, &query).expect("it can be diagnosed");
    let terms = diagnosis
        .activations
        .iter()
        .flat_map(|late| &late.ledger.terms);
    let terms: Vec<_> = terms.map(|term| term.kind.to_string()).collect();
    let accused = |task: Task| terms.iter().any(|term| term.contains(task.comm));
    assert!(![FAIR, FAIR_TOO, HOG].into_iter().any(accused), "{terms:?}");
    assert!(!diagnosis.activations.is_empty());
    let judged = &diagnosis.basis.judged;
    assert!(
        judged.iter().all(|(task, _)| task.tid.0 == VICTIM.tid),
        "{judged:?}"
    );
    let said: Vec<_> = diagnosis.warnings.iter().map(|w| &w.what).collect();
    assert!(
        said.iter().any(|what| what.contains("--track npt")),
        "{said:?}"
    );
}

#[test]
fn a_switch_out_of_idle_that_was_not_recorded_is_inferred_from_the_wake_up() {
    // The hog is woken from CPU 1 on an idle CPU 0, and only its end is recorded there.
    let hog_runs = idle_machine().at(900).cpu(1).waking(HOG, 0).cpu(0);
    let trace = timer_wakes_victim(hog_runs, 1000)
        .at(3000)
        .block(HOG, VICTIM)
        .at(3010)
        .block(VICTIM, Task::IDLE);
    let diagnosis = ask(trace);
    assert_eq!(diagnosis.basis.inferred, 1);
    let late = &diagnosis.activations[0];
    let largest = &late.ledger.terms[0];
    assert_eq!(
        largest.kind.to_string(),
        "run-queue wait behind burner (tid 200, rt 60)"
    );
    assert!(late.ledger.is_good(), "{:?}", late.ledger);
}

#[test]
fn who_still_runs_at_the_end_on_a_cpu_that_hides_idle_is_inferred_there_only() {
    // As above, but the victim is moved away, and the trace ends while the hog runs.
    let end = |trace: SyntheticTrace| {
        let trace = timer_wakes_victim(trace.at(900).cpu(1).waking(HOG, 0).cpu(0), 1000);
        let trace = trace.at(3000).cpu(1).migrate(VICTIM, 1);
        ask(trace.at(3004).preempt(FAIR, VICTIM))
    };
    let machine = || {
        let trace = idle_machine().at(500).cpu(1).run(FAIR);
        trace.waking(SECOND, 0).cpu(0)
    };
    let hidden = end(machine().at(510).block(SECOND, Task::IDLE));
    assert_eq!(hidden.basis.inferred, 2);
    let late = &hidden.activations[0];
    let largest = &late.ledger.terms[0];
    assert_eq!(
        largest.kind.to_string(),
        "run-queue wait behind burner (tid 200, rt 60)"
    );
    assert!(late.ledger.is_good(), "{:?}", late.ledger);
    let shown = machine().at(505).preempt(Task::IDLE, SECOND);
    let shown = end(shown.at(510).block(SECOND, Task::IDLE));
    assert_eq!(shown.basis.inferred, 0);
}

#[test]
fn a_task_that_the_trace_did_not_see_leave_is_not_accused() {
    // The trace shows the fair task on the CPU, and at the end the hog leaves it.
    let busy = |trace: SyntheticTrace| {
        let trace = timer_wakes_victim(trace, 1000).at(3000);
        ask(trace.block(HOG, VICTIM))
    };
    let named = |diagnosis: &Diagnosis| {
        let terms = diagnosis.activations[0].ledger.terms.iter();
        let tasks = terms.filter_map(|term| term.kind.task());
        tasks.map(|task| task.comm.clone()).collect::<Vec<_>>()
    };
    let running = || idle_machine().at(500).run(FAIR);
    let nobody = busy(running());
    assert!(named(&nobody).is_empty(), "{:?}", nobody.activations);
    assert!(!nobody.activations[0].ledger.is_good());
    // It had come there with a priority that preempts the fair task, which may have kept the CPU
    // for a while all the same.
    let came = busy(running().at(900).cpu(1).waking(HOG, 0).cpu(0));
    assert!(named(&came).is_empty(), "{:?}", came.activations);
    assert!(!came.activations[0].ledger.is_good());
    // One that does not outrank it may have come at any time.
    let equal = running().at(900).cpu(1).waking(FAIR_TOO, 0).cpu(0);
    let equal = ask(timer_wakes_victim(equal, 1000)
        .at(3000)
        .preempt(FAIR_TOO, VICTIM));
    assert!(named(&equal).is_empty(), "{:?}", equal.activations);
}

#[test]
fn an_idle_cpu_is_not_given_to_a_task_that_nobody_woke_there() {
    let trace = timer_wakes_victim(idle_machine(), 1000)
        .at(3000)
        .block(HOG, VICTIM)
        .at(3010)
        .block(VICTIM, Task::IDLE);
    let diagnosis = ask(trace);
    assert_eq!(diagnosis.basis.inferred, 0);
    assert!(
        diagnosis.activations[0]
            .ledger
            .terms
            .iter()
            .all(|t| t.kind.task().is_none())
    );
}
