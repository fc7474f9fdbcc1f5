//! Budgets as text, as JSON (schema `rtscope.check` version 1) and as JUnit, which CI systems read.

use std::fmt::Write;

use serde_json::{Value, json};
use views::{BudgetFinding, Checked, Judgement, SleepsInside, Subject};

use crate::count::counted;
use crate::scope::{BEFORE_FAIR_WAKER, long_start_ups, sleep_that_ends_work};
use crate::xml::escaped;

/// A line per budget, and what all rests on.
pub fn budgets_text(checked: &Checked) -> String {
    let mut out = String::new();
    for finding in &checked.findings {
        let what = match finding.judgement {
            Judgement::Held => "held",
            Judgement::Broken => "BROKEN",
            Judgement::Inconclusive(_) => "inconclusive",
        };
        let _ = writeln!(out, "{what:<13}{}", finding.budget.text);
        let _ = writeln!(out, "{:<13}{}", "", reason(finding, checked.holes));
    }
    let _ = writeln!(out, "{}", basis(checked));
    out
}

fn reason(finding: &BudgetFinding, holes: u64) -> String {
    let mut text = match &finding.judgement {
        Judgement::Inconclusive(why) => format!("{why}; "),
        _ => String::new(),
    };
    let samples = counted(finding.samples, sample(&finding.budget.subject));
    let _ = write!(text, "{samples}{}, {} over", threads(finding), finding.over);
    if let Some(worst) = finding.worst {
        let _ = write!(text, ", worst {} at {}", worst.duration(), worst.begin);
    }
    if finding.passed > 0 {
        let passed = counted(finding.passed, "more release");
        let _ = write!(text, " ({passed} of its timer passed meanwhile)");
    }
    text += &left_out(finding, holes);
    if let Some(inside) = &finding.inside {
        let _ = write!(
            text,
            ", slept {} times between releases by a timer, for others or for a length of \
             time: if inside the work, worst {} at {}, {} over",
            inside.sleeps,
            inside.worst.duration(),
            inside.worst.begin,
            inside.over
        );
    }
    if let Some(start_ups) = long_start_ups(finding.long_start_ups, finding.unslept) {
        let _ = write!(text, "; {start_ups}");
    }
    let is_judged = matches!(finding.budget.subject, Subject::Response(_));
    if is_judged && finding.inside.is_none() {
        let sleep = sleep_that_ends_work(finding.locks_known);
        let _ = write!(text, "; a {sleep}");
    }
    if is_judged {
        let _ = write!(text, "; {BEFORE_FAIR_WAKER}");
    }
    if let Subject::WakeUp(_) = finding.budget.subject {
        text.push_str("; work after the wake-up not judged");
    }
    text
}

/// Samples that are open, or of which nobody knows how long they were.
fn left_out(finding: &BudgetFinding, holes: u64) -> String {
    let mut text = String::new();
    if finding.open > 0 {
        let _ = write!(text, ", {} open at the end", finding.open);
    }
    if finding.within > 0 {
        let _ = write!(
            text,
            ", {} whose end was not recorded in time",
            finding.within
        );
    }
    let unsure = finding.unsure - finding.stopped;
    if finding.stopped > 0 {
        let _ = write!(
            text,
            ", {} not counted: they were stopped, perhaps before they were due (rtscope watch sees \
             when they were)",
            finding.stopped
        );
    }
    if unsure > 0 {
        // Where no event is lost, the kernel did not record how somebody came or went.
        let why = match holes {
            0 => ": switches were not recorded, rtscope watch sees each",
            _ => ": events are missing",
        };
        let _ = write!(text, ", {unsure} not counted{why}");
    }
    if finding.unseen > 0 {
        let _ = write!(
            text,
            ", {} not judged: begun before the trace",
            finding.unseen
        );
    }
    if finding.unwoken > 0 {
        let _ = write!(
            text,
            ", {} not judged: their wake-up was not recorded",
            finding.unwoken
        );
    }
    if finding.unknown_wakers > 0 {
        let _ = write!(
            text,
            ", {} more may be: nothing shows who woke them, or since when",
            finding.unknown_wakers
        );
    }
    text
}

/// What one sample is.
fn sample(subject: &Subject) -> &'static str {
    match subject {
        Subject::Period(_) => "period",
        Subject::WakeUp(_) => "wake-up",
        Subject::Work(_) | Subject::Response(_) => "activation",
        Subject::Irq(_) | Subject::Softirq(_) => "call",
        Subject::Call(..) => "system call",
        Subject::Timer(_) => "timer",
    }
}

/// Threads that are named; the others are counted.
const THREADS_MAX: usize = 3;

/// Whose samples they are.
fn threads(finding: &BudgetFinding) -> String {
    let threads = &finding.threads;
    let named = threads.iter().take(THREADS_MAX);
    let named: Vec<_> = named
        .map(|(tid, name)| format!("{name} (tid {tid})"))
        .collect();
    match threads.len() {
        0 => String::new(),
        count if count > THREADS_MAX => {
            format!(
                " of {} and {} more threads",
                named.join(", "),
                count - THREADS_MAX
            )
        }
        _ => format!(" of {}", named.join(", ")),
    }
}

fn basis(checked: &Checked) -> String {
    let length = checked
        .window
        .map(|window| window.duration())
        .unwrap_or_default();
    let losses = match checked.holes {
        0 => "none lost".to_owned(),
        holes => format!("{} lost in {}", checked.lost, counted(holes, "place")),
    };
    format!("{} events in {length}, {losses}", checked.events)
}

/// All that was found, as one object.
pub fn budgets_json(checked: &Checked) -> Value {
    let finding = |finding: &BudgetFinding| {
        let (judgement, why) = match &finding.judgement {
            Judgement::Held => ("held", None),
            Judgement::Broken => ("broken", None),
            Judgement::Inconclusive(why) => ("inconclusive", Some(why)),
        };
        json!({
            "budget": finding.budget.text,
            "judgement": judgement,
            "why": why,
            "limit_ns": finding.budget.limit.as_ns(),
            "over_ppm_max": finding.budget.over_ppm,
            "samples": finding.samples,
            "over": finding.over,
            "open": finding.open,
            "unsure": finding.unsure,
            "unseen": finding.unseen,
            "unwoken": finding.unwoken,
            "stopped": finding.stopped,
            "unknown_wakers": finding.unknown_wakers,
            "long_start_ups": finding.long_start_ups,
            "unslept": finding.unslept,
            "passed": finding.passed,
            "renamed": finding.renamed,
            "locks_known": finding.locks_known,
            "threads": finding.threads,
            "within": finding.within,
            "sleeps_inside": finding.inside.as_ref().map(inside_json),
            "worst_ns": finding.worst.map(|worst| worst.duration().as_ns()),
            "worst_begin_ns": finding.worst.map(|worst| worst.begin.as_ns()),
        })
    };
    json!({
        "schema": "rtscope.check",
        "version": 1,
        "findings": checked.findings.iter().map(finding).collect::<Vec<_>>(),
        "duration_ns": checked.window.map(|window| window.duration().as_ns()),
        "events": checked.events,
        "lost_events": checked.lost,
        "holes": checked.holes,
    })
}

fn inside_json(inside: &SleepsInside) -> Value {
    json!({
        "cycles": inside.cycles,
        "sleeps": inside.sleeps,
        "over": inside.over,
        "worst_ns": inside.worst.duration().as_ns(),
        "worst_begin_ns": inside.worst.begin.as_ns(),
    })
}

/// The same as a test suite with a test for each budget: broken ones failed, inconclusive ones
/// are errors. `name` is that of the suite.
pub fn budgets_junit(checked: &Checked, name: &str) -> String {
    let count = |wanted: fn(&Judgement) -> bool| {
        let findings = checked.findings.iter();
        findings
            .filter(|finding| wanted(&finding.judgement))
            .count()
    };
    let failures = count(|judgement| *judgement == Judgement::Broken);
    let errors = count(|judgement| matches!(judgement, Judgement::Inconclusive(_)));
    let (name, tests) = (escaped(name), checked.findings.len());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{name}\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"{errors}\">\n"
    );
    for finding in &checked.findings {
        let (budget, reason) = (
            escaped(&finding.budget.text),
            escaped(reason(finding, checked.holes)),
        );
        let _ = write!(out, "  <testcase classname=\"{name}\" name=\"{budget}\">");
        let _ = match finding.judgement {
            Judgement::Held => write!(out, "<system-out>{reason}</system-out>"),
            Judgement::Broken => write!(out, "<failure message=\"{reason}\"/>"),
            Judgement::Inconclusive(_) => write!(out, "<error message=\"{reason}\"/>"),
        };
        out.push_str("</testcase>\n");
    }
    let _ = writeln!(
        out,
        "  <system-out>{}</system-out>\n</testsuite>",
        escaped(basis(checked))
    );
    out
}
