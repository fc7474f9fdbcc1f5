// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Cycles of targets that a timer of their own wakes, from a release to the end of the last work
// before the next. In between a target may sleep for what others do (a semaphore, an answer), or
// for a length of time, which ends its activation: no event tells such a sleep from the end of its
// work. Whether the releases are steady, user space judges.

#ifndef RTSCOPE_CYCLE_H
#define RTSCOPE_CYCLE_H

#include "asked.h"
#include "grid.h"

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
static __always_inline rts_u64 sleep_place(struct pt_regs *regs)
{
	return regs_task_instruction(regs) + ((rts_u64)regs_argument_0(regs) << 20);
}

// Whether a task sleeps for a length of time or to a moment, and for nothing else: so do programs
// that wait for no file, too.
static __always_inline bool sleeps_for_time(struct pt_regs *regs)
{
	if (regs_in_select(regs))
		return !regs_select_files(regs);
	if (regs_in_poll(regs))
		return !regs_poll_files(regs);
	return regs_in_clock_nanosleep(regs) || regs_in_nanosleep(regs);
}

// Whether a task sleeps until a moment: it may have several in a cycle.
static __always_inline bool sleeps_to_moment(struct pt_regs *regs)
{
	return regs_in_clock_nanosleep(regs) && (regs_sleep_flags(regs) & TIMER_ABSTIME);
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

// Of a cycle that ends, whether it counts. One with sleeps beside the grid waits for the next one:
// two in a row may be another pace, with one between them it counts in the place of that.
static __always_inline bool cycle_is_sure(struct grid *grid, rts_u64 *begin_ns, rts_u64 *done_ns,
		rts_u32 *sleeps)
{
	rts_u32 before = grid->perhaps_sleeps;

	grid->perhaps_sleeps = 0;
	if (grid->beside) {
		grid->beside = 0;
		if (before) {
			grid_forget(grid);
			return false;
		}
		grid->perhaps_begin_ns = *begin_ns;
		grid->perhaps_done_ns = *done_ns;
		grid->perhaps_sleeps = *begin_ns ? *sleeps : 0;
		return false;
	}
	if (before) {
		*begin_ns = grid->perhaps_begin_ns;
		*done_ns = grid->perhaps_done_ns;
		*sleeps = before;
	}
	return *begin_ns && *sleeps;
}

// The present cycle ended with the last work, at `done_ns`. Whether it was late, with sleeps in it.
static __always_inline bool cycle_close(struct task_state *state, struct task_struct *task,
		rts_u64 done_ns)
{
	rts_u64 begin_ns = state->cycle_ns;
	rts_u32 sleeps = state->others;
	struct rts_cycles *found;

	state->cycle_ns = 0;
	state->others = 0;
	if (done_ns <= begin_ns)
		begin_ns = 0;
	if (!cycle_is_sure(&state->grid, &begin_ns, &done_ns, &sleeps))
		return false;
	found = cycle_note(task->pid, task, begin_ns, done_ns, sleeps);
	if (!found)
		return false;
	state->has_cycles = 1;
	gaps_copy(found, state);
	return done_ns - begin_ns >= config.threshold_ns;
}

// So often its timer's releases are counted that found it at the same place.
#define RELEASED_AGAIN_MAX 8
// So many times between two releases tell how steady its timer is.
#define GAPS_SURE 4

// The time between the last release and this one. What follows a late cycle says less of the timer:
// a program that is late may count its next period from then.
static __always_inline void gap_note(struct task_state *state, rts_u64 release_ns, bool was_late)
{
	rts_u64 gap_us = (release_ns - state->released_ns) / 1000;

	if (!state->releases) {
		state->releases = 1;
		return;
	}
	if (release_ns <= state->released_ns || (was_late && state->calm >= GAPS_SURE))
		return;
	if (!was_late && state->calm < GAPS_SURE)
		state->calm++;
	state->gaps_us[(state->releases - 1) & GAP_MASK] = gap_us < GAP_US_MAX ? gap_us : GAP_US_MAX;
	state->releases++;
}

// A timer releases the target, which has slept until then.
static __always_inline void cycle_begin(struct task_state *state, struct task_struct *task,
		struct pt_regs *regs, rts_u64 release_ns, bool was_late)
{
	rts_u64 place = sleep_place(regs);
	struct rts_cycles *found;

	gap_note(state, release_ns, was_late);
	grid_released(&state->grid, sleeps_to_moment(regs) ? state->armed_ns : 0, state->slept_ns);
	state->released_ns = release_ns;
	state->cut_ns = 0;
	state->own_moment = 0;
	state->paced = sleeps_to_moment(regs);
	state->timed = sleeps_for_time(regs);
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

// Whether a target sleeps at most until about its next release, as far as the last two tell.
static __always_inline bool is_near_release(const struct task_state *state)
{
	rts_u64 gap_ns = state->gaps_us[(state->releases - 2) & GAP_MASK] * 1000ull;
	rts_s64 late_ns = state->armed_ns - state->released_ns - gap_ns;

	return (late_ns < 0 ? -late_ns : late_ns) * 8 < (rts_s64)gap_ns;
}

// Others wake a target that sleeps as it does for its timer, or that chose how long it sleeps at
// most: it waits for the next thing to do, unless that is an answer. Who sleeps for time alone
// until its releases does not: a time-out elsewhere is one of a lock or of an answer. A timer that
// had expired before it slept, since `slept_ns`, is not the one of this sleep.
static __always_inline bool waits_for_work(const struct task_state *state, struct pt_regs *regs,
		rts_u64 slept_ns)
{
	if (sleep_place(regs) == state->released_at)
		return true;
	return state->armed_ns > slept_ns && (!state->timed || is_near_release(state));
}

// So many times the last time between two releases a target may sleep elsewhere in one cycle.
#define NAPPING_GAPS_MAX 16

// Whether a target sleeps to a moment that may be a release of its own: where it waits for these so
// as well, or was not seen often to wait elsewhere. A program that sleeps for a length of time may
// do it to the moment at which that is over, as Python's time.sleep() does.
static __always_inline bool may_be_paced(const struct task_state *state, struct pt_regs *regs)
{
	return sleeps_to_moment(regs) && (state->paced || state->released_again < GAPS_SURE);
}

// Whether a timer wakes a target out of a sleep that is no wait for its next release: it sleeps
// until a moment beside the grid of these, for a length of time, or waits for others until it gives
// up or its alarm rings, elsewhere than at its releases. Where it does so again and again for long
// without one, these are its releases.
static __always_inline bool is_own_sleep(struct task_state *state, struct pt_regs *regs)
{
	rts_u64 gap_us;

	if (sleeps_to_moment(regs)) {
		enum grid_sleep slept = grid_slept(&state->grid, state->armed_ns,
				state->slept_ns);

		if (slept == GRID_INSIDE)
			return true;
		if (slept == GRID_LEFT) {
			state->cycle_ns = 0;
			state->others = 0;
		}
	}
	if (!state->released_again || sleep_place(regs) == state->released_at ||
	    may_be_paced(state, regs))
		return false;
	// One after the other, without a release elsewhere: it begins a loop of its own.
	if (sleeps_to_moment(regs) && state->own_moment) {
		state->cycle_ns = 0;
		state->others = 0;
		return false;
	}
	state->own_moment = sleeps_to_moment(regs);
	gap_us = state->gaps_us[(state->releases - 2) & GAP_MASK];
	if (bpf_ktime_get_ns() - state->released_ns > gap_us * 1000 * NAPPING_GAPS_MAX)
		state->released_again--;
	return true;
}

// When a target's timer was due, or the wait for that was to end which others cut short, where it
// slept by then for something else, since `slept_ns`, and nobody woke it. 0: none was.
static __always_inline rts_u64 due_asleep(const struct task_state *state, rts_u64 slept_ns)
{
	rts_u64 due_ns = state->cut_ns;

	if (due_ns <= slept_ns || due_ns <= state->released_ns)
		due_ns = state->timer_due_ns;
	if (due_ns <= slept_ns || due_ns <= state->released_ns)
		return 0;
	return due_ns <= bpf_ktime_get_ns() ? due_ns : 0;
}

// Others wake a target that waits for its next work. What the cycle was about is done, or an answer
// is still to come.
static __always_inline void cycle_waited(struct task_state *state, struct task_struct *task,
		struct pt_regs *regs, rts_u64 done_ns)
{
	if (state->others)
		cycle_close(state, task, done_ns);
	state->in_cycle = 0;
	if (state->armed_ns > done_ns && sleep_place(regs) == state->released_at)
		state->cut_ns = state->armed_ns;
}

// It slept elsewhere: in its cycle, or after others had woken it for something else.
static __always_inline void cycle_sleeps(struct task_state *state, struct task_struct *task,
		rts_u64 done_ns)
{
	rts_u64 due_ns;

	if (state->cycle_ns && state->in_cycle) {
		state->others++;
		return;
	}
	due_ns = due_asleep(state, done_ns);
	if (!due_ns)
		return;
	cycle_close(state, task, done_ns);
	state->released_ns = state->cycle_ns = due_ns;
	// It is at something else still: whom it wakes it asks nothing for this.
	state->in_cycle = 0;
	state->others = 1;
}

// A target that slept, since `done_ns`, is woken: by its timer, or by others.
static __always_inline void cycle_wake(struct task_state *state, struct cpu_state *cpu,
		struct task_struct *task, struct pt_regs *regs, rts_u64 done_ns)
{
	rts_u64 overdue_ns = state->overdue_ns;

	if (timer_in_progress(cpu)) {
		bool was_late;

		// It goes on with what it was kept from.
		if (overdue_ns && overdue_ns == state->released_ns)
			return;
		if (!overdue_ns && is_own_sleep(state, regs)) {
			cycle_sleeps(state, task, done_ns);
			return;
		}
		was_late = cycle_close(state, task, done_ns);
		cycle_begin(state, task, regs, overdue_ns ? overdue_ns : state->chain.origin_ns,
				was_late);
		// It slept for something else when that was due.
		state->others = overdue_ns && overdue_ns < state->woken_ns;
		return;
	}
	if (is_answer(cpu, task, state, done_ns, sleep_place(regs) == state->released_at)) {
		state->in_cycle = 1;
		state->others++;
	} else if (waits_for_work(state, regs, done_ns)) {
		cycle_waited(state, task, regs, done_ns);
	} else {
		cycle_sleeps(state, task, done_ns);
	}
}

// The watch ends inside of a cycle.
static __always_inline void cycle_cut(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	rts_u64 done_ns = now_ns;

	if (!state->cycle_ns || !regs || !filter_target(state, task))
		return;
	if (state->phase == PHASE_NONE) {
		if (!task->__state || waits_for_work(state, regs, state->slept_ns))
			done_ns = state->slept_ns;
		else
			state->others++;
	}
	cycle_close(state, task, done_ns);
}

#endif
