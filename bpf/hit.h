// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The end of a chain: count the sample, and send a hit when it is over the threshold. The threshold
// is tested before anything is reserved.

#ifndef RTSCOPE_HIT_H
#define RTSCOPE_HIT_H

#include "action.h"
#include "chain.h"
#include "histogram.h"
#include "late.h"

static __always_inline void task_describe(struct rts_task *to, struct task_struct *task)
{
	to->tid = task->pid;
	to->prio = task->prio - PRIO_LTTNG_OFFSET;
	__builtin_memcpy(to->comm, task->comm, RTS_COMM_LENGTH);
}

// The same for a task that is only an address to us.
static __always_inline void task_read(struct rts_task *to, struct task_struct *task)
{
	to->tid = BPF_CORE_READ(task, pid);
	to->prio = BPF_CORE_READ(task, prio) - PRIO_LTTNG_OFFSET;
	BPF_CORE_READ_INTO(&to->comm, task, comm);
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

	// The bound is for the register that is used: older verifiers know no other's.
	barrier_var(bucket);
	if (!counters || bucket >= RTS_BUCKETS_MAX)
		return;
	counters->samples++;
	counters->buckets[bucket]++;
	if (latency_ns > counters->worst_ns)
		counters->worst_ns = latency_ns;
}

// CPUs that have a new worst at once take turns; behind so many, rather one too many than the worst
// of all unsaid.
#define WORST_TURNS_MAX 8

static __always_inline bool is_new_worst(rts_u64 *worst, rts_u64 latency_ns)
{
	rts_u64 worst_ns = *worst;

	for (int turn = 0; turn < WORST_TURNS_MAX; turn++) {
		rts_u64 seen_ns;

		if (latency_ns <= worst_ns)
			return false;
		seen_ns = __sync_val_compare_and_swap(worst, worst_ns, latency_ns);
		if (seen_ns == worst_ns)
			return true;
		worst_ns = seen_ns;
	}
	return true;
}

// Whether it is the worst of this task's window: user space asks for it by and by, or never.
static __always_inline bool is_worst_of_window(struct task_state *state, rts_u64 latency_ns,
		rts_u64 now_ns)
{
	if (now_ns - state->window_ns > config.window_ns) {
		state->window_ns = now_ns;
		state->window_worst_ns = 0;
	}
	if (latency_ns <= state->window_worst_ns)
		return false;
	state->window_worst_ns = latency_ns;
	return true;
}

// Whether the rate lets this one out: no more than one per interval, and the worst of all, which
// begins an interval as any other. Whose the last one was lets an interval pass for others that
// were held back: a thread that is late all the time takes not every place. Two CPUs that race for
// the same place: one wins, the other is counted as suppressed.
static __always_inline bool rate_allows(struct rate *rate, int tid, bool is_worst, rts_u64 now_ns)
{
	rts_u64 next_ns = rate->next_ns, then_ns = now_ns + config.rate_limit_ns;
	bool lets_others = rate->waits && rate->tid == tid;

	if (!config.rate_limit_ns)
		return true;
	if (!is_worst && now_ns < next_ns + (lets_others ? config.rate_limit_ns : 0)) {
		if (rate->tid != tid)
			rate->waits = true;
		return false;
	}
	if (__sync_val_compare_and_swap(&rate->next_ns, next_ns, then_ns) != next_ns && !is_worst)
		return false;
	rate->tid = tid;
	rate->waits = false;
	return true;
}

// Whether this hit may go out: longer than the floor; a new worst if asked for, which no rate
// holds back because the last of them is what is said of the whole; else no more than one per
// interval of real-time tasks and one of others, not too many.
static __always_inline bool hit_allowed(struct totals *totals, struct task_state *state,
		const struct task_struct *task, rts_u64 latency_ns, rts_u64 now_ns)
{
	rts_u64 *floor_ns = LOOKUP(watch_floor, 0);
	bool is_worst, worst_real_time;

	if (config.window_ns)
		return is_worst_of_window(state, latency_ns, now_ns);
	if (floor_ns && latency_ns <= *floor_ns)
		return false;
	if (config.hits_max && totals->hits >= config.hits_max)
		return false;
	is_worst = is_new_worst(&totals->worst_hit_ns, latency_ns);
	if (config.new_worst_only)
		return is_worst;
	// Without what others lend it: an ordinary owner of a lock is no real-time task.
	if (task->normal_prio >= PRIO_FAIR_MIN)
		return rate_allows(&totals->of_others, task->pid, is_worst, now_ns);
	worst_real_time = is_new_worst(&totals->worst_real_time_ns, latency_ns);
	return rate_allows(&totals->of_real_time, task->pid, is_worst || worst_real_time, now_ns);
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

static __always_inline bool is_over(const struct task_state *state, const struct ending *ending)
{
	return *(volatile rts_u64 *)&state->activation != ending->activation;
}

// Of one that is scheduled in now, `current` leaves it.
static __always_inline void hit_held_back(struct task_state *state, struct task_struct *task,
		const struct ending *ending, rts_u32 end_kind)
{
	struct rts_task target, culprit;

	if (!config.notes_late || end_kind == RTS_END_WAITING)
		return;
	task_describe(&target, task);
	if (end_kind == RTS_END_SWITCH_IN)
		task_describe(&culprit, bpf_get_current_task_btf());
	else
		culprit = state->culprit;
	if (state->busy)
		culprit = target;
	late_note(&state->chain, ending, &target, &culprit, end_kind);
}

static __always_inline struct rts_hit *hit_reserve(struct task_state *state,
		struct task_struct *task, const struct ending *ending, rts_u32 end_kind)
{
	rts_u64 now_ns = ending->now_ns, latency_ns = now_ns - ending->origin_ns;
	struct chain *chain = &state->chain;
	struct totals *totals = LOOKUP(watch_totals, 0);
	struct rts_hit *hit;

	if (!totals)
		return 0;
	// What was reported while it waited has its end told too, whatever the limits, and may be the
	// worst since the start with that.
	if (state->waiting_reported) {
		is_new_worst(&totals->worst_hit_ns, latency_ns);
	} else if (!hit_allowed(totals, state, task, latency_ns, now_ns)) {
		if (config.window_ns)
			return 0;
		COUNT(suppressed);
		hit_held_back(state, task, ending, end_kind);
		return 0;
	}
	hit = bpf_ringbuf_reserve(&hits, sizeof(*hit), 0);
	if (!hit) {
		COUNT(lost);
		return 0;
	}
	if (!state->waiting_reported)
		state->reported_id = __sync_fetch_and_add(&totals->hits, 1) + 1;
	state->waiting_reported = end_kind == RTS_END_WAITING;
	hit->id = state->reported_id;
	// From where it counts, whoever explains it finds by itself.
	hit->origin_ns = ending->chain_ns;
	hit->end_ns = now_ns;
	task_describe(&hit->target, task);
	hit->end_kind = end_kind;
	hit->preemptions = chain->preemptions;
	hit->flags = chain->flags | filter_kin(&state->meant, task);
	hit->cost_ns = 0;
	hit_fill_steps(hit, chain);
	// Its task was woken while we copied: the steps are of two activations.
	if (is_over(state, ending))
		hit->steps_length = 0;
	hit->culprit.tid = -1;
	hit->waker_stack.length = 0;
	hit->wakee_stack.length = 0;
	hit->culprit_stack.length = 0;
	if (config.waker_stacks && state->has_waker_stack) {
		struct rts_stack *waker = bpf_task_storage_get(&waker_stacks, task, 0, 0);

		if (waker)
			hit->waker_stack = *waker;
	}
	return hit;
}

// Whoever leaves a CPU rings for the hits that nobody was told of there. Where a hit's task runs on
// for long, a timer's interrupt does.
#define UNTOLD_NS_MAX 5000000

static __always_inline void bell_ring(struct cpu_state *cpu)
{
	void *note = bpf_ringbuf_reserve(&bell, sizeof(rts_u64), 0);

	cpu->untold_ns = 0;
	// No room: the reader was woken before, and takes all hits when it comes.
	if (note)
		bpf_ringbuf_discard(note, BPF_RB_FORCE_WAKEUP);
}

// The user's own function, in a frame of its own: what is on the stack below is not for its sake.
static __noinline int hit_acts(const struct rts_hit *from)
{
	struct action_place place;
	struct rts_action_hit *hit = action_begins(&place);

	if (!hit) {
		COUNT(lost);
		return 0;
	}
	hit->number = from->id;
	hit->begin_ns = from->origin_ns;
	hit->end_ns = from->end_ns;
	action_task(&hit->task, &from->target);
	action_task(&hit->other, &from->culprit);
	hit->cpu = bpf_get_smp_processor_id();
	hit->flags = from->end_kind == RTS_END_WAITING ? RTS_ACTION_OPEN : 0;
	action_runs(hit, &place);
	return 0;
}

// Sends a hit that ended at `now_ns`. To wake its reader takes an interrupt of this CPU and one of
// the reader's, longer than all the rest: where the hit's task goes on, whoever leaves the CPU next
// does it.
static __always_inline void hit_send(struct rts_hit *hit, rts_u64 now_ns, bool goes_on)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);

	if (config.acts)
		hit_acts(hit);
	hit->cost_ns = bpf_ktime_get_ns() - now_ns;
	if (config.window_ns) {
		// Nobody waits for it: who asks for the worst looks by itself.
		bpf_ringbuf_submit(hit, BPF_RB_NO_WAKEUP);
	} else if (goes_on && cpu) {
		cpu->untold_ns = now_ns;
		bpf_ringbuf_submit(hit, BPF_RB_NO_WAKEUP);
	} else {
		bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
	}
}

// False where the next activation begins just now: whoever begins that has told the end of this.
// The phase is read between, as it is written by that one: none, number, chain, phase.
static __always_inline bool ending_of(struct ending *ending, const struct task_state *state,
		rts_u64 now_ns)
{
	ending->activation = *(volatile rts_u64 *)&state->activation;
	if (*(volatile rts_u8 *)&state->phase == PHASE_NONE)
		return false;
	ending->origin_ns = activation_origin(state);
	ending->chain_ns = *(volatile rts_u64 *)&state->chain.origin_ns;
	ending->now_ns = now_ns;
	return !is_over(state, ending);
}

// Counts the end of a target's chain; whether it is over the threshold, and ours to tell: a task
// that blocks and is woken as it does ends its activation on two CPUs at once.
static __always_inline bool ends_late(struct ending *ending, struct task_state *state,
		rts_u64 now_ns)
{
	rts_u64 told = *(volatile rts_u64 *)&state->told, latency_ns;

	if (!ending_of(ending, state, now_ns))
		return false;
	latency_ns = now_ns - ending->origin_ns;
	// Not a latency: the clocks of two CPUs differ by more than the chain is long.
	if ((rts_s64)latency_ns < 0) {
		COUNT(unplaced);
		return false;
	}
	sample_count(latency_ns);
	if (latency_ns < config.threshold_ns && !state->waiting_reported)
		return false;
	return told != ending->activation &&
	       __sync_val_compare_and_swap(&state->told, told, ending->activation) == told;
}

#endif
