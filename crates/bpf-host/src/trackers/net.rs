//! Packets that come in.

use super::*;

pub(super) static TRACKER: Tracker = Tracker {
    name: "net",
    help: "a packet from its receive to its copy to a program, or its drop",
    series: &["copied", "dropped"],
    whose: "the task that reads it",
    other: &[],
    key: KeyKind::Packet,
    detail: DetailKind::Bytes,
    open: OpenIn::Nowhere,
    stays_on_its_cpu: false,
    hooks: &[
        hook("netif_receive_skb", "CONFIG_NET=y"),
        hook("skb_copy_datagram_iovec", "CONFIG_NET=y"),
        hook("kfree_skb", "CONFIG_NET=y"),
        hook("consume_skb", "CONFIG_NET=y"),
    ],
    software_events: &[],
    for_stacks: &[],
    below: "'rtscope record' has them in a recording",
    object: object!("net"),
};
