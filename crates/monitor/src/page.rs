//! What the store says, for a page: histograms by CPU, the worst of each stretch of time, the
//! longest of all.

use std::collections::BTreeSet;

use abi::monitor::Phase;
use event::{Duration, Result};
use serde_json::{Value, json};

use crate::buckets::Histogram;
use crate::export::worst_json;
use crate::interval::{Head, Interval, Scope, Series, Worst};
use crate::kind::Kind;
use crate::late::{Late, late_json};
use crate::store::{Range, Store};

/// Stretches of time that a page draws, at most.
const STRETCHES_MAX: usize = 1200;
/// Ridges that a page draws, at most: each is a histogram of a stretch of time.
const RIDGES_MAX: usize = 48;
/// The longest that are listed.
const WORST_MAX: usize = 100;

/// What a page asks for.
#[derive(Clone, Debug)]
pub struct PageQuestion {
    /// Of what time.
    pub range: Range,
    /// Whose; none: of real-time tasks, or of others where there are none.
    pub scope: Option<Scope>,
    /// Which phase, or what a tracker measures; none: from the timer to the CPU where timers wake,
    /// else from the run queue.
    pub phase: Option<Kind>,
}

/// Intervals behind each other, as one point of a picture.
#[derive(Clone, Debug, Default)]
struct Stretch {
    begin_ns: i64,
    end_ns: i64,
    max: Duration,
    histogram: Histogram,
    lost: u64,
    intervals: u64,
}

impl Stretch {
    /// This one and what follows it.
    fn add(&mut self, next: &Stretch) {
        self.end_ns = next.end_ns;
        self.max = self.max.max(next.max);
        self.histogram.add(&next.histogram);
        self.lost += next.lost;
        self.intervals += next.intervals;
    }
}

/// What was read of the store.
#[derive(Default)]
struct Walked {
    sum: Interval,
    stretches: Vec<Stretch>,
    runs: Vec<i64>,
    intervals: u64,
}

impl Walked {
    /// Takes in an interval. Where there are too many stretches, two become one.
    fn take(&mut self, run: i64, head: Head, series: Vec<Series>) {
        let mut stretch = Stretch {
            begin_ns: head.begin_ns,
            end_ns: head.end_ns,
            lost: head.lost + head.unsaved,
            intervals: 1,
            ..Stretch::default()
        };
        for one in &series {
            stretch.max = stretch.max.max(one.max);
            stretch.histogram.add(&one.histogram);
        }
        self.stretches.push(stretch);
        if self.stretches.len() > 2 * STRETCHES_MAX {
            self.stretches = joined(&self.stretches, 2);
        }
        if self.runs.last() != Some(&run) {
            self.runs.push(run);
        }
        self.intervals += 1;
        self.sum.append(Interval {
            head,
            series,
            ..Interval::default()
        });
    }
}

/// Each `many` of them as one.
fn joined(stretches: &[Stretch], many: usize) -> Vec<Stretch> {
    let one = |chunk: &[Stretch]| {
        let mut sum = chunk[0].clone();
        chunk[1..].iter().for_each(|next| sum.add(next));
        sum
    };
    stretches.chunks(many.max(1)).map(one).collect()
}

/// What a page shows of the store.
///
/// # Errors
/// When the store cannot be read.
pub fn page_json(store: &Store, question: PageQuestion) -> Result<Value> {
    let known = store.counted(question.range)?;
    let (scope, phase) = match (question.scope, question.phase) {
        (Some(scope), Some(phase)) => (scope, phase),
        (scope, phase) => usual(&known, scope, phase),
    };
    let mut walked = Walked::default();
    store.read_kind(question.range, (scope, &phase), |run, head, series| {
        walked.take(run, head, series);
    })?;
    let worst = store.longest_of_kind(question.range, (scope, &phase), WORST_MAX)?;
    while walked.stretches.len() > STRETCHES_MAX {
        walked.stretches = joined(&walked.stretches, 2);
    }
    let ridges = joined(
        &walked.stretches,
        walked.stretches.len().div_ceil(RIDGES_MAX),
    );
    let runs = store.runs()?;
    let last = runs.iter().filter(|(id, _)| walked.runs.contains(id));
    let last = last.map(|(_, run)| run).next_back();
    let has = |scope: Scope| known.iter().any(|(of, _)| *of == scope);
    let scopes = Scope::ALL.into_iter().filter(|scope| has(*scope));
    let phases = known.iter().filter(|(of, _)| *of == scope);
    let head = &walked.sum.head;
    Ok(json!({
        "schema": "rtscope.monitor.page",
        "version": 1,
        "host": last.map(|run| &run.host),
        "kernel": last.map(|run| &run.kernel),
        "runs": walked.runs.len(),
        "intervals": walked.intervals,
        "scope": scope.name(),
        "phase": phase.name(),
        "scopes": scopes.map(|scope| scope.name()).collect::<Vec<_>>(),
        "phases": phases.map(|(_, kind)| kind.name()).collect::<Vec<_>>(),
        "lost": head.lost,
        "hidden": head.hidden,
        "lost_tracked": head.lost_tracked,
        "unsaved": head.unsaved,
        "cost_ns": head.cost.as_ns(),
        "elapsed_ns": head.elapsed.as_ns(),
        "cpus": cpus(&walked.sum, scope, &phase),
        "over_time": walked.stretches.iter().map(stretch_json).collect::<Vec<_>>(),
        "ridges": ridges.iter().map(ridge_json).collect::<Vec<_>>(),
        "worst": worst.iter().map(with_late).collect::<Vec<_>>(),
    }))
}

/// A longest sample, and what a watch said of it if it was over the limit.
fn with_late((worst, late): &(Worst, Option<Late>)) -> Value {
    let mut object = worst_json(worst);
    object["late"] = late.as_ref().map_or(Value::Null, late_json);
    object
}

/// What is shown to who did not choose: what there are samples of.
fn usual(
    known: &BTreeSet<(Scope, Kind)>,
    scope: Option<Scope>,
    phase: Option<Kind>,
) -> (Scope, Kind) {
    let has = |scope: Scope| known.iter().any(|(of, _)| *of == scope);
    let first = Scope::ALL.into_iter().find(|scope| has(*scope));
    let scope = scope.or(first).unwrap_or(Scope::RealTime);
    let whole = Kind::from(Phase::TimerWakeupSwitch);
    let usual = match known.contains(&(scope, whole.clone())) {
        true => whole,
        false => Phase::Switch.into(),
    };
    (scope, phase.unwrap_or(usual))
}

fn ridge_json(stretch: &Stretch) -> Value {
    json!({
        "begin_ns": stretch.begin_ns,
        "end_ns": stretch.end_ns,
        "buckets_ns": stretch.histogram.bounds_ns().collect::<Vec<_>>(),
    })
}

fn stretch_json(stretch: &Stretch) -> Value {
    let quantile = |share: f64| {
        let found = stretch.histogram.quantile(share, stretch.max);
        found.map(Duration::as_ns)
    };
    json!({
        "begin_ns": stretch.begin_ns,
        "end_ns": stretch.end_ns,
        "p50_ns": quantile(0.5),
        "p99_ns": quantile(0.99),
        "p999_ns": quantile(0.999),
        "max_ns": stretch.max.as_ns(),
        "lost": stretch.lost,
        "intervals": stretch.intervals,
    })
}

fn cpus(sum: &Interval, scope: Scope, phase: &Kind) -> Value {
    let of_phase = sum.series.iter();
    let of_phase = of_phase.filter(|one| one.scope == scope && one.phase == *phase);
    let cpu = |one: &Series| {
        let samples = one.histogram.samples();
        let quantile = |share: f64| one.histogram.quantile(share, one.max).map(Duration::as_ns);
        json!({
            "cpu": one.cpu.0,
            "samples": samples,
            "min_ns": one.min.as_ns(),
            "mean_ns": one.sum.as_ns() / i64::try_from(samples.max(1)).unwrap_or(i64::MAX),
            "p99_ns": quantile(0.99),
            "p999_ns": quantile(0.999),
            "max_ns": one.max.as_ns(),
            "buckets_ns": one.histogram.bounds_ns().collect::<Vec<_>>(),
        })
    };
    of_phase.map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::test_data::{MINUTE_NS, sample};

    fn page(numbers: i64, range: Range) -> Value {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let run = crate::Run {
            host: "here".to_owned(),
            ..crate::Run::default()
        };
        let mut store = Store::create(&path, &run, 0, Limits::default()).expect("a store");
        for number in 0..numbers {
            store.append(sample(number));
        }
        let question = PageQuestion {
            range,
            scope: None,
            phase: None,
        };
        page_json(&Store::open(&path).expect("it opens"), question).expect("a page")
    }

    #[test]
    fn a_page_has_the_histogram_of_each_cpu_and_the_worst_of_each_stretch() {
        let page = page(3, Range::ALL);
        assert_eq!(
            (page["phase"].as_str(), page["host"].as_str()),
            (Some("switch"), Some("here"))
        );
        assert_eq!(page["cpus"][0]["cpu"], 1);
        // Three of one bucket and 1, 2 and 3 of the next.
        assert_eq!(page["cpus"][0]["samples"], 3 * 3 + 6);
        assert_eq!(page["over_time"].as_array().map(Vec::len), Some(3));
        assert_eq!(page["over_time"][2]["max_ns"], 5_000);
        assert_eq!(page["over_time"][0]["p50_ns"], 5_000);
        assert_eq!(page["ridges"].as_array().map(Vec::len), Some(3));
        assert_eq!(
            page["ridges"][1]["buckets_ns"].as_array().map(Vec::len),
            Some(2)
        );
        // What a watch said of another task is no ledger of this one.
        assert!(page["worst"][0]["late"].is_null());
        assert_eq!(page["worst"].as_array().map(Vec::len), Some(3));
        assert_eq!(page["worst"][0]["victim"]["name"], "task7");
        assert_eq!(page["worst"][0]["switch_ns"], 5_000);
    }

    #[test]
    fn only_the_time_that_is_asked_for_is_told_and_an_empty_one_is_no_error() {
        let one = Range {
            begin_ns: 6 * MINUTE_NS,
            end_ns: 7 * MINUTE_NS,
        };
        assert_eq!(page(3, one)["over_time"].as_array().map(Vec::len), Some(1));
        let none = page(0, Range::ALL);
        assert_eq!(
            (
                none["intervals"].as_u64(),
                none["cpus"].as_array().map(Vec::len)
            ),
            (Some(0), Some(0))
        );
    }

    #[test]
    fn a_page_of_one_kind_names_the_others_and_has_nothing_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let run = crate::Run::default();
        let mut store = Store::create(&path, &run, 0, Limits::default()).expect("a store");
        let queue = Kind::tracked("block", "queue", "");
        for number in 0..2 {
            let mut interval = sample(number);
            let (series, worst) = (interval.series[0].clone(), interval.worst[0].clone());
            for (scope, phase, max_us) in [
                (Scope::RealTime, Phase::Timer.into(), 6),
                (Scope::All, queue.clone(), 8),
            ] {
                let max = Duration::from_us(max_us);
                let (phase, value) = (Kind::clone(&phase), max);
                interval.series.push(Series {
                    scope,
                    phase: phase.clone(),
                    max,
                    ..series.clone()
                });
                interval.worst.push(Worst {
                    scope,
                    phase,
                    value,
                    ..worst.clone()
                });
            }
            store.append(interval);
        }
        let check = |scope: Scope, phase: &Kind, max_ns: i64, phases: &[&str]| {
            let question = PageQuestion {
                range: Range::ALL,
                scope: Some(scope),
                phase: Some(phase.clone()),
            };
            let page = page_json(&Store::open(&path).expect("opens"), question).expect("a page");
            assert_eq!(page["scopes"], json!(["realtime", "all"]));
            assert_eq!(page["phases"], json!(phases));
            assert_eq!(page["cpus"][0]["max_ns"], max_ns, "{}", phase.name());
            let worst = page["worst"].as_array().expect("a list");
            assert_eq!(worst.len(), 2);
            assert_eq!(worst[0]["phase"], phase.name());
            assert_eq!(worst[0]["value_ns"], max_ns);
        };
        let of_tasks = ["timer", "switch"];
        check(Scope::RealTime, &Phase::Switch.into(), 5_000, &of_tasks);
        check(Scope::RealTime, &Phase::Timer.into(), 6_000, &of_tasks);
        check(Scope::All, &queue, 8_000, &["block_queue"]);
    }

    #[test]
    fn many_intervals_become_few_stretches_that_lose_no_maximum() {
        let all: Vec<Stretch> = (0..7)
            .map(|number| Stretch {
                begin_ns: number,
                end_ns: number + 1,
                max: Duration::from_ns(if number == 4 { 99 } else { number }),
                histogram: Histogram(vec![(number as u16, 1)]),
                lost: 1,
                intervals: 1,
            })
            .collect();
        let half = joined(&all, 2);
        assert_eq!(half.len(), 4);
        let samples = half.iter().map(|one| one.histogram.samples());
        assert_eq!(samples.sum::<u64>(), 7);
        assert_eq!((half[0].begin_ns, half[3].end_ns), (0, 7));
        assert_eq!(half[2].max, Duration::from_ns(99));
        assert_eq!(half.iter().map(|one| one.lost).sum::<u64>(), 7);
    }
}
