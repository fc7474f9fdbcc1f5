// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Functions that one CPU has another one call by an inter-processor interrupt: from the request to
// the call, and how long it runs. Key is the function. The task is the one that asked, other the
// one that was interrupted for it.

#include "tasks.h"

enum { REQUESTED = 0, RUNS = 1 };

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

static __always_inline void measured(struct rts_tracked *tracked, rts_u64 now_ns)
{
	struct rts_tracker_hit *hit;

	tracked->end_ns = now_ns;
	tracked->cpu = bpf_get_smp_processor_id();
	hit = tracker_measured(tracked);
	if (hit)
		tracker_send(hit);
}

// No program may read the argument that is a function: the request has it, too. Wake-ups and work
// go the same way, but no tracepoint says when they begin.
SEC("tp_btf/csd_queue_cpu")
int BPF_PROG(csd_queue_cpu, unsigned int cpu, unsigned long callsite, void *unread,
	     struct __call_single_data *request)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct rts_tracker_open open = {};
	rts_u64 address = (rts_u64)request, function = (rts_u64)BPF_CORE_READ(request, func);

	if ((BPF_CORE_READ(request, node.u_flags) & CSD_TYPES) > CSD_TYPE_SYNC ||
	    !tracker_only(function) || !tracker_wants_interrupted(current))
		return 0;
	open.tracked.key = function;
	open.tracked.series = REQUESTED;
	task_describe(&open.tracked.task, current);
	open.tracked.begin_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&tracker_open, &address, &open, BPF_ANY))
		TRACKER_LOSS(full);
	return 0;
}

SEC("tp_btf/csd_function_entry")
int BPF_PROG(csd_function_entry, void *unread, struct __call_single_data *request)
{
	rts_u64 address = (rts_u64)request, now_ns = bpf_ktime_get_ns(), cpu = cpu_key();
	struct rts_tracker_open *open = bpf_map_lookup_elem(&tracker_open, &address), running = {};

	if (!open)
		return 0;
	running.tracked = open->tracked;
	bpf_map_delete_elem(&tracker_open, &address);
	task_describe(&running.tracked.other, bpf_get_current_task_btf());
	measured(&running.tracked, now_ns);
	running.tracked.begin_ns = now_ns;
	running.tracked.end_ns = 0;
	running.tracked.series = RUNS;
	if (bpf_map_update_elem(&tracker_open, &cpu, &running, BPF_ANY))
		TRACKER_LOSS(full);
	return 0;
}

SEC("tp_btf/csd_function_exit")
int BPF_PROG(csd_function_exit)
{
	rts_u64 cpu = cpu_key();
	struct rts_tracker_open *open = bpf_map_lookup_elem(&tracker_open, &cpu);
	struct rts_tracked tracked;

	if (!open)
		return 0;
	tracked = open->tracked;
	bpf_map_delete_elem(&tracker_open, &cpu);
	measured(&tracked, bpf_ktime_get_ns());
	return 0;
}
