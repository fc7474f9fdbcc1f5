//! An evaluation of a machine: its facts, what was found under load, a verdict. Everything is in
//! one JSON object; the page, the text, JUnit's file and the comparison are functions of it, so
//! that they can be made again from the file.

mod behind;
mod compare;
mod explaining;
mod html;
mod hw;
mod junit;
mod loads;
mod parts;
mod series;
mod signed;
mod svg;
mod text;
mod units;
mod workload;

use event::Duration;
use measure::cyclic::Reading;
use measure::load::Proof;
use measure::tail::{self, Tail};
use serde_json::{Value, json};

use crate::count::counted_with;
use crate::cyclic::{Late, latency_json, samples_over};
use units::us;

pub use compare::{Compared, compare_html, compare_text, compare_verdict};
pub use html::eval_html;
pub use junit::eval_junit;
pub use parts::{Ended, Parts, RunPart};
pub use series::Series;
pub use signed::{eval_file, eval_hash, file_hash};
pub use text::eval_text;
pub use workload::Workload;

const SCHEMA: &str = "rtscope.eval";
/// 2: `loads` are objects.
const SCHEMA_VERSION: u32 = 2;
/// The percentiles of the summary.
const PERCENTILES: [(f64, &str); 5] = [
    (0.5, "p50"),
    (0.9, "p90"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

/// What an evaluation found; by default that nothing was measured.
#[derive(Clone, Debug, Default)]
pub struct Evaluation<'a> {
    /// When it began, as text.
    pub began: &'a str,
    /// Version of the program and the words that it was started with.
    pub made_by: (&'a str, &'a [String]),
    /// What the user wants to stand in it.
    pub annotation: Option<&'a str>,
    /// Which machine it is, how it is set as `doctor` knows it, what makes its figures doubtful,
    /// and how many interrupts came meanwhile that nothing masks.
    pub machine: Value,
    /// What was to run beside it, and whether it did.
    pub loads: &'a [Proof],
    /// The threads that slept until an instant.
    pub readings: &'a [Reading],
    /// The same threads before, when nothing was explained; none where nothing ever was.
    pub plain: &'a [Reading],
    /// For how long.
    pub plain_for: Duration,
    /// An application in their place; then there are none of them.
    pub workload: Option<&'a Workload>,
    /// The longest latency of each stretch, a series for each of them.
    pub series: &'a [Series],
    /// How long they measured.
    pub elapsed: Duration,
    /// The worst late samples with their explanation, as `watch --json` gives them, and how many
    /// there were; none when nothing was to be explained.
    pub late: Option<Late>,
    /// What `measure hw` found, as its JSON; none when it was not run.
    pub hw: Option<Value>,
    /// The runs that made it.
    pub parts: Parts<'a>,
    /// What no sample may exceed, when that was asked.
    pub budget: Option<Duration>,
    /// Whether it went on for as long as was asked.
    pub complete: bool,
}

/// Whether an object is an evaluation of the version that is read here.
pub fn is_eval(value: &Value) -> bool {
    value["schema"] == SCHEMA && value["version"] == SCHEMA_VERSION
}

/// The evaluation as JSON, schema rtscope.eval version 2.
pub fn eval_json(evaluation: &Evaluation) -> Value {
    let cost = cost(evaluation);
    let threads = evaluation.readings.iter().zip(evaluation.series);
    let threads: Vec<Value> = threads
        .enumerate()
        .map(|(place, (reading, series))| {
            let plain = evaluation.plain.get(place);
            let mut value = thread(reading, series);
            value["plain"] = plain.map(explaining::plain_json).into();
            value["verdict"] = match evaluation.budget {
                Some(budget) => explaining::keeps(budget, (plain, reading), cost).into(),
                None => "none".into(),
            };
            value
        })
        .collect();
    let explaining = !evaluation.plain.is_empty();
    let explaining = explaining.then(|| cost.json(evaluation.plain_for));
    let budget_ns = evaluation.budget.map(Duration::as_ns);
    let worst = evaluation.late.as_ref();
    let all: Vec<Reading> = evaluation
        .readings
        .iter()
        .chain(evaluation.plain)
        .cloned()
        .collect();
    let over = worst.map(|late| exceedances(late, &all));
    let worst = worst.map_or(vec![], |late| behind::marked(&late.samples, &all));
    let loads: Vec<Value> = evaluation.loads.iter().map(loads::load_json).collect();
    let mut object = json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "began": evaluation.began,
        "made_by": { "version": evaluation.made_by.0, "command": evaluation.made_by.1 },
        "annotation": evaluation.annotation,
        "elapsed_ns": evaluation.elapsed.as_ns(),
        "complete": evaluation.complete,
        "budget_ns": budget_ns,
        "verdict": verdict(evaluation),
        "machine": evaluation.machine,
        "loads": loads,
        "threads": threads,
        "workload": evaluation.workload.map(|one| one.json(evaluation.budget)),
        "exceedances": over,
        "explaining": explaining,
        "worst": worst,
        "hw": evaluation.hw,
    });
    let cpu = |place: usize| Some(evaluation.readings.get(place)?.plan.cpu?.0);
    for (key, value) in evaluation.parts.json(&cpu) {
        object[key] = value;
    }
    object
}

/// `fail` where a sample broke the budget, whatever else there was and by more than explaining it
/// cost; else `inconclusive` where not
/// all was measured, or not under all loads, or not for as long as a budget is to hold; else
/// `pass`, or `none` without a budget.
fn verdict(evaluation: &Evaluation) -> &'static str {
    let (readings, cost) = (evaluation.readings, cost(evaluation));
    let keeps = |budget: Duration| {
        let plain = |place| evaluation.plain.get(place);
        let one = |(place, reading)| explaining::keeps(budget, (plain(place), reading), cost);
        readings.iter().enumerate().map(one).collect::<Vec<_>>()
    };
    let kept = evaluation.budget.map(keeps).unwrap_or_default();
    let workload = evaluation.workload.map(|one| one.keeps(evaluation.budget));
    if kept.contains(&"fail") || workload == Some("fail") {
        return "fail";
    }
    let is_whole = |one: &Reading| one.latency.samples > 0 && !one.lost_cpu;
    let all = !readings.is_empty() && readings.iter().all(is_whole);
    let gap = evaluation.hw.as_ref();
    let gap = gap.and_then(|hw| hw::complaint(hw, evaluation.budget));
    match evaluation.budget {
        _ if gap.is_some() => "inconclusive",
        _ if !loads::all_ran(evaluation.loads) => "inconclusive",
        _ if !evaluation.parts.are_one() => "inconclusive",
        _ if workload.is_some() && !evaluation.complete => "inconclusive",
        _ if workload.is_some() => workload.unwrap_or_default(),
        _ if !all => "inconclusive",
        Some(_) if !evaluation.complete || kept.contains(&"inconclusive") => "inconclusive",
        Some(_) => "pass",
        None => "none",
    }
}

/// What explaining cost; nothing where there is nothing to hold it against.
fn cost(evaluation: &Evaluation) -> explaining::Cost {
    let hits = evaluation
        .late
        .as_ref()
        .map_or(&[][..], |late| &late.samples);
    match evaluation.plain {
        [] => explaining::Cost::default(),
        plain => explaining::Cost::of(plain, evaluation.readings, hits),
    }
}

/// How many samples were over the limit, and of how many the cause is known. The kernel's side may
/// see fewer: a thread that was late only after it was switched in; and more: one that was on time
/// and had still to sleep again. An application's are all that it sees.
fn exceedances(late: &Late, readings: &[Reading]) -> Value {
    let seen = late.explained + late.suppressed + late.lost;
    let samples = match readings {
        [] => seen,
        readings => samples_over(readings, late.over),
    };
    let longest = behind::longest(readings);
    let conclusive = |hit: &&Value| {
        hit["diagnosis"]["verdict"]["conclusive"] == true && !behind::is_it(hit, longest)
    };
    let explained = late.samples.iter().filter(conclusive).count() as u64;
    let explained = explained.min(samples);
    json!({
        "over_ns": late.over.as_ns(),
        "samples": samples,
        "seen": seen,
        "seen_behind_samples": seen.saturating_sub(samples),
        "explained": explained,
        "unexplained": samples.saturating_sub(explained),
        "lost": late.lost,
        "cost_ns": late.cost.as_ns(),
    })
}

fn thread(reading: &Reading, series: &Series) -> Value {
    let latency = &reading.latency;
    let mut value = latency_json(latency);
    let ns = |one: Option<Duration>| one.map(Duration::as_ns);
    let percentiles: serde_json::Map<_, _> = PERCENTILES
        .iter()
        .map(|(share, name)| {
            let found = tail::percentile(latency, *share).map(|one| {
                json!({
                    "value_ns": one.value.as_ns(),
                    "low_ns": one.low.as_ns(),
                    "high_ns": one.high.as_ns(),
                })
            });
            ((*name).to_owned(), found.into())
        })
        .collect();
    let range = latency.extremes.map(|extremes| extremes.max - extremes.min);
    let own = json!({
        "cpu": reading.plan.cpu.map(|cpu| cpu.0),
        "policy": reading.plan.policy.name(),
        "priority": reading.plan.policy.prio(),
        "interval_ns": reading.plan.interval.as_ns(),
        "missed": reading.missed,
        "lost_cpu": reading.lost_cpu,
        "median_ns": ns(tail::percentile(latency, 0.5).map(|one| one.value)),
        "mode_ns": ns(tail::mode(latency)),
        "range_ns": ns(range),
        "percentiles": percentiles,
        "tail": tail_json(latency.samples, series),
        "series": series.json(),
    });
    if let (Value::Object(value), Value::Object(own)) = (&mut value, own) {
        value.extend(own);
    }
    value
}

/// What the run can show of the tail, and what it cannot.
fn tail_json(samples: u64, series: &Series) -> Value {
    let share = tail::unseen_share_max(samples);
    let mut value = json!({ "unseen_share_max": share });
    match tail::tail(&series.longest()) {
        Tail::Fit {
            shape,
            expected,
            low,
            high,
        } => {
            value["fit"] = json!({
                "shape": shape,
                "expected_in_ten_runs_ns": expected.as_ns(),
                "low_ns": low.as_ns(),
                "high_ns": high.as_ns(),
            });
        }
        Tail::Refused(reason) => value["refused"] = reason.into(),
    }
    value
}

/// The threads of an evaluation's object.
fn threads(evaluation: &Value) -> &[Value] {
    evaluation["threads"].as_array().map_or(&[], Vec::as_slice)
}

/// Where a thread was.
fn cpu(thread: &Value) -> String {
    let number = thread["cpu"].as_u64();
    number.map_or("any CPU".to_owned(), |number| format!("CPU {number}"))
}

/// Why nothing is proved, or less than was asked for, a line each.
fn interruptions(evaluation: &Value) -> Vec<String> {
    let lost = threads(evaluation).iter();
    let lost = lost.filter(|thread| thread["lost_cpu"] == true);
    let mut lines: Vec<String> = lost
        .map(|thread| {
            let cpu = cpu(thread);
            format!("{cpu} was taken from its thread (offline, or no longer allowed)")
        })
        .collect();
    lines.extend(threads(evaluation).iter().filter_map(within_cost));
    let budget = evaluation["budget_ns"].as_i64().map(Duration::from_ns);
    lines.extend(hw::complaint(&evaluation["hw"], budget));
    lines.extend(workload::complaint(evaluation));
    lines.extend(loads::loads(evaluation).iter().filter_map(loads::complaint));
    lines.extend(parts::complaints(evaluation));
    if evaluation["complete"] != true {
        lines.push("interrupted: what stands here was measured until then".to_owned());
    }
    lines
}

/// That a thread's longest sample is over the budget by no more than explaining costs.
fn within_cost(thread: &Value) -> Option<String> {
    (thread["verdict"] == "inconclusive" && thread["max_ns"].is_i64()).then(|| {
        let (cpu, max) = (cpu(thread), us(&thread["max_ns"]));
        format!(
            "{cpu}: its longest, {max} us, is over the budget by no more than explaining costs; \
             measure again with --no-explain"
        )
    })
}

/// How many were late, and of how many the cause is known.
fn exceedances_sentence(evaluation: &Value) -> Option<String> {
    let found = evaluation["exceedances"].as_object()?;
    let number = |key: &str| found.get(key).and_then(Value::as_u64).unwrap_or(0);
    let mut text = format!(
        "{} over {} us: {} explained, {} not explained",
        counted_with(number("samples"), "sample was", "samples were"),
        us(&evaluation["exceedances"]["over_ns"]),
        number("explained"),
        number("unexplained")
    );
    match number("seen_behind_samples") {
        0 => {}
        more => text += &format!("; {more} times a thread was kept for so long behind its sample"),
    }
    Some(text)
}

/// A thread's longest sample, explained or not.
fn longest_ns(thread: &Value) -> Option<i64> {
    thread["max_ns"]
        .as_i64()
        .max(thread["plain"]["max_ns"].as_i64())
}

/// The verdict as a sentence.
fn verdict_sentence(evaluation: &Value) -> String {
    let budget = us(&evaluation["budget_ns"]);
    let longest = threads(evaluation)
        .iter()
        .max_by_key(|thread| longest_ns(thread))
        .map(|thread| {
            let longest = us(&longest_ns(thread).into());
            let when = match explaining::is_longest_plain(thread) {
                true => ", before anything was watched",
                false => "",
            };
            format!("the longest was {longest} us on {}{when}", cpu(thread))
        });
    let longest = longest.or_else(|| workload::sentence(evaluation));
    let longest = longest.unwrap_or_else(|| "there are no samples".into());
    match evaluation["verdict"].as_str() {
        Some("pass") if evaluation["budget_ns"].is_null() => format!("pass: {longest}"),
        Some("pass") => format!("pass: no sample exceeded the budget of {budget} us; {longest}"),
        Some("fail") if evaluation["budget_ns"].is_null() => format!("fail: {longest}"),
        Some("fail") => format!("fail: the budget was {budget} us; {longest}"),
        Some("inconclusive") => format!("inconclusive: nothing is proved; {longest}"),
        _ => format!("no budget was given; {longest}"),
    }
}

/// The sentence on the tail of one thread.
fn tail_sentence(thread: &Value) -> String {
    let tail = &thread["tail"];
    let share = tail["unseen_share_max"].as_f64().unwrap_or(1.0);
    let samples = thread["samples"].as_u64().unwrap_or(0);
    let seen = format!(
        "{samples} samples: of later ones under the same load at most {:.4} % exceed the longest \
         of these (95 % confidence)",
        share * 100.0
    );
    if let Some(reason) = tail["refused"].as_str() {
        return format!("{seen}; nothing is said beyond: {reason}");
    }
    let fit = &tail["fit"];
    format!(
        "{seen}; ten times this run is expected to reach {} us once ({} to {} us)",
        us(&fit["expected_in_ten_runs_ns"]),
        us(&fit["low_ns"]),
        us(&fit["high_ns"])
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cyclic::tests::reading;

    /// A run of two CPUs of which the second broke a budget of 5 us.
    pub(super) fn sample() -> Value {
        let mut readings = [reading([1, 1, 3]), reading([2, 900])];
        readings[0].plan.cpu = Some(event::Cpu(0));
        let series = [Series::default(), Series::default()];
        let loads = [Proof::missing(
            measure::load::Load::StressNg,
            "there is no <stress-ng>".to_owned(),
        )];
        eval_json(&Evaluation {
            began: "Fri, 20 Nov 2026 14:00:00 +0000",
            made_by: ("1.2.3", &["rtscope".to_owned(), "<eval>".to_owned()]),
            annotation: Some("before <the> fix"),
            machine: json!({
                "identity": {"host": "robot <7>"},
                "facts": {"machine": {"kernel_release": "6.12.1-rt"}},
                "doubts": [{"what": "slow", "found": "governor <powersave>", "fix": "be quick"}],
            }),
            loads: &loads,
            readings: &readings,
            workload: None,
            plain: &[],
            plain_for: Duration::ZERO,
            series: &series,
            elapsed: Duration::from_ms(10_000),
            late: None,
            parts: Parts::default(),
            hw: None,
            budget: Some(Duration::from_us(5)),
            complete: true,
        })
    }

    #[test]
    fn a_budget_is_broken_by_one_sample_of_one_thread() {
        let found = sample();
        assert_eq!(found["verdict"], "fail");
        assert_eq!(found["threads"][0]["max_ns"], 3_000);
        assert_eq!(found["threads"][0]["mode_ns"], 1_500);
        assert_eq!(found["threads"][1]["range_ns"], 898_000);
        let reason = found["threads"][0]["tail"]["refused"].as_str();
        assert!(
            reason.is_some_and(|reason| reason.contains("too few")),
            "{found}"
        );
    }

    #[test]
    fn what_was_over_the_limit_is_explained_or_counted_as_not_explained() {
        let conclusive = |one: bool| json!({"diagnosis": {"verdict": {"conclusive": one}}});
        let late = Late {
            over: Duration::from_us(5),
            explained: 2,
            suppressed: 1,
            lost: 0,
            cost: Duration::ZERO,
            samples: vec![conclusive(true), conclusive(false), json!({})],
        };
        let check = |samples: &[i64], expect: [u64; 3]| {
            let found = exceedances(&late, &[reading(samples.iter().copied())]);
            let keys = ["samples", "explained", "unexplained"];
            assert_eq!(
                keys.map(|key| found[key].as_u64()),
                expect.map(Some),
                "{found}"
            );
        };
        // Two in buckets, two beyond the last one.
        check(&[1, 5, 6, 9, 900], [4, 1, 3]);
        // What the kernel's side saw besides were no samples.
        check(&[1], [0, 0, 0]);
        check(&[1, 9], [1, 1, 0]);
        let found = exceedances(&late, &[reading([1, 9])]);
        let told = exceedances_sentence(&json!({ "exceedances": found })).expect("a sentence");
        let behind = "; 2 times a thread was kept for so long behind its sample";
        assert!(told.ends_with(behind), "{told}");
        // A thread that was kept behind its sample explains no other's.
        let kept = json!({
            "hit": {"latency_ns": 7_500_000},
            "diagnosis": {"verdict": {"conclusive": true}},
        });
        let behind = Late {
            samples: vec![kept.clone()],
            ..late.clone()
        };
        let found = exceedances(&behind, &[reading([1, 9])]);
        assert_eq!(
            (&found["explained"], &found["unexplained"]),
            (&0.into(), &1.into())
        );
        let marked = |us| behind::marked(&behind.samples, &[reading([us])])[0].clone();
        assert_eq!(marked(83)["behind_sample"], true);
        assert_eq!(marked(7_400), kept);
        // All that there is of an application.
        assert_eq!(exceedances(&late, &[])["samples"], 3);
    }

    #[test]
    fn what_did_not_run_under_all_its_loads_is_never_a_pass() {
        use measure::load::{Load, State};
        let load = |state: State| Proof {
            load: Load::Compile,
            state,
            looks: vec![],
        };
        let check = |samples: &[i64], budget_us: Option<i64>, loads: &[Proof], expect: &str| {
            let found = verdict(&Evaluation {
                loads,
                readings: &[reading(samples.iter().copied())],
                budget: budget_us.map(Duration::from_us),
                complete: true,
                ..Evaluation::default()
            });
            assert_eq!(found, expect, "{samples:?} {budget_us:?} {loads:?}");
        };
        let why = || "why".to_owned();
        check(&[3], Some(5), &[load(State::Ran)], "pass");
        check(&[3], Some(5), &[], "pass");
        check(&[3], None, &[load(State::Ran)], "none");
        for state in [
            State::Missing(why()),
            State::Died(why()),
            State::Idle(why()),
        ] {
            let loads = [load(State::Ran), load(state)];
            check(&[3], Some(5), &loads, "inconclusive");
            check(&[3], None, &loads, "inconclusive");
            // Who is late without a load is late.
            check(&[9], Some(5), &loads, "fail");
        }
        check(&[], Some(5), &[], "inconclusive");
    }

    #[test]
    fn a_cpu_that_was_taken_for_longer_than_the_budget_passes_none() {
        let check = |longest_us: i64, gap_us: i64, budget_us: Option<i64>, expect: &str| {
            let part = json!({"taker": "nmi", "name": "NMI", "duration_ns": gap_us * 1_000});
            let found = eval_json(&Evaluation {
                readings: &[reading([longest_us])],
                series: &[Series::default()],
                hw: Some(json!({"gaps": [{"cpu": 0, "parts": [part]}]})),
                budget: budget_us.map(Duration::from_us),
                complete: true,
                ..Evaluation::default()
            });
            assert_eq!(
                found["verdict"], expect,
                "{longest_us} {gap_us} {budget_us:?}"
            );
            let is_said = interruptions(&found).join("").contains("was taken for");
            assert_eq!(is_said, budget_us.is_some_and(|budget| gap_us > budget));
            let passes = eval_junit(&found).contains("\"></testcase>");
            assert_eq!(passes, expect == "pass", "{}", eval_junit(&found));
        };
        check(3, 5, Some(5), "pass");
        check(3, 6, Some(5), "inconclusive");
        check(3, 6, None, "none");
        check(9, 6, Some(5), "fail");
    }
}
