// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Where the latency of a measuring thread goes: the instants at which its timer's function began,
// at which it came on a run queue, and at which it was scheduled in. Each thread has a slot in an
// array that user space maps, and reads its own without a system call once it runs.

#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// By tid; user space fills it before the first sample.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RTS_PHASE_THREADS_MAX);
	__type(key, rts_s32);
	__type(value, rts_u32);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RTS_PHASE_THREADS_MAX);
	__type(key, rts_u32);
	__type(value, struct rts_phases);
} phases SEC(".maps");

// When the timer's function that runs on this CPU began; 0: none runs.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, rts_u64);
} timer_entry SEC(".maps");

static __always_inline rts_u64 *entry_here(void)
{
	rts_u32 key = 0;

	return bpf_map_lookup_elem(&timer_entry, &key);
}

static __always_inline struct rts_phases *phases_of(struct task_struct *task)
{
	rts_s32 tid = task->pid;
	rts_u32 *number = bpf_map_lookup_elem(&threads, &tid);

	return number ? bpf_map_lookup_elem(&phases, number) : 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer)
{
	rts_u64 *entry_ns = entry_here();

	if (entry_ns)
		*entry_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_expire_exit, struct hrtimer *timer)
{
	rts_u64 *entry_ns = entry_here();

	if (entry_ns)
		*entry_ns = 0;
	return 0;
}

// On the CPU of the timer; the run queue may be another one's.
SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *wakee)
{
	struct rts_phases *slot = phases_of(wakee);
	rts_u64 *entry_ns = entry_here();

	if (!slot || !entry_ns)
		return 0;
	slot->entry_ns = *entry_ns;
	slot->wakeup_ns = 0;
	slot->switch_ns = 0;
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *wakee)
{
	struct rts_phases *slot = phases_of(wakee);

	if (slot)
		slot->wakeup_ns = bpf_ktime_get_ns();
	return 0;
}

// Only the first time after a wake-up: who is preempted afterwards is late by his own run.
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct rts_phases *slot;

	if (!next->pid)
		return 0;
	slot = phases_of(next);
	if (slot && slot->wakeup_ns && !slot->switch_ns)
		slot->switch_ns = bpf_ktime_get_ns();
	return 0;
}
