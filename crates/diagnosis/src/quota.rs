//! The quota of the waiting task's control group: while it is used up the task cannot run, whoever
//! does.

use event::evidence::{Moment, Role};
use event::{Duration, NumberMap, Prio};

use crate::finding::{Culprit, LateActivation};
use crate::model::{Model, VersionId};
use crate::naming::{Key, Piece, SKEW_MAX_NS};
use crate::phases::{Doing, Phase};
use crate::term::{Reason, TermKind};

/// Fair tasks of one weight take turns: none of them runs on for longer while another one can.
const TURN_MAX: Duration = Duration::from_ms(10);

/// So much of what others ran for is named as a cause of its own.
const PART_THAT_MATTERS: f64 = 0.1;

/// What a verdict says where nobody can tell a turn of others from a quota that was used up.
pub(crate) const UNTOLD: &str = " (This trace does not tell whether a CPU quota of its control \
                                 group kept it meanwhile.)";

/// Whether `first` is a fair task that ran ahead of another one, which its quota may have kept, and
/// neither a watch nor a recorder looked.
pub(crate) fn is_untold(model: &Model, late: &LateActivation, first: &Culprit) -> bool {
    let TermKind::RunQueueWait { behind } = &first.kind else {
        return false;
    };
    let span = (late.origin.as_ns(), late.end.as_ns());
    let is_told = || model.quotas.kept_at_most(late.task.tid.0, span).is_some();
    !behind.prio.is_real_time() && model.evidence.hits.is_empty() && !is_told()
}

/// Charges what a quota took of a fair task's wait, or says that one may have.
pub(crate) fn settle(model: &Model, phase: &Phase, pieces: &mut Vec<Piece>, first: usize) {
    let Doing::Waiting { tid, prio, .. } = phase.doing else {
        return;
    };
    if prio.is_real_time() {
        return;
    }
    if let Some(used_up) = used_up(model, phase, (tid, prio)) {
        charge(model, pieces, first, &used_up);
    } else if is_out_of_quota(model, phase, tid) {
        doubt(model, &mut pieces[first..], tid);
    } else if let Some(kept_ns) = kept_at_most(model, phase, tid).filter(|kept_ns| *kept_ns > 0) {
        doubt_counted(model, &mut pieces[first..], (tid, kept_ns));
    } else if model.groups.are_told(tid) && !is_limited(model, tid) {
        outweighed(model, &mut pieces[first..], (tid, prio));
    } else {
        // A group that has a quota also waits for what it took too much of before.
        outrun(model, &mut pieces[first..], prio);
    }
}

/// For how long quotas kept the waiting task at most, by the kernel's counts in a recording.
fn kept_at_most(model: &Model, phase: &Phase, tid: i32) -> Option<i64> {
    let wait_ns = (phase.begin_ns, phase.end_ns);
    model.quotas.kept_at_most(tid, wait_ns)
}

/// The same where a recorder saw the count of its groups grow while the task waited, and perhaps
/// before and after that: while the CPU idled its quota was used up, and who ran meanwhile is not
/// accused where the quota may have had its part in that.
fn doubt_counted(model: &Model, pieces: &mut [Piece], (tid, kept_ns): (i32, i64)) {
    let sum = |is_it: &dyn Fn(&Key) -> bool| {
        let those = pieces.iter().filter(|piece| is_it(&piece.key));
        those
            .map(|piece| piece.end_ns - piece.begin_ns)
            .sum::<i64>()
    };
    let is_run = |key: &Key| matches!(*key, Key::Wait(id) if is_fair(model, id));
    let long_idle = Key::Unexplained(Reason::LongIdle);
    let idle_is_quota = sum(&|key| *key == long_idle) <= kept_ns;
    let may_matter = kept_ns as f64 >= sum(&is_run) as f64 * PART_THAT_MATTERS;
    for piece in pieces {
        piece.key = match piece.key {
            key if key == long_idle && idle_is_quota => Key::Quota(tid),
            key if is_run(&key) && may_matter => Key::Unexplained(Reason::PerhapsQuota),
            key => key,
        };
    }
}

/// What is known of the waiting task's quota, if that was used up.
fn used_up(model: &Model, phase: &Phase, (tid, prio): (i32, Prio)) -> Option<UsedUp> {
    let wait_ns = phase.begin_ns - SKEW_MAX_NS..phase.end_ns;
    let records = model.evidence.throttled.iter();
    let mut mine = records
        .filter(|record| record.task.tid.0 == tid && wait_ns.contains(&record.begin.as_ns()));
    // One that was reported while it still waited has another record at its end.
    let last = mine.next_back()?;
    let since_ns = last.begin.as_ns().max(phase.begin_ns);
    Some(UsedUp {
        tid,
        since_ns,
        until_ns: (last.kept > Duration::ZERO).then(|| since_ns + last.kept.as_ns()),
        prio,
    })
}

/// Whether the task's control group had no quota left at the hit that ends the wait.
fn is_out_of_quota(model: &Model, phase: &Phase, tid: i32) -> bool {
    of_target(model, tid).any(|moment| {
        let near = (moment.time.as_ns() - phase.end_ns).abs() <= SKEW_MAX_NS;
        near && moment.is_out_of_quota()
    })
}

/// Whether the task's control group, or one above it, has a quota.
fn is_limited(model: &Model, tid: i32) -> bool {
    of_target(model, tid).any(Moment::is_limited)
}

/// What is known of the task as a target, at its hits.
fn of_target(model: &Model, tid: i32) -> impl Iterator<Item = &Moment> {
    let moments = model.evidence.moments.iter();
    moments.filter(move |moment| moment.role == Role::Target && moment.task.tid.0 == tid)
}

/// What is known of a quota that was used up.
struct UsedUp {
    /// The task that waits.
    tid: i32,
    since_ns: i64,
    /// When it was back, by the kernel's own count.
    until_ns: Option<i64>,
    /// The task's priority.
    prio: Prio,
}

/// Charges the wait of a fair task to its quota. Where nothing says when that was back, it was used
/// up until the CPU idled for the last time, and while another task that is not favoured ran on for
/// longer than a turn.
fn charge(model: &Model, pieces: &mut Vec<Piece>, first: usize, used_up: &UsedUp) {
    let since_ns = used_up.since_ns;
    split_at(pieces, first, since_ns);
    let proven_ns = used_up.until_ns.unwrap_or_else(|| {
        let outrun_ns = outrun_until(model, &pieces[first..], since_ns, used_up.prio);
        idle_until(&pieces[first..]).max(outrun_ns)
    });
    split_at(pieces, first, proven_ns);
    for piece in &mut pieces[first..] {
        piece.key = match piece.key {
            key if piece.begin_ns < since_ns => key,
            key if waits(&key) && piece.end_ns <= proven_ns => Key::Quota(used_up.tid),
            Key::Wait(id) if used_up.until_ns.is_none() && is_fair(model, id) => {
                Key::Unexplained(Reason::QuotaEndUnknown)
            }
            key => key,
        };
    }
    if used_up.until_ns.is_some() {
        outrun(model, &mut pieces[first..], used_up.prio);
    }
}

/// The same where all that is known is that no quota was left in the end: while the CPU idled there
/// was none, and nobody else is accused.
fn doubt(model: &Model, pieces: &mut [Piece], tid: i32) {
    for piece in pieces {
        piece.key = match piece.key {
            Key::Unexplained(Reason::LongIdle) => Key::Quota(tid),
            Key::Wait(id) if is_fair(model, id) => Key::Unexplained(Reason::QuotaBeginUnknown),
            key => key,
        };
    }
}

/// The same where nothing tells of a quota, though there may be one: where other fair tasks ran for
/// longer than all of their turns ahead of this one, the scheduler did not take these turns by the
/// weights of the tasks. Their groups' quota or weight did it, and nothing says whose.
fn outrun(model: &Model, pieces: &mut [Piece], prio: Prio) {
    if is_outrun(model, pieces, prio) {
        charge_runs(model, pieces, Key::Unexplained(Reason::TurnsTooLong));
    }
}

/// The same where a watch knows the groups of the task, and that they have no quota: it is the
/// weight of one of them, where that is less than the task's own.
fn outweighed(model: &Model, pieces: &mut [Piece], (tid, prio): (i32, Prio)) {
    let Some(nice) = prio.nice() else { return };
    let is_lighter = !model.groups.lighter_than(tid, nice).is_empty();
    if is_lighter && is_outrun(model, pieces, prio) {
        charge_runs(model, pieces, Key::Weight(tid));
    }
}

/// Who of the fair tasks ran ahead is no cause: this is.
fn charge_runs(model: &Model, pieces: &mut [Piece], cause: Key) {
    for piece in pieces {
        piece.key = match piece.key {
            Key::Wait(id) if is_fair(model, id) => cause,
            key => key,
        };
    }
}

/// Whether other fair tasks ran for longer than all of their turns, by the weights of the tasks.
fn is_outrun(model: &Model, pieces: &[Piece], prio: Prio) -> bool {
    let Some(own) = prio.nice() else { return false };
    // Of each, how long it ran and how long its turn is.
    let mut others: NumberMap<i32, (i64, f64)> = NumberMap::default();
    for piece in pieces {
        let Key::Wait(id) = piece.key else { continue };
        let version = model.tasks.version(VersionId(id));
        // Real-time ones take no turns.
        let Some((version, nice)) = version.and_then(|one| Some((one, one.prio.nice()?))) else {
            continue;
        };
        let turn_ns = TURN_MAX.as_ns() as f64 * weight(nice) / weight(own);
        let (ran_ns, turn) = others.entry(version.tid.0).or_default();
        *ran_ns += piece.end_ns - piece.begin_ns;
        *turn = turn_ns;
    }
    // Who ran for less than its turn leaves nobody else a longer one.
    let beyond = |(ran_ns, turn_ns): &(i64, f64)| (*ran_ns as f64 - turn_ns).max(0.0);
    // By one turn it may be ahead itself; until all others have caught up with that, it waits.
    others.values().map(beyond).sum::<f64>() > TURN_MAX.as_ns() as f64
}

/// A fair task's share beside others: a step of the nice value is a quarter (`sched_prio_to_weight`
/// in the kernel's kernel/sched/core.c).
pub(crate) fn weight(nice: i32) -> f64 {
    1024.0 * 1.25_f64.powi(-nice)
}

fn is_fair(model: &Model, id: u32) -> bool {
    let version = model.tasks.version(VersionId(id));
    version.is_some_and(|version| !version.prio.is_real_time())
}

fn idles(key: &Key) -> bool {
    matches!(key, Key::IdleExit | Key::Unexplained(Reason::LongIdle))
}

fn waits(key: &Key) -> bool {
    idles(key) || matches!(key, Key::Wait(_))
}

/// The end of the last idle time.
fn idle_until(pieces: &[Piece]) -> i64 {
    let last = pieces.iter().rfind(|piece| idles(&piece.key));
    last.map_or(i64::MIN, |piece| piece.end_ns)
}

/// Until when the runs of others were longer than any that a runnable task of this weight sees.
fn outrun_until(model: &Model, pieces: &[Piece], since_ns: i64, prio: Prio) -> i64 {
    let mut until_ns = i64::MIN;
    let mut run: Option<(VersionId, i64)> = None;
    for piece in pieces.iter().filter(|piece| piece.begin_ns >= since_ns) {
        let Key::Wait(id) = piece.key else { continue };
        let id = VersionId(id);
        let Some(version) = model.tasks.version(id) else {
            continue;
        };
        let begin_ns = match run {
            Some((other, begin_ns)) if other == id => begin_ns,
            _ => piece.begin_ns,
        };
        run = Some((id, begin_ns));
        let is_favoured = version.prio.is_real_time() || version.prio.0 < prio.0;
        if !is_favoured && piece.end_ns - begin_ns > TURN_MAX.as_ns() {
            until_ns = piece.end_ns - TURN_MAX.as_ns();
        }
    }
    until_ns
}

/// Cuts the piece in which `time_ns` lies there.
pub(crate) fn split_at(pieces: &mut Vec<Piece>, first: usize, time_ns: i64) {
    let inside = |piece: &Piece| piece.begin_ns < time_ns && time_ns < piece.end_ns;
    let place = pieces[first..].iter().position(inside);
    if let Some(place) = place.map(|place| first + place) {
        let mut rest = pieces[place];
        pieces[place].end_ns = time_ns;
        rest.begin_ns = time_ns;
        pieces.insert(place + 1, rest);
    }
}
