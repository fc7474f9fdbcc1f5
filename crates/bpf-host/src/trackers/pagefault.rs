//! Page faults of user code.

use super::*;

/// `PERF_COUNT_SW_PAGE_FAULTS_MIN` and `_MAJ` (include/uapi/linux/perf_event.h).
const MINOR_FAULTS: u64 = 5;
const MAJOR_FAULTS: u64 = 6;

pub(super) static TRACKER: Tracker = Tracker {
    name: "pagefault",
    help: "how long a page fault of user code takes, minor and major",
    series: &["minor", "major"],
    whose: "the task that faults",
    other: &[],
    key: KeyKind::Task,
    detail: DetailKind::Address,
    open: OpenIn::Nowhere,
    stays_on_its_cpu: false,
    hooks: &[hook(
        "page_fault_user",
        "CONFIG_TRACEPOINTS=y (x86 or RISC-V, arm64 from 6.14 on)",
    )],
    software_events: &[("minor_fault", MINOR_FAULTS), ("major_fault", MAJOR_FAULTS)],
    for_stacks: &[],
    below: "'perf trace -F all' shows them without their length",
    object: object!("pagefault"),
};
