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
        let ratio = median(&ratios)?;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                let sample: Vec<f64> = ratios
                    .iter()
                    .map(|_| ratios[random.below(ratios.len())])
                    .collect();
                median(&sample)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        Some(Comparison {
            ratio,
            low: medians[RESAMPLES * 25 / 1000],
            high: medians[RESAMPLES * 975 / 1000 - 1],
        })
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

/// xorshift64: the same data gives the same interval.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
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
}
