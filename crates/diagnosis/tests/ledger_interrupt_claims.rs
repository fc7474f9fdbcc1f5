//! What the ledger claims of interrupts, softirqs, late timers and idle states.

mod ledger;

use diagnosis::{Grade, StepKind, TermKind};
use ledger::{
    FAIR, HOG, IRQ_THREAD, VICTIM, ask, check, idle_machine, timer_wakes_victim, worst_ledger,
};
use testkit::{SyntheticTrace, Task};

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
fn a_softirq_whose_end_is_not_recorded_is_no_culprit() {
    let trace = idle_machine().at(500).run(HOG);
    let trace = timer_wakes_victim(trace, 1000);
    // It takes some microseconds; its exit is an event that the recording does not have.
    let trace = trace.after(3).softirq(9).at(60_000).block(HOG, VICTIM);
    let ledger = worst_ledger(trace);
    let mut kinds = ledger.terms.iter().map(|term| term.kind.to_string());
    assert!(kinds.all(|kind| !kind.starts_with("softirq")), "{ledger:?}");
    let first = &ledger.terms[0].kind;
    assert!(matches!(first, TermKind::Unexplained(_)), "{ledger:?}");
}

#[test]
fn a_chain_through_an_interrupt_thread_names_its_waits_and_its_work() {
    // PREEMPT_RT: the hog starves the thread; more interrupts come while it is runnable, and wake
    // nobody.
    let trace = idle_machine().shows_timers().at(500).run(HOG);
    let trace = trace
        .at(1000)
        .irq(24, "snd")
        .after(2)
        .wake(IRQ_THREAD)
        .after(1)
        .irq_end(24);
    let trace = trace.at(2000).irq(24, "snd").after(3).irq_end(24);
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
        let trace = idle_machine()
            .shows_timers()
            .at(500)
            .run(HOG)
            .at(1000)
            .irq(24, "snd");
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
fn a_softirq_waits_for_its_thread_also_where_that_waits_already() {
    let timers = Task::rt(16, "ktimers/0", 1);
    // Another timer's softirq, before ours is raised or our timer expires.
    let pending = || {
        let trace = idle_machine().at(500).run(HOG).at(900).timer_irq();
        let trace = trace.softirq_raise(8).wake(timers);
        trace.after(2).timer_irq_end()
    };
    let served = |trace: SyntheticTrace| {
        let trace = trace.at(9_000).block(HOG, timers).after(4).softirq(8);
        let trace = trace.hrtimer_expire(0x1000).after(3).wake(VICTIM);
        let trace = trace.hrtimer_done(0x1000).softirq_end(8).after(5);
        trace.block(timers, VICTIM)
    };
    // No interrupt raises it for this timer.
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 8_000_000),
        ("switch", 5_000),
        ("upstream work of ktimers/0 (tid 16, rt 1)", 4_000),
        ("softirq HRTIMER", 3_000),
        ("wake-up delivery", 1_000),
    ];
    let trace = served(pending());
    let verdict = ask(trace).verdict().expect("it was late").clone();
    let told = "burner (tid 200, rt 60) ran ahead of ktimers/0 (tid 16, rt 1), which it waits for,";
    assert!(verdict.sentence.contains(told), "{}", verdict.sentence);
    let raise = verdict.advice.iter().find(|one| one.rule == "raise-victim");
    let raise = raise.expect("ktimers/0 has the lowest priority");
    assert_eq!(raise.command, "chrt -f -p 61 100 && chrt -f -p 61 16");
    assert!(raise.because.starts_with("ktimers/0 has rt 1"), "{raise:?}");
    check(served(pending()), &expect, Grade::Complete);
    // An interrupt raises another vector for it, and the thread is runnable.
    let trace = pending().at(1000).irq(9, "eth0").softirq_raise(3).after(1);
    let trace = trace.irq_end(9).at(9_000).block(HOG, timers).after(4);
    let trace = trace.softirq(3).after(3).wake(VICTIM).softirq_end(3);
    let expect = [
        ("run-queue wait behind burner (tid 200, rt 60)", 7_999_000),
        ("switch", 5_000),
        ("upstream work of ktimers/0 (tid 16, rt 1)", 4_000),
        ("softirq NET_RX", 3_000),
        ("interrupt 9 eth0", 1_000),
        ("wake-up delivery", 1_000),
    ];
    check(
        trace.after(5).block(timers, VICTIM),
        &expect,
        Grade::Complete,
    );
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
