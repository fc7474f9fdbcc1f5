//! The terms of an activation, whole.

use diagnosis::{Query, TaskFilter, diagnose};
use event::Tid;
use testkit::{SyntheticTrace, Task};

/// The victim's activation has exactly these terms (name, microseconds), largest first, and they
/// add up to its latency.
pub fn check(trace: SyntheticTrace, victim: Task, expect: &[(&str, i64)]) {
    let query = Query {
        tasks: TaskFilter::from(Tid(victim.tid)),
        worst: 1,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
    let ledger = &diagnosis.activations[0].ledger;
    let terms: Vec<_> = ledger
        .terms
        .iter()
        .map(|term| (term.kind.to_string(), term.duration.as_ns()))
        .collect();
    let expect: Vec<_> = expect
        .iter()
        .map(|(name, us)| ((*name).to_owned(), us * 1000))
        .collect();
    assert_eq!(terms, expect);
    let sum: i64 = expect.iter().map(|(_, ns)| ns).sum();
    assert_eq!(ledger.total.as_ns(), sum, "the terms add up");
}
