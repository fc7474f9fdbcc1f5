//! Who took the CPU from a thread that never sleeps.

use diagnosis::{Gap, Taker, explain_gaps};
use event::evidence::StopKind;
use event::{Cpu, Instant, Tid, TimeRange};
use testkit::{SyntheticTrace, Task};

const LOOKER: Task = Task::rt(100, "rtscope-gap0", 50);
const OTHER: Task = Task::rt(200, "migration/0", 99);

/// The gap between two instants in microseconds has these parts, largest first.
fn check(trace: SyntheticTrace, range_us: (i64, i64), expect: &[(Taker, i64)]) {
    assert_eq!(explained(trace, range_us), expect);
}

/// The parts of the gap between two instants, in microseconds.
fn explained(trace: SyntheticTrace, (begin_us, end_us): (i64, i64)) -> Vec<(Taker, i64)> {
    let gap = Gap {
        cpu: Cpu(0),
        tid: Tid(LOOKER.tid),
        range: TimeRange {
            begin: Instant::from_ns(begin_us * 1000),
            end: Instant::from_ns(end_us * 1000),
        },
    };
    let explained = explain_gaps(&trace.build(), &[gap]).expect("read");
    let parts: Vec<_> = explained[0]
        .parts
        .iter()
        .map(|(taker, duration)| (taker.clone(), duration.as_ns() / 1000))
        .collect();
    let sum: i64 = parts.iter().map(|(_, us)| us).sum();
    assert_eq!(sum, end_us - begin_us, "the parts add up");
    parts
}

/// The looking thread has CPU 0 from 20 µs on.
fn looking() -> SyntheticTrace {
    SyntheticTrace::new().at(20).run(LOOKER)
}

fn disk() -> Taker {
    Taker::Hardirq {
        irq: 30,
        name: "disk".into(),
    }
}

#[test]
fn an_interrupt_owns_its_edges() {
    let trace = looking().at(101).irq(30, "disk").at(110).irq_end(30);
    check(trace.at(500).irq(30, "disk"), (100, 112), &[(disk(), 12)]);
}

#[test]
fn what_no_event_explains_lies_below_the_kernel() {
    let trace = looking().at(500).irq(30, "disk").at(501).irq_end(30);
    check(trace, (100, 250), &[(Taker::Below, 150)]);
}

#[test]
fn an_interrupt_in_a_gap_of_the_hypervisor_keeps_its_own_share() {
    let trace = looking().at(230).irq(30, "disk").at(240).irq_end(30);
    let expect = [(Taker::Below, 131), (disk(), 10)];
    check(trace.at(500).irq(30, "disk"), (100, 241), &expect);
}

#[test]
fn an_idle_cpu_in_the_middle_of_a_window_is_throttling_and_no_task() {
    let trace = looking().at(100).preempt(LOOKER, Task::IDLE);
    let trace = trace.at(50_100).block(Task::IDLE, LOOKER);
    let expect = [(Taker::Throttled { ran: None }, 50_002)];
    check(trace.at(60_000).irq(30, "disk"), (99, 50_101), &expect);
    // That the CPU still idled when it began is the fault of a switch that was not recorded.
    let trace = looking().at(100).block(LOOKER, Task::IDLE);
    let trace = trace.at(300).irq(30, "disk").at(301).irq_end(30);
    check(trace, (200, 250), &[(Taker::Unknown, 50)]);
}

#[test]
fn an_ordinary_task_in_the_place_of_a_real_time_one_ran_by_throttling() {
    const FAIR: Task = Task::fair(300, "sh");
    let ran = |looker: Task| {
        let trace = SyntheticTrace::new().at(20).run(looker);
        let trace = trace.at(100).preempt(looker, FAIR);
        trace.at(50_100).preempt(FAIR, looker).at(60_000)
    };
    let sh = || Some("sh".to_owned());
    let expect = [(Taker::Throttled { ran: sh() }, 50_002)];
    let trace = ran(LOOKER).irq(30, "disk");
    check(trace, (99, 50_101), &expect);
    // Who looks as an ordinary task gives way to others, which is no limit.
    let ordinary = Task::fair(LOOKER.tid, LOOKER.comm);
    let expect = [(Taker::Task { comm: "sh".into() }, 50_002)];
    check(ran(ordinary).irq(30, "disk"), (99, 50_101), &expect);
}

#[test]
fn whoever_has_the_cpu_of_a_looker_that_is_stopped_takes_nothing_from_it() {
    const FAIR: Task = Task::fair(300, "sh");
    const STOPPED: i64 = 4; // TASK_STOPPED
    let trace = looking().at(100).leave(LOOKER, STOPPED, FAIR);
    let trace = trace.at(40_000).block(FAIR, Task::IDLE).at(50_000);
    let trace = trace.timer_irq().wake(LOOKER).after(1).timer_irq_end();
    // It could run again, and another one had its CPU.
    let trace = trace.at(50_010).block(Task::IDLE, OTHER);
    let trace = trace.at(50_110).block(OTHER, LOOKER);
    let how = StopKind::Signal;
    let migration = Taker::Task {
        comm: "migration/0".into(),
    };
    let gap = explained(trace.at(60_000).irq(30, "disk"), (99, 50_111));
    let part = |taker: &Taker| {
        gap.iter()
            .find(|(found, _)| found == taker)
            .map(|part| part.1)
    };
    assert!(part(&Taker::Stopped { how }) >= Some(49_800), "{gap:?}");
    assert_eq!(part(&migration), Some(100), "{gap:?}");
}

#[test]
fn another_task_and_its_softirq_are_apart() {
    let trace = looking()
        .at(100)
        .preempt(LOOKER, OTHER)
        .at(120)
        .softirq(3)
        .at(130)
        .softirq_end(3)
        .at(150)
        .block(OTHER, LOOKER);
    let migration = Taker::Task {
        comm: "migration/0".into(),
    };
    let expect = [(migration, 41), (Taker::Softirq { vector: 3 }, 10)];
    check(trace.at(500).irq(30, "disk"), (100, 151), &expect);
}

#[test]
fn a_gap_before_the_first_event_is_not_known() {
    check(looking(), (5, 15), &[(Taker::Unknown, 10)]);
}
