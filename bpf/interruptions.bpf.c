// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// How often an interrupt, an NMI or a switch took a CPU from whoever ran there. Each CPU has a
// count in an array that user space maps: who measures there reads it without a system call.

#include "kernel.h"
#include "tables.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// A cache line of its own, so that counting on one CPU disturbs no other.
struct interruptions {
	rts_u64 count;
	rts_u64 unused[7];
};

// By CPU; user space gives it its length.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct interruptions);
} interruptions SEC(".maps");

// Whoever comes, the count has changed before the interrupted code goes on.
#define COUNTED(tracepoint)                                                          \
	SEC("tp_btf/" #tracepoint)                                                    \
	int tracepoint(void *context)                                                 \
	{                                                                            \
		rts_u32 cpu = bpf_get_smp_processor_id();                            \
		struct interruptions *here = bpf_map_lookup_elem(&interruptions, &cpu); \
                                                                                     \
		if (here)                                                            \
			__sync_fetch_and_add(&here->count, 1);                       \
		return 0;                                                            \
	}

COUNTED(irq_handler_entry)
#define COUNTED_VECTOR(name, irq) COUNTED(name##_entry)
RTS_VECTORS(COUNTED_VECTOR)
COUNTED(nmi_handler)
COUNTED(sched_switch)
