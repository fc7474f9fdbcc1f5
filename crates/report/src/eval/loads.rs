//! The loads of an evaluation: whether each ran, and what it did, over time.

use std::fmt::Write as _;

use measure::load::{Proof, State};
use serde_json::{Value, json};

use super::svg;
use crate::xml::escaped;

/// The counter that every load has.
const CPU_TIME: &str = "cpu_time_ns";

/// A load as JSON.
pub(super) fn load_json(proof: &Proof) -> Value {
    let mut counters = proof.load.counters().to_vec();
    counters.push(CPU_TIME);
    let point = |look: &measure::load::Look| -> Vec<i64> {
        let counted = look.counters(proof.load);
        let mut point = vec![look.at.as_ns()];
        point.extend(counted.into_iter().map(u64::cast_signed));
        point.push(look.cpu_time.as_ns());
        point
    };
    let points: Vec<_> = proof.looks.iter().map(point).collect();
    json!({
        "name": proof.load.name(),
        "state": proof.state.name(),
        "why": proof.state.why(),
        "counters": counters,
        "points": points,
    })
}

/// Whether all loads that were to run did.
pub(super) fn all_ran(proofs: &[Proof]) -> bool {
    proofs.iter().all(|proof| proof.state == State::Ran)
}

/// The loads of an evaluation's object.
pub(super) fn loads(evaluation: &Value) -> &[Value] {
    evaluation["loads"].as_array().map_or(&[], Vec::as_slice)
}

/// The name of a load.
pub(super) fn name(load: &Value) -> &str {
    load["name"].as_str().unwrap_or("?")
}

/// Why a load was none; nothing where it was one.
pub(super) fn complaint(load: &Value) -> Option<String> {
    let state = load["state"].as_str().unwrap_or("missing");
    let why = load["why"].as_str().unwrap_or("nobody knows why");
    (state != "ran").then(|| match state {
        "missing" => format!("the load {} did not run: {why}", name(load)),
        "died" => format!("the load {} died: {why}", name(load)),
        _ => format!("the load {} did too little: {why}", name(load)),
    })
}

/// What a load did in all, as in `814 runs, 65120000 messages, 1.2 CPUs`.
pub(super) fn done(load: &Value) -> Option<String> {
    let points = load["points"].as_array()?;
    let (first, last) = (points.first()?, points.last()?);
    let names = load["counters"].as_array()?;
    let mut words = Vec::new();
    for (at, counter) in names.iter().enumerate() {
        let (name, sum) = (counter.as_str()?, last[at + 1].as_u64()?);
        if name != CPU_TIME {
            words.push(format!("{sum} {}", name.replace('_', " ")));
            continue;
        }
        let span_ns = last[0].as_f64()? - first[0].as_f64()?;
        let cpu_ns = sum as f64 - first[at + 1].as_f64()?;
        if span_ns > 0.0 {
            // Of one that died nobody can ask any more.
            words.push(format!("{:.2} CPUs", (cpu_ns / span_ns).max(0.0)));
        }
    }
    Some(words.join(", "))
}

/// The loads as a part of the page.
pub(super) fn loads_html(evaluation: &Value) -> String {
    let mut text = String::from("<h2>The loads, and what they did</h2>\n");
    if loads(evaluation).is_empty() {
        return text + "<p class=\"soft\">None was asked for.</p>\n";
    }
    text += "<div class=\"scroll\"><table><tr><th>load</th><th class=\"text\">state</th>\
             <th class=\"text\">did</th></tr>\n";
    for load in loads(evaluation) {
        let state = complaint(load).unwrap_or_else(|| "ran".to_owned());
        let class = if state == "ran" { "text" } else { "text fail" };
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td class=\"{class}\">{}</td><td class=\"text\">{}</td></tr>",
            escaped(name(load)),
            escaped(&state),
            escaped(done(load).unwrap_or_else(|| "nothing".to_owned()))
        );
    }
    text += "</table></div>\n<div class=\"two\">";
    for load in loads(evaluation) {
        text += &svg::rate(load);
    }
    text + "</div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_says_what_it_did_and_why_it_was_none() {
        let mut load = json!({
            "name": "compile", "state": "ran", "why": null,
            "counters": ["files", "object_bytes", "cpu_time_ns"],
            "points": [[0, 0, 0, 100], [2_000_000_000i64, 12, 3400, 3_000_000_100i64]],
        });
        assert_eq!(
            done(&load).as_deref(),
            Some("12 files, 3400 object bytes, 1.50 CPUs")
        );
        assert_eq!(complaint(&load), None);
        load["state"] = "died".into();
        load["why"] = "cc ended with signal: 9 (SIGKILL)".into();
        let expect = "the load compile died: cc ended with signal: 9 (SIGKILL)";
        assert_eq!(complaint(&load).as_deref(), Some(expect));
        // What is no load of ours is none.
        assert_eq!(
            done(&json!({"points": [[0], [1]], "counters": ["x"]})),
            None
        );
        assert!(complaint(&json!({})).is_some());
    }
}
