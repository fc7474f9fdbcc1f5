//! What the ledger claims of tasks that keep a real-time task off its CPU: events in, terms out.

mod ledger;

use diagnosis::Grade;
use ledger::{FAIR, HOG, SECOND, STOPPER, VICTIM, ask, check, idle_machine, timer_wakes_victim};
use testkit::Task;

#[test]
fn a_hog_of_higher_priority_gets_the_wait_behind_it() {
    let trace = idle_machine().at(500).run(HOG);
    let trace = timer_wakes_victim(trace, 1000).at(9000).block(HOG, VICTIM);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 7_995_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn two_hogs_are_named_in_the_order_of_their_share() {
    let trace = idle_machine().at(500).run(HOG);
    let trace = timer_wakes_victim(trace, 1000)
        .at(3000)
        .preempt(HOG, SECOND)
        .at(9000)
        .block(SECOND, HOG)
        .at(10000)
        .block(HOG, VICTIM);
    let expect = [
        (
            "run-queue wait behind second burner (tid 201, rt 70)",
            6_000_000,
        ),
        ("run-queue wait behind burner (tid 200, rt 60)", 2_995_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn decoys_on_this_cpu_before_and_on_another_cpu_get_nothing() {
    // The fair task runs before the hog, and a second hog burns CPU 1 all the time.
    let trace = idle_machine()
        .cpu(1)
        .at(30)
        .run(SECOND)
        .cpu(0)
        .at(40)
        .run(FAIR);
    let trace = trace.at(500).preempt(FAIR, HOG);
    let trace = timer_wakes_victim(trace, 1000).at(9000).block(HOG, VICTIM);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 7_995_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn who_has_a_cpu_that_takes_no_interrupt_is_not_accused_of_keeping_it() {
    const TICK: u64 = 9;
    let trace = |due_us, expect: &'static str, unnamed_us| {
        let trace = idle_machine().at(500).run(FAIR).hrtimer_start(TICK, due_us);
        let trace = trace.cpu(1).at(1_000).timer_irq().waking(VICTIM, 0);
        let trace = trace.after(1).wakeup(VICTIM, 0).after(3).timer_irq_end();
        let trace = trace.cpu(0).at(8_000).timer_irq().hrtimer_expire(TICK);
        let trace = trace.hrtimer_done(TICK).after(2).timer_irq_end();
        let trace = trace.after(3).preempt(FAIR, VICTIM);
        let ledger = ask(trace).activations.remove(0).ledger;
        let first = &ledger.terms[0];
        assert_eq!(first.kind.to_string(), expect, "{:?}", ledger.terms);
        assert_eq!(first.duration.as_ns() / 1_000, unnamed_us);
    };
    let kept = "preemption off or no preemption point in compile (tid 300, nice 0)";
    // In time, and late for less than half of it.
    trace(7_900, kept, 7_002);
    trace(6_000, kept, 7_002);
    trace(1_500, "unexplained: a late timer without a stack", 6_999);
}

#[test]
fn a_lower_priority_that_keeps_the_cpu_is_named_with_its_function_where_a_stack_says_so() {
    let running = || timer_wakes_victim(idle_machine().at(500).run(FAIR), 1000).at(2005);
    let expect = |name: &'static str| {
        [
            (name, 1_000_000),
            ("interrupt: local timer", 4_000),
            ("wake-up delivery", 1_000),
        ]
    };
    check(
        running().preempt(FAIR, VICTIM),
        &expect("preemption off or no preemption point in compile (tid 300, nice 0)"),
        Grade::Complete,
    );
    // Without a record of its own, the hit's stack says it: waking, and being scheduled in.
    let steps = [(1_005_000, 7, 0, VICTIM.tid), (2_005_000, 8, 0, VICTIM.tid)];
    check(
        running().preempt(FAIR, VICTIM).hit(1, VICTIM, FAIR, &steps),
        &[(
            "preemption off or no preemption point in do_burn by compile (tid 300, nice 0)",
            1_000_000,
        )],
        Grade::Complete,
    );
    let stack = ["__schedule+0x1", "zap_pte_range+0x9"];
    check(
        running()
            .preemption_off(1005, FAIR, 1, &stack)
            .preempt(FAIR, VICTIM),
        &expect("no preemption point in zap_pte_range by compile (tid 300, nice 0)"),
        Grade::Complete,
    );
    check(
        running()
            .preemption_off(1005, FAIR, 5, &stack)
            .preempt(FAIR, VICTIM),
        &expect("preemption off in zap_pte_range by compile (tid 300, nice 0)"),
        Grade::Complete,
    );
}

#[test]
fn a_task_of_lower_priority_that_was_picked_over_a_runnable_one_means_throttling() {
    let trace = timer_wakes_victim(idle_machine().at(500).run(HOG), 1000);
    // The hog used up its bandwidth: preempted while runnable, for a fair task and then idle.
    let trace = trace
        .at(2005)
        .preempt(HOG, FAIR)
        .at(3105)
        .block(FAIR, Task::IDLE);
    let trace = trace.at(3605).run(VICTIM);
    let expect = [
        ("throttled while compile (tid 300, nice 0) ran", 1_100_000),
        ("run-queue wait behind burner (tid 200, rt 60)", 1_000_000),
        ("throttled while the CPU idled", 500_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn a_stop_class_thread_is_no_ordinary_wait() {
    let trace = timer_wakes_victim(idle_machine().at(500).run(STOPPER), 1000);
    let expect = [
        ("stop class: migration/0 (tid 20, rt 99)", 195_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(
        trace.at(1200).block(STOPPER, VICTIM),
        &expect,
        Grade::Complete,
    );
}

#[test]
fn a_function_is_known_by_what_the_wake_up_interrupted_where_a_stop_class_thread_came_between() {
    let steps = [(1_005_000, 7, 0, VICTIM.tid), (2_105_000, 8, 0, VICTIM.tid)];
    let waker = ["asm_sysvec_apic_timer_interrupt+0x1a", "walk_list+0x9"];
    let trace = timer_wakes_victim(idle_machine().at(500).run(FAIR), 1000);
    let trace = trace
        .at(2005)
        .preempt(FAIR, STOPPER)
        .at(2105)
        .block(STOPPER, VICTIM)
        .hit_woken_from(1, VICTIM, STOPPER, &steps, &waker);
    let kept = "preemption off or no preemption point in walk_list by compile (tid 300, nice 0)";
    let expect = [
        (kept, 1_000_000),
        ("stop class: migration/0 (tid 20, rt 99)", 100_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn where_a_task_left_is_not_the_function_that_an_interrupt_found_it_in() {
    let steps = [(1_005_000, 7, 0, VICTIM.tid), (2_005_000, 8, 0, VICTIM.tid)];
    let named = |function: &'static str, name: &'static str| {
        let waker = ["asm_sysvec_apic_timer_interrupt+0x1a", function];
        let trace = timer_wakes_victim(idle_machine().at(500).run(FAIR), 1000);
        let trace = trace.at(2005).preempt(FAIR, VICTIM);
        let trace = trace.hit_woken_from(1, VICTIM, FAIR, &steps, &waker);
        check(trace, &[(name, 1_000_000)], Grade::Complete);
    };
    named(
        "walk_list+0x9",
        "preemption off or no preemption point in walk_list by compile (tid 300, nice 0)",
    );
    // Marks between functions, the second where the kernel's jumps begin.
    for mark in ["__softirqentry_text_end+0x0", "__static_call_text_end+0xc"] {
        named(
            mark,
            "preemption off or no preemption point in compile (tid 300, nice 0)",
        );
    }
}

#[test]
fn a_task_that_is_moved_while_it_waits_owes_to_one_cpu_after_the_other() {
    let trace = timer_wakes_victim(idle_machine().at(500).run(HOG), 1000);
    let trace = trace
        .at(2005)
        .migrate(VICTIM, 1)
        .cpu(1)
        .at(2009)
        .run(VICTIM);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 1_000_000),
        ("interrupt: local timer", 4_000),
        ("migration", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn a_task_that_comes_where_the_trace_did_not_lead_to_is_not_explained() {
    let trace = timer_wakes_victim(idle_machine().at(500).run(HOG), 1000);
    let trace = trace.cpu(1).at(2005).run(VICTIM);
    let expect = [
        (
            "unexplained: the trace does not say on which CPU it waited",
            1_002_000,
        ),
        ("interrupt: local timer", 2_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn a_task_that_raised_its_own_priority_while_it_ran_is_judged_by_the_priority_it_left_with() {
    // It was scheduled in as a fair task of another name, and the trace says so only at its end.
    let before = Task::fair(HOG.tid, "launcher");
    let trace = timer_wakes_victim(idle_machine().at(500).run(before), 1000);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 7_995_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace.at(9000).block(HOG, VICTIM), &expect, Grade::Complete);
    // Without its end, its priority is not known, and nobody is accused.
    let trace = timer_wakes_victim(idle_machine().at(500).run(before), 1000)
        .at(6005)
        .timer_irq();
    let expect = [
        (
            "unexplained: the priority of the task that ran was not seen",
            5_000_000,
        ),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Censored);
}

#[test]
fn a_fair_task_does_not_hand_on_its_own_wake_up() {
    let trace = idle_machine()
        .at(100)
        .irq(9, "eth0")
        .wake(FAIR)
        .irq_end(9)
        .run(FAIR);
    let trace = trace.at(5000).wake(VICTIM).after(2).preempt(FAIR, VICTIM);
    let expect = [("switch", 2_000), ("wake-up delivery", 1_000)];
    check(trace, &expect, Grade::Complete);
}
