// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Waits on futexes, those for a mutex apart, with the owner that user space wrote into it. Key is
// the futex's address, group its process, detail the owner's tid at the beginning of the wait.
// Other is who woke it.

#define TRACKER_OPEN_IN_TASKS
#include "../blocked.h"
#include "tasks.h"

enum { MUTEX = 0, OTHER = 1 };

#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13
#define FUTEX_TID_MASK 0x3fffffff

// What this call waits for; whether it waits at all.
static __always_inline bool waits(struct tracker_task *state, struct pt_regs *regs,
		struct task_struct *current)
{
	rts_u32 operation = regs_futex_operation(regs) & FUTEX_CMD_MASK, word = 0;
	struct blocked blocked = {};

	state->key = regs_futex_word(regs);
	state->detail = 0;
	state->series = OTHER;
	if (operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2) {
		bpf_probe_read_user(&word, sizeof(word), (const void *)state->key);
		state->detail = word & FUTEX_TID_MASK;
		state->series = MUTEX;
		return true;
	}
	if (blocked_on_mutex(&blocked, current)) {
		state->detail = blocked.owner.tid;
		state->series = MUTEX;
	}
	return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
	       operation == FUTEX_WAIT_REQUEUE_PI;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tracker_task *state;

	if (!regs_in_futex(regs) || !(state = tracker_task(current)) ||
	    !tracker_wants(state, current) || !waits(state, regs, current))
		return 0;
	tracker_nobody(&state->other);
	state->reported = 0;
	state->begin_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tracker_task *state = tracker_task(current);
	struct tracker_interval interval = {};
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	if (!state || !state->begin_ns)
		return 0;
	interval.begin_ns = state->begin_ns;
	interval.end_ns = bpf_ktime_get_ns();
	interval.key = state->key;
	interval.label = current->comm;
	interval.group = current->tgid;
	interval.series = state->series;
	state->begin_ns = 0;
	if (!tracker_counts(&interval))
		return 0;
	tracker_of(&tracked, &interval);
	tracked.detail = state->detail;
	tracked.other = state->other;
	task_describe(&tracked.task, current);
	hit = tracker_told(&tracked);
	if (hit)
		tracker_send(hit);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *wakee)
{
	struct tracker_task *state = tracker_task(wakee);

	if (state && state->begin_ns)
		tracker_waker(&state->other);
	return 0;
}
