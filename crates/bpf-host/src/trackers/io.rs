//! What lies above requests to disks: calls, and what file systems ask for.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "io",
    help: "a call that asks for a disk, and what its file system asks for",
    series: &["system call", "file system"],
    whose: "the task that asks",
    other: &[],
    key: KeyKind::Disk,
    detail: DetailKind::Sector,
    open: OpenIn::Table,
    stays_on_its_cpu: false,
    hooks: &[
        hook("sys_enter", CALLS),
        hook("sys_exit", CALLS),
        hook("block_bio_queue", "CONFIG_BLOCK=y"),
        hook("block_rq_complete", "CONFIG_BLOCK=y"),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'perf trace -F all' shows calls and faults",
    object: object!("io"),
};
