// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The time for which preemption is off, and that for which interrupts are, where the kernel has
// tracepoints of both. Key is the place that switched it off, the stack the one that switches it on
// again. The task is the one that runs.

#include "tasks.h"

enum { PREEMPTION = 0, INTERRUPTS = 1 };

struct section {
	rts_u64 begin_ns; // 0: it is on
	rts_u64 key;
};

// Per CPU and series.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, rts_u32);
	__type(value, struct section);
} tracker_sections SEC(".maps");

static __always_inline int begins(rts_u32 series, rts_u64 ip)
{
	struct section *section = LOOKUP(tracker_sections, series);

	if (!section || !tracker_cpu() || !tracker_only(ip) ||
	    !tracker_wants_interrupted(bpf_get_current_task_btf()))
		return 0;
	section->key = ip;
	section->begin_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int ends(void *ctx, rts_u32 series)
{
	struct section *section = LOOKUP(tracker_sections, series);
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	if (!section || !section->begin_ns)
		return 0;
	tracker_ends(&tracked, section->begin_ns, bpf_ktime_get_ns(), section->key, series);
	section->begin_ns = 0;
	task_describe(&tracked.task, bpf_get_current_task_btf());
	hit = tracker_counts_known(&tracked) ? tracker_told(&tracked) : 0;
	if (!hit)
		return 0;
	if (tracker_config.stacks)
		stack_here(&hit->stack, ctx);
	tracker_send(hit);
	return 0;
}

SEC("tp_btf/preempt_disable")
int BPF_PROG(preempt_disable, unsigned long ip)
{
	return begins(PREEMPTION, ip);
}

SEC("tp_btf/preempt_enable")
int BPF_PROG(preempt_enable)
{
	return ends(ctx, PREEMPTION);
}

SEC("tp_btf/irq_disable")
int BPF_PROG(irq_disable, unsigned long ip)
{
	return begins(INTERRUPTS, ip);
}

SEC("tp_btf/irq_enable")
int BPF_PROG(irq_enable)
{
	return ends(ctx, INTERRUPTS);
}
