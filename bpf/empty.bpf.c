// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Programs that do nothing, on the tracepoints that fire most: what BPF itself costs, to subtract
// from what the watch costs.

#include "profile.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/sched_waking")
int BPF_PROG(empty_waking, struct task_struct *wakee)
{
	return PROFILED(true, RTS_PROGRAM_EMPTY, false);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(empty_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return PROFILED(true, RTS_PROGRAM_EMPTY, false);
}

// Without the profile: what BPF statistics say of a program that does nothing.
SEC("tp_btf/sched_switch")
int BPF_PROG(nothing)
{
	return 0;
}
