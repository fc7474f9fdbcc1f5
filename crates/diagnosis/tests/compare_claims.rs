//! What two diagnoses say about each other.

use diagnosis::{CauseChange, Query, TaskFilter, compare, diagnose};
use event::Duration;
use testkit::SyntheticTrace;
use testkit::waiting::wake_ups;

#[test]
fn a_cause_that_only_one_trace_has_is_new_or_gone_and_few_samples_tell_nothing() {
    let ask = |trace: SyntheticTrace| {
        let query = Query {
            tasks: TaskFilter::parse(&["work"]).expect("names tasks"),
            threshold: Some(Duration::from_us(1_000)),
            worst: 0,
            ..Query::default()
        };
        diagnose(&trace.build(), &query).expect("it is read")
    };
    let change = |before: &[i64], after: &[i64]| {
        let comparison = compare(&[ask(wake_ups(before))], &[ask(wake_ups(after))]);
        let causes = comparison.causes.iter();
        causes.map(|cause| cause.change).collect::<Vec<_>>()
    };
    let (good, bad) = ([5; 40], [3_000; 40]);
    assert_eq!(change(&good, &bad), [CauseChange::New]);
    assert_eq!(change(&bad, &good), [CauseChange::Gone]);
    assert_eq!(change(&bad, &bad), [CauseChange::NotResolved]);
    assert_eq!(change(&bad, &[6_000; 40]), [CauseChange::Slower]);
    assert_eq!(change(&[6_000; 40], &bad), [CauseChange::Faster]);
    assert_eq!(change(&bad[..2], &good[..2]), [CauseChange::NotResolved]);
    assert_eq!(change(&good, &good), []);
}
