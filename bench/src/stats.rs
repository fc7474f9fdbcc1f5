//! Medians, and the ratio of two things that were measured in pairs.

/// So many resamples give the interval two digits.
const RESAMPLES: usize = 10_000;

/// The middle value; none without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0)
}

/// The largest value; none without values.
pub fn max(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(f64::total_cmp)
}

/// The median of `values` and its 95 % interval, by bootstrap; none without values.
fn median_within(values: &[f64]) -> Option<(f64, f64, f64)> {
    let middle = median(values)?;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let sample: Vec<f64> = values
                .iter()
                .map(|_| values[random.below(values.len())])
                .collect();
            median(&sample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let (low, high) = (RESAMPLES * 25 / 1000, RESAMPLES * 975 / 1000 - 1);
    Some((middle, medians[low], medians[high]))
}

/// How B compares with A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The median of B ÷ A.
    pub ratio: f64,
    /// The 95 % interval of that median, by bootstrap.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Comparison {
    /// Of pairs (A, B) that were measured one after the other; none without pairs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Comparison> {
        let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
        let (ratio, low, high) = median_within(&ratios)?;
        Some(Comparison { ratio, low, high })
    }

    /// Whether B differs from A at all.
    pub fn is_resolved(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// The change in words: `+3.1 % [+1.2, +4.8]`, or with the interval `not resolved`.
    pub fn words(&self) -> String {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let (low, high) = (percent(self.low), percent(self.high));
        if !self.is_resolved() {
            return format!("not resolved [{low:+.1}, {high:+.1}]");
        }
        format!("{:+.1} % [{low:+.1}, {high:+.1}]", percent(self.ratio))
    }
}

/// By how much B is more than A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The median of B − A.
    pub middle: f64,
    /// The 95 % interval of that median, by bootstrap.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Difference {
    /// Of pairs (A, B) that were measured one after the other; none without pairs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Difference> {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
        let (middle, low, high) = median_within(&differences)?;
        Some(Difference { middle, low, high })
    }

    /// The difference in words: `+3.1 [+1.2, +4.8]`, or with the interval `not resolved`.
    pub fn words(&self) -> String {
        let (low, high) = (self.low, self.high);
        if low <= 0.0 && high >= 0.0 {
            return format!("not resolved [{low:+.1}, {high:+.1}]");
        }
        format!("{:+.1} [{low:+.1}, {high:+.1}]", self.middle)
    }
}

/// xorshift64: the same data gives the same interval, and the same rounds have the same order.
pub struct Random(pub u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// The places of so many things, in another order each time.
    pub fn shuffled(&mut self, length: usize) -> Vec<usize> {
        let mut places: Vec<usize> = (0..length).collect();
        for last in (1..length).rev() {
            places.swap(last, self.below(last + 1));
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_the_sorted_values() {
        let check = |values: &[f64], expect: Option<f64>| assert_eq!(median(values), expect);
        check(&[], None);
        check(&[3.0, 1.0, 2.0], Some(2.0));
        check(&[4.0, 1.0, 2.0, 3.0], Some(2.5));
    }

    #[test]
    fn a_difference_within_the_noise_is_not_resolved() {
        let check = |pairs: &[(f64, f64)], expect: &str| {
            assert_eq!(
                Comparison::of(pairs).expect("pairs").words(),
                expect,
                "{pairs:?}"
            );
        };
        check(&[(10.0, 11.0); 10], "+10.0 % [+10.0, +10.0]");
        let noise: Vec<_> = (0..10)
            .map(|at| (10.0, if at % 2 == 0 { 9.0 } else { 11.0 }))
            .collect();
        check(&noise, "not resolved [-10.0, +10.0]");
        assert_eq!(Comparison::of(&[]), None);
    }

    #[test]
    fn a_difference_has_the_unit_of_what_was_measured() {
        let check = |pairs: &[(f64, f64)], expect: &str| {
            let difference = Difference::of(pairs).expect("pairs");
            assert_eq!(difference.words(), expect, "{pairs:?}");
        };
        check(&[(10.0, 12.5); 10], "+2.5 [+2.5, +2.5]");
        check(&[(12.5, 10.0); 10], "-2.5 [-2.5, -2.5]");
        let noise: Vec<_> = (0..10)
            .map(|at| (10.0, if at % 2 == 0 { 9.0 } else { 11.0 }))
            .collect();
        check(&noise, "not resolved [-1.0, +1.0]");
        assert_eq!(Difference::of(&[]), None);
    }

    #[test]
    fn each_round_has_every_way_once_and_not_always_in_one_order() {
        let mut random = Random(7);
        let rounds: Vec<Vec<usize>> = (0..10).map(|_| random.shuffled(5)).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
        assert!(rounds.iter().any(|round| *round != rounds[0]));
    }
}
