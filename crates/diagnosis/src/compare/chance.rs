//! How probable it is that two sides differ as they do by chance alone.

use event::Duration;

/// Fewer latencies on a side do not follow the normal distribution that the rank test takes.
const RANKS_MIN: usize = 8;

/// How probable counts as uneven as these are when each event falls to the first side with
/// probability `share`: the exact binomial test, both ways.
pub(super) fn counts_by_chance(first: u64, second: u64, share: f64) -> f64 {
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
/// rank test of Mann and Whitney with its normal approximation, ties counted half. None where a
/// side has too few for that.
pub fn ranks_by_chance(first: &[Duration], second: &[Duration]) -> Option<f64> {
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

/// Something that was counted over something else, as late activations over all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Part {
    /// How many of what is looked for, or the sum of their ranks.
    pub sum: f64,
    /// Of how many.
    pub of: f64,
}

/// So many ways to deal parts out are all tried; of more, as many are drawn.
const WAYS_MAX: u64 = 50_000;

/// How probable shares as uneven as those of `first` and `second` are, were it chance which part is
/// on which side: parts are dealt out anew, in all ways or in many drawn ones. What comes in
/// bursts, and what is alike within a part, does not deceive it.
pub(super) fn parts_by_chance(first: &[Part], second: &[Part]) -> f64 {
    let all: Vec<Part> = first.iter().chain(second).copied().collect();
    if first.is_empty() || second.is_empty() {
        return 1.0;
    }
    let whole = all.iter().fold(Part::default(), |whole, part| Part {
        sum: whole.sum + part.sum,
        of: whole.of + part.of,
    });
    let uneven = |side: Part| {
        let (rest_sum, rest_of) = (whole.sum - side.sum, whole.of - side.of);
        (side.sum / side.of.max(1e-9) - rest_sum / rest_of.max(1e-9)).abs()
    };
    let found = uneven(sum_of(first.iter()));
    let found = found - found * 1e-9;
    let (mut tried, mut as_uneven) = (0u64, 0u64);
    let mut deal = |side: Part| {
        tried += 1;
        as_uneven += u64::from(uneven(side) >= found);
    };
    match ways(all.len() as u64, first.len() as u64) {
        Some(_) => each_choice(&all, first.len(), Part::default(), &mut deal),
        None => {
            // The way that was found is one of them.
            deal(sum_of(first.iter()));
            let mut random = 0;
            let mut drawn = all.clone();
            for _ in 1..WAYS_MAX {
                for place in 0..first.len() {
                    let other = place + below(&mut random, drawn.len() - place);
                    drawn.swap(place, other);
                }
                deal(sum_of(drawn[..first.len()].iter()));
            }
        }
    }
    as_uneven as f64 / tried as f64
}

/// From so many degrees of freedom on, Student's distribution is the normal one.
const FREEDOM_MAX: f64 = 1_000.0;

/// How probable it is that the shares of `first` and `second` have means as far apart as these, by
/// how much the parts of each side differ: Welch's test. Fewer and longer parts depend on each
/// other less. Where events are counted, they differ at least as much as independent ones; only
/// what is beyond that has to be guessed from the few parts that there are.
pub(super) fn means_by_chance(first: &[Part], second: &[Part], is_count: bool) -> f64 {
    if first.len().min(second.len()) < 2 {
        return 1.0;
    }
    let mean_and_errors = |parts: &[Part]| {
        let shares = || parts.iter().map(|part| part.sum / part.of.max(1e-9));
        let n = parts.len() as f64;
        let mean = shares().sum::<f64>() / n;
        let variance = shares().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let of = parts.iter().map(|part| part.of).sum::<f64>() / n;
        let independent = if is_count { mean / of.max(1e-9) } else { 0.0 };
        let beyond = (variance - independent).max(0.0) / n;
        (mean, independent / n + beyond, beyond * beyond / (n - 1.0))
    };
    let (mean, error, guessed) = mean_and_errors(first);
    let (other_mean, other_error, other_guessed) = mean_and_errors(second);
    let (distance, error) = ((mean - other_mean).abs(), error + other_error);
    if error <= 0.0 {
        return if distance > 0.0 { 0.0 } else { 1.0 };
    }
    let freedom = error * error / (guessed + other_guessed).max(f64::MIN_POSITIVE);
    student_beyond(distance / error.sqrt(), freedom.min(FREEDOM_MAX) as u32)
}

/// How probable it is that values of one source have means as far apart as these: Student's test of
/// two samples. None of one value on each side.
pub(super) fn students_chance(first: &[f64], second: &[f64]) -> Option<f64> {
    let (n, m) = (first.len() as f64, second.len() as f64);
    let freedom = (first.len() + second.len()).checked_sub(2)?;
    if first.is_empty() || second.is_empty() || freedom == 0 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let squares = |values: &[f64]| {
        let mean = mean(values);
        values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
    };
    let variance = (squares(first) + squares(second)) / freedom as f64;
    let (distance, error) = (
        (mean(first) - mean(second)).abs(),
        variance * (1.0 / n + 1.0 / m),
    );
    if error <= 0.0 {
        return Some(if distance > 0.0 { 0.0 } else { 1.0 });
    }
    let freedom = (freedom as f64).min(FREEDOM_MAX) as u32;
    Some(student_beyond(distance / error.sqrt(), freedom))
}

/// Whether all of one side are less than all of the other.
pub(super) fn are_apart(first: &[f64], second: &[f64]) -> bool {
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most(first) < least(second) || most(second) < least(first)
}

/// The share of Student's distribution with so many degrees of freedom that lies further out than
/// `t`, both ways: its closed form for whole degrees (Abramowitz and Stegun 26.7.3 and 26.7.4).
fn student_beyond(t: f64, freedom: u32) -> f64 {
    let freedom = freedom.max(1);
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let (mut term, first) = if is_odd { (cosine, 3) } else { (1.0, 2) };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    for step in (first..freedom.saturating_sub(1)).step_by(2) {
        let step = f64::from(step);
        term *= cosine * cosine * (step - 1.0) / step;
        sum += term;
    }
    let within = match is_odd {
        true => (angle + sine * sum) * std::f64::consts::FRAC_2_PI,
        false => sine * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

fn sum_of<'a>(parts: impl Iterator<Item = &'a Part>) -> Part {
    parts.fold(Part::default(), |whole, part| Part {
        sum: whole.sum + part.sum,
        of: whole.of + part.of,
    })
}

/// In how many ways `chosen` of `all` can be chosen, unless there are too many to try.
fn ways(all: u64, chosen: u64) -> Option<u64> {
    let mut ways = 1u64;
    for place in 0..chosen.min(all - chosen) {
        ways = ways * (all - place) / (place + 1);
        if ways > WAYS_MAX {
            return None;
        }
    }
    Some(ways)
}

/// Calls `deal` with the sum of each choice of `left` of `parts`.
fn each_choice(parts: &[Part], left: usize, chosen: Part, deal: &mut impl FnMut(Part)) {
    match parts {
        _ if left == 0 => deal(chosen),
        [first, rest @ ..] if rest.len() + 1 >= left => {
            let with = Part {
                sum: chosen.sum + first.sum,
                of: chosen.of + first.of,
            };
            each_choice(rest, left - 1, with, deal);
            if rest.len() >= left {
                each_choice(rest, left, chosen, deal);
            }
        }
        _ => {}
    }
}

/// A number below `end` that looks drawn, the same at each run: splitmix64 (Steele, Lea, Flood).
fn below(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * end as u128) >> 64) as usize
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
    fn one_burst_is_chance_and_what_all_parts_of_one_side_have_is_not() {
        let check = |first: &[f64], second: &[f64], expect: f64| {
            let parts = |sums: &[f64]| -> Vec<Part> {
                let part = |sum: &f64| Part {
                    sum: *sum,
                    of: 10.0,
                };
                sums.iter().map(part).collect()
            };
            near(parts_by_chance(&parts(first), &parts(second)), expect);
        };
        check(&[50.0, 0.0, 0.0, 0.0, 0.0], &[0.0; 5], 1.0);
        check(&[5.0; 5], &[0.0; 5], 2.0 / 252.0);
        check(&[5.0; 5], &[5.0; 5], 1.0);
        check(&[5.0, 5.0, 5.0, 5.0, 0.0], &[0.0; 5], 2.0 * 6.0 / 252.0);
        check(&[1.0], &[9.0], 1.0);
        // More ways than are tried: drawn ones tell the same.
        check(&[5.0, 0.0].repeat(10), &[5.0, 0.0].repeat(10), 1.0);
        check(&[5.0; 20], &[0.0; 20], 0.0);
        assert_eq!((ways(10, 5), ways(40, 20)), (Some(252), None));
    }

    #[test]
    fn students_distribution_is_that_of_the_tables() {
        let check = |t: f64, freedom: u32, expect: f64| near(student_beyond(t, freedom), expect);
        check(0.0, 5, 1.0);
        check(12.706, 1, 0.05);
        check(4.303, 2, 0.05);
        check(3.182, 3, 0.05);
        check(4.604, 4, 0.01);
        check(4.032, 5, 0.01);
        check(2.228, 10, 0.05);
        check(2.581, 1_000, 0.01);
    }

    #[test]
    fn means_are_apart_by_how_much_the_parts_of_a_side_differ() {
        let parts = |sums: &[f64]| -> Vec<Part> {
            let part = |sum: &f64| Part {
                sum: *sum,
                of: 100.0,
            };
            sums.iter().map(part).collect()
        };
        let p = |a: &[f64], b: &[f64]| means_by_chance(&parts(a), &parts(b), true);
        // As steady as that, twice as many are no chance; as uneven as this they are.
        assert!(p(&[50.0, 48.0, 52.0], &[99.0, 102.0, 98.0]) < 0.01);
        assert!(p(&[20.0, 10.0, 120.0], &[190.0, 90.0, 20.0]) > 0.1);
        // Alike to the event, but no more than independent ones tell.
        assert!(p(&[2.0, 2.0, 2.0], &[4.0, 4.0, 4.0]) > 0.1);
        near(p(&[0.0; 3], &[0.0; 3]), 1.0);
        near(p(&[5.0], &[90.0]), 1.0);
    }

    #[test]
    fn values_are_apart_by_how_much_those_of_a_side_differ() {
        let p = students_chance;
        // The distance is 2, its error sqrt(1 · 2/3): 2.449 with 4 degrees of freedom.
        near(
            p(&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]).expect("enough"),
            0.0705,
        );
        // One beside several: how these differ tells.
        near(p(&[9.0], &[1.0, 2.0, 3.0]).expect("enough"), 0.0256);
        assert_eq!(p(&[1.0], &[2.0]), None);
        assert_eq!(p(&[], &[2.0, 3.0]), None);
        assert_eq!(p(&[1.0, 1.0], &[1.0]), Some(1.0));
        assert_eq!(p(&[1.0, 1.0], &[2.0]), Some(0.0));
    }

    #[test]
    fn two_deviations_leave_less_than_a_twentieth() {
        near(beyond(0.0), 1.0);
        near(beyond(1.96), 0.05);
        near(beyond(2.576), 0.01);
    }
}
