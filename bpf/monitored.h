// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What the monitor keeps of each task, and how a sample of a phase is counted: by CPU and by whose
// it is, with the longest of each.

#ifndef RTSCOPE_MONITORED_H
#define RTSCOPE_MONITORED_H

#include "filter.h"
#include "timer.h"
#include "monitor.h"

const volatile struct rts_monitor_config monitor_config SEC(".rodata.monitor");

// CROSSED: woken before it had left its CPU.
enum { WAKE_NONE = 0, WAKE_WAKING = 1, WAKE_QUEUED = 2, WAKE_RUNS = 3, WAKE_CROSSED = 4 };

// A task's own counts of what it did, as they were when it was last seen to come on a CPU.
struct seen_counts {
	rts_u64 sleeps;
	rts_u64 arrivals; // on a CPU
	rts_u64 vruntime; // goes on only while it is no real-time task
};

// A task's last arming of the timer that it sleeps with, and its counts of then.
struct armed_sleep {
	rts_u64 expiry_ns; // 0: none, or one that was over
	rts_u64 sleeps;
	rts_u64 arrivals;
	rts_u64 waited_ns; // for CPUs, in all
	rts_u64 timed_arrival; // the count of the arrival that `switch_ns` is of
	rts_u64 ahead_ns; // CLOCK_MONOTONIC, of the scheduler's clock; 0: not known
	rts_u64 ahead_at_ns; // when that was found
};

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
	rts_u8 passes : 1; // resolved once: a kernel thread that only passes on the work of others
	rts_u8 ours : 1;   // resolved once: of the monitor, or of the watch that it started
	rts_u8 kept;   // what the timer interrupted is below
	rts_u8 mode;
	rts_u8 counted; // `counts` are known
	rts_u8 hidden;	// its instants are by the kernel's accounts
	struct seen_counts counts;
	struct armed_sleep armed;
	rts_u64 instruction; // 0: not known
	struct rts_task interrupted;
	struct meant meant; // of its control groups, where some are asked for, and of its program
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
	rts_s32 came_tid; // who was last seen to come on this CPU
	rts_u64 came;	  // its address
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

#define MONITOR_LOSSES(field, count)                                       \
	do {                                                               \
		rts_u32 cpu = bpf_get_smp_processor_id();                  \
		struct rts_monitor_losses *losses =                        \
				bpf_map_lookup_elem(&monitor_losses, &cpu); \
		if (losses)                                                \
			losses->field += (count);                          \
	} while (0)
#define MONITOR_LOSS(field) MONITOR_LOSSES(field, 1)

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
	bool asked_for = state->target || group_has_member(&state->meant, task);
	bool named = asked_for || (config.prios_length && filter_prio(task->prio));

	if (state->ours && !asked_for)
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
	worst->mode = state->hidden ? RTS_MONITOR_HIDDEN : 0;
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

#endif
