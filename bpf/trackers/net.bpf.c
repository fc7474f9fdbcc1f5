// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Packets that come in: from the stack's receive to the copy into a program's memory, or to the
// place where they are dropped, with the reason. Key is the interface and the reason, detail the
// bytes, the label the interface's name. The task is the one that takes it, or in whose time it is
// dropped. A packet that is merged into another one before it is taken is gone without a word: what
// is in a place that the next one takes goes to the table, which keeps what came last.

#include "slots.h"
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

struct packet_slot {
	rts_u64 skb;
	struct packet packet;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << SLOTS_BITS);
	__type(key, rts_u32);
	__type(value, struct packet_slot);
} packet_slots SEC(".maps");

// Something has ever been in the table.
static volatile rts_u32 packets_in_table;

static __always_inline struct packet_slot *packet_slot(rts_u64 skb)
{
	return LOOKUP(packet_slots, slot_of(skb));
}

static __noinline void to_table(rts_u64 skb, const struct packet *packet)
{
	packets_in_table = 1;
	if (bpf_map_update_elem(&tracker_packets, &skb, packet, BPF_ANY))
		TRACKER_LOSS(full);
}

// In the place of whatever was there, which may have been merged long ago.
static __always_inline void comes_in(rts_u64 skb, const struct packet *packet)
{
	struct packet_slot *slot = packet_slot(skb);
	struct packet before;
	rts_u64 other;

	if (!slot)
		return;
	other = slot->skb;
	if (other == SLOT_WRITTEN ||
	    __sync_val_compare_and_swap(&slot->skb, other, SLOT_WRITTEN) != other) {
		to_table(skb, packet);
		return;
	}
	if (other && other != skb) {
		before = slot->packet;
		to_table(other, &before);
	}
	if (packets_in_table)
		bpf_map_delete_elem(&tracker_packets, &skb);
	slot->packet = *packet;
	slot_hands_over(&slot->skb, skb);
}

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
	comes_in(address, &packet);
	return 0;
}

// Takes a packet out of the table; false when it is not the one that came in under this address.
static __always_inline bool take(struct packet *packet, const struct sk_buff *skb)
{
	rts_u64 address = (rts_u64)skb;
	struct packet_slot *slot = packet_slot(address);
	struct packet *found;

	if (slot && slot->skb == address) {
		*packet = slot->packet;
		if (!slot_frees(&slot->skb, address))
			return false;
	} else {
		if (!packets_in_table ||
		    !(found = bpf_map_lookup_elem(&tracker_packets, &address)))
			return false;
		*packet = *found;
		bpf_map_delete_elem(&tracker_packets, &address);
	}
	return packet->head == (rts_u64)skb->head && packet->ifindex == (rts_u32)skb->skb_iif;
}

static __always_inline void measured(const struct packet *packet, rts_u32 reason, rts_u8 series)
{
	rts_u64 key = (rts_u64)packet->ifindex << 32 | reason;
	struct rts_tracked tracked;

	tracker_ends(&tracked, packet->begin_ns, bpf_ktime_get_ns(), key, series);
	tracked.detail = packet->bytes;
	task_describe(&tracked.task, bpf_get_current_task_btf());
	__builtin_memcpy(tracked.label, packet->name, RTS_COMM_LENGTH);
	if (tracker_counts_known(&tracked))
		tracker_tells(&tracked);
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
	struct packet_slot *slot = packet_slot(address);

	if (slot && slot_frees(&slot->skb, address))
		return 0;
	if (packets_in_table)
		bpf_map_delete_elem(&tracker_packets, &address);
	return 0;
}
