//! A verdict names only who it was, and says that nothing was late only where nothing was.

use diagnosis::{Culprit, LateActivation, StepKind, TermKind};
use event::Duration;
use report::{TextStyle, diagnosis_text};
use views::Judgement;

use crate::agree::{diagnosis_in, found_in, names};
use crate::answers::Told;
use crate::machine::DEVICE;
use crate::prove::{Claim, at_most};
use crate::recording::Recording;
use crate::truth::{Doing, Handler, OnCpu, TrueWait, Window};

/// Waits for longer are late.
const LIMIT_NS: i64 = 200_000;
const LIMIT: &str = "200us";
/// What the two events of a wake-up lie apart at most, or a wake-up and its migration.
const DELIVERY_NS: i64 = 1_000;

/// Who had the CPU while a task waited for it: a thread, or a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// Whoever had this number.
    Tid(i32),
    /// One of them.
    Thread(i32, u32),
    Handler(Handler),
}

impl Cause {
    fn had(self, on: &OnCpu) -> bool {
        match (self, on.handler) {
            (Cause::Handler(handler), Some(found)) => handler == found,
            (Cause::Tid(tid), None) => on.task.is_some_and(|task| task.tid == tid),
            (Cause::Thread(tid, life), None) => {
                on.life == life && on.task.is_some_and(|task| task.tid == tid)
            }
            _ => false,
        }
    }
}

/// The ids of all threads that had this name at some time.
fn called(recording: &Recording, comm: &str) -> Vec<i32> {
    let records = recording.kept.iter().chain(&recording.hidden);
    let named = records.flat_map(|record| record.tasks());
    let mut tids: Vec<i32> = named
        .filter(|task| task.comm == comm)
        .map(|task| task.tid)
        .collect();
    tids.sort_unstable();
    tids.dedup();
    tids
}

/// Who waits at each time of an activation: the task that its chain of wake-ups has come to.
fn waiters(late: &LateActivation) -> Vec<(i32, Window)> {
    let wakings = late
        .steps
        .iter()
        .filter(|step| step.kind == StepKind::Waking);
    // It may begin while a task of the chain works, which may be preempted.
    let first = late.steps.first();
    let works = first.filter(|step| step.kind == StepKind::SwitchIn);
    let wakings = works.into_iter().chain(wakings);
    let wakings: Vec<(i32, i64)> = wakings.map(|step| (step.id, step.time.as_ns())).collect();
    let ends = wakings.iter().skip(1).map(|(_, at_ns)| *at_ns);
    let ends = ends.chain([late.end.as_ns()]);
    let waiter = |((tid, begin_ns), end_ns): (&(i32, i64), i64)| {
        let begin_ns = *begin_ns;
        (*tid, Window { begin_ns, end_ns })
    };
    wakings.iter().zip(ends).map(waiter).collect()
}

/// How long this had the CPU while a task of the chain waited for it.
fn true_ns(recording: &Recording, late: &LateActivation, cause: Cause) -> i64 {
    let waited = waiters(late).into_iter().map(|(waiter, window)| {
        let had = |on: &OnCpu| cause.had(on);
        recording.truth.waited_ns(waiter, window, had)
    });
    waited.sum()
}

/// How long the culprit had the CPU in truth; none where it is no task that keeps others waiting.
fn true_share_ns(recording: &Recording, late: &LateActivation, culprit: &Culprit) -> Option<i64> {
    let task = match &culprit.kind {
        TermKind::RunQueueWait { behind: task }
        | TermKind::PreemptionOff { task, .. }
        | TermKind::StopClass { task }
        | TermKind::Throttled {
            ran: Some(task), ..
        } => task,
        _ => return None,
    };
    let tids = match culprit.tasks {
        1 => vec![task.tid.0],
        _ => called(recording, &task.comm),
    };
    let share = |tid: i32| true_ns(recording, late, Cause::Tid(tid));
    Some(tids.into_iter().map(share).sum())
}

/// The most that one thread or handler kept the chain waiting, and who that is.
fn largest(recording: &Recording, late: &LateActivation) -> Option<(i64, Cause)> {
    let threads = recording.truth.threads().into_iter();
    let threads = threads.map(|(tid, life)| Cause::Thread(tid, life));
    let handlers = [Handler::Irq(DEVICE), Handler::Timer];
    let softirqs = (0..10).map(Handler::Softirq);
    let handlers = handlers.into_iter().chain(softirqs).map(Cause::Handler);
    let causes = threads.chain(handlers);
    let causes = causes.map(|cause| (true_ns(recording, late, cause), cause));
    causes.max()
}

pub fn a_conclusive_verdict_names_the_largest_cause(recording: &Recording) -> Claim {
    let Some(diagnosis) = diagnosis_in(&recording.trace(), None, recording.range()) else {
        return Ok(());
    };
    for group in diagnosis
        .groups
        .iter()
        .filter(|group| group.verdict.conclusive)
    {
        let Some(late) = group.members.first().map(|at| &diagnosis.activations[*at]) else {
            continue;
        };
        let sentence = &group.verdict.sentence;
        for culprit in &group.verdict.culprits {
            let Some(true_ns) = true_share_ns(recording, late, culprit) else {
                continue;
            };
            let exits_ns: i64 = recording.idle_exits_ns().values().sum();
            let said_ns = culprit.duration.as_ns();
            at_most(sentence, said_ns, true_ns + exits_ns + DELIVERY_NS)?;
        }
        let Some(first) = group.verdict.culprits.first() else {
            continue;
        };
        let Some(said_ns) = true_share_ns(recording, late, first) else {
            continue;
        };
        if let Some((most_ns, cause)) = largest(recording, late)
            && most_ns > said_ns + DELIVERY_NS
        {
            return Err(format!("{sentence}: but {cause:?} had it for {most_ns} ns"));
        }
    }
    Ok(())
}

pub fn a_conclusive_verdict_is_about_a_true_wait(recording: &Recording) -> Claim {
    let Some(diagnosis) = diagnosis_in(&recording.trace(), None, recording.range()) else {
        return Ok(());
    };
    let end_ns = recording.last_ns();
    for group in diagnosis
        .groups
        .iter()
        .filter(|group| group.verdict.conclusive)
    {
        let Some(late) = group.members.first().map(|at| &diagnosis.activations[*at]) else {
            continue;
        };
        let (tid, at_ns) = (late.task.tid.0, late.end.as_ns());
        let waits = |doing: &Doing| matches!(doing, Doing::Waiting { .. });
        let last = Window {
            begin_ns: end_ns - 1,
            end_ns,
        };
        let is_open = at_ns == end_ns && recording.truth.task_ns(tid, last, waits) > 0;
        if !is_open && !recording.may_end_a_wait(tid, at_ns) {
            let sentence = &group.verdict.sentence;
            return Err(format!(
                "{sentence}: but {tid} was not scheduled in at {at_ns} ns"
            ));
        }
    }
    Ok(())
}

/// Waits that were late in truth. Where a switch away from idle is hidden, an idle CPU is taken to
/// have taken the task at once.
fn late_waits(recording: &Recording) -> impl Iterator<Item = &TrueWait> {
    let exits_ns = recording.idle_exits_ns();
    let late = recording.true_waits().filter(move |(wait, span)| {
        let exit_ns = exits_ns.get(&wait.tid).copied().unwrap_or(0);
        // Where no loss says that it is missing, a wake-up that was not recorded was none.
        let mut records = recording.kept.iter();
        let begins = records.any(|record| record.at_ns == span.begin_ns);
        let asked = recording.asked;
        let ends = asked.is_none_or(|all| (all.begin_ns..=all.end_ns).contains(&span.end_ns));
        let is_told = begins || recording.late.is_none();
        ends && span.ns() > LIMIT_NS + exit_ns && is_told
    });
    late.map(|(wait, _)| wait)
}

/// Whether it says so of the whole recording.
fn says_nothing_was_late(text: &str) -> bool {
    let limits = ["What is missing", "is not known", "may be late"];
    let is_limited = limits.iter().any(|limit| text.contains(limit));
    text.contains("No wait for a CPU above") && !is_limited
}

pub fn nothing_was_late_is_said_only_where_nothing_was(recording: &Recording) -> Claim {
    let limit = Duration::from_ns(LIMIT_NS);
    let Some(diagnosis) = diagnosis_in(&recording.trace(), Some(limit), recording.range()) else {
        return Ok(());
    };
    let text = diagnosis_text(&diagnosis, &TextStyle::default());
    match late_waits(recording).next() {
        Some(wait) if says_nothing_was_late(&text) => Err(format!("but {wait:?} was\n{text}")),
        _ => Ok(()),
    }
}

pub fn a_budget_is_held_or_broken_only_where_it_was(recording: &Recording) -> Claim {
    let trace = recording.trace();
    for name in names(recording) {
        let rule = format!("wake-up of {name} within {LIMIT}");
        let finding = found_in(&trace, &rule, recording.range())?;
        let mut late = late_waits(recording).filter(|wait| wait.comm == name);
        match finding.judgement {
            Judgement::Held => {
                if let Some(wait) = late.next() {
                    return Err(format!("'{}' held, but {wait:?}", finding.budget.text));
                }
            }
            Judgement::Broken => {
                let range = finding.worst.ok_or("broken without a worst")?;
                let (begin_ns, end_ns) = (range.begin.as_ns(), range.end.as_ns());
                let is_complete = recording.is_complete();
                let is_it = |wait: &TrueWait| {
                    if !wait.slept && is_complete {
                        return false;
                    }
                    let span = wait.span(recording.wakes != crate::recording::Wakes::OnlyWakeup);
                    span.is_some_and(|span| span.begin_ns == begin_ns && span.end_ns >= end_ns)
                };
                let mut waits = recording.truth.waits.iter();
                if !waits.any(is_it) {
                    let what = &finding.budget.text;
                    return Err(format!(
                        "'{what}' broken by a wait that never was: {range:?}"
                    ));
                }
            }
            Judgement::Inconclusive(_) => (),
        }
    }
    Ok(())
}
