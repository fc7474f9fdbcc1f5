//! A hit's steps beside the kernel trace's own events.
//!
//! The two sources stamp the same event a little apart. The ledger cuts on the kernel trace's
//! instants, so that no sliver between two stamps gets a name of its own, and reports on the hit's.

use event::{Cpu, Duration, Instant};

use crate::finding::StepCheck;
use crate::model::{Model, MomentKind, What};
use crate::naming::SKEW_MAX_NS;
use event::evidence::{Step, StepKind};

/// The instants of `steps` in the kernel trace, and how far each is from the step's own.
pub(crate) fn align(model: &Model, steps: &[Step]) -> (Vec<i64>, Vec<StepCheck>) {
    let mut times_ns = Vec::with_capacity(steps.len());
    let mut checks = Vec::with_capacity(steps.len());
    let mut now_ns = i64::MIN;
    for (place, step) in steps.iter().enumerate() {
        let time_ns = step.time.as_ns();
        let event_ns = nearest(model, step);
        now_ns = now_ns.max(event_ns.unwrap_or(time_ns));
        times_ns.push(now_ns);
        // An expiry is a date, not an event.
        if step.kind != StepKind::TimerExpiry {
            let delta = event_ns.map(|event_ns| Duration::from_ns(event_ns - time_ns));
            checks.push(StepCheck { step: place, delta });
        }
    }
    (times_ns, checks)
}

/// The time of the kernel trace's event that means the same, if one is near.
fn nearest(model: &Model, step: &Step) -> Option<i64> {
    let time_ns = step.time.as_ns();
    let timeline = model.timeline(step.cpu);
    let segment = |what: What| timeline?.nearest(what, time_ns, SKEW_MAX_NS);
    match step.kind {
        StepKind::Nmi => segment(What::Nmi),
        StepKind::Hardirq => segment(What::Hardirq(step.id)),
        StepKind::Softirq => segment(What::Softirq(step.id as u32)),
        StepKind::Waking => moment(model, step, MomentKind::Waking),
        StepKind::SwitchIn => moment(model, step, MomentKind::In),
        StepKind::Hrtimer | StepKind::SoftirqRaise => {
            let marks = &timeline?.marks;
            let from_ns = time_ns.saturating_sub(SKEW_MAX_NS);
            let first = marks.partition_point(|mark| mark.time_ns < from_ns);
            let near = marks[first..]
                .iter()
                .take_while(|mark| mark.time_ns <= time_ns.saturating_add(SKEW_MAX_NS))
                .filter(|mark| mark.kind == step.kind && mark.id == step.id);
            near.map(|mark| mark.time_ns)
                .min_by_key(|mark_ns| mark_ns.abs_diff(time_ns))
        }
        StepKind::TimerExpiry | StepKind::UserReturn | StepKind::Blocked | StepKind::Preempted => {
            None
        }
    }
}

fn moment(model: &Model, step: &Step, kind: MomentKind) -> Option<i64> {
    let skew = Duration::from_ns(SKEW_MAX_NS);
    let near = model.moments(step.id, step.cpu, step.time - skew, step.time + skew);
    let near = near.iter().filter(|moment| moment.kind == kind);
    let here = |cpu: u32| kind != MomentKind::In || Cpu(cpu) == step.cpu;
    // An inferred run has no event of its own.
    let recorded = |at_ns: i64| {
        let timeline = model.timeline(step.cpu);
        let inferred = timeline.is_some_and(|line| line.at(at_ns).occupant.is_inferred());
        kind != MomentKind::In || !inferred
    };
    let times = near
        .filter(|moment| here(moment.cpu) && recorded(moment.time_ns))
        .map(|moment| moment.time_ns);
    times.min_by_key(|at_ns| Instant::from_ns(*at_ns).since(step.time).as_ns().abs())
}
