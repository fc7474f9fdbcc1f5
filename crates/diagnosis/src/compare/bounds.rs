//! What nobody knows of both sides, and whether it matters: had the activations that may have been
//! late all been so, would the answer be another one?
//!
//! Each cause is asked anew with all of them as its own, on the side where that speaks against the
//! answer: spread over each recording, all in one part of it, or where the fewest are late, and as
//! long as any. More of them after than are known make nothing better, and more before nothing
//! worse.

use event::{Duration, Instant};

use super::cause::{Lates, PARTS, Side, cause, part_of};
use crate::finding::Diagnosis;

/// Where in a recording they are put.
#[derive(Clone, Copy)]
enum Place {
    /// Equally far apart.
    Spread,
    /// One by one into the part in which the fewest are late.
    Level,
    /// All into one part.
    Part(usize),
}

impl Place {
    fn all() -> impl Iterator<Item = Place> {
        let parts = (0..PARTS).map(Place::Part);
        [Place::Spread, Place::Level].into_iter().chain(parts)
    }

    /// As shares of the recording, where so many are late in its parts.
    fn shares(self, count: u64, mut late: [u64; PARTS]) -> Vec<f64> {
        let middle = |part: usize| (part as f64 + 0.5) / PARTS as f64;
        let emptiest = |late: &[u64; PARTS]| {
            let fewest = late.iter().enumerate().min_by_key(|(_, count)| **count);
            fewest.map_or(0, |(part, _)| part)
        };
        let share = |number: u64| match self {
            Place::Spread => (number as f64 + 0.5) / count as f64,
            Place::Part(part) => middle(part),
            Place::Level => {
                let part = emptiest(&late);
                late[part] += 1;
                middle(part)
            }
        };
        (0..count).map(share).collect()
    }
}

/// Activations of a recording that may have been late, and are not known. A watch has judged each,
/// whatever its snapshot holds of it.
fn unknown(diagnosis: &Diagnosis) -> u64 {
    let basis = &diagnosis.basis;
    let doubted = if basis.hits > 0 { 0 } else { basis.unknown() };
    doubted + basis.cut_by_holes_max
}

/// Whether a comparison of the causes `sides` could have another answer than that something got
/// worse, or that nothing did.
pub(super) fn may_differ(
    is_worse_now: bool,
    sides: &[(&str, [Side; 2])],
    (before, after): (&[Diagnosis], &[Diagnosis]),
    (chance_max, floor): (f64, Duration),
) -> bool {
    let all = || before.iter().chain(after);
    if all().any(|diagnosis| diagnosis.basis.wide_holes > 0) {
        return true;
    }
    if all().all(|diagnosis| unknown(diagnosis) == 0) {
        return false;
    }
    let longest = longest(sides);
    let is_worse = |sides: &[Side; 2]| cause("", sides, chance_max, floor).change.is_worse();
    if is_worse_now {
        let stays = |sides: &[Side; 2]| {
            let of = |place| filled(&sides[0], place, longest);
            Place::all().all(|place| is_worse(&[of(place), sides[1].clone()]))
        };
        let mut worse = sides.iter().filter(|(_, sides)| is_worse(sides));
        return !worse.any(|(_, sides)| stays(sides));
    }
    let may_be_worse = |sides: &[Side; 2]| {
        let of = |place| filled(&sides[1], place, longest);
        Place::all().any(|place| is_worse(&[sides[0].clone(), of(place)]))
    };
    // Theirs may be a cause that nobody knows of.
    let nothing = |one| (one, Lates::default());
    let unheard_of = [before, after].map(|side| side.iter().map(nothing).collect());
    let mut asked = sides.iter().map(|(_, sides)| sides).chain([&unheard_of]);
    asked.any(may_be_worse)
}

/// The longest of all that are late.
fn longest(sides: &[(&str, [Side; 2])]) -> Duration {
    let lates = sides.iter().flat_map(|(_, sides)| sides.iter().flatten());
    let latencies = lates.flat_map(|(_, lates)| &lates.0);
    let longest = latencies.map(|(_, latency)| *latency).max();
    longest.unwrap_or_default()
}

/// A side on which all that may have been late was, by so much.
fn filled<'a>(side: &Side<'a>, place: Place, latency: Duration) -> Side<'a> {
    let one = |(diagnosis, lates): &(&'a Diagnosis, Lates)| {
        let mut late = [0; PARTS];
        for (end, _) in &lates.0 {
            late[part_of(diagnosis, *end, PARTS)] += 1;
        }
        let at = |share: f64| match diagnosis.basis.judged_in {
            Some(range) => {
                range.begin + Duration::from_ns((range.duration().as_ns() as f64 * share) as i64)
            }
            None => Instant::from_ns(0),
        };
        let mut lates = lates.clone();
        let shares = place.shares(unknown(diagnosis), late).into_iter();
        lates.0.extend(shares.map(|share| (at(share), latency)));
        (*diagnosis, lates)
    };
    side.iter().map(one).collect()
}
