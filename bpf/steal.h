// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What the hypervisor took, from every CPU, read from one: a CPU that stood still cannot say so in
// time, and its neighbours' steal tells a stall of the machine from a section of the kernel.

#ifndef RTSCOPE_STEAL_H
#define RTSCOPE_STEAL_H

#include "evidence.h"

// With more CPUs than these, the others' steal is not read.
#define STEAL_CPUS_MAX 256

static __always_inline void steal_read(rts_u32 number, bool report)
{
	struct resched_slot *of_cpu = LOOKUP(resched, number);
	struct steal_seen *seen = LOOKUP(steals, number);
	struct rts_evidence *slot;
	rts_u64 now_ns, total_ns;

	if (!of_cpu || !of_cpu->cpu_base || !seen)
		return;
	now_ns = bpf_ktime_get_ns();
	total_ns = per_cpu_word((const void *)of_cpu->cpu_base, config.steal_offset);
	if (report && seen->time_ns) {
		slot = evidence_begin_of(number, RTS_EVIDENCE_STEAL, now_ns);
		if (slot) {
			slot->steal.begin_ns = seen->time_ns;
			slot->steal.steal_ns = total_ns - seen->total_ns;
			evidence_end(slot);
		}
	}
	seen->time_ns = now_ns;
	seen->total_ns = total_ns;
}

struct steal_question {
	rts_u32 report; // leave records; else only look
};

// Run by user space: at a hit with records, and now and then without, so that a record is about a
// short time.
SEC("syscall")
int read_steal(struct steal_question *question)
{
	bool report = question->report;

	for (rts_u32 number = 0; number < STEAL_CPUS_MAX; number++) {
		if (number >= config.cpus_max)
			break;
		steal_read(number, report);
	}
	return 0;
}

#endif
