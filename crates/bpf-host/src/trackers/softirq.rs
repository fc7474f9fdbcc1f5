//! Softirqs: raise to entry, and their run.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "softirq",
    help: "from a softirq's raise to its entry, and how long it runs",
    series: &["raise to entry", "run"],
    whose: "the task in whose time it runs",
    other: &[],
    key: KeyKind::Softirq,
    detail: DetailKind::None,
    open: OpenIn::Nowhere,
    stays_on_its_cpu: true,
    hooks: &[
        hook("softirq_raise", SCHEDULER),
        hook("softirq_entry", SCHEDULER),
        hook("softirq_exit", SCHEDULER),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope record' and 'rtscope report irqstats' find it in a recording",
    object: object!("softirq"),
};
