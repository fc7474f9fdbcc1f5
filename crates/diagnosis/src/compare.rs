//! Two diagnoses side by side: which causes came, went, came more often or lasted longer, and
//! whether that can be chance.

use std::collections::BTreeMap;

use event::Duration;

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
    /// How probable such a difference of the counts is, were the causes equally frequent.
    pub p_count: f64,
    /// The same for the latencies, when both have enough of them to tell.
    pub p_latency: Option<f64>,
}

/// Two diagnoses, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The causes: those that changed first, then by the worst latency.
    pub causes: Vec<ComparedCause>,
    /// Activations looked at, in the first and in the second.
    pub activations: (u64, u64),
    /// Shorter latencies are left out: one of the diagnoses does not list them.
    pub floor: Duration,
    /// Places at which events are missing, in both.
    pub holes: u64,
}

/// A change is stated when chance makes it less often than once in a hundred comparisons of all
/// causes together (Bonferroni).
const CHANCE_MAX: f64 = 0.01;
/// Fewer latencies on a side do not follow the normal distribution that the rank test takes.
const RANKS_MIN: usize = 8;

/// Compares two diagnoses of the same question.
pub fn compare(before: &Diagnosis, after: &Diagnosis) -> Comparison {
    let floor = floor(before).max(floor(after));
    let mut sides: BTreeMap<&str, [Vec<Duration>; 2]> = BTreeMap::new();
    for (place, diagnosis) in [before, after].into_iter().enumerate() {
        for group in &diagnosis.groups {
            let latencies = group.members.iter();
            let latencies = latencies.map(|member| diagnosis.activations[*member].latency());
            let side = &mut sides.entry(&group.signature).or_default()[place];
            side.extend(latencies.filter(|latency| *latency >= floor));
        }
    }
    sides.retain(|_, sides| sides.iter().any(|side| !side.is_empty()));
    let activations = (before.basis.activations, after.basis.activations);
    let chance_max = CHANCE_MAX / sides.len().max(1) as f64;
    let causes = sides.into_iter();
    let mut causes: Vec<ComparedCause> = causes
        .map(|(signature, sides)| cause(signature, sides, activations, chance_max))
        .collect();
    let worst = |cause: &ComparedCause| cause.before.worst.max(cause.after.worst);
    causes.sort_by_key(|cause| {
        let is_open = cause.change == CauseChange::NotResolved;
        (is_open, std::cmp::Reverse(worst(cause)))
    });
    Comparison {
        causes,
        activations,
        floor,
        holes: before.basis.holes + after.basis.holes,
    }
}

/// The least latency that a diagnosis lists, when it leaves some out.
fn floor(diagnosis: &Diagnosis) -> Duration {
    let listed = diagnosis.activations.len() as u64;
    match diagnosis.activations.last() {
        Some(last) if listed < diagnosis.basis.activations => last.latency(),
        _ => Duration::ZERO,
    }
}

fn cause(
    signature: &str,
    mut sides: [Vec<Duration>; 2],
    activations: (u64, u64),
    chance_max: f64,
) -> ComparedCause {
    sides.iter_mut().for_each(|side| side.sort_unstable());
    let summary = |side: &[Duration]| CauseSide {
        count: side.len() as u64,
        median: side
            .get(side.len().saturating_sub(1) / 2)
            .copied()
            .unwrap_or_default(),
        worst: side.last().copied().unwrap_or_default(),
    };
    let (before, after) = (summary(&sides[0]), summary(&sides[1]));
    let (n_before, n_after) = (activations.0.max(1) as f64, activations.1.max(1) as f64);
    let p_count = counts_by_chance(before.count, after.count, n_before / (n_before + n_after));
    let p_latency = ranks_by_chance(&sides[0], &sides[1]);
    let rate_grows = after.count as f64 / n_after > before.count as f64 / n_before;
    let change = match (p_count < chance_max, rate_grows) {
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
    }
}

/// How probable counts as uneven as these are when each event falls to the first side with
/// probability `share`: the exact binomial test, both ways.
fn counts_by_chance(first: u64, second: u64, share: f64) -> f64 {
    let all = first + second;
    if all == 0 || !(share > 0.0 && share < 1.0) {
        return 1.0;
    }
    let mut log_probability = all as f64 * (1.0 - share).ln();
    let mut log_probabilities = Vec::with_capacity(all as usize + 1);
    for count in 0..=all {
        log_probabilities.push(log_probability);
        let odds = share / (1.0 - share) * (all - count) as f64 / (count + 1) as f64;
        log_probability += odds.ln();
    }
    let found = log_probabilities[first as usize] + 1e-9;
    let as_uneven = log_probabilities.iter().filter(|log| **log <= found);
    as_uneven.map(|log| log.exp()).sum::<f64>().min(1.0)
}

/// How probable it is that sorted latencies of one source are ordered as unevenly as these: the
/// rank test of Mann and Whitney with its normal approximation, ties counted half.
fn ranks_by_chance(first: &[Duration], second: &[Duration]) -> Option<f64> {
    if first.len().min(second.len()) < RANKS_MIN {
        return None;
    }
    let (n, m) = (first.len() as f64, second.len() as f64);
    let less = |value: &Duration| second.partition_point(|other| other < value) as f64;
    let not_more = |value: &Duration| second.partition_point(|other| other <= value) as f64;
    let halves = first
        .iter()
        .map(|value| (less(value) + not_more(value)) / 2.0);
    let wins: f64 = halves.sum();
    let mut all: Vec<Duration> = first.iter().chain(second).copied().collect();
    all.sort_unstable();
    let ties = all
        .chunk_by(|a, b| a == b)
        .map(|run| (run.len() as f64).powi(3) - run.len() as f64);
    let ties: f64 = ties.sum();
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return Some(1.0);
    }
    let distance = (wins - n * m / 2.0).abs() / variance.sqrt();
    Some(beyond(distance))
}

/// The share of a normal distribution that lies further from its middle than so many standard
/// deviations, both ways (Abramowitz and Stegun 7.1.26; its error is below 1.5e-7).
fn beyond(deviations: f64) -> f64 {
    let x = deviations / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let factors = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ];
    let sum = factors.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    (sum * (-x * x).exp()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, expect: f64) {
        assert!((found - expect).abs() < 1e-3, "{found} is not {expect}");
    }

    #[test]
    fn counts_are_uneven_by_chance_as_often_as_coins_are() {
        near(counts_by_chance(0, 0, 0.5), 1.0);
        near(counts_by_chance(5, 5, 0.5), 1.0);
        near(counts_by_chance(0, 10, 0.5), 2.0 / 1024.0);
        near(counts_by_chance(2, 8, 0.5), 112.0 / 1024.0);
        near(counts_by_chance(3, 0, 0.25), 1.0 / 64.0);
    }

    #[test]
    fn ranks_tell_apart_what_lies_apart_and_not_what_is_the_same() {
        let us = |values: std::ops::Range<i64>| values.map(Duration::from_us).collect::<Vec<_>>();
        assert_eq!(ranks_by_chance(&us(0..7), &us(0..100)), None, "too few");
        let same = ranks_by_chance(&us(0..20), &us(0..20));
        near(same.expect("enough"), 1.0);
        // U is 0: its distance is (200 - 0) / sqrt(20·20·41/12) = 5.41 deviations.
        let apart = ranks_by_chance(&us(0..20), &us(50..70)).expect("enough");
        assert!(apart < 1e-6, "{apart}");
        let tied = vec![Duration::from_us(1); 10];
        near(ranks_by_chance(&tied, &tied).expect("enough"), 1.0);
    }

    #[test]
    fn two_deviations_leave_less_than_a_twentieth() {
        near(beyond(0.0), 1.0);
        near(beyond(1.96), 0.05);
        near(beyond(2.576), 0.01);
    }
}
