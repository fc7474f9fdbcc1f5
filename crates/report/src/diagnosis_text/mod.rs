//! A diagnosis for the terminal: in ten lines, or with steps, ledger, stacks and all advice.

mod lines;
mod short;
mod style;

use std::fmt::Write;

use diagnosis::{
    Basis, Diagnosis, Grade, Group, Hit, LateActivation, Stack, Step, StepKind, Sum, TaskRef,
    TermKind, Until, Verdict, softirq_name,
};
use event::{Duration, Instant};

use crate::count::{counted, of_late};
use crate::scope::{BEFORE_FAIR_WAKER, long_start_ups, sleep_that_ends_work};
use lines::parts_text;
pub(crate) use short::wall_text;
use style::Meaning;
pub use style::TextStyle;

/// Width of a bar of 100 %, in characters, where there is room for it.
const BAR_WIDTH: usize = 24;
/// What a line of the ledger holds beside the name and the bar.
const TERM_NUMBERS_WIDTH: usize = 2 + 1 + 14 + 1 + 7 + 2;
/// A name is not cut below this.
const NAME_WIDTH_MIN: usize = 20;
/// Frames of a stack that are shown.
const FRAMES_MAX: usize = 8;
/// Terms below this share, beyond the first ones, are added up in one line.
const SMALL_SHARE: f64 = 0.000_5;
/// Terms that are shown whatever their share.
const TERMS_MIN: usize = 8;

/// A sentence's begin.
fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

/// That nothing was late can be said only of what was recorded, and of what was looked at.
fn nothing_late(diagnosis: &Diagnosis) -> String {
    let basis = &diagnosis.basis;
    let threshold = basis
        .threshold
        .map_or_else(String::new, |threshold| format!(" {threshold}"));
    let mut text = match basis.until {
        Until::SwitchIn => format!(
            "No wait for a CPU above{threshold} in {} of {}; work after the wake-up is not judged.",
            counted(basis.activations, "wake-up"),
            judged_text(&basis.judged)
        ),
        Until::Block => format!(
            "No activation above{threshold} from its origin to the end of its work, of {} of {}.",
            counted(basis.activations, "activation"),
            judged_text(&basis.judged)
        ),
    };
    if basis.until == Until::Block && basis.hits == 0 {
        let ends = sleep_that_ends_work(basis.locks_known);
        let _ = write!(text, " A {ends}. {}.", capital(BEFORE_FAIR_WAKER));
    }
    if basis.unjudged > 0 {
        let unjudged = counted(basis.unjudged, "activation");
        let _ = write!(text, " {unjudged} that had begun before: not judged.");
    }
    if let Some(start_ups) = long_start_ups(basis.long_start_ups, basis.unslept) {
        let _ = write!(text, " {start_ups}.");
    }
    text += &may_be_late(basis);
    let slept = basis.inside.iter().filter(|found| found.over > 0);
    let slept: Vec<String> = slept.map(ToString::to_string).collect();
    if !slept.is_empty() {
        text = format!("Inconclusive: {}. Else: {text}", slept.join("; "));
    }
    if basis.holes > 0 {
        let places = kernel_state::places(basis.holes);
        let _ = write!(text, " What is missing in {places} is not judged.");
    }
    text
}

/// The snapshot of a call at which nothing stood out.
fn open_call(diagnosis: &Diagnosis) -> String {
    let said = diagnosis.basis.open_call.as_deref().unwrap_or_default();
    format!(
        "Inconclusive: the application said: {said}. No activation that the watch saw then was \
         longer than is usual for its task, so nobody is named. --over 1ms tells what was long \
         there all the same, --task NAME of one task."
    )
}

/// Activations of which nobody knows whether they were late, and why: a sentence each.
fn may_be_late(basis: &Basis) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    if basis.unwoken > 0 {
        let unwoken = counted(basis.unwoken, "activation");
        let _ = write!(
            text,
            " {unwoken} may be late: their wake-up was not recorded."
        );
    }
    if basis.doubted > 0 {
        let doubted = counted(basis.doubted, "activation");
        let _ = write!(
            text,
            " How long {doubted} lasted is not known: switches are missing."
        );
    }
    if basis.unknown_wakers > 0 {
        let unknown = counted(basis.unknown_wakers, "activation");
        let _ = write!(
            text,
            " {unknown} may be late: nothing shows who woke them, or since when."
        );
    }
    if basis.stopped_asleep > 0 {
        let stopped = counted(basis.stopped_asleep, "activation");
        let _ = write!(
            text,
            " {stopped} may be late: they were stopped, perhaps before they were due."
        );
    }
    if let Some(renamed) = &basis.renamed {
        let tid = renamed.task.tid;
        let _ = write!(
            text,
            " {}; --tid {tid} judges it.",
            capital(&renamed.to_string())
        );
    }
    text
}

fn nothing_to_judge(diagnosis: &Diagnosis) -> String {
    let mut text = "Nothing to judge: no task that was asked for was activated there (rtscope \
                    report schedtop names those that were)."
        .to_owned();
    let basis = &diagnosis.basis;
    if let Some(start_ups) = long_start_ups(basis.long_start_ups, basis.unslept) {
        let _ = write!(text, " {start_ups}.");
    }
    text
}

/// Threads that are named; the others are counted.
const JUDGED_MAX: usize = 3;

/// Whose activations were judged, the most frequent first.
pub fn judged_text(judged: &[(TaskRef, u64)]) -> String {
    let named = judged.iter().take(JUDGED_MAX);
    let named = named.map(|(task, _)| task.to_string());
    let mut text = named.collect::<Vec<_>>().join(", ");
    if judged.len() > JUDGED_MAX {
        let _ = write!(text, " and {} more threads", judged.len() - JUDGED_MAX);
    }
    text
}

/// A diagnosis as text, with a newline at its end.
pub fn diagnosis_text(diagnosis: &Diagnosis, style: &TextStyle) -> String {
    let mut lines = Vec::new();
    if diagnosis.groups.is_empty() {
        lines.push(match diagnosis.basis.activations {
            _ if diagnosis.basis.open_call.is_some() => open_call(diagnosis),
            0 => nothing_to_judge(diagnosis),
            _ => nothing_late(diagnosis),
        });
    }
    if style.verbose {
        for group in &diagnosis.groups {
            group_text(diagnosis, group, style, &mut lines);
        }
    } else {
        short::groups_text(diagnosis, style, &mut lines);
    }
    warnings_text(diagnosis, style, &mut lines);
    let basis = basis_text(diagnosis, style.verbose);
    lines.push(lines::folded(&basis, 2, style.columns));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn group_text(diagnosis: &Diagnosis, group: &Group, style: &TextStyle, lines: &mut Vec<String>) {
    let Some(late) = group
        .members
        .first()
        .and_then(|first| diagnosis.activations.get(*first))
    else {
        return;
    };
    let meaning = if group.verdict.conclusive {
        Meaning::Verdict
    } else {
        Meaning::Doubt
    };
    lines.push(style.paint(meaning, &group.verdict.sentence));
    if let Some(offset) = style.wall_offset {
        let at = wall_text((late.end + offset).as_ns(), style.utc);
        lines.push(format!("  at {at}"));
    }
    parts_text(late, lines);
    if group.members.len() > 1 {
        let share = of_late(group.members.len(), diagnosis);
        let is_worst = late.latency() == group.worst;
        let this = if is_worst { "; this is the worst" } else { "" };
        lines.push(format!("{share} activations have this cause{this}."));
    }
    lines.push(String::new());
    steps_text(
        &late.steps,
        late.steps_left_out,
        late.end,
        late.latency(),
        lines,
    );
    lines.push(String::new());
    ledger_text(late, &group.verdict, style, lines);
    excluded_text(&group.verdict, lines);
    mutexes_text(&group.verdict, lines);
    stacks_text(&group.verdict, lines);
    advice_text(&group.verdict, lines);
    next_text(&group.verdict, style, lines);
    lines.push(String::new());
}

/// A hit without a snapshot: its steps, with the share of each, and who left the CPU last.
pub fn hit_text(hit: &Hit, style: &TextStyle) -> String {
    let mut lines = vec![style.paint(
        Meaning::Verdict,
        &format!("{} was {} late.", hit.task, hit.latency()),
    )];
    lines.push(String::new());
    steps_text(&hit.steps, hit.overflow, hit.end, hit.latency(), &mut lines);
    if let Some(culprit) = hit.culprit.as_ref().filter(|task| !task.tid.is_idle()) {
        lines.push(format!("  it was scheduled in when {culprit} left its CPU"));
    }
    for (name, stack) in [
        ("the waker", &hit.waker_stack),
        ("the task that left", &hit.culprit_stack),
    ] {
        stack_text(name, stack, &mut lines);
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn steps_text(
    steps: &[Step],
    left_out: u32,
    end: Instant,
    latency: Duration,
    lines: &mut Vec<String>,
) {
    lines.push(format!(
        "  {:<20} {:>6} {:>14} {:>7}  step",
        "time [s]", "CPU", "until next", "share"
    ));
    if left_out > 0 {
        lines.push(format!("  {:<20} {left_out} earlier steps left out", "…"));
    }
    for (place, step) in steps.iter().enumerate() {
        let next = steps.get(place + 1).map_or(end, |next| next.time);
        let length = next - step.time;
        lines.push(format!(
            "  {:<20} {:>6} {:>14} {:>6.1}%  {}",
            step.time.to_string(),
            step.cpu.0,
            nanoseconds(length),
            length.share_of(latency) * 100.0,
            step_name(step),
        ));
    }
}

/// `1_234_567 ns` with thin groups, so that digits can be compared down a column.
pub(crate) fn nanoseconds(length: Duration) -> String {
    let digits = length.as_ns().unsigned_abs().to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    let sign = if length < Duration::ZERO { "-" } else { "" };
    format!("{sign}{grouped} ns")
}

pub(crate) fn step_name(step: &Step) -> String {
    let task = || format!("{} (tid {}, {})", step.comm, step.id, step.prio);
    match step.kind {
        StepKind::TimerExpiry => "a timer expires".to_owned(),
        StepKind::Nmi => "NMI".to_owned(),
        StepKind::Hardirq if step.id < 0 || step.comm.is_empty() => TermKind::Hardirq {
            irq: step.id,
            name: step.comm.clone(),
        }
        .to_string(),
        StepKind::Hardirq => format!("interrupt {} {}", step.id, step.comm),
        StepKind::Hrtimer => "the timer's function".to_owned(),
        StepKind::SoftirqRaise => format!("raises softirq {}", vector(step.id)),
        StepKind::Softirq => format!("softirq {}", vector(step.id)),
        StepKind::Waking => format!("wakes {}", task()),
        StepKind::SwitchIn => format!("{} runs", task()),
        StepKind::UserReturn => format!("{} is back in user mode", task()),
        StepKind::Blocked => format!("{} blocks", task()),
        StepKind::Preempted => format!("{} is put off", task()),
    }
}

fn vector(id: i32) -> String {
    let name = u32::try_from(id).ok().and_then(softirq_name);
    name.map_or_else(|| id.to_string(), str::to_owned)
}

fn ledger_text(
    late: &LateActivation,
    verdict: &Verdict,
    style: &TextStyle,
    lines: &mut Vec<String>,
) {
    let total = late.latency();
    let grade = match late.ledger.grade {
        Grade::Complete if late.ledger.is_good() => String::new(),
        Grade::Complete => format!(" — {} unexplained", late.ledger.unexplained()),
        grade => format!(" — {}", grade.name()),
    };
    lines.push(format!("  where {total} went{grade}:"));
    let small = |(place, sum): &(usize, &Sum)| {
        *place >= TERMS_MIN && sum.duration.share_of(total) < SMALL_SHARE
    };
    let sums = late.ledger.sums();
    let (rest, shown): (Vec<_>, Vec<_>) = sums.iter().enumerate().partition(small);
    let names = shown.iter().map(|(_, sum)| sum.to_string().chars().count());
    let widths = Widths::new(names.max().unwrap_or(0), style.columns);
    for (_, sum) in shown {
        let culprit = verdict.conclusive && verdict.culprits.iter().any(|c| c.kind == sum.kind);
        let meaning = match &sum.kind {
            TermKind::Unexplained(_) => Meaning::Doubt,
            _ if culprit => Meaning::Culprit,
            _ => Meaning::Plain,
        };
        let line = term_line(&sum.to_string(), sum.duration, total, widths);
        lines.push(style.paint(meaning, line.trim_end()));
    }
    if !rest.is_empty() {
        let sum = rest.iter().map(|(_, sum)| sum.duration).sum();
        let name = format!("{} smaller terms", rest.len());
        lines.push(term_line(&name, sum, total, widths).trim_end().to_owned());
    }
}

/// The columns of a ledger's table.
#[derive(Clone, Copy)]
struct Widths {
    name: usize,
    bar: usize,
}

impl Widths {
    /// The bar gives way first, then the longest names.
    fn new(name: usize, columns: Option<usize>) -> Self {
        let Some(columns) = columns else {
            let bar = BAR_WIDTH;
            return Widths { name, bar };
        };
        let room = columns.saturating_sub(TERM_NUMBERS_WIDTH);
        let name = name.min(room.max(NAME_WIDTH_MIN));
        let bar = BAR_WIDTH.min(room.saturating_sub(name));
        Widths { name, bar }
    }
}

fn term_line(name: &str, duration: Duration, total: Duration, widths: Widths) -> String {
    let share = duration.share_of(total);
    let full = widths.bar as f64;
    let bar = "█".repeat((share * full).round().clamp(0.0, full) as usize);
    let width = widths.name;
    let cut: String = match name.chars().count() {
        count if count > width => name.chars().take(width - 1).chain(['…']).collect(),
        _ => name.to_owned(),
    };
    format!(
        "  {cut:<width$} {:>14} {:>6.1}%  {bar}",
        nanoseconds(duration),
        share * 100.0
    )
}

fn mutexes_text(verdict: &Verdict, lines: &mut Vec<String>) {
    for mutex in &verdict.mutexes {
        let (waiter, address) = (&mutex.waiter.comm, mutex.address);
        lines.push(match &mutex.name {
            Some(name) => format!("  the mutex that {waiter} waited for: {name} ({address:#x})"),
            None => format!("  the mutex that {waiter} waited for lies at {address:#x}"),
        });
    }
}

fn excluded_text(verdict: &Verdict, lines: &mut Vec<String>) {
    if !verdict.excluded.is_empty() {
        lines.push(String::new());
    }
    for (question, answer) in &verdict.excluded {
        lines.push(format!("  {question:<27} {answer}"));
    }
}

fn stacks_text(verdict: &Verdict, lines: &mut Vec<String>) {
    for (what, stack) in &verdict.stacks {
        stack_text(what, stack, lines);
    }
}

fn stack_text(what: &str, stack: &Stack, lines: &mut Vec<String>) {
    if stack.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("  stack of {what}:"));
    for frame in stack.iter().take(FRAMES_MAX) {
        match frame.symbol.as_str() {
            "" => lines.push(format!("    {:#x}", frame.address)),
            symbol => lines.push(format!("    {symbol}")),
        }
    }
    if stack.len() > FRAMES_MAX {
        lines.push(format!("    … {} more", stack.len() - FRAMES_MAX));
    }
}

fn advice_text(verdict: &Verdict, lines: &mut Vec<String>) {
    if !verdict.unadvised.is_empty() {
        lines.push(String::new());
    }
    let unadvised = verdict.unadvised.iter();
    lines.extend(unadvised.map(|cause| short::unadvised(cause)));
    if verdict.advice.is_empty() {
        return;
    }
    lines.push(String::new());
    let which = match verdict.advice.iter().all(|advice| advice.alone) {
        true => "any one of these",
        false => "one for each cause",
    };
    lines.push(format!("  what to change ({which}):"));
    for advice in &verdict.advice {
        lines.push(format!("    {}", advice.command));
        lines.push(format!("      because {}", advice.because));
    }
    if let Some(advice) = verdict.advice.first() {
        lines.push(format!("  then check: {}", advice.then_check));
    }
}

fn next_text(verdict: &Verdict, style: &TextStyle, lines: &mut Vec<String>) {
    let Some(trace) = &style.trace else { return };
    // A little before and after, so that the causes are in sight.
    let margin = Duration::from_us(100);
    let (begin, end): (Instant, Instant) =
        (verdict.range.begin - margin, verdict.range.end + margin);
    // A time with a sign before it would be taken for a flag.
    let begin = begin.max(Instant::from_ns(0));
    lines.push(format!(
        "  look at it: rtscope cat {trace} --begin {begin} --end {end}"
    ));
}

fn warnings_text(diagnosis: &Diagnosis, style: &TextStyle, lines: &mut Vec<String>) {
    for warning in &diagnosis.warnings {
        if !style.verbose {
            let text = format!("warning: {}: {}", warning.what, warning.remedy);
            lines.push(style.paint(Meaning::Doubt, &lines::folded(&text, 2, style.columns)));
            continue;
        }
        lines.push(style.paint(Meaning::Doubt, &format!("warning: {}", warning.what)));
        lines.push(format!("  {}", warning.remedy));
    }
}

/// What the search looked at.
fn scope_text(basis: &Basis) -> String {
    let activations = counted(basis.activations, "activation");
    let until = match basis.until {
        Until::SwitchIn => "to the switch-in, their work not judged",
        Until::Block => "to the end of the work",
    };
    format!("{activations} of the tasks asked for, {until}")
}

fn basis_text(diagnosis: &Diagnosis, verbose: bool) -> String {
    let basis = &diagnosis.basis;
    let mut text = format!("{} events", basis.events);
    if let Some(window) = basis.window {
        // Writing to a String cannot fail.
        let _ = write!(text, " in {}", window.duration());
    }
    let _ = write!(text, ", {} lost", basis.lost);
    let found = match basis.hits {
        0 => scope_text(basis),
        hits => counted(hits, "hit") + " in the evidence",
    };
    let _ = write!(text, "; {found}");
    if basis.unpaired > 0 && verbose {
        let _ = write!(
            text,
            "; {} begins or ends of handlers left out, as their other half is missing",
            basis.unpaired
        );
    }
    text
}
