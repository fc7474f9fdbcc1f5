//! Two parts of stores beside each other: which phases became slower.
//!
//! Each side is cut into ten parts of as many intervals. A phase is slower when the percentiles of
//! the parts are, by more than chance, and that of all is by more than two buckets: what lasts an
//! hour is one part and no trend.

use std::collections::{BTreeMap, BTreeSet};

use event::{Duration, Result};

use crate::interval::{Head, Interval, Scope};
use crate::kind::Kind;
use crate::store::{Range, Store};
use crate::sum::PhaseSum;

/// Parts of a side.
const PARTS: usize = 10;
/// In all comparisons together.
const CHANCE_MAX: f64 = 0.01;
/// A bucket is at most a sixteenth wide: two of them.
const RATIO_MIN: f64 = 1.125;
/// Fewer samples have no p99.9.
const SAMPLES_MIN: u64 = 1000;
const QUANTILE: f64 = 0.999;

/// How probable two sorted lists are as uneven as they are when they are of one source.
pub type ByChance = fn(&[Duration], &[Duration]) -> Option<f64>;

/// A phase of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseSide {
    /// All samples.
    pub sum: PhaseSum,
    /// p99.9 of each part, sorted.
    pub parts: Vec<Duration>,
}

/// A part of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreSide {
    /// Closed intervals.
    pub intervals: u64,
    /// From the first to the last; what is missing in them.
    pub head: Head,
    /// The kernels that ran.
    pub kernels: BTreeSet<String>,
    /// By scope, and phase or what a tracker measures.
    pub phases: BTreeMap<(Scope, Kind), PhaseSide>,
}

/// What became of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseTrend {
    /// By more than chance, and more than two buckets.
    Slower,
    /// The same the other way.
    Faster,
    /// What differs can be chance, or lies between two buckets.
    NotResolved,
    /// Too few samples on a side, or too few intervals.
    TooFew,
}

/// A phase of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseChange {
    /// Whose.
    pub scope: Scope,
    /// Which phase, or what a tracker measures.
    pub phase: Kind,
    /// Before and after: samples, p50, p99.9, the longest.
    pub sides: [(u64, [Duration; 3]); 2],
    /// How probable the parts differ so by chance; none with too few.
    pub p: Option<f64>,
    /// What that says.
    pub trend: PhaseTrend,
}

/// What differs.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreComparison {
    /// Before and after.
    pub sides: [StoreSide; 2],
    /// Phases that both sides have.
    pub changes: Vec<PhaseChange>,
}

impl StoreSide {
    /// Reads the intervals that end in this time, so that none is on two sides.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn read(store: &Store, range: Range) -> Result<StoreSide> {
        let is_in = |head: &Head| range.begin_ns < head.end_ns && head.end_ns <= range.end_ns;
        let heads = store.heads()?;
        let total = heads.iter().filter(|(_, _, head)| is_in(head)).count();
        let runs: BTreeMap<_, _> = store.runs()?.into_iter().collect();
        let mut side = StoreSide::default();
        let (mut part, mut whole) = (Interval::default(), Interval::default());
        let mut number = 0;
        store.read(range, |run, interval| {
            let head = &interval.head;
            if !is_in(head) {
                return Ok(());
            }
            if number == 0 {
                side.head.begin_ns = head.begin_ns;
            }
            side.kernels
                .extend(runs.get(&run).map(|run| run.kernel.clone()));
            let slot = |number: usize| number * PARTS / total.max(1);
            number += 1;
            let ends = number == total || slot(number) != slot(number - 1);
            part.append(without_names(interval));
            if ends {
                side.end_part(&part);
                whole.append(std::mem::take(&mut part));
            }
            Ok(())
        })?;
        side.intervals = number as u64;
        side.head = Head {
            begin_ns: side.head.begin_ns,
            ..whole.head.clone()
        };
        for ((scope, phase), of) in &mut side.phases {
            of.sum = whole.phase(*scope, phase.clone()).unwrap_or_default();
            of.parts.sort_unstable();
        }
        Ok(side)
    }

    fn end_part(&mut self, part: &Interval) {
        for scope in Scope::ALL {
            for phase in part.kinds(scope) {
                let quantile = part
                    .phase(scope, phase.clone())
                    .and_then(|sum| sum.quantile(QUANTILE));
                if let Some(quantile) = quantile {
                    let of = self.phases.entry((scope, phase)).or_default();
                    of.parts.push(quantile);
                }
            }
        }
    }
}

/// What is added up for a comparison.
fn without_names(interval: Interval) -> Interval {
    Interval {
        worst: Vec::new(),
        linear: Vec::new(),
        late: Vec::new(),
        ..interval
    }
}

/// Compares two parts; `by_chance` is asked about those of each phase.
pub fn compare_stores(before: StoreSide, after: StoreSide, by_chance: ByChance) -> StoreComparison {
    let both = before.phases.iter().filter_map(|(key, one)| {
        let other = after.phases.get(key)?;
        Some((key.clone(), one, other))
    });
    let both: Vec<_> = both.collect();
    let bound = CHANCE_MAX / both.len().max(1) as f64;
    let changes = both
        .iter()
        .map(|((scope, phase), before, after)| {
            let p = by_chance(&before.parts, &after.parts);
            PhaseChange {
                scope: *scope,
                phase: phase.clone(),
                sides: [figures(before), figures(after)],
                p,
                trend: trend(before, after, p, bound),
            }
        })
        .collect();
    StoreComparison {
        changes,
        sides: [before, after],
    }
}

fn figures(side: &PhaseSide) -> (u64, [Duration; 3]) {
    let quantile = |quantile| side.sum.quantile(quantile).unwrap_or_default();
    let samples = side.sum.histogram.samples();
    (samples, [quantile(0.5), quantile(QUANTILE), side.sum.max])
}

fn trend(before: &PhaseSide, after: &PhaseSide, p: Option<f64>, bound: f64) -> PhaseTrend {
    let ((few, [_, old, _]), (many, [_, new, _])) = (figures(before), figures(after));
    let Some(p) = p.filter(|_| few.min(many) >= SAMPLES_MIN) else {
        return PhaseTrend::TooFew;
    };
    let (old_ns, new_ns) = (old.as_ns() as f64, new.as_ns() as f64);
    if p > bound {
        PhaseTrend::NotResolved
    } else if new_ns >= old_ns * RATIO_MIN {
        PhaseTrend::Slower
    } else if old_ns >= new_ns * RATIO_MIN {
        PhaseTrend::Faster
    } else {
        PhaseTrend::NotResolved
    }
}

#[cfg(test)]
mod tests {
    use abi::monitor::Phase;
    use event::Cpu;

    use super::*;
    use crate::buckets::Histogram;
    use crate::interval::{Run, Series};
    use crate::store::{Appended, Limits};
    use crate::test_data::MINUTE_NS;

    /// The share of parts that are longer on the other side, as a stand-in for a rank test: 1 when
    /// the two are alike, 0 when they lie apart.
    fn apart(one: &[Duration], other: &[Duration]) -> Option<f64> {
        let lies_apart = |low: &[Duration], high: &[Duration]| low.last() < high.first();
        let enough = one.len() >= 8 && other.len() >= 8;
        let is_apart = lies_apart(one, other) || lies_apart(other, one);
        enough.then_some(if is_apart { 0.0 } else { 1.0 })
    }

    fn interval(number: i64, bucket: u16) -> Interval {
        Interval {
            head: Head {
                begin_ns: number * MINUTE_NS,
                end_ns: (number + 1) * MINUTE_NS - 1,
                elapsed: Duration::from_ns(MINUTE_NS),
                ..Head::default()
            },
            series: vec![Series {
                scope: Scope::RealTime,
                phase: Phase::Switch.into(),
                cpu: Cpu(0),
                sum: Duration::ZERO,
                min: Duration::ZERO,
                max: Duration::MAX,
                histogram: Histogram(vec![(bucket, 500)]),
            }],
            ..Interval::default()
        }
    }

    /// Forty intervals with these buckets, against forty with those.
    fn trend_of(before: impl Fn(i64) -> u16, after: impl Fn(i64) -> u16) -> PhaseTrend {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("monitor.db");
        let mut store =
            Store::create(&path, &Run::default(), 0, Limits::default()).expect("a store");
        for number in 0..80 {
            let bucket = if number < 40 {
                before(number)
            } else {
                after(number - 40)
            };
            assert!(matches!(
                store.append(interval(number, bucket)),
                Appended::Stored
            ));
        }
        let side = |begin: i64, end: i64| {
            let range = Range {
                begin_ns: begin * MINUTE_NS,
                end_ns: end * MINUTE_NS - 1,
            };
            StoreSide::read(&store, range).expect("a side")
        };
        let (before, after) = (side(0, 40), side(40, 80));
        assert_eq!((before.intervals, after.intervals), (40, 40));
        assert_eq!(
            after.phases[&(Scope::RealTime, Phase::Switch.into())]
                .parts
                .len(),
            PARTS
        );
        let comparison = compare_stores(before, after, apart);
        comparison.changes[0].trend
    }

    #[test]
    fn a_phase_is_slower_when_most_parts_are_and_by_more_than_two_buckets() {
        let check = |before: u16, after: u16, expect: PhaseTrend| {
            assert_eq!(trend_of(|_| before, |_| after), expect, "{before} {after}");
        };
        check(200, 220, PhaseTrend::Slower);
        check(220, 200, PhaseTrend::Faster);
        check(200, 200, PhaseTrend::NotResolved);
        check(200, 201, PhaseTrend::NotResolved);
        // An hour of a hog: two of ten parts.
        let hog = |number: i64| if number < 8 { 260 } else { 200 };
        assert_eq!(trend_of(|_| 200, hog), PhaseTrend::NotResolved);
    }

    #[test]
    fn nothing_is_said_of_a_few_intervals_or_samples() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("monitor.db");
        let mut store =
            Store::create(&path, &Run::default(), 0, Limits::default()).expect("a store");
        for number in 0..5 {
            store.append(interval(number, 200));
        }
        let side = || StoreSide::read(&store, Range::ALL).expect("a side");
        let comparison = compare_stores(side(), side(), apart);
        assert_eq!(comparison.changes[0].trend, PhaseTrend::TooFew);
        assert_eq!(comparison.changes[0].sides[0].0, 2500);
    }
}
