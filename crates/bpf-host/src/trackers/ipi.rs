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
        hook("csd_queue_cpu", "a kernel from 6.4 on"),
        hook("csd_function_entry", "a kernel from 6.4 on"),
        hook("csd_function_exit", "a kernel from 6.4 on"),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'watch irq --only function_call' has their interrupts",
    object: object!("ipi"),
};
