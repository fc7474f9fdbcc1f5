//! Rules about the kernel's limits on real-time tasks: their own runtime, and the share that they
//! leave to fair ones.

use event::{Duration, Prio};

use super::{Case, rounded};
use crate::model::{Slice, VersionId, What};
use crate::term::TermKind;

/// The limits are shares of a second.
const SHARE_OF_NS: i64 = 1_000_000_000;
/// Who had the CPU for less of that did not use up the share.
const USED_UP_NS_MIN: i64 = SHARE_OF_NS / 2;

/// So much more runtime than the work took.
const RUNTIME_SPARE: i64 = 5;

/// A runtime in which the work fits: more than it has now, which only `chrt` knows, because earlier
/// work of the same period may have used that up. Deadline and period stay.
pub(super) fn raise_runtime(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::RuntimeUsedUp { task } = &case.culprit.kind else {
        return None;
    };
    let terms = case.late.ledger.terms.iter();
    let ran = terms.filter(|term| match &term.kind {
        TermKind::OwnRun => task.tid == case.late.task.tid,
        TermKind::Upstream { task: ran } => ran.tid == task.tid,
        _ => false,
    });
    let ran: Duration = ran.map(|term| term.duration).sum();
    if ran == Duration::ZERO {
        // What it did with its runtime is not in this: nothing says how much would do.
        return None;
    }
    let runtime = rounded(ran + Duration::from_ns(ran.as_ns() / RUNTIME_SPARE));
    let because = format!(
        "{}'s runtime was used up before its work was done, which took {ran} here; or let it do \
         less in a period",
        task.comm
    );
    let (tid, ns) = (task.tid, runtime.as_ns());
    let command = format!(
        "set -- $(chrt -p {tid} | sed -n 's/.*parameters: //p' | tr / ' '); \
         chrt -d -T $(($1 < {ns} ? {ns} : $1 + {ns})) -D $2 -P $3 -p 0 {tid}"
    );
    Some((because, command))
}

/// Fair tasks get their share only where real-time ones leave none: whoever took it sleeps too
/// little.
pub(super) fn leave_share(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::Throttled { .. }).then_some(())?;
    let cpu = case.culprit.cpu;
    let begin_ns = case.culprit.range.begin.as_ns();
    let timeline = case.model.timeline(cpu)?;
    let tasks = &case.model.tasks;
    let mut had: Vec<(VersionId, i64)> = Vec::new();
    timeline.slices(begin_ns - SHARE_OF_NS, begin_ns, |slice: Slice| {
        let version = tasks.version(slice.task);
        let version = version.filter(|_| slice.occupant.what() == What::Task);
        let Some(version) = version.filter(|version| takes_share(version.prio)) else {
            return;
        };
        let is_his = |known: &&mut (VersionId, i64)| {
            tasks.version(known.0).map(|known| known.tid) == Some(version.tid)
        };
        let ns = slice.end_ns - slice.begin_ns;
        match had.iter_mut().find(is_his) {
            Some(known) => known.1 += ns,
            None => had.push((slice.task, ns)),
        }
    });
    let (most, ns) = had.into_iter().max_by_key(|(_, ns)| *ns)?;
    let task = tasks.version(most)?.task_ref();
    if ns < USED_UP_NS_MIN || task.tid == case.late.task.tid || tasks.is_kernels_task(&task) {
        return None;
    }
    let because = format!(
        "{} ({}) had {cpu} for {} of the second before, and left fair tasks no share of it; or let \
         it sleep",
        task.comm,
        task.prio,
        Duration::from_ns(ns)
    );
    Some((because, format!("chrt -o -p 0 {}", task.tid)))
}

/// What has a deadline has a runtime of its own.
fn takes_share(prio: Prio) -> bool {
    prio.is_real_time() && !prio.has_deadline()
}
