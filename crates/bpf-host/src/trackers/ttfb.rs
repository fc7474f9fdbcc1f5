//! Connections that a server accepts, to the first byte of its answer.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "ttfb",
    help: "a connection to its accept, and on to the answer's first byte",
    series: &["until accepted", "to first byte"],
    whose: "the task that accepts",
    other: &["", "sent by"],
    key: KeyKind::Peer,
    detail: DetailKind::Port,
    open: OpenIn::Table,
    stays_on_its_cpu: false,
    hooks: &[
        hook("inet_sock_set_state", "CONFIG_INET=y"),
        hook("sys_exit", CALLS),
        hook("sock_send_length", "CONFIG_INET=y, 6.3 or later"),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope record' and 'rtscope report' have its system calls",
    object: object!("ttfb"),
};
