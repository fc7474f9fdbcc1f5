//! The answer in about ten lines: what happened when, who took how long, what to do, where to look.

use diagnosis::{Diagnosis, Group, LateActivation, Verdict};

use super::lines::{folded, labelled, parts_text};
use super::style::{Meaning, TextStyle};
use crate::count::of_late;
use crate::reports::Calendar;

/// Advice that is shown; the rest is told with `-v`.
const ADVICE_MAX: usize = 3;
/// Further causes that are shown, a sentence each: one at least, more where the first left room.
const FURTHER_MAX: usize = 3;
/// The answer without its warnings, the count of further causes, and what it rests on.
const LINES_MAX: usize = 8;
/// Terms of the ledger that are shown, from this share on.
const TERMS_MAX: usize = 3;
const TERM_SHARE_MIN: f64 = 0.05;
const NS_PER_MS: i64 = 1_000_000;

/// The first cause in full, of further ones what happened.
pub(super) fn groups_text(diagnosis: &Diagnosis, style: &TextStyle, lines: &mut Vec<String>) {
    let mut groups = diagnosis.groups.iter();
    if let Some(first) = groups.next() {
        first_text(diagnosis, first, style, lines);
    }
    let used: usize = lines.iter().map(|line| line.lines().count()).sum();
    let further = LINES_MAX.saturating_sub(used).clamp(1, FURTHER_MAX);
    for group in groups.take(further) {
        let Some(late) = first_of(diagnosis, group) else {
            continue;
        };
        let share = of_late(group.members.len(), diagnosis);
        let sentence = happened(late, &group.verdict, style);
        let text = format!("Also ({share}): {sentence}");
        lines.push(style.paint(meaning(&group.verdict), &folded(&text, 2, style.columns)));
    }
    let rest = diagnosis.groups.len().saturating_sub(1 + further);
    if rest > 0 {
        let causes = crate::count::counted(rest as u64, "more cause");
        lines.push(format!("{causes}, with -v."));
    }
}

fn first_of<'a>(diagnosis: &'a Diagnosis, group: &Group) -> Option<&'a LateActivation> {
    let first = group.members.first()?;
    diagnosis.activations.get(*first)
}

fn first_text(diagnosis: &Diagnosis, group: &Group, style: &TextStyle, lines: &mut Vec<String>) {
    let Some(late) = first_of(diagnosis, group) else {
        return;
    };
    let verdict = &group.verdict;
    let sentence = folded(&happened(late, verdict, style), 2, style.columns);
    lines.push(style.paint(meaning(verdict), &sentence));
    parts_text(late, lines);
    if let Some(terms) = terms_text(late) {
        let terms = format!("  where it went: {terms}");
        lines.push(folded(&terms, 4, style.columns));
    }
    if group.members.len() > 1 {
        let share = of_late(group.members.len(), diagnosis);
        let is_worst = late.latency() == group.worst;
        let this = if is_worst { "; this is the worst" } else { "" };
        lines.push(format!("  {share} have this cause{this}"));
    }
    for mutex in &verdict.mutexes {
        let name = mutex.name.as_deref().unwrap_or("without a name");
        let (waiter, address) = (&mutex.waiter.comm, mutex.address);
        let text = format!("  {waiter} waited for the mutex {name} ({address:#x})");
        lines.push(text);
    }
    advice_text(verdict, style, lines);
    if let Some(more) = &style.more {
        lines.push(labelled("look", more, "every step, ledger, stacks", style));
    }
}

fn meaning(verdict: &Verdict) -> Meaning {
    match verdict.conclusive {
        true => Meaning::Verdict,
        false => Meaning::Doubt,
    }
}

/// The verdict with the time of day, where the trace knows it.
fn happened(late: &LateActivation, verdict: &Verdict, style: &TextStyle) -> String {
    match style.wall_offset {
        Some(offset) => {
            let at = wall_text((late.end + offset).as_ns(), style.utc);
            format!("{at}  {}", verdict.sentence)
        }
        None => verdict.sentence.clone(),
    }
}

/// An instant of the wall clock to the millisecond.
pub(crate) fn wall_text(wall_ns: i64, utc: bool) -> String {
    let calendar = Calendar { utc, dated: true };
    let whole = wall_ns - wall_ns.rem_euclid(NS_PER_MS);
    let text = calendar.time(whole);
    text.strip_suffix("000000").unwrap_or(&text).to_owned()
}

/// The longest terms; none where the verdict has said it all.
fn terms_text(late: &LateActivation) -> Option<String> {
    let total = late.latency();
    let sums = late.ledger.sums();
    let matters = |sum: &&diagnosis::Sum| sum.duration.share_of(total) >= TERM_SHARE_MIN;
    let shown: Vec<_> = sums.iter().filter(matters).take(TERMS_MAX).collect();
    let is_told = shown.len() < 2;
    let term = |sum: &&diagnosis::Sum| {
        let share = sum.duration.share_of(total) * 100.0;
        format!("{share:.1} % {sum}")
    };
    (!is_told).then(|| shown.iter().map(term).collect::<Vec<_>>().join("; "))
}

/// A cause that matters and has no advice.
pub(super) fn unadvised(cause: &str) -> String {
    format!("  no advice is known against this cause: {cause}")
}

fn advice_text(verdict: &Verdict, style: &TextStyle, lines: &mut Vec<String>) {
    let mut causes = Vec::new();
    for (place, advice) in verdict.advice.iter().take(ADVICE_MAX).enumerate() {
        let label = match place {
            0 => "do",
            _ if advice.alone || causes.contains(&advice.cause) => "or",
            _ => "and",
        };
        causes.push(advice.cause);
        lines.push(labelled(label, &advice.command, &advice.because, style));
    }
    lines.extend(verdict.unadvised.iter().map(|cause| unadvised(cause)));
    let Some(first) = verdict.advice.first() else {
        return;
    };
    let rest = verdict.advice.len().saturating_sub(ADVICE_MAX);
    if rest > 0 {
        lines.push(format!("         {rest} more with -v"));
    }
    lines.push(labelled("check", &first.then_check, "", style));
}
