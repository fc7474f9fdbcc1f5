//! Since when the tasks of a hit's chain waited for it: what came before a task's own block is not
//! part of its latency.

use event::Instant;
use event::evidence::{Step, StepKind};
use kernel_state::ON_ITS_WAY_NS_MAX;

use crate::due::is_stop;
use crate::inside::record;
use crate::model::{DECISION_NS_MAX, Model, Moment, MomentKind};

/// The latest block of a task of the chain before the chain woke it; none where the trace holds
/// none. A timer's expiry is a release time whatever its task did, and a thread that passes work on
/// is its own queue.
pub(crate) fn waited_since(model: &Model, steps: &[Step], times_ns: &[i64]) -> Option<Instant> {
    let blocks = (0..steps.len()).filter_map(|place| {
        let step = &steps[place];
        let by_timer = place > 0 && steps[place - 1].kind == StepKind::Hrtimer;
        let waits = step.kind == StepKind::Waking && !by_timer;
        if !waits || model.tasks.passes(step.id, step.cpu.0) {
            return None;
        }
        let log = model.tasks.log(step.id, step.cpu.0);
        // By what happened after its decision to sleep, it is late since then.
        let decided =
            |time_ns: &i64| *time_ns <= times_ns[place] || time_ns - times_ns[0] > DECISION_NS_MAX;
        block_before(log, times_ns[place])
            .filter(decided)
            // A block inside of the work does not begin it.
            .filter(|time_ns| record(model, step.id, *time_ns).is_none())
            .filter(|time_ns| !is_stop(model, step.id, Instant::from_ns(*time_ns)))
    });
    blocks.max().map(Instant::from_ns)
}

/// The block that the wake-up at `waking_ns` ended: it may be a little younger than the decision to
/// wake. A task that slept already has been on a CPU before its next block, recorded or not.
fn block_before(log: &[Moment], waking_ns: i64) -> Option<i64> {
    let blocked = |moment: &&Moment| moment.kind == MomentKind::OutBlocked;
    let switched = |moment: &&Moment| {
        let switches = [
            MomentKind::In,
            MomentKind::OutRunnable,
            MomentKind::OutBlocked,
        ];
        switches.contains(&moment.kind)
    };
    let (before, after) = log.split_at(log.partition_point(|moment| moment.time_ns <= waking_ns));
    let slept = before.iter().rfind(switched).filter(blocked);
    let on_its_way = |moment: &&Moment| moment.time_ns - waking_ns <= ON_ITS_WAY_NS_MAX;
    let younger = after
        .iter()
        .find(switched)
        .filter(blocked)
        .filter(on_its_way);
    let block = slept.or(younger).or_else(|| before.iter().rfind(blocked));
    block.map(|moment| moment.time_ns)
}
