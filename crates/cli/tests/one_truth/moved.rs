//! Tasks that are moved while they wait: whether they ran before is told by who had the CPU that
//! they were moved away from.

use testkit::{SyntheticTrace, Task};
use views::Judgement;

use crate::agree::{checked, diagnosis};
use crate::answers::Answers;
use diagnosis::Grade;

const VIC: Task = Task::rt(101, "vic", 50);
const HOG: Task = Task::rt(102, "hog", 60);
const WAKER: Task = Task::fair(103, "waker");
const OTHER: Task = Task::fair(104, "other");
const MS: i64 = 1_000_000;

/// The other one has CPU 0, or it idles; the victim is woken for it at 5 ms, and moved at 9 ms.
fn moved_from(has: Task) -> SyntheticTrace {
    let trace = SyntheticTrace::new().cpus(3).at(0).cpu(1).run(WAKER);
    let trace = trace.cpu(0).at(1_000).run(HOG).at(2_000);
    let trace = match has.tid {
        0 => trace.block(HOG, Task::IDLE),
        _ => trace.block(HOG, has),
    };
    let trace = trace.cpu(1).at(5_000).wake_for(VIC, 0);
    trace.at(9_000).migrate_from(VIC, 0, 1)
}

/// It is scheduled in on CPU 1 at 12 ms, and ends its work at 13 ms.
fn runs(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.cpu(1).at(12_000).block(WAKER, VIC);
    trace.at(13_000).block(VIC, Task::IDLE)
}

/// Whether all verbs say that the victim waited for 7 ms, or that nobody knows.
fn check(trace: SyntheticTrace, is_known: bool) {
    let trace = trace.build();
    let answers = Answers::of(&trace).expect("all reports answer");
    let of_it = |tid: &i32| *tid == VIC.tid;
    let listed = answers.waits.iter().filter(|wait| of_it(&wait.tid));
    let listed: Vec<_> = listed.map(|wait| wait.end_ns - wait.begin_ns).collect();
    let expect: &[i64] = if is_known { &[7 * MS] } else { &[] };
    assert_eq!(listed, expect, "schedlog");
    let waiting_ns = answers.threads[&VIC.tid].waiting_ns;
    assert_eq!(waiting_ns, expect.iter().sum::<i64>(), "states");
    let behind = answers.behind_ns.iter().filter(|((tid, _), _)| of_it(tid));
    let behind_ns: i64 = behind.map(|(_, ns)| ns).sum();
    assert_eq!(behind_ns, waiting_ns, "dependency");
    let finding = checked(&trace, "vic", "1ms").expect("a finding");
    let counts = (finding.samples, finding.over, finding.unsure);
    assert_eq!(
        counts,
        if is_known { (1, 1, 0) } else { (0, 0, 1) },
        "check"
    );
    let is_broken = matches!(finding.judgement, Judgement::Broken);
    assert_eq!(is_broken, is_known, "check");
    let diagnosis = diagnosis(&trace, None).expect("a diagnosis");
    let mut late = diagnosis
        .activations
        .iter()
        .filter(|late| of_it(&late.task.tid.0));
    let is_complete = late.all(|late| late.ledger.grade == Grade::Complete);
    assert_eq!(is_complete, is_known, "diagnose");
}

#[test]
fn who_was_moved_away_may_have_run_where_somebody_came_and_went_unseen() {
    let leaves = |has: Task, leaves: Task| {
        runs(moved_from(has))
            .cpu(0)
            .at(20_000)
            .block(leaves, Task::IDLE)
    };
    check(leaves(OTHER, OTHER), true);
    check(leaves(OTHER, HOG), false);
    // Nobody was seen to come.
    check(leaves(Task::IDLE, HOG), false);
    let idled = runs(moved_from(Task::IDLE));
    check(idled.clone().cpu(0).at(20_000).run(HOG), true);
    // Nothing more is seen of that CPU.
    check(idled, true);
    check(runs(moved_from(OTHER)), true);
    // The same before it is scheduled in.
    let before = moved_from(OTHER).cpu(0).at(10_000).block(HOG, Task::IDLE);
    check(runs(before), false);
    let before = moved_from(OTHER).cpu(0).at(10_000).block(OTHER, Task::IDLE);
    check(runs(before), true);
}

#[test]
fn who_was_moved_twice_may_have_run_on_either_cpu() {
    let moved = |leaves: Task| {
        let trace = SyntheticTrace::new().cpus(3).at(0).cpu(1).run(WAKER);
        let trace = trace.cpu(2).at(500).run(HOG);
        let trace = trace.cpu(0).at(1_000).run(OTHER);
        let trace = trace.cpu(1).at(5_000).wake_for(VIC, 0);
        let trace = trace.at(6_000).migrate_from(VIC, 0, 2);
        let trace = runs(trace.cpu(1).at(9_000).migrate_from(VIC, 2, 1));
        let trace = trace.cpu(2).at(15_000).block(HOG, Task::IDLE);
        trace.cpu(0).at(20_000).block(leaves, Task::IDLE)
    };
    check(moved(OTHER), true);
    check(moved(Task::fair(105, "further")), false);
}

#[test]
fn what_is_lost_behind_its_move_makes_no_wait_doubtful() {
    let lost = |from_us: i64, until_us: i64| {
        let trace = runs(moved_from(OTHER)).lost_on(Some(0), from_us * 1_000, until_us * 1_000);
        trace.cpu(0).at(20_000).block(HOG, Task::IDLE)
    };
    check(lost(15_000, 16_000), true);
    check(lost(8_000, 8_500), false);
}

#[test]
fn who_was_moved_while_it_waited_was_not_on_its_way_to_sleep() {
    // Only first events of wake-ups are recorded, and who comes on CPU 1 is hidden.
    let woken = |moved: bool| {
        let trace = SyntheticTrace::new().cpus(2).at(0).cpu(0).run(WAKER);
        let trace = trace.cpu(1).timer_irq().timer_irq_end().cpu(0);
        let trace = trace.at(5_000).waking(VIC, 1);
        let trace = match moved {
            true => trace.after(1).migrate_from(VIC, 0, 1),
            false => trace,
        };
        let trace = trace.cpu(1).at(9_000).block(VIC, Task::IDLE).cpu(0);
        let trace = trace.at(9_100).waking(VIC, 1).cpu(1);
        trace.at(9_101).run(VIC).at(10_000).block(VIC, Task::IDLE)
    };
    for moved in [true, false] {
        // Who was not may have had CPU 1 when it was woken, and then never waited.
        let finding = checked(&woken(moved).build(), "vic", "5ms").expect("a finding");
        assert_eq!(finding.within, u64::from(moved), "{finding:?}");
        let finding = checked(&woken(moved).build(), "vic", "1ms").expect("a finding");
        assert_eq!(finding.unsure, 1, "{finding:?}");
    }
}

#[test]
fn who_left_an_idle_cpu_before_that_was_last_seen_to_idle_has_not_run_there() {
    // CPU 0 idles still as its interrupt ends at 8 ms; who has it then is hidden.
    let trace = |left_us: i64| {
        let shown = |trace: SyntheticTrace, task: Task| trace.in_task(Some(task.tid));
        let trace = shown(SyntheticTrace::new().cpus(2).at(0), Task::IDLE);
        let trace = trace.cpu(1).run(WAKER).cpu(0).at(1_000).run(HOG);
        let trace = shown(trace, HOG).at(2_000).block(HOG, Task::IDLE);
        let trace = shown(trace, WAKER).cpu(1).at(5_000).wake_for(OTHER, 0);
        let trace = trace.wake_for(VIC, 0).at(left_us);
        let trace = trace.migrate_from(VIC, 0, 1);
        let trace = shown(trace, Task::IDLE).cpu(0).at(8_000);
        let trace = trace.irq(24, "sound").after(1).irq_end(24);
        let trace = shown(trace, WAKER).cpu(1).at(12_000).block(WAKER, VIC);
        let trace = shown(trace, VIC).at(13_000).block(VIC, Task::IDLE);
        shown(trace, OTHER)
            .cpu(0)
            .at(20_000)
            .block(OTHER, Task::IDLE)
    };
    check_moved(trace(6_000), true);
    check_moved(trace(9_000), false);
}

/// `states` and `dependency` agree of the victim's wait, and know it, or do not.
fn check_moved(trace: SyntheticTrace, is_known: bool) {
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let waiting_ns = answers.threads[&VIC.tid].waiting_ns;
    assert_eq!(waiting_ns > 0, is_known, "{answers:?}");
    let behind = answers.behind_ns.iter();
    let behind = behind.filter(|((waiter, _), _)| *waiter == VIC.tid);
    assert_eq!(
        behind.map(|(_, ns)| ns).sum::<i64>(),
        waiting_ns,
        "{answers:?}"
    );
}

#[test]
fn a_cpu_idles_up_to_the_first_that_is_moved_there_also_where_nothing_says_that_it_waits() {
    // CPU 0 idles since 2 ms. One that nothing was seen of is moved there at 5 ms, and away at
    // 9 ms; the victim is woken for that CPU at 7 ms and leaves it at 12 ms.
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).run(WAKER);
    let trace = trace.cpu(0).at(1_000).run(VIC).at(1_500).block(VIC, HOG);
    let trace = trace.at(2_000).block(HOG, Task::IDLE);
    let trace = trace.cpu(1).at(5_000).migrate_from(OTHER, 1, 0);
    let trace = trace.at(7_000).waking(VIC, 0);
    let trace = trace.at(9_000).migrate_from(OTHER, 0, 1);
    let trace = trace.cpu(0).at(12_000).block(VIC, Task::IDLE);
    let trace = trace.at(13_000).run(HOG).at(14_000).block(HOG, Task::IDLE);
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let idle_ns = answers.cpus[&0].idle_ns;
    assert!(idle_ns <= 3 * MS + MS, "{:?}", answers.cpus[&0]);
}

#[test]
fn who_comes_on_a_run_queue_and_leaves_it_in_one_instant_of_the_clock_has_not_run_there() {
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).run(WAKER);
    let trace = trace.cpu(0).at(1_000).run(OTHER).cpu(1).at(5_000);
    let trace = trace.waking(VIC, 0).wakeup(VIC, 0).migrate_from(VIC, 0, 1);
    // Somebody came on CPU 0 and went, unseen.
    let trace = runs(trace).cpu(0).at(20_000).block(HOG, Task::IDLE);
    check_moved(trace, true);
}

#[test]
fn a_wait_is_told_to_no_verb_before_it_is_certain_that_its_task_has_not_run() {
    // The victim waits on CPU 0, from which it was moved unseen: it comes on CPU 1. Later somebody
    // turns out to have been on CPU 0 meanwhile.
    let comes = |leaves: Task| {
        let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).run(WAKER);
        let trace = trace.cpu(0).at(1_000).run(OTHER).cpu(1).at(5_000);
        let trace = runs(trace.wake_for(VIC, 0));
        trace.cpu(0).at(20_000).block(leaves, Task::IDLE)
    };
    check_moved(comes(OTHER), true);
    check_moved(comes(HOG), false);
}
