//! Two diagnoses side by side, as text and as JSON (schema `rtscope.diff` version 1).

use std::fmt::Write;

use diagnosis::{CauseSide, ComparedCause, Comparison};
use serde_json::{Value, json};

use crate::count::counted;

/// A paragraph per cause, those that changed first.
pub fn comparison_text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for cause in &comparison.causes {
        let _ = writeln!(out, "{:<13}{}", cause.change.name(), cause.signature);
        let _ = writeln!(out, "{:<13}before: {}", "", side(&cause.before));
        let _ = writeln!(out, "{:<13}after:  {}", "", side(&cause.after));
        let _ = writeln!(out, "{:<13}{}", "", chance(cause));
    }
    if comparison.causes.is_empty() {
        out.push_str("Neither trace has a late activation.\n");
    }
    let (before, after) = comparison.activations;
    let _ = write!(out, "{before} activations before, {after} after");
    if comparison.floor.as_ns() > 0 {
        let _ = write!(out, "; shorter ones than {} are left out", comparison.floor);
    }
    if comparison.holes > 0 {
        let _ = write!(
            out,
            "; events are missing in {}",
            counted(comparison.holes, "place")
        );
    }
    out.push('\n');
    out
}

fn side(side: &CauseSide) -> String {
    match side.count {
        0 => "none".to_owned(),
        count => format!("{count}, median {}, worst {}", side.median, side.worst),
    }
}

fn chance(cause: &ComparedCause) -> String {
    let count = format!("by chance: counts p = {:.2e}", cause.p_count);
    match cause.p_latency {
        Some(p) => format!("{count}, latencies p = {p:.2e}"),
        None => format!("{count}, too few latencies to tell"),
    }
}

/// All that was found, as one object.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let side = |side: &CauseSide| {
        json!({
            "count": side.count,
            "median_ns": side.median.as_ns(),
            "worst_ns": side.worst.as_ns(),
        })
    };
    let cause = |cause: &ComparedCause| {
        json!({
            "signature": cause.signature,
            "change": cause.change.name(),
            "before": side(&cause.before),
            "after": side(&cause.after),
            "p_count": cause.p_count,
            "p_latency": cause.p_latency,
        })
    };
    json!({
        "schema": "rtscope.diff",
        "version": 1,
        "causes": comparison.causes.iter().map(cause).collect::<Vec<_>>(),
        "activations_before": comparison.activations.0,
        "activations_after": comparison.activations.1,
        "floor_ns": comparison.floor.as_ns(),
        "holes": comparison.holes,
    })
}
