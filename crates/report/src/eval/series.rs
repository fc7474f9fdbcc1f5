//! The longest latency of each stretch of a run, from what the histograms held at its ends.

use event::Duration;
use measure::histogram::Histogram;
use serde_json::{Value, json};

/// A stretch that saw samples: when it ended, since the begin, and its longest latency.
#[derive(Clone, Debug, Default)]
pub struct Series {
    before: Option<Histogram>,
    points: Vec<(Duration, Duration)>,
}

impl Series {
    /// One that goes on after these pairs of when a stretch ended and its longest latency.
    pub fn after(points: Vec<(Duration, Duration)>) -> Series {
        Series {
            before: None,
            points,
        }
    }

    /// Ends a stretch at `end`; `now` is what was recorded since the begin of the run.
    pub fn add(&mut self, end: Duration, now: Histogram) {
        if let Some(longest) = now.longest_since(self.before.as_ref()) {
            self.points.push((end, longest));
        }
        self.before = Some(now);
    }

    /// The longest latencies, in their order.
    pub fn longest(&self) -> Vec<Duration> {
        self.points.iter().map(|(_, longest)| *longest).collect()
    }

    /// Pairs of when a stretch ended and its longest latency.
    pub(super) fn json(&self) -> Value {
        let point = |(end, longest): &(Duration, Duration)| json!([end.as_ns(), longest.as_ns()]);
        self.points.iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use measure::histogram::Recorder;

    use super::*;

    #[test]
    fn a_stretch_has_the_longest_of_its_own_samples() {
        let recorder = Recorder::new(Duration::from_us(1), 10);
        let mut series = Series::default();
        let mut check = |samples_us: &[i64], expect_us: &[i64]| {
            samples_us.iter().for_each(|us| recorder.add(us * 1000));
            series.add(Duration::from_ms(1), recorder.read());
            let found: Vec<i64> = series
                .longest()
                .iter()
                .map(|one| one.as_ns() / 1000)
                .collect();
            assert_eq!(found, expect_us);
        };
        check(&[], &[]);
        check(&[3, 7], &[7]);
        // To a bucket's width.
        check(&[2], &[7, 3]);
        check(&[90], &[7, 3, 90]);
        check(&[50], &[7, 3, 90, 90]);
        check(&[], &[7, 3, 90, 90]);
    }
}
