//! One cause on both sides: what changed about it, and whether that can be chance.

use event::{Duration, Instant};

use super::chance::{
    Part, counts_by_chance, means_by_chance, parts_by_chance, ranks_by_chance, ways,
};
use crate::finding::Diagnosis;

/// What changed about a cause from one trace to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseChange {
    /// Only the second has it.
    New,
    /// Only the first has it.
    Gone,
    /// It is more frequent in the second.
    More,
    /// It is less frequent.
    Fewer,
    /// It lasts longer in the second.
    Slower,
    /// It is over sooner.
    Faster,
    /// What differs can be chance.
    NotResolved,
}

impl CauseChange {
    /// Its name in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            CauseChange::New => "new",
            CauseChange::Gone => "gone",
            CauseChange::More => "more",
            CauseChange::Fewer => "fewer",
            CauseChange::Slower => "slower",
            CauseChange::Faster => "faster",
            CauseChange::NotResolved => "not resolved",
        }
    }

    /// Whether it is for the worse.
    pub fn is_worse(self) -> bool {
        matches!(
            self,
            CauseChange::New | CauseChange::More | CauseChange::Slower
        )
    }
}

/// A cause in one of the traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseSide {
    /// Late activations of this cause.
    pub count: u64,
    /// The middle latency; of an even number the lower one.
    pub median: Duration,
    /// The worst.
    pub worst: Duration,
}

/// A cause in both.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedCause {
    /// The cause, as in [`crate::Group::signature`].
    pub signature: String,
    /// In the first trace.
    pub before: CauseSide,
    /// In the second.
    pub after: CauseSide,
    /// What changed.
    pub change: CauseChange,
    /// How probable such a difference of the counts is, were the causes equally frequent: of
    /// single activations or of parts of recordings, whichever is more.
    pub p_count: f64,
    /// The same for the latencies, when both have enough of them to tell.
    pub p_latency: Option<f64>,
    /// How probable it is that whole recordings differ so in the number of late activations, where
    /// there are several.
    pub p_recordings: Option<f64>,
}

/// Each recording is cut into so many parts of equal length.
pub(super) const PARTS: usize = 10;
/// Of one recording on each side, what differs by less is not told from how recordings differ.
const RATE_FACTOR_MIN: f64 = 1.6;
const LATENCY_FACTOR_MIN: f64 = 1.5;
/// Of one recording on each side, what differs must differ by more than stretches of a recording as
/// long as these do, too: bursts may be longer than a part.
const STRETCHES: [usize; 2] = [5, 3];
/// Late activations of one cause in one recording: when each ended, and how late it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Lates(pub(super) Vec<(Instant, Duration)>);

/// A side: its recordings, and what is late in each.
pub(super) type Side<'a> = Vec<(&'a Diagnosis, Lates)>;

/// All activations of a side.
pub(super) fn activations<'a>(side: impl Iterator<Item = &'a Diagnosis>) -> u64 {
    side.map(|diagnosis| diagnosis.basis.activations).sum()
}

/// Compares one cause; `chance_max` is what is not called chance.
pub(super) fn cause(signature: &str, sides: &[Side; 2], chance_max: f64) -> ComparedCause {
    let latencies = sides.each_ref().map(sorted_latencies);
    let (before, after) = (summary(&latencies[0]), summary(&latencies[1]));
    let of_all = sides.each_ref().map(|side| {
        let all = side.iter().map(|(diagnosis, _)| *diagnosis);
        activations(all).max(1) as f64
    });
    let singly = counts_by_chance(
        before.count,
        after.count,
        of_all[0] / (of_all[0] + of_all[1]),
    );
    // What single activations do not tell, parts tell even less.
    let p_count = match singly < chance_max {
        true => {
            let counted = |parts| sides.each_ref().map(|side| counted_parts(side, parts));
            let counts = counted(PARTS);
            let p = singly.max(parts_by_chance(&counts[0], &counts[1]));
            p.max(of_stretches(sides, true, counted))
        }
        false => singly,
    };
    let p_latency = ranks_by_chance(&latencies[0], &latencies[1]).map(|singly| {
        if singly >= chance_max {
            return singly;
        }
        let ranked = |parts| ranked_parts(sides, &latencies, parts);
        let ranks = ranked(PARTS);
        let p = singly.max(parts_by_chance(&ranks[0], &ranks[1]));
        p.max(of_stretches(sides, false, ranked))
    });
    let set_apart = |parts: &dyn Fn(&Side) -> Vec<Part>| recordings_apart(sides, parts, chance_max);
    let (p_recordings, counts_apart) = set_apart(&counted_recordings);
    let (_, latencies_apart) = set_apart(&summed_recordings);
    let rates = (
        before.count as f64 / of_all[0],
        after.count as f64 / of_all[1],
    );
    let is_plain = p_recordings.is_some() || factor(rates) >= RATE_FACTOR_MIN;
    let medians = (before.median.as_ns() as f64, after.median.as_ns() as f64);
    let is_longer_plainly = p_recordings.is_some() || factor(medians) >= LATENCY_FACTOR_MIN;
    let is_other_rate = p_count < chance_max && counts_apart && is_plain;
    let is_other_latency = p_latency.is_some_and(|p| p < chance_max) && latencies_apart;
    let change = match (is_other_rate, rates.1 > rates.0) {
        (true, true) if before.count == 0 => CauseChange::New,
        (true, false) if after.count == 0 => CauseChange::Gone,
        (true, true) => CauseChange::More,
        (true, false) => CauseChange::Fewer,
        _ if is_other_latency && is_longer_plainly => match after.median > before.median {
            true => CauseChange::Slower,
            false => CauseChange::Faster,
        },
        _ => CauseChange::NotResolved,
    };
    ComparedCause {
        signature: signature.to_owned(),
        before,
        after,
        change,
        p_count,
        p_latency,
        p_recordings,
    }
}

/// How probable it is that one recording on each side differs so, by how much its long stretches
/// differ; several tell that themselves.
fn of_stretches(sides: &[Side; 2], is_count: bool, cut: impl Fn(usize) -> [Vec<Part>; 2]) -> f64 {
    if sides.iter().any(|side| side.len() > 1) {
        return 0.0;
    }
    let p = STRETCHES.map(|stretches| {
        let [first, second] = cut(stretches);
        means_by_chance(&first, &second, is_count)
    });
    p.into_iter().fold(0.0, f64::max)
}

/// How many times the lesser the greater is.
fn factor((one, other): (f64, f64)) -> f64 {
    one.max(other) / one.min(other)
}

fn sorted_latencies(side: &Side) -> Vec<Duration> {
    let all = side.iter().flat_map(|(_, lates)| &lates.0);
    let mut latencies: Vec<Duration> = all.map(|(_, latency)| *latency).collect();
    latencies.sort_unstable();
    latencies
}

fn summary(sorted: &[Duration]) -> CauseSide {
    let middle = sorted.get(sorted.len().saturating_sub(1) / 2);
    CauseSide {
        count: sorted.len() as u64,
        median: middle.copied().unwrap_or_default(),
        worst: sorted.last().copied().unwrap_or_default(),
    }
}

/// In which of so many parts of its recording an instant lies.
pub(super) fn part_of(diagnosis: &Diagnosis, instant: Instant, parts: usize) -> usize {
    let Some(range) = diagnosis.basis.judged_in else {
        return 0;
    };
    let share = (instant - range.begin).share_of(range.duration());
    ((share * parts as f64) as usize).min(parts - 1)
}

/// Late activations in each part of each recording, of an equal share of its activations.
fn counted_parts(side: &Side, count: usize) -> Vec<Part> {
    let of = |(diagnosis, lates): &(&Diagnosis, Lates)| {
        let of = diagnosis.basis.activations as f64 / count as f64;
        let mut parts = vec![Part { sum: 0.0, of }; count];
        for (end, _) in &lates.0 {
            parts[part_of(diagnosis, *end, count)].sum += 1.0;
        }
        parts
    };
    side.iter().flat_map(of).collect()
}

/// The ranks of latencies among all of both sides, part by part; parts without any are left out.
fn ranked_parts(sides: &[Side; 2], sorted: &[Vec<Duration>; 2], count: usize) -> [Vec<Part>; 2] {
    let below = |latency: Duration| {
        let of = sorted.iter().map(|side| {
            let less = side.partition_point(|other| *other < latency);
            let not_more = side.partition_point(|other| *other <= latency);
            (less + not_more) as f64 / 2.0
        });
        of.sum::<f64>()
    };
    let of = |(diagnosis, lates): &(&Diagnosis, Lates)| {
        let mut parts = vec![Part::default(); count];
        for (end, latency) in &lates.0 {
            let part = &mut parts[part_of(diagnosis, *end, count)];
            part.sum += below(*latency);
            part.of += 1.0;
        }
        parts.into_iter().filter(|part| part.of > 0.0)
    };
    sides
        .each_ref()
        .map(|side| side.iter().flat_map(of).collect())
}

/// Late activations of each recording, of all in it.
fn counted_recordings(side: &Side) -> Vec<Part> {
    let of = |(diagnosis, lates): &(&Diagnosis, Lates)| Part {
        sum: lates.0.len() as f64,
        of: diagnosis.basis.activations as f64,
    };
    side.iter().map(of).collect()
}

/// The latencies of each recording; those without any are left out.
fn summed_recordings(side: &Side) -> Vec<Part> {
    let of = |(_, lates): &(&Diagnosis, Lates)| Part {
        sum: lates
            .0
            .iter()
            .map(|(_, latency)| latency.as_ns() as f64)
            .sum(),
        of: lates.0.len() as f64,
    };
    side.iter().map(of).filter(|part| part.of > 0.0).collect()
}

/// How probable it is that recordings differ so, and whether that sets the sides apart: less
/// probable than `chance_max` or, where there are too few for that, as improbable as it can be.
/// One on each side cannot be told apart so.
fn recordings_apart(
    sides: &[Side; 2],
    parts: &dyn Fn(&Side) -> Vec<Part>,
    chance_max: f64,
) -> (Option<f64>, bool) {
    if sides.iter().all(|side| side.len() == 1) {
        return (None, true);
    }
    let [first, second] = sides.each_ref().map(parts);
    let p = parts_by_chance(&first, &second);
    let (of_first, of_second) = (first.len() as u64, second.len() as u64);
    let least = match ways(of_first + of_second, of_first) {
        // Which side is which makes two of the ways.
        Some(ways) if of_first == of_second => 2.0 / ways as f64,
        Some(ways) => 1.0 / ways as f64,
        None => 0.0,
    };
    (Some(p), p <= chance_max.max(least + 1e-9))
}
