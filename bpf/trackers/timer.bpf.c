// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// High-resolution timers: how late their functions begin, and how long they run. Key is the
// function. The task is the one that was interrupted, the stack what ran there.

#include "../timer.h"
#include "tasks.h"

enum { LATE = 0, RUNS = 1 };

struct function {
	rts_u64 begin_ns; // 0: none runs
	rts_u64 key;
	rts_u32 timer;
};

// Two per CPU: a timer of an interrupt may come while one of the softirq runs.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, rts_u32);
	__type(value, struct function);
} tracker_functions SEC(".maps");

static __always_inline int measured(void *ctx, rts_u64 begin_ns, rts_u64 now_ns, rts_u64 key,
		rts_u8 series)
{
	struct tracker_interval interval = {
		.begin_ns = begin_ns,
		.end_ns = now_ns,
		.key = key,
		.series = series,
	};
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	if (!tracker_counts(&interval))
		return 0;
	tracker_of(&tracked, &interval);
	task_describe(&tracked.task, bpf_get_current_task_btf());
	hit = tracker_told(&tracked);
	if (!hit)
		return 0;
	if (tracker_config.stacks && series == LATE)
		stack_here(&hit->stack, ctx);
	tracker_send(hit);
	return 0;
}

SEC("tp_btf/hrtimer_start")
int BPF_PROG(hrtimer_start, struct hrtimer *timer)
{
	hrtimer_armed_late(timer, hrtimer_expiry_ns(timer));
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer)
{
	rts_u64 now_ns = bpf_ktime_get_ns(), expiry_ns = hrtimer_expiry_ns(timer);
	rts_u64 key = (rts_u64)timer->function;
	struct function *outer = LOOKUP(tracker_functions, 0), *function;

	if (!outer || !tracker_cpu() || !tracker_only(key) ||
	    !tracker_wants_interrupted(bpf_get_current_task_btf()))
		return 0;
	function = outer->begin_ns ? LOOKUP(tracker_functions, 1) : outer;
	if (!function)
		return 0;
	function->timer = hrtimer_address(timer);
	function->key = key;
	function->begin_ns = now_ns;
	if (hrtimer_was_armed_late(timer, expiry_ns) ||
	    hrtimer_clock_was_set(timer, expiry_ns, now_ns))
		return 0;
	// With slack a timer may run before the last moment that it allows: then it is not late.
	return measured(ctx, expiry_ns < now_ns ? expiry_ns : now_ns, now_ns, key, LATE);
}

// Its function may have freed the timer: only the address is looked at.
SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_expire_exit, struct hrtimer *timer)
{
	struct function *inner = LOOKUP(tracker_functions, 1), *function;
	rts_u64 begin_ns;

	function = inner && inner->begin_ns ? inner : LOOKUP(tracker_functions, 0);
	if (!function || !function->begin_ns)
		return 0;
	begin_ns = function->begin_ns;
	function->begin_ns = 0;
	if (function->timer != hrtimer_address(timer)) {
		TRACKER_LOSS(unpaired);
		return 0;
	}
	return measured(ctx, begin_ns, bpf_ktime_get_ns(), function->key, RUNS);
}
