//! The time off the CPU, preempted and blocked told apart.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "offcpu",
    help: "how long a task is off its CPU: preempted, blocked, blocked on I/O",
    series: &["preempted", "blocked", "blocked on I/O"],
    whose: "the task that is off its CPU",
    other: &["preempted by", "woken by", "woken by"],
    key: KeyKind::Task,
    detail: DetailKind::None,
    open: OpenIn::Tasks,
    stays_on_its_cpu: false,
    hooks: &[
        hook("sched_switch", SCHEDULER),
        hook("sched_waking", SCHEDULER),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope record' and 'rtscope diagnose' find it in a recording",
    object: object!("offcpu"),
};
