// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Handlers of hard interrupts, from entry to exit: key is the interrupt, negative for those of the
// CPU itself. The task is the one that was interrupted.

#define TRACKER_SMALL_KEYS
#include "tasks.h"

// One per CPU is enough: hard interrupts do not nest.
struct handler {
	rts_u64 begin_ns; // 0: none runs
	rts_s64 irq;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct handler);
} tracker_handlers SEC(".maps");

static __always_inline int begins(rts_s64 irq)
{
	struct handler *handler = LOOKUP(tracker_handlers, 0);

	if (!handler || !tracker_cpu() || !tracker_only(irq) ||
	    !tracker_wants_interrupted(bpf_get_current_task_btf()))
		return 0;
	if (handler->begin_ns)
		TRACKER_LOSS(unpaired);
	handler->irq = irq;
	handler->begin_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int ends(rts_s64 irq)
{
	struct handler *handler = LOOKUP(tracker_handlers, 0);
	struct tracker_interval interval = {};

	if (!handler || !handler->begin_ns)
		return 0;
	interval.begin_ns = handler->begin_ns;
	interval.key = irq;
	handler->begin_ns = 0;
	if (handler->irq != irq) {
		TRACKER_LOSS(unpaired);
		return 0;
	}
	interval.end_ns = bpf_ktime_get_ns();
	return tracker_counts(&interval) ? tracker_tells_current(&interval, 0) : 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq)
{
	return begins(irq);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int irq)
{
	return ends(irq);
}

#define VECTOR_PROGRAMS(name, irq)                                  \
	SEC("tp_btf/" #name "_entry")                               \
	int BPF_PROG(name##_entry, int vector)                      \
	{                                                           \
		return begins(irq);                                 \
	}                                                           \
	SEC("tp_btf/" #name "_exit")                                \
	int BPF_PROG(name##_exit, int vector)                       \
	{                                                           \
		return ends(irq);                                   \
	}

RTS_VECTORS(VECTOR_PROGRAMS)
