//! Parts of a histogram: what came between two looks at it, as it is kept in a file, and how parts
//! become one again.

use event::{Duration, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::{Extremes, Histogram, beyond};

/// What a histogram gained from one look to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Portion {
    /// Samples.
    pub samples: u64,
    below_zero: u64,
    overflows: u64,
    /// The same by where they lie; files of before have none.
    #[serde(default)]
    beyond: Vec<(usize, u64)>,
    sum_ns: i64,
    sum_squares: f64,
    /// Pairs of a bucket's place and the samples in it.
    buckets: Vec<(usize, u64)>,
    /// The longest of this portion, to a bucket's width; exact where none was longer before.
    pub longest_ns: Option<i64>,
    /// Of all samples until then, not of this portion alone.
    so_far: Option<SoFar>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct SoFar {
    min_ns: i64,
    last_ns: i64,
    max_ns: i64,
    max_sample: u64,
}

impl Portion {
    /// From `before`, which is empty where it is none, to `now`.
    pub fn between(before: Option<&Histogram>, now: &Histogram) -> Portion {
        let was = |place: usize| before.map_or(0, |before| before.buckets[place]);
        let grown = now.buckets.iter().enumerate().filter_map(|(place, count)| {
            let grown = count.saturating_sub(was(place));
            (grown > 0).then_some((place, grown))
        });
        let since = |of: fn(&Histogram) -> u64| of(now).saturating_sub(before.map_or(0, of));
        Portion {
            samples: since(|one| one.samples),
            below_zero: since(|one| one.below_zero),
            overflows: since(|one| one.overflows),
            beyond: beyond::grown(before.map_or(&[], |before| &before.beyond), &now.beyond),
            sum_ns: now.sum_ns - before.map_or(0, |before| before.sum_ns),
            sum_squares: now.sum_squares - before.map_or(0.0, |before| before.sum_squares),
            buckets: grown.collect(),
            longest_ns: now.longest_since(before).map(Duration::as_ns),
            so_far: now.extremes.map(|extremes| SoFar {
                min_ns: extremes.min.as_ns(),
                last_ns: extremes.last.as_ns(),
                max_ns: extremes.max.as_ns(),
                max_sample: extremes.max_sample,
            }),
        }
    }

    /// Places of buckets, and the samples in each.
    pub fn counts(&self) -> &[(usize, u64)] {
        &self.buckets
    }

    /// Samples below zero, and beyond the last bucket.
    pub fn outside(&self) -> (u64, u64) {
        (self.below_zero, self.overflows)
    }

    /// All samples together.
    pub fn sum(&self) -> Duration {
        Duration::from_ns(self.sum_ns)
    }
}

impl Histogram {
    /// One without samples.
    pub fn empty(width: Duration, buckets: usize) -> Histogram {
        Histogram {
            width,
            buckets: vec![0; buckets],
            samples: 0,
            below_zero: 0,
            overflows: 0,
            overflow_samples: Vec::new(),
            beyond: Vec::new(),
            extremes: None,
            sum_ns: 0,
            sum_squares: 0.0,
        }
    }

    /// The longest sample since `before`, to a bucket's width; exact where it is the longest of
    /// all.
    pub fn longest_since(&self, before: Option<&Histogram>) -> Option<Duration> {
        let extremes = self.extremes?;
        let longest_before = before.and_then(|before| before.extremes).map(|one| one.max);
        if longest_before.is_none_or(|longest| extremes.max > longest) {
            return Some(extremes.max);
        }
        let before = before?;
        if self.overflows > before.overflows {
            // Beyond the buckets, and no longer than the longest: that is the bound.
            return Some(extremes.max);
        }
        let grown = self
            .buckets
            .iter()
            .zip(&before.buckets)
            .rposition(|(now, before)| now > before)?;
        let end_ns = (grown as i64 + 1) * self.width.as_ns();
        Some(Duration::from_ns(end_ns).min(extremes.max))
    }

    /// Goes on by the next portion of the same measurement.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for a bucket that this one has not.
    pub fn add(&mut self, next: &Portion) -> Result<()> {
        for &(place, count) in &next.buckets {
            let Some(bucket) = self.buckets.get_mut(place) else {
                let what = "an interval has a bucket that its histogram has not";
                let error = Error::new(ErrorKind::Corrupt, what).found(place.to_string());
                return Err(error.fix("measure anew: the file was changed"));
            };
            *bucket = bucket.saturating_add(count);
        }
        self.samples = self.samples.saturating_add(next.samples);
        self.below_zero = self.below_zero.saturating_add(next.below_zero);
        self.overflows = self.overflows.saturating_add(next.overflows);
        beyond::join(&mut self.beyond, &next.beyond);
        self.sum_ns = self.sum_ns.wrapping_add(next.sum_ns);
        self.sum_squares += next.sum_squares;
        if let Some(so_far) = next.so_far {
            self.extremes = Some(Extremes {
                min: Duration::from_ns(so_far.min_ns),
                last: Duration::from_ns(so_far.last_ns),
                max: Duration::from_ns(so_far.max_ns),
                max_sample: so_far.max_sample,
            });
        }
        Ok(())
    }

    /// Takes a later measurement with the same buckets in, whose samples are counted behind these.
    pub fn join(&mut self, later: &Histogram) {
        for (bucket, count) in self.buckets.iter_mut().zip(&later.buckets) {
            *bucket = bucket.saturating_add(*count);
        }
        let first = self.samples;
        self.extremes = match (self.extremes, later.extremes) {
            (one, None) | (None, one) => one,
            (Some(own), Some(later)) => Some(Extremes {
                min: own.min.min(later.min),
                last: later.last,
                max: own.max.max(later.max),
                max_sample: match later.max > own.max {
                    true => first + later.max_sample,
                    false => own.max_sample,
                },
            }),
        };
        let named = later.overflow_samples.iter().map(|number| first + number);
        self.overflow_samples.extend(named);
        self.overflow_samples.truncate(super::OVERFLOWS_NAMED);
        self.samples = self.samples.saturating_add(later.samples);
        self.below_zero = self.below_zero.saturating_add(later.below_zero);
        self.overflows = self.overflows.saturating_add(later.overflows);
        beyond::join(&mut self.beyond, &later.beyond);
        self.sum_ns = self.sum_ns.wrapping_add(later.sum_ns);
        self.sum_squares += later.sum_squares;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::Recorder;

    const WIDTH: Duration = Duration::from_ns(1000);
    const BUCKETS: usize = 100;

    fn recorder() -> Recorder {
        Recorder::new(WIDTH, BUCKETS)
    }

    fn recorded<'a>(samples_ns: impl IntoIterator<Item = &'a i64>) -> Histogram {
        let recorder = recorder();
        samples_ns.into_iter().for_each(|&ns| recorder.add(ns));
        recorder.read()
    }

    /// What stands in a file, read again.
    fn written(portion: &Portion) -> Portion {
        let text = serde_json::to_string(portion).expect("JSON");
        serde_json::from_str(&text).expect("the same")
    }

    proptest! {
        #[test]
        fn portions_add_up_to_what_was_recorded(
            parts in prop::collection::vec(prop::collection::vec(-5i64..150_000, 0..40), 0..6)
        ) {
            let recorder = recorder();
            let mut before: Option<Histogram> = None;
            let mut sum = Histogram::empty(WIDTH, BUCKETS);
            for part in &parts {
                part.iter().for_each(|&ns| recorder.add(ns));
                let now = recorder.read();
                let portion = written(&Portion::between(before.as_ref(), &now));
                prop_assert_eq!(portion.samples, part.len() as u64);
                sum.add(&portion).expect("buckets");
                before = Some(now);
            }
            let mut whole = recorder.read();
            whole.overflow_samples.clear();
            prop_assert!((whole.sum_squares - sum.sum_squares).abs() <= whole.sum_squares * 1e-9);
            sum.sum_squares = whole.sum_squares;
            prop_assert_eq!(sum, whole);
        }

        #[test]
        fn measurements_that_are_joined_are_one_of_all_their_samples(
            first in prop::collection::vec(0i64..150_000, 0..40),
            second in prop::collection::vec(0i64..150_000, 0..40),
        ) {
            let mut joined = recorded(&first);
            joined.join(&recorded(&second));
            let mut whole = recorded(first.iter().chain(&second));
            let apart = (whole.sum_squares - joined.sum_squares).abs();
            prop_assert!(apart <= whole.sum_squares * 1e-9);
            whole.sum_squares = joined.sum_squares;
            prop_assert_eq!(joined, whole);
        }
    }

    #[test]
    fn a_bucket_that_is_not_there_is_an_error() {
        let mut portion = Portion::between(None, &recorded(&[1]));
        portion.buckets.push((BUCKETS, 1));
        assert!(Histogram::empty(WIDTH, BUCKETS).add(&portion).is_err());
    }
}
