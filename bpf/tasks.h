// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What is open: the iterators that user space runs over all tasks, in its own time.

#ifndef RTSCOPE_TASKS_H
#define RTSCOPE_TASKS_H

#include "cycle.h"
#include "known.h"
#include "stopped.h"

SEC("iter/task")
int resolve_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	char comm[RTS_COMM_LENGTH];

	meant_know_ourselves(config.levels_up);
	if (!task || !task->pid)
		return 0;
	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	task_resolve(task, comm, 0, RESOLVE_FOUND);
	return 0;
}

// What was under way when the watch began, or when a task became a target again (`starts`: for the
// first time), has no origin that anybody saw: it counts from now, and says so.
static __always_inline void open_begin(struct task_struct *task, enum starts starts)
{
	struct task_state *state = task_state(task);
	rts_u64 now_ns, activation;
	bool runs, comes;
	rts_s32 stop;

	if (!state || state->phase != PHASE_NONE || !filter_target(state, task) ||
	    !filter_task_context())
		return;
	stop = stop_of(task, task->__state);
	// We hold the command until we are ready.
	if (stop == RTS_STOP_SIGNAL && state->meant.family)
		return;
	if (stop != STOP_NO) {
		stop_begin(state, task, stop, true, bpf_ktime_get_ns());
		state->chain.flags = RTS_CHAIN_STALE;
		return;
	}
	// A CPU that stands still takes those who are woken there on its run queue when it goes on.
	comes = task->__state == TASK_WAKING;
	if (task->__state && !comes)
		return;
	runs = task->on_cpu && !comes;
	if ((!task->on_rq && !comes) || (runs && config.end_kind != RTS_END_BLOCKED))
		return;
	now_ns = bpf_ktime_get_ns();
	activation_begin(state);
	activation = state->activation;
	chain_begin(&state->chain, now_ns, RTS_CHAIN_STALE);
	chain_append_task(&state->chain, runs ? RTS_STEP_SWITCH_IN : RTS_STEP_WAKING, now_ns, task);
	state->chain.steps[0].cpu = TASK_CPU(task);
	state->waker.tid = -1;
	state->woken_ns = now_ns;
	state->was_target = 1;
	state->starts = starts;
	state->met = 1;
	state->phase = runs ? PHASE_ACTIVE : PHASE_WOKEN;
	if (task->on_cpu == runs && (!task->__state || comes))
		return;
	// It moved while we wrote; what another CPU began meanwhile stays.
	if (*(volatile rts_u64 *)&state->activation != activation)
		return;
	state->phase = PHASE_NONE;
	if (!task->__state)
		COUNT(unseen);
}

// Runs once, when everything is attached.
SEC("iter/task")
int begin_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!family_since_ns)
		family_since_ns = bpf_ktime_get_ns();
	if (task && task->pid)
		open_begin(task, STARTS_NOT);
	return 0;
}

// Who has the CPU for which `task` waits, as what it has it now.
static __always_inline void running_before(struct rts_hit *hit, struct task_struct *task,
		rts_u64 now_ns)
{
	struct resched_slot *slot = LOOKUP(resched, TASK_CPU(task));
	struct rts_evidence *evidence;
	struct task_struct *running;
	const struct rq *rq;

	if (!slot || !slot->cpu_base || !config.rq_offset || !HAS_TASK_CPU(task))
		return;
	rq = (const struct rq *)(slot->cpu_base + config.rq_offset);
	running = BPF_CORE_READ(rq, curr);
	if (!running)
		return;
	task_read(&hit->culprit, running);
	if (!config.evidence_floor_ns)
		return;
	evidence = evidence_begin_of(TASK_CPU(task), RTS_EVIDENCE_MOMENT, now_ns);
	if (!evidence)
		return;
	evidence->moment.task = hit->culprit;
	evidence->moment.came_prio = hit->culprit.prio;
	evidence->moment.role = RTS_ROLE_RUNNING;
	evidence->moment.policy = BPF_CORE_READ(running, policy);
	evidence->moment.came_policy = evidence->moment.policy;
	evidence->moment.flags = 0;
	if (BPF_CORE_READ(running, flags) & PF_KTHREAD)
		evidence->moment.flags |= RTS_MOMENT_KERNEL_THREAD;
	if (bpf_core_field_exists(running->dl_server) && BPF_CORE_READ(running, dl_server))
		evidence->moment.flags |= RTS_MOMENT_SERVED;
	evidence_end(evidence);
}

// Whether `state`'s activation is not over: of `waiting`, only one that keeps it off its CPU.
static __always_inline bool is_open(const struct task_state *state, bool waiting)
{
	if (state->phase == PHASE_WOKEN || state->phase == PHASE_STOPPED)
		return true;
	if (waiting || config.end_kind == RTS_END_SWITCH_IN)
		return false;
	return state->phase == PHASE_ACTIVE || state->phase == PHASE_INSIDE;
}

// Reports a target whose activation has been open for `limit_ns`, once.
static __always_inline void report_open(struct task_struct *task, rts_u64 limit_ns, bool waiting)
{
	struct task_state *state;
	struct rts_hit *hit;
	struct ending ending;
	rts_u64 now_ns;
	rts_u8 phase;

	if (!task || !task->pid || !(state = task_state(task)))
		return;
	if (filter_target(state, task) && is_frozen_asleep(state, task)) {
		frozen_asleep(state, task, bpf_ktime_get_ns());
		// It was thawed while we wrote.
		if (!(task->__state & TASK_FROZEN))
			state->phase = PHASE_NONE;
	}
	phase = state->phase;
	if (state->waiting_reported || !is_open(state, waiting))
		return;
	if (phase == PHASE_WOKEN && (task->__state || task->on_cpu))
		return;
	if (!filter_target(state, task) && !state->was_target)
		return;
	now_ns = bpf_ktime_get_ns();
	if (!ending_of(&ending, state, now_ns) ||
	    (rts_s64)(now_ns - ending.origin_ns) < (rts_s64)limit_ns)
		return;
	// That is its start, or it only computes: nobody knows which.
	if (state->starts == STARTS_NAMED) {
		COUNT(unslept);
		return;
	}
	hit = hit_reserve(state, task, &ending, RTS_END_WAITING);
	if (!hit)
		return;
	// It was scheduled in while we copied: the copy may be of two activations.
	if (state->phase != phase || is_over(state, &ending)) {
		state->waiting_reported = 0;
		bpf_ringbuf_discard(hit, 0);
		return;
	}
	stack_of(&hit->wakee_stack, task);
	if (phase == PHASE_WOKEN)
		running_before(hit, task, now_ns);
	if (config.evidence_floor_ns) {
		evidence_of_hit(state, task, now_ns);
		quota_waits(state, task, now_ns);
	}
	if (config.acts)
		hit_acts(hit);
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
}

// Targets that wait for longer than asked, while they still wait.
SEC("iter/task")
int check_waiting(struct bpf_iter__task *ctx)
{
	report_open(ctx->task, config.waiting_ns, true);
	return 0;
}

// A program of the command that is at work since it began: nothing of that is judged, but where it
// is its waits that are.
static __always_inline void unslept_count(struct task_state *state, struct task_struct *task)
{
	if (config.end_kind == RTS_END_BLOCKED && state->phase == PHASE_NONE && state->program_ns &&
	    bpf_ktime_get_ns() - state->program_ns >= config.threshold_ns &&
	    filter_target(state, task))
		COUNT(unslept);
}

// At the end of the watch: what is late already and not over.
SEC("iter/task")
int check_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *state = task && task->pid ? task_state(task) : 0;

	if (state && config.end_kind == RTS_END_BLOCKED)
		cycle_cut(state, task, bpf_ktime_get_ns());
	// Its first sleep ends where it is woken.
	if (state && !task->__state)
		unslept_count(state, task);
	report_open(task, config.threshold_ns, false);
	return 0;
}

#endif
