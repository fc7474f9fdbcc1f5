//! The parts of a page that carry the answer: ledger, chain, stacks, what speaks against others.

use std::fmt::Write as _;

use diagnosis::{Diagnosis, LateActivation, TermKind, Verdict};

use crate::count::of_late;
use crate::diagnosis_text::{nanoseconds, step_name};
use crate::xml::escaped;

/// Frames of a stack, rows of a table.
const FRAMES_MAX: usize = 64;
const ROWS_MAX: usize = 200;

/// Where the time went.
pub(super) fn ledger(late: &LateActivation, verdict: &Verdict) -> String {
    let total = late.latency();
    let mut text = format!(
        "<h2>Where {total} went</h2>\n<div class=\"scroll\"><table class=\"ledger\">\n<tbody>\n"
    );
    let sums = late.ledger.sums();
    for sum in sums.iter().take(ROWS_MAX) {
        let share = sum.duration.share_of(total) * 100.0;
        let is_culprit = verdict.conclusive && verdict.culprits.iter().any(|c| c.kind == sum.kind);
        let class = match &sum.kind {
            TermKind::Unexplained(_) => "unknown",
            TermKind::OwnRun => "victim",
            _ if is_culprit => "culprit",
            _ => "task",
        };
        let name = escaped(sum.to_string());
        let length = nanoseconds(sum.duration);
        let _ = writeln!(
            text,
            "<tr><td>{name}</td><td class=\"n\">{length}</td><td class=\"n\">{share:.1} %</td>\
             <td class=\"bar\"><i class=\"{class}\" style=\"width:{:.1}%\"></i></td></tr>",
            share.clamp(0.0, 100.0)
        );
    }
    text += "</tbody></table></div>\n";
    if !late.ledger.is_good() {
        let (unexplained, grade) = (late.ledger.unexplained(), late.ledger.grade.name());
        let _ = writeln!(
            text,
            "<p class=\"doubt\">{unexplained} have no proven cause; the evidence is {grade}.</p>"
        );
    }
    text
}

/// The steps that led to it.
pub(super) fn chain(late: &LateActivation) -> String {
    let mut text = String::from(
        "<h2>The chain</h2>\n<div class=\"scroll\"><table class=\"chain\">\n<thead><tr>\
         <th class=\"n\">time s</th>\
         <th class=\"n\">CPU</th><th class=\"n\">until next</th><th>step</th></tr></thead>\n\
         <tbody>\n",
    );
    if late.steps_left_out > 0 {
        let count = late.steps_left_out;
        let _ = writeln!(
            text,
            "<tr><td colspan=\"4\">{count} earlier steps left out</td></tr>"
        );
    }
    for (place, step) in late.steps.iter().enumerate().take(ROWS_MAX) {
        let next = late.steps.get(place + 1).map_or(late.end, |next| next.time);
        let _ = writeln!(
            text,
            "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td>{}</td></tr>",
            step.time,
            step.cpu.0,
            nanoseconds(next - step.time),
            escaped(step_name(step))
        );
    }
    text + "</tbody></table></div>\n"
}

/// Stacks that support it.
pub(super) fn stacks(verdict: &Verdict) -> String {
    let mut text = String::new();
    for (what, stack) in &verdict.stacks {
        let frames = stack.iter().take(FRAMES_MAX);
        let frames = frames.map(|frame| match frame.symbol.as_str() {
            "" => format!("{:#x}", frame.address),
            symbol => escaped(symbol),
        });
        let frames: Vec<_> = frames.collect();
        let _ = writeln!(
            text,
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escaped(what),
            frames.join("\n")
        );
    }
    if text.is_empty() {
        return text;
    }
    format!("<h2>Stacks</h2>\n{text}")
}

/// What speaks against other causes.
pub(super) fn excluded(verdict: &Verdict) -> String {
    if verdict.excluded.is_empty() {
        return String::new();
    }
    let mut text = String::from("<h2>Why nobody else</h2>\n<dl>\n");
    for (question, answer) in &verdict.excluded {
        let (question, answer) = (escaped(question), escaped(answer));
        let _ = writeln!(text, "<dt>{question}</dt><dd>{answer}</dd>");
    }
    text + "</dl>\n"
}

/// The other causes of the same trace, a sentence each.
pub(super) fn further(diagnosis: &Diagnosis) -> String {
    if diagnosis.groups.len() < 2 {
        return String::new();
    }
    let mut text = String::from("<h2>Other causes in the same trace</h2>\n<ul>\n");
    for group in diagnosis.groups.iter().skip(1).take(ROWS_MAX) {
        let share = of_late(group.members.len(), diagnosis);
        let sentence = escaped(&group.verdict.sentence);
        let _ = writeln!(text, "<li>{sentence} ({share})</li>");
    }
    text + "</ul>\n"
}
