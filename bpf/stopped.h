// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Targets that may not run although no other task has their CPU: stopped by a signal, by a tracer
// or by the freezer, or out of their group's quota. What keeps them is no wake-up's doing, so that
// the time begins a chain of its own where no activation is under way.

#ifndef RTSCOPE_STOPPED_H
#define RTSCOPE_STOPPED_H

#include "ends.h"

#define STOP_NO -1

// What stops `task`, which leaves the CPU in `task_state` (enum rts_stop).
static __always_inline rts_s32 stop_of(struct task_struct *task, unsigned int task_state)
{
	if (task_state & TASK_TRACED)
		return RTS_STOP_TRACED;
	if (task_state & TASK_STOPPED)
		return RTS_STOP_SIGNAL;
	if (task_state & TASK_FROZEN)
		return RTS_STOP_FROZEN;
	// So counts who waits for its child of vfork, too.
	if (bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen) &&
	    (task->jobctl & JOBCTL_TRAP_FREEZE))
		return RTS_STOP_FROZEN;
	return STOP_NO;
}

// Whether a target goes back to the sleep in which it was stopped, as far as the sleep's timer says
// that was armed anew: it had expired by the time that the target could go on. It is woken at once,
// and what it does then is what it was due for. Whoever catches up with what it missed arms timers
// for later.
static __always_inline bool back_to_stopped_sleep(const struct task_state *state)
{
	return config.end_kind == RTS_END_BLOCKED && state->phase == PHASE_ACTIVE &&
	       state->armed_ns && state->armed_ns <= state->asleep_until_ns &&
	       state->asleep_until_ns <= state->stopped_until_ns;
}

// Whether the group of that number, or one below it, is the task's, which the freezer of the second
// version holds.
static __noinline bool group_froze(struct task_struct *task, rts_u64 id)
{
	struct cgroup *group = BPF_CORE_READ(task, cgroups, dfl_cgrp);

	if (!bpf_core_field_exists(task->frozen) || !BPF_CORE_READ_BITFIELD_PROBED(task, frozen))
		return false;
	for (int level = 0; level < GROUP_LEVELS_MAX && group; level++) {
		if (BPF_CORE_READ(group, kn, id) == id)
			return true;
		group = BPF_CORE_READ(group, self.parent, cgroup);
	}
	return false;
}

static __always_inline void evidence_stopped(const struct task_state *state,
		struct task_struct *task, rts_s32 how, rts_u64 now_ns)
{
	struct rts_evidence *slot = evidence_begin(RTS_EVIDENCE_STOPPED, now_ns);
	struct stop_request *request;
	struct totals *totals;
	rts_s32 process = task->tgid;

	if (!slot)
		return;
	task_describe(&slot->stopped.task, task);
	slot->stopped.by.tid = -1;
	slot->stopped.signal = 0;
	slot->stopped.how = how;
	slot->stopped.asleep = state->asleep;
	if (how == RTS_STOP_SIGNAL) {
		request = bpf_map_lookup_elem(&stop_requests, &process);
		if (request) {
			slot->stopped.by = request->by;
			slot->stopped.signal = request->signal;
		}
	} else if (how == RTS_STOP_TRACED && task->ptrace) {
		task_read(&slot->stopped.by, task->parent);
	} else if (how == RTS_STOP_FROZEN) {
		totals = LOOKUP(watch_totals, 0);
		if (totals && totals->freezer.tid && group_froze(task, totals->frozen_group))
			slot->stopped.by = totals->freezer;
	}
	evidence_end(slot);
}

// What a system call returns whose sleep a signal ended (include/linux/errno.h). One that is begun
// again without a trace (ERESTARTNOINTR) did not sleep for an event.
#define EINTR 4
#define ERESTARTSYS 512
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516
#define CLOCK_MONOTONIC 1
#define NS_PER_S 1000000000ull

static __always_inline bool regs_sleep_ended(struct pt_regs *regs)
{
	rts_s64 result = regs_result(regs);

	return !regs_in_exception(regs) && (result == -EINTR || result == -ERESTARTSYS ||
			result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK);
}

// Until when `task` was to sleep whose nanosleep a signal ended, by what that sleep left; for one
// that began before the watch did. 0: nothing says so.
static __always_inline rts_u64 nanosleep_until(struct task_struct *task, struct pt_regs *regs)
{
	rts_u64 time[2] = {};

	if (regs_result(regs) == -ERESTART_RESTARTBLOCK)
		// The block is a union, of which the verifier knows the first member alone.
		return BPF_CORE_READ(task, restart_block.nanosleep.clockid) == CLOCK_MONOTONIC ?
				BPF_CORE_READ(task, restart_block.nanosleep.expires) : 0;
	if (bpf_get_current_task_btf()->pid != task->pid ||
	    regs_result(regs) != -ERESTARTNOHAND || !regs_in_clock_nanosleep(regs) ||
	    regs_sleep_clock(regs) != CLOCK_MONOTONIC || !(regs_sleep_flags(regs) & TIMER_ABSTIME) ||
	    bpf_probe_read_user(time, sizeof(time), (const void *)regs_sleep_time(regs)))
		return 0;
	return time[0] * NS_PER_S + time[1];
}

// How `task`, which is stopped, slept before that; `in_place`: it sleeps still, and is frozen so.
// What goes on behind a sleep is work, and so is what waits for a lock.
static __always_inline void sleep_of(struct task_state *state, struct task_struct *task,
		bool in_place)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	state->asleep = RTS_ASLEEP_NO;
	state->asleep_until_ns = 0;
	if ((task->flags & PF_KTHREAD) || !regs || state->resumed)
		return;
	state->stopped_at = regs_instruction(regs);
	if (!in_place && !regs_sleep_ended(regs))
		return;
	state->asleep = RTS_ASLEEP_EVENT;
	state->asleep_until_ns = state->armed_ns;
	if (!regs_in_nanosleep(regs) && !regs_in_clock_nanosleep(regs))
		return;
	if (!state->asleep_until_ns && !in_place)
		state->asleep_until_ns = nanosleep_until(task, regs);
	if (state->asleep_until_ns)
		state->asleep = RTS_ASLEEP_UNTIL;
}

// When a target is due that sleeps for an event, and for no time of its sleep's own: a timer of its
// own that woke it before, and that it has armed again, is such an event. 0: nothing says so.
static __always_inline rts_u64 own_timer_due_ns(const struct task_state *state, rts_u64 after_ns)
{
	if (state->asleep != RTS_ASLEEP_EVENT || state->asleep_until_ns)
		return 0;
	return state->timer_due_ns > after_ns ? state->timer_due_ns : 0;
}

// The chain of a target that is stopped: it is late since `since_ns`.
static __always_inline void stop_chain(struct task_state *state, struct task_struct *task,
		rts_u64 since_ns)
{
	activation_begin(state);
	chain_begin(&state->chain, since_ns, 0);
	chain_append_task(&state->chain, RTS_STEP_BLOCKED, since_ns, task);
	state->phase = PHASE_STOPPED;
}

// A task leaves the CPU because it is stopped, or is stopped already; whether it is a `target`.
static __always_inline void stop_begin(struct task_state *state, struct task_struct *task,
		rts_s32 how, bool target, rts_u64 now_ns)
{
	bool in_place = how == RTS_STOP_FROZEN && task->pid != bpf_get_current_task_btf()->pid;
	rts_u64 due_ns;

	sleep_of(state, task, in_place);
	due_ns = own_timer_due_ns(state, now_ns);
	if (due_ns)
		state->asleep_until_ns = due_ns;
	// The sleep was over by itself.
	if (state->asleep_until_ns && state->asleep_until_ns <= now_ns)
		state->asleep = RTS_ASLEEP_NO;
	// Nobody knows whether what it slept for came meanwhile.
	if (!target && state->asleep == RTS_ASLEEP_EVENT) {
		state->phase = PHASE_NONE;
		return;
	}
	if (config.evidence_floor_ns)
		evidence_stopped(state, task, how, now_ns);
	state->stopped = 1;
	state->stop_ns = now_ns;
	if (config.end_kind == RTS_END_BLOCKED && state->phase != PHASE_NONE) {
		if (state->asleep == RTS_ASLEEP_NO) {
			state->phase = PHASE_INSIDE;
			return;
		}
		// What the signal woke it for is no work of its own.
		if (target)
			drop_open(state, now_ns);
	}
	stop_chain(state, task, state->asleep_until_ns > now_ns ? state->asleep_until_ns : now_ns);
}

// A task that may go on: it waits for its CPU from now on. One that was stopped in its sleep is
// late since that was to end; one that was not to wake yet is not late. Where it slept for an event
// nobody knows whether that came meanwhile.
static __always_inline void stop_end(struct task_state *state, struct cpu_state *cpu,
		struct task_struct *task)
{
	rts_u64 now_ns = bpf_ktime_get_ns(), due_ns = state->chain.origin_ns;

	if (due_ns > now_ns) {
		if (state->asleep == RTS_ASLEEP_UNTIL) {
			state->phase = PHASE_NONE;
			return;
		}
		stop_chain(state, task, state->stop_ns);
		due_ns = state->stop_ns;
	}
	state->unsure = state->asleep != RTS_ASLEEP_NO && due_ns == state->stop_ns;
	// Only what it does next can tell.
	if (state->unsure && config.end_kind != RTS_END_BLOCKED) {
		drop_open(state, now_ns);
		state->phase = PHASE_NONE;
		return;
	}
	chain_append_task(&state->chain, RTS_STEP_WAKING, now_ns, task);
	state->woken_ns = now_ns;
	waker_note(state, cpu);
	state->phase = PHASE_WOKEN;
}

// A sleeper that is frozen where it sleeps: no switch tells. What wakes it now was due meanwhile.
static __always_inline bool is_frozen_asleep(const struct task_state *state,
		struct task_struct *task)
{
	return state->phase == PHASE_NONE && (task->__state & TASK_FROZEN);
}

// Begins the chain of such a target; false where nothing says since when it is late. Nobody tells
// when it was frozen, nor by whom: its timer expired, and did not wake it.
static __always_inline bool frozen_asleep(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	rts_u64 due_ns;

	sleep_of(state, task, true);
	due_ns = state->asleep_until_ns;
	if (!due_ns)
		due_ns = own_timer_due_ns(state, state->slept_ns);
	if (!due_ns || due_ns > now_ns)
		return false;
	state->asleep = RTS_ASLEEP_UNTIL;
	state->stop_ns = 0;
	if (config.evidence_floor_ns)
		evidence_stopped(state, task, RTS_STOP_FROZEN, due_ns);
	state->stopped = 1;
	stop_chain(state, task, due_ns);
	return true;
}

// Such a target is woken now.
static __always_inline void frozen_ends(struct task_state *state, struct task_struct *task)
{
	rts_u64 now_ns = bpf_ktime_get_ns();

	// It may have been due for as long as it slept.
	if (!frozen_asleep(state, task, now_ns) && state->asleep != RTS_ASLEEP_UNTIL &&
	    state->slept_ns && now_ns - state->slept_ns >= config.threshold_ns)
		COUNT(dropped);
}

// Less than this takes a task only that goes back to sleep.
#define BACK_TO_SLEEP_NS_MAX 30000

// A target blocks that was stopped in its sleep, and may have been due or not: whether it sleeps on
// as before. One that makes the same call at once most likely does, but that is not certain.
static __always_inline bool sleeps_on(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	const struct rts_step *came = &state->chain.steps[(state->chain.count - 1) & STEP_MASK];

	state->unsure = 0;
	if (!regs)
		return false;
	if (regs_in_restart(regs))
		return true;
	if (regs_instruction(regs) != state->stopped_at ||
	    now_ns - came->time_ns > BACK_TO_SLEEP_NS_MAX)
		return false;
	drop_open(state, now_ns);
	return true;
}

// Since 6.18 a task whose group is out of quota leaves the CPU on its way to user space, and comes
// back without a wake-up: so does its chain begin, where the one of its wake-up is over.
static __always_inline bool throttle_begin(struct task_state *state, struct task_struct *task,
		bool target, rts_u64 now_ns)
{
	// A target may wait for what others have, too.
	quota_wait_begins(state, task, now_ns);
	if (!target || config.end_kind != RTS_END_SWITCH_IN || !EACH_IS_KEPT(task) || !task->throttled)
		return false;
	activation_begin(state);
	chain_begin(&state->chain, now_ns, 0);
	chain_append_task(&state->chain, RTS_STEP_WAKING, now_ns, task);
	state->waker.tid = -1;
	state->was_target = 1;
	state->phase = PHASE_WOKEN;
	return true;
}

static __always_inline void on_signal_generate(int signal, struct task_struct *task)
{
	struct stop_request request = {};
	rts_s32 process = task->tgid;

	if (signal < SIGNAL_STOPS_FIRST || signal > SIGNAL_STOPS_LAST)
		return;
	task_describe(&request.by, bpf_get_current_task_btf());
	request.signal = signal;
	bpf_map_update_elem(&stop_requests, &process, &request, BPF_ANY);
}

static __always_inline void on_cgroup_freeze(struct cgroup *group)
{
	struct totals *totals = LOOKUP(watch_totals, 0);

	if (!totals)
		return;
	totals->frozen_group = BPF_CORE_READ(group, kn, id);
	task_describe(&totals->freezer, bpf_get_current_task_btf());
}

#endif
