// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The end of a chain: count the sample, and send a hit when it is over the threshold. The threshold
// is tested before anything is reserved.

#ifndef RTSCOPE_HIT_H
#define RTSCOPE_HIT_H

#include "chain.h"
#include "histogram.h"
#include "late.h"

static __always_inline void task_describe(struct rts_task *to, struct task_struct *task)
{
	to->tid = task->pid;
	to->prio = task->prio - PRIO_LTTNG_OFFSET;
	__builtin_memcpy(to->comm, task->comm, RTS_COMM_LENGTH);
}

static __always_inline void stack_here(struct rts_stack *to, void *ctx)
{
	long bytes = bpf_get_stack(ctx, to->frames, sizeof(to->frames), 0);

	to->length = bytes > 0 ? bytes / sizeof(rts_u64) : 0;
	to->padding = 0;
}

static __always_inline void stack_of(struct rts_stack *to, struct task_struct *task)
{
	long bytes = bpf_get_task_stack(task, to->frames, sizeof(to->frames), 0);

	to->length = bytes > 0 ? bytes / sizeof(rts_u64) : 0;
	to->padding = 0;
}

static __always_inline void sample_count(rts_u64 latency_ns)
{
	struct rts_counters *counters = count();
	rts_u32 bucket = histogram_bucket(latency_ns);

	if (!counters || bucket >= RTS_BUCKETS_MAX)
		return;
	counters->samples++;
	counters->buckets[bucket]++;
	if (latency_ns > counters->worst_ns)
		counters->worst_ns = latency_ns;
}

// Whether this hit may go out: longer than the floor, a new worst if asked for, else no more than
// one per interval, not too many. Two CPUs that race for the same place: one wins, the other is
// counted as suppressed; without an interval there is no such race.
static __always_inline bool hit_allowed(struct totals *totals, rts_u64 latency_ns, rts_u64 now_ns)
{
	rts_u64 worst_ns = totals->worst_hit_ns;
	rts_u64 next_ns = totals->next_hit_ns;
	rts_u64 *floor_ns = LOOKUP(watch_floor, 0);
	// No rate holds back the worst of all.
	bool worst = latency_ns > worst_ns;

	if (floor_ns && latency_ns <= *floor_ns)
		return false;
	if (config.hits_max && totals->hits >= config.hits_max)
		return false;
	if (config.new_worst_only && !worst)
		return false;
	if (now_ns < next_ns && !worst)
		return false;
	if (config.rate_limit_ns && __sync_val_compare_and_swap(&totals->next_hit_ns, next_ns,
					now_ns + config.rate_limit_ns) != next_ns && !worst)
		return false;
	if (worst)
		totals->worst_hit_ns = latency_ns;
	return true;
}

static __always_inline void hit_fill_steps(struct rts_hit *hit, const struct chain *chain)
{
	rts_u32 count = chain->count;
	rts_u32 begin = count > RTS_STEPS_MAX ? count - RTS_STEPS_MAX : 0;

	hit->steps_length = count - begin;
	hit->overflow = begin;
	for (rts_u32 i = 0; i < RTS_STEPS_MAX; i++) {
		if (begin + i >= count)
			break;
		hit->steps[i] = chain->steps[(begin + i) & STEP_MASK];
	}
}

// Of one that comes on its CPU now, `current` leaves it.
static __always_inline void hit_held_back(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns, rts_u32 end_kind)
{
	struct rts_task target, culprit;

	if (!config.notes_late || end_kind == RTS_END_WAITING)
		return;
	task_describe(&target, task);
	if (end_kind == RTS_END_SWITCH_IN)
		task_describe(&culprit, bpf_get_current_task_btf());
	else
		culprit = state->culprit;
	late_note(&state->chain, &target, &culprit, now_ns, end_kind);
}

static __always_inline struct rts_hit *hit_reserve(struct task_state *state,
		struct task_struct *task, rts_u64 now_ns, rts_u32 end_kind)
{
	struct chain *chain = &state->chain;
	struct totals *totals = LOOKUP(watch_totals, 0);
	struct rts_hit *hit;

	if (!totals)
		return 0;
	if (!hit_allowed(totals, now_ns - chain->origin_ns, now_ns)) {
		COUNT(suppressed);
		hit_held_back(state, task, now_ns, end_kind);
		return 0;
	}
	hit = bpf_ringbuf_reserve(&hits, sizeof(*hit), 0);
	if (!hit) {
		COUNT(lost);
		return 0;
	}
	hit->id = __sync_fetch_and_add(&totals->hits, 1) + 1;
	hit->origin_ns = chain->origin_ns;
	hit->end_ns = now_ns;
	task_describe(&hit->target, task);
	hit->end_kind = end_kind;
	hit->preemptions = chain->preemptions;
	hit->flags = chain->flags;
	hit->padding = 0;
	hit_fill_steps(hit, chain);
	hit->culprit.tid = -1;
	hit->waker_stack.length = 0;
	hit->wakee_stack.length = 0;
	hit->culprit_stack.length = 0;
	if (config.waker_stacks) {
		struct rts_stack *waker = bpf_task_storage_get(&waker_stacks, task, 0, 0);

		if (waker)
			hit->waker_stack = *waker;
	}
	return hit;
}

// Counts the end of a target's chain; whether it is over the threshold.
static __always_inline bool sample_over_threshold(const struct chain *chain, rts_u64 now_ns)
{
	rts_u64 latency_ns = now_ns - chain->origin_ns;

	// Not a latency: the clocks of two CPUs differ by more than the chain is long.
	if ((rts_s64)latency_ns < 0)
		return false;
	sample_count(latency_ns);
	return latency_ns >= config.threshold_ns;
}

// `task` comes on this CPU and `culprit`, still current, leaves it.
static __always_inline void hit_switch_in(void *ctx, struct task_state *state,
		struct task_struct *task, struct task_struct *culprit, rts_u64 now_ns)
{
	struct rts_hit *hit;

	if (!sample_over_threshold(&state->chain, now_ns))
		return;
	hit = hit_reserve(state, task, now_ns, RTS_END_SWITCH_IN);
	if (!hit)
		return;
	task_describe(&hit->culprit, culprit);
	stack_of(&hit->wakee_stack, task);
	stack_here(&hit->culprit_stack, ctx);
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
}

// The current task ends its own chain: it returns to user space, or it blocks.
static __always_inline void hit_own_end(void *ctx, struct task_state *state,
		struct task_struct *task, rts_u64 now_ns, rts_u32 end_kind)
{
	struct rts_hit *hit;

	if (!sample_over_threshold(&state->chain, now_ns))
		return;
	hit = hit_reserve(state, task, now_ns, end_kind);
	if (!hit)
		return;
	hit->culprit = state->culprit;
	stack_here(&hit->wakee_stack, ctx);
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
}

#endif
