//! Two evaluations side by side: two kernels, or two settings of one.

use std::fmt::Write as _;

use serde_json::Value;

use super::escape::escaped;
use super::html::page;
use super::{PERCENTILES, cpu, loads, svg, threads, us, verdict_sentence};

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
    text + &differences(a, b)
}

/// The same as a page, with the histograms side by side.
pub fn compare_html(a: &Value, b: &Value) -> String {
    let mut body = String::from("<h1>A and B</h1>\n");
    for (letter, evaluation) in [("A", a), ("B", b)] {
        let (kernel, verdict) = (kernel(evaluation), verdict_sentence(evaluation));
        let _ = writeln!(
            body,
            "<p><strong>{letter}</strong>: {}; {verdict}</p>",
            escaped(&kernel)
        );
    }
    for line in differences(a, b).lines() {
        let _ = writeln!(body, "<p class=\"fail\">{}</p>", escaped(line));
    }
    let axis = svg::axis(threads(a).iter().chain(threads(b)));
    for (name, one, other) in pairs(a, b) {
        let _ = write!(
            body,
            "<h2>{name}</h2>\n<table><tr><th>in us</th><th>A</th><th>B</th><th>B to A</th></tr>\n"
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
        let _ = writeln!(body, "</table>\n<div class=\"two\">{left}{right}</div>");
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
    let intervals = |one: &Value| -> Vec<Value> {
        threads(one)
            .iter()
            .map(|thread| thread["interval_ns"].clone())
            .collect()
    };
    if intervals(a) != intervals(b) {
        text += "not alike: threads or intervals differ\n";
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
        assert!(compare_text(&a, &b).contains("not alike: in B the load stress-ng stood still"));
        b["loads"] = json!([]);
        b["elapsed_ns"] = json!(1);
        assert_eq!(compare_text(&a, &b).matches("not alike").count(), 2);
        let page = compare_html(&a, &b);
        assert!(
            page.contains("the loads differ") && page.contains("</html>"),
            "{page}"
        );
    }
}
