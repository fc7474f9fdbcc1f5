//! What only a watch sees names the cause: stops, releases, deadline servers, priorities of tasks
//! that still run, what is a thread of the kernel's, steal, its own cost.

mod ledger;

use diagnosis::{Grade, Verdict};
use ledger::{FAIR, HOG, STOPPER, VICTIM, ask, check as ledger, idle_machine};
use testkit::{SyntheticTrace, Task, moment};

const SHELL: Task = Task::fair(900, "sh");
const RUNNING: i64 = 1;
const WOKEN: [(i64, u8, u32, i32); 3] = [
    (1_000_000, 3, 0, -1),
    (1_002_000, 7, 0, VICTIM.tid),
    (41_000_000, 8, 0, VICTIM.tid),
];

fn verdict(trace: SyntheticTrace) -> Verdict {
    let diagnosis = ask(trace);
    diagnosis.verdict().expect("the victim was late").clone()
}

fn check(trace: SyntheticTrace, conclusive: bool, says: &str) {
    let Verdict {
        sentence,
        conclusive: found,
        ..
    } = verdict(trace);
    assert!(sentence.contains(says), "'{says}': {sentence}");
    assert_eq!(found, conclusive, "{sentence}");
}

/// An interrupt wakes the victim while `ran` has the CPU since 800 us.
fn woken(trace: SyntheticTrace, ran: Task) -> SyntheticTrace {
    let trace = trace.at(800).run(ran).at(1_000).timer_irq().after(2);
    trace.wake(VICTIM).after(2).timer_irq_end()
}

/// The victim runs, is stopped at 1 ms as the watch saw it in `how`, and goes on 40 ms later.
fn stopped(how: i64, by: Option<Task>) -> SyntheticTrace {
    stopped_from(1_000, |trace| trace.stopped(VICTIM, how, by))
}

/// The same, late since `since_us`.
fn stopped_from(since_us: i64, stop: impl Fn(SyntheticTrace) -> SyntheticTrace) -> SyntheticTrace {
    let trace = stop(idle_machine().at(900).run(VICTIM).at(1_000));
    let trace = trace.block(VICTIM, Task::IDLE).cpu(1).at(2_000).run(SHELL);
    let trace = trace.at(41_000).waking(VICTIM, 0).after(1);
    let trace = trace.wakeup(VICTIM, 0).cpu(0).at(41_005).run(VICTIM);
    let steps = [
        (since_us * 1_000, 10, 0, VICTIM.tid),
        (41_000_000, 7, 1, VICTIM.tid),
        (41_005_000, 8, 0, VICTIM.tid),
    ];
    trace.hit(1, VICTIM, Task::IDLE, &steps)
}

#[test]
fn who_stopped_the_task_is_named_with_what_stopped_it() {
    let shell = "by sh (tid 900, nice 0) for 40.000 ms";
    check(
        stopped(0, Some(SHELL)),
        true,
        &format!("stopped (SIGSTOP) {shell}"),
    );
    check(
        stopped(1, Some(SHELL)),
        true,
        &format!("stopped for its tracer {shell}"),
    );
    let frozen = format!("frozen with its control group {shell}");
    check(stopped(2, Some(SHELL)), true, &frozen);
    check(stopped(0, None), true, "it was stopped (SIGSTOP) for 40");
    // Whatever the host took from its CPU meanwhile.
    let stolen = stopped(0, Some(SHELL)).cpu(0).at(41_010).steal(500, 38_000);
    check(stolen, true, &format!("stopped (SIGSTOP) {shell}"));
    ledger(
        stopped(0, Some(SHELL)),
        &[
            ("stopped (SIGSTOP) by sh (tid 900, nice 0)", 40_000_000),
            ("idle exit", 5_000),
        ],
        Grade::Complete,
    );
}

#[test]
fn who_stops_a_task_that_slept_for_an_event_is_not_accused_of_all_of_the_stop() {
    let unknown = "it was stopped as it slept, nothing says when it was to wake";
    let asleep = |how| {
        stopped_from(1_000, |trace| {
            trace.stopped_asleep(VICTIM, how, Some(SHELL), 2)
        })
    };
    check(asleep(0), false, unknown);
    check(asleep(2), false, unknown);
    // It slept until 21 ms at most: late since then.
    let until = |kind| {
        stopped_from(21_000, |trace| {
            trace.stopped_asleep(VICTIM, 0, Some(SHELL), kind)
        })
    };
    let since = "stopped (SIGSTOP) by sh (tid 900, nice 0) for 20.000 ms";
    check(until(1), true, since);
    check(until(2), true, since);
}

#[test]
fn a_task_whose_group_had_no_quota_left_in_the_end_does_not_blame_who_ran_meanwhile() {
    let victim = Task::fair(100, "victim");
    let steps = [(1_002_000, 7, 0, victim.tid)];
    let waits = |flags| {
        let trace = idle_machine().at(800).run(FAIR).at(1_000).timer_irq();
        let trace = trace.after(2).wake(victim).after(2).timer_irq_end();
        let trace = trace.at(41_000).moment(victim, 0, flags);
        let none = ("", 0, 0);
        let trace = trace.group_limits(victim, (0, "/cg"), none, (false, 0), none);
        trace.hit_waiting(1, victim, FAIR, &steps)
    };
    let ran = "compile (tid 300, nice 0) ran ahead of it";
    check(waits(0), true, ran);
    let why = "nobody can be named: the window does not hold it whole; 39.995 ms have no proven \
               cause (nothing says since when its group had no quota left)";
    check(waits(moment::QUOTA), false, why);
    let terms = &ask(waits(moment::QUOTA)).activations[0].ledger.terms;
    let unknown = "unexplained: nothing says since when its group had no quota left";
    assert_eq!(terms[0].kind.to_string(), unknown);
}

#[test]
fn a_task_is_told_with_the_priority_with_which_it_waited() {
    let lowered = Task::fair(VICTIM.tid, VICTIM.comm);
    let trace = woken(idle_machine(), HOG).at(41_000).block(HOG, VICTIM);
    let trace = trace.at(41_100).block(lowered, Task::IDLE);
    check(trace, true, "victim (tid 100, rt 50) ");
}

#[test]
fn a_stop_in_the_middle_of_the_work_does_not_end_it() {
    let trace = idle_machine().at(1_000).timer_irq().after(2).wake(VICTIM);
    let trace = trace.after(2).timer_irq_end().after(2).run(VICTIM);
    let trace = trace.at(2_000).stopped(VICTIM, 0, Some(SHELL));
    let trace = trace.block(VICTIM, Task::IDLE).at(42_000);
    let trace = trace.run(SHELL).after(1).wake(VICTIM);
    let trace = trace.preempt(SHELL, VICTIM).at(43_000);
    let steps = [
        (1_000_000, 3, 0, -1),
        (1_002_000, 7, 0, VICTIM.tid),
        (1_007_000, 8, 0, VICTIM.tid),
        (43_000_000, 10, 0, VICTIM.tid),
    ];
    let trace = trace
        .block(VICTIM, Task::IDLE)
        .hit(1, VICTIM, Task::IDLE, &steps);
    check(trace, true, "it was stopped (SIGSTOP) by sh");
}

/// The steps of [`due_while_busy`].
const DUE_STEPS: [(i64, u8, u32, i32); 5] = [
    (1_000_000, 1, 0, 7),
    (41_000_000, 3, 0, -1),
    (41_001_000, 4, 0, 7),
    (41_002_000, 7, 0, VICTIM.tid),
    (41_004_000, 8, 0, VICTIM.tid),
];

/// A victim that is busy from 500 us, is due at 1 ms, and arms its timer at 41 ms.
fn due_while_busy(busy: impl Fn(SyntheticTrace) -> SyntheticTrace) -> SyntheticTrace {
    let trace = busy(idle_machine().at(500).run(VICTIM)).at(41_000);
    let trace = trace.timer_irq().after(2).released(1_000, VICTIM, 0, 0);
    trace.waking(VICTIM, 0).after(2).timer_irq_end()
}

/// The same, told as it comes on its CPU again.
fn overrun(busy: impl Fn(SyntheticTrace) -> SyntheticTrace) -> SyntheticTrace {
    due_while_busy(busy).hit(1, VICTIM, Task::IDLE, &DUE_STEPS)
}

#[test]
fn a_task_that_was_due_while_it_was_busy_is_late_by_what_kept_it_busy() {
    check(
        overrun(|trace| trace),
        true,
        "it ran itself for 40.000 ms (100.0 %)",
    );
    let behind = |trace: SyntheticTrace| {
        let trace = trace.at(2_000).preempt(VICTIM, HOG);
        trace.at(40_000).block(HOG, VICTIM)
    };
    check(
        overrun(behind),
        true,
        "burner (tid 200, rt 60) ran ahead of it for 38.000 ms",
    );
    let slept = |trace: SyntheticTrace| trace.at(40_990).block(VICTIM, Task::IDLE);
    check(overrun(slept), true, "it ran itself for 39.990 ms");
}

#[test]
fn what_a_task_was_at_when_it_was_due_is_told_apart_from_what_it_waited_for() {
    let check = |busy: fn(SyntheticTrace) -> SyntheticTrace, expect: [i64; 3]| {
        let mut steps = DUE_STEPS.to_vec();
        steps.push((43_004_000, 10, 0, VICTIM.tid));
        let trace = due_while_busy(busy);
        let trace = trace.at(43_004).hit_blocked(1, VICTIM, Task::IDLE, &steps);
        let diagnosis = ask(trace.block(VICTIM, Task::IDLE));
        let parts = diagnosis.activations[0].parts().expect("a response");
        let told = [parts.before, parts.own_before, parts.own_work];
        assert_eq!(
            told.map(|part| part.as_ns() / 1_000),
            expect,
            "{diagnosis:#?}"
        );
    };
    check(|trace| trace, [40_004, 40_000, 2_000]);
    let behind = |trace: SyntheticTrace| {
        let trace = trace.at(2_000).preempt(VICTIM, HOG);
        trace.at(40_000).block(HOG, VICTIM)
    };
    check(behind, [40_004, 2_000, 2_000]);
}

#[test]
fn a_task_that_was_due_while_it_spun_for_a_lock_is_late_by_its_owner() {
    let owner = Task::rt(300, "owner", 20);
    let boosted = Task {
        prio: VICTIM.prio,
        ..owner
    };
    let spins = |trace: SyntheticTrace| {
        let trace = trace.cpu(1).at(600).run(owner).cpu(0).at(700);
        let trace = trace.boost(owner, VICTIM.prio).cpu(1).at(40_500);
        trace.boost(boosted, owner.prio).cpu(0)
    };
    check(
        overrun(spins),
        true,
        "owner (tid 300, rt 50) held a lock that it waited for, for 39.500 ms",
    );
}

#[test]
fn the_slack_of_a_timer_is_its_owners_doing() {
    let trace = idle_machine().at(41_000).timer_irq().after(2);
    let trace = trace.released(1_000, VICTIM, 1, 38_000).wake(VICTIM);
    let trace = trace.after(2).timer_irq_end().after(2).run(VICTIM);
    let steps = [
        (1_000_000, 1, 0, 7),
        (41_000_000, 3, 0, -1),
        (41_001_000, 4, 0, 7),
        (41_002_000, 7, 0, VICTIM.tid),
        (41_007_000, 8, 0, VICTIM.tid),
    ];
    let trace = trace.hit(1, VICTIM, Task::IDLE, &steps);
    check(
        trace,
        true,
        "the slack that it allows its timer took 38.000 ms",
    );
}

#[test]
fn a_task_that_a_deadline_server_ran_did_not_keep_the_cpu() {
    let served = "the deadline server of fair tasks ran compile (tid 300, nice 0) in its place";
    let trace = || woken(idle_machine(), FAIR).at(41_000);
    let left = |trace: SyntheticTrace| trace.preempt(FAIR, VICTIM);
    let hit = |trace: SyntheticTrace| trace.hit(1, VICTIM, FAIR, &WOKEN);
    let by_moment = left(trace().moment(FAIR, RUNNING, moment::SERVED));
    check(hit(by_moment), true, served);
    let by_record = left(trace()).kept_with(1_002, FAIR, 1);
    check(hit(by_record), true, served);
    // Another task's moment says nothing of it.
    let other = Task::fair(301, "link");
    let of_other = || left(trace()).moment(other, RUNNING, moment::SERVED);
    // Its stack at the hit shows that it was in the kernel.
    check(hit(of_other()), true, "kept CPU 0");
    check(of_other(), false, "perhaps a limit on real-time tasks");
    let not_served = left(trace().moment(FAIR, RUNNING, 0));
    check(not_served, true, "of a lower priority, kept CPU 0");
}

#[test]
fn a_task_that_a_timer_found_in_user_code_while_it_stayed_did_not_keep_the_cpu() {
    let trace = woken(idle_machine(), FAIR).at(41_000).preempt(FAIR, VICTIM);
    check(
        trace.kept_with(1_002, FAIR, 2),
        false,
        "user code of a lower priority ran on, nothing says why",
    );
}

#[test]
fn the_priority_of_a_task_that_still_runs_is_that_of_the_report() {
    let sly = Task::fair(200, "sly");
    let raised = Task::rt(200, "sly", 60);
    let waits = |running: Task, told: bool| {
        let trace = woken(idle_machine(), sly).at(41_000);
        let trace = match told {
            true => trace.moment(running, RUNNING, 0),
            false => trace,
        };
        trace.hit_waiting(1, VICTIM, running, &WOKEN[..2])
    };
    check(waits(raised, true), true, "sly (tid 200, rt 60) ran ahead");
    check(waits(sly, true), true, "sly (tid 200, nice 0) kept CPU 0");
    let open = "the window does not hold it whole";
    check(waits(raised, false), false, open);
}

#[test]
fn a_program_that_is_called_as_a_thread_of_the_kernels_is_none() {
    let trace = |flags| {
        let trace = woken(idle_machine(), STOPPER).at(41_000);
        let trace = trace.moment(STOPPER, RUNNING, flags).block(STOPPER, VICTIM);
        trace.hit(1, VICTIM, STOPPER, &WOKEN)
    };
    let migration = "migration/0 (tid 20, rt 99)";
    check(trace(0), true, &format!("{migration} ran ahead of it"));
    let stop = format!("the stop-class thread {migration} held CPU 0");
    check(trace(moment::KERNEL_THREAD), true, &stop);
}

#[test]
fn steal_that_was_read_at_the_hit_bounds_what_the_hypervisor_took() {
    let stack = ["do_work+0x10", "worker+0x20"];
    let trace = |steal_us: i64| {
        let trace = idle_machine().environment("rtscope_virtualised", "1");
        let trace = trace.at(500).run(FAIR).at(41_000).timer_irq();
        let trace = trace.late_timer(1_000, FAIR, 0, 39_000, &stack);
        let trace = trace.after(1).hrtimer_expire(0x1000).after(1).wake(VICTIM);
        let trace = trace.after(1).hrtimer_done(0x1000).timer_irq_end();
        let trace = trace.after(5).preempt(FAIR, VICTIM);
        trace.steal(900, steal_us)
    };
    // The late timer's own count began long before.
    check(trace(0), false, "for 40.000 ms of it no CPU shows");
    check(trace(40_000), true, "the hypervisor took CPU 0 away for 40");
}

#[test]
fn what_a_hit_took_of_its_cpu_is_the_watchs_own_cost() {
    let trace = idle_machine().at(1_000).timer_irq().after(2).wake(VICTIM);
    let trace = trace.after(2).timer_irq_end().after(2).run(VICTIM);
    let steps = [
        (1_000_000, 3, 0, -1),
        (1_002_000, 7, 0, VICTIM.tid),
        (1_007_000, 8, 0, VICTIM.tid),
    ];
    let trace = trace.hit_at_cost(1, VICTIM, Task::IDLE, &steps, 15);
    let trace = trace.at(3_000).block(VICTIM, Task::IDLE);
    let (late, cost) = (&steps[..], "rtscope's own work at a hit");
    let end = [late, &[(3_000_000, 10, 0, VICTIM.tid)]].concat();
    let diagnosis = ask(trace.hit(2, VICTIM, Task::IDLE, &end));
    let terms = &diagnosis.activations[0].ledger.terms;
    let own = terms.iter().find(|term| term.kind.to_string() == cost);
    assert_eq!(
        own.map(|term| term.duration.as_ns()),
        Some(15_000),
        "{terms:#?}"
    );
}

#[test]
fn a_report_of_one_that_still_waited_needs_no_threshold_to_be_late() {
    let trace = woken(idle_machine(), HOG).at(41_000);
    let trace = trace.hit_without_threshold(1, VICTIM, HOG, &WOKEN[..2]);
    check(trace, true, "burner (tid 200, rt 60) ran ahead of it for");
}
