//! What two diagnoses say about each other.

use diagnosis::{CauseChange, Diagnosis, Query, TaskFilter, compare, diagnose};
use event::Duration;
use testkit::SyntheticTrace;
use testkit::waiting::wake_ups;

/// Which activations of the trace are late, and why.
fn ask(trace: SyntheticTrace) -> Diagnosis {
    let query = Query {
        tasks: TaskFilter::parse(&["work"]).expect("names tasks"),
        threshold: Some(Duration::from_us(1_000)),
        worst: 0,
        ..Query::default()
    };
    diagnose(&trace.build(), &query).expect("it is read")
}

/// The delays of a recording in which every part has some that are late, or one part alone.
fn delays(late_us: i64, late: impl Fn(usize) -> bool) -> Vec<i64> {
    let delay = |place| if late(place) { late_us } else { 5 };
    (0..100).map(delay).collect()
}

#[test]
fn a_burst_is_one_cause_once_and_no_change() {
    let changes = |before: Vec<i64>, after: Vec<i64>| {
        let comparison = compare(&[ask(wake_ups(&before))], &[ask(wake_ups(&after))]);
        let causes = comparison.causes.iter();
        causes
            .map(|cause| (cause.change, cause.p_count < 1e-3))
            .collect::<Vec<_>>()
    };
    let quiet = || delays(3_000, |_| false);
    let burst = || delays(3_000, |place| (40..50).contains(&place));
    let everywhere = || delays(3_000, |place| place % 5 == 0);
    assert_eq!(
        changes(quiet(), burst()),
        [(CauseChange::NotResolved, false)]
    );
    assert_eq!(
        changes(burst(), quiet()),
        [(CauseChange::NotResolved, false)]
    );
    assert_eq!(changes(quiet(), everywhere()), [(CauseChange::New, true)]);
    // A burst of longer ones.
    let longer = delays(6_000, |place| (40..55).contains(&place));
    let mixed: Vec<i64> = everywhere()
        .into_iter()
        .zip(longer)
        .map(|(a, b)| a.max(b))
        .collect();
    let found = changes(everywhere(), mixed);
    assert_eq!(found[0].0, CauseChange::NotResolved, "{found:?}");
    // With one of each, less than the double is not told from chance.
    let some = delays(3_000, |place| place % 3 == 0);
    let more = delays(3_000, |place| place % 2 == 0);
    assert_eq!(changes(some, more)[0].0, CauseChange::NotResolved);
}

#[test]
fn of_several_recordings_a_change_sets_all_of_one_side_apart() {
    let recording = |share: usize| ask(wake_ups(&delays(3_000, |place| place % share == 0)));
    let side = |shares: &[usize]| {
        shares
            .iter()
            .map(|share| recording(*share))
            .collect::<Vec<_>>()
    };
    let check = |before: &[usize], after: &[usize], expect: CauseChange| {
        let comparison = compare(&side(before), &side(after));
        let cause = &comparison.causes[0];
        assert_eq!(cause.change, expect, "{before:?} {after:?}: {cause:?}");
        assert_eq!(comparison.recordings, (before.len(), after.len()));
    };
    check(&[20, 20, 25], &[5, 4, 5], CauseChange::More);
    check(&[5, 4, 5], &[20, 20, 25], CauseChange::Fewer);
    // They differ as much on one side as between both.
    check(&[20, 20, 4], &[5, 4, 5], CauseChange::NotResolved);
    check(&[5, 4, 5], &[5, 4, 4], CauseChange::NotResolved);
    // Less than the double, and each of them.
    check(&[5, 5, 5, 5], &[3, 3, 3, 3], CauseChange::More);
}

#[test]
fn a_cause_that_only_one_trace_has_is_new_or_gone_and_few_samples_tell_nothing() {
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
