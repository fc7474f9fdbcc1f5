//! Claims about the kernel's limits on real-time tasks: the runtime of a task's own deadline, and
//! the share that real-time tasks leave to fair ones.

mod ledger;

use diagnosis::{Diagnosis, Query, TaskFilter, TermKind, Until, diagnose};
use event::Tid;
use ledger::{FAIR, FAIR_TOO, HOG, VICTIM};
use testkit::{SyntheticTrace, Task};

const OWNER: Task = Task {
    tid: 100,
    comm: "control",
    prio: -1,
};

fn asked(trace: SyntheticTrace, tid: i32) -> Diagnosis {
    let query = Query {
        tasks: TaskFilter::from(Tid(tid)),
        until: Until::Block,
        ..Query::default()
    };
    diagnose(&trace.build(), &query).expect("the trace can be diagnosed")
}

/// The task with a deadline works since 1010 µs.
fn works() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10).block(OWNER, Task::IDLE);
    let trace = trace.at(1_000).timer_irq().wake(OWNER);
    trace.after(1).timer_irq_end().at(1_010).run(OWNER)
}

/// It works for `first_us`, is put off by a tick until 11 ms while `instead` has the CPU, and works
/// on.
fn overruns(first_us: i64, instead: &[Task], second_us: i64) -> SyntheticTrace {
    let trace = works().after(first_us).timer_irq().after(2);
    put_off(trace.timer_irq_end().after(1), instead, second_us)
}

/// The same from now on.
fn put_off(trace: SyntheticTrace, instead: &[Task], second_us: i64) -> SyntheticTrace {
    let mut trace = trace.preempt(OWNER, instead[0]);
    for pair in instead.windows(2) {
        trace = trace.after(1_000).block(pair[0], pair[1]);
    }
    let last = instead[instead.len() - 1];
    let trace = trace.at(11_010).preempt(last, OWNER);
    trace.after(second_us).block(OWNER, Task::IDLE)
}

/// One cause, conclusive, with advice on its runtime.
#[track_caller]
fn check(trace: SyntheticTrace, runtime_ns: i64) {
    let found = asked(trace, OWNER.tid);
    let verdict = found.verdict().expect("a verdict");
    let sentence = &verdict.sentence;
    assert!(verdict.conclusive, "{sentence}");
    assert!(
        sentence.contains("had used up the runtime of its own"),
        "{sentence}"
    );
    assert!(!sentence.contains("compile"), "{sentence}");
    assert_eq!(found.groups[0].signature, "runtime_used_up:control");
    let advice = &verdict.advice[0];
    assert_eq!(advice.rule, "raise-runtime");
    // With less than the work needs, and with a runtime that earlier work used up.
    check_runtime(&advice.command, 1_000_000, runtime_ns);
    check_runtime(&advice.command, 50_000_000, 50_000_000 + runtime_ns);
}

/// What the command gives a task that has this runtime: a shell runs it, and `chrt` is ours.
#[track_caller]
fn check_runtime(command: &str, present_ns: i64, expect_ns: i64) {
    let chrt = format!(
        "chrt() {{ [ \"$1\" = -p ] && echo \"pid 100's current runtime/deadline/period parameters: \
         {present_ns}/100000000/200000000\" || echo \"$@\"; }}\n{command}"
    );
    let shell = std::process::Command::new("sh")
        .args(["-c", &chrt])
        .output();
    let said = shell.expect("a shell").stdout;
    let expect = format!("-d -T {expect_ns} -D 100000000 -P 200000000 -p 0 100\n");
    assert_eq!(String::from_utf8_lossy(&said), expect, "{command}");
}

#[test]
fn a_task_that_overruns_its_own_runtime_accuses_nobody_who_ran_meanwhile() {
    check(overruns(4_000, &[FAIR, FAIR_TOO], 2_000), 7_200_000);
    // A real-time task goes ahead of it then, too.
    check(overruns(4_000, &[HOG, FAIR], 2_000), 7_200_000);
    check(overruns(4_000, &[Task::IDLE], 2_000), 7_200_000);
    // Its own work is most of it.
    check(overruns(7_000, &[FAIR], 2_000), 10_800_000);
}

#[test]
fn a_task_that_used_up_its_runtime_before_it_slept_accuses_nobody_it_was_woken_beside() {
    for other in [FAIR, HOG] {
        let trace = works().after(3_100).block(OWNER, other);
        let trace = trace.at(5_000).timer_irq().wake(OWNER).after(1);
        let trace = trace.timer_irq_end().at(11_000).preempt(other, OWNER);
        let found = asked(trace.after(100).block(OWNER, Task::IDLE), OWNER.tid);
        let verdict = found.verdict().expect("a verdict");
        assert!(!verdict.conclusive, "{}", verdict.sentence);
        let why = "perhaps it had used up the runtime of its own SCHED_DEADLINE";
        assert!(verdict.sentence.contains(why), "{}", verdict.sentence);
    }
}

#[test]
fn another_task_with_a_deadline_may_run_ahead_of_one() {
    let other = Task {
        tid: 101,
        comm: "earlier",
        prio: -1,
    };
    let trace = works().after(1_000).preempt(OWNER, other).after(8_000);
    let trace = trace
        .block(other, OWNER)
        .after(500)
        .block(OWNER, Task::IDLE);
    let found = asked(trace, OWNER.tid);
    let sentence = &found.verdict().expect("a verdict").sentence;
    assert!(sentence.contains("ran ahead of it"), "{sentence}");
}

/// The hog has the CPU since 100 ms and is put off at 1060 ms for a fair task, for 40 ms; the
/// victim is woken 10 ms before.
fn limited(hog: Task) -> SyntheticTrace {
    let trace = SyntheticTrace::new().environment("rtscope_debugfs", "refused");
    let trace = trace.at(10).block(VICTIM, Task::IDLE);
    let trace = trace.at(100_000).run(hog).at(1_050_000).timer_irq();
    let trace = trace.wake(VICTIM).after(1).timer_irq_end();
    let trace = match hog.prio < VICTIM.prio {
        true => trace.at(1_060_000).preempt(hog, FAIR),
        false => trace
            .after(5)
            .preempt(hog, VICTIM)
            .at(1_060_000)
            .preempt(VICTIM, FAIR),
    };
    let trace = trace.at(1_100_000).preempt(FAIR, VICTIM);
    trace.after(100).block(VICTIM, Task::IDLE)
}

#[test]
fn who_used_up_the_share_of_fair_tasks_is_named_and_told_to_leave_it() {
    for hog in [HOG, Task::rt(200, "burner", 40)] {
        let found = asked(limited(hog), VICTIM.tid);
        let verdict = found.verdict().expect("a verdict");
        let sentence = &verdict.sentence;
        let says = "real-time tasks had used up their share of the CPU, and the kernel ran compile";
        assert!(sentence.contains(says), "{sentence}");
        let mut given = verdict.advice.iter();
        let given = given.find(|advice| advice.rule == "leave-share");
        let given = given.expect("there is advice");
        assert_eq!(given.command, "chrt -o -p 0 200");
        assert!(
            given.because.contains("of the second before"),
            "{}",
            given.because
        );
    }
    // The victim itself is told nothing of the kind.
    let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
    let trace = trace.at(100_000).timer_irq().wake(VICTIM).after(1);
    let trace = trace.timer_irq_end().after(5).run(VICTIM).at(1_050_000);
    let trace = trace
        .preempt(VICTIM, FAIR)
        .at(1_100_000)
        .preempt(FAIR, VICTIM);
    let found = asked(trace.after(10).block(VICTIM, Task::IDLE), VICTIM.tid);
    let given = &found.verdict().expect("a verdict").advice;
    assert!(given.iter().all(|advice| advice.rule != "leave-share"));
}

/// A fair task is woken at 1 ms while others, `count` of them of this nice value, take turns of
/// `turn_us`, and comes on at `until_us`.
fn behind_turns(nices: (i32, i32), count: i32, turn_us: i64, until_us: i64) -> SyntheticTrace {
    let victim = Task {
        prio: 120 + nices.0,
        ..Task::fair(100, "victim")
    };
    let other = |place: i64| Task {
        prio: 120 + nices.1,
        ..Task::fair(500 + (place % i64::from(count)) as i32, "hackbench")
    };
    let trace = SyntheticTrace::new().shows_timers().at(20);
    let trace = trace.block(victim, other(0)).at(1_000).timer_irq();
    let mut trace = trace.wake(victim).after(1).timer_irq_end();
    let turns = (until_us - 1_000) / turn_us;
    for turn in 1..turns {
        let at_us = 1_000 + turn * turn_us;
        trace = trace.at(at_us).preempt(other(turn - 1), other(turn));
    }
    let last = other((turns - 1).max(0));
    let trace = trace.at(until_us).preempt(last, victim);
    trace.after(20).block(victim, Task::IDLE)
}

#[test]
fn fair_tasks_that_run_on_beyond_their_turns_are_not_accused_of_a_groups_quota() {
    let check = |trace: SyntheticTrace, conclusive: bool| {
        let found = asked(trace, 100);
        let verdict = found.verdict().expect("a verdict");
        let sentence = &verdict.sentence;
        assert_eq!(verdict.conclusive, conclusive, "{sentence}");
        let says = sentence.contains("the quota or the weight of its control group");
        assert_eq!(says, !conclusive, "{sentence}");
    };
    // Nice -20 has the weight of 86 others: 63 of them do not hold it up for 140 ms.
    check(behind_turns((-20, 0), 63, 3_000, 141_000), false);
    check(behind_turns((-20, 0), 63, 3_000, 10_000), true);
    // Of one weight, each has its turn.
    check(behind_turns((0, 0), 63, 3_000, 141_000), true);
    check(behind_turns((0, 0), 1, 3_000, 91_000), false);
    check(behind_turns((0, 0), 1, 3_000, 16_000), true);
    // Nice 19 waits for its share of one in 69.
    check(behind_turns((19, 0), 1, 3_000, 301_000), true);
    check(behind_turns((19, 0), 1, 3_000, 1_301_000), false);
}

#[test]
fn real_time_tasks_take_no_turns() {
    let victim = Task::fair(100, "victim");
    let trace = SyntheticTrace::new().shows_timers().at(20);
    let trace = trace.block(victim, HOG).at(1_000).timer_irq().wake(victim);
    let trace = trace.after(1).timer_irq_end().at(400_000);
    let trace = trace.block(HOG, victim).after(20).block(victim, Task::IDLE);
    let found = asked(trace, 100);
    let verdict = found.verdict().expect("a verdict");
    assert!(verdict.conclusive, "{}", verdict.sentence);
}

#[test]
fn who_gives_up_the_rest_of_its_runtime_is_not_said_to_have_used_it_up() {
    // The idiom of SCHED_DEADLINE: sched_yield() where the work is done.
    let trace = put_off(works().after(500), &[FAIR, FAIR_TOO], 500);
    let found = asked(trace, OWNER.tid);
    let verdict = found.verdict().expect("a verdict");
    assert!(!verdict.conclusive, "{}", verdict.sentence);
    assert!(
        verdict.sentence.contains("(sched_yield)"),
        "{}",
        verdict.sentence
    );
    assert!(
        verdict.advice.iter().all(|one| one.rule != "raise-runtime"),
        "{:?}",
        verdict.advice
    );
}

#[test]
fn who_gave_up_so_much_before_has_not_used_it_up_behind_an_interrupt() {
    // It gives up the rest after 500 us; in its next period an interrupt comes right before it
    // leaves its CPU again.
    let used_up = |ran_us: i64| {
        let trace = works().after(500).preempt(OWNER, FAIR);
        let trace = trace.at(11_010).preempt(FAIR, OWNER).after(ran_us);
        let trace = trace.timer_irq().after(2).timer_irq_end().after(5);
        let trace = trace.preempt(OWNER, FAIR).at(21_010);
        let trace = trace.preempt(FAIR, OWNER).after(500);
        let found = asked(trace.block(OWNER, Task::IDLE), OWNER.tid);
        let terms = &found.activations[0].ledger.terms;
        let mut kinds = terms.iter().map(|term| &term.kind);
        kinds.any(|kind| matches!(kind, TermKind::RuntimeUsedUp { .. }))
    };
    assert!(!used_up(500));
    // A tick ends what is more than twice of that.
    assert!(used_up(1_500));
}

#[test]
fn a_runtime_is_only_raised_by_work_that_was_seen() {
    // Its activation is not known: it was put off before, and that is what is late.
    let trace = SyntheticTrace::new()
        .at(10)
        .run(OWNER)
        .at(1_000)
        .timer_irq();
    let trace = trace.after(2).timer_irq_end().after(1);
    let found = asked(put_off(trace, &[FAIR], 500), OWNER.tid);
    let verdict = found.verdict().expect("a verdict");
    let sentence = &verdict.sentence;
    assert!(sentence.contains("used up the runtime"), "{sentence}");
    let mut rules = verdict.advice.iter().map(|one| one.rule);
    assert!(rules.all(|rule| rule != "raise-runtime"), "{verdict:?}");
}
