// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Work of the kernel's work queues: from its queueing to its start, and how long it runs. Key is
// the function. The task is the one that queued it, other the worker; the label is the queue's
// name.

#include "tasks.h"

enum { QUEUED = 0, RUNS = 1 };

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

static __always_inline void measured(struct rts_tracked *tracked, rts_u64 now_ns)
{
	struct rts_tracker_hit *hit;

	tracked->end_ns = now_ns;
	tracked->cpu = bpf_get_smp_processor_id();
	hit = tracker_measured(tracked);
	if (hit)
		tracker_send(hit);
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(workqueue_queue_work, int cpu, struct pool_workqueue *pool, struct work_struct *work)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct rts_tracker_open open = {};
	rts_u64 address = (rts_u64)work;

	if (!tracker_only((rts_u64)work->func) || !tracker_wants_task(current))
		return 0;
	open.tracked.begin_ns = bpf_ktime_get_ns();
	open.tracked.key = (rts_u64)work->func;
	open.tracked.series = QUEUED;
	open.tracked.other.tid = -1;
	task_describe(&open.tracked.task, current);
	bpf_probe_read_kernel_str(open.tracked.label, RTS_COMM_LENGTH, pool->wq->name);
	if (bpf_map_update_elem(&tracker_open, &address, &open, BPF_ANY))
		TRACKER_LOSS(full);
	return 0;
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(workqueue_execute_start, struct work_struct *work)
{
	rts_u64 address = (rts_u64)work, now_ns = bpf_ktime_get_ns(), worker = worker_key();
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
	if (bpf_map_update_elem(&tracker_open, &worker, &running, BPF_ANY))
		TRACKER_LOSS(full);
	return 0;
}

SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(workqueue_execute_end, struct work_struct *work)
{
	rts_u64 worker = worker_key();
	struct rts_tracker_open *open = bpf_map_lookup_elem(&tracker_open, &worker);
	struct rts_tracked tracked;

	if (!open)
		return 0;
	tracked = open->tracked;
	bpf_map_delete_elem(&tracker_open, &worker);
	measured(&tracked, bpf_ktime_get_ns());
	return 0;
}
