//! What the ledger claims for a task whose control group has used up its quota.

mod inside;

use diagnosis::{Query, TaskFilter, diagnose};
use event::{Tid, Value};
use inside::check;
use testkit::{SyntheticTrace, Task};

#[test]
fn a_quota_holds_a_task_whoever_runs_until_the_cpu_has_idled() {
    let victim = Task::fair(100, "victim");
    let other = Task::fair(300, "other");
    let steps = [
        (1_000_000, 7, 0, victim.tid),
        (90_000_000, 8, 0, victim.tid),
    ];
    let held = |since_us: i64| {
        SyntheticTrace::new()
            .at(10)
            .block(victim, Task::IDLE)
            .at(1000)
            .throttled(since_us, victim)
            .wake(victim)
            .at(10_000)
            .run(other)
            .at(20_000)
            .block(other, Task::IDLE)
            .at(80_000)
            .run(other)
            .at(90_000)
            .preempt(other, victim)
            .hit(1, victim, other, &steps)
    };
    let waits = "run-queue wait behind other (tid 300, nice 0)";
    let quota = "CPU quota of its control group used up";
    let unknown = "unexplained: nothing says when the quota of its group was back";
    let expect = [(quota, 78_999), (unknown, 10_000), ("wake-up delivery", 1)];
    check(held(1000), victim, &expect);
    // Used up while it waited already.
    let expect = [
        (quota, 65_000),
        (unknown, 10_000),
        ("unexplained: the CPU stayed idle", 8_999),
        (waits, 5_000),
        ("wake-up delivery", 1),
    ];
    check(held(15_000), victim, &expect);
}

/// A fair victim whose quota is used up at 1 ms waits while `runs` (who, until which millisecond)
/// have the CPU: the names of its two largest terms.
fn out_of_quota(runs: &[(Task, i64)], expect: [(&str, i64); 2]) {
    let victim = Task::fair(100, "victim");
    let first = runs[0].0;
    let trace = SyntheticTrace::new()
        .at(10)
        .block(victim, Task::IDLE)
        .at(500)
        .run(first);
    let mut trace = trace.at(1_000).throttled(1_000, victim).wake(victim);
    let (mut running, mut from_ms) = (first, 1);
    for (task, until_ms) in runs {
        if task.tid != running.tid {
            trace = trace.preempt(running, *task);
            running = *task;
        }
        // Ticks cut a run into pieces.
        for us in (from_ms..*until_ms).map(|ms| ms * 1_000 + 500) {
            trace = trace.at(us).timer_irq().timer_irq_end();
        }
        from_ms = *until_ms;
        trace = trace.at(from_ms * 1_000);
    }
    let trace = trace.preempt(running, victim);
    let query = Query {
        tasks: TaskFilter::from(Tid(victim.tid)),
        worst: 1,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
    let terms = &diagnosis.activations[0].ledger.terms;
    let named = |term: &diagnosis::Term| (term.kind.to_string(), term.duration.as_ns() / 1_000_000);
    let found: Vec<_> = terms.iter().map(named).collect();
    let found: Vec<_> = found
        .iter()
        .map(|(name, ms)| (name.as_str(), *ms))
        .collect();
    assert_eq!(found[..2], expect);
}

#[test]
fn a_bystander_that_runs_while_the_quota_is_used_up_is_not_the_cause() {
    let (innocent, other) = (Task::fair(300, "innocent"), Task::fair(301, "other"));
    let (quota, unknown) = (
        "CPU quota of its control group used up",
        "unexplained: nothing says when the quota of its group was back",
    );
    // No runnable task of its weight waits for so long.
    out_of_quota(&[(innocent, 51)], [(quota, 39), (unknown, 10)]);
    let late_turns = [(innocent, 41), (other, 44), (innocent, 47)];
    out_of_quota(&late_turns, [(quota, 29), (unknown, 16)]);
    // It may have had its turn behind these.
    let turns = [(innocent, 5), (other, 10), (innocent, 15)];
    out_of_quota(&turns, [(unknown, 13), ("wake-up delivery", 0)]);
    // A favoured one may run on while it waits.
    let favoured = Task::nice(302, "favoured", -20);
    out_of_quota(&[(favoured, 51)], [(unknown, 49), ("wake-up delivery", 0)]);
    // Whatever is real-time would have run ahead of it.
    let real_time = Task::rt(303, "hog", 60);
    let behind = "run-queue wait behind hog (tid 303, rt 60)";
    out_of_quota(&[(real_time, 51)], [(behind, 49), ("wake-up delivery", 0)]);
}

#[test]
fn a_quota_whose_time_the_kernel_counted_is_proven_and_who_runs_after_that_is_the_cause() {
    let (victim, other) = (Task::fair(100, "victim"), Task::fair(300, "other"));
    let steps = [
        (1_000_000, 7, 0, victim.tid),
        (90_000_000, 8, 0, victim.tid),
    ];
    // Its CPU never idles.
    let held = |kept_us: i64| {
        SyntheticTrace::new()
            .at(10)
            .block(victim, Task::IDLE)
            .at(500)
            .run(other)
            .at(1_000)
            .wake(victim)
            .at(90_000)
            .throttled_for(1_000, kept_us, victim)
            .preempt(other, victim)
            .hit(1, victim, other, &steps)
    };
    let quota = "CPU quota of its control group used up";
    let behind = "run-queue wait behind other (tid 300, nice 0)";
    let turns = "unexplained: others ran for longer than their turns: the quota or the weight of \
                 its control group";
    let delivery = ("wake-up delivery", 1);
    check(
        held(75_000),
        victim,
        &[(quota, 75_000), (behind, 13_999), delivery],
    );
    // Then it should have had its turn, and what it has left is why it had none.
    check(
        held(50_000),
        victim,
        &[(quota, 50_000), (turns, 38_999), delivery],
    );
}

#[test]
fn in_a_group_with_a_quota_nobody_is_accused_of_more_than_his_turns() {
    let (victim, other) = (Task::fair(100, "victim"), Task::nice(300, "innocent", 19));
    let steps = [
        (1_000_000, 7, 0, victim.tid),
        (50_000_000, 8, 0, victim.tid),
    ];
    let waits = |flags: u64| {
        SyntheticTrace::new()
            .at(10)
            .block(victim, Task::IDLE)
            .at(500)
            .run(other)
            .at(1_000)
            .wake(victim)
            .at(50_000)
            .preempt(other, victim)
            .hit(1, victim, other, &steps)
            .moment(victim, 0, flags)
    };
    let behind = "run-queue wait behind innocent (tid 300, nice 19)";
    let turns = "unexplained: others ran for longer than their turns: the quota or the weight of \
                 its control group";
    let delivery = ("wake-up delivery", 1);
    // In the root no group has a weight.
    let in_root = |flags: u64| {
        let none = ("", 0, 0);
        waits(flags).group_limits(victim, (0, "/cg/cpu"), none, (false, 0), none)
    };
    check(in_root(0), victim, &[(behind, 48_999), delivery]);
    check(in_root(8), victim, &[(turns, 48_999), delivery]);
    // Where nobody read the groups it may be a weight.
    check(waits(0), victim, &[(turns, 48_999), delivery]);
}

/// An innocent of nice 10 runs for 200 ms ahead of a victim of nice -20 whose groups have these
/// weights, each with its file and what others have.
fn outweighed(groups: &[(&'static str, (&'static str, u64, u64))]) -> SyntheticTrace {
    let (victim, innocent) = (
        Task::nice(100, "victim", -20),
        Task::nice(300, "innocent", 10),
    );
    let steps = [
        (1_000_000, 7, 0, victim.tid),
        (201_000_000, 8, 0, victim.tid),
    ];
    let trace = SyntheticTrace::new()
        .at(10)
        .block(victim, Task::IDLE)
        .at(500)
        .run(innocent)
        .at(1_000)
        .wake(victim)
        .at(201_000)
        .preempt(innocent, victim)
        .hit(1, victim, innocent, &steps)
        .moment(victim, 0, 0);
    let groups = groups.iter().enumerate();
    groups.fold(trace, |trace, (level, (folder, weight))| {
        let place = (level as u64, *folder);
        trace.group_limits(victim, place, *weight, (false, 0), ("", 0, 0))
    })
}

#[test]
fn a_group_of_less_weight_than_its_task_is_the_cause_and_nobody_who_ran_meanwhile() {
    let advised = |groups: &[(&'static str, (&'static str, u64, u64))]| {
        let diagnosis = diagnose(&outweighed(groups).build(), &Query::default());
        let diagnosis = diagnosis.expect("diagnosed");
        let verdict = diagnosis.verdict().expect("a verdict");
        assert!(verdict.conclusive, "{}", verdict.sentence);
        let first = verdict.advice.first().expect("advice");
        (verdict.sentence.clone(), first.rule, first.command.clone())
    };
    let (root, none) = ("/cg/cpu", ("", 0, 0));
    let light = [("/cg/cpu/a", ("cpu.shares", 10, 1024)), (root, none)];
    let (sentence, rule, command) = advised(&light);
    let expect = "the weight of its control group (/cg/cpu/a: cpu.shares 10) let other fair tasks \
                  run ahead for 199.999 ms";
    assert!(sentence.contains(expect), "{sentence}");
    assert_eq!(rule, "raise-group-weight");
    assert_eq!(command, "echo 88818 > /cg/cpu/a/cpu.shares");
    // All that are lighter than the task, the least first.
    let nested = [
        ("/cg/a/b", ("cpu.weight", 100, 100)),
        ("/cg/a", ("cpu.weight", 1, 100)),
    ];
    let expect = "echo 8674 > /cg/a/cpu.weight; echo 8674 > /cg/a/b/cpu.weight";
    assert_eq!(advised(&nested).2, expect);
    let idle = [("/cg/a", ("cpu.idle", 3, 1024))];
    assert_eq!(advised(&idle).2, "echo 0 > /cg/a/cpu.idle");
    let session = [
        (root, none),
        ("/proc/100/autogroup", ("autogroup", 1024, 1024)),
    ];
    assert_eq!(advised(&session).2, "echo -20 > /proc/100/autogroup");
    // One of its own weight is not why.
    let heavy = [("/cg/a", ("cpu.weight", 10_000, 100))];
    let (sentence, rule, _) = advised(&heavy);
    assert!(
        sentence.contains("innocent (tid 300, nice 10) ran ahead"),
        "{sentence}"
    );
    assert_ne!(rule, "raise-group-weight");
}

/// A group: its folder, its weight, whether it has a quota and for how long it was out of that.
type Limited = (&'static str, (&'static str, u64, u64), (bool, u64));

#[test]
fn the_group_that_was_out_of_its_quota_is_named_and_gets_the_advice() {
    let (victim, other) = (Task::fair(100, "victim"), Task::fair(300, "other"));
    let steps = [
        (1_000_000, 7, 0, victim.tid),
        (90_000_000, 8, 0, victim.tid),
    ];
    let check = |groups: &[Limited], (named, advised): (&str, &str)| {
        let trace = SyntheticTrace::new()
            .at(10)
            .block(victim, Task::IDLE)
            .at(500)
            .run(other)
            .at(1_000)
            .wake(victim)
            .at(90_000)
            .throttled_for(1_000, 88_000, victim)
            .preempt(other, victim)
            .hit(1, victim, other, &steps);
        let groups = groups.iter().enumerate();
        let trace = groups.fold(trace, |trace, (level, (folder, weight, quota))| {
            let place = (level as u64, *folder);
            trace.group_limits(victim, place, *weight, *quota, ("", 0, 0))
        });
        let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
        let verdict = diagnosis.verdict().expect("a verdict");
        let sentence = &verdict.sentence;
        assert!(sentence.contains(named), "{sentence}");
        let advice = &verdict.advice[0];
        assert_eq!(advice.rule, "lift-quota");
        assert!(advice.command.contains(advised), "{}", advice.command);
    };
    let (first, second) = (("cpu.shares", 1024, 1024), ("cpu.weight", 100, 100));
    let unlimited = [("/cg/a/b", first, (false, 0)), ("/cg/a", first, (true, 0))];
    let expect = (
        "the CPU quota of its control group (/cg/a) was used up",
        "echo -1 > /cg/a/cpu.cfs_quota_us",
    );
    check(&unlimited, expect);
    // Both have one: that whose count grew.
    let both = [("/cg/a/b", second, (true, 0)), ("/cg/a", second, (true, 9))];
    let expect = ("group (/cg/a) was", "echo max > /cg/a/cpu.max");
    check(&both, expect);
    // Nobody read the groups: the first one above it that has a limit.
    let expect = (
        "the CPU quota of its control group was",
        "do v1=${v1%/*}; done",
    );
    check(&[], expect);
}

#[test]
fn who_ran_for_a_moment_leaves_nobody_else_a_longer_turn() {
    let victim = Task::fair(100, "victim");
    let (first, second) = (Task::fair(300, "first"), Task::fair(301, "second"));
    let (short, shorter) = (Task::fair(302, "short"), Task::fair(303, "shorter"));
    let steps = [
        (1_000_000, 7, 0, victim.tid),
        (45_000_000, 8, 0, victim.tid),
    ];
    let trace = SyntheticTrace::new()
        .at(10)
        .block(victim, Task::IDLE)
        .at(500)
        .run(first)
        .at(1_000)
        .wake(victim)
        .at(22_000)
        .preempt(first, short)
        .at(22_100)
        .preempt(short, shorter)
        .at(22_200)
        .preempt(shorter, second)
        .at(45_000)
        .preempt(second, victim)
        .hit(1, victim, second, &steps)
        .moment(victim, 0, 8);
    let turns = "unexplained: others ran for longer than their turns: the quota or the weight of \
                 its control group";
    check(trace, victim, &[(turns, 43_999), ("wake-up delivery", 1)]);
}

#[test]
fn the_owner_of_a_lock_that_is_out_of_quota_is_named_and_not_who_runs_meanwhile() {
    let victim = Task::rt(100, "victim", 50);
    let (owner, innocent) = (Task::fair(200, "owner"), Task::fair(300, "innocent"));
    let steps = [
        (1_000_000, 7, 0, victim.tid),
        (1_010_000, 8, 0, victim.tid),
        (9_050_000, 10, 0, victim.tid),
    ];
    let trace = SyntheticTrace::new()
        .at(10)
        .block(victim, Task::IDLE)
        .after(10)
        .wake(owner)
        .after(10)
        .run(owner)
        .at(1_000)
        .wake(victim)
        .at(1_010)
        .preempt(owner, victim)
        .at(1_100)
        .blocked(victim, 3, Some(owner), &[])
        .block(victim, owner)
        .at(2_000)
        .wake(innocent)
        .preempt(owner, innocent)
        .at(8_000)
        .throttled_for(2_000, 6_000, owner)
        .preempt(innocent, owner)
        .at(9_000)
        .wake(victim)
        .preempt(owner, victim)
        .at(9_050)
        .block(victim, Task::IDLE)
        .hit(1, victim, owner, &steps);
    let quota = "CPU quota of the control group of owner (tid 200, nice 0) used up";
    let held = "lock held by owner (tid 200, nice 0)";
    let expect = [
        (quota, 5_999),
        (held, 1_901),
        ("own run", 139),
        ("switch", 9),
        ("wake-up delivery", 2),
    ];
    check(trace, victim, &expect);
}

/// What a recorder says of quotas between the trace's begin and now: of task 0, all groups.
fn told(trace: SyntheticTrace, kept_ms: &[(i32, u64)]) -> SyntheticTrace {
    kept_ms.iter().fold(trace, |trace, (tid, kept_ms)| {
        let fields = [
            ("begin_ns", Value::Unsigned(0)),
            ("kept_ns", Value::Unsigned(kept_ms * 1_000_000)),
            ("tid", Value::Signed((*tid).into())),
        ];
        trace.event("rtscope_quota", &fields)
    })
}

/// A recording in which two innocents have the CPU for 15 ms each while a fair victim waits; each
/// time the CPU idles for `idle_ms` before that.
fn recorded(idle_ms: i64) -> (SyntheticTrace, Task) {
    let victim = Task::fair(100, "victim");
    let (first, second) = (Task::fair(300, "first"), Task::fair(301, "second"));
    let trace = SyntheticTrace::new()
        .at(10)
        .block(victim, Task::IDLE)
        .at(1_000)
        .wake(victim)
        .at(1_000 + idle_ms * 1_000)
        .run(first)
        .at(16_000 + idle_ms * 1_000)
        .preempt(first, second)
        .at(31_000 + idle_ms * 1_000)
        .preempt(second, victim)
        .at(32_000 + idle_ms * 1_000)
        .block(victim, Task::IDLE);
    (trace.at(90_000), victim)
}

/// The sentence on the worst activation of the victim, and whether it is conclusive.
fn said(trace: SyntheticTrace, victim: Task) -> (String, bool) {
    let query = Query {
        tasks: TaskFilter::from(Tid(victim.tid)),
        worst: 1,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
    let verdict = diagnosis.verdict().expect("the victim was activated");
    (verdict.sentence.clone(), verdict.conclusive)
}

#[test]
fn in_a_recording_nobody_is_accused_of_a_wait_that_a_quota_may_have_made() {
    let perhaps =
        "its control group ran out of its CPU quota around then, nothing says when exactly";
    let untold = "(This trace does not tell whether a CPU quota of its control group kept it";
    let check = |kept_ms: &[(i32, u64)], accuses: bool, expect: &str| {
        let (trace, victim) = recorded(0);
        let (sentence, conclusive) = said(told(trace, kept_ms), victim);
        assert_eq!(conclusive, accuses, "{sentence}");
        assert!(sentence.contains(expect), "{sentence}");
        assert_eq!(sentence.contains(untold), kept_ms.is_empty(), "{sentence}");
    };
    check(&[(0, 40), (100, 30)], false, perhaps);
    let accused = "second (tid 301, nice 0) ran ahead of it for 15.000 ms";
    // Of other groups alone, and for too short a time to matter.
    check(&[(0, 40), (300, 40)], true, accused);
    check(&[(0, 40), (100, 2)], true, accused);
    check(&[(0, 0)], true, accused);
    check(&[], true, untold);
}

#[test]
fn who_ended_before_a_recorder_saw_its_groups_may_have_been_in_any() {
    let ended = |total_ms: u64| {
        let (trace, victim) = recorded(0);
        let exit = [
            ("comm", Value::Text("victim".into())),
            ("tid", Value::Signed(100)),
            ("prio", Value::Signed(20)),
        ];
        let trace = trace.at(40_000).event("sched_process_exit", &exit);
        said(told(trace.at(90_000), &[(0, total_ms)]), victim)
    };
    let (sentence, conclusive) = ended(30);
    assert!(
        !conclusive && sentence.contains("ran out of its CPU quota"),
        "{sentence}"
    );
    let (sentence, conclusive) = ended(0);
    assert!(conclusive, "{sentence}");
}

#[test]
fn while_the_cpu_idles_a_counted_quota_is_the_cause() {
    let check = |kept_ms: u64, expect: &str| {
        let (trace, victim) = recorded(45);
        let (sentence, _) = said(told(trace, &[(0, kept_ms), (100, kept_ms)]), victim);
        assert!(sentence.contains(expect), "{sentence}");
    };
    check(60, "quota of its control group was used up for 44.999 ms");
    // It was back for longer than that.
    check(40, "the CPU stayed idle");
}
