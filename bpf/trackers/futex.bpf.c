// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Waits on futexes, those for a mutex apart, with the owner that user space wrote into it. Key is
// the futex's address, of several the first one's, group its process, detail the owner's tid at the
// beginning of the wait, where that is sure. Other is who woke it.

#define TRACKER_OPEN_IN_TASKS
#define TRACKER_LABELS_BY_TASK
#include "../blocked.h"
#include "calls.h"
#include "tasks.h"

enum { MUTEX = 0, OTHER = 1 };

#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13
#define FUTEX_TID_MASK 0x3fffffff

// What is waited for: a word while it has this value.
struct futex_wait {
	rts_u64 word;
	rts_u32 value;
	rts_u32 operation;
};

// Of several words that are waited for at once (include/uapi/linux/futex.h), the first.
struct futex_waiter {
	rts_u64 value;
	rts_u64 word;
};

// Whether this call waits for a futex, in the one call of old or in those of Linux 5.16 and 6.7.
static __always_inline bool futex_waits(struct futex_wait *wait, struct pt_regs *regs,
		bool of_32_bits)
{
	rts_s32 number = call_number(regs);
	struct futex_waiter first = {};

	wait->word = call_argument_0(regs, of_32_bits);
	if (number == (of_32_bits ? CALL_FUTEX_OF_32_BITS : CALL_FUTEX) ||
	    (of_32_bits && number == CALL_FUTEX_TIME64)) {
		wait->operation = call_argument_1(regs, of_32_bits) & FUTEX_CMD_MASK;
		wait->value = call_argument_2(regs, of_32_bits);
		return true;
	}
	wait->operation = FUTEX_WAIT;
	wait->value = call_argument_1(regs, of_32_bits);
	if (number == CALL_FUTEX_WAIT)
		return true;
	if (number != CALL_FUTEX_WAITV)
		return false;
	bpf_probe_read_user(&first, sizeof(first), (const void *)wait->word);
	wait->word = first.word;
	wait->value = first.value;
	return true;
}

// As `blocked_on_mutex`, for calls that the chain does not know.
static __always_inline void like_mutex(struct tracker_task *state, const struct futex_wait *wait)
{
	rts_u32 words[3] = {};

	if (wait->value != 2 ||
	    bpf_probe_read_user(words, sizeof(words), (const void *)wait->word) || words[0] != 2)
		return;
	state->series = MUTEX;
	state->detail = (rts_s32)words[2] > 0 ? words[2] : 0;
}

// What this call waits for; whether it waits at all.
static __always_inline bool waits(struct tracker_task *state, const struct futex_wait *wait,
		struct pt_regs *regs, struct task_struct *current)
{
	rts_u32 operation = wait->operation, word = 0;
	struct blocked blocked = {};

	state->key = wait->word;
	state->detail = 0;
	state->sure = 0;
	state->series = OTHER;
	if (operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2) {
		bpf_probe_read_user(&word, sizeof(word), (const void *)state->key);
		state->detail = word & FUTEX_TID_MASK;
		state->sure = 1;
		state->series = MUTEX;
		return true;
	}
	if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET &&
	    operation != FUTEX_WAIT_REQUEUE_PI)
		return false;
	if (!regs_in_futex(regs)) {
		like_mutex(state, wait);
	} else if (blocked_on_mutex(&blocked, current)) {
		state->detail = blocked.owner.tid;
		state->series = MUTEX;
	}
	return true;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tracker_task *state;
	struct futex_wait wait;

	if (!futex_waits(&wait, regs, call_of_32_bits(current, regs)) ||
	    !(state = tracker_task(current)) || !tracker_wants(state, current) ||
	    !waits(state, &wait, regs, current))
		return 0;
	tracker_nobody(&state->other);
	state->reported = 0;
	state->begin_ns = bpf_ktime_get_ns();
	return 0;
}

// Somebody wants to know of a wait that was counted.
static __noinline int tells(const struct tracker_interval *interval,
		const struct tracker_task *state, struct task_struct *current)
{
	struct rts_tracked tracked;

	tracker_of(&tracked, interval);
	// What looks like an owner may be what a mutex of another library guards: one who lets go
	// wakes.
	if (state->sure || state->other.tid == (rts_s32)state->detail)
		tracked.detail = state->detail;
	tracked.other = state->other;
	task_describe(&tracked.task, current);
	return tracker_tells(&tracked);
}

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
	interval.label = current->comm;
	interval.group = current->tgid;
	interval.series = state->series;
	state->begin_ns = 0;
	return tracker_counts(&interval) ? tells(&interval, state, current) : 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *wakee)
{
	struct tracker_task *state = tracker_task(wakee);

	if (state && state->begin_ns)
		tracker_waker(&state->other);
	return 0;
}
