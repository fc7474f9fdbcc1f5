// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Work that others give to a target, as to a server: it waits for that at one place, its home. From
// where it is woken there to where it comes home again is a cycle; what it sleeps for elsewhere in
// between (a length of time, a child, a lock of a database) may be inside of its work. So does an
// event loop wait, which has timers of its own: that its wait timed out gives it work, too.

#ifndef RTSCOPE_HOME_H
#define RTSCOPE_HOME_H

#include "cycle.h"

// So often more than elsewhere a target was woken at its home.
#define HOME_SURE 8
#define HOME_MAX 16
// The words of a condition variable on which threads sleep in turn lie side by side.
#define WORD_MASK (~7ull)
// Beyond all thread ids: cycles in which a timer ended a sleep. Where that is its release, they say
// nothing.
#define NAPS_KEY 0x40000000

enum home_kind {
	HOME_OTHER = 0,
	HOME_FUTEX = 1,
	HOME_EPOLL = 2,
};

static __always_inline rts_u8 home_kind(struct pt_regs *regs)
{
	if (regs_in_futex(regs))
		return HOME_FUTEX;
	return regs_in_epoll_wait(regs) ? HOME_EPOLL : HOME_OTHER;
}

// Where a task sleeps.
static __always_inline rts_u64 home_place(struct pt_regs *regs)
{
	rts_u64 argument = regs_argument_0(regs);

	if (regs_in_futex(regs))
		argument &= WORD_MASK;
	return regs_task_instruction(regs) + (argument << 20);
}

// Whether a sleep that is over may have been inside of its work. A worker of a pool may wait for
// its turn on a futex, and for files by epoll, without any work. What a timer ends is the end of a
// time that it chose to sleep, or perhaps its timer's release; of other calls it is a time-out.
static __always_inline bool is_away(const struct task_state *state, struct pt_regs *regs,
		bool timer)
{
	rts_u8 kind = home_kind(regs);

	if (timer)
		return sleeps_for_time(regs);
	return !kind || !state->home_kind || kind == state->home_kind;
}

// The work for which it was woken is over since `done_ns`.
static __always_inline void home_close(struct task_state *state, struct task_struct *task,
		rts_u64 done_ns)
{
	struct rts_cycles *found;

	if (!state->served_ns || !state->away || done_ns <= state->served_ns)
		return;
	// Beside what is known of its own timer.
	found = cycle_note(-(task->pid | (state->napped ? NAPS_KEY : 0)), task, state->served_ns,
			done_ns, state->away);
	if (found)
		found->by_others = state->napped ? RTS_BY_OTHERS_NAPS : RTS_BY_OTHERS;
}

// A target that slept, since `done_ns`, is woken: by a timer, or by others.
static __always_inline void home_wake(struct task_state *state, struct cpu_state *cpu,
		struct task_struct *task, struct pt_regs *regs, rts_u64 now_ns, rts_u64 done_ns)
{
	bool timer = timer_in_progress(cpu), works;
	rts_u64 place = home_place(regs);

	works = !timer || !sleeps_for_time(regs);
	if (place == state->home_at) {
		home_close(state, task, done_ns);
		state->served_ns = 0;
		if (works && state->home_again >= HOME_SURE)
			state->served_ns = timer ? state->chain.origin_ns : now_ns;
		state->away = 0;
		state->napped = timer;
		if (works && state->home_again < HOME_MAX)
			state->home_again++;
		return;
	}
	if (state->served_ns && is_away(state, regs, timer)) {
		state->away++;
		state->napped |= timer;
	}
	if (state->home_again) {
		state->home_again--;
		return;
	}
	state->home_at = place;
	state->home_kind = home_kind(regs);
	state->served_ns = 0;
	state->away = 0;
	state->napped = 0;
}

#endif
