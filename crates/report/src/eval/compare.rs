//! Two evaluations side by side: two kernels, or two settings of one.

use std::fmt::Write as _;

use diagnosis::ranks_by_chance;
use event::Duration;
use serde_json::Value;

use super::html::page;
use super::{PERCENTILES, cpu, loads, svg, threads, us, verdict_sentence};
use crate::xml::escaped;

/// A row of the comparison: what it is, and where it lies in a thread's object.
type Row = (&'static str, fn(&Value) -> &Value);

const ROWS: [Row; 6] = [
    ("min", |thread| &thread["min_ns"]),
    ("median", |thread| &thread["median_ns"]),
    ("mean", |thread| &thread["mean_ns"]),
    ("deviation", |thread| &thread["deviation_ns"]),
    ("max", |thread| &thread["max_ns"]),
    ("range", |thread| &thread["range_ns"]),
];

/// Latencies in us of each CPU that both have, A, B and how they differ; then both verdicts.
pub fn compare_text(a: &Value, b: &Value) -> String {
    let mut text = format!(
        "{:<8} {:<10} {:>10} {:>10} {:>9}\n",
        "", "in us", "A", "B", "B to A"
    );
    for (name, one, other) in pairs(a, b) {
        for (what, of_a, of_b, change) in rows(one, other) {
            text += &format!("{name:<8} {what:<10} {of_a:>10} {of_b:>10} {change:>9}\n");
        }
    }
    for (letter, evaluation) in [("A", a), ("B", b)] {
        text += &format!(
            "{letter}: {}; {}\n",
            kernel(evaluation),
            verdict_sentence(evaluation)
        );
    }
    for line in changes(a, b) {
        text += &format!("{line}\n");
    }
    text + &differences(a, b)
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// B is not worse than A, as far as this tells.
    NotWorse,
    /// It is.
    Worse,
    /// They are not alike, or one of them proves nothing.
    Inconclusive,
}

/// Whether B is worse than A: it breaks a budget that A keeps, or its longest latencies are longer
/// by more than chance.
pub fn compare_verdict(a: &Value, b: &Value) -> Compared {
    let is_open = |one: &Value| one["verdict"] == "inconclusive";
    if !differences(a, b).is_empty() || is_open(a) || is_open(b) || pairs(a, b).is_empty() {
        return Compared::Inconclusive;
    }
    let changes = longer_in(a, b);
    if changes.len() < pairs(a, b).len() {
        return Compared::Inconclusive;
    }
    let breaks = b["verdict"] == "fail" && a["verdict"] != "fail";
    match breaks || changes.iter().any(Change::is_longer) {
        true => Compared::Worse,
        false => Compared::NotWorse,
    }
}

/// A change is stated when chance makes it less often than once in a hundred comparisons of all
/// CPUs together, and the longest of the middle stretch differs by this factor: one run of each
/// does not tell how much runs of the same differ.
const CHANCE_MAX: f64 = 0.01;
const FACTOR_MIN: f64 = 1.5;

/// How the longest latencies of the stretches of a CPU differ. Samples follow each other; of whole
/// stretches that is nearly gone.
struct Change {
    name: String,
    /// The middle one of B to that of A.
    factor: f64,
    /// How probable that is by chance.
    p: f64,
    /// Above that it can be chance.
    chance_max: f64,
}

impl Change {
    fn is_longer(&self) -> bool {
        self.p < self.chance_max && self.factor >= FACTOR_MIN
    }

    fn is_shorter(&self) -> bool {
        self.p < self.chance_max && self.factor * FACTOR_MIN <= 1.0
    }
}

fn longer_in(a: &Value, b: &Value) -> Vec<Change> {
    let pairs = pairs(a, b);
    let chance_max = CHANCE_MAX / pairs.len().max(1) as f64;
    let change = |(name, one, other): (String, &Value, &Value)| {
        let (one, other) = (longest(one), longest(other));
        let p = ranks_by_chance(&one, &other)?;
        let middle = |sorted: &[Duration]| sorted[sorted.len() / 2].as_ns() as f64;
        let factor = middle(&other) / middle(&one).max(1.0);
        Some(Change {
            name,
            factor,
            p,
            chance_max,
        })
    };
    pairs.into_iter().filter_map(change).collect()
}

/// The longest latencies of a thread's stretches, sorted.
fn longest(thread: &Value) -> Vec<Duration> {
    let series = thread["series"].as_array().map_or(&[][..], Vec::as_slice);
    let all = series.iter().filter_map(|pair| pair[1].as_i64());
    let mut longest: Vec<Duration> = all.map(Duration::from_ns).collect();
    longest.sort_unstable();
    longest
}

/// What became worse or better, a line each.
fn changes(a: &Value, b: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    match (a["verdict"].as_str(), b["verdict"].as_str()) {
        (Some(of_a), Some("fail")) if of_a != "fail" => {
            lines.push("worse: B broke its budget, A did not".to_owned());
        }
        _ => {}
    }
    let changes = longer_in(a, b);
    if changes.len() < pairs(a, b).len() {
        lines.push("too short to tell: measure for longer (--for)".to_owned());
    }
    for change in changes {
        let what = match (change.is_longer(), change.is_shorter()) {
            (true, _) => "worse",
            (_, true) => "better",
            _ => continue,
        };
        let Change {
            name, factor, p, ..
        } = change;
        lines.push(format!(
            "{what}: {name}: the longest of a stretch {factor:.2} x (in the middle; by chance p = \
             {p:.2e})"
        ));
    }
    lines
}

/// The same as a page, with the histograms side by side.
pub fn compare_html(a: &Value, b: &Value) -> String {
    let mut body = String::from("<h1>A and B</h1>\n");
    for (letter, evaluation) in [("A", a), ("B", b)] {
        let (kernel, verdict) = (kernel(evaluation), verdict_sentence(evaluation));
        let _ = writeln!(
            body,
            "<p><strong>{letter}</strong>: {}; {}</p>",
            escaped(&kernel),
            escaped(&verdict)
        );
    }
    for line in changes(a, b) {
        let _ = writeln!(body, "<p>{}</p>", escaped(&line));
    }
    for line in differences(a, b).lines() {
        let _ = writeln!(body, "<p class=\"fail\">{}</p>", escaped(line));
    }
    let axis = svg::axis(threads(a).iter().chain(threads(b)));
    for (name, one, other) in pairs(a, b) {
        let _ = write!(
            body,
            "<h2>{name}</h2>\n<div class=\"scroll\"><table><tr><th>in us</th><th>A</th>\
             <th>B</th><th>B to A</th></tr>\n"
        );
        for (what, of_a, of_b, change) in rows(one, other) {
            let _ = writeln!(
                body,
                "<tr><td>{what}</td><td>{of_a}</td><td>{of_b}</td><td>{change}</td></tr>"
            );
        }
        let of = |thread, evaluation: &Value| {
            svg::histogram(thread, axis, evaluation["budget_ns"].as_f64())
        };
        let (left, right) = (of(one, a), of(other, b));
        let _ = writeln!(
            body,
            "</table></div>\n<div class=\"two\">{left}{right}</div>"
        );
    }
    page("rtscope measure eval: A and B", &body)
}

/// The threads of the CPUs that both measured.
fn pairs<'a>(a: &'a Value, b: &'a Value) -> Vec<(String, &'a Value, &'a Value)> {
    let of_b = |cpu: &Value| threads(b).iter().find(|thread| thread["cpu"] == *cpu);
    let pair = |one: &'a Value| Some((cpu(one), one, of_b(&one["cpu"])?));
    threads(a).iter().filter_map(pair).collect()
}

fn rows(a: &Value, b: &Value) -> Vec<(&'static str, String, String, String)> {
    let plain = ROWS
        .iter()
        .map(|(what, of)| (*what, of(a).clone(), of(b).clone()));
    let percentiles = PERCENTILES[1..].iter().map(|(_, name)| {
        let of = |thread: &Value| thread["percentiles"][name]["value_ns"].clone();
        (*name, of(a), of(b))
    });
    let row = |(what, a, b): (&'static str, Value, Value)| {
        let change = match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) if a > 0.0 => format!("{:.2} x", b / a),
            _ => "–".to_owned(),
        };
        (what, us(&a), us(&b), change)
    };
    plain.chain(percentiles).map(row).collect()
}

fn kernel(evaluation: &Value) -> String {
    let facts = &evaluation["machine"]["facts"];
    let word = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    format!(
        "Linux {}, preemption {}",
        word(&facts["machine"]["kernel_release"]),
        word(&facts["scheduler"]["preemption"])
    )
}

/// What is one value for all of an evaluation, and where it lies.
const SAME: [(&str, &str); 3] = [
    ("budget in ns", "/budget_ns"),
    ("machine", "/machine/identity/hardware"),
    ("CPU", "/machine/identity/cpu_model"),
];

/// How each thread was to run.
fn plan(evaluation: &Value) -> Vec<[Value; 4]> {
    let keys = ["cpu", "policy", "priority", "interval_ns"];
    let of_one = |thread: &Value| keys.map(|key| thread[key].clone());
    threads(evaluation).iter().map(of_one).collect()
}

/// What forbids to lay the difference to the kernels or settings.
fn differences(a: &Value, b: &Value) -> String {
    let mut text = String::new();
    let names = |one: &Value| -> Vec<String> {
        let loads = loads::loads(one).iter();
        loads.map(|load| loads::name(load).to_owned()).collect()
    };
    if names(a) != names(b) {
        text += "not alike: the loads differ\n";
    }
    for (letter, evaluation) in [("A", a), ("B", b)] {
        for complaint in loads::loads(evaluation).iter().filter_map(loads::complaint) {
            text += &format!("not alike: in {letter} {complaint}\n");
        }
    }
    if plan(a) != plan(b) {
        text += "not alike: threads, their CPUs, priorities or intervals differ\n";
    }
    for (what, place) in SAME {
        let (of_a, of_b) = (a.pointer(place), b.pointer(place));
        if of_a != of_b {
            let word = |one: Option<&Value>| match one {
                Some(Value::String(text)) => text.clone(),
                Some(value) if !value.is_null() => value.to_string(),
                _ => "none".to_owned(),
            };
            let (of_a, of_b) = (word(of_a), word(of_b));
            text += &format!("not alike: the {what} differs: {of_a} and {of_b}\n");
        }
    }
    let seconds = |one: &Value| one["elapsed_ns"].as_f64().unwrap_or(0.0) / 1e9;
    let (longer, shorter) = (seconds(a).max(seconds(b)), seconds(a).min(seconds(b)));
    if longer > shorter * 1.1 {
        text += &format!("not alike: {longer:.0} s and {shorter:.0} s; the longer run sees more\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_row_has_both_and_what_is_not_alike_is_said() {
        let mut a = super::super::tests::sample();
        a["loads"][0]["state"] = "ran".into();
        let mut b = a.clone();
        b["threads"][1]["max_ns"] = json!(450_000);
        let text = compare_text(&a, &b);
        let row = "CPU 1    max             900.0      450.0    0.50 x";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains("not alike"), "{text}");
        b["loads"][0]["state"] = "idle".into();
        assert!(compare_text(&a, &b).contains("not alike: in B the load stress-ng did too little"));
        b["loads"] = json!([]);
        b["elapsed_ns"] = json!(1);
        assert_eq!(compare_text(&a, &b).matches("not alike").count(), 2);
        for (place, value) in [
            ("/budget_ns", json!(9_000)),
            ("/threads/1/cpu", json!(2)),
            ("/threads/1/priority", json!(1)),
            ("/machine/identity/cpu_model", json!("another")),
        ] {
            let mut other = a.clone();
            *other.pointer_mut(place).unwrap_or(&mut Value::Null) = value.clone();
            if place.ends_with("cpu_model") {
                other["machine"]["identity"]["cpu_model"] = value;
            }
            let text = compare_text(&a, &other);
            assert_eq!(text.matches("not alike").count(), 1, "{place}: {text}");
            assert_eq!(compare_verdict(&a, &other), Compared::Inconclusive);
        }
        let page = compare_html(&a, &b);
        assert!(
            page.contains("the loads differ") && page.contains("</html>"),
            "{page}"
        );
    }
    #[test]
    fn what_is_longer_by_more_than_chance_is_worse_and_what_is_not_alike_says_nothing() {
        let sample = |longest_us: &[i64], verdict: &str| {
            let mut one = super::super::tests::sample();
            one["loads"][0]["state"] = "ran".into();
            one["verdict"] = verdict.into();
            for thread in one["threads"].as_array_mut().expect("threads") {
                let pair = |us: &i64| json!([0, us * 1000]);
                thread["series"] = longest_us.iter().map(pair).collect();
            }
            one
        };
        let check = |a: (&[i64], &str), b: (&[i64], &str), expect: Compared| {
            let (a, b) = (sample(a.0, a.1), sample(b.0, b.1));
            assert_eq!(
                compare_verdict(&a, &b),
                expect,
                "{}",
                changes(&a, &b).join(", ")
            );
        };
        let low: Vec<i64> = (50..80).collect();
        let high: Vec<i64> = (100..130).collect();
        let slightly: Vec<i64> = (60..90).collect();
        check((&low, "none"), (&high, "none"), Compared::Worse);
        check((&high, "none"), (&low, "none"), Compared::NotWorse);
        check((&low, "none"), (&slightly, "none"), Compared::NotWorse);
        check((&low, "pass"), (&low, "fail"), Compared::Worse);
        check((&low, "fail"), (&low, "fail"), Compared::NotWorse);
        check(
            (&low[..3], "none"),
            (&high[..3], "none"),
            Compared::Inconclusive,
        );
        check(
            (&low, "none"),
            (&high, "inconclusive"),
            Compared::Inconclusive,
        );
        let mut other = sample(&high, "none");
        other["loads"] = json!([]);
        assert_eq!(
            compare_verdict(&sample(&low, "none"), &other),
            Compared::Inconclusive
        );
        let text = compare_text(&sample(&low, "none"), &sample(&high, "none"));
        assert!(
            text.contains("worse: CPU 1: the longest of a stretch 1.77 x"),
            "{text}"
        );
    }
}
