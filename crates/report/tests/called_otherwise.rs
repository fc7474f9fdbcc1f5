//! A task that was asked for by its name, and that calls itself otherwise later: what it does then
//! counts for nobody, and neither `check` nor `diagnose` takes it for in time.

use diagnosis::{Query, TaskFilter, Until, diagnose};
use event::{Duration, TimeRange};
use report::{TextStyle, diagnosis_text};
use testkit::{SyntheticTrace, Task};
use views::{Judgement, Rules, check_budgets};

const EARLY: Task = Task::rt(100, "loop", 50);
const LATER: Task = Task {
    comm: "pool-7",
    ..EARLY
};

/// The task works from `at_us` on for so long, and sleeps.
fn works(trace: SyntheticTrace, task: Task, at_us: i64, for_us: i64) -> SyntheticTrace {
    let trace = trace.at(at_us).timer_irq().wake(task).after(1);
    let trace = trace.timer_irq_end().after(5).run(task);
    trace.after(for_us).block(task, Task::IDLE)
}

/// Two short activations as `loop`, then another name, and one that takes so long.
fn renamed(long_us: i64) -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10).block(EARLY, Task::IDLE);
    let trace = works(trace, EARLY, 1_000, 100);
    let trace = works(trace, EARLY, 11_000, 100);
    let trace = trace.at(21_000).timer_irq().wake(EARLY).after(1);
    let trace = trace.timer_irq_end().after(5).run(EARLY).after(20);
    let trace = trace.rename(EARLY, LATER.comm).after(20);
    works(trace.block(LATER, Task::IDLE), LATER, 31_000, long_us)
}

/// So many late activations, under other names, are known to both for a question about `who`.
#[track_caller]
fn check(who: &str, until: Until, trace: SyntheticTrace, (late, otherwise): (u64, u64)) {
    let trace = trace.build();
    let query = Query {
        tasks: TaskFilter::parse(&[who]).expect("a pattern"),
        until,
        threshold: Some(Duration::from_ms(3)),
        ..Query::default()
    };
    let rule = match until {
        Until::Block => format!("response of {who} within 3ms"),
        Until::SwitchIn => format!("wake-up of {who} within 3ms"),
    };
    let rules = Rules::parse(&rule).expect("a rule");
    let mut checked = check_budgets(&trace, &rules, TimeRange::ALL).expect("it is read");
    let found = diagnose(&trace, &query).expect("it is diagnosed");
    let counted = found.basis.renamed.as_ref();
    let counted = counted.map_or(0, |found| found.activations);
    assert_eq!((found.activations.len() as u64, counted), (late, otherwise));
    assert_eq!(found.basis.unknown(), otherwise, "{:?}", found.basis);
    let budget = checked.findings.remove(0);
    assert_eq!(
        (budget.over, budget.renamed),
        (late, otherwise),
        "{budget:?}"
    );
    match &budget.judgement {
        Judgement::Held => assert_eq!((late, otherwise), (0, 0)),
        Judgement::Broken => assert!(late > 0),
        Judgement::Inconclusive(why) => {
            assert!(otherwise > 0 && why.contains("called otherwise"), "{why}");
        }
    }
    let text = diagnosis_text(&found, &TextStyle::default());
    assert_eq!(text.contains("--tid 100"), otherwise > 0, "{text}");
}

#[test]
fn what_is_late_under_another_name_takes_the_reassurance_away() {
    check("loop", Until::Block, renamed(5_000), (0, 1));
    // By its number, and by the name that it had then, it is late.
    check("tid:100", Until::Block, renamed(5_000), (1, 0));
    check("pool-*", Until::Block, renamed(5_000), (1, 0));
    check("loop", Until::Block, renamed(500), (0, 0));
}

#[test]
fn so_does_a_wait_under_another_name() {
    let waits = |until_us: i64| {
        let trace = renamed(100).at(41_000).run(Task::fair(7, "hog")).after(10);
        let trace = trace.timer_irq().wake(LATER).after(1).timer_irq_end();
        let trace = trace.at(until_us).preempt(Task::fair(7, "hog"), LATER);
        trace.after(50).block(LATER, Task::IDLE)
    };
    check("loop", Until::SwitchIn, waits(46_000), (0, 1));
    check("loop", Until::SwitchIn, waits(41_500), (0, 0));
}

#[test]
fn who_did_no_work_yet_had_its_makers_name() {
    let maker = Task::fair(99, "loop");
    let trace = SyntheticTrace::new().at(10).run(maker).wakeup_new(EARLY, 0);
    let trace = trace.at(20).block(maker, EARLY).after(50);
    let trace = trace.rename(EARLY, LATER.comm).after(50);
    let trace = works(trace.block(LATER, Task::IDLE), LATER, 1_000, 5_000);
    // Something is judged: else there were nothing to reassure of.
    let trace = works(trace, maker, 11_000, 100);
    check("loop", Until::Block, trace, (0, 0));
}

#[test]
fn another_program_is_other_work() {
    let trace = SyntheticTrace::new().at(10).block(EARLY, Task::IDLE);
    let trace = works(trace, EARLY, 1_000, 100).at(11_000).timer_irq();
    let trace = trace.wake(EARLY).after(1).timer_irq_end().after(5);
    let trace = trace.run(EARLY).after(20).rename(EARLY, LATER.comm);
    let trace = trace.exec(LATER, LATER.comm).after(20);
    let trace = works(trace.block(LATER, Task::IDLE), LATER, 21_000, 5_000);
    check("loop", Until::Block, trace, (0, 0));
}
