// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// A fair target whose control group, or one above it, is out of quota waits whoever runs: since
// when, and for how long by the kernel's own count. Until 6.17 all of a group's tasks on a CPU are
// kept at once, wherever they wait; since 6.18 each leaves the CPU by itself on its way to user
// space, and nobody else is kept.

#ifndef RTSCOPE_QUOTA_H
#define RTSCOPE_QUOTA_H

#include "blocked.h"

#define HAS_QUOTAS(task)                                                                           \
	(bpf_core_field_exists((task)->se.cfs_rq) &&                                               \
	 bpf_core_field_exists((task)->se.cfs_rq->throttle_count))
#define EACH_IS_KEPT(task) bpf_core_field_exists((task)->throttled)
#define QUOTA_LEVELS_MAX 16

// Whether a fair task's control group has used up its quota.
static __always_inline bool quota_used_up(struct task_struct *task)
{
	if (!HAS_QUOTAS(task))
		return false;
	return task->prio > PRIO_FAIR_MIN && task->se.cfs_rq->throttle_count > 0;
}

// For how long tasks of the run queue at `address` were kept by quotas; `all`: with what goes on.
// Not static, and asked by a number: so the verifier follows it once.
__noinline rts_u64 quota_kept_ns(rts_u64 address, bool all)
{
	const struct cfs_rq *cfs_rq = (const struct cfs_rq *)address;
	rts_u64 kept_ns, since_ns;

	if (!bpf_core_field_exists(cfs_rq->throttled_clock_self_time) ||
	    !bpf_core_field_exists(cfs_rq->rq))
		return 0;
	kept_ns = BPF_CORE_READ(cfs_rq, throttled_clock_self_time);
	since_ns = BPF_CORE_READ(cfs_rq, throttled_clock_self);
	if (all && since_ns)
		kept_ns += BPF_CORE_READ(cfs_rq, rq, clock) - since_ns;
	return kept_ns;
}

// Since when tasks of the run queue at `address` are kept, by the clock of its CPU; 0: none is.
__noinline rts_u64 quota_since_ns(rts_u64 address)
{
	const struct cfs_rq *cfs_rq = (const struct cfs_rq *)address;

	if (!bpf_core_field_exists(cfs_rq->throttled_clock_self))
		return 0;
	return BPF_CORE_READ(cfs_rq, throttled_clock_self);
}

// What that clock says. It stands still while the CPU idles, up to the next switch or tick.
__noinline rts_u64 quota_clock_ns(rts_u64 address)
{
	const struct cfs_rq *cfs_rq = (const struct cfs_rq *)address;

	if (!bpf_core_field_exists(cfs_rq->rq))
		return 0;
	return BPF_CORE_READ(cfs_rq, rq, clock);
}

// Whether the group whose share of a CPU is the entity at `address`, or one above it, has a quota.
__noinline bool quota_of_groups(rts_u64 address)
{
	const struct sched_entity *share = (const struct sched_entity *)address;

	if (!bpf_core_field_exists(share->my_q) || !bpf_core_field_exists(share->my_q->runtime_enabled))
		return false;
	for (int level = 0; level < QUOTA_LEVELS_MAX && share; level++) {
		if (BPF_CORE_READ(share, my_q, runtime_enabled))
			return true;
		share = BPF_CORE_READ(share, parent);
	}
	return false;
}

// Whether a task's control group, or one above it, has a quota.
static __always_inline bool quota_limits(struct task_struct *task)
{
	if (!HAS_QUOTAS(task) || !bpf_core_field_exists(task->se.parent))
		return false;
	return quota_of_groups((rts_u64)BPF_CORE_READ(task, se.parent));
}

static __always_inline void evidence_throttled(struct task_struct *task, rts_u64 begin_ns,
		rts_u64 kept_ns, rts_u64 now_ns)
{
	struct rts_evidence *slot = evidence_begin(RTS_EVIDENCE_THROTTLED, now_ns);

	if (!slot)
		return;
	slot->throttled.begin_ns = begin_ns;
	slot->throttled.kept_ns = kept_ns;
	task_describe(&slot->throttled.task, task);
	evidence_end(slot);
}

// A target begins to wait for a CPU.
static __always_inline void quota_wait_begins(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	state->throttled_ns = 0;
	state->quota_rq = 0;
	if (!config.evidence_floor_ns || !HAS_QUOTAS(task) || task->prio <= PRIO_FAIR_MIN ||
	    (EACH_IS_KEPT(task) && !task->throttled))
		return;
	if (EACH_IS_KEPT(task) || quota_used_up(task))
		state->throttled_ns = now_ns;
	state->quota_wait_ns = now_ns;
	// A number, not a pointer that the verifier knows.
	state->quota_rq = (rts_u64)BPF_CORE_READ(task, se.cfs_rq);
	state->quota_ns = quota_kept_ns(state->quota_rq, false);
	state->quota_since_ns = quota_since_ns(state->quota_rq);
}

// How much of such a wait its quota took until now; `all`: with what goes on. 0: not known.
static __always_inline rts_u64 quota_of_wait_ns(const struct task_state *state, bool all,
		rts_u64 now_ns)
{
	rts_u64 kept_ns = quota_kept_ns(state->quota_rq, all) - state->quota_ns;
	rts_s64 before_ns = 0;

	// What went on as the wait began is none of it up to then. The clock is read at the end only.
	if (state->quota_since_ns)
		before_ns = quota_clock_ns(state->quota_rq) - (now_ns - state->quota_wait_ns) -
			    state->quota_since_ns;
	if (before_ns < 0)
		before_ns = 0;
	return kept_ns > (rts_u64)before_ns ? kept_ns - before_ns : 0;
}

// A task that is preempted because its group has used up its quota: so may not run whoever of the
// group waits on this CPU.
static __always_inline void quota_note(struct cpu_state *cpu, struct task_struct *prev,
				       rts_u64 *now_ns)
{
	if (EACH_IS_KEPT(prev) || !quota_used_up(prev))
		return;
	if (!*now_ns)
		*now_ns = bpf_ktime_get_ns();
	cpu->throttled_rq = (rts_u64)prev->se.cfs_rq;
	cpu->throttled_ns = *now_ns;
}

// A target is scheduled in at last: what its quota took of its wait.
static __always_inline void quota_wait_ends(struct cpu_state *cpu, struct task_state *state,
		struct task_struct *task, rts_u64 now_ns)
{
	rts_u64 begin_ns = state->throttled_ns, kept_ns = 0;

	if (!state->quota_rq)
		return;
	// Since 6.18 it is the queue that it was kept on that counts, wherever it goes then.
	if (EACH_IS_KEPT(task) || state->quota_rq == (rts_u64)task->se.cfs_rq)
		kept_ns = quota_of_wait_ns(state, false, now_ns);
	if (!EACH_IS_KEPT(task) && cpu->throttled_rq == (rts_u64)task->se.cfs_rq) {
		cpu->throttled_rq = 0;
		if (!begin_ns && cpu->throttled_ns > state->quota_wait_ns)
			begin_ns = cpu->throttled_ns;
	}
	if (!begin_ns && kept_ns >= config.evidence_floor_ns)
		begin_ns = state->quota_wait_ns;
	if (begin_ns)
		evidence_throttled(task, begin_ns, kept_ns, now_ns);
	state->throttled_ns = 0;
	state->quota_rq = 0;
}

// One that still waits.
static __always_inline void quota_waits(const struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	if (state->throttled_ns)
		evidence_throttled(task, state->throttled_ns,
				   quota_of_wait_ns(state, true, now_ns), now_ns);
}

#endif
