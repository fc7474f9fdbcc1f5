// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Packets that come in: from the stack's receive to the copy into a program's memory, or to the
// place where they are dropped, with the reason. Key is the interface and the reason, detail the
// bytes, the label the interface's name. The task is the one that takes it, or in whose time it is
// dropped. A packet that is merged into another one before it is taken is gone without a word: the
// table keeps what came last.

#include "tasks.h"

enum { COPIED = 0, DROPPED = 1 };

struct net_device {
	char name[RTS_COMM_LENGTH];
	int ifindex;
} RELOCATED;

struct sk_buff {
	struct net_device *dev;
	unsigned int len;
	int skb_iif;
	unsigned char *head;
} RELOCATED;

struct packet {
	rts_u64 begin_ns;
	rts_u64 head; // its memory: the same address may be another packet's by then
	rts_u32 ifindex;
	rts_u32 bytes;
	char name[RTS_COMM_LENGTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RTS_OPEN_MAX);
	__type(key, rts_u64);
	__type(value, struct packet);
} tracker_packets SEC(".maps");

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netif_receive_skb, struct sk_buff *skb)
{
	rts_u64 address = (rts_u64)skb;
	struct net_device *device = skb->dev;
	struct packet packet = {};

	if (!device || !tracker_only(device->ifindex))
		return 0;
	packet.ifindex = device->ifindex;
	packet.bytes = skb->len;
	packet.head = (rts_u64)skb->head;
	__builtin_memcpy(packet.name, device->name, RTS_COMM_LENGTH);
	packet.begin_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&tracker_packets, &address, &packet, BPF_ANY))
		TRACKER_LOSS(full);
	return 0;
}

// Takes a packet out of the table; false when it is not the one that came in under this address.
static __always_inline bool take(struct packet *packet, const struct sk_buff *skb)
{
	rts_u64 address = (rts_u64)skb;
	struct packet *found = bpf_map_lookup_elem(&tracker_packets, &address);

	if (!found)
		return false;
	*packet = *found;
	bpf_map_delete_elem(&tracker_packets, &address);
	return packet->head == (rts_u64)skb->head && packet->ifindex == (rts_u32)skb->skb_iif;
}

static __always_inline void measured(const struct packet *packet, rts_u32 reason, rts_u8 series)
{
	rts_u64 key = (rts_u64)packet->ifindex << 32 | reason;
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	tracker_ends(&tracked, packet->begin_ns, bpf_ktime_get_ns(), key, series);
	tracked.detail = packet->bytes;
	task_describe(&tracked.task, bpf_get_current_task_btf());
	__builtin_memcpy(tracked.label, packet->name, RTS_COMM_LENGTH);
	hit = tracker_measured(&tracked);
	if (hit)
		tracker_send(hit);
}

// The first copy of a packet counts: who reads it in pieces copies it several times.
SEC("tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(skb_copy_datagram_iovec, const struct sk_buff *skb)
{
	struct packet packet;

	if (take(&packet, skb) && tracker_wants_task(bpf_get_current_task_btf()))
		measured(&packet, 0, COPIED);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(kfree_skb, struct sk_buff *skb, void *location, unsigned int reason)
{
	struct packet packet;

	if (take(&packet, skb) && tracker_wants_interrupted(bpf_get_current_task_btf()))
		measured(&packet, reason, DROPPED);
	return 0;
}

// What is neither copied nor dropped: an acknowledgement, a packet that goes on elsewhere.
SEC("tp_btf/consume_skb")
int BPF_PROG(consume_skb, struct sk_buff *skb)
{
	rts_u64 address = (rts_u64)skb;

	bpf_map_delete_elem(&tracker_packets, &address);
	return 0;
}
