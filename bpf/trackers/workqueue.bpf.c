// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Work of the kernel's work queues: from its queueing to its start, and how long it runs. Key is
// the function. The task is the one that queued it, other the worker; the label is the queue's
// name.

#include "stages.h"

struct workqueue_struct {
	char name[32];
} RELOCATED;

struct pool_workqueue {
	struct workqueue_struct *wq;
} RELOCATED;

struct work_struct {
	void *func;
} RELOCATED;

// Work that runs is kept under its worker's tid: its own address may be
// freed, or queued again, meanwhile. No address of the kernel is as low.
static __always_inline rts_u64 worker_key(void)
{
	return bpf_get_current_pid_tgid() << 32 | 1;
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(workqueue_queue_work, int cpu, struct pool_workqueue *pool, struct work_struct *work)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct rts_tracker_open open = {};

	if (!tracker_only((rts_u64)work->func) || !tracker_wants_task(current))
		return 0;
	open.tracked.begin_ns = bpf_ktime_get_ns();
	open.tracked.key = (rts_u64)work->func;
	open.tracked.series = ASKED;
	open.tracked.other.tid = -1;
	task_describe(&open.tracked.task, current);
	tracker_label(open.tracked.label, pool->wq->name);
	open_begins((rts_u64)work, &open);
	return 0;
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(workqueue_execute_start, struct work_struct *work)
{
	run_begins((rts_u64)work, worker_key());
	return 0;
}

SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(workqueue_execute_end)
{
	run_ends(worker_key());
	return 0;
}
