//! Where what a watch saw is not whole, nobody is accused in the place of its hit.

mod ledger;

use diagnosis::Diagnosis;
use event::evidence::{Kind, Sum};
use ledger::{HOG, VICTIM, ask, idle_machine, timer_wakes_victim};
use testkit::{SyntheticTrace, Task};

const PROMISE: &str = "rtscope_evidence_events";

/// The victim waits for 30 ms, to 41 ms, behind the hog; then it sleeps.
fn late() -> SyntheticTrace {
    let trace = idle_machine().at(800).run(HOG);
    let trace = timer_wakes_victim(trace, 11_000).at(41_000);
    let trace = trace.block(HOG, VICTIM).after(1_000);
    trace.block(VICTIM, Task::IDLE)
}

/// The watch's hit of that wait.
fn with_hit(trace: SyntheticTrace) -> SyntheticTrace {
    let steps = [
        (11_000_000, 3, 0, -1),
        (11_002_000, 7, 0, VICTIM.tid),
        (41_000_000, 8, 0, VICTIM.tid),
    ];
    trace.at(41_000).hit(1, VICTIM, HOG, &steps)
}

fn check(trace: SyntheticTrace, conclusive: bool, says: &str) -> Diagnosis {
    let diagnosis = ask(trace.after(10_000));
    let verdict = diagnosis.verdict().expect("the victim was late");
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
    assert_eq!(verdict.conclusive, conclusive, "{}", verdict.sentence);
    diagnosis
}

const RAN: &str = "burner (tid 200, rt 60) ran ahead of it for";
const MISSING: &str = "a part of what the watch saw is missing";

#[test]
fn another_wait_is_not_judged_in_the_place_of_a_hit_that_was_cut_off() {
    check(late(), true, RAN);
    // Whoever declares hits is a watch.
    let watched = || late().declares("rtscope_hit", "sched_switch");
    let diagnosis = check(
        watched().evidence_lost(Some(1), 5_000, 8_000),
        false,
        MISSING,
    );
    let warned = diagnosis
        .warnings
        .iter()
        .any(|warning| warning.what.contains(MISSING));
    assert!(warned, "{:?}", diagnosis.warnings);
    assert_eq!(diagnosis.basis.holes, 1);
    // Nothing is left that tells of it.
    let diagnosis = check(watched(), false, MISSING);
    assert_eq!(diagnosis.basis.holes, 1);
    check(watched().environment(PROMISE, "1:4:0"), false, MISSING);
    // A tracker asks for a snapshot without a hit.
    check(watched().environment(PROMISE, ""), true, RAN);
}

#[test]
fn a_hit_is_judged_by_what_was_seen_up_to_its_end_on_any_cpu() {
    let lost = |begin_us, end_us| with_hit(late()).evidence_lost(Some(1), begin_us, end_us);
    check(with_hit(late()), true, RAN);
    check(lost(1_000, 5_000), true, RAN);
    check(lost(20_000, 21_000), false, MISSING);
    check(lost(1_000, 11_000), false, MISSING);
    // It is written down right behind its end.
    check(lost(41_500, 60_000), false, MISSING);
    check(lost(45_000, 60_000), true, RAN);
}

#[test]
fn what_is_missing_is_warned_of_where_the_hit_rests_on_it() {
    let warns = |begin_us, end_us, expect: bool| {
        let trace = with_hit(late()).evidence_lost(Some(1), begin_us, end_us);
        let warnings = ask(trace.after(10_000)).warnings;
        let is_warned = warnings.iter().any(|one| one.what.contains(MISSING));
        assert_eq!(is_warned, expect, "{begin_us} {end_us}: {warnings:?}");
    };
    warns(1_000, 5_000, false);
    warns(45_000, 60_000, false);
    warns(20_000, 21_000, true);
}

#[test]
fn a_hit_that_waits_may_have_ended_where_evidence_is_missing() {
    let steps = [(11_000_000, 3, 0, -1), (11_002_000, 7, 0, VICTIM.tid)];
    let waiting = || {
        let trace = idle_machine().at(800).run(HOG);
        let trace = timer_wakes_victim(trace, 11_000).at(31_000);
        let trace = trace.hit_waiting(1, VICTIM, HOG, &steps).at(32_000);
        trace.block(HOG, VICTIM)
    };
    check(waiting(), true, RAN);
    check(
        waiting().evidence_lost(Some(0), 45_000, 60_000),
        false,
        MISSING,
    );
}

/// What the snapshot of [`with_hit`] says of its evidence.
fn promise() -> String {
    let diagnosis = ask(with_hit(late()));
    let hit = diagnosis.activations[0].hit.as_ref().expect("a hit");
    let mut bytes = Vec::new();
    hit.encode(&mut bytes);
    let mut sum = Sum::default();
    sum.add(Kind::Hit.class(), &bytes);
    format!("0:{sum}")
}

#[test]
fn what_was_promised_and_is_not_there_may_have_been_about_any_hit() {
    let promised = |said: &str| with_hit(late()).environment(PROMISE, said);
    check(promised(&promise()), true, RAN);
    check(promised("0:2:0"), false, MISSING);
    // As many, but others.
    check(promised("0:1:0"), false, MISSING);
    let more = promise() + ",1:1:0";
    check(promised(&more), false, MISSING);
    // It is known where that was lost.
    let lost = promised(&more).evidence_lost(Some(1), 1_000, 5_000);
    check(lost, true, RAN);
}

#[test]
fn evidence_that_is_lost_hides_nothing_that_tasks_did() {
    let trace = late().evidence_lost(None, 5_000, 60_000);
    check(trace, true, RAN);
}
