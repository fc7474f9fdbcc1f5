//! One cause on both sides: what changed about it, and whether that can be chance.

use event::{Duration, Instant};

use super::chance::{
    Part, are_apart, counts_by_chance, means_by_chance, parts_by_chance, ranks_by_chance,
    students_chance,
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
/// What differs by less is not told from how recordings differ but by how these do.
const RATE_FACTOR_MIN: f64 = 1.6;
const LATENCY_FACTOR_MIN: f64 = 1.5;
/// The same of counts over a limit that nobody asked for: where much is near it, a little longer is
/// many more.
const RATE_FACTOR_OF_FLOOR_MIN: f64 = 4.0;
/// What the parts of several recordings say, these themselves must not call chance.
pub(super) const CONTRADICTED: f64 = 0.05;
/// What differs must differ by more than stretches of a recording as long as these do, too: bursts
/// may be longer than a part.
pub(super) const STRETCHES: [usize; 2] = [5, 3];
/// Late activations of one cause in one recording: when each ended, and how late it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Lates(pub(super) Vec<(Instant, Duration)>);

/// A side: its recordings, and what is late in each.
pub(super) type Side<'a> = Vec<(&'a Diagnosis, Lates)>;

/// All activations of a side.
pub(super) fn activations<'a>(side: impl Iterator<Item = &'a Diagnosis>) -> u64 {
    side.map(|diagnosis| diagnosis.basis.activations).sum()
}

/// Compares one cause; `chance_max` is what is not called chance, and what is late here is longer
/// than `floor`, where that is not what was asked for as late.
pub(super) fn cause(
    signature: &str,
    sides: &[Side; 2],
    chance_max: f64,
    floor: Duration,
) -> ComparedCause {
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
    let rates = (
        before.count as f64 / of_all[0],
        after.count as f64 / of_all[1],
    );
    let rate_factor_min = match floor > Duration::ZERO {
        true => RATE_FACTOR_OF_FLOOR_MIN,
        false => RATE_FACTOR_MIN,
    };
    let counts = Unevenness {
        singly,
        parts: &|parts| sides.each_ref().map(|side| counted_parts(side, parts)),
        ranked: None,
        recordings: sides.each_ref().map(rate_logs),
        is_count: true,
        is_plain: factor(rates) >= rate_factor_min,
    };
    let (p_count, p_recordings) = counts.chance(chance_max);
    let medians = (before.median.as_ns() as f64, after.median.as_ns() as f64);
    let p_latency = ranks_by_chance(&latencies[0], &latencies[1]).map(|singly| {
        let lengths = Unevenness {
            singly,
            parts: &|parts| logged_parts(sides, parts),
            ranked: Some(&|parts| ranked_parts(sides, &latencies, parts)),
            recordings: sides.each_ref().map(latency_logs),
            is_count: false,
            is_plain: factor(medians) >= LATENCY_FACTOR_MIN,
        };
        lengths.chance(chance_max).0
    });
    let change = match (p_count < chance_max, rates.1 > rates.0) {
        (true, true) if before.count == 0 => CauseChange::New,
        (true, false) if after.count == 0 => CauseChange::Gone,
        (true, true) => CauseChange::More,
        (true, false) => CauseChange::Fewer,
        _ if p_latency.is_some_and(|p| p < chance_max) => match after.median > before.median {
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

/// How recordings are cut into so many parts on each side.
type Cut<'a> = &'a dyn Fn(usize) -> [Vec<Part>; 2];

/// What may be chance, at each scale.
struct Unevenness<'a> {
    /// Were all activations independent of each other.
    singly: f64,
    parts: Cut<'a>,
    /// By ranks, where parts are longer than that many events.
    ranked: Option<Cut<'a>>,
    /// One number for each recording.
    recordings: [Vec<f64>; 2],
    is_count: bool,
    /// By more than recordings of the same may differ unseen.
    is_plain: bool,
}

impl Unevenness<'_> {
    /// How probable it is by chance: by how whole recordings differ or by how their parts and
    /// stretches do, whichever is less; and the former by itself. Parts and stretches count only
    /// for what differs plainly, and where the recordings do not contradict. `chance_max` is where
    /// nobody asks further.
    fn chance(&self, chance_max: f64) -> (f64, Option<f64>) {
        let [before, after] = &self.recordings;
        let recordings = students_chance(before, after);
        // What single activations do not tell, longer stretches tell even less.
        if self.singly >= chance_max {
            return (self.singly, recordings);
        }
        let by_recordings = recordings.map(|p| p.max(self.singly));
        let is_contradicted = recordings.is_some_and(|p| p >= CONTRADICTED);
        if !self.is_plain || is_contradicted || !are_apart(before, after) {
            return (by_recordings.unwrap_or(CONTRADICTED), recordings);
        }
        let of_stretches = STRETCHES.map(|stretches| {
            let [first, second] = (self.parts)(stretches);
            means_by_chance(&first, &second, self.is_count)
        });
        let mut by_stretches = of_stretches.into_iter().fold(self.singly, f64::max);
        if by_stretches < chance_max {
            let [first, second] = self.ranked.unwrap_or(self.parts)(PARTS);
            by_stretches = by_stretches.max(parts_by_chance(&first, &second));
        }
        let p = by_recordings.map_or(by_stretches, |p| p.min(by_stretches));
        (p, recordings)
    }
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

/// The logarithms of latencies, stretch by stretch; those without any are left out. Ranks end where
/// both sides are apart, however far; a factor goes on.
fn logged_parts(sides: &[Side; 2], count: usize) -> [Vec<Part>; 2] {
    let of = |(diagnosis, lates): &(&Diagnosis, Lates)| {
        let mut parts = vec![Part::default(); count];
        for (end, latency) in &lates.0 {
            let part = &mut parts[part_of(diagnosis, *end, count)];
            part.sum += log(*latency);
            part.of += 1.0;
        }
        parts.into_iter().filter(|part| part.of > 0.0)
    };
    sides
        .each_ref()
        .map(|side| side.iter().flat_map(of).collect())
}

fn log(latency: Duration) -> f64 {
    (latency.as_ns().max(1) as f64).ln()
}

/// How many of all are late in each recording, as a logarithm; where none is, as if half a one
/// were.
fn rate_logs(side: &Side) -> Vec<f64> {
    let of = |(diagnosis, lates): &(&Diagnosis, Lates)| {
        let late = lates.0.len() as f64 + 0.5;
        (late / (diagnosis.basis.activations as f64 + 1.0)).ln()
    };
    side.iter().map(of).collect()
}

/// The mean logarithm of what is late in each recording; those without any are left out.
fn latency_logs(side: &Side) -> Vec<f64> {
    let of = |(_, lates): &(&Diagnosis, Lates)| {
        let sum: f64 = lates.0.iter().map(|(_, latency)| log(*latency)).sum();
        (!lates.0.is_empty()).then(|| sum / lates.0.len() as f64)
    };
    side.iter().filter_map(of).collect()
}
