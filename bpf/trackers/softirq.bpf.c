// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Softirqs: from the first raise to the entry, and how long they run. Key is the vector. The task
// is the one in whose time they run.

#define TRACKER_SMALL_KEYS
#include "tasks.h"

enum { RAISED = 0, RUNS = 1 };

// Per CPU and vector: nothing else runs a vector of this CPU meanwhile, on PREEMPT_RT neither.
struct vector {
	rts_u64 raised_ns; // 0: not raised, or before we looked
	rts_u64 begin_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RTS_SOFTIRQS_MAX);
	__type(key, rts_u32);
	__type(value, struct vector);
} tracker_vectors SEC(".maps");

static __always_inline int measured(rts_u64 begin_ns, rts_u64 now_ns, rts_u32 number, rts_u8 series)
{
	struct tracker_interval interval = {
		.begin_ns = begin_ns,
		.end_ns = now_ns,
		.key = number,
		.series = series,
	};

	return tracker_counts(&interval) ? tracker_tells_current(&interval, 0) : 0;
}

// Raised again while it is raised, it runs once: what waits has waited since the first time.
SEC("tp_btf/softirq_raise")
int BPF_PROG(softirq_raise, unsigned int number)
{
	struct vector *vector = LOOKUP(tracker_vectors, number);

	if (vector && !vector->raised_ns)
		vector->raised_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int number)
{
	struct vector *vector = LOOKUP(tracker_vectors, number);
	rts_u64 raised_ns;

	if (!vector)
		return 0;
	raised_ns = vector->raised_ns;
	vector->raised_ns = 0;
	vector->begin_ns = 0;
	if (!tracker_cpu() || !tracker_only(number) ||
	    !tracker_wants_interrupted(bpf_get_current_task_btf()))
		return 0;
	vector->begin_ns = bpf_ktime_get_ns();
	if (!raised_ns) {
		TRACKER_LOSS(unpaired);
		return 0;
	}
	return measured(raised_ns, vector->begin_ns, number, RAISED);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int number)
{
	struct vector *vector = LOOKUP(tracker_vectors, number);
	rts_u64 begin_ns;

	if (!vector || !vector->begin_ns)
		return 0;
	begin_ns = vector->begin_ns;
	vector->begin_ns = 0;
	return measured(begin_ns, bpf_ktime_get_ns(), number, RUNS);
}
