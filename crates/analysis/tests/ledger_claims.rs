//! What the ledger claims for one activation of a real-time task: events in, terms out.

use analysis::{Diagnosis, Grade, Ledger, Query, StepKind, TaskFilter, diagnose};
use event::Tid;
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const HOG: Task = Task::rt(200, "burner", 60);
const SECOND: Task = Task::rt(201, "second burner", 70);
const FAIR: Task = Task::fair(300, "compile");
const FAIR_TOO: Task = Task::fair(301, "link");
const IRQ_THREAD: Task = Task::rt(400, "irq/24-snd", 50);
const STOPPER: Task = Task::rt(20, "migration/0", 99);

fn ask(trace: SyntheticTrace) -> Diagnosis {
    let tasks = TaskFilter {
        tids: vec![Tid(VICTIM.tid)],
        ..TaskFilter::default()
    };
    let query = Query {
        tasks,
        worst: 1,
        ..Query::default()
    };
    diagnose(&trace.build(), &query).expect("the trace can be diagnosed")
}

fn worst_ledger(trace: SyntheticTrace) -> Ledger {
    let diagnosis = ask(trace);
    diagnosis
        .activations
        .first()
        .expect("the victim was activated")
        .ledger
        .clone()
}

/// The victim's worst activation has exactly these terms (name, nanoseconds), largest first, and
/// they add up.
fn check(trace: SyntheticTrace, expect: &[(&str, i64)], grade: Grade) {
    let ledger = worst_ledger(trace);
    let terms: Vec<_> = ledger
        .terms
        .iter()
        .map(|t| (t.kind.to_string(), t.duration.as_ns()))
        .collect();
    let terms: Vec<_> = terms
        .iter()
        .map(|(name, ns)| (name.as_str(), *ns))
        .collect();
    assert_eq!(terms, expect);
    assert_eq!(ledger.grade, grade);
    let sum: i64 = expect.iter().map(|(_, ns)| ns).sum();
    assert_eq!(ledger.total.as_ns(), sum, "the terms add up");
}

/// Both CPUs known to be idle, and a timer for the victim that expires at 1000 µs.
fn idle_machine() -> SyntheticTrace {
    SyntheticTrace::new()
        .at(10)
        .cpu(1)
        .block(FAIR, Task::IDLE)
        .cpu(0)
        .at(20)
        .block(VICTIM, Task::IDLE)
        .hrtimer_start(0x1000, 1000)
}

/// The local timer's interrupt at `us` wakes the victim, in 5 µs.
fn timer_wakes_victim(trace: SyntheticTrace, us: i64) -> SyntheticTrace {
    trace
        .at(us)
        .timer_irq()
        .after(1)
        .hrtimer_expire(0x1000)
        .after(1)
        .wake(VICTIM)
        .after(1)
        .hrtimer_done(0x1000)
        .after(1)
        .timer_irq_end()
}

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
fn an_irq_storm_gets_its_handlers_and_an_nmi_beats_them() {
    let trace = idle_machine().at(500).run(HOG);
    let trace = timer_wakes_victim(trace, 1000);
    let trace = trace
        .at(1100)
        .irq(9, "eth0")
        .at(1400)
        .nmi(100)
        .at(1900)
        .irq_end(9);
    let trace = trace.at(2000).block(HOG, VICTIM);
    let expect = [
        ("interrupt 9 eth0", 700_000),
        ("run-queue wait behind burner (tid 200, rt 60)", 195_000),
        ("NMI", 100_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn a_softirq_that_delays_the_wake_up_is_named_by_its_vector() {
    let trace = idle_machine()
        .at(1000)
        .irq(9, "eth0")
        .after(2)
        .softirq_raise(3)
        .after(3)
        .irq_end(9);
    let trace = trace
        .softirq(3)
        .after(300)
        .wake(VICTIM)
        .after(99)
        .softirq_end(3);
    let trace = trace.after(3).run(VICTIM);
    let expect = [
        ("softirq NET_RX", 399_000),
        ("interrupt 9 eth0", 5_000),
        ("idle exit", 3_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn a_chain_through_an_interrupt_thread_names_its_waits_and_its_work() {
    // PREEMPT_RT: the hog starves the thread; more interrupts come while it is runnable.
    let trace = idle_machine().at(500).run(HOG);
    let trace = trace
        .at(1000)
        .irq(24, "snd")
        .after(2)
        .wake(IRQ_THREAD)
        .after(1)
        .irq_end(24);
    let trace = trace
        .at(2000)
        .irq(24, "snd")
        .after(2)
        .waking(IRQ_THREAD, 0)
        .after(1)
        .irq_end(24);
    let trace = trace
        .at(9000)
        .block(HOG, IRQ_THREAD)
        .after(20)
        .softirq(3)
        .after(10);
    let trace = trace
        .softirq_end(3)
        .after(5)
        .wake(VICTIM)
        .after(4)
        .block(IRQ_THREAD, VICTIM);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 7_993_000),
        ("upstream work of irq/24-snd (tid 400, rt 50)", 25_000),
        ("softirq NET_RX", 10_000),
        ("interrupt 24 snd", 6_000),
        ("run-queue wait behind irq/24-snd (tid 400, rt 50)", 4_000),
        ("wake-up delivery", 2_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn an_interrupt_goes_on_until_it_has_woken_its_handlers_thread() {
    let trace = |gap_us: i64| {
        let trace = idle_machine().at(500).run(HOG).at(1000).irq(24, "snd");
        let trace = trace.after(3).irq_end(24).after(gap_us).wake(IRQ_THREAD);
        let trace = trace.at(9000).block(HOG, IRQ_THREAD).after(20).wake(VICTIM);
        trace.after(5).block(IRQ_THREAD, VICTIM)
    };
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 7_994_000),
        ("upstream work of irq/24-snd (tid 400, rt 50)", 20_000),
        ("interrupt 24 snd", 5_000),
        ("run-queue wait behind irq/24-snd (tid 400, rt 50)", 5_000),
        ("wake-up delivery", 2_000),
    ];
    check(trace(2), &expect, Grade::Complete);
    let steps = |gap_us: i64| {
        let diagnosis = ask(trace(gap_us));
        let steps = diagnosis.activations[0].steps.iter();
        steps.map(|step| step.kind).collect::<Vec<_>>()
    };
    assert_eq!(steps(2)[0], StepKind::Hardirq);
    // So late it is somebody else's doing.
    assert_eq!(steps(200)[0], StepKind::Waking);
}

#[test]
fn a_softirq_on_a_threads_time_leaves_the_cpu_with_the_thread() {
    let timers = Task::rt(16, "ktimers/0", 1);
    let trace = idle_machine()
        .at(1000)
        .timer_irq()
        .after(1)
        .softirq_raise(8)
        .after(1);
    let trace = trace
        .wake(timers)
        .after(1)
        .timer_irq_end()
        .after(2)
        .run(timers)
        .softirq(8);
    // Preempted inside the softirq: the hog's time is the hog's.
    let trace = trace
        .after(10)
        .preempt(timers, HOG)
        .after(500)
        .block(HOG, timers);
    let trace = trace
        .after(10)
        .wake(VICTIM)
        .after(1)
        .softirq_end(8)
        .block(timers, VICTIM);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 500_000),
        ("softirq HRTIMER", 21_000),
        ("interrupt: local timer", 4_000),
        ("idle exit", 2_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn a_late_timer_is_charged_to_the_function_that_its_stack_names() {
    let stack = [
        "_raw_spin_unlock_irqrestore+0x1f",
        "serial_console_write+0x9c",
    ];
    let expect = [
        (
            "interrupts off in serial_console_write by compile (tid 300, nice 0)",
            2_000_000,
        ),
        ("interrupt: local timer", 4_000),
        ("switch", 2_000),
        ("wake-up delivery", 1_000),
    ];
    // The record is of the first timer that the interrupt serves: ours, or an earlier one.
    for recorded_us in [1000, 700] {
        let trace = idle_machine().at(500).run(FAIR).at(3000);
        let trace = trace.late_timer(recorded_us, FAIR, 0, 0, &stack);
        let trace = timer_wakes_victim(trace, 3000)
            .after(2)
            .preempt(FAIR, VICTIM);
        check(trace, &expect, Grade::Complete);
    }
}

#[test]
fn a_late_timer_behind_others_is_charged_to_what_the_first_of_them_found() {
    let check_row = |stack: &[&'static str], came_on: u32, name: &str| {
        let trace = idle_machine().at(500).run(FAIR).at(3000);
        let trace = trace.late_timer_in_row(1000, FAIR, 0, 0, stack, came_on);
        let trace = timer_wakes_victim(trace, 3000)
            .after(2)
            .preempt(FAIR, VICTIM);
        let expect = [
            (name, 2_000_000),
            ("interrupt: local timer", 4_000),
            ("switch", 2_000),
            ("wake-up delivery", 1_000),
        ];
        check(trace, &expect, Grade::Complete);
    };
    let named = "interrupts off in drain_fifo by compile (tid 300, nice 0)";
    let nobody = "unexplained: a late timer behind another interrupt";
    let preempted = [
        "preempt_schedule_irq+0x2e",
        "asm_sysvec_reschedule_ipi+0x1a",
        "drain_fifo+0x5b",
        "device_write+0x44",
    ];
    check_row(&preempted, 0b101, named);
    // What the first of them found had interrupts on: the CPU stood still.
    check_row(&preempted, 0b001, nobody);
    let softirqs = [
        "handle_softirqs+0x6d",
        "__irq_exit_rcu+0xba",
        "sysvec_call_function_single+0x70",
        "asm_sysvec_call_function_single+0x1a",
        "_raw_spin_unlock_irqrestore+0x2b",
        "drain_fifo+0x5b",
    ];
    check_row(&softirqs, 0b01_0001, named);
    // Two of the row: what the outer one found counts.
    let two = [
        "preempt_schedule_irq+0x2e",
        "asm_sysvec_irq_work+0x1a",
        "irqentry_exit+0x3b",
        "asm_sysvec_reschedule_ipi+0x1a",
        "drain_fifo+0x5b",
    ];
    check_row(&two, 0b1_0000, named);
    check_row(&two, 0b0_0100, nobody);
    // A device's interrupt is in no row: the timer may have expired while it was served.
    let device = [
        "preempt_schedule_irq+0x2e",
        "asm_common_interrupt+0x1a",
        "drain_fifo+0x5b",
    ];
    check_row(&device, 0b101, nobody);
    // The stack ends before what was found.
    check_row(&preempted[..2], 0b101, nobody);
}

#[test]
fn a_late_timer_without_a_stack_accuses_nobody() {
    let unexplained = |trace: SyntheticTrace, name: &str| {
        let trace = timer_wakes_victim(trace, 3000)
            .after(2)
            .preempt(FAIR, VICTIM);
        let expect = [
            (name, 2_000_000),
            ("interrupt: local timer", 4_000),
            ("switch", 2_000),
            ("wake-up delivery", 1_000),
        ];
        check(trace, &expect, Grade::Complete);
    };
    let running = || idle_machine().at(500).run(FAIR).at(3000);
    unexplained(running(), "unexplained: a late timer without a stack");
    let user = running().late_timer(1000, FAIR, 1, 0, &[]);
    unexplained(user, "unexplained: a late timer while user code ran");
    let on = running().late_timer(1000, FAIR, 3, 0, &[]);
    unexplained(on, "unexplained: a late timer while interrupts were on");
    let way_out = [
        "preempt_schedule_irq+0x2e",
        "asm_sysvec_reschedule_ipi+0x1a",
        "clear_page_erms+0xb",
    ];
    let behind = running().late_timer(1000, FAIR, 0, 0, &way_out);
    unexplained(behind, "unexplained: a late timer behind another interrupt");
    let border = ["do_syscall_64+0x3c", "entry_SYSCALL_64_after_hwframe+0x76"];
    let entered = running().late_timer(1000, FAIR, 0, 0, &border);
    unexplained(entered, "unexplained: a late timer while user code ran");
    // Nothing says when within a long time the hypervisor took it.
    let stolen = |trace: SyntheticTrace| trace.late_timer(1000, FAIR, 0, 1_950, &["work+0x1"]);
    let perhaps = "unexplained: a late timer, perhaps the hypervisor's doing";
    unexplained(stolen(running()), perhaps);
    let record_before = |us: i64| {
        let trace = idle_machine().at(500).run(FAIR).at(us);
        trace.late_timer(us - 60, FAIR, 1, 0, &[]).at(3000)
    };
    unexplained(stolen(record_before(600)), perhaps);
    unexplained(stolen(record_before(990)), "stolen by the hypervisor");
}

#[test]
fn a_timer_late_by_less_than_the_watch_looks_at_stays_unexplained_and_says_so() {
    let trace = idle_machine().environment("rtscope_late_timer_floor_ns", "50000");
    let trace = timer_wakes_victim(trace.at(500).run(FAIR), 1011)
        .after(2)
        .preempt(FAIR, VICTIM);
    let expect = [
        (
            "unexplained: a timer late by less than the watch's floor of 50us",
            11_000,
        ),
        ("interrupt: local timer", 4_000),
        ("switch", 2_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace, &expect, Grade::Complete);
}

#[test]
fn leaving_idle_is_named_until_it_takes_longer_than_idle_states_need() {
    let late = |us: i64, name: &str| {
        let trace = timer_wakes_victim(idle_machine(), 1000 + us)
            .after(30)
            .run(VICTIM);
        let ledger = worst_ledger(trace);
        let found = ledger
            .terms
            .iter()
            .find(|term| term.kind.to_string() == name);
        assert!(
            found.is_some_and(|term| term.duration.as_ns() >= us * 1_000),
            "{ledger:?}"
        );
    };
    late(800, "idle exit");
    late(80_000, "unexplained: the CPU stayed idle");
}

#[test]
fn a_lower_rank_that_keeps_the_cpu_is_named_with_its_function_where_a_stack_says_so() {
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
    // Without a record of its own, the hit's stack says it: waking, and coming on the CPU.
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
fn a_task_of_lower_rank_that_was_picked_over_a_runnable_one_means_throttling() {
    let trace = timer_wakes_victim(idle_machine().at(500).run(HOG), 1000);
    // The hog used up its bandwidth: put aside while runnable, for a fair task and then idle.
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
    named(
        "__softirqentry_text_end+0x0",
        "preemption off or no preemption point in compile (tid 300, nice 0)",
    );
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
fn a_task_that_raised_its_own_rank_while_it_ran_is_judged_by_the_rank_it_left_with() {
    // It came on the CPU as a fair task of another name, and the trace says so only at its end.
    let before = Task::fair(HOG.tid, "launcher");
    let trace = timer_wakes_victim(idle_machine().at(500).run(before), 1000);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 7_995_000),
        ("interrupt: local timer", 4_000),
        ("wake-up delivery", 1_000),
    ];
    check(trace.at(9000).block(HOG, VICTIM), &expect, Grade::Complete);
    // Without its end, its rank is not known, and nobody is accused.
    let trace = timer_wakes_victim(idle_machine().at(500).run(before), 1000)
        .at(6005)
        .timer_irq();
    let expect = [
        (
            "unexplained: the rank of the task that ran was not seen",
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
    // It had come there with a rank that puts the fair task aside.
    let came = busy(running().at(900).cpu(1).waking(HOG, 0).cpu(0));
    assert_eq!(named(&came), ["burner"]);
    assert!(came.activations[0].ledger.is_good());
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
