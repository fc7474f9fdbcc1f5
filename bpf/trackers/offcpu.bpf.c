// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The time that a task is off its CPU, preempted and blocked told apart. Other is who took the CPU
// from it, or the task that woke it. The stack is its own, where it left the CPU; the other one is
// the waker's, taken only where the threshold has passed already.

#define TRACKER_OPEN_IN_TASKS
#define TRACKER_LABELS_BY_TASK
#define TRACKER_KEEPS_STACKS
#include "tasks.h"

enum { PREEMPTED = 0, BLOCKED = 1, BLOCKED_ON_IO = 2 };

static __always_inline void leaves(struct tracker_task *state, struct task_struct *prev,
		struct task_struct *next, bool runnable, rts_u64 now_ns)
{
	state->reported = 0;
	state->has_stack = 0;
	if (runnable) {
		state->series = PREEMPTED;
		task_describe(&state->other, next);
	} else {
		state->series = BPF_CORE_READ_BITFIELD(prev, in_iowait) ? BLOCKED_ON_IO : BLOCKED;
		tracker_nobody(&state->other);
	}
	state->key = prev->pid;
	state->begin_ns = now_ns;
}

static __always_inline void comes_back(struct tracker_task *state, struct task_struct *next,
		rts_u64 now_ns)
{
	struct tracker_interval interval = {
		.begin_ns = state->begin_ns,
		.end_ns = now_ns,
		.key = state->key,
		.label = next->comm,
		.series = state->series,
	};
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	state->begin_ns = 0;
	if (!tracker_counts(&interval))
		return;
	tracker_of(&tracked, &interval);
	task_describe(&tracked.task, next);
	tracked.other = state->other;
	hit = tracker_told(&tracked);
	if (!hit)
		return;
	if (tracker_config.stacks)
		stack_of(&hit->stack, next);
	tracker_take_kept_stack(&hit->other_stack, next, state);
	tracker_send(hit);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct tracker_task *state;
	rts_u64 now_ns = bpf_ktime_get_ns();

	if (prev->pid && (state = tracker_task(prev)) && tracker_wants(state, prev))
		leaves(state, prev, next, preempt || !prev_state, now_ns);
	if (next->pid && (state = tracker_task(next)) && state->begin_ns)
		comes_back(state, next, now_ns);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *wakee)
{
	struct tracker_task *state = tracker_task(wakee);
	struct rts_stack *kept;

	if (!state || !state->begin_ns || state->series == PREEMPTED)
		return 0;
	tracker_waker(&state->other);
	if (!tracker_config.stacks || !tracker_is_late(state, bpf_ktime_get_ns()))
		return 0;
	kept = bpf_task_storage_get(&tracker_stacks, wakee, 0, 0);
	if (!kept)
		return 0;
	stack_here(kept, ctx);
	state->has_stack = 1;
	return 0;
}
