//! Preemption off, and interrupts off.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "preempt",
    help: "how long preemption or interrupts are off, and who did it",
    series: &["preemption off", "interrupts off"],
    whose: "the task that runs",
    other: &[],
    key: KeyKind::Function,
    detail: DetailKind::None,
    open: OpenIn::Nowhere,
    stays_on_its_cpu: true,
    hooks: &[
        hook(
            "preempt_disable",
            "CONFIG_PREEMPT_TRACER=y and CONFIG_IRQSOFF_TRACER=y",
        ),
        hook(
            "preempt_enable",
            "CONFIG_PREEMPT_TRACER=y and CONFIG_IRQSOFF_TRACER=y",
        ),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'watch timer --stacks' shows where interrupts come back on",
    object: object!("preempt"),
};
