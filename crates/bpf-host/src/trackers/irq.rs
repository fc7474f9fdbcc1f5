//! Handlers of hard interrupts.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "irq",
    help: "how long the handler of a hard interrupt runs",
    series: &["handler"],
    whose: "the task that is interrupted",
    other: &[],
    key: KeyKind::Irq,
    detail: DetailKind::None,
    open: OpenIn::Nowhere,
    stays_on_its_cpu: true,
    hooks: &[
        hook("irq_handler_entry", SCHEDULER),
        hook("irq_handler_exit", SCHEDULER),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope record' and 'rtscope report irqstats' find it in a recording",
    object: object!("irq"),
};
