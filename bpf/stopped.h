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
	if (bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen))
		return RTS_STOP_FROZEN;
	return STOP_NO;
}

static __always_inline void evidence_stopped(struct task_struct *task, rts_s32 how, rts_u64 now_ns)
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
		if (totals && totals->freezer.tid)
			slot->stopped.by = totals->freezer;
	}
	evidence_end(slot);
}

// What a system call returns that goes on after a signal (include/linux/errno.h).
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516
#define CLOCK_MONOTONIC 1
#define TIMER_ABSTIME 1
#define NS_PER_S 1000000000ull

// Until when `task`, which runs now and is about to be stopped, was to sleep: a signal ended its
// sleep, which goes on later. 0: it did not sleep, or nothing says how long.
static __always_inline rts_u64 asleep_until(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	rts_u64 time[2] = {};

	if (!regs || bpf_get_current_task_btf()->pid != task->pid)
		return 0;
	if (regs_result(regs) == -ERESTART_RESTARTBLOCK &&
	    (regs_in_nanosleep(regs) || regs_in_clock_nanosleep(regs)))
		// The block is a union, of which the verifier knows the first member alone.
		return BPF_CORE_READ(task, restart_block.nanosleep.clockid) == CLOCK_MONOTONIC ?
				BPF_CORE_READ(task, restart_block.nanosleep.expires) : 0;
	if (regs_result(regs) != -ERESTARTNOHAND || !regs_in_clock_nanosleep(regs) ||
	    regs_sleep_clock(regs) != CLOCK_MONOTONIC || !(regs_sleep_flags(regs) & TIMER_ABSTIME) ||
	    bpf_probe_read_user(time, sizeof(time), (const void *)regs_sleep_time(regs)))
		return 0;
	return time[0] * NS_PER_S + time[1];
}

// A target leaves the CPU because it is stopped.
static __always_inline void stop_begin(struct task_state *state, struct task_struct *task,
		rts_s32 how, rts_u64 now_ns)
{
	if (config.evidence_floor_ns)
		evidence_stopped(task, how, now_ns);
	state->stopped = 1;
	state->asleep_until_ns = asleep_until(task);
	if (state->asleep_until_ns <= now_ns)
		state->asleep_until_ns = 0;
	// What the signal woke it for is no work of its own.
	if (config.end_kind == RTS_END_BLOCKED && state->phase != PHASE_NONE &&
	    !state->asleep_until_ns) {
		state->phase = PHASE_INSIDE;
		return;
	}
	chain_begin(&state->chain, now_ns, 0);
	chain_append_task(&state->chain, RTS_STEP_BLOCKED, now_ns, task);
	state->waiting_reported = 0;
	state->phase = PHASE_STOPPED;
}

// A target that may go on: it waits for its CPU from now on. One that was stopped in its sleep is
// late since that was to end; one that was not to wake yet is not late.
static __always_inline void stop_end(struct task_state *state, const struct cpu_state *cpu,
		struct task_struct *task)
{
	rts_u64 now_ns = bpf_ktime_get_ns(), due_ns = state->asleep_until_ns;

	state->asleep_until_ns = 0;
	if (due_ns > now_ns) {
		state->phase = PHASE_NONE;
		return;
	}
	if (due_ns) {
		chain_begin(&state->chain, due_ns, 0);
		chain_append_task(&state->chain, RTS_STEP_BLOCKED, due_ns, task);
	}
	chain_append_task(&state->chain, RTS_STEP_WAKING, now_ns, task);
	waker_note(state, cpu, now_ns);
	state->phase = PHASE_WOKEN;
}

// Since 6.18 a task whose group is out of quota leaves the CPU on its way to user space, and comes
// back without a wake-up: so does its chain begin, where the one of its wake-up is over.
static __always_inline bool throttle_begin(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	if (!bpf_core_field_exists(task->throttled) || !task->throttled)
		return false;
	state->throttled_ns = now_ns;
	if (config.end_kind != RTS_END_SWITCH_IN)
		return false;
	chain_begin(&state->chain, now_ns, 0);
	chain_append_task(&state->chain, RTS_STEP_WAKING, now_ns, task);
	state->waker.tid = -1;
	state->waiting_reported = 0;
	state->was_target = 1;
	state->phase = PHASE_WOKEN;
	return true;
}

// It has the CPU again.
static __always_inline void throttle_end(struct task_state *state, struct task_struct *task,
		rts_u64 now_ns)
{
	if (state->throttled_ns && config.evidence_floor_ns)
		evidence_throttled(task, state->throttled_ns, now_ns);
	state->throttled_ns = 0;
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

static __always_inline void on_cgroup_freeze(void)
{
	struct totals *totals = LOOKUP(watch_totals, 0);

	if (totals)
		task_describe(&totals->freezer, bpf_get_current_task_btf());
}

#endif
