// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Page faults of user code, from the exception to the moment at which the kernel accounts for the
// page. That moment has no tracepoint: the kernel's software events of minor and major faults are
// there. Key is the task, detail the address. A fault that ends in a signal is accounted for
// nowhere.

#define TRACKER_KEEPS_IN_TASKS
#include "tasks.h"

enum { MINOR = 0, MAJOR = 1 };

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tracker_task *state = tracker_task(current);

	if (!state || !tracker_wants(state, current))
		return 0;
	if (state->begin_ns)
		TRACKER_LOSS(unpaired);
	state->detail = address;
	state->begin_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int ends(rts_u8 series)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tracker_task *state = tracker_task(current);
	struct tracker_interval interval = {};

	if (!state || !state->begin_ns)
		return 0;
	interval.begin_ns = state->begin_ns;
	interval.end_ns = bpf_ktime_get_ns();
	interval.key = current->pid;
	interval.label = current->comm;
	interval.series = series;
	state->begin_ns = 0;
	return tracker_counts(&interval) ? tracker_tells_current(&interval, state->detail) : 0;
}

SEC("perf_event")
int minor_fault(void *ctx)
{
	return ends(MINOR);
}

SEC("perf_event")
int major_fault(void *ctx)
{
	return ends(MAJOR);
}
