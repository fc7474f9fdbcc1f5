// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What is open and found by a number, most often an address of the kernel's: in places by number,
// and in the table where two numbers share one. Where user space looks at what is open, all of it
// is in the table.

#ifndef RTSCOPE_TRACKERS_OPEN_H
#define RTSCOPE_TRACKERS_OPEN_H

#include "slots.h"

struct open_slot {
	rts_u64 number;
	struct rts_tracker_open open;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << SLOTS_BITS);
	__type(key, rts_u32);
	__type(value, struct open_slot);
} tracker_slots SEC(".maps");

// Something has ever been in the table.
static volatile rts_u32 open_in_table;

static __always_inline struct open_slot *open_slot(rts_u64 number)
{
	return tracker_config.waiting_ns ? 0 : LOOKUP(tracker_slots, slot_of(number));
}

static __always_inline bool open_asks_table(void)
{
	return tracker_config.waiting_ns || open_in_table;
}

// In the place of what was open under this number.
static __always_inline void open_begins(rts_u64 number, const struct rts_tracker_open *open)
{
	struct open_slot *slot = open_slot(number);

	if (slot && slot_takes(&slot->number, number)) {
		if (open_in_table)
			bpf_map_delete_elem(&tracker_open, &number);
		slot->open = *open;
		slot_hands_over(&slot->number, number);
		return;
	}
	open_in_table = 1;
	if (bpf_map_update_elem(&tracker_open, &number, open, BPF_ANY))
		TRACKER_LOSS(full);
}

static __always_inline struct rts_tracker_open *open_find(rts_u64 number)
{
	struct open_slot *slot = open_slot(number);

	// A place that is free has no number, and nothing else has.
	if (!number)
		return 0;
	if (slot && slot->number == number)
		return &slot->open;
	return open_asks_table() ? bpf_map_lookup_elem(&tracker_open, &number) : 0;
}

static __always_inline void open_ends(rts_u64 number)
{
	struct open_slot *slot = open_slot(number);

	if (slot && slot_frees(&slot->number, number))
		return;
	if (open_asks_table())
		bpf_map_delete_elem(&tracker_open, &number);
}

// What was open under this number, and is no longer.
static __always_inline bool open_take(rts_u64 number, struct rts_tracker_open *taken)
{
	struct rts_tracker_open *open = open_find(number);

	if (!open)
		return false;
	*taken = *open;
	open_ends(number);
	return true;
}

#endif
