// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Who is whom: a task gets its storage when it is born or, at the start, from the iterator. Where
// the kernel had none then, it is asked again at each wake-up.

#ifndef RTSCOPE_KNOWN_H
#define RTSCOPE_KNOWN_H

#include "chain.h"

// How the ids of a PID namespace are told: by the kernel's number of a task, that in there.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, rts_s32);
	__type(value, rts_s32);
} ids SEC(".maps");

static __always_inline void ids_note(struct task_struct *task)
{
	rts_s32 tid = task->pid, seen = meant_id_at(task, ids_level);

	if (seen)
		bpf_map_update_elem(&ids, &tid, &seen, BPF_ANY);
}

static __always_inline void task_resolve(struct task_struct *task, const char *comm,
		const struct task_state *parent, enum resolving how)
{
	bool may_become_target = config.target_kind != RTS_TARGET_FLAGGED || config.real_time ||
				 config.prios_length || config.groups;
	struct task_state *state;

	state = bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		COUNT(storage_failures);
		return;
	}
	filter_resolve(&state->meant, task, comm, parent ? &parent->meant : 0, how);
	if (config.in_namespace)
		ids_note(task);
	// A flag is resolved here for good; a priority may come later.
	if (config.waker_stacks && (may_become_target || state->meant.target || state->meant.family) &&
	    !bpf_task_storage_get(&waker_stacks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		COUNT(storage_failures);
}

// When all programs were in their places. The command that is watched has no children before.
static rts_u64 family_since_ns;

// Whether a task that has no storage may be a target. Who its parents are is not known any more.
static __always_inline bool unknown_may_be_target(struct task_struct *task, const char *comm)
{
	struct meant meant = {};

	// Who is outside of our namespace cannot be asked for.
	if (config.in_namespace && !meant_id_at(task, ids_level))
		return false;
	meant.family = config.family && family_since_ns && task->start_time >= family_since_ns &&
		       !(task->flags & PF_KTHREAD);
	if (filter_of_command(&meant))
		return true;
	filter_resolve(&meant, task, comm, 0, RESOLVE_FOUND);
	return filter_meant(&meant, task);
}

// The storage of a task that is woken and has none yet, and who it is.
static __noinline struct task_state *task_known_late(struct task_struct *task)
{
	struct task_state *state;
	char comm[RTS_COMM_LENGTH];
	bool unknown;

	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	task_resolve(task, comm, 0, RESOLVE_FOUND);
	state = task_state(task);
	unknown = !state || (config.family && !state->meant.family);
	if (unknown && unknown_may_be_target(task, comm))
		COUNT(untracked);
	return state;
}

#endif
