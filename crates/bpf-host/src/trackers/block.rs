//! Requests to block devices: queue and device apart.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "block",
    help: "how long a request to a disk is in the queue, and on the device",
    series: &["queue", "device"],
    whose: "the task that submits it",
    other: &[],
    key: KeyKind::Disk,
    detail: DetailKind::Sector,
    open: OpenIn::Table,
    stays_on_its_cpu: false,
    hooks: &[
        hook("block_io_start", "CONFIG_BLOCK=y, 6.5 or later"),
        hook("block_rq_issue", "CONFIG_BLOCK=y, 6.5 or later"),
        hook("block_rq_complete", "CONFIG_BLOCK=y, 6.5 or later"),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope record' and 'rtscope report iolatencystats' find it in a recording",
    object: object!("block"),
};
