//! From a wake-up to the moment at which the task runs.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "wakeup",
    help: "from a task's wake-up until it runs",
    series: &["wake-up"],
    whose: "the task that is woken",
    other: &["behind"],
    key: KeyKind::Task,
    detail: DetailKind::Tid("woken by"),
    open: OpenIn::Tasks,
    stays_on_its_cpu: false,
    hooks: &[
        hook("sched_switch", SCHEDULER),
        hook("sched_waking", SCHEDULER),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope record' and 'rtscope report schedtop' find it in a recording",
    object: object!("wakeup"),
};
