// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The ends of a target's chain, and the tasks of a hit as they were then: their policy and priority
// may be others by the time that somebody asks.

#ifndef RTSCOPE_ENDS_H
#define RTSCOPE_ENDS_H

#include "quota.h"

static __always_inline rts_u8 moment_flags(struct task_struct *task)
{
	rts_u8 flags = (task->flags & PF_KTHREAD) ? RTS_MOMENT_KERNEL_THREAD : 0;

	if (IS_SERVED(task))
		flags |= RTS_MOMENT_SERVED;
	if (quota_used_up(task))
		flags |= RTS_MOMENT_QUOTA;
	return flags;
}

static __always_inline void evidence_moment(struct task_struct *task, rts_u8 role, rts_u64 time_ns,
		rts_s32 came_prio, rts_u8 came_policy, rts_u8 flags)
{
	struct rts_evidence *slot = evidence_begin(RTS_EVIDENCE_MOMENT, time_ns);

	if (!slot)
		return;
	task_describe(&slot->moment.task, task);
	slot->moment.came_prio = came_prio;
	slot->moment.role = role;
	slot->moment.policy = task->policy;
	slot->moment.came_policy = came_policy;
	slot->moment.flags = flags | moment_flags(task);
	evidence_end(slot);
}

// The waker of a chain that hits, as it was at the wake-up.
static __always_inline void evidence_waker(const struct task_state *state)
{
	struct rts_evidence *slot;

	if (state->waker.tid < 0 || !state->woken_ns)
		return;
	slot = evidence_begin(RTS_EVIDENCE_MOMENT, state->woken_ns);
	if (!slot)
		return;
	slot->moment.task = state->waker;
	slot->moment.came_prio = state->waker.prio;
	slot->moment.role = RTS_ROLE_WAKER;
	slot->moment.policy = state->waker_policy;
	slot->moment.came_policy = state->waker_policy;
	slot->moment.flags = state->waker_flags;
	evidence_end(slot);
}

// Who wakes, and as what; nobody, where an interrupt does.
static __always_inline void waker_note(struct task_state *state, struct cpu_state *cpu)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	const struct softirq_frame *softirq = softirq_frame(cpu);

	state->waker.tid = -1;
	if (cpu->hardirq.active || !waker->pid || !softirq || softirq->vector_plus_1)
		return;
	task_describe(&state->waker, waker);
	state->waker_policy = waker->policy;
	state->waker_flags = moment_flags(waker);
}

static __always_inline void evidence_of_hit(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	evidence_waker(state);
	evidence_moment(task, RTS_ROLE_TARGET, now_ns, task->prio - PRIO_LTTNG_OFFSET,
			task->policy, quota_limits(task) ? RTS_MOMENT_LIMITED : 0);
}

// `task` leaves this CPU: as what it came on it.
static __always_inline void evidence_leaving(const struct cpu_state *cpu, struct task_struct *task,
		rts_u8 role, rts_u64 now_ns)
{
	rts_s32 came_prio = task->prio - PRIO_LTTNG_OFFSET;
	rts_u32 came_policy = task->policy;
	rts_u8 flags = 0;

	// The verifier lets no one instruction read of a task and of a map.
	barrier_var(came_prio);
	barrier_var(came_policy);
	if (cpu->came_tid == task->pid) {
		came_prio = cpu->came_prio;
		came_policy = cpu->came_policy;
		flags = cpu->served ? RTS_MOMENT_SERVED : 0;
	}
	evidence_moment(task, role, now_ns, came_prio, came_policy, flags);
}

// Whether `task`, which leaves this CPU for another one, does so in the call by which it set its
// priority: until then it went first, though it may have come as low as it leaves.
static __always_inline bool lowers_itself(const struct cpu_state *cpu, struct task_struct *task)
{
	struct pt_regs *regs;

	if (cpu->came_tid != task->pid || (task->flags & PF_KTHREAD))
		return false;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	return regs && regs_in_set_priority(regs);
}

// `task` is scheduled in and `culprit`, still current, leaves it.
static __always_inline void hit_switch_in(void *ctx, struct task_state *state,
		const struct cpu_state *cpu, struct task_struct *task,
		struct task_struct *culprit, rts_u64 now_ns)
{
	struct ending ending;
	struct rts_hit *hit;

	if (!ends_late(&ending, state, now_ns))
		return;
	hit = hit_reserve(state, task, &ending, RTS_END_SWITCH_IN);
	if (!hit)
		return;
	if (config.evidence_floor_ns) {
		evidence_of_hit(state, task, now_ns);
		evidence_leaving(cpu, culprit, RTS_ROLE_RUNNING, now_ns);
	}
	task_describe(&hit->culprit, culprit);
	stack_of(&hit->wakee_stack, task);
	stack_here(&hit->culprit_stack, ctx);
	hit_send(hit, now_ns, true);
}

// Where the task is that ends its own chain.
enum own_end {
	ENDS_ELSEWHERE,  // not on this CPU, or not now
	ENDS_AND_RUNS,   // current, and it goes on
	ENDS_AND_LEAVES, // current, and it leaves the CPU
};

// To tell of a hit takes some microseconds; who waits for that holds no lock that it needs. For the
// verifier each look is code of its own.
#define TELLING_LOOKS_MAX 64

// Its next activation takes the place of the one that the CPU which it leaves may just tell of.
static __always_inline void told_elsewhere(const struct task_state *state)
{
	for (int looks = 0; looks < TELLING_LOOKS_MAX; looks++) {
		if (!*(volatile rts_u8 *)&state->telling)
			return;
		bpf_ktime_get_ns();
		bpf_ktime_get_ns();
		bpf_ktime_get_ns();
	}
}

// A task went to sleep, on its own CPU.
static __always_inline void chain_append_blocked(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns, enum own_end how)
{
	rts_u32 place = state->chain.count;

	chain_append_task(&state->chain, RTS_STEP_BLOCKED, now_ns, task);
	barrier_var(place);
	if (how == ENDS_ELSEWHERE && HAS_TASK_CPU(task))
		state->chain.steps[place & STEP_MASK].cpu = TASK_CPU(task);
}

// Tells of a late end. Only the current task's stack is here.
static __always_inline void tell_own_end(void *ctx, struct task_state *state,
		struct task_struct *task, const struct ending *ending, rts_u32 end_kind,
		enum own_end how)
{
	struct rts_hit *hit;

	// Two CPUs may end it at once: who tells of it appends its last step.
	if (end_kind == RTS_END_BLOCKED)
		chain_append_blocked(state, task, ending->now_ns, how);
	hit = hit_reserve(state, task, ending, end_kind);
	if (!hit)
		return;
	if (config.evidence_floor_ns)
		evidence_of_hit(state, task, ending->now_ns);
	hit->culprit = state->culprit;
	if (how != ENDS_ELSEWHERE)
		stack_here(&hit->wakee_stack, ctx);
	hit_send(hit, ending->now_ns, how != ENDS_AND_LEAVES);
}

// Whether what a target ends as it goes to sleep is its start, for which nobody waits: it took the
// name by which it is meant, or was born, and gave itself its priority after that. Who ends without
// a sleep was a job.
static __always_inline bool is_start_up(const struct task_state *state, struct task_struct *task)
{
	if (!state->starts || (task->flags & PF_EXITING))
		return false;
	return state->starts == STARTS_NAMED || task->normal_prio != state->born_prio;
}

static __always_inline void start_up_ends(struct task_state *state, rts_u64 now_ns)
{
	rts_u64 told = *(volatile rts_u64 *)&state->told, activation = state->activation;

	if ((rts_s64)(now_ns - activation_origin(state)) >= (rts_s64)config.threshold_ns &&
	    told != activation &&
	    __sync_val_compare_and_swap(&state->told, told, activation) == told)
		COUNT(start_ups);
}

// A task ends its own chain: it returns to user space, or it blocks, or it has the CPU as it is
// woken. Where others wait for what is told, no hit is open: Linux 6.1 would lose sight of it.
static __always_inline void hit_own_end(void *ctx, struct task_state *state,
		struct task_struct *task, rts_u64 now_ns, rts_u32 end_kind, enum own_end how)
{
	struct ending ending;

	if (end_kind == RTS_END_BLOCKED && is_start_up(state, task)) {
		start_up_ends(state, now_ns);
		return;
	}
	if (how == ENDS_AND_LEAVES)
		*(volatile rts_u8 *)&state->telling = 1;
	if (ends_late(&ending, state, now_ns))
		tell_own_end(ctx, state, task, &ending, end_kind, how);
	if (how == ENDS_AND_LEAVES)
		*(volatile rts_u8 *)&state->telling = 0;
	else if (how == ENDS_ELSEWHERE)
		told_elsewhere(state);
}

// An activation of a target is given up although it is not over; whether that hides a miss.
static __always_inline void drop_open(const struct task_state *state, rts_u64 now_ns)
{
	rts_s64 age_ns = now_ns - activation_origin(state);

	if (state->chain.count && age_ns >= (rts_s64)config.threshold_ns)
		COUNT(dropped);
}

// A task that was a target when it was woken is none any more: nobody is told how this ends. One
// that had its priority lent gave it back.
static __always_inline void drop_unmeant(const struct task_state *state, rts_u64 now_ns)
{
	rts_s64 age_ns = now_ns - activation_origin(state);

	// Until it has a CPU is all that was asked for.
	if (config.end_kind == RTS_END_SWITCH_IN && state->phase != PHASE_WOKEN &&
	    state->phase != PHASE_STOPPED)
		return;
	if (state->was_target == WAS_TARGET && state->chain.count &&
	    age_ns >= (rts_s64)config.threshold_ns)
		COUNT(unmeant);
}

#endif
