//! What becomes of a scenario by what was said of it.

use super::super::place::CAUSAL;
use super::super::{language, log};
use super::*;

const SCENARIO: &str = "\
scenario hog-1-2
fault hog
over 20000us
length 200ms
victim lab-victim fifo:50 cpu=0 | loop, every abs 25ms, work 100us
culprit ctl fifo:60 cpu=0 | at 70000us, burn 50000us
accuse run_queue_wait ctl
";

/// The grade of a verdict that accuses nobody, with these lines in the log.
fn inconclusive(lines: &str) -> Grade {
    let scenario = &language::parse(SCENARIO).unwrap()[0];
    let log = format!(
        "scenario hog-1-2 0 200000000\n\
         culprit ctl 7 burn - 70000000 70000000 120000000\n\
         victim lab-victim 6 activation - 75000000 120000000 121000000\n{lines}"
    );
    let hit = Hit {
        comm: VICTIM.to_owned(),
        origin_ns: 75_000_000,
        end_ns: 121_000_000,
        ..Hit::default()
    };
    judge(scenario, &log::parse(&log)[0], (&[hit], &[]), CAUSAL).grade
}

/// A verdict that accuses this task, perhaps of what it did to one that the victim waits for.
fn accusing(kind: &str, (name, tid): (&str, i64), waiter: &str) -> Hit {
    Hit {
        comm: VICTIM.to_owned(),
        origin_ns: 75_000_000,
        end_ns: 121_000_000,
        conclusive: true,
        culprits: vec![Culprit {
            kind: kind.to_owned(),
            names: vec![name.to_owned()],
            tid,
            duration_ns: 45_000_000,
            waiter: waiter.to_owned(),
        }],
        ..Hit::default()
    }
}

#[test]
fn where_the_machine_stood_for_a_third_of_it_nobody_could_say_more() {
    let check = |lines: &str, expect: Grade| assert_eq!(inconclusive(lines), expect, "{lines}");
    check("", Grade::Open);
    let late = "machine pulse/0 0 late - 80000000 80000000 100000000\n";
    check(late, Grade::Stood);
    check(
        "machine pulse/1 0 late - 80000000 80000000 90000000\n",
        Grade::Open,
    );
    // What the injector took is the fault, and no machine's.
    let kernel = "kernel irqoff lab_drain_fifo 0 79000000 101000000\n";
    check(&format!("{kernel}{late}"), Grade::Open);
}

#[test]
fn a_task_of_the_machine_that_is_called_like_an_innocent_is_none() {
    let scenario =
        format!("{SCENARIO}innocent rtscope other:0 cpu=0 | loop, work 2ms, sleep 6ms\n");
    let scenario = &language::parse(&scenario).unwrap()[0];
    let log = "scenario hog-1-2 0 200000000\n\
               task rtscope 9\n\
               victim lab-victim 6 activation - 75000000 120000000 121000000\n";
    let check = |tid: i64, expect: Grade| {
        let hit = accusing("run_queue_wait", ("rtscope", tid), "");
        let judged = judge(scenario, &log::parse(log)[0], (&[hit], &[]), CAUSAL);
        assert_eq!(judged.grade, expect, "{tid}");
    };
    check(9, Grade::Wrong);
    // Its snapshot's events are asked next.
    check(77, Grade::Foreign);
}

#[test]
fn who_runs_ahead_of_the_thread_that_serves_timers_makes_late_whatever_was_meant() {
    let scenario = SCENARIO.replace("accuse run_queue_wait", "accuse lock_wait");
    let check = |policy: &str, waiter: &str, expect: Grade| {
        let scenario = format!("{scenario}innocent idler {policy} cpu=0 | loop, work 2ms\n");
        let scenario = &language::parse(&scenario).unwrap()[0];
        let log = "scenario hog-1-2 0 200000000\n\
                   victim lab-victim 6 activation - 75000000 120000000 121000000\n";
        let hit = accusing("run_queue_wait", ("idler", 9), waiter);
        let judged = judge(scenario, &log::parse(log)[0], (&[hit], &[]), CAUSAL);
        assert_eq!(judged.grade, expect, "{policy} {waiter}");
    };
    check("fifo:7", "ktimers/0", Grade::Foreign);
    check("fifo:7", "", Grade::Wrong);
    check("other:0", "ktimers/0", Grade::Wrong);
}

#[test]
fn who_uses_up_a_quota_makes_late_before_it_is_gone() {
    let scenario = SCENARIO.replace("accuse run_queue_wait ctl", "accuse quota -");
    let check = |fault: &str, kind: &str, expect: Grade| {
        let scenario = scenario.replace("fault hog", &format!("fault {fault}"));
        let scenario = &language::parse(&scenario).unwrap()[0];
        let log = "scenario hog-1-2 0 200000000\n\
                   victim lab-victim 6 activation - 75000000 120000000 121000000\n";
        let hit = accusing(kind, ("ctl", 7), "");
        let judged = judge(scenario, &log::parse(log)[0], (&[hit], &[]), CAUSAL);
        assert_eq!(judged.grade, expect, "{fault} {kind}");
    };
    check("quota", "run_queue_wait", Grade::Foreign);
    check("quota", "upstream", Grade::Wrong);
    check("frozen", "run_queue_wait", Grade::Wrong);
}
