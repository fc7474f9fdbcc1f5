// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Activations that no program saw: the kernel leaves calls of programs out, and whoever came on a
// CPU then was not on time because nobody looked. The kernel's own counts of a task tell how often
// it slept and came on a CPU; its accounts, and the timer that it sleeps with, for how long.

#ifndef RTSCOPE_HIDDEN_H
#define RTSCOPE_HIDDEN_H

#include "monitored.h"

#define HAS_ACCOUNTS(task) bpf_core_field_exists((task)->sched_info.last_arrival)

// The scheduler's clock is read so much earlier than ours, at most.
#define CLOCKS_APART_NS_MAX 2000

// Two clocks part by at most one nanosecond in 2048 (the kernel disciplines CLOCK_MONOTONIC by at
// most 500 ppm); by so much at once only where one of them was set.
#define CLOCKS_PART_SHIFT 11
#define CLOCK_SET_NS 1000000000

static __always_inline rts_u64 arrivals_of(const struct task_struct *task)
{
	return HAS_ACCOUNTS(task) ? task->sched_info.pcount : 0;
}

static __always_inline void counts_follow(struct monitored *state, const struct task_struct *task,
		rts_u64 arrivals)
{
	state->counts.sleeps = task->nvcsw;
	state->counts.arrivals = arrivals;
	state->counts.vruntime = task->se.vruntime;
	state->counted = 1;
}

// Whether the counts of a task were followed all the time. Where only real-time tasks are, one that
// was none meanwhile had sleeps that nobody counts.
static __always_inline bool counts_hold(const struct monitored *state,
		const struct task_struct *task)
{
	return state->counted && (config.target_kind != RTS_TARGET_REAL_TIME ||
			monitor_config.every_task ||
			state->counts.vruntime == task->se.vruntime);
}

// Whether a task slept once since it armed its timer, and came on a CPU as often as that, or for
// the first time now.
static __always_inline bool is_of_arming(const struct monitored *state,
		const struct task_struct *task, rts_u64 arrivals)
{
	return state->armed.ahead_ns && task->nvcsw == state->armed.sleeps + 1 &&
	       arrivals == state->armed.arrivals + 1;
}

// Who was last seen to come on this CPU, unless that is the task that was late.
static __always_inline void blame_last(struct rts_monitor_worst *worst, rts_s32 victim_tid)
{
	struct timer_frame *frame = LOOKUP(monitor_timer, 0);

	if (!frame || !frame->came || frame->came_tid == victim_tid)
		return;
	task_read(&worst->culprit, (struct task_struct *)frame->came);
	// That task has ended, and its memory is another one's.
	if (worst->culprit.tid != frame->came_tid)
		worst->culprit.tid = -1;
}

static __noinline void longest_hidden(const struct monitored *state, struct task_struct *task,
		struct rts_monitor_series *series, rts_u32 phase)
{
	struct rts_monitor_worst *worst = worst_begin(series, state, task, phase, state->switch_ns);

	if (!worst)
		return;
	worst->mode = RTS_MONITOR_HIDDEN;
	blame_last(worst, task->pid);
	worst_end(series, phase);
	floor_follows(series, side_now(), state->group);
}

static __always_inline void count_hidden(const struct monitored *state, struct task_struct *task,
		struct rts_monitor_series *series, rts_u32 phase, rts_u64 value_ns, bool alone)
{
	if (measured(series, side_now(), state, phase, value_ns, alone))
		longest_hidden(state, task, series, phase);
}

// Counts an activation of which no program saw the wake-up, with the instants in `state`: its timer
// and its wake-up are one part.
static __always_inline void count_unwoken(const struct monitored *state, struct task_struct *task,
		bool alone)
{
	struct rts_monitor_series *series = series_of(side_now(), state->group);

	if (!series)
		return;
	MONITOR_LOSS(hidden);
	count_hidden(state, task, series, RTS_PHASE_SWITCH, state->switch_ns - state->wakeup_ns,
			alone);
	if (!state->expiry_ns)
		return;
	count_hidden(state, task, series, RTS_PHASE_TIMER_WAKEUP,
			state->wakeup_ns - state->expiry_ns, alone);
	count_hidden(state, task, series, RTS_PHASE_TIMER_WAKEUP_SWITCH,
			state->switch_ns - state->expiry_ns, alone);
}

// One that was seen to be woken, and not to come on the CPU that it has.
static __always_inline void count_uncome(const struct monitored *state, struct task_struct *task,
		bool alone)
{
	struct rts_monitor_series *series = series_of(side_now(), state->group);

	if (!series)
		return;
	MONITOR_LOSS(hidden);
	count_hidden(state, task, series, RTS_PHASE_SWITCH, state->switch_ns - state->wakeup_ns,
			alone);
	if (state->expiry_ns)
		count_hidden(state, task, series, RTS_PHASE_TIMER_WAKEUP_SWITCH,
				state->switch_ns - state->expiry_ns, alone);
}

// The instants of an activation by the kernel's accounts: it came on a CPU at `came_ns`, and had
// waited for that. Whether its timer was what woke it; before its expiry it was somebody else, and
// what has not expired by `now_ns` has woken nobody.
static __always_inline void instants_of(struct monitored *state, rts_u64 came_ns, rts_u64 waited_ns,
		rts_u64 now_ns)
{
	rts_u64 expiry_ns = state->armed.expiry_ns;

	state->switch_ns = came_ns;
	state->wakeup_ns = came_ns - waited_ns;
	if (expiry_ns > now_ns || state->wakeup_ns + CLOCKS_APART_NS_MAX < expiry_ns)
		expiry_ns = 0;
	else if (state->wakeup_ns < expiry_ns)
		state->wakeup_ns = expiry_ns;
	if (state->switch_ns < state->wakeup_ns)
		state->switch_ns = state->wakeup_ns;
	state->expiry_ns = expiry_ns;
	state->entry_ns = state->wakeup_ns;
	state->kept = 0;
	state->hidden = 1;
}

// A task comes on a CPU that slept more often than it was seen to be woken.
static __noinline void unwoken_comes(struct monitored *state, struct task_struct *task,
		rts_u64 unseen, bool woken)
{
	rts_u64 now_ns = bpf_ktime_get_ns(), waited_ns;

	if (!woken)
		state->wake = WAKE_NONE;
	state->armed.timed_arrival = arrivals_of(task) + 1;
	if (!counts_hold(state, task) || !group_of(state, task)) {
		state->switch_ns = now_ns;
		return;
	}
	if (!woken && HAS_ACCOUNTS(task) && is_of_arming(state, task, arrivals_of(task) + 1)) {
		waited_ns = task->sched_info.run_delay - state->armed.waited_ns;
		if (task->sched_info.last_queued)
			waited_ns += now_ns - task->sched_info.last_queued - state->armed.ahead_ns;
		instants_of(state, now_ns, waited_ns, now_ns);
		count_unwoken(state, task, true);
		if (monitor_config.until_return)
			state->wake = WAKE_RUNS;
		unseen--;
	}
	state->switch_ns = now_ns;
	if (unseen)
		MONITOR_LOSSES(unseen, unseen);
}

// Of every switch to a task that may be meant.
static __always_inline void comes_on(struct monitored *state, struct task_struct *next, rts_u8 wake)
{
	bool woken = wake == WAKE_QUEUED || wake == WAKE_CROSSED;
	rts_s64 unseen = next->nvcsw - state->counts.sleeps - woken;

	if (unseen > 0)
		unwoken_comes(state, next, unseen, woken);
	counts_follow(state, next, arrivals_of(next) + 1);
}

// A task runs that nobody saw come on its CPU since it slept. Whether its last activation could be
// counted.
static __noinline bool uncome_runs(struct monitored *state, struct task_struct *task, bool alone)
{
	rts_u64 unseen = task->nvcsw - state->counts.sleeps, arrivals = arrivals_of(task);
	rts_u64 came_ns, now_ns = bpf_ktime_get_ns();
	bool once = arrivals == state->counts.arrivals + 1, found = false;

	if (counts_hold(state, task) && group_of(state, task)) {
		came_ns = HAS_ACCOUNTS(task) ?
				task->sched_info.last_arrival + state->armed.ahead_ns : 0;
		found = HAS_ACCOUNTS(task) && state->armed.ahead_ns && came_ns <= now_ns;
		if (found && once && state->wake == WAKE_QUEUED && came_ns >= state->wakeup_ns) {
			state->switch_ns = came_ns;
			count_uncome(state, task, alone);
		} else if (found && is_of_arming(state, task, arrivals)) {
			instants_of(state, came_ns,
					task->sched_info.run_delay - state->armed.waited_ns,
					now_ns);
			count_unwoken(state, task, alone);
		} else {
			found = false;
		}
		unseen -= found;
		if (unseen)
			MONITOR_LOSSES(unseen, unseen);
	}
	state->wake = WAKE_NONE;
	counts_follow(state, task, arrivals);
	return found;
}

// A task that may be meant runs, at the end of a system call.
static __always_inline void runs(struct monitored *state, struct task_struct *current, bool alone)
{
	if (state->counted && current->nvcsw != state->counts.sleeps &&
	    uncome_runs(state, current, alone) && monitor_config.until_return)
		state->wake = WAKE_RUNS;
}

// What CLOCK_MONOTONIC is ahead of the scheduler's clock, by an arrival that both have. The
// scheduler does not read its clock anew for a switch that a wake-up asked for
// (rq_clock_skip_update): such an arrival is as early there as the wake-up. So the least difference
// counts.
static __always_inline void clocks_compared(struct armed_sleep *armed, rts_u64 switch_ns,
		rts_u64 arrival_ns)
{
	rts_s64 ahead_ns = switch_ns - arrival_ns;
	rts_s64 most_ns = armed->ahead_ns + ((switch_ns - armed->ahead_at_ns) >> CLOCKS_PART_SHIFT);

	if (armed->ahead_ns && ahead_ns > most_ns && ahead_ns - most_ns < CLOCK_SET_NS)
		ahead_ns = most_ns;
	armed->ahead_ns = ahead_ns;
	armed->ahead_at_ns = switch_ns;
}

// The timer that a task sleeps with lies on that task's stack. `expiry_ns` is 0 when it is over.
static __always_inline void sleep_armed(struct hrtimer *timer, rts_u64 expiry_ns)
{
	struct task_struct *current = bpf_get_current_task_btf();
	rts_u32 stack = (rts_u32)(rts_u64)current->stack;
	struct monitored *state;
	struct armed_sleep *armed;

	if (hrtimer_address(timer) - stack >= KERNEL_STACK_BYTES || !may_be_meant(current) ||
	    !(state = monitored(current)))
		return;
	if (!state->counted)
		counts_follow(state, current, arrivals_of(current));
	if (current->nvcsw != state->counts.sleeps)
		uncome_runs(state, current, true);
	armed = &state->armed;
	armed->expiry_ns = expiry_ns;
	armed->sleeps = current->nvcsw;
	if (!HAS_ACCOUNTS(current))
		return;
	armed->arrivals = arrivals_of(current);
	armed->waited_ns = current->sched_info.run_delay;
	// A wake-up that it crossed has ended the instant of its arrival.
	if (state->switch_ns && armed->timed_arrival == armed->arrivals)
		clocks_compared(armed, state->switch_ns, current->sched_info.last_arrival);
}

#endif
