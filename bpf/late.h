// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Late activations that the limits hold back: each is told in short, so that none is only a number.
// Nobody is woken for it: the flight recorder runs on.

#ifndef RTSCOPE_LATE_H
#define RTSCOPE_LATE_H

#include "state.h"

// When the target was scheduled in during this activation: the chain's last step, or the one before
// its end.
static __always_inline rts_u64 late_began(const struct chain *chain)
{
	for (rts_u32 back = 1; back <= 2; back++) {
		const struct rts_step *step = &chain->steps[(chain->count - back) & STEP_MASK];

		if (chain->count >= back && step->kind == RTS_STEP_SWITCH_IN)
			return step->time_ns;
	}
	return 0;
}

// An activation that ends, as it was when that was seen: another CPU may wake its task at the same
// time, and begin the next one in its place.
struct ending {
	rts_u64 activation;
	rts_u64 origin_ns;
	rts_u64 chain_ns; // when its chain began: no later
	rts_u64 now_ns;
};

// `culprit`: who left the CPU for it; the target itself where it was still at work when it was due.
static __always_inline void late_note(const struct chain *chain, const struct ending *ending,
		const struct rts_task *target, const struct rts_task *culprit, rts_u32 end_kind)
{
	struct rts_late *late;

	if (!config.notes_late)
		return;
	late = bpf_ringbuf_reserve(&late_ones, sizeof(*late), 0);
	if (!late) {
		COUNT(lost);
		return;
	}
	late->origin_ns = ending->origin_ns;
	late->began_ns = late_began(chain);
	late->end_ns = ending->now_ns;
	late->target = *target;
	late->culprit = *culprit;
	late->end_kind = end_kind;
	late->preemptions = chain->preemptions;
	bpf_ringbuf_submit(late, BPF_RB_NO_WAKEUP);
}

#endif
