//! Judged budgets of a store as text and as JSON (schema `rtscope.monitor.check` version 1).

use std::fmt::Write;

use serde_json::{Value, json};

use crate::gate::{GateFinding, GateJudgement, GateReport, GateSubject};
use crate::wall::wall_text;

/// A line per budget with its reason below it, and what all rests on.
pub fn gate_text(report: &GateReport) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let what = match finding.judgement {
            GateJudgement::Held => "held",
            GateJudgement::Broken => "BROKEN",
            GateJudgement::Inconclusive(_) => "inconclusive",
        };
        let _ = writeln!(out, "{what:<13}{}", finding.gate.text);
        let _ = writeln!(out, "{:<13}{}", "", gate_reason(finding));
    }
    let _ = writeln!(out, "{}", gate_basis(report));
    out
}

/// Why a budget is judged as it is.
pub fn gate_reason(finding: &GateFinding) -> String {
    let mut text = match &finding.judgement {
        GateJudgement::Inconclusive(why) => format!("{why}; "),
        _ => String::new(),
    };
    let what = match &finding.gate.subject {
        GateSubject::WakeUp => "wake-ups",
        GateSubject::Timer => "timers",
        GateSubject::Tracked(_) => "intervals",
    };
    let _ = write!(text, "{} {what}, ", finding.samples);
    let _ = match finding.over {
        (least, most) if least == most => write!(text, "{least} over"),
        (least, most) => write!(text, "{least} to {most} over"),
    };
    if let Some((worst, at_ns)) = finding.worst {
        let _ = write!(text, ", worst with a name {worst} at {}", wall_text(at_ns));
    }
    text
}

/// What the judgements rest on.
pub fn gate_basis(report: &GateReport) -> String {
    let head = &report.head;
    if report.intervals == 0 {
        return "no interval in this time".to_owned();
    }
    format!(
        "{} intervals from {} to {}, in which {} were counted and {} samples lost",
        report.intervals,
        wall_text(head.begin_ns),
        wall_text(head.end_ns),
        head.elapsed,
        head.lost
    )
}

/// All that was found, as one object.
pub fn gate_json(report: &GateReport) -> Value {
    let finding = |finding: &GateFinding| {
        let (judgement, why) = match &finding.judgement {
            GateJudgement::Held => ("held", None),
            GateJudgement::Broken => ("broken", None),
            GateJudgement::Inconclusive(why) => ("inconclusive", Some(why)),
        };
        json!({
            "budget": finding.gate.text,
            "judgement": judgement,
            "why": why,
            "limit_ns": finding.gate.limit.as_ns(),
            "over_ppm_max": finding.gate.over_ppm,
            "samples": finding.samples,
            "over_min": finding.over.0,
            "over_max": finding.over.1,
            "worst_ns": finding.worst.map(|(worst, _)| worst.as_ns()),
            "worst_at_ns": finding.worst.map(|(_, at_ns)| at_ns),
        })
    };
    json!({
        "schema": "rtscope.monitor.check",
        "version": 1,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "intervals": report.intervals,
        "begin_ns": report.head.begin_ns,
        "end_ns": report.head.end_ns,
        "elapsed_ns": report.head.elapsed.as_ns(),
        "lost": report.head.lost,
        "unsaved": report.head.unsaved,
    })
}
