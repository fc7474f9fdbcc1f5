// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// A timer is armed: by a task that goes to sleep with it, or that was busy when it was due. Either
// shows that this task runs.

#ifndef RTSCOPE_ARMING_H
#define RTSCOPE_ARMING_H

#include "timer.h"
#include "unseen.h"

// A task that arms a timer after its expiry was busy when it was due.
static __always_inline void release_note(rts_u64 expiry_ns)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	struct task_struct *current = bpf_get_current_task_btf();
	const struct softirq_frame *softirq;
	struct task_state *state;

	if (!cpu || cpu->hardirq.active || !current->pid)
		return;
	softirq = softirq_frame(cpu);
	state = task_state(current);
	if (state && softirq && !softirq->vector_plus_1)
		state->release_ns = expiry_ns;
}

// The timer that a task sleeps with lies on that task's stack: until when it sleeps at most.
// Another one that woke it, and that it arms itself, wakes it again.
static __always_inline void sleep_note(void *ctx, struct hrtimer *timer, rts_u64 expiry_ns)
{
	struct task_struct *current = bpf_get_current_task_btf();
	rts_u32 stack = (rts_u32)(rts_u64)current->stack;
	bool sleeps = hrtimer_address(timer) - stack < KERNEL_STACK_BYTES;
	struct task_state *state;

	if (!current->pid || !filter_may_have_chain(current))
		return;
	state = task_state(current);
	if (!state || (!sleeps && (hrtimer_address(timer) & HRTIMER_ID_MASK) != state->timer))
		return;
	// To the switch-in it is only counted: a hit from here is more than the verifiers of older
	// kernels follow.
	if (state->left)
		unseen_runs(state, current, bpf_ktime_get_ns());
	if (sleeps) {
		state->armed_ns = expiry_ns;
		state->arms = 1;
	} else {
		state->timer_due_ns = expiry_ns;
	}
}

// Neither the lateness nor the expiry of a timer that is armed late says anything of this CPU.
static __always_inline bool on_hrtimer_start(void *ctx, struct hrtimer *timer)
{
	rts_u64 expiry_ns = hrtimer_expiry_ns(timer);

	sleep_note(ctx, timer, expiry_ns);
	if (!hrtimer_armed_late(timer, expiry_ns))
		return false;
	release_note(expiry_ns);
	return true;
}

#endif
