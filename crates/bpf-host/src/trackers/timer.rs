//! High-resolution timers: lateness, and their function's run.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "timer",
    help: "how late a high-resolution timer is; how long its function runs",
    series: &["late", "run"],
    whose: "the task that is interrupted",
    other: &[],
    key: KeyKind::Function,
    detail: DetailKind::None,
    open: OpenIn::Nowhere,
    stays_on_its_cpu: true,
    hooks: &[
        hook("hrtimer_start", SCHEDULER),
        hook("hrtimer_expire_entry", SCHEDULER),
        hook("hrtimer_expire_exit", SCHEDULER),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope measure cyclic' measures timers of its own",
    object: object!("timer"),
};
