//! Work of the kernel's queues: queueing to start, and its run.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "workqueue",
    help: "from the queueing of the kernel's work to its start, and its run",
    series: &["queued to start", "run"],
    whose: "the task that queues it",
    other: &["run by", "run by"],
    key: KeyKind::Function,
    detail: DetailKind::None,
    open: OpenIn::Table,
    stays_on_its_cpu: false,
    hooks: &[
        hook("workqueue_queue_work", SCHEDULER),
        hook("workqueue_execute_start", SCHEDULER),
        hook("workqueue_execute_end", SCHEDULER),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "nothing else here has it",
    object: object!("workqueue"),
};
