//! System calls from entry to exit.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "syscall",
    help: "how long a system call takes; where it waits, with --stacks",
    series: &["system call"],
    whose: "the task that calls",
    other: &[],
    key: KeyKind::Call,
    detail: DetailKind::Result,
    open: OpenIn::Tasks,
    stays_on_its_cpu: false,
    hooks: &[hook("sys_enter", CALLS), hook("sys_exit", CALLS)],
    software_events: &[],
    for_stacks: &["sched_switch"],
    below: "'strace -T -p PID' shows it, and stops the task at each call",
    object: object!("syscall"),
};
