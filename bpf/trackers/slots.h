// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Places by number for what is open, before a table is asked: a number has one place, and finds it
// in one line of memory, where a table takes locks and searches. Who finds its place taken by
// another number goes to the table.

#ifndef RTSCOPE_TRACKERS_SLOTS_H
#define RTSCOPE_TRACKERS_SLOTS_H

#include "tracker.h"

#define SLOTS_BITS 11

// In place of a number: somebody writes what belongs to the next one.
#define SLOT_WRITTEN (~0ull)

static __always_inline rts_u32 slot_of(rts_u64 number)
{
	return (tracker_half(number) * 0x9e3779b9u) >> (32 - SLOTS_BITS);
}

// Takes a place that is free, or the number's own already; to be written and handed over.
static __always_inline bool slot_takes(rts_u64 *place, rts_u64 number)
{
	rts_u64 before = *place;

	return (!before || before == number) &&
	       __sync_val_compare_and_swap(place, before, SLOT_WRITTEN) == before;
}

// What is in the place is the number's from here on, for every CPU.
static __always_inline void slot_hands_over(rts_u64 *place, rts_u64 number)
{
	__sync_lock_test_and_set(place, number);
}

// Gives the place back; false where it is another number's.
static __always_inline bool slot_frees(rts_u64 *place, rts_u64 number)
{
	return *place == number && __sync_val_compare_and_swap(place, number, 0) == number;
}

#endif
