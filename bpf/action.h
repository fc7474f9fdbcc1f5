// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The user's own function at a hit (`include/rtscope/action.bpf.h`): user space links it in before
// it loads a program, in place of the one here.

#ifndef RTSCOPE_ACTION_H
#define RTSCOPE_ACTION_H

#include "chain.h"
#include "include/rtscope/action.bpf.h"

// One CPU may be in as many actions at once: those of a task, of an interrupt that comes into it,
// and so on.
#define ACTIONS_AT_ONCE 4

struct action_slots {
	rts_u64 taken[ACTIONS_AT_ONCE];
	struct rts_action_hit hits[ACTIONS_AT_ONCE];
};

// A hit as others see it has its place here: the stack's bytes are the user's.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct action_slots);
} action_slots SEC(".maps");

__attribute__((weak)) int rtscope_action(struct rts_action_hit *hit)
{
	return 0;
}

// Where a hit lies while its action runs.
struct action_place {
	struct action_slots *slots;
	rts_u32 number;
};

// A place that is free, with nothing in it yet; none where so many are in progress.
static __always_inline struct rts_action_hit *action_begins(struct action_place *place)
{
	struct action_slots *slots = LOOKUP(action_slots, 0);
	struct rts_action_hit *hit;

	if (!slots)
		return 0;
	for (rts_u32 i = 0; i < ACTIONS_AT_ONCE; i++) {
		if (__sync_lock_test_and_set(&slots->taken[i], 1))
			continue;
		place->slots = slots;
		place->number = i;
		hit = &slots->hits[i];
		__builtin_memset(hit, 0, sizeof(*hit));
		return hit;
	}
	return 0;
}

static __always_inline void action_runs(struct rts_action_hit *hit,
		const struct action_place *place)
{
	rtscope_action(hit);
	place->slots->taken[place->number & (ACTIONS_AT_ONCE - 1)] = 0;
}

static __always_inline void action_task(struct rts_action_task *to, const struct rts_task *task)
{
	to->tid = task->tid;
	to->prio = task->prio;
	__builtin_memcpy(to->comm, task->comm, RTS_COMM_LENGTH);
}

#endif
