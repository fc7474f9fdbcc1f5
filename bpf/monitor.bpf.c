// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Where the latency of every real-time task goes, for as long as the machine runs: the phases of
// each wake-up, counted by CPU and by whose it is, with the longest of each. User space turns the
// double buffer over and reads the side that nobody writes any more.
//
// The phases are those of `phases.bpf.c`. They are counted where the kernel has interrupts off,
// the return to user space apart: nothing on this CPU writes the same counters meanwhile.

#include "hidden.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/hrtimer_start")
int BPF_PROG(hrtimer_start, struct hrtimer *timer)
{
	rts_u64 expiry_ns = hrtimer_expiry_ns(timer);
	bool late = hrtimer_armed_late(timer, expiry_ns);

	sleep_armed(timer, late ? 0 : expiry_ns);
	return 0;
}

// One that a softirq serves may be interrupted by another that wakes somebody: it says nothing.
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer)
{
	struct timer_frame *frame = LOOKUP(monitor_timer, 0);
	rts_u64 expiry_ns = hrtimer_expiry_ns(timer);

	if (!frame || (bpf_core_field_exists(timer->is_soft) && timer->is_soft))
		return 0;
	frame->expiry_ns = hrtimer_was_armed_late(timer, expiry_ns) ? 0 : expiry_ns;
	frame->cpu_base = (rts_u64)timer->base->cpu_base;
	frame->entry_ns = bpf_ktime_get_ns();
	if (hrtimer_clock_was_set(timer, expiry_ns, frame->entry_ns))
		frame->expiry_ns = 0;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_expire_exit, struct hrtimer *timer)
{
	struct timer_frame *frame = LOOKUP(monitor_timer, 0);

	if (frame)
		frame->entry_ns = 0;
	return 0;
}

// What the timer interrupted is kept where its lateness may make this wake-up the longest.
static __always_inline void keep_interrupted(struct monitored *state,
		const struct timer_frame *frame, rts_u64 late_ns)
{
	struct task_struct *current;
	struct pt_regs *regs = 0;

	state->kept = 0;
	if (frame->floor_side == side_now() &&
	    late_ns < frame->floor_ns[state->group & (RTS_MONITOR_GROUPS - 1)])
		return;
	current = bpf_get_current_task_btf();
	state->kept = 1;
	state->instruction = 0;
	state->mode = 0;
	task_describe(&state->interrupted, current);
	if (config.irq_regs_offset)
		regs = (struct pt_regs *)per_cpu_word((void *)frame->cpu_base,
				config.irq_regs_offset);
	if (!regs)
		return;
	state->instruction = regs_instruction(regs);
	if (regs_user(regs))
		state->mode = RTS_MODE_USER;
	else if (!current->pid)
		state->mode = RTS_MODE_IDLE;
	else if (!interrupts_came_on(state->instruction))
		state->mode = RTS_MODE_ENABLED;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *wakee)
{
	struct timer_frame *frame;
	struct monitored *state;

	if (!may_be_meant(wakee) || !(state = monitored(wakee)))
		return 0;
	state->wake = WAKE_NONE;
	if (!group_of(state, wakee) || !(frame = LOOKUP(monitor_timer, 0)))
		return 0;
	state->wake = WAKE_WAKING;
	state->switch_ns = 0;
	state->expiry_ns = 0;
	state->kept = 0;
	state->hidden = 0;
	state->entry_ns = frame->entry_ns;
	if (!frame->entry_ns) {
		state->entry_ns = bpf_ktime_get_ns();
	} else if (frame->expiry_ns) {
		// With slack a timer may run before the last moment that it allows.
		state->expiry_ns = frame->expiry_ns < frame->entry_ns ? frame->expiry_ns :
									frame->entry_ns;
		keep_interrupted(state, frame, state->entry_ns - state->expiry_ns);
	}
	return 0;
}

// Apart from the counting, which is all that most wake-ups need.
static __noinline void longest_wakeup(void *ctx, const struct monitored *state,
		struct task_struct *wakee, struct rts_monitor_series *series, rts_u32 phase)
{
	rts_u64 late_ns = state->expiry_ns ? state->entry_ns - state->expiry_ns : 0;
	struct rts_monitor_worst *worst;
	struct timer_frame *frame;

	worst = worst_begin(series, state, wakee, phase, state->wakeup_ns);
	if (!worst)
		return;
	if (phase != RTS_PHASE_WAKEUP && late_ns >= state->wakeup_ns - state->entry_ns) {
		blame_interrupted(worst, state);
		frame = LOOKUP(monitor_timer, 0);
		// Still inside of the timer's interrupt: what lies below it is what it interrupted.
		if (frame && frame->entry_ns == state->entry_ns && worst->culprit.tid >= 0)
			stack_here(&worst->stack, ctx);
	} else {
		blame_current(worst, ctx);
	}
	worst_end(series, phase);
	floor_follows(series, side_now(), state->group);
}

static __always_inline void count_wakeup(void *ctx, const struct monitored *state,
		struct task_struct *wakee, rts_u32 side, struct rts_monitor_series *series,
		rts_u32 phase, rts_u64 value_ns)
{
	if (measured(series, side, state, phase, value_ns, true))
		longest_wakeup(ctx, state, wakee, series, phase);
}

// On the CPU that gets the task.
SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *wakee)
{
	struct rts_monitor_series *series;
	struct monitored *state;
	rts_u64 now_ns;
	rts_u32 side;

	if (!may_be_meant(wakee) || !(state = monitored(wakee)) || state->wake != WAKE_WAKING)
		return 0;
	state->wake = WAKE_CROSSED;
	// It had not left its CPU yet.
	if (wakee->on_cpu)
		return 0;
	state->wake = WAKE_NONE;
	now_ns = bpf_ktime_get_ns();
	if ((rts_s64)(now_ns - state->entry_ns) < 0) {
		MONITOR_LOSS(unpaired);
		return 0;
	}
	state->wakeup_ns = now_ns;
	state->wake = WAKE_QUEUED;
	side = side_now();
	series = series_of(side, state->group);
	if (!series)
		return 0;
	count_wakeup(ctx, state, wakee, side, series, RTS_PHASE_WAKEUP, now_ns - state->entry_ns);
	if (!state->expiry_ns)
		return 0;
	count_wakeup(ctx, state, wakee, side, series, RTS_PHASE_TIMER,
			state->entry_ns - state->expiry_ns);
	count_wakeup(ctx, state, wakee, side, series, RTS_PHASE_TIMER_WAKEUP,
			now_ns - state->expiry_ns);
	return 0;
}

static __noinline void longest_switch(void *ctx, const struct monitored *state,
		struct task_struct *next, struct rts_monitor_series *series, rts_u32 phase)
{
	rts_u64 late_ns = state->expiry_ns ? state->entry_ns - state->expiry_ns : 0;
	struct rts_monitor_worst *worst;

	worst = worst_begin(series, state, next, phase, state->switch_ns);
	if (!worst)
		return;
	// Of a sum, who had the CPU in its longest part.
	if (phase == RTS_PHASE_TIMER_WAKEUP_SWITCH &&
	    late_ns > state->switch_ns - state->wakeup_ns)
		blame_interrupted(worst, state);
	else
		blame_current(worst, ctx);
	worst_end(series, phase);
	floor_follows(series, side_now(), state->group);
}

static __always_inline void count_switch(void *ctx, const struct monitored *state,
		struct task_struct *next, rts_u32 side, struct rts_monitor_series *series,
		rts_u32 phase, rts_u64 value_ns)
{
	if (measured(series, side, state, phase, value_ns, true))
		longest_switch(ctx, state, next, series, phase);
}

// Only the first time after a wake-up: who is preempted afterwards is late by his own run.
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct timer_frame *frame = LOOKUP(monitor_timer, 0);
	struct rts_monitor_series *series;
	struct monitored *state;
	struct pt_regs *regs;
	rts_u64 now_ns;
	rts_u32 side;
	rts_u8 wake;

	if (frame) {
		frame->came = (rts_u64)next;
		frame->came_tid = next->pid;
	}
	if (!next->pid || !may_be_meant(next) || !(state = monitored(next)))
		return 0;
	wake = state->wake;
	if (wake != WAKE_RUNS)
		state->wake = WAKE_NONE;
	comes_on(state, next, wake);
	if (wake != WAKE_QUEUED)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if ((rts_s64)(now_ns - state->wakeup_ns) < 0) {
		MONITOR_LOSS(unpaired);
		return 0;
	}
	state->switch_ns = now_ns;
	state->armed.timed_arrival = state->counts.arrivals;
	side = side_now();
	series = series_of(side, state->group);
	if (!series)
		return 0;
	count_switch(ctx, state, next, side, series, RTS_PHASE_SWITCH, now_ns - state->wakeup_ns);
	if (state->expiry_ns)
		count_switch(ctx, state, next, side, series, RTS_PHASE_TIMER_WAKEUP_SWITCH,
				now_ns - state->expiry_ns);
	if (!monitor_config.until_return || (next->flags & PF_KTHREAD))
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(next);
	// Out of an exception no system call returns.
	if (regs && !regs_in_exception(regs))
		state->wake = WAKE_RUNS;
	return 0;
}

static __always_inline void count_return(struct monitored *state, struct task_struct *task,
		rts_u32 phase, rts_u64 value_ns, rts_u64 now_ns)
{
	rts_u32 side = side_now();
	struct rts_monitor_series *series = series_of(side, state->group);
	struct rts_monitor_worst *worst;

	if (!series || !measured(series, side, state, phase, value_ns, false))
		return;
	worst = worst_begin(series, state, task, phase, now_ns);
	if (!worst)
		return;
	worst->value_ns = value_ns;
	worst->parts_ns[3] = now_ns - state->switch_ns;
	worst_end(series, phase);
}

// Interrupts are on here, and the task may be preempted.
SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct monitored *state;
	rts_u64 now_ns;

	if (!may_be_meant(current) || !(state = monitored(current)))
		return 0;
	runs(state, current, false);
	if (state->wake != WAKE_RUNS)
		return 0;
	state->wake = WAKE_NONE;
	now_ns = bpf_ktime_get_ns();
	count_return(state, current, RTS_PHASE_RETURN, now_ns - state->switch_ns, now_ns);
	if (state->expiry_ns)
		count_return(state, current, RTS_PHASE_TOTAL, now_ns - state->expiry_ns, now_ns);
	return 0;
}

// Whether a task is the monitor's own, or of a process that it started.
static __always_inline bool is_ours(struct task_struct *task)
{
	return task->tgid == own_tgid || meant_is_of_child(task);
}

static __always_inline void monitor_resolve(struct task_struct *task, const char *comm,
		const struct monitored *parent, enum resolving how)
{
	struct monitored *state;

	state = bpf_task_storage_get(&monitor_tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		MONITOR_LOSS(storage_failures);
		return;
	}
	state->passes = (task->flags & PF_KTHREAD) && filter_passes(comm);
	state->ours = is_ours(task);
	if (config.target_kind != RTS_TARGET_FLAGGED)
		return;
	state->meant.program = filter_program(&state->meant, task, comm,
			parent ? &parent->meant : 0, how);
	state->target = filter_asked_for(&state->meant, task, comm);
}

SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task, rts_u64 clone_flags)
{
	char comm[RTS_COMM_LENGTH];

	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	monitor_resolve(task, comm, monitored(bpf_get_current_task_btf()), RESOLVE_BORN);
	return 0;
}

// exec renames too.
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *name)
{
	char comm[RTS_COMM_LENGTH] = {};

	bpf_probe_read_kernel_str(comm, sizeof(comm), name);
	monitor_resolve(task, comm, 0, task_in_exec(task) ? RESOLVE_PROGRAM : RESOLVE_NAMED);
	return 0;
}

SEC("iter/task")
int resolve_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	char comm[RTS_COMM_LENGTH];

	meant_know_ourselves(config.levels_up);
	if (!task || !task->pid)
		return 0;
	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	monitor_resolve(task, comm, 0, RESOLVE_FOUND);
	return 0;
}
