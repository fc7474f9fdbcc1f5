// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Building chains: append a step, copy the used steps, and the chain that the present context would
// hand to somebody it wakes.

#ifndef RTSCOPE_CHAIN_H
#define RTSCOPE_CHAIN_H

#include "filter.h"
#include "state.h"

// An interrupt that follows an NMI by less than this was asked for by it, if it is irq work.
#define NMI_GAP_NS_MAX 10000

static __always_inline void chain_begin(struct chain *chain, rts_u64 origin_ns, rts_u32 flags)
{
	chain->origin_ns = origin_ns;
	chain->count = 0;
	chain->preemptions = 0;
	chain->flags = flags;
}

static __always_inline struct rts_step *chain_append(struct chain *chain, rts_u8 kind,
		rts_u64 time_ns, rts_s32 id)
{
	rts_u32 place = chain->count;
	struct rts_step *step;

	// Where the compiler knows the count it leaves out the mask, without which verifiers of older
	// kernels know no bound.
	barrier_var(place);
	step = &chain->steps[place & STEP_MASK];
	chain->count++;
	step->time_ns = time_ns;
	step->cpu = bpf_get_smp_processor_id();
	step->id = id;
	step->prio = -PRIO_LTTNG_OFFSET;
	step->kind = kind;
	((rts_u64 *)step->comm)[0] = 0;
	((rts_u64 *)step->comm)[1] = 0;
	return step;
}

static __always_inline void chain_append_task(struct chain *chain, rts_u8 kind, rts_u64 time_ns,
					      struct task_struct *task)
{
	struct rts_step *step = chain_append(chain, kind, time_ns, task->pid);

	step->prio = task->prio - PRIO_LTTNG_OFFSET;
	__builtin_memcpy(step->comm, task->comm, RTS_COMM_LENGTH);
}

static __always_inline void chain_copy(struct chain *to, const struct chain *from)
{
	rts_u32 used = from->count;

	to->origin_ns = from->origin_ns;
	to->count = used;
	to->preemptions = from->preemptions;
	to->flags = from->flags;
	for (rts_u32 i = 0; i < RTS_STEPS_MAX; i++) {
		if (i >= used)
			break;
		to->steps[i] = from->steps[i];
	}
}

// A timer that fired before its expiry, or was armed after it, does not say when its chain began.
static __always_inline bool hrtimer_began(const struct hrtimer_frame *timer)
{
	return timer->active && timer->expiry_ns && timer->expiry_ns <= timer->entry_ns;
}

static __always_inline void chain_from_hardirq(struct chain *to, const struct hardirq_frame *frame)
{
	const struct hrtimer_frame *timer = &frame->hrtimer;
	bool began = hrtimer_began(timer);
	rts_u64 origin_ns = began ? timer->expiry_ns : frame->nmi_ns ? frame->nmi_ns : frame->entry_ns;

	chain_begin(to, origin_ns, frame->repaired ? RTS_CHAIN_REPAIRED : 0);
	if (began)
		chain_append(to, RTS_STEP_TIMER_EXPIRY, timer->expiry_ns, timer->id);
	else if (frame->nmi_ns)
		chain_append(to, RTS_STEP_NMI, frame->nmi_ns, 0);
	// A timer that expired while the interrupt was already at work began after its entry.
	if (frame->entry_ns >= origin_ns)
		chain_append(to, RTS_STEP_HARDIRQ, frame->entry_ns, frame->irq);
	if (timer->active)
		chain_append(to, RTS_STEP_HRTIMER, timer->entry_ns, timer->id);
}

// A timer in softirq context: expiry, then what came after it of the softirq's own chain.
static __always_inline void chain_from_soft_timer(struct chain *to, const struct chain *softirq,
						  const struct hrtimer_frame *timer)
{
	rts_u32 begin = softirq->count > RTS_STEPS_MAX ? softirq->count - RTS_STEPS_MAX : 0;

	chain_begin(to, timer->expiry_ns, softirq->flags);
	chain_append(to, RTS_STEP_TIMER_EXPIRY, timer->expiry_ns, timer->id);
	for (rts_u32 i = 0; i < RTS_STEPS_MAX; i++) {
		const struct rts_step *step = &softirq->steps[(begin + i) & STEP_MASK];

		if (begin + i >= softirq->count)
			break;
		if (step->time_ns >= timer->expiry_ns)
			to->steps[to->count++ & STEP_MASK] = *step;
	}
}

static __always_inline bool chain_from_softirq(struct chain *to, const struct softirq_frame *frame)
{
	struct softirq_slot *slot = LOOKUP(softirqs, frame->vector_plus_1 - 1);
	const struct chain *from;

	if (!slot)
		return false;
	if (slot->generation != frame->generation) {
		// Another task ran this vector on this CPU meanwhile: the chain is not ours any more.
		COUNT(repaired);
		return false;
	}
	from = &slot->chains[slot->running & 1];
	if (!from->count)
		return false;
	if (hrtimer_began(&frame->hrtimer))
		chain_from_soft_timer(to, from, &frame->hrtimer);
	else
		chain_copy(to, from);
	if (frame->hrtimer.active)
		chain_append(to, RTS_STEP_HRTIMER, frame->hrtimer.entry_ns, frame->hrtimer.id);
	return true;
}

// A chain that begins with the wake-up itself, where the filters allow one.
static __always_inline bool chain_from_here(struct chain *to, rts_u64 *now_ns, rts_u32 flags)
{
	if (!filter_task_context())
		return false;
	*now_ns = bpf_ktime_get_ns();
	chain_begin(to, *now_ns, flags);
	return true;
}

// The chain that this context hands on, into `to`; false when the filters let none begin here. The
// clock is read only for a chain.
static __always_inline bool chain_of_context(struct chain *to, struct cpu_state *cpu,
		rts_u64 *now_ns)
{
	struct task_struct *current;
	struct task_state *state = 0;
	const struct softirq_frame *softirq;

	if (cpu->hardirq.active) {
		if (!cpu->hardirq.passed)
			return false;
		*now_ns = bpf_ktime_get_ns();
		chain_from_hardirq(to, &cpu->hardirq);
		return true;
	}
	softirq = softirq_frame(cpu);
	if (softirq && softirq->vector_plus_1) {
		*now_ns = bpf_ktime_get_ns();
		return chain_from_softirq(to, softirq);
	}
	current = bpf_get_current_task_btf();
	// Its state is far away, and most who wake others are none of these.
	if (current->pid && filter_may_hand_on(current))
		state = task_state(current);
	// What a task that ends wakes waited for its end: that is no step of its work.
	if (!state || state->phase == PHASE_NONE || !state->chain.count ||
	    (current->flags & PF_EXITING) || !filter_hands_on(state, current))
		return chain_from_here(to, now_ns, 0);
	*now_ns = bpf_ktime_get_ns();
	if (state->chain.count > CHAIN_STEPS_MAX ||
	    *now_ns - state->chain.origin_ns > CHAIN_AGE_NS_MAX) {
		COUNT(stale);
		return chain_from_here(to, now_ns, RTS_CHAIN_STALE);
	}
	chain_copy(to, &state->chain);
	return true;
}

#endif
