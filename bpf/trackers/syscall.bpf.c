// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// System calls, from their entry to their exit: key is the call's number, with RTS_CALL_OF_32_BITS
// where that is of the table for programs of 32 bits, detail its result. With
// stacks, the one on which it waited when the threshold passed.

#define TRACKER_OPEN_IN_TASKS
#define TRACKER_KEEPS_STACKS
#define TRACKER_SMALL_KEYS
#include "calls.h"
#include "tasks.h"

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *current = bpf_get_current_task_btf();
	// Programs may call any number, which the kernel takes for one of 32 bits.
	rts_u64 key = (rts_u32)number;
	struct tracker_task *state;

	if (call_of_32_bits(current, regs))
		key |= RTS_CALL_OF_32_BITS;
	if (!tracker_only(key))
		return 0;
	state = tracker_task(current);
	if (!state || !tracker_wants(state, current))
		return 0;
	if (state->begin_ns)
		TRACKER_LOSS(unpaired);
	state->key = key;
	state->reported = 0;
	state->has_stack = 0;
	state->begin_ns = bpf_ktime_get_ns();
	return 0;
}

// Somebody wants to know of a call that was counted.
static __noinline int tells(const struct tracker_interval *interval,
		const struct tracker_task *state, struct task_struct *current, rts_u64 result)
{
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	tracker_of(&tracked, interval);
	tracked.detail = result;
	task_describe(&tracked.task, current);
	hit = tracker_told(&tracked);
	if (!hit)
		return 0;
	tracker_take_kept_stack(&hit->stack, current, state);
	tracker_send(hit);
	return 0;
}

// A call that was in progress when the tracker began has no beginning: it is not measured.
SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tracker_task *state = tracker_task(current);
	struct tracker_interval interval = {};

	if (!state || !state->begin_ns)
		return 0;
	interval.begin_ns = state->begin_ns;
	interval.end_ns = bpf_ktime_get_ns();
	interval.key = state->key;
	state->begin_ns = 0;
	return tracker_counts(&interval) ? tells(&interval, state, current, result) : 0;
}

// Back on a CPU inside a call that is late by now: where it waited. Only with stacks.
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct tracker_task *state;
	struct rts_stack *kept;

	if (!next->pid || !(state = tracker_task(next)) || state->has_stack ||
	    !tracker_is_late(state, bpf_ktime_get_ns()))
		return 0;
	kept = bpf_task_storage_get(&tracker_stacks, next, 0, 0);
	if (!kept)
		return 0;
	stack_of(kept, next);
	state->has_stack = 1;
	return 0;
}
