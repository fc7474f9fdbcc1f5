//! Handlers of non-maskable interrupts.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "nmi",
    help: "how long the handler of a non-maskable interrupt runs",
    series: &["handler"],
    whose: "the task that is interrupted",
    other: &[],
    key: KeyKind::Function,
    detail: DetailKind::None,
    open: OpenIn::Nowhere,
    stays_on_its_cpu: true,
    hooks: &[hook("nmi_handler", "CONFIG_X86=y")],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope measure hw' finds what they take",
    object: object!("nmi"),
};
