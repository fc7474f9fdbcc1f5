//! A task of a lower priority that has the CPU while a real-time task waits: it is said to keep it
//! only where it was not in user code, and only with the priority that it had then.

mod ledger;

use diagnosis::{Diagnosis, Verdict};
use event::Value;
use ledger::{FAIR, HOG, VICTIM, ask, idle_machine};
use testkit::{SyntheticTrace, Task};

const USER: [&str; 2] = [
    "hrtimer_wakeup+0x1e",
    "asm_sysvec_apic_timer_interrupt+0x16",
];
const KERNEL: [&str; 4] = [
    "hrtimer_wakeup+0x1e",
    "asm_sysvec_apic_timer_interrupt+0x16",
    "walk_list+0x5",
    "do_syscall_64+0x71",
];
const STEPS: [(i64, u8, u32, i32); 3] = [
    (1_000_000, 3, 0, -1),
    (1_002_000, 7, 0, VICTIM.tid),
    (41_000_000, 8, 0, VICTIM.tid),
];
const KEPT: &str = "compile (tid 300, nice 0), of a lower priority, kept CPU 0";

/// A hog is preempted for a fair task: its share is used up.
fn limited(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.at(400).run(HOG).at(500).preempt(HOG, FAIR);
    trace
        .at(600)
        .preempt(FAIR, HOG)
        .at(700)
        .block(HOG, Task::IDLE)
}

/// An interrupt wakes the victim while `ran` has the CPU since 800 us.
fn woken(trace: SyntheticTrace, ran: Task) -> SyntheticTrace {
    let trace = trace.at(800).run(ran).at(1_000).timer_irq().after(2);
    trace.wake(VICTIM).after(2).timer_irq_end()
}

fn fault(trace: SyntheticTrace, us: i64) -> SyntheticTrace {
    let address = [("address", Value::Unsigned(4096))];
    trace.at(us).event("page_fault_user", &address)
}

fn leaves(trace: SyntheticTrace, left: Task) -> SyntheticTrace {
    trace.at(41_000).preempt(left, VICTIM)
}

fn verdict(trace: SyntheticTrace) -> Verdict {
    let diagnosis: Diagnosis = ask(trace);
    diagnosis.verdict().expect("the victim was late").clone()
}

fn check(trace: SyntheticTrace, conclusive: bool, says: &str) {
    let verdict = verdict(trace);
    let sentence = verdict.sentence;
    assert!(sentence.contains(says), "'{says}': {sentence}");
    assert_eq!(verdict.conclusive, conclusive, "{sentence}");
}

const LIMITED: &str = "the kernel ran compile (tid 300, nice 0) in its place (throttled";
const UNKNOWN: &str = "user code of a lower priority ran on, nothing says why";

#[test]
fn a_task_that_the_wake_up_found_in_user_code_was_left_the_cpu() {
    let trace = |begun: SyntheticTrace, stack: &[&'static str]| {
        let trace = leaves(woken(begun, FAIR), FAIR);
        trace.hit_woken_from(1, VICTIM, FAIR, &STEPS, stack)
    };
    check(trace(limited(idle_machine()), &USER), true, LIMITED);
    // Without a limit that was seen at work, it may have had a priority that no event shows.
    check(trace(idle_machine(), &USER), false, UNKNOWN);
    check(trace(limited(idle_machine()), &KERNEL), true, "kept CPU 0");
    check(trace(idle_machine(), &KERNEL), true, "seen in walk_list");
}

#[test]
fn a_task_of_which_nothing_shows_where_it_was_may_have_been_left_the_cpu_by_a_limit() {
    let trace = |begun| leaves(woken(begun, FAIR), FAIR);
    let perhaps = "perhaps a limit on real-time tasks was at work";
    check(trace(limited(idle_machine())), false, perhaps);
    check(trace(idle_machine()), true, KEPT);
}

#[test]
fn a_task_that_touched_its_pages_or_called_the_kernel_meanwhile_was_in_user_code() {
    let faults = |begun| leaves(fault(woken(begun, FAIR), 1_100), FAIR);
    check(faults(limited(idle_machine())), true, LIMITED);
    check(faults(idle_machine()), false, UNKNOWN);
    let calls = |begun| leaves(woken(begun, FAIR).at(1_100).call("read"), FAIR);
    check(calls(limited(idle_machine())), true, LIMITED);
    check(calls(idle_machine()), false, UNKNOWN);
    // What another task does says nothing.
    let other = woken(idle_machine(), FAIR)
        .cpu(1)
        .at(1_100)
        .run(Task::fair(400, "other"));
    check(leaves(fault(other, 1_200).cpu(0), FAIR), true, KEPT);
    // Before the wake-up it could be in user code.
    let before = fault(idle_machine().at(500).run(FAIR), 900)
        .at(1_000)
        .timer_irq();
    let before = before.after(2).wake(VICTIM).after(2).timer_irq_end();
    check(leaves(before, FAIR), true, KEPT);
}

#[test]
fn a_late_timer_that_found_user_code_shows_it_too() {
    let trace = |mode: i64| {
        let trace = woken(idle_machine(), FAIR).at(1_200).timer_irq();
        leaves(
            trace
                .late_timer(1_150, FAIR, mode, 0, &[])
                .after(2)
                .timer_irq_end(),
            FAIR,
        )
    };
    check(trace(1), false, UNKNOWN);
    check(trace(3), true, KEPT);
}

#[test]
fn a_task_that_left_where_an_interrupt_had_found_user_code_did_not_keep_the_cpu() {
    let record = |stack: &[&'static str]| {
        let trace = woken(idle_machine(), FAIR).at(41_000);
        trace
            .preempt(FAIR, VICTIM)
            .preemption_off(1_002, FAIR, 1, stack)
    };
    let user = [
        "__schedule+0x618",
        "schedule+0x23",
        "irqentry_exit_to_user_mode+0x110",
        "asm_sysvec_apic_timer_interrupt+0x16",
    ];
    check(record(&user), false, UNKNOWN);
    // The end of a system call, and of a page fault: the kernel's work before it took the time.
    let call = [
        "__schedule+0x618",
        "exit_to_user_mode_loop+0x51",
        "do_syscall_64+0x23b",
    ];
    check(record(&call), true, KEPT);
    let fault = [
        "schedule+0x23",
        "irqentry_exit_to_user_mode+0x110",
        "asm_exc_page_fault+0x22",
    ];
    check(record(&fault), true, KEPT);
}

#[test]
fn a_wake_up_from_elsewhere_may_go_unnoticed_until_the_first_interrupt() {
    let elsewhere = |begun: SyntheticTrace| {
        let trace = begun.at(800).run(FAIR).cpu(1).at(1_000).irq(9, "eth0");
        trace
            .after(2)
            .waking(VICTIM, 0)
            .after(1)
            .wakeup(VICTIM, 0)
            .irq_end(9)
            .cpu(0)
    };
    let once = leaves(fault(elsewhere(limited(idle_machine())), 2_000), FAIR);
    check(once, false, UNKNOWN);
    let twice = fault(fault(elsewhere(limited(idle_machine())), 2_000), 30_000);
    check(leaves(twice, FAIR), true, LIMITED);
}

/// The same, and the wake-up says with ftrace's flags, or with LTTng's context, whether the task on
/// the CPU was asked to leave it.
fn woken_asking(trace: SyntheticTrace, ran: Task, asks: (&str, u64)) -> SyntheticTrace {
    let fields = [
        ("comm", Value::Text(VICTIM.comm.into())),
        ("tid", Value::Signed(VICTIM.tid.into())),
        ("prio", Value::Signed(i64::from(VICTIM.prio) - 100)),
        ("target_cpu", Value::Signed(0)),
        (asks.0, Value::Unsigned(asks.1)),
    ];
    let trace = trace.at(800).run(ran).at(1_000).timer_irq().after(2);
    let trace = trace
        .waking(VICTIM, 0)
        .after(1)
        .event("sched_wakeup", &fields);
    trace.after(1).timer_irq_end()
}

#[test]
fn a_task_that_the_wake_up_did_not_ask_to_leave_went_first_then() {
    let (came, left) = (Task::rt(300, "sly", 60), Task::fair(300, "sly"));
    let trace = |came: Task, asks| leaves(woken_asking(idle_machine(), came, asks), left);
    let ahead = "sly (tid 300, rt 60) ran ahead of it";
    check(trace(came, ("need_reschedule", 0)), true, ahead);
    check(trace(came, ("common_flags", 0x09)), true, ahead);
    // It was to leave, and may have been low already.
    let unknown = "the priority of the task that ran was not seen";
    check(trace(came, ("need_reschedule", 1)), false, unknown);
    check(trace(came, ("common_flags", 0x0d)), false, unknown);
    // It raised itself before, and lowered itself as it ended.
    let raised = "sly (tid 300, nice 0) ran ahead of it";
    check(trace(left, ("need_reschedule", 0)), true, raised);
    check(trace(left, ("need_reschedule", 1)), true, "kept CPU 0");
}

#[test]
fn a_task_that_lowers_itself_as_it_ends_ran_ahead_with_the_priority_that_it_had() {
    let (came, left) = (Task::rt(300, "sly", 60), Task::fair(300, "sly"));
    let shown = leaves(fault(woken(idle_machine(), came), 1_100), left);
    check(shown, true, "sly (tid 300, rt 60) ran ahead of it");
    // It may have lowered itself before the wake-up, and kept the CPU in the kernel.
    let unknown = leaves(woken(idle_machine(), came), left);
    check(
        unknown,
        false,
        "the priority of the task that ran was not seen",
    );
    // A boost that ends is an event, and says when.
    let boosted = woken(idle_machine(), came).at(1_500).boost(came, left.prio);
    check(
        leaves(boosted, left),
        true,
        "sly (tid 300, nice 0), of a lower priority, kept CPU 0",
    );
    // Its own wake-up says so too.
    let woke_itself = woken(idle_machine(), came).at(1_500).waking(left, 0);
    check(leaves(woke_itself, left), true, "kept CPU 0");
    // One that raised itself did so before it kept the CPU from the victim.
    let raised = leaves(woken(idle_machine(), left), came);
    check(raised, true, "sly (tid 300, rt 60) ran ahead of it");
}

#[test]
fn who_leaves_the_cpu_in_the_call_that_lowers_it_ran_ahead_until_then() {
    const LOWERED: i64 = 3;
    let (came, left) = (Task::rt(300, "sly", 60), Task::fair(300, "sly"));
    let with = |came: Task, told: Task, at_us: i64| {
        let trace = match at_us {
            ..1_000 => woken(idle_machine().at(at_us).moment(told, LOWERED, 0), came),
            _ => woken(idle_machine(), came)
                .at(at_us)
                .moment(told, LOWERED, 0),
        };
        leaves(trace, left)
    };
    let ahead = "sly (tid 300, rt 60) ran ahead of it";
    let unknown = "the priority of the task that ran was not seen";
    check(with(came, left, 40_999), true, ahead);
    // Another task's, of another time, of another change of its.
    check(with(came, Task::fair(301, "other"), 40_999), false, unknown);
    check(with(came, left, 700), false, unknown);
    check(
        with(came, Task::nice(300, "sly", 19), 40_999),
        false,
        unknown,
    );
    // It had raised itself since it came: a mutex with a ceiling does so.
    let below = Task::rt(300, "sly", 40);
    check(
        with(below, left, 40_999),
        true,
        "sly (tid 300, nice 0) ran ahead of it",
    );
    check(
        with(left, left, 40_999),
        true,
        "sly (tid 300, nice 0) ran ahead of it",
    );
    // What it had meanwhile is said with that, where an interrupt saw it.
    let higher = "sly had a higher priority meanwhile, and lowered itself to nice 0 as it left";
    check(with(left, left, 40_999), true, higher);
    let seen = woken(idle_machine(), left).at(40_999);
    let seen = seen.moment_since((came, left), LOWERED, 0, 0);
    let had = "sly had rt 60 meanwhile, and lowered itself to nice 0 as it left";
    check(leaves(seen, left), true, had);
    let other = Task::fair(301, "other");
    check(
        with(left, other, 40_999),
        true,
        "of a lower priority, kept CPU 0",
    );
    // A deadline server ran it after that.
    let served = woken(idle_machine(), came)
        .at(41_000)
        .moment(left, LOWERED, 0);
    let served = served.moment(left, 1, 2);
    check(
        leaves(served, left),
        true,
        "the deadline server of fair tasks ran sly",
    );
}

#[test]
fn a_task_that_comes_with_a_priority_that_goes_first_is_not_let_in_by_a_limit() {
    let (came, left) = (Task::rt(300, "sly", 60), Task::fair(300, "sly"));
    let unknown = "the priority of the task that ran was not seen";
    let ahead = "sly (tid 300, rt 60) ran ahead of it";
    // It comes behind another one that goes first.
    let behind = || woken(idle_machine(), HOG).at(3_000).block(HOG, came);
    check(leaves(behind(), left), false, unknown);
    check(leaves(fault(behind(), 20_000), left), true, ahead);
    // One that came with a lower priority is let in by a limit.
    let limit = woken(idle_machine(), HOG).at(3_000).block(HOG, left);
    check(leaves(limit, left), true, "(throttled");
}

#[test]
fn a_victim_that_was_lowered_while_it_waited_is_not_called_throttled() {
    let demoted = Task::fair(VICTIM.tid, VICTIM.comm);
    let hog_then_fair = |left: Task| {
        let trace = woken(idle_machine(), HOG).at(16_000).block(HOG, FAIR);
        trace.at(41_000).preempt(FAIR, left)
    };
    let changed = "the priority of the task that waited changed meanwhile";
    check(hog_then_fair(demoted), false, changed);
    check(hog_then_fair(VICTIM), true, "(throttled");
    // Behind the hog it waits with either priority.
    let trace = woken(idle_machine(), HOG).at(41_000).block(HOG, demoted);
    check(trace, true, "burner (tid 200, rt 60) ran ahead of it");
}

#[test]
fn no_name_is_believed_for_a_bpf_program() {
    let seen = |place: &'static str, caller: &'static str| {
        let stack = [
            "asm_sysvec_apic_timer_interrupt+0x16",
            "read_tsc+0x3",
            place,
            caller,
        ];
        let trace = leaves(woken(idle_machine(), FAIR), FAIR);
        trace.hit_woken_from(1, VICTIM, FAIR, &STEPS, &stack)
    };
    let ours = "bpf_prog_476dae1de169ec34_filter_name+0x6d25";
    check(
        seen(ours, "bpf_prog_test_run_syscall+0x235"),
        true,
        "seen in a BPF program)",
    );
    check(
        seen("bpf_prog_test_run_syscall+0x235", "x"),
        true,
        "seen in bpf_prog_test_run_syscall)",
    );
    // So far behind a symbol nothing belongs to it.
    let trace = seen("last_known+0x1d2000", "do_work+0x1");
    let sentence = verdict(trace).sentence;
    assert!(!sentence.contains("last_known"), "{sentence}");
}

#[test]
fn a_deadline_task_out_of_its_budget_throttles_nobody_else() {
    let deadline = Task {
        tid: 500,
        comm: "sampler",
        prio: -1,
    };
    let trace = idle_machine()
        .at(500)
        .run(deadline)
        .at(600)
        .preempt(deadline, FAIR);
    let trace = trace
        .at(1_000)
        .timer_irq()
        .after(2)
        .wake(VICTIM)
        .after(2)
        .timer_irq_end();
    check(leaves(trace, FAIR), true, KEPT);
}

#[test]
fn a_limit_that_was_seen_long_ago_explains_nothing() {
    let long_ago = limited(idle_machine())
        .at(200_000)
        .run(FAIR)
        .at(201_000)
        .timer_irq();
    let woken = long_ago.after(2).wake(VICTIM).after(2).timer_irq_end();
    let trace = fault(woken, 202_000).at(241_000).preempt(FAIR, VICTIM);
    check(trace, false, UNKNOWN);
}

#[test]
fn a_task_that_runs_another_program_after_it_raised_itself_had_that_priority_before_too() {
    let (chrt, hog) = (Task::fair(300, "chrt"), Task::rt(300, "hog", 60));
    let trace = woken(idle_machine(), chrt).at(30_000);
    let exec = [
        ("filename", Value::Text("/bin/hog".into())),
        ("tid", Value::Signed(300)),
        ("old_tid", Value::Signed(300)),
    ];
    let trace = trace.event("sched_process_exec", &exec).rename(chrt, "hog");
    let ledger = ledger::worst_ledger(leaves(trace, hog));
    let names: Vec<_> = ledger.terms.iter().map(|t| t.kind.to_string()).collect();
    // One thread has one name: that which it had for longest.
    let named = names.iter().filter(|name| name.contains("tid 300"));
    let named: Vec<_> = named.collect();
    assert_eq!(named, ["run-queue wait behind chrt (tid 300, rt 60)"]);
}

#[test]
fn a_program_that_went_on_behind_an_interrupt_may_have_had_a_higher_priority_for_a_while() {
    let ticks = |ran: Task, end_us: i64| {
        let trace = woken(idle_machine(), ran).at(2_000).timer_irq();
        let trace = trace.after(4).timer_irq_end();
        trace.at(end_us).preempt(ran, VICTIM)
    };
    let unknown = "the priority of the task that ran was not seen";
    check(ticks(FAIR, 12_000), false, unknown);
    // A section of the kernel is as long as that.
    check(ticks(FAIR, 3_500), true, KEPT);
    // Nobody raises a thread of the kernel's.
    let kworker = Task::fair(300, "kworker/0:1");
    check(
        ticks(kworker, 12_000),
        true,
        "kworker/0:1 (tid 300, nice 0), of a lower priority",
    );
}

#[test]
fn a_priority_that_was_lent_is_not_the_tasks_to_change() {
    let (low, high) = (Task::fair(300, "low"), Task::rt(400, "high", 70));
    let lent = Task::rt(300, "low", 70);
    let trace = idle_machine()
        .cpu(1)
        .at(700)
        .run(high)
        .cpu(0)
        .at(800)
        .run(low);
    let trace = trace.cpu(1).at(900).boost(low, lent.prio).cpu(0);
    let trace = trace.at(1_000).timer_irq().after(2).wake(VICTIM).after(2);
    let trace = trace.timer_irq_end().at(40_999).boost(lent, low.prio);
    let verdict = verdict(leaves(trace, low));
    let sentence = &verdict.sentence;
    assert!(
        sentence.contains("low (tid 300, rt 70) ran ahead of it"),
        "{sentence}"
    );
    let says =
        "low had that priority lent, as high (tid 400, rt 70) waited for a lock that it held";
    assert!(sentence.contains(says), "{sentence}");
    let changes: Vec<_> = verdict
        .advice
        .iter()
        .map(|advice| &advice.command)
        .collect();
    assert!(
        changes.iter().all(|change| !change.contains("chrt")),
        "{changes:?}"
    );
}
