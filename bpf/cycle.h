// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Cycles of targets that a timer of their own wakes, from a release to the end of the last work
// before the next. In between a target may sleep for what others do (a semaphore, an answer), or
// for a length of time, which ends its activation: no event tells such a sleep from the end of its
// work. Whether the releases
// are steady, user space judges.

#ifndef RTSCOPE_CYCLE_H
#define RTSCOPE_CYCLE_H

#include "asked.h"

#define GAP_MASK (RTS_GAPS_MAX - 1)
#define GAP_US_MAX 0xffffffffull

// By thread id; by a negative one what others gave to that task (home.h).
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, rts_s32);
	__type(value, struct rts_cycles);
} cycles SEC(".maps");

// What a new one of those begins as: there is no room for it on the stack.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_cycles);
} no_cycles SEC(".maps");

static __always_inline struct rts_cycles *cycles_of(rts_s32 key)
{
	struct rts_cycles *found = bpf_map_lookup_elem(&cycles, &key), *none;

	if (found)
		return found;
	none = LOOKUP(no_cycles, 0);
	if (!none)
		return 0;
	bpf_map_update_elem(&cycles, &key, none, BPF_ANY);
	return bpf_map_lookup_elem(&cycles, &key);
}

// In which call a task sleeps, and on what: the same twice is the wait for its next work.
static __always_inline rts_u64 sleep_place(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return regs ? regs_instruction(regs) + ((rts_u64)regs_argument_0(regs) << 20) : 0;
}

// Whether a task sleeps until a moment: it may have several in a cycle.
static __always_inline bool sleeps_to_moment(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return regs && regs_in_clock_nanosleep(regs) && (regs_sleep_flags(regs) & TIMER_ABSTIME);
}

static __always_inline void gaps_copy(struct rts_cycles *found, const struct task_state *state)
{
	for (rts_u32 i = 0; i < RTS_GAPS_MAX; i++)
		found->gaps_us[i] = state->gaps_us[i];
	found->gaps_length = state->releases ? state->releases - 1 : 0;
}

// A cycle of this length is over, with so many sleeps in between.
static __always_inline struct rts_cycles *cycle_note(rts_s32 key, struct task_struct *task,
		rts_u64 begin_ns, rts_u64 done_ns, rts_u32 sleeps)
{
	struct rts_cycles *found = cycles_of(key);

	if (!found)
		return 0;
	task_describe(&found->task, task);
	found->cycles++;
	found->sleeps += sleeps;
	if (done_ns - begin_ns >= config.threshold_ns)
		found->over++;
	if (done_ns - begin_ns > found->worst_end_ns - found->worst_begin_ns) {
		found->worst_begin_ns = begin_ns;
		found->worst_end_ns = done_ns;
	}
	return found;
}

// The present cycle ended with the last work, at `done_ns`.
static __always_inline void cycle_close(struct task_state *state, struct task_struct *task,
		rts_u64 done_ns)
{
	rts_u64 begin_ns = state->cycle_ns;
	rts_u32 sleeps = state->others;
	struct rts_cycles *found;

	state->cycle_ns = 0;
	state->others = 0;
	if (!begin_ns || !sleeps || done_ns <= begin_ns)
		return;
	found = cycle_note(task->pid, task, begin_ns, done_ns, sleeps);
	if (!found)
		return;
	state->has_cycles = 1;
	gaps_copy(found, state);
}

// So often its timer's releases are counted that found it at the same place.
#define RELEASED_AGAIN_MAX 8

// A timer releases the target, which has slept until then.
static __always_inline void cycle_begin(struct task_state *state, struct task_struct *task,
		rts_u64 release_ns)
{
	rts_u64 place = sleep_place(task);
	rts_u64 gap_us = (release_ns - state->released_ns) / 1000;
	struct rts_cycles *found;

	if (state->releases && release_ns > state->released_ns)
		state->gaps_us[(state->releases - 1) & GAP_MASK] =
			gap_us < GAP_US_MAX ? gap_us : GAP_US_MAX;
	if (!state->releases || release_ns > state->released_ns)
		state->releases++;
	state->released_ns = release_ns;
	state->cycle_ns = release_ns;
	state->in_cycle = 1;
	if (state->released_at != place)
		state->released_again = 0;
	else if (state->released_again < RELEASED_AGAIN_MAX)
		state->released_again++;
	state->released_at = place;
	if (!state->has_cycles)
		return;
	found = cycles_of(task->pid);
	if (found)
		gaps_copy(found, state);
}

// Others wake a target that chose how long it sleeps at most, or that sleeps as it does for its
// timer: it waits for the next thing to do, unless that is an answer. A timer that had expired
// before it slept, since `slept_ns`, is not the one of this sleep.
static __always_inline bool waits_for_work(const struct task_state *state, struct task_struct *task,
		rts_u64 slept_ns)
{
	return state->armed_ns > slept_ns || sleep_place(task) == state->released_at;
}

// So many times the last time between two releases a target may sleep elsewhere in one cycle.
#define NAPPING_GAPS_MAX 16

// Whether a timer wakes a target out of a sleep that is no wait for its next release: it sleeps for
// a length of time, or waits for others until it gives up or its alarm rings, elsewhere than at its
// releases. Where it does so again and again for long without one, these are its releases.
static __always_inline bool is_own_sleep(struct task_state *state, struct task_struct *task)
{
	rts_u64 gap_us;

	if (!state->released_again || sleep_place(task) == state->released_at ||
	    sleeps_to_moment(task))
		return false;
	gap_us = state->gaps_us[(state->releases - 2) & GAP_MASK];
	if (bpf_ktime_get_ns() - state->released_ns > gap_us * 1000 * NAPPING_GAPS_MAX)
		state->released_again--;
	return true;
}

// A target that slept, since `done_ns`, is woken: by its timer, or by others.
static __always_inline void cycle_wake(struct task_state *state, struct cpu_state *cpu,
		struct task_struct *task, rts_u64 done_ns)
{
	if (task->flags & PF_KTHREAD)
		return;
	if (timer_in_progress(cpu)) {
		if (is_own_sleep(state, task)) {
			state->in_cycle = 1;
			state->others++;
			return;
		}
		cycle_close(state, task, done_ns);
		cycle_begin(state, task, state->chain.origin_ns);
		return;
	}
	if (is_answer(cpu, task, state, done_ns)) {
		state->in_cycle = 1;
		state->others++;
	} else if (!state->cycle_ns) {
		return;
	} else if (waits_for_work(state, task, done_ns)) {
		// What the cycle was about is done, or an answer is still to come.
		if (state->others)
			cycle_close(state, task, done_ns);
		state->in_cycle = 0;
	} else if (state->in_cycle) {
		state->others++;
	}
}

// The watch ends inside of a cycle.
static __always_inline void cycle_cut(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	rts_u64 done_ns = now_ns;

	if (!state->cycle_ns || !filter_target(state, task))
		return;
	if (state->phase == PHASE_NONE) {
		if (!task->__state || waits_for_work(state, task, state->slept_ns))
			done_ns = state->slept_ns;
		else
			state->others++;
	}
	cycle_close(state, task, done_ns);
}

#endif
