// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Functions that one CPU has another one call by an inter-processor interrupt: from the request to
// the call, and how long it runs. Key is the function. The task is the one that asked, other the
// one that was interrupted for it.

#include "stages.h"

// Of a request, what is to be done: calls have the lowest of these (include/linux/smp_types.h).
#define CSD_TYPES 0xf0
#define CSD_TYPE_SYNC 0x10

struct __call_single_node {
	unsigned int u_flags;
} RELOCATED;

struct __call_single_data {
	struct __call_single_node node;
	void *func;
} RELOCATED;

// A call that runs is kept under its CPU: the request may be used again meanwhile. No address of
// the kernel is as low.
static __always_inline rts_u64 cpu_key(void)
{
	return bpf_get_smp_processor_id() + 1;
}

// No program may read the argument that is a function: the request has it, too. Wake-ups and work
// go the same way, but no tracepoint says when they begin; what a CPU calls for itself, beside
// others, has no request.
SEC("tp_btf/csd_queue_cpu")
int BPF_PROG(csd_queue_cpu, unsigned int cpu, unsigned long callsite, void *unread,
	     struct __call_single_data *request)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct rts_tracker_open open = {};
	rts_u64 function = (rts_u64)BPF_CORE_READ(request, func);

	if ((BPF_CORE_READ(request, node.u_flags) & CSD_TYPES) > CSD_TYPE_SYNC ||
	    !tracker_only(function) || !tracker_wants_interrupted(current))
		return 0;
	open.tracked.key = function;
	open.tracked.series = ASKED;
	task_describe(&open.tracked.task, current);
	open.tracked.begin_ns = bpf_ktime_get_ns();
	open_begins((rts_u64)request, &open);
	return 0;
}

SEC("tp_btf/csd_function_entry")
int BPF_PROG(csd_function_entry, void *unread, struct __call_single_data *request)
{
	run_begins((rts_u64)request, cpu_key());
	return 0;
}

SEC("tp_btf/csd_function_exit")
int BPF_PROG(csd_function_exit)
{
	run_ends(cpu_key());
	return 0;
}
