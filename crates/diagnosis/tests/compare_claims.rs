//! What two diagnoses say about each other.

use diagnosis::{
    CauseChange, ComparedCause, Diagnosis, Load, Query, TaskFilter, compare, compare_under,
    diagnose,
};
use event::{Duration, TimeRange};
use testkit::waiting::wake_ups;
use testkit::{SyntheticTrace, Task};

/// Which activations of the trace are late, and why.
fn ask(trace: SyntheticTrace) -> Diagnosis {
    let query = Query {
        tasks: TaskFilter::parse(&["work"]).expect("names tasks"),
        threshold: Some(Duration::from_us(1_000)),
        worst: 0,
        lengths: true,
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

/// A recording of a machine that is the same each time: now and then, for a while, most wake-ups
/// are late by about as much.
fn of_the_same(seed: u64) -> Diagnosis {
    let mut state = seed;
    let mut below = |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let mut delays_us = vec![5; 300];
    for _ in 0..1 + below(7) {
        let (begin, length) = (below(290) as usize, 3 + below(40) as usize);
        let level_us = 1_200 + below(3_000) as i64;
        for delay_us in delays_us.iter_mut().skip(begin).take(length) {
            if below(5) > 0 {
                *delay_us = level_us + below(300) as i64;
            }
        }
    }
    ask(wake_ups(&delays_us))
}

#[test]
fn of_six_recordings_of_the_same_no_more_than_one_pair_seems_changed() {
    let six: Vec<Diagnosis> = (1..=6).map(of_the_same).collect();
    let (mut changed, mut uneven) = (0, 0);
    for (place, before) in six.iter().enumerate() {
        for after in &six[place + 1..] {
            let comparison = compare(std::slice::from_ref(before), std::slice::from_ref(after));
            let is_changed = |cause: &ComparedCause| cause.change != CauseChange::NotResolved;
            changed += usize::from(comparison.causes.iter().any(is_changed));
            let [before, after] = [&comparison.causes[0].before, &comparison.causes[0].after];
            // Were they independent of each other, this would be chance once in a hundred.
            let apart = before.count.abs_diff(after.count) as f64;
            let all = (before.count + after.count) as f64;
            uneven += usize::from(apart > 2.58 * all.sqrt());
        }
    }
    assert!(changed <= 1, "{changed} of 15");
    assert!(
        uneven >= 5,
        "they are too alike to deceive anybody: {uneven} of 15"
    );
}

/// Numbers that look drawn, the same at each run.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// How late each of 600 wake-ups is: how many are late of a thousand changes from stretch to
    /// stretch, which are of up to a fifth of the recording, and which are late is drawn.
    fn recording(&mut self, least: u64, most: u64) -> Diagnosis {
        let mut delays_us = Vec::new();
        while delays_us.len() < 600 {
            let (length, late) = (20 + self.below(100), least + self.below(most - least + 1));
            for _ in 0..length {
                let is_late = self.below(1_000) < late;
                let late_us = 1_500 + self.below(2_000) as i64;
                delays_us.push(if is_late { late_us } else { 5 });
            }
        }
        delays_us.truncate(600);
        ask(wake_ups(&delays_us))
    }
}

/// In how many pairs of recordings something changed.
fn changed<'a>(pairs: impl Iterator<Item = (&'a Diagnosis, &'a Diagnosis)>) -> (usize, usize) {
    let one = |(before, after): (&'a Diagnosis, &'a Diagnosis)| {
        let comparison = compare(std::slice::from_ref(before), std::slice::from_ref(after));
        let is_changed = |cause: &ComparedCause| cause.change != CauseChange::NotResolved;
        usize::from(comparison.causes.iter().any(is_changed))
    };
    let each: Vec<usize> = pairs.map(one).collect();
    (each.iter().sum(), each.len())
}

#[test]
fn of_many_recordings_of_one_uneven_machine_one_pair_in_fifteen_seems_changed_at_most() {
    let mut drawn = Drawn(7);
    let all: Vec<Diagnosis> = (0..36).map(|_| drawn.recording(0, 300)).collect();
    let pairs = all.chunks(6).flat_map(|six| {
        let from = move |place: usize| {
            let after = six[place + 1..].iter();
            after.map(move |after| (&six[place], after))
        };
        (0..6).flat_map(from)
    });
    let (changed, of) = changed(pairs);
    assert!(changed * 15 <= of, "{changed} of {of}");
}

#[test]
fn twice_as_many_late_are_found_where_a_machine_is_steady_enough_to_tell() {
    let mut drawn = Drawn(11);
    let mut sides =
        |least, most| -> Vec<Diagnosis> { (0..10).map(|_| drawn.recording(least, most)).collect() };
    let (before, after) = (sides(190, 260), sides(380, 520));
    let (found, of) = changed(before.iter().zip(&after));
    assert!(found * 10 >= of * 9, "{found} of {of}");
}

const COMPILER: Task = Task::fair(40, "cc1");
const OTHER: Task = Task::fair(41, "ld");

/// Waits behind the hog, every fifth or in all of them, beside a CPU that `load` has for so many
/// of ten milliseconds.
fn beside(load: Task, of_ten: i64, is_worse: bool) -> (Diagnosis, Load) {
    let is_late = |place: usize| is_worse || place.is_multiple_of(5);
    let mut trace = wake_ups(&delays(3_000, is_late))
        .at(0)
        .cpu(1)
        .run(Task::IDLE);
    for turn in 0..100 {
        trace = trace.at(turn * 10_000 + 50).block(Task::IDLE, load);
        trace = trace.after(of_ten * 1_000 - 100).block(load, Task::IDLE);
    }
    let trace = trace.build();
    let load = Load::read(&trace, TimeRange::ALL).expect("it is read");
    let query = Query {
        tasks: TaskFilter::parse(&["work"]).expect("names tasks"),
        threshold: Some(Duration::from_us(1_000)),
        worst: 0,
        lengths: true,
        ..Query::default()
    };
    (diagnose(&trace, &query).expect("it is read"), load)
}

#[test]
fn under_another_load_nobody_knows_what_a_change_comes_from() {
    let check = |after: (Task, i64), expect: CauseChange, apart: Option<&str>| {
        let (before, load_before) = beside(COMPILER, 5, false);
        let (after, load_after) = beside(after.0, after.1, true);
        let comparison = compare_under((&[before], &[load_before]), (&[after], &[load_after]));
        let causes = comparison.causes.iter().map(|cause| cause.change);
        assert_eq!(causes.collect::<Vec<_>>(), [expect]);
        let name = comparison.loads.as_ref().map(|apart| apart.name.as_str());
        assert_eq!(name, apart, "{:?}", comparison.loads);
    };
    check((COMPILER, 5), CauseChange::More, None);
    check((COMPILER, 6), CauseChange::More, None);
    check((COMPILER, 9), CauseChange::NotResolved, Some("cc1"));
    // As much, and of another program.
    check((OTHER, 5), CauseChange::NotResolved, Some("cc1"));
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

#[test]
fn only_where_late_ones_are_not_listed_something_is_left_out() {
    let listed = |worst: usize| {
        let query = Query {
            tasks: TaskFilter::parse(&["work"]).expect("names tasks"),
            threshold: Some(Duration::from_us(1_000)),
            worst,
            lengths: true,
            ..Query::default()
        };
        let trace = wake_ups(&delays(3_000, |place| place % 5 == 0));
        let diagnosis = diagnose(&trace.build(), &query).expect("it is read");
        let comparison = compare(std::slice::from_ref(&diagnosis), &[]);
        (comparison.floor > Duration::ZERO, comparison.unknown.0)
    };
    // Twenty are late, of a hundred.
    assert_eq!(listed(0), (false, 0));
    assert_eq!(listed(1_000), (false, 0));
    assert_eq!(listed(20), (false, 0));
    assert_eq!(listed(19), (true, 0));
}

#[test]
fn what_may_be_late_is_counted_beside_what_is() {
    let mut one = ask(wake_ups(&delays(5, |_| false)));
    let unknown = |diagnosis: &Diagnosis| compare(&[], std::slice::from_ref(diagnosis)).unknown;
    assert_eq!(unknown(&one), (0, 0));
    one.basis.doubted = 1;
    assert_eq!(unknown(&one), (0, 1));
}

#[test]
fn what_nobody_knows_matters_where_it_could_make_another_answer() {
    let recording = |share: usize, unknown: u64| {
        let mut found = ask(wake_ups(&delays(3_000, |place| place % share == share - 1)));
        found.basis.doubted = unknown;
        found
    };
    let never = 1_000;
    let check = |before: (usize, u64), after: (usize, u64), expect: (bool, bool)| {
        let [before, after] = [before, after].map(|(share, unknown)| recording(share, unknown));
        let comparison = compare(&[before], &[after]);
        let found = (comparison.is_worse(), comparison.may_differ);
        assert_eq!(found, expect, "{comparison:?}");
    };
    check((never, 0), (never, 0), (false, false));
    check((never, 0), (never, 5), (false, false));
    check((never, 0), (never, 30), (false, true));
    // What before may have been late makes nothing worse.
    check((never, 30), (never, 0), (false, false));
    check((4, 2), (4, 2), (false, false));
    check((4, 0), (4, 25), (false, true));
    // New, unless as many were late before.
    check((never, 0), (4, 0), (true, false));
    check((never, 1), (4, 9), (true, false));
    check((never, 25), (4, 0), (true, true));
}

#[test]
fn a_hole_shorter_than_what_is_late_hides_no_late_activation_as_a_whole() {
    let check = |hole_us: i64, expect: (u64, u64, u64)| {
        let trace = wake_ups(&delays(3_000, |_| false))
            .after(0)
            .lost(0, hole_us);
        let basis = ask(trace).basis;
        let found = (basis.holes, basis.wide_holes, basis.cut_by_holes_max);
        assert_eq!(found, expect, "{hole_us} us");
    };
    check(999, (1, 0, 2));
    check(1_000, (1, 1, 0));
}

/// A recording of which nobody knows of some wake-ups whether they were late, beside the same with
/// nothing hidden.
fn partly_hidden(drawn: &mut Drawn, most: u64) -> [Diagnosis; 2] {
    let mut delays_us: Vec<i64> = Vec::new();
    while delays_us.len() < 300 {
        let (length, late) = (20 + drawn.below(60), drawn.below(most + 1));
        for _ in 0..length {
            let is_late = drawn.below(1_000) < late;
            delays_us.push(if is_late {
                1_500 + drawn.below(2_000) as i64
            } else {
                5
            });
        }
    }
    delays_us.truncate(300);
    let whole = ask(wake_ups(&delays_us));
    // A stretch, as a hole that comes with a burst.
    let (begin, length) = (drawn.below(300) as usize, drawn.below(40) as usize);
    let hidden = delays_us.iter_mut().skip(begin).take(length);
    let mut doubted = 0;
    for delay_us in hidden.filter(|delay_us| **delay_us > 1_000) {
        *delay_us = 5;
        doubted += 1;
    }
    let mut known = ask(wake_ups(&delays_us));
    known.basis.doubted = doubted + drawn.below(3);
    [whole, known]
}

#[test]
fn what_is_answered_beside_unknown_ones_is_answered_by_who_knows_them() {
    let mut drawn = Drawn(23);
    let (mut answered, mut of) = (0, 0);
    for (before, after) in [(150, 150), (60, 60), (60, 400), (20, 300), (200, 300)] {
        for _ in 0..6 {
            let [before, known_before] = partly_hidden(&mut drawn, before);
            let [after, known_after] = partly_hidden(&mut drawn, after);
            let known = compare(&[known_before], std::slice::from_ref(&known_after));
            of += 1;
            if known.may_differ {
                continue;
            }
            answered += 1;
            // More late ones after make nothing better, however unevenly they come.
            let after = if known.is_worse() { known_after } else { after };
            let whole = compare(&[before], &[after]);
            assert_eq!(known.is_worse(), whole.is_worse(), "{known:?} {whole:?}");
        }
    }
    assert!(answered * 2 >= of, "{answered} of {of} were answered");
}
