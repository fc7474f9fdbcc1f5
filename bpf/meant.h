// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What is known once of a task for whoever asks whether it is meant: the watch and the trackers
// keep one with each task. Who a task is to whoever asks, seen from their PID namespace.

#ifndef RTSCOPE_MEANT_H
#define RTSCOPE_MEANT_H

#include "kernel.h"

struct meant {
	rts_u64 groups; // the set of its control groups when `member` was found out; 0: never
	rts_u8 target;  // resolved once: by name, tid, process or namespace
	rts_u8 family;  // resolved once: of the command that is run
	rts_u8 member;  // of a control group that is meant
	rts_u8 passes;  // resolved once: a kernel thread that only passes on the work of others
	rts_u8 ours;    // resolved once: of the watch itself, or outside of its PID namespace
	rts_u8 program; // its process runs a program's file that is asked for as a process's name
	rts_u8 near; // nobody asks for it, and it works with those who are asked for
	rts_u8 padding[1];
};

// Whoever reads the iterator at the start is the watch: its process as the kernel numbers it, and
// the PID namespace whose ids it was given, with its level.
static rts_s32 own_tgid;
static rts_u64 ids_namespace;
static rts_u32 ids_level;
static rts_u32 own_level;

static __always_inline void upid_read(struct upid *to, struct pid *pid, rts_u32 level)
{
	void *place = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
		      level * bpf_core_type_size(struct upid);

	bpf_probe_read_kernel(&to->nr, sizeof(to->nr),
			place + bpf_core_field_offset(struct upid, nr));
	bpf_probe_read_kernel(&to->ns, sizeof(to->ns),
			place + bpf_core_field_offset(struct upid, ns));
}

// Once, by the iterator.
static __always_inline void meant_know_ourselves(rts_u32 levels_up)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct upid upid = {};
	struct pid *pid;

	own_tgid = bpf_get_current_pid_tgid() >> 32;
	pid = BPF_CORE_READ(current, thread_pid);
	own_level = BPF_CORE_READ(pid, level);
	ids_level = own_level > levels_up ? own_level - levels_up : 0;
	upid_read(&upid, pid, ids_level);
	ids_namespace = (rts_u64)upid.ns;
}

// Whether a task is of a process that we started.
static __always_inline bool meant_is_of_child(const struct task_struct *task)
{
	return task->group_leader->real_parent->tgid == own_tgid;
}

// A task's number at this level of our own PID namespaces; 0: it has none there.
static __always_inline rts_s32 meant_id_at(struct task_struct *task, rts_u32 level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid upid = {};

	if (!ids_namespace)
		return 0;
	upid_read(&upid, pid, ids_level);
	if ((rts_u64)upid.ns != ids_namespace || BPF_CORE_READ(pid, level) < level)
		return 0;
	if (level != ids_level)
		upid_read(&upid, pid, level);
	return upid.nr;
}

#define NAMESPACE_LEVELS_MAX 32

// Whether a task is in a PID namespace of this number, or in one below it.
static __always_inline bool meant_is_in(struct task_struct *task, rts_u32 number)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	rts_u32 last = BPF_CORE_READ(pid, level);

	for (rts_u32 level = 0; level < NAMESPACE_LEVELS_MAX && level <= last; level++) {
		struct upid upid = {};

		upid_read(&upid, pid, level);
		if (BPF_CORE_READ(upid.ns, ns.inum) == number)
			return true;
	}
	return false;
}

#endif
