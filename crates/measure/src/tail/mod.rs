//! What a run of this length can say of latencies, and what it cannot.
//!
//! Percentiles come with the interval in which they lie with 95 % confidence; nothing is said of
//! those that too few samples lie above. The longest latencies of equal stretches of the run may
//! follow an extreme-value distribution; where they do, [`Tail::Fit`] says what ten times the run
//! would bring, else the reason why nothing is said.

mod extreme;
mod random;

use event::Duration;

use crate::histogram::Histogram;
use extreme::Distribution;
use random::Random;

/// Standard deviations on either side that hold 95 %.
const CONFIDENCE: f64 = 1.96;
/// Stretches below which a fit follows accidents.
const BLOCKS_MIN: usize = 50;
/// Times that a fit is repeated on numbers drawn from itself.
const REPEATS: usize = 200;
/// A tail index above this has no steady mean: nothing can be read off such a fit.
const SHAPE_MAX: f64 = 0.5;
/// The horizon of the statement: so many times the run.
const HORIZON: f64 = 10.0;
/// The same numbers in every report of the same run.
const SEED: u64 = 7;

/// A percentile, and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile {
    /// As it was found.
    pub value: Duration,
    /// It is at least this.
    pub low: Duration,
    /// It is at most this.
    pub high: Duration,
}

/// The latency that a `share` of samples does not exceed, by the ranks that it may have (binomial,
/// as a normal distribution): samples are taken as independent. None where fewer than ten samples
/// lie above it, or where it is beyond the histogram.
pub fn percentile(latency: &Histogram, share: f64) -> Option<Percentile> {
    let samples = latency.samples as f64;
    if samples * (1.0 - share) < 10.0 - 1e-6 {
        return None;
    }
    let spread = CONFIDENCE * (samples * share * (1.0 - share)).sqrt() / samples;
    let at = |share: f64| latency.quantile(share.clamp(0.0, 1.0));
    Some(Percentile {
        value: at(share)?,
        low: at(share - spread)?,
        high: at(share + spread)?,
    })
}

/// The middle of the bucket that holds the most samples.
pub fn mode(latency: &Histogram) -> Option<Duration> {
    let (bucket, count) = latency
        .buckets
        .iter()
        .enumerate()
        .max_by_key(|(_, count)| **count)?;
    let middle = bucket as i64 * latency.width.as_ns() + latency.width.as_ns() / 2;
    (*count > 0).then_some(Duration::from_ns(middle))
}

/// The share of samples that may exceed what none of `samples` exceeded, with 95 % confidence: the
/// rule of three.
pub fn unseen_share_max(samples: u64) -> f64 {
    (3.0 / samples.max(1) as f64).min(1.0)
}

/// What the longest latencies of equal stretches say of a longer run.
#[derive(Clone, Debug, PartialEq)]
pub enum Tail {
    /// They follow an extreme-value distribution.
    Fit {
        /// Its shape: below zero it has an end, above zero a heavy tail.
        shape: f64,
        /// What ten times the run is expected to exceed once.
        expected: Duration,
        /// That expectation lies between these with 95 % confidence.
        low: Duration,
        /// See `low`.
        high: Duration,
    },
    /// Nothing can be said, and why.
    Refused(String),
}

/// Judges the longest latency of each stretch of a run, in their order.
pub fn tail(longest: &[Duration]) -> Tail {
    let values: Vec<f64> = longest.iter().map(|one| one.as_ns() as f64).collect();
    if values.len() < BLOCKS_MIN {
        return Tail::Refused(format!(
            "{} stretches are too few; {BLOCKS_MIN} are needed: measure for longer",
            values.len()
        ));
    }
    if let Some(reason) = not_of_one_kind(&values) {
        return Tail::Refused(reason);
    }
    let Some(fitted) = Distribution::fit(&values) else {
        return Tail::Refused("the stretches hardly differ: there is no tail to follow".into());
    };
    if fitted.shape() > SHAPE_MAX {
        return Tail::Refused(format!(
            "the tail is too heavy to be followed (index {:.2}): single events rule it; find them \
             with --over",
            fitted.shape()
        ));
    }
    let horizon = HORIZON * values.len() as f64;
    let distance = fitted.distance(&values);
    let mut random = Random::new(SEED);
    let mut further = 0;
    let mut levels: Vec<f64> = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        let drawn: Vec<f64> = values.iter().map(|_| fitted.level(random.next())).collect();
        if let Some(again) = Distribution::fit(&drawn) {
            further += usize::from(again.distance(&drawn) >= distance);
            levels.push(again.level(1.0 - 1.0 / horizon));
        }
    }
    // Of numbers that do follow it, one in twenty lies so far off.
    if further * 20 < levels.len() {
        let what = "the stretches do not follow an extreme-value distribution";
        return Tail::Refused(format!("{what}: they have more than one cause"));
    }
    levels.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (levels.len() as f64 * share) as usize;
        levels
            .get(rank.min(levels.len() - 1))
            .copied()
            .unwrap_or_default()
    };
    let ns = |value: f64| Duration::from_ns(value.round() as i64);
    Tail::Fit {
        shape: fitted.shape(),
        expected: ns(fitted.level(1.0 - 1.0 / horizon)),
        low: ns(at(0.025)),
        high: ns(at(0.975)),
    }
}

/// A fit wants numbers that one cause made, each for itself: no trend, no memory.
fn not_of_one_kind(values: &[f64]) -> Option<String> {
    let count = values.len() as f64;
    let (first, second) = values.split_at(values.len() / 2);
    // Mann and Whitney: how often a stretch of the second half is longer than one of the first.
    let longer: f64 = second
        .iter()
        .flat_map(|late| first.iter().map(move |early| (late, early)))
        .map(|(late, early)| match late.total_cmp(early) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        })
        .sum();
    let (n, m) = (first.len() as f64, second.len() as f64);
    let score = (longer - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt();
    // Two tests are made: each may err once in forty.
    const LIMIT: f64 = 2.24;
    if score.abs() > LIMIT {
        return Some("the second half of the run differs from the first: the load changed".into());
    }
    let mean = values.iter().sum::<f64>() / count;
    let around = |value: &f64| value - mean;
    let whole: f64 = values.iter().map(|value| around(value).powi(2)).sum();
    let together: f64 = values
        .windows(2)
        .map(|two| around(&two[0]) * around(&two[1]))
        .sum();
    let memory = if whole > 0.0 { together / whole } else { 0.0 };
    (memory.abs() * count.sqrt() > LIMIT)
        .then(|| format!("neighbouring stretches depend on each other (correlation {memory:.2})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Recorder;

    #[test]
    fn a_percentile_lies_in_its_interval_and_too_few_samples_give_none() {
        let recorder = Recorder::new(Duration::from_ns(1), 20_000);
        (0..10_000).for_each(|ns| recorder.add(ns));
        let latency = recorder.read();
        let found = percentile(&latency, 0.99).expect("a hundred lie above");
        // The rank is 9 900 give or take 1.96 × √(10 000 × 0.99 × 0.01) = 19.5.
        let ns = [found.low, found.value, found.high].map(Duration::as_ns);
        assert_eq!(ns, [9_881, 9_900, 9_920]);
        assert_eq!(percentile(&latency, 0.9999), None);
        assert_eq!(unseen_share_max(3_000), 0.001);
    }

    #[test]
    fn the_mode_is_the_middle_of_the_fullest_bucket() {
        let recorder = Recorder::new(Duration::from_us(1), 8);
        assert_eq!(mode(&recorder.read()), None);
        [1_200, 3_100, 3_900]
            .into_iter()
            .for_each(|ns| recorder.add(ns));
        assert_eq!(mode(&recorder.read()), Some(Duration::from_ns(3_500)));
    }

    fn drawn(count: usize, of: impl Fn(usize, f64) -> f64) -> Vec<Duration> {
        let mut random = Random::new(1);
        let one = |at: usize| Duration::from_ns(of(at, random.next()) as i64);
        (0..count).map(one).collect()
    }

    /// Longest latencies around 20 us, as a Gumbel distribution has them.
    fn gumbel(share: f64) -> f64 {
        20_000.0 - 2_000.0 * (-share.ln()).ln()
    }

    #[test]
    fn a_tail_is_followed_only_where_it_can_be() {
        let refused = |longest: &[Duration], expect: &str| match tail(longest) {
            Tail::Refused(reason) => assert!(reason.contains(expect), "{reason}"),
            fit => panic!("{expect}: {fit:?}"),
        };
        refused(&drawn(49, |_, share| gumbel(share)), "too few");
        refused(&drawn(100, |_, _| 20_000.0), "hardly differ");
        let growing = drawn(100, |at, share| gumbel(share) + 200.0 * at as f64);
        refused(&growing, "second half");
        let wave = |at: usize, share: f64| gumbel(share) + 9_000.0 * (at as f64 / 3.0).sin();
        refused(&drawn(200, wave), "depend on each other");
        let heavy = drawn(200, |_, share| 20_000.0 + 1_000.0 * (1.0 / (1.0 - share)));
        refused(&heavy, "too heavy");
        let two = drawn(300, |_, share| {
            if share < 0.7 {
                20_000.0 + share
            } else {
                90_000.0 + share
            }
        });
        refused(&two, "more than one cause");
    }

    #[test]
    fn a_fit_finds_the_level_of_numbers_that_it_made_itself() {
        let longest = drawn(300, |_, share| gumbel(share));
        // Once in 3 000 stretches.
        let truth = Duration::from_ns(gumbel(1.0 - 1.0 / 3_000.0) as i64);
        match tail(&longest) {
            Tail::Fit {
                low,
                expected,
                high,
                shape,
            } => {
                assert!(low <= truth && truth <= high, "{low} {truth} {high}");
                assert!(low < expected && expected < high);
                assert!(shape.abs() < 0.2, "{shape}");
            }
            Tail::Refused(reason) => panic!("{reason}"),
        }
    }
}
