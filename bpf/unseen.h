// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// A target runs, or is scheduled in, though it sleeps as far as anybody saw: the kernel calls no
// program that would interrupt itself, some kernels call none while certain tasks of theirs have
// the CPU, and two CPUs may differ about a sleep. Its activation is judged all the same.
// The timer that it slept with says since when it was due, or one that it armed (a timerfd's, say)
// and that woke it the last time; else it counts from here.

#ifndef RTSCOPE_UNSEEN_H
#define RTSCOPE_UNSEEN_H

#include "cycle.h"

// Whether a timer is the one of the last sleep: it expired in it.
static __always_inline bool expired_asleep(const struct task_state *state, rts_u64 due_ns,
		rts_u64 now_ns)
{
	return state->slept_ns < due_ns && due_ns <= now_ns;
}

// When the timer of its last sleep was due, or the one that it armed and that woke it before; 0:
// it had none, or that has not expired.
static __always_inline rts_u64 unseen_due_ns(const struct task_state *state, rts_u64 now_ns)
{
	if (expired_asleep(state, state->armed_ns, now_ns))
		return state->armed_ns;
	return expired_asleep(state, state->timer_due_ns, now_ns) ? state->timer_due_ns : 0;
}

// The activation of a target that sleeps as far as anybody saw begins: in `phase`, as of now. What
// its cycle was until now is not known. Little is done here: it is a part of the largest program.
static __always_inline bool unseen_begins(struct task_state *state, rts_u8 phase, rts_u64 now_ns)
{
	rts_u64 due_ns = unseen_due_ns(state, now_ns);

	// It was a target as it left: what else it may have become meanwhile is asked for at its end.
	state->left = 0;
	if (!state->was_target || !filter_none())
		return false;
	COUNT(unseen);
	activation_begin(state);
	if (due_ns) {
		chain_begin(&state->chain, due_ns, RTS_CHAIN_UNSEEN);
		chain_append(&state->chain, RTS_STEP_TIMER_EXPIRY, due_ns, 0);
		state->released_ns = due_ns;
	} else {
		COUNT(undated);
		chain_begin(&state->chain, now_ns, RTS_CHAIN_UNSEEN | RTS_CHAIN_STALE);
	}
	state->cycle_ns = due_ns;
	state->others = 0;
	state->waker.tid = -1;
	state->culprit.tid = -1;
	state->has_waker_stack = 0;
	state->throttled_ns = 0;
	state->quota_rq = 0;
	state->woken_ns = now_ns;
	state->resumed = 0;
	state->unsure = 0;
	state->phase = phase;
	return true;
}

// A target runs that gave up its budget when it was seen last: its next one has begun since then,
// as of which its activation counts, and nobody saw when.
static __always_inline void unseen_budget(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	COUNT(unseen);
	if (now_ns - state->slept_ns >= config.threshold_ns)
		COUNT(undated);
	activation_begin(state);
	chain_begin(&state->chain, now_ns, RTS_CHAIN_UNSEEN | RTS_CHAIN_STALE);
	chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, task);
	state->phase = PHASE_ACTIVE;
}

// A target runs, since some time that nobody saw: its wait has ended by now.
static __always_inline bool unseen_runs(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	if (state->phase == PHASE_YIELDED) {
		unseen_budget(state, task, now_ns);
		return true;
	}
	if (!state->left || state->phase != PHASE_NONE ||
	    !unseen_begins(state, PHASE_ACTIVE, now_ns))
		return false;
	chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, task);
	// Nothing says for how much of the time since it was due it ran already.
	if (config.end_kind == RTS_END_SWITCH_IN && state->cycle_ns &&
	    now_ns - state->cycle_ns >= config.threshold_ns)
		COUNT(undated);
	return true;
}

#endif
