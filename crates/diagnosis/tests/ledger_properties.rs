//! For any sequence of events whatever: no panic, and every ledger adds up.

use diagnosis::{Query, TaskFilter, diagnose};
use proptest::prelude::*;
use testkit::{SyntheticTrace, Task};

const TASKS: [Task; 6] = [
    Task::IDLE,
    Task::rt(100, "victim", 50),
    Task::rt(200, "burner", 60),
    Task::fair(300, "compile"),
    Task::rt(400, "irq/24-snd", 50),
    Task::rt(16, "ktimers/0", 1),
];

/// One random event: what, time since the one before, CPU, two tasks.
type Draw = (u8, i64, u32, usize, usize);

fn apply(trace: SyntheticTrace, draw: Draw) -> SyntheticTrace {
    let (what, after_us, cpu, a, b) = draw;
    let (a, b) = (TASKS[a], TASKS[b]);
    let trace = trace.after(after_us).cpu(cpu);
    match what {
        0..4 => trace.block(a, b),
        4..6 => trace.preempt(a, b),
        6..10 => trace.wake(a),
        10 => trace.waking(a, 1 - cpu),
        11 => trace.wakeup(a, 1 - cpu),
        12 => trace.migrate(a, 1 - cpu),
        13 => trace.irq(9, "eth0"),
        14 => trace.irq_end(9),
        15 => trace.timer_irq(),
        16 => trace.timer_irq_end(),
        17 => trace.softirq_raise(3),
        18 => trace.softirq(3),
        19 => trace.softirq_end(3),
        20 => trace.nmi(after_us),
        21 => trace.hrtimer_expire(1),
        22 => trace.hrtimer_done(1),
        23 => trace.hrtimer_start(1, after_us * 3),
        24 => trace.late_timer(after_us, a, i64::from(cpu), 1, &["work+0x1"]),
        25 => trace.preemption_off(after_us, a, 1, &["work+0x1"]),
        26 => trace.lost(after_us, after_us * 7),
        _ => {
            let steps = [
                (after_us * 1_000, 3, cpu, 9),
                (after_us * 2_000, 7, cpu, b.tid),
                (after_us * 3_000, 8, cpu, a.tid),
            ];
            trace.hit(after_us as u64, a, b, &steps)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn terms_are_exclusive_cover_the_latency_and_sum_exactly(
        draws in prop::collection::vec((0u8..28, 0i64..50, 0u32..2, 0usize..6, 0usize..6), 0..200),
        hits: bool,
    ) {
        let first = SyntheticTrace::new().block(TASKS[3], TASKS[0]);
        let kept = draws.into_iter().filter(|draw| hits || draw.0 < 27);
        let trace = kept.fold(first, apply).build();
        let tasks = TaskFilter::parse(&["*"]).expect("names tasks");
        let query = Query { tasks, worst: 0, ..Query::default() };
        let diagnosis = diagnose(&trace, &query).expect("there are switches");
        for late in &diagnosis.activations {
            let sum: i64 = late.ledger.terms.iter().map(|term| term.duration.as_ns()).sum();
            prop_assert_eq!(sum, late.latency().as_ns());
            prop_assert_eq!(late.ledger.total, late.latency());
            prop_assert!(late.ledger.terms.iter().all(|term| term.duration.as_ns() > 0));
            for term in &late.ledger.terms {
                prop_assert!(term.range.begin >= late.origin && term.range.end <= late.end);
                prop_assert!(term.duration <= term.range.duration());
            }
        }
        let members: usize = diagnosis.groups.iter().map(|group| group.members.len()).sum();
        prop_assert_eq!(members, diagnosis.activations.len());
    }
}

#[test]
fn the_random_events_do_make_activations() {
    // Else the property above would hold of nothing.
    let draws = (0u8..28).cycle().take(400).enumerate();
    let draws = draws.map(|(place, what)| (what, 3, place as u32 % 2, place % 6, (place / 6) % 6));
    let trace = draws.fold(SyntheticTrace::new(), apply).build();
    let tasks = TaskFilter::parse(&["*"]).expect("names tasks");
    let diagnosis = diagnose(
        &trace,
        &Query {
            tasks,
            ..Query::default()
        },
    )
    .expect("switches");
    assert!(diagnosis.basis.activations > 5, "{:?}", diagnosis.basis);
    assert!(diagnosis.basis.hits > 5);
}
