// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// A task is woken: its activation begins with the chain of whoever wakes it, or goes on.

#ifndef RTSCOPE_WAKE_H
#define RTSCOPE_WAKE_H

#include "home.h"
#include "interrupt.h"
#include "known.h"
#include "release.h"
#include "stopped.h"
#include "timer.h"

// Whether a task had its CPU when it was woken last, and soon left it to sleep: its activation was
// over by then, whatever it sleeps for. What had to wait for a CPU is no longer only woken.
static __always_inline bool has_left(const struct task_state *state)
{
	return state->phase == PHASE_WOKEN && state->slept_ns > state->woken_ns;
}

// A task is woken while its activation is open: it was about to block, or it was on a CPU when it
// was woken before. Whether that activation is over.
static __always_inline bool open_ends(void *ctx, struct task_state *state,
		struct task_struct *wakee, bool runs)
{
	struct blocked blocked;
	rts_u64 now_ns;

	if (config.end_kind == RTS_END_SWITCH_IN) {
		if (state->phase == PHASE_WOKEN)
			drop_open(state, state->woken_ns);
		return true;
	}
	now_ns = bpf_ktime_get_ns();
	if (config.end_kind == RTS_END_USER_RETURN) {
		drop_open(state, now_ns);
		return true;
	}
	blocked_on(&blocked, wakee, wakee->__state);
	if (blocked.what == RTS_BLOCKED_LOCK && !runs && wakee->on_cpu && config.evidence_floor_ns)
		evidence_spun(wakee, &blocked, now_ns);
	if (blocked.what != BLOCKED_NO)
		return false;
	// The memory of another process cannot be read from here.
	if (!runs && waits_as_for_mutex(wakee, (struct pt_regs *)bpf_task_pt_regs(wakee)))
		return false;
	if (has_left(state))
		now_ns = state->slept_ns;
	hit_own_end(ctx, state, wakee, now_ns, RTS_END_BLOCKED,
			runs ? ENDS_AND_RUNS : ENDS_ELSEWHERE);
	return true;
}

// The chain of this context, for a target from its release on where its own timer proves one.
static __always_inline bool chain_for(struct task_state *state, struct cpu_state *cpu,
		struct task_struct *wakee, bool target, rts_u64 *now_ns)
{
	struct hrtimer_frame *timer = target ? timer_in_progress(cpu) : 0;
	struct release release = {};
	rts_u64 expiry_ns = 0;
	bool began;

	if (timer) {
		state->timer = (rts_u32)timer->id;
		expiry_ns = timer->expiry_ns;
		release_of(&release, timer, state);
		if (release.release_ns)
			timer->expiry_ns = release.release_ns;
	}
	began = filter_context(cpu) && chain_of_context(&state->chain, cpu, now_ns);
	if (timer)
		timer->expiry_ns = expiry_ns;
	if (!began && target && filter_none()) {
		// What its waker works for is not known: it counts from here.
		COUNT(unplaced);
		began = chain_from_here(&state->chain, now_ns, RTS_CHAIN_STALE);
	}
	if (began && release.release_ns && config.evidence_floor_ns &&
	    *now_ns - release.release_ns >= config.evidence_floor_ns)
		evidence_released(&release, wakee, *now_ns);
	return began;
}

// A target that has the CPU as it is woken need not come on one.
static __always_inline void came_on_already(void *ctx, struct task_state *state,
		struct task_struct *wakee, rts_u64 now_ns)
{
	chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, wakee);
	state->phase = PHASE_ACTIVE;
	state->culprit.tid = -1;
	if (config.end_kind == RTS_END_SWITCH_IN)
		hit_own_end(ctx, state, wakee, now_ns, RTS_END_SWITCH_IN, ENDS_AND_RUNS);
}

// So many sleeps in a row for the same word are none for a lock: what else would it
// have done, that waits for nothing else?
#define PARKED_AGAIN_MAX 8

// Whether a target sleeps at its word for its next work, as workers of oneTBB do, and whoever uses
// folly's Baton. Whom a timer of its own releases waits for that; and a word is a lock's where the
// tid beside it is that of who lets go.
static __always_inline bool is_parked(struct task_state *state)
{
	rts_u64 unparked_ns = state->unparked_ns;

	state->unparked_ns = bpf_ktime_get_ns();
	if (state->releases || state->parked_at != state->word ||
	    state->word_owner == (rts_u32)bpf_get_current_task_btf()->pid) {
		state->parked_at = state->word;
		state->parked_again = 0;
		state->parked_long = 0;
		return false;
	}
	if (state->parked_again >= PARKED_AGAIN_MAX)
		return true;
	state->parked_long |= state->word_ns - unparked_ns >= config.threshold_ns;
	if (++state->parked_again < PARKED_AGAIN_MAX)
		return false;
	// The works before were taken for one.
	if (state->parked_long)
		COUNT(dropped);
	state->waits_ns = unparked_ns;
	return true;
}

// Whether what a target that is woken now slept for was part of its activation; else that was over
// as it went to sleep.
static __always_inline bool was_inside(void *ctx, const struct cpu_state *cpu,
		struct task_state *state, struct task_struct *wakee)
{
	bool own, inside;

	if (!state->word)
		return true;
	own = !cpu->hardirq.active && bpf_get_current_task_btf()->tgid == wakee->tgid;
	// What another process has there cannot be read from here.
	inside = own ? is_locks_word(state) && !is_parked(state) : state->word_owner != 0;
	if (inside && !state->word_owner && config.evidence_floor_ns)
		evidence_ownerless(state, wakee);
	state->word = 0;
	if (inside)
		return true;
	hit_own_end(ctx, state, wakee, state->word_ns, RTS_END_BLOCKED, ENDS_ELSEWHERE);
	state->phase = PHASE_NONE;
	return false;
}

// A stack costs thirty times the rest of a wake-up, and most wake-ups are followed by no hit: each
// is paid for over so long, and so many may be owed.
#define STACK_PAID_NS 2000000
#define STACKS_OWED_MAX 16

// Whom others wake more often, as a busy server, would have a stack at few of its wake-ups,
// whatever is paid. A timer interrupts what kept it from its CPU, and that is told at any rate.
#define STACK_APART_NS 500000

// Whether to take the stack of who wakes a target that was last woken at `last_ns`. An interrupt
// that found the CPU idle has nothing to tell.
static __always_inline bool stack_pays(struct cpu_state *cpu, rts_u64 last_ns, rts_u64 now_ns)
{
	rts_u64 paid_ns = cpu->stacks_paid_ns > now_ns ? cpu->stacks_paid_ns : now_ns;

	if (!bpf_get_current_task_btf()->pid ||
	    paid_ns - now_ns > (STACKS_OWED_MAX - 1) * STACK_PAID_NS)
		return false;
	if (now_ns - last_ns < STACK_APART_NS && !timer_in_progress(cpu))
		return false;
	cpu->stacks_paid_ns = paid_ns + STACK_PAID_NS;
	return true;
}

// How a task was found as it was woken.
struct wakeup {
	// Whether it is watched itself, and not only on the way to one that is.
	bool target;
	// Whether it has this CPU, and was about to sleep.
	bool runs;
	// Whether it slept, and since when.
	bool slept;
	rts_u64 slept_ns;
};

// Between the decision to sleep and the switch lies no more.
#define DECISION_NS_MAX 100000

// Since when a target that is woken waits for its waker, which may have begun before anybody slept
// for it. What a timer wakes is late since the expiry, whenever it slept.
static __always_inline rts_u64 waits_since(struct cpu_state *cpu, const struct task_state *state,
		const struct wakeup *wakeup, rts_u64 now_ns)
{
	if (!wakeup->target || timer_in_progress(cpu))
		return 0;
	if (wakeup->slept)
		return wakeup->slept_ns;
	return now_ns - state->chain.origin_ns > DECISION_NS_MAX ? now_ns : 0;
}

// What the sleep that ends now was in the cycles of a target.
static __always_inline void came_from_sleep(struct task_state *state, struct cpu_state *cpu,
		struct task_struct *wakee, const struct wakeup *wakeup, rts_u64 now_ns)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(wakee);
	rts_u64 done_ns = wakeup->slept ? wakeup->slept_ns : now_ns;
	// One that is still on a run queue was about to sleep, and goes on.
	bool slept = wakeup->slept || !wakee->on_rq;

	if (!regs)
		return;
	if (slept || state->overdue_ns)
		cycle_wake(state, cpu, wakee, regs, done_ns);
	if (slept)
		home_wake(state, cpu, wakee, regs, now_ns, done_ns);
}

// An activation begins.
static __always_inline bool activate(void *ctx, struct cpu_state *cpu, struct task_state *state,
		struct task_struct *wakee, const struct wakeup *wakeup)
{
	rts_u64 now_ns, last_ns = state->woken_ns;

	// A task that is no target and hands nothing on needs no chain.
	if (!wakeup->target && !filter_hands_on(state, wakee))
		return false;
	activation_begin(state);
	state->program_ns = 0;
	if (!chain_for(state, cpu, wakee, wakeup->target, &now_ns)) {
		state->cycle_ns = 0;
		return false;
	}
	state->waits_ns = waits_since(cpu, state, wakeup, now_ns);
	// A sleep that it is on its way to has the timer that was armed for it, or none.
	if (!wakeup->slept && !state->arms)
		state->armed_ns = 0;
	if (wakeup->target && config.end_kind == RTS_END_BLOCKED && !(wakee->flags & PF_KTHREAD) &&
	    !filter_kin(&state->meant, wakee))
		came_from_sleep(state, cpu, wakee, wakeup, now_ns);
	chain_append_task(&state->chain, RTS_STEP_WAKING, now_ns, wakee);
	state->woken_ns = now_ns;
	*(volatile rts_u8 *)&state->phase = PHASE_WOKEN;
	state->was_target = WAS_NO_TARGET;
	if (wakeup->target)
		state->was_target = wakee->prio < wakee->normal_prio ? WAS_LENT_TARGET : WAS_TARGET;
	state->resumed = 0;
	state->unsure = 0;
	if (!wakeup->target)
		return true;
	state->met = 1;
	quota_wait_begins(state, wakee, now_ns);
	waker_note(state, cpu);
	state->has_waker_stack = 0;
	if (config.waker_stacks && stack_pays(cpu, last_ns, now_ns)) {
		struct rts_stack *stack = bpf_task_storage_get(&waker_stacks, wakee, 0, 0);

		if (stack) {
			stack_here(stack, ctx);
			state->has_waker_stack = 1;
		}
	}
	if (wakeup->runs)
		came_on_already(ctx, state, wakee, now_ns);
	return true;
}

// Who works with those who are asked for: the current task wakes `wakee`.
static __always_inline void near_note(struct cpu_state *cpu, struct task_struct *wakee,
		struct task_state *of_wakee)
{
	struct task_struct *current = bpf_get_current_task_btf();
	bool same = current->tgid == wakee->tgid;
	const struct softirq_frame *softirq;
	struct task_state *state;

	// Fair tasks of other processes wake each other for many reasons.
	if (same ? config.beside != RTS_BESIDE_ALL
		 : current->prio >= PRIO_FAIR_MIN || wakee->prio >= PRIO_FAIR_MIN)
		return;
	if (cpu->hardirq.active || (of_wakee->meant.near && config.beside != RTS_BESIDE_ALL))
		return;
	softirq = softirq_frame(cpu);
	state = task_state(current);
	if (!state || !softirq || softirq->vector_plus_1)
		return;
	if (filter_named(&state->meant, current))
		of_wakee->meant.near = 1;
	else if (config.beside == RTS_BESIDE_ALL && filter_named(&of_wakee->meant, wakee))
		state->meant.near = 1;
}

// Every sched_waking is a new activation: the kernel fires it only for a task that is not runnable,
// so that the first origin stays while the wakee waits.
static __always_inline bool wake(void *ctx, struct cpu_state *cpu, struct task_struct *wakee)
{
	struct task_state *state = task_state(wakee);
	struct wakeup wakeup = {};

	if (!state && !(state = task_known_late(wakee)))
		return false;
	// Most tasks are no targets, and what is only read of them stays in the caches of all CPUs.
	if (!state->sleeps)
		state->sleeps = 1;
	asked_ends(state);
	if (cpu->came_asks)
		asked_pass(cpu, wakee, state);
	// What it blocked on inside its activation is over: the activation goes on.
	if (state->phase == PHASE_INSIDE && was_inside(ctx, cpu, state, wakee))
		return false;
	if (config.beside)
		near_note(cpu, wakee, state);
	wakeup.target = filter_target(state, wakee);
	if (wakeup.target || state->was_target)
		state->left = 0;
	if (wakeup.target && is_frozen_asleep(state, wakee))
		frozen_ends(state, wakee);
	if (state->phase == PHASE_STOPPED) {
		stop_end(state, cpu, wakee);
		return true;
	}
	if (state->arms && back_to_stopped_sleep(state))
		return false;
	wakeup.runs = bpf_get_current_task_btf()->pid == wakee->pid;
	wakeup.slept = state->phase == PHASE_NONE || has_left(state);
	wakeup.slept_ns = state->slept_ns;
	if (!wakeup.target && state->phase != PHASE_NONE)
		drop_unmeant(state, bpf_ktime_get_ns());
	if (wakeup.target && state->phase != PHASE_NONE && !open_ends(ctx, state, wakee, wakeup.runs))
		return false;
	if (state->phase != PHASE_NONE)
		*(volatile rts_u8 *)&state->phase = PHASE_NONE;
	return activate(ctx, cpu, state, wakee, &wakeup);
}

// A new task is woken for the first time: nothing of it can be open, and nobody waited for it
// before it was born.
static __always_inline bool wake_new(void *ctx, struct cpu_state *cpu, struct task_struct *wakee)
{
	struct task_state *state = task_state(wakee);
	struct wakeup wakeup = { .slept = true };

	if (!state && !(state = task_known_late(wakee)))
		return false;
	wakeup.target = filter_target(state, wakee);
	wakeup.slept_ns = wakee->start_time;
	if (!activate(ctx, cpu, state, wakee, &wakeup))
		return false;
	state->born_prio = wakee->normal_prio;
	state->starts = STARTS_BORN;
	return true;
}

static __always_inline bool on_waking(void *ctx, struct task_struct *wakee, bool is_new)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	bool changed;

	if (!cpu)
		return false;
	if (is_handlers_wakeup(&cpu->hardirq, wakee))
		cpu->hardirq.active = 2;
	changed = is_new ? wake_new(ctx, cpu, wakee) : wake(ctx, cpu, wakee);
	if (cpu->hardirq.active == 2)
		cpu->hardirq.active = 0;
	return changed;
}

#endif
