//! Waits for locks of the kernel.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "lock",
    help: "how long a task waits for a lock of the kernel, and who held it",
    series: &["spin", "mutex", "read", "write", "held"],
    whose: "the task that waits",
    other: &["held by", "held by", "held by", "held by", "awaited by"],
    key: KeyKind::Lock,
    detail: DetailKind::None,
    open: OpenIn::Table,
    stays_on_its_cpu: false,
    hooks: &[
        hook("contention_begin", "a kernel from 5.19 on"),
        hook("contention_end", "a kernel from 5.19 on"),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'perf lock contention' counts them, too",
    object: object!("lock"),
};
