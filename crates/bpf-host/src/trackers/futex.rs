//! Waits on futexes, those for a mutex apart.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "futex",
    help: "how long a task waits on a futex: on a mutex or for something else",
    series: &["mutex", "other futex"],
    whose: "the task that waits",
    other: &["woken by", "woken by"],
    key: KeyKind::Address,
    detail: DetailKind::Tid("owned at first by"),
    open: OpenIn::Tasks,
    stays_on_its_cpu: false,
    hooks: &[
        hook("sys_enter", CALLS),
        hook("sys_exit", CALLS),
        hook("sched_waking", SCHEDULER),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'strace -T -e futex -p PID' shows it, and stops the task at each call",
    object: object!("futex"),
};
