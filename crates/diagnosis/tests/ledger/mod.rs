//! What all claims about the ledger share: the tasks, the question, the comparison.

#![allow(dead_code)] // each test file uses its part

use diagnosis::{Diagnosis, Grade, Ledger, Query, TaskFilter, diagnose};
use event::Tid;
use testkit::{SyntheticTrace, Task};

pub const VICTIM: Task = Task::rt(100, "victim", 50);
pub const HOG: Task = Task::rt(200, "burner", 60);
pub const SECOND: Task = Task::rt(201, "second burner", 70);
pub const FAIR: Task = Task::fair(300, "compile");
pub const FAIR_TOO: Task = Task::fair(301, "link");
pub const IRQ_THREAD: Task = Task::rt(400, "irq/24-snd", 50);
pub const STOPPER: Task = Task::rt(20, "migration/0", 99);

/// The diagnosis of the victim's worst activation.
pub fn ask(trace: SyntheticTrace) -> Diagnosis {
    let tasks = TaskFilter::from(Tid(VICTIM.tid));
    let query = Query {
        tasks,
        worst: 1,
        ..Query::default()
    };
    diagnose(&trace.build(), &query).expect("the trace can be diagnosed")
}

/// Its ledger.
pub fn worst_ledger(trace: SyntheticTrace) -> Ledger {
    let diagnosis = ask(trace);
    diagnosis
        .activations
        .first()
        .expect("the victim was activated")
        .ledger
        .clone()
}

/// The victim's worst activation has exactly these terms (name, nanoseconds), largest first, and
/// they add up.
pub fn check(trace: SyntheticTrace, expect: &[(&str, i64)], grade: Grade) {
    let ledger = worst_ledger(trace);
    let terms: Vec<_> = ledger
        .terms
        .iter()
        .map(|t| (t.kind.to_string(), t.duration.as_ns()))
        .collect();
    let terms: Vec<_> = terms
        .iter()
        .map(|(name, ns)| (name.as_str(), *ns))
        .collect();
    assert_eq!(terms, expect);
    assert_eq!(ledger.grade, grade);
    let sum: i64 = expect.iter().map(|(_, ns)| ns).sum();
    assert_eq!(ledger.total.as_ns(), sum, "the terms add up");
}

/// Both CPUs known to be idle, and a timer for the victim that expires at 1000 µs.
pub fn idle_machine() -> SyntheticTrace {
    SyntheticTrace::new()
        .at(10)
        .cpu(1)
        .block(FAIR, Task::IDLE)
        .cpu(0)
        .at(20)
        .block(VICTIM, Task::IDLE)
        .hrtimer_start(0x1000, 1000)
}

/// The local timer's interrupt at `us` wakes the victim, in 5 µs.
pub fn timer_wakes_victim(trace: SyntheticTrace, us: i64) -> SyntheticTrace {
    trace
        .at(us)
        .timer_irq()
        .after(1)
        .hrtimer_expire(0x1000)
        .after(1)
        .wake(VICTIM)
        .after(1)
        .hrtimer_done(0x1000)
        .after(1)
        .timer_irq_end()
}
