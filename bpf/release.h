// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// When a target was due. Its own timer says so, also where nobody waited for that timer yet: a
// target that is still busy when it is due arms its timer after the expiry. And a timer with slack
// may be served so much later, which is the target's doing and no other's.

#ifndef RTSCOPE_RELEASE_H
#define RTSCOPE_RELEASE_H

#include "ends.h"

// Longer than this after the release, the timer is about something else.
#define RELEASE_AGE_NS_MAX CHAIN_AGE_NS_MAX

struct release {
	rts_u64 release_ns; // 0: none that is earlier than what the chain itself says
	rts_u64 previous_ns;
	rts_u64 slack_ns;
	rts_u8 why;
};

// The frame of the timer that this context serves.
static __always_inline struct hrtimer_frame *timer_in_progress(struct cpu_state *cpu)
{
	struct hrtimer_frame *frame;
	struct softirq_frame *softirq;

	if (cpu->hardirq.active) {
		frame = &cpu->hardirq.hrtimer;
		return frame->active ? frame : 0;
	}
	softirq = softirq_frame(cpu);
	if (!softirq)
		return 0;
	barrier_var(softirq);
	return softirq->vector_plus_1 && softirq->hrtimer.active ? &softirq->hrtimer : 0;
}

// Whether an expiry that had passed when its timer was armed is a release: it lies in the
// activation that the task was busy with, or follows one that was late too (it catches up).
static __always_inline bool is_release(const struct task_state *state, rts_u64 own_ns,
		rts_u64 previous_ns, rts_u64 last_ns)
{
	// What it missed while it was stopped is told by that.
	if (own_ns <= state->stopped_until_ns)
		return false;
	return (previous_ns && own_ns >= previous_ns) || (last_ns && own_ns > last_ns);
}

// Whether such an expiry passed while the task slept for something else (in a handler of a signal
// that ended its sleep, say): no release that anybody saw, but perhaps one.
static __always_inline bool passed_asleep(const struct task_state *state, rts_u64 own_ns)
{
	return state->released_ns && own_ns >= state->released_ns && own_ns < state->woken_ns &&
	       own_ns > state->stopped_until_ns;
}

// The release of `state`'s task, which the timer `frame` wakes.
static __always_inline void release_of(struct release *found, struct hrtimer_frame *frame,
		struct task_state *state)
{
	rts_u64 previous_ns = state->chain.count ? state->chain.origin_ns : 0;
	rts_u64 own_ns = state->release_ns, last_ns = state->last_release_ns;

	found->release_ns = 0;
	found->previous_ns = previous_ns;
	found->slack_ns = 0;
	state->release_ns = 0;
	state->last_release_ns = own_ns;
	if (frame->release_ns) {
		if (frame->release_ns != own_ns || frame->entry_ns - own_ns >= RELEASE_AGE_NS_MAX)
			return;
		if (is_release(state, own_ns, previous_ns, last_ns)) {
			found->release_ns = own_ns;
			found->why = RTS_RELEASE_OVERRUN;
		}
		if (found->release_ns || passed_asleep(state, own_ns))
			state->overdue_ns = own_ns;
	} else if (frame->soft_ns && frame->expiry_ns && frame->soft_ns < frame->entry_ns) {
		found->release_ns = frame->soft_ns;
		found->slack_ns = frame->expiry_ns - frame->soft_ns;
		found->why = RTS_RELEASE_SLACK;
	}
}

static __always_inline void evidence_released(const struct release *release,
		struct task_struct *task, rts_u64 now_ns)
{
	struct rts_evidence *slot = evidence_begin(RTS_EVIDENCE_RELEASED, now_ns);

	if (!slot)
		return;
	slot->released.release_ns = release->release_ns;
	slot->released.previous_ns = release->previous_ns;
	slot->released.slack_ns = release->slack_ns;
	task_describe(&slot->released.task, task);
	slot->released.why = release->why;
	evidence_end(slot);
}

#endif
