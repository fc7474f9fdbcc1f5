// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// From a task's wake-up to the moment at which it runs. Other is who had the CPU until then; detail
// is the waker's tid, 0 for an interrupt. What a preempted task waits for is no wake-up: `offcpu`
// has it.

#define TRACKER_OPEN_IN_TASKS
#define TRACKER_LABELS_BY_TASK
#include "tasks.h"

static __always_inline int wakes(struct task_struct *wakee)
{
	struct tracker_task *state = tracker_task(wakee);

	if (!state || !tracker_wants(state, wakee))
		return 0;
	state->key = wakee->pid;
	state->detail = tracker_is_by_task() ? bpf_get_current_task_btf()->pid : 0;
	state->reported = 0;
	state->begin_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *wakee)
{
	return wakes(wakee);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *wakee)
{
	return wakes(wakee);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct tracker_interval interval = {};
	struct tracker_task *state;
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	// Woken before it had left the CPU, it never had to come back on one.
	if (prev->pid && (preempt || !prev_state) && (state = tracker_task(prev)))
		state->begin_ns = 0;
	if (!next->pid || !(state = tracker_task(next)) || !state->begin_ns)
		return 0;
	interval.begin_ns = state->begin_ns;
	interval.end_ns = bpf_ktime_get_ns();
	interval.key = state->key;
	interval.label = next->comm;
	state->begin_ns = 0;
	if (!tracker_counts(&interval))
		return 0;
	tracker_of(&tracked, &interval);
	tracked.detail = state->detail;
	task_describe(&tracked.task, next);
	task_describe(&tracked.other, prev);
	hit = tracker_told(&tracked);
	if (!hit)
		return 0;
	if (tracker_config.stacks && prev->pid)
		stack_here(&hit->other_stack, ctx);
	tracker_send(hit);
	return 0;
}
