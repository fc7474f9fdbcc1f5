// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// A switch: who leaves its CPU keeps its chain or ends it, who comes takes it along; and what kept
// somebody from the CPU until then.

#ifndef RTSCOPE_SWITCH_H
#define RTSCOPE_SWITCH_H

#include "rank.h"
#include "steal.h"
#include "stopped.h"
#include "unseen.h"

// Between a wake-up and the switch away that it crosses on its way.
#define CROSSING_NS_MAX 20000

// A deadline task that gives up the rest of its budget has done its work, until there is a new one.
static __always_inline bool has_yielded(struct task_struct *task)
{
	return config.end_kind == RTS_END_BLOCKED &&
	       BPF_CORE_READ_BITFIELD(task, dl.dl_yielded);
}

// Who has not slept for so long computes.
#define COMPUTES_NS 1000000000ull

// Whether a task only computes, as far as anybody saw: no wake-up begins what it waits for.
static __always_inline bool only_computes(const struct task_state *state)
{
	if (config.end_kind != RTS_END_SWITCH_IN ||
	    (state->phase != PHASE_NONE && state->phase != PHASE_ACTIVE))
		return false;
	return !state->sleeps || bpf_ktime_get_ns() - state->woken_ns >= COMPUTES_NS;
}

// A target that only computes is preempted: from now on it waits for a CPU.
static __always_inline void wait_begins(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	activation_begin(state);
	state->sleeps = 0;
	chain_begin(&state->chain, now_ns, 0);
	chain_append_task(&state->chain, RTS_STEP_PREEMPTED, now_ns, task);
	state->waker.tid = -1;
	state->woken_ns = now_ns;
	state->was_target = WAS_TARGET;
	state->phase = PHASE_WOKEN;
}

// A task that leaves the CPU though it can run on: preempted, it keeps its chain.
static __always_inline void preempted(void *ctx, struct task_state *state,
		struct task_struct *prev, rts_u64 now_ns)
{
	bool target = filter_target(state, prev);

	if (throttle_begin(state, prev, target, now_ns))
		return;
	if (target && has_yielded(prev)) {
		if (state->phase != PHASE_NONE)
			hit_own_end(ctx, state, prev, now_ns, RTS_END_BLOCKED, ENDS_AND_LEAVES);
		state->slept_ns = now_ns;
		state->phase = PHASE_YIELDED;
		return;
	}
	if (only_computes(state)) {
		if (target && filter_none())
			wait_begins(state, prev, now_ns);
		return;
	}
	// Woken before it had left the CPU, it never had to come back on one.
	if (state->phase != PHASE_NONE)
		state->phase = PHASE_ACTIVE;
	state->chain.preemptions++;
}

// A target has left the CPU, and its activation is over, unless another CPU has woken it meanwhile.
static __always_inline void ends_in_sleep(struct task_state *state, rts_u64 activation, bool target)
{
	if (*(volatile rts_u64 *)&state->activation != activation)
		return;
	*(volatile rts_u8 *)&state->left = target;
	state->phase = PHASE_NONE;
}

// The phase of a task that has left the CPU, unless another CPU has woken it meanwhile.
static __always_inline void leaves_in(struct task_state *state, rts_u64 activation, rts_u8 phase)
{
	if (*(volatile rts_u64 *)&state->activation == activation)
		state->phase = phase;
}

// A task that leaves the CPU: preempted, it keeps its chain; blocked, it ends it.
static __always_inline bool switch_out(void *ctx, struct task_state *state,
		struct task_struct *prev, unsigned int prev_state, rts_u64 now_ns)
{
	rts_u64 activation;
	bool target = filter_target(state, prev);
	rts_s32 stop;

	unseen_runs(state, prev, now_ns);
	activation = *(volatile rts_u64 *)&state->activation;
	if (!prev_state) {
		preempted(ctx, state, prev, now_ns);
		return true;
	}
	// Of others, what they have for a target waits as well.
	stop = target || (prev_state & (TASK_STOPPED | TASK_TRACED)) ? stop_of(prev, prev_state) :
								       STOP_NO;
	if (stop != STOP_NO) {
		stop_begin(state, prev, stop, target, now_ns);
		return true;
	}
	if (*(volatile rts_u8 *)&state->phase == PHASE_NONE)
		return false;
	state->spins = (prev_state & TASK_RTLOCK_WAIT) != 0;
	if (!state->spins) {
		// The next sleep has a timer of its own, or none.
		state->slept_ns = now_ns;
		if (!state->arms)
			state->armed_ns = 0;
		state->arms = 0;
	}
	if (state->unsure && sleeps_on(state, prev, now_ns)) {
		state->phase = PHASE_NONE;
		return true;
	}
	// Woken while it was on its way out: the wake-up is for the next activation.
	if (state->phase == PHASE_WOKEN &&
	    (!target || (rts_s64)(now_ns - state->woken_ns) < CROSSING_NS_MAX))
		return false;
	if (back_to_stopped_sleep(state)) {
		leaves_in(state, activation, PHASE_INSIDE);
		return true;
	}
	if (config.end_kind == RTS_END_BLOCKED && target) {
		struct blocked blocked;

		blocked_on(&blocked, prev, prev_state);
		if (blocked.what != BLOCKED_NO) {
			state->word = blocked.value ? blocked.lock : 0;
			state->word_value = blocked.value;
			state->word_ns = now_ns;
			state->word_owner = blocked.owner.tid > 0 ? blocked.owner.tid : 0;
			state->word_readers = blocked.what == RTS_BLOCKED_READERS;
			if (!blocked.value || blocked.owner.tid > 0)
				evidence_blocked(ctx, prev, &blocked, now_ns);
			if (blocked.what == RTS_BLOCKED_LOCK && config.evidence_floor_ns)
				evidence_owners(lock_owner(prev), now_ns);
			leaves_in(state, activation, PHASE_INSIDE);
			return true;
		}
		// Whoever woke it meanwhile has told this end.
		if (*(volatile rts_u64 *)&state->activation != activation)
			return true;
		hit_own_end(ctx, state, prev, now_ns, RTS_END_BLOCKED, ENDS_AND_LEAVES);
		state->parked_at = 0;
	} else if (config.end_kind == RTS_END_USER_RETURN && target) {
		drop_open(state, now_ns);
	}
	if (!target)
		drop_unmeant(state, now_ns);
	ends_in_sleep(state, activation, target);
	return true;
}

// Whether a task leaves the CPU for a reason that begins a chain of its own.
static __always_inline bool is_kept_away(struct task_struct *prev, unsigned int left_in)
{
	if (left_in)
		return stop_of(prev, left_in) != STOP_NO;
	return has_yielded(prev) || (EACH_IS_KEPT(prev) && prev->throttled);
}

// Whether a target was due while it was still at work, and had the CPU, or waited for it, with that
// for most of the time until now.
static __always_inline bool was_busy(const struct task_state *state, rts_u64 now_ns)
{
	rts_u64 due_ns = activation_origin(state);

	return state->slept_ns > due_ns && 2 * (state->slept_ns - due_ns) >= now_ns - due_ns;
}

// A wait beyond the time-out that is over is told by nobody who looks later.
static __always_inline void overlook(const struct task_state *state, rts_u64 now_ns)
{
	if (state->waiting_reported || state->starts == STARTS_NAMED)
		return;
	if ((rts_s64)(now_ns - activation_origin(state)) >= (rts_s64)config.waiting_ns)
		COUNT(overlooked);
}

static __always_inline void switch_in(void *ctx, struct cpu_state *cpu, struct task_state *state,
		struct task_struct *next, struct task_struct *prev, rts_u64 now_ns)
{
	state->phase = PHASE_ACTIVE;
	chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, next);
	if (!filter_target(state, next) && !state->was_target)
		return;
	state->busy = was_busy(state, now_ns);
	if (config.waiting_ns)
		overlook(state, now_ns);
	if (config.end_kind == RTS_END_SWITCH_IN)
		hit_switch_in(ctx, state, cpu, next, prev, now_ns);
	else
		task_describe(&state->culprit, prev);
}

// A task that has a chain is scheduled in.
static __always_inline bool come_on(void *ctx, struct cpu_state *cpu, struct task_state *state,
		struct task_struct *next, struct task_struct *prev, rts_u64 now_ns)
{
	if (state->stopped) {
		state->stopped = 0;
		state->stopped_until_ns = now_ns ? now_ns : bpf_ktime_get_ns();
	}
	if (state->quota_rq)
		quota_wait_ends(cpu, state, next, now_ns ? now_ns : bpf_ktime_get_ns());
	if (state->phase == PHASE_INSIDE) {
		state->phase = PHASE_ACTIVE;
		state->resumed |= !state->spins;
		return true;
	}
	if (state->phase != PHASE_WOKEN && state->phase != PHASE_YIELDED &&
	    (state->phase != PHASE_NONE || !state->left))
		return false;
	if (!now_ns)
		now_ns = bpf_ktime_get_ns();
	if (state->phase == PHASE_NONE && !unseen_begins(state, PHASE_WOKEN, now_ns))
		return false;
	if (state->phase == PHASE_YIELDED) {
		activation_begin(state);
		chain_begin(&state->chain, now_ns, 0);
		chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, next);
		state->phase = PHASE_ACTIVE;
		return true;
	}
	switch_in(ctx, cpu, state, next, prev, now_ns);
	return true;
}

// `kept`: prev stays runnable, and a chain had to wait for it. Whether evidence was written.
static __always_inline bool resched_done(void *ctx, const struct cpu_state *cpu,
		struct task_struct *prev, bool kept, rts_u64 *now_ns)
{
	struct resched_slot *slot;
	rts_u64 set_ns;
	rts_u32 flags;

	slot = LOOKUP(resched, bpf_get_smp_processor_id());
	if (!slot || !slot->set_ns)
		return false;
	set_ns = slot->set_ns;
	flags = slot->flags | (cpu->served ? RTS_PREEMPTION_SERVED : 0);
	slot->set_ns = 0;
	// The idle task always leaves at once, and one that blocks leaves by itself.
	if (!kept || !prev->pid)
		return false;
	if (!*now_ns)
		*now_ns = bpf_ktime_get_ns();
	if ((rts_s64)(*now_ns - set_ns) < (rts_s64)config.evidence_floor_ns)
		return false;
	evidence_preemption_off(ctx, prev, set_ns, flags, *now_ns);
	return true;
}

static __always_inline bool on_switch(void *ctx, bool preempt, struct task_struct *prev,
				      struct task_struct *next, unsigned int prev_state)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	unsigned int left_in = preempt ? 0 : prev_state;
	bool changed = false;
	struct task_state *state, *next_state = 0;
	rts_u64 now_ns = 0;

	if (!cpu)
		return false;
	if (cpu->untold_ns)
		bell_ring(cpu);
	if (cpu->hardirq.active) {
		// Nobody switches inside an interrupt: its exit was missed.
		cpu->hardirq.active = 0;
		COUNT(repaired);
	}
	if (next->pid && filter_may_have_chain(next)) {
		// Before anything that may find a cold cache: this is the instant of the switch.
		// Where every task is a target the storage is warm, and most switches need no
		// instant.
		if (config.target_kind != RTS_TARGET_ALL)
			now_ns = bpf_ktime_get_ns();
		next_state = task_state(next);
	}
	if (config.evidence_floor_ns && config.target_kind != RTS_TARGET_REAL_TIME && !left_in &&
	    prev->pid)
		quota_note(cpu, prev, &now_ns);
	if (config.evidence_floor_ns)
		changed = resched_done(ctx, cpu, prev, !left_in && next_state &&
					next_state->phase != PHASE_NONE, &now_ns);
	if (prev->pid && filter_may_have_chain(prev) && (state = task_state(prev)) &&
	    (state->phase != PHASE_NONE || state->left || is_kept_away(prev, left_in) ||
	     (!left_in && only_computes(state)))) {
		if (!now_ns)
			now_ns = bpf_ktime_get_ns();
		changed = switch_out(ctx, state, prev, left_in, now_ns) || changed;
	}
	if (config.evidence_floor_ns && prev->pid)
		evidence_of_rank(cpu, prev, left_in, now_ns);
	if (next_state)
		changed = come_on(ctx, cpu, next_state, next, prev, now_ns) || changed;
	cpu->came_tid = next->pid;
	cpu->came_prio = next->prio - PRIO_LTTNG_OFFSET;
	cpu->came_policy = next->policy;
	cpu->served = IS_SERVED(next);
	cpu->came_asks = next_state && may_ask(next_state);
	return changed;
}

// The idle task leaves at once: only others can keep a CPU.
static __always_inline bool on_need_resched(struct task_struct *task, rts_u32 cpu)
{
	struct resched_slot *slot;

	if (!task->pid)
		return false;
	slot = LOOKUP(resched, cpu);
	if (!slot || slot->set_ns)
		return false;
	slot->flags = 0;
	slot->set_ns = bpf_ktime_get_ns();
	return true;
}

#endif
