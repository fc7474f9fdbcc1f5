// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What decides who goes first and no event of the kernel's tells: owners of locks that wait for
// each other, and tasks that lower themselves.

#ifndef RTSCOPE_RANK_H
#define RTSCOPE_RANK_H

#include "ends.h"

// So many owners are followed, of which each waits for a lock of the next one.
#define OWNERS_MAX 4

// The task at `address`, which has a lock that others wait for, waits for one itself: who has that,
// and so on. A number, which the verifier does not follow.
static __noinline int evidence_owners(rts_u64 address, rts_u64 now_ns)
{
	for (int i = 0; i < OWNERS_MAX && address; i++) {
		struct task_struct *task = (struct task_struct *)address;
		rts_u64 owner = lock_owner(task);
		struct rts_evidence *slot = owner ? evidence_begin(RTS_EVIDENCE_BLOCKED, now_ns) : 0;

		if (!slot)
			break;
		slot->blocked.lock = (rts_u64)BPF_CORE_READ(task, pi_blocked_on, lock);
		task_read(&slot->blocked.task, task);
		task_read(&slot->blocked.owner, (struct task_struct *)owner);
		slot->blocked.on = RTS_BLOCKED_LOCK;
		slot->blocked.stack.length = 0;
		evidence_end(slot);
		address = owner;
	}
	return 0;
}

// What else decided who goes first: the owner of a lock that others wait for blocks on a lock
// itself, or a task has lowered itself.
static __always_inline void evidence_of_rank(const struct cpu_state *cpu, struct task_struct *prev,
		unsigned int left_in, rts_u64 now_ns)
{
	if (left_in) {
		if (prev->pi_blocked_on && prev->pi_top_task)
			evidence_owners((rts_u64)prev, now_ns ? now_ns : bpf_ktime_get_ns());
	} else if (lowers_itself(cpu, prev)) {
		evidence_leaving(cpu, prev, RTS_ROLE_LOWERED, now_ns ? now_ns : bpf_ktime_get_ns());
	}
}

#endif
