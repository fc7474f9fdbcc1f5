//! Why it was nobody else: what speaks against the other causes of a conclusive verdict.

use event::{Duration, TimeRange};
use trace::TraceInfo;

use crate::diagnose::is_virtual;
use crate::finding::{Culprit, LateActivation};
use crate::model::Model;
use crate::term::TermKind;

/// Questions that somebody who doubts the verdict would ask, each with what the evidence says.
pub(crate) fn excluded(
    model: &Model,
    info: &TraceInfo,
    late: &LateActivation,
    first: &Culprit,
) -> Vec<(&'static str, String)> {
    let mut answers = vec![("why not the host?", host(model, info, late, first))];
    if !matches!(first.kind, TermKind::Hardirq { .. } | TermKind::Nmi) {
        answers.push(("why not an interrupt?", interrupts(late)));
    }
    if !is_limit(&first.kind) {
        answers.push(("why not a limit or a quota?", limits(late)));
    }
    answers.push(("why not itself?", itself(late)));
    answers.push(("why not what was not seen?", unseen(late)));
    answers
}

fn host(model: &Model, info: &TraceInfo, late: &LateActivation, first: &Culprit) -> String {
    if !is_virtual(info) {
        return match info.environment.contains_key("rtscope_virtualised") {
            true => "there is none: the machine is not virtual".to_owned(),
            false => "nothing says that the machine is virtual".to_owned(),
        };
    }
    let events = events_inside(model, first);
    let stolen = match late.stolen_max {
        Duration::ZERO => "no steal was counted there".to_owned(),
        stolen => format!("at most {stolen} of it may be steal"),
    };
    let span = (first.range.begin.as_ns(), first.range.end.as_ns());
    let beats = match model.would_show_stillness(first.cpu, span) {
        true => "; the beats of other CPUs went on",
        false => "",
    };
    let cpu = first.cpu;
    format!("{stolen}{beats}; {cpu} itself did something {events} times in it")
}

/// How often who had the CPU changed inside a cause.
fn events_inside(model: &Model, first: &Culprit) -> usize {
    let TimeRange { begin, end } = first.range;
    let mut slices: usize = 0;
    if let Some(timeline) = model.timeline(first.cpu) {
        timeline.slices(begin.as_ns(), end.as_ns(), |_| slices += 1);
    }
    slices.saturating_sub(1)
}

/// The time of all terms of some kinds.
fn time_of(late: &LateActivation, of: impl Fn(&TermKind) -> bool) -> Duration {
    let terms = late.ledger.terms.iter().filter(|term| of(&term.kind));
    terms.map(|term| term.duration).sum()
}

fn interrupts(late: &LateActivation) -> String {
    let all = time_of(late, |kind| {
        let is_hard = matches!(kind, TermKind::Hardirq { .. } | TermKind::Nmi);
        is_hard || matches!(kind, TermKind::Softirq { .. })
    });
    format!("those that were recorded took {all} of it, softirqs among them")
}

fn is_limit(kind: &TermKind) -> bool {
    matches!(
        kind,
        TermKind::Throttled { .. }
            | TermKind::RuntimeUsedUp { .. }
            | TermKind::Quota { .. }
            | TermKind::GroupWeight { .. }
    )
}

fn limits(late: &LateActivation) -> String {
    match time_of(late, is_limit) {
        Duration::ZERO => "none was seen at work".to_owned(),
        limited => format!("that took {limited} of it"),
    }
}

fn itself(late: &LateActivation) -> String {
    match time_of(late, |kind| matches!(kind, TermKind::OwnRun)) {
        Duration::ZERO => "it did not run in it".to_owned(),
        own => format!("it ran for {own} of it"),
    }
}

fn unseen(late: &LateActivation) -> String {
    let grade = late.ledger.grade.name();
    match late.ledger.unexplained() {
        Duration::ZERO => format!("its evidence is {grade}, and all of it is explained"),
        unexplained => format!("its evidence is {grade}, and {unexplained} of it are unexplained"),
    }
}
