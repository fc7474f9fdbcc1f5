//! What a verdict names: who or what made an activation late, the largest first.

use event::Duration;

use crate::finding::{Culprit, LateActivation};
use crate::term::{Sum, TermKind};

/// Causes that one sentence can hold.
const CULPRITS_MAX: usize = 3;
/// A further cause is named from this share on;
pub(crate) const FURTHER_SHARE_MIN: f64 = 0.1;
/// a task from this one on, or
const FURTHER_TASK_SHARE_MIN: f64 = 0.02;
/// from this length on.
const FURTHER_TASK_MIN: Duration = Duration::from_us(500);

/// Whether it can be somebody's doing.
fn is_cause(sum: &Sum) -> bool {
    let is_own = matches!(sum.kind, TermKind::Unexplained(_) | TermKind::OwnRun);
    !is_own && !is_short(&sum.kind)
}

/// What takes so little that nobody is to blame for it.
fn is_short(kind: &TermKind) -> bool {
    matches!(kind, TermKind::Switch | TermKind::Migration)
}

/// For how long who is named in `sum` had the CPU, under both names of the ledger: a task whose
/// priority changed may have kept it and have run ahead. Where another thread got its id meanwhile,
/// there are two of one name, and nobody knows whose the other is.
fn kept_off(causes: &[Sum], sum: &Sum) -> Duration {
    let had_the_cpu = |kind: &TermKind| match kind {
        TermKind::RunQueueWait { behind: task } => Some((task.tid, true)),
        TermKind::PreemptionOff { task, .. } => Some((task.tid, false)),
        _ => None,
    };
    let Some((tid, is_ahead)) = had_the_cpu(&sum.kind) else {
        return sum.duration;
    };
    let of = |is_ahead: bool| {
        let its = causes.iter();
        let mut its = its.filter(move |cause| had_the_cpu(&cause.kind) == Some((tid, is_ahead)));
        (its.next(), its.next().is_none())
    };
    match (of(is_ahead), of(!is_ahead)) {
        ((_, true), (Some(other), true)) => sum.duration + other.duration,
        _ => sum.duration,
    }
}

/// Causes, which are sorted by their length, by all that each task did.
fn the_most_of_one_task_first(causes: Vec<Sum>) -> Vec<Sum> {
    let lengths: Vec<Duration> = causes
        .iter()
        .map(|cause| kept_off(&causes, cause))
        .collect();
    let mut ranked: Vec<(Duration, Sum)> = lengths.into_iter().zip(causes).collect();
    ranked.sort_by_key(|(length, _)| -length.as_ns());
    ranked.into_iter().map(|(_, cause)| cause).collect()
}

/// Whether it is worth a word beside others, or where nothing is proven.
pub(crate) fn matters(culprit: &Culprit) -> bool {
    let is_task = culprit.kind.task().is_some();
    let task_matters =
        culprit.share >= FURTHER_TASK_SHARE_MIN || culprit.duration >= FURTHER_TASK_MIN;
    culprit.share >= FURTHER_SHARE_MIN || is_task && task_matters
}

/// Of one that its own work made late: that, and others who took a good part of it.
pub(crate) fn of_own_work(late: &LateActivation, others: Vec<Culprit>) -> Vec<Culprit> {
    let own = late.ledger.sums().into_iter();
    let own = own.filter(|sum| sum.kind == TermKind::OwnRun);
    let good = |other: &Culprit| other.share >= FURTHER_SHARE_MIN;
    let others = others.into_iter().filter(good);
    own.map(|sum| culprit(sum, late)).chain(others).collect()
}

fn culprit(sum: Sum, late: &LateActivation) -> Culprit {
    Culprit {
        share: sum.duration.share_of(late.latency()),
        kind: sum.kind,
        tasks: sum.tasks,
        duration: sum.duration,
        cpu: sum.cpu,
        range: sum.range,
        waiter: sum.waiter,
        waited_as: sum.waited_as,
    }
}

/// What made it late, the largest first.
pub(crate) fn culprits(late: &LateActivation) -> Vec<Culprit> {
    let (causes, others): (Vec<Sum>, Vec<Sum>) = late.ledger.sums().into_iter().partition(is_cause);
    let causes = the_most_of_one_task_first(causes);
    // Nobody kept it off for longer than a switch took.
    let switch = others.into_iter().find(|sum| is_short(&sum.kind));
    let switch = switch.filter(|switch| {
        let first = causes.first();
        first.is_some_and(|first| switch.duration > kept_off(&causes, first))
    });
    let causes = switch.into_iter().chain(causes);
    let mut culprits: Vec<_> = causes.map(|sum| culprit(sum, late)).collect();
    let mut place = 0;
    culprits.retain(|culprit| {
        place += 1;
        place == 1 || matters(culprit)
    });
    culprits.truncate(CULPRITS_MAX);
    culprits
}
