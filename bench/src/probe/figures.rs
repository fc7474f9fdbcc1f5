//! Figures of a loop's runs: of one, the median of all, and of all as if they were one.

use report::LoopBins;
use serde_json::Value;

use super::Row;
use crate::stats::median;

/// The mean of the shortest 99.9 % of a run's iterations, in ns: what is longer was interrupted.
pub(super) fn kept_mean_ns(run: &Value) -> f64 {
    let bins = bins_ns(run);
    let count: u64 = bins.iter().map(|(_, count)| count).sum();
    let kept = count - count / 1000;
    let (mut seen, mut sum) = (0, 0.0);
    for (ns, count) in bins {
        let here = count.min(kept - seen);
        sum += ns * here as f64;
        seen += here;
    }
    sum / seen.max(1) as f64
}

/// Durations in ns and how many iterations had them; what is beyond all bins, as the longest.
fn bins_ns(run: &Value) -> Vec<(f64, u64)> {
    let ticks_per_ns = run["ticks_per_ns"].as_f64().unwrap_or(1.0);
    let rows = run["histogram"].as_array().into_iter().flatten();
    let bin = |row: &Value| {
        Some((
            row["ticks"].as_f64()? / ticks_per_ns,
            row["loops"].as_u64()?,
        ))
    };
    let mut bins: Vec<(f64, u64)> = rows.filter_map(bin).collect();
    let overruns = run["overruns"].as_u64().unwrap_or_default();
    if overruns > 0 {
        bins.push((run["max_ns"].as_f64().unwrap_or_default(), overruns));
    }
    bins
}

/// The median over all rounds.
pub(super) fn over_rounds(row: &Row, key: &str) -> f64 {
    let values: Vec<f64> = row
        .rounds
        .iter()
        .filter_map(|round| round[key].as_f64())
        .collect();
    median(&values).unwrap_or_default()
}

/// npt's figures of all rounds together, in ns, its variance in square ns.
#[derive(Debug, PartialEq)]
pub(super) struct Together {
    pub iterations: u64,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub variance: f64,
}

/// All rounds as if they were one run; they have the same number of iterations.
pub(super) fn together(rounds: &[Value]) -> Together {
    let values = |key: &'static str| rounds.iter().filter_map(move |run| run[key].as_f64());
    let count = rounds.len().max(1) as f64;
    let mean = values("mean_ns").sum::<f64>() / count;
    let squares = values("mean_ns").zip(values("variance_ns2"));
    let squares: f64 = squares.map(|(mean, variance)| variance + mean * mean).sum();
    Together {
        iterations: rounds.iter().filter_map(|run| run["loops"].as_u64()).sum(),
        min: values("min_ns").fold(f64::MAX, f64::min),
        max: values("max_ns").fold(0.0, f64::max),
        mean,
        variance: (squares / count - mean * mean).max(0.0),
    }
}

/// The histogram of all rounds, for a picture.
pub(super) fn bins(name: &str, rounds: &[Value]) -> LoopBins {
    let mut bins: Vec<(f64, u64)> = rounds.iter().flat_map(bins_ns).collect();
    bins.sort_by(|a, b| a.0.total_cmp(&b.0));
    LoopBins {
        name: name.to_owned(),
        bins,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(bins: &[(u64, u64)], overruns: u64) -> Value {
        let rows: Vec<Value> = bins
            .iter()
            .map(|(ticks, loops)| json!({"ticks": ticks, "loops": loops}))
            .collect();
        json!({"ticks_per_ns": 2.0, "histogram": rows, "overruns": overruns, "max_ns": 9e6})
    }

    #[test]
    fn the_longest_thousandth_is_not_in_the_kept_mean() {
        assert_eq!(kept_mean_ns(&run(&[(20, 999), (4000, 1)], 0)), 10.0);
        assert_eq!(kept_mean_ns(&run(&[(20, 1998)], 2)), 10.0);
        assert_eq!(kept_mean_ns(&run(&[(20, 1), (40, 1)], 0)), 15.0);
    }

    #[test]
    fn rounds_together_are_one_run() {
        let round = |min: f64, max: f64, mean: f64, variance: f64| {
            json!({"loops": 10, "min_ns": min, "max_ns": max, "mean_ns": mean,
                "variance_ns2": variance})
        };
        let found = together(&[round(1.0, 9.0, 4.0, 2.0), round(2.0, 30.0, 8.0, 6.0)]);
        let expect = Together {
            iterations: 20,
            min: 1.0,
            max: 30.0,
            mean: 6.0,
            variance: (2.0 + 16.0 + 6.0 + 64.0) / 2.0 - 36.0,
        };
        assert_eq!(found, expect);
        let bins = bins("x", &[run(&[(20, 1)], 1), run(&[(10, 2)], 0)]).bins;
        assert_eq!(bins, [(5.0, 2), (10.0, 1), (9e6, 1)]);
    }
}
