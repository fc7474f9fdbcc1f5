//! What a chain holds before its first wake-up: a target that was due while it was still busy, a
//! timer's slack, a stop.

use event::evidence::{Asleep, ReleaseKind, Released, Step, StepKind, Stopped};
use event::{Cpu, Instant};

use crate::inside;
use crate::model::Model;
use crate::naming::SKEW_MAX_NS;
use crate::phases::{Doing, Phase};
use crate::term::Reason;

/// The record that says why the activation that `steps` begin with was due before its timer.
fn record<'a>(model: &'a Model, steps: &[Step]) -> Option<&'a Released> {
    let first = steps.first()?;
    let wakes = |step: &&Step| step.kind == StepKind::Waking;
    let woken = steps.iter().find(wakes)?.id;
    let mut records = model.evidence.released.iter();
    records.find(|record| record.task.tid.0 == woken && record.release == first.time)
}

/// The phases from the expiry that begins the chain `steps` to its interrupt on `cpu`.
pub(crate) fn before_timer(
    model: &Model,
    steps: &[Step],
    cpu: Cpu,
    (begin_ns, end_ns): (i64, i64),
) -> Vec<Phase> {
    let phase = |begin_ns, end_ns, doing| Phase {
        begin_ns,
        end_ns,
        cpu: Some(cpu),
        doing,
    };
    let Some(record) = record(model, steps) else {
        return vec![phase(begin_ns, end_ns, Doing::TimerPending)];
    };
    match record.why {
        ReleaseKind::Overrun => {
            let task = (record.task.tid.0, cpu);
            let mut phases = inside::while_busy(model, task, (begin_ns, end_ns));
            // It went to sleep, and its timer had expired already.
            let slept = Doing::Missing(Reason::BlockedInKernel);
            if let Some(last) = phases.last_mut().filter(|last| last.doing == slept) {
                (last.doing, last.cpu) = (Doing::TimerPending, Some(cpu));
            }
            phases
        }
        ReleaseKind::Slack => {
            let slack_ns = begin_ns.saturating_add(record.slack.as_ns()).min(end_ns);
            vec![
                phase(begin_ns, slack_ns, Doing::Slack),
                phase(slack_ns, end_ns, Doing::TimerPending),
            ]
        }
    }
}

/// The index of the record of the stop for which `tid` left its CPU at `time_ns`.
pub(crate) fn stop_at(model: &Model, tid: i32, time_ns: i64) -> Option<usize> {
    let away_ns = |stopped: &Stopped| (stopped.time.as_ns() - time_ns).abs();
    let records = model.evidence.stopped.iter().enumerate();
    let his = records.filter(|(_, stopped)| stopped.task.tid.0 == tid);
    let near = his.filter(|(_, stopped)| away_ns(stopped) <= SKEW_MAX_NS);
    let nearest = near.min_by_key(|(_, stopped)| away_ns(stopped));
    nearest.map(|(place, _)| place)
}

/// The index of the record of the last stop of `tid` before `time_ns`.
fn last_stop(model: &Model, tid: i32, time_ns: i64) -> Option<usize> {
    let records = model.evidence.stopped.iter().enumerate();
    let earlier =
        records.filter(|(_, stopped)| stopped.task.tid.0 == tid && stopped.time.as_ns() <= time_ns);
    let last = earlier.max_by_key(|(_, stopped)| stopped.time);
    last.map(|(place, _)| place)
}

/// What keeps the target of a chain that begins with its stop, or, where that ended its sleep, with
/// the instant until which it was to sleep. One that slept for an event may not have been due.
pub(crate) fn stopped(model: &Model, step: &Step) -> Doing {
    let (tid, time_ns) = (step.id, step.time.as_ns());
    let here = stop_at(model, tid, time_ns);
    let asleep = here.map(|place| model.evidence.stopped[place].asleep);
    if asleep == Some(Asleep::Event) {
        return Doing::Missing(Reason::StoppedAsleep);
    }
    let stop = here.or_else(|| last_stop(model, tid, time_ns));
    stop.map_or(Doing::Missing(Reason::MissingSteps), Doing::Stopped)
}

/// Whether a task left its CPU then because it was stopped: its work was not over.
pub(crate) fn is_stop(model: &Model, tid: i32, time: Instant) -> bool {
    stop_at(model, tid, time.as_ns()).is_some()
}
