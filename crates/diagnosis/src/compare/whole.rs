//! All activations of both sides, late or not: their median, and their tail.
//!
//! A cause is compared by what is late of it, which a doubling of everything may split among causes
//! or hide below the shortest that is listed. What is compared here has no threshold. Lengths are
//! compared as logarithms: a machine's unevenness is a factor, and twice as long is as far away
//! from it whatever else is in between.

use event::Duration;

use super::cause::{CONTRADICTED, CauseChange, STRETCHES};
use super::chance::{are_apart, students_chance};
use crate::finding::Diagnosis;
use crate::lengths::Counts;

/// A share of all activations that is not longer than this.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedShare {
    /// Which, 0 to 1; the median is a half.
    pub share: f64,
    /// The mean of the recordings before (geometric).
    pub before: Duration,
    /// And of those after.
    pub after: Duration,
    /// What changed about it.
    pub change: CauseChange,
    /// How probable such a difference is by chance; none where too few recordings and stretches
    /// tell, or where nobody knows of too many activations how long they were.
    pub p: Option<f64>,
}

/// Tails that are compared, the furthest that has enough beyond it.
const TAILS: [f64; 3] = [0.99, 0.95, 0.9];
/// So many activations of each recording lie beyond the share that is compared.
const BEYOND_MIN: f64 = 20.0;
/// From so many activations in each recording on there is a median to compare.
const COUNT_MIN: u64 = 60;
/// Less is not stated, however sure.
const FACTOR_MIN: f64 = 1.1;
/// Recordings of the same may differ by as much unseen by their stretches.
const UNSEEN_FACTOR_MAX: f64 = 1.5;
/// The recordings of a side, and whether those of their activations of which nobody knows whether
/// they were late are taken as longer than all.
#[derive(Clone, Copy)]
struct Side<'a> {
    recordings: &'a [Diagnosis],
    is_filled: bool,
}

/// What is found, and whether it would be something else had activations that nobody knows been
/// late.
pub(super) struct Whole {
    pub shares: Vec<ComparedShare>,
    /// Something is worse, whatever those before were.
    pub is_surely_worse: bool,
    /// Something is worse and were not by those before, or nothing is and were by those after.
    pub is_unsure: bool,
}

/// Compares all activations of both sides; `chance_max` is what is not called chance, in all.
pub(super) fn whole(before: &[Diagnosis], after: &[Diagnosis], chance_max: f64) -> Whole {
    let shares = |filled: [bool; 2]| {
        let side = |recordings, is_filled| Side {
            recordings,
            is_filled,
        };
        compared_shares(
            [side(before, filled[0]), side(after, filled[1])],
            chance_max,
        )
    };
    let is_worse = |shares: &[ComparedShare]| shares.iter().any(|one| one.change.is_worse());
    let found = shares([false, false]);
    let is_worse_now = is_worse(&found);
    // Where that speaks against what was found.
    let filled = shares([is_worse_now, !is_worse_now]);
    let is_whole = |one: &Diagnosis| one.basis.wide_holes == 0;
    let is_whole = before.iter().chain(after).all(is_whole);
    Whole {
        is_surely_worse: is_worse_now && is_whole && is_worse(&filled),
        is_unsure: is_worse_now != is_worse(&filled),
        shares: found,
    }
}

fn compared_shares(sides: [Side; 2], chance_max: f64) -> Vec<ComparedShare> {
    let [before, after] = sides.map(|side| side.recordings);
    let all = || before.iter().chain(after);
    // Snapshots are cut around what was late, and a task that nobody named may be any.
    let is_meant = |one: &Diagnosis| one.basis.hits == 0 && one.basis.tasks_named;
    let fewest = all().map(|one| one.basis.lengths.all().count()).min();
    let fewest = fewest.unwrap_or(0);
    if before.is_empty() || after.is_empty() || fewest < COUNT_MIN || !all().all(is_meant) {
        return Vec::new();
    }
    let has_enough = |tail: &f64| fewest as f64 * (1.0 - tail) >= BEYOND_MIN;
    let tail = TAILS.into_iter().find(has_enough);
    let shares: Vec<f64> = [0.5].into_iter().chain(tail).collect();
    let chance_max = chance_max / shares.len() as f64;
    let compared = |share: &f64| compared(*share, sides, chance_max);
    shares.iter().filter_map(compared).collect()
}

fn compared(share: f64, sides: [Side; 2], chance_max: f64) -> Option<ComparedShare> {
    let of_recordings = sides.map(|side| logs(side, share, 1));
    let [before, after] = of_recordings.each_ref().map(|logs| mean(logs));
    let (before, after) = (before?, after?);
    let over = sides.iter().flat_map(|side| side.recordings);
    let over = over.filter_map(|one| one.basis.threshold).max();
    let length = |log: f64| Duration::from_ns(log.exp().round() as i64);
    // Nobody minds what is in time on both sides.
    if over.is_some_and(|over| length(before.max(after)) < over) {
        return None;
    }
    let p = sides
        .iter()
        .all(|side| side.recordings.iter().all(|one| is_known(one, share)))
        .then(|| chance(share, sides, &of_recordings))
        .flatten();
    let is_far = (after - before).abs() >= FACTOR_MIN.ln();
    let change = match p.is_some_and(|p| p < chance_max) && is_far {
        true if after > before => CauseChange::Slower,
        true => CauseChange::Faster,
        false => CauseChange::NotResolved,
    };
    Some(ComparedShare {
        share,
        before: length(before),
        after: length(after),
        change,
        p,
    })
}

/// Activations of a recording that may have been late, and are not known.
fn unknown(diagnosis: &Diagnosis) -> f64 {
    (diagnosis.basis.unknown() + diagnosis.basis.cut_by_holes_max) as f64
}

/// Whether what nobody knows of a recording is too little to move the share by much.
fn is_known(diagnosis: &Diagnosis, share: f64) -> bool {
    unknown(diagnosis) <= diagnosis.basis.activations as f64 * (1.0 - share) / 4.0
}

/// How probable it is by chance: by how much recordings differ, or their stretches, whichever is
/// less. Stretches count only where all recordings of one side lie beyond all of the other, further
/// than they could unseen, and where the recordings do not contradict.
fn chance(share: f64, sides: [Side; 2], recordings: &[Vec<f64>; 2]) -> Option<f64> {
    let [before, after] = recordings;
    let by_recordings = students_chance(before, after);
    let by_stretches = STRETCHES.map(|count| {
        let [before, after] = sides.map(|side| logs(side, share, count));
        students_chance(&before, &after)
    });
    let by_stretches = by_stretches
        .into_iter()
        .try_fold(0.0f64, |most, p| Some(most.max(p?)));
    let distance = (mean(after)? - mean(before)?).abs();
    let is_plain = are_apart(before, after)
        && distance >= UNSEEN_FACTOR_MAX.ln()
        && by_recordings.is_none_or(|p| p < CONTRADICTED);
    match (by_recordings, by_stretches) {
        (None, Some(by_stretches)) if !is_plain => Some(by_stretches.max(CONTRADICTED)),
        (Some(one), Some(other)) if is_plain => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The logarithm of what the share is not longer than, in each stretch of each recording.
fn logs(side: Side, share: f64, stretches: usize) -> Vec<f64> {
    let of = |diagnosis: &Diagnosis| {
        let basis = &diagnosis.basis;
        let parts: Vec<Counts> = match basis.judged_in {
            Some(range) if stretches > 1 => basis.lengths.parts(range, stretches),
            _ => vec![basis.lengths.all()],
        };
        let longer = match side.is_filled {
            true => unknown(diagnosis) / parts.len() as f64,
            false => 0.0,
        };
        let log = |counts: &Counts| {
            let ns = counts.quantile_ns(share, longer)?;
            Some(ns.max(1.0).ln())
        };
        parts.iter().filter_map(log).collect::<Vec<f64>>()
    };
    side.recordings.iter().flat_map(of).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
