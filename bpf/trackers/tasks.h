// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The programs by which a tracker knows tasks: each gets its storage when it is born or, at the
// start, from the iterator, and never where an interval begins. And the iterator that looks for
// tasks whose interval is open for longer than asked.

#ifndef RTSCOPE_TRACKERS_TASKS_H
#define RTSCOPE_TRACKERS_TASKS_H

#include "tracker.h"

static __always_inline void tracker_resolve(struct task_struct *task, const char *comm,
		const struct tracker_task *parent, enum resolving how)
{
	struct tracker_task *state;

	state = bpf_task_storage_get(&tracker_tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		TRACKER_LOSS(storage_failures);
		return;
	}
	filter_resolve(&state->meant, task, comm, parent ? &parent->meant : 0, how);
	if (tracker_is_ours(task))
		state->meant.ours = 1;
#ifdef TRACKER_KEEPS_STACKS
	if (tracker_config.stacks &&
	    !bpf_task_storage_get(&tracker_stacks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		TRACKER_LOSS(storage_failures);
#endif
}

// Whether anybody asks what is known of a task: whether it is meant, or what is open for it. Making
// room for that is what a new task costs.
static __always_inline bool tracker_knows_tasks(void)
{
#if defined(TRACKER_OPEN_IN_TASKS) || defined(TRACKER_KEEPS_IN_TASKS)
	return true;
#else
	return config.target_kind != RTS_TARGET_ALL;
#endif
}

SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task, rts_u64 clone_flags)
{
	char comm[RTS_COMM_LENGTH];

	if (!tracker_knows_tasks())
		return 0;
	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	tracker_resolve(task, comm, tracker_task(bpf_get_current_task_btf()), RESOLVE_BORN);
	return 0;
}

// exec renames too.
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *name)
{
	char comm[RTS_COMM_LENGTH] = {};

	if (!tracker_knows_tasks())
		return 0;
	bpf_probe_read_kernel_str(comm, sizeof(comm), name);
	tracker_resolve(task, comm, 0, task_in_exec(task) ? RESOLVE_PROGRAM : RESOLVE_NAMED);
	return 0;
}

SEC("iter/task")
int resolve_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	char comm[RTS_COMM_LENGTH];

	meant_know_ourselves(config.levels_up);
	if (!task || !task->pid || !tracker_knows_tasks())
		return 0;
	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	tracker_resolve(task, comm, 0, RESOLVE_FOUND);
	return 0;
}

#ifdef TRACKER_OPEN_IN_TASKS
// Runs in user space's own time; each interval is reported once.
SEC("iter/task")
int check_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tracker_task *state;
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;
	rts_u64 now_ns, begin_ns;

	if (!task || !task->pid || !(state = tracker_task(task)))
		return 0;
	begin_ns = state->begin_ns;
	now_ns = bpf_ktime_get_ns();
	if (!begin_ns || state->reported ||
	    (rts_s64)(now_ns - begin_ns) < (rts_s64)config.waiting_ns)
		return 0;
	tracker_ends(&tracked, begin_ns, now_ns, state->key, state->series);
	tracked.flags = RTS_TRACKED_OPEN;
#ifdef TRACKER_LABELS_BY_TASK
	tracker_label(tracked.label, task->comm);
#endif
	task_describe(&tracked.task, task);
	hit = tracker_reserve(&tracked);
	if (!hit)
		return 0;
	// It ended while we looked: then it is no interval that is open.
	if (state->begin_ns != begin_ns) {
		bpf_ringbuf_discard(hit, 0);
		return 0;
	}
	state->reported = 1;
	stack_of(&hit->stack, task);
	tracker_send(hit);
	return 0;
}
#endif

#endif
