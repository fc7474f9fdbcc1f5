// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Handlers of non-maskable interrupts. One tracepoint comes after each and says how long it took by
// the CPU's own clock. Key is the handler. The task is the one that was interrupted.

#include "tasks.h"

SEC("tp_btf/nmi_handler")
int BPF_PROG(nmi_handler, void *handler, rts_s64 took_ns, int handled)
{
	rts_u64 now_ns = bpf_ktime_get_ns(), key = (rts_u64)handler;
	struct task_struct *current = bpf_get_current_task_btf();
	struct rts_tracked tracked;

	// Of the handlers of an interrupt, those that it was not for.
	if (!handled || took_ns < 0 || !tracker_cpu() || !tracker_only(key) ||
	    !tracker_wants_interrupted(current))
		return 0;
	tracker_ends(&tracked, now_ns - took_ns, now_ns, key, 0);
	task_describe(&tracked.task, current);
	if (tracker_counts_known(&tracked))
		tracker_tells(&tracked);
	return 0;
}
