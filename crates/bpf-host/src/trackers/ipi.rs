//! Function calls between CPUs.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "ipi",
    help: "how long a call that another CPU asks for waits, and runs",
    series: &["requested to start", "run"],
    whose: "the task that asks for it",
    other: &["interrupting", "interrupting"],
    key: KeyKind::Function,
    detail: DetailKind::None,
    open: OpenIn::Table,
    stays_on_its_cpu: false,
    hooks: &[
        hook("csd_queue_cpu", "CONFIG_SMP=y, 6.4 or later"),
        hook("csd_function_entry", "CONFIG_SMP=y, 6.4 or later"),
        hook("csd_function_exit", "CONFIG_SMP=y, 6.4 or later"),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'watch irq --only function_call' has their interrupts",
    object: object!("ipi"),
};
