// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Where the latency of every real-time task goes, for as long as the machine runs: the phases of
// each wake-up, counted by CPU and by whose it is, with the longest of each. User space turns the
// double buffer over and reads the side that nobody writes any more.
//
// The phases are those of `phases.bpf.c`. They are counted where the kernel has interrupts off,
// the return to user space apart: nothing on this CPU writes the same counters meanwhile.

#include "filter.h"
#include "timer.h"
#include "monitor.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct rts_monitor_config monitor_config SEC(".rodata.monitor");

enum { WAKE_NONE = 0, WAKE_WAKING = 1, WAKE_QUEUED = 2, WAKE_RUNS = 3 };

// A task's last wake-up, and whether it is a target.
struct monitored {
	// Of every wake-up: one line of the cache.
	rts_u64 expiry_ns; // 0: no timer woke it, or one that says nothing
	rts_u64 entry_ns;  // the timer's function began, or the wake-up did
	rts_u64 wakeup_ns;
	rts_u64 switch_ns;
	rts_u8 wake;
	rts_u8 group;
	rts_u8 target; // resolved once: by name, tid or process
	rts_u8 passes; // resolved once: a kernel thread that only passes on the work of others
	rts_u8 kept;   // what the timer interrupted is below
	rts_u8 mode;
	rts_u8 padding[2];
	rts_u64 instruction; // 0: not known
	struct rts_task interrupted;
};

// The timer's function that runs on this CPU. The kernel has interrupts off meanwhile: whoever is
// woken is woken by it.
struct timer_frame {
	rts_u64 entry_ns; // 0: none runs
	rts_u64 expiry_ns;
	rts_u64 cpu_base;
	// From which lateness on a wake-up may be the longest here, by group; of this side.
	rts_u64 floor_ns[RTS_MONITOR_GROUPS];
	rts_u32 floor_side;
	rts_u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct monitored);
} monitor_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct timer_frame);
} monitor_timer SEC(".maps");

// Which side is written now; user space maps it, which it cannot what is static.
volatile rts_u32 monitor_side SEC(".bss.side");

// By side, CPU and group. User space maps what is counted, and reads it without a system
// call.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_monitor_series);
} monitor_series SEC(".maps");

// By side, CPU and phase. User space sets the length of all three.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_monitor_linear);
} monitor_linear SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_monitor_losses);
} monitor_losses SEC(".maps");

// The process of the monitor, as the kernel numbers it: whoever reads the iterator at the start.
static rts_s32 monitor_tgid;

#define MONITOR_LOSS(field)                                                \
	do {                                                               \
		rts_u32 cpu = bpf_get_smp_processor_id();                  \
		struct rts_monitor_losses *losses =                        \
				bpf_map_lookup_elem(&monitor_losses, &cpu); \
		if (losses)                                                \
			losses->field++;                                   \
	} while (0)

static __always_inline struct monitored *monitored(struct task_struct *task)
{
	return bpf_task_storage_get(&monitor_tasks, task, 0, 0);
}

// Whether a task may be a target: the test before its storage is looked up.
static __always_inline bool may_be_meant(const struct task_struct *task)
{
	return config.target_kind != RTS_TARGET_REAL_TIME || monitor_config.every_task ||
	       task->prio < PRIO_FAIR_MIN;
}

// The groups of a task, as bits; whether it is measured at all.
static __always_inline bool group_of(struct monitored *state, struct task_struct *task)
{
	bool real_time = task->prio < PRIO_FAIR_MIN && !state->passes;
	bool named = state->target || (config.prios_length && filter_prio(task->prio));

	if (task->tgid == monitor_tgid && !state->target)
		return false;
	state->group = (real_time ? RTS_GROUP_REAL_TIME : 0) | (named ? RTS_GROUP_NAMED : 0);
	return monitor_config.every_task || named ||
	       (real_time && (config.target_kind == RTS_TARGET_REAL_TIME || config.real_time));
}

static __always_inline rts_u32 side_now(void)
{
	return monitor_side & 1;
}

static __always_inline void count_linear(rts_u32 side, rts_u32 phase, rts_u64 value_ns)
{
	rts_u32 key = (side * config.cpus_max + bpf_get_smp_processor_id()) * RTS_MONITOR_PHASES +
		      phase;
	struct rts_monitor_linear *linear = bpf_map_lookup_elem(&monitor_linear, &key);
	rts_u64 bucket = value_ns / 1000;

	if (bucket > RTS_LINEAR_MAX)
		bucket = RTS_LINEAR_MAX;
	if (linear)
		__sync_fetch_and_add(&linear->counts[bucket], 1);
}

static __always_inline struct rts_monitor_series *series_of(rts_u32 side, rts_u8 group)
{
	rts_u32 cpu = side * config.cpus_max + bpf_get_smp_processor_id();

	return LOOKUP(monitor_series,
		      cpu * RTS_MONITOR_GROUPS + (group & (RTS_MONITOR_GROUPS - 1)));
}

// Counts a sample; whether it is the longest of this CPU's interval. `alone` says that nothing else
// on this CPU writes the series now.
static __always_inline bool measured(struct rts_monitor_series *series, rts_u32 side,
		const struct monitored *state, rts_u32 phase, rts_u64 value_ns, bool alone)
{
	struct rts_monitor_sums *sums = &series->sums[phase];
	rts_u32 bucket = histogram_bucket(value_ns), *count;

	if (bucket >= RTS_BUCKETS_MAX)
		return false;
	count = &series->buckets[bucket][phase];
	if (alone) {
		*count += *count != ~0u;
		sums->sum_ns += value_ns;
	} else {
		__sync_fetch_and_add(count, 1);
		__sync_fetch_and_add(&sums->sum_ns, value_ns);
	}
	if (monitor_config.linear && (state->group & RTS_GROUP_REAL_TIME))
		count_linear(side, phase, value_ns);
	if (~value_ns > sums->min_inverted_ns)
		sums->min_inverted_ns = ~value_ns;
	if (value_ns < sums->max_ns || (value_ns == sums->max_ns && value_ns))
		return false;
	sums->max_ns = value_ns;
	return true;
}

static __always_inline rts_s32 call_of(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return (task->flags & PF_KTHREAD) || !regs ? -1 : regs_call(regs);
}

// Begins to write the longest sample of a series; nothing when another one is being written.
static __always_inline struct rts_monitor_worst *worst_begin(struct rts_monitor_series *series,
		const struct monitored *state, struct task_struct *victim, rts_u32 phase,
		rts_u64 now_ns)
{
	struct rts_monitor_worst *worst;

	if (phase >= RTS_MONITOR_PHASES)
		return 0;
	if (__sync_val_compare_and_swap(&series->sums[phase].busy, 0, 1)) {
		MONITOR_LOSS(worst_missed);
		return 0;
	}
	worst = &series->worst[phase];
	worst->value_ns = series->sums[phase].max_ns;
	worst->at_ns = now_ns;
	worst->timer = !!state->expiry_ns;
	worst->parts_ns[0] = state->expiry_ns ? state->entry_ns - state->expiry_ns : 0;
	worst->parts_ns[1] = state->wakeup_ns - state->entry_ns;
	worst->parts_ns[2] = state->switch_ns ? state->switch_ns - state->wakeup_ns : 0;
	worst->parts_ns[3] = 0;
	worst->cpu = bpf_get_smp_processor_id();
	worst->call = call_of(victim);
	worst->instruction = 0;
	worst->mode = 0;
	worst->culprit.tid = -1;
	worst->stack.length = 0;
	task_describe(&worst->victim, victim);
	return worst;
}

static __always_inline void worst_end(struct rts_monitor_series *series, rts_u32 phase)
{
	__sync_lock_test_and_set(&series->sums[phase].busy, 0);
}

// A lateness below this makes no wake-up the longest whose longest part it is: that of a timer has
// to be longer than any before, and a sum is at most so many times as long as its longest part.
static __always_inline void floor_follows(const struct rts_monitor_series *series, rts_u32 side,
		rts_u8 group)
{
	const struct rts_monitor_sums *sums = series->sums;
	struct timer_frame *frame = LOOKUP(monitor_timer, 0);
	rts_u64 floor_ns = sums[RTS_PHASE_TIMER].max_ns;

	if (!frame)
		return;
	if (frame->floor_side != side) {
		__builtin_memset(frame->floor_ns, 0, sizeof(frame->floor_ns));
		frame->floor_side = side;
	}
	if (floor_ns > sums[RTS_PHASE_TIMER_WAKEUP].max_ns / 2)
		floor_ns = sums[RTS_PHASE_TIMER_WAKEUP].max_ns / 2;
	if (floor_ns > sums[RTS_PHASE_TIMER_WAKEUP_SWITCH].max_ns / 3)
		floor_ns = sums[RTS_PHASE_TIMER_WAKEUP_SWITCH].max_ns / 3;
	frame->floor_ns[group & (RTS_MONITOR_GROUPS - 1)] = floor_ns;
}

// Who had the CPU when the timer came.
static __always_inline void blame_interrupted(struct rts_monitor_worst *worst,
		const struct monitored *state)
{
	if (!state->kept)
		return;
	worst->culprit = state->interrupted;
	worst->instruction = state->instruction;
	worst->mode = state->mode;
}

static __always_inline void blame_current(struct rts_monitor_worst *worst, void *ctx)
{
	task_describe(&worst->culprit, bpf_get_current_task_btf());
	stack_here(&worst->stack, ctx);
}

SEC("tp_btf/hrtimer_start")
int BPF_PROG(hrtimer_start, struct hrtimer *timer)
{
	hrtimer_armed_late(timer, hrtimer_expiry_ns(timer));
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
	state->wake = WAKE_NONE;
	// It had not left its CPU yet.
	if (wakee->on_cpu)
		return 0;
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
	struct rts_monitor_series *series;
	struct monitored *state;
	struct pt_regs *regs;
	rts_u64 now_ns;
	rts_u32 side;

	if (!next->pid || !may_be_meant(next) || !(state = monitored(next)) ||
	    state->wake != WAKE_QUEUED)
		return 0;
	state->wake = WAKE_NONE;
	now_ns = bpf_ktime_get_ns();
	if ((rts_s64)(now_ns - state->wakeup_ns) < 0) {
		MONITOR_LOSS(unpaired);
		return 0;
	}
	state->switch_ns = now_ns;
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

	if (!may_be_meant(current) || !(state = monitored(current)) || state->wake != WAKE_RUNS)
		return 0;
	state->wake = WAKE_NONE;
	now_ns = bpf_ktime_get_ns();
	count_return(state, current, RTS_PHASE_RETURN, now_ns - state->switch_ns, now_ns);
	if (state->expiry_ns)
		count_return(state, current, RTS_PHASE_TOTAL, now_ns - state->expiry_ns, now_ns);
	return 0;
}

static __always_inline void monitor_resolve(struct task_struct *task, const char *comm)
{
	struct monitored *state;

	state = bpf_task_storage_get(&monitor_tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		MONITOR_LOSS(storage_failures);
		return;
	}
	state->passes = (task->flags & PF_KTHREAD) && filter_passes(comm);
	if (config.target_kind == RTS_TARGET_FLAGGED)
		state->target = filter_asked_for(task, comm);
}

SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task, rts_u64 clone_flags)
{
	char comm[RTS_COMM_LENGTH];

	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	monitor_resolve(task, comm);
	return 0;
}

// exec renames too.
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *name)
{
	char comm[RTS_COMM_LENGTH] = {};

	bpf_probe_read_kernel_str(comm, sizeof(comm), name);
	monitor_resolve(task, comm);
	return 0;
}

SEC("iter/task")
int resolve_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	char comm[RTS_COMM_LENGTH];

	monitor_tgid = bpf_get_current_pid_tgid() >> 32;
	if (!task || !task->pid)
		return 0;
	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	monitor_resolve(task, comm);
	return 0;
}
