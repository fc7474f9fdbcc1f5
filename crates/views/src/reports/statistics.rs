//! Least, mean, greatest and deviation of durations, kept as exact sums.

/// A summary of durations, of the same size however many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub count: u64,
    pub min_ns: i64,
    pub max_ns: i64,
    pub total_ns: i128,
    /// Exact until it saturates, which takes a billion durations of ten years.
    squares: u128,
}

impl Summary {
    #[inline]
    pub fn add(&mut self, ns: i64) {
        if self.count == 0 {
            (self.min_ns, self.max_ns) = (ns, ns);
        }
        self.count += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.total_ns += i128::from(ns);
        let square = u128::from(ns.unsigned_abs()).pow(2);
        self.squares = self.squares.saturating_add(square);
    }

    /// Takes in another summary.
    pub fn join(&mut self, other: &Summary) {
        if self.count == 0 || other.count == 0 {
            if other.count > 0 {
                *self = *other;
            }
            return;
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.total_ns += other.total_ns;
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The mean; zero when there is nothing.
    pub fn mean_ns(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.total_ns as f64 / count as f64,
        }
    }

    /// The standard deviation of the sample; none of fewer than two.
    pub fn deviation_ns(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        let count = u128::from(self.count);
        let total = self.total_ns.unsigned_abs();
        let exact = count
            .checked_mul(self.squares)
            .zip(total.checked_mul(total));
        let spread = match exact {
            Some((squares, total)) => squares.saturating_sub(total) as f64,
            None => count as f64 * self.squares as f64 - (total as f64).powi(2),
        };
        let pairs = count as f64 * (count - 1) as f64;
        Some((spread.max(0.0) / pairs).sqrt())
    }
}

/// The standard deviation of a sample; none of fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((spread / (count - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_knows_least_mean_greatest_and_deviation() {
        let check = |values: &[i64], mean: f64, deviation: Option<f64>| {
            let mut summary = Summary::default();
            values.iter().for_each(|value| summary.add(*value));
            assert_eq!(summary.mean_ns(), mean);
            assert_eq!(summary.deviation_ns(), deviation, "{values:?}");
            assert_eq!(summary.min_ns, values.iter().copied().min().unwrap_or(0));
            assert_eq!(summary.max_ns, values.iter().copied().max().unwrap_or(0));
        };
        check(&[], 0.0, None);
        check(&[7], 7.0, None);
        check(
            &[2, 4, 4, 4, 5, 5, 7, 9],
            5.0,
            Some((32.0_f64 / 7.0).sqrt()),
        );
        // Equal values deviate by nothing, however large: no digit is lost.
        check(&[1 << 60, 1 << 60], (1_u64 << 60) as f64, Some(0.0));
    }
}
