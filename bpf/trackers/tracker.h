// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What all trackers share: whose intervals are measured, the counting, the hits. A tracker is one
// file beside this one; it says when an interval begins and ends, and of what kind it is.
//
// The targets, the thresholds and their configuration are the chain's (`../filter.h`); its maps are
// not, and user space creates none of them that a tracker does not use.

#ifndef RTSCOPE_TRACKERS_TRACKER_H
#define RTSCOPE_TRACKERS_TRACKER_H

#include "../action.h"
#include "../filter.h"
#include "../hit.h"
#include "record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { BPF_MAP_TYPE_PERCPU_HASH = 5, BPF_NOEXIST = 1, BPF_EXIST = 2 };

const volatile struct rts_tracker_config tracker_config SEC(".rodata.tracker");

// What is open for a task, and whether it is a target.
struct tracker_task {
	rts_u64 begin_ns; // 0: nothing is open
	rts_u64 key;
	rts_u64 detail;
	struct rts_task other;
	rts_u8 series;
	rts_u8 reported;  // it was sent although it had not ended
	rts_u8 has_stack; // its place in `tracker_stacks` is of this interval
	rts_u8 sure;      // `detail` needs no proof
	rts_u8 padding[4];
	struct meant meant;
#ifdef TRACKER_IN_TASKS
	TRACKER_IN_TASKS of_tracker; // what this tracker keeps besides
#endif
};

// By series.
struct tracker_totals {
	rts_u64 next_hit_ns;
	rts_u64 worst_hit_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tracker_task);
} tracker_tasks SEC(".maps");

// Apart: only trackers that are asked for stacks, and have a use for it, give tasks one.
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rts_stack);
} tracker_stacks SEC(".maps");

// Preallocated: nothing is allocated where an interval begins.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RTS_OPEN_MAX);
	__type(key, rts_u64);
	__type(value, struct rts_tracker_open);
} tracker_open SEC(".maps");

// By half and series. User space that counts by intervals of time reads one half while the other is
// written; who never turns has the first one alone.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * RTS_SERIES_MAX);
	__type(key, rts_u32);
	__type(value, struct rts_tracker_series);
} tracker_series SEC(".maps");

// Which half is written now.
volatile rts_u32 tracker_side SEC(".bss.side");

#define SERIES_OF(series)                                                    \
	LOOKUP(tracker_series,                                               \
	       (tracker_config.turns ? tracker_side & 1 : 0) * RTS_SERIES_MAX + (series))

#ifdef TRACKER_KEY_HISTOGRAMS
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, RTS_WIDE_KEYS_MAX);
	__type(key, struct rts_tracker_key);
	__type(value, struct rts_tracker_wide_sum);
} tracker_keys SEC(".maps");

// What a row begins as: too large for the stack.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_tracker_wide_sum);
} tracker_new_key SEC(".maps");
#else
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, RTS_KEYS_MAX);
	__type(key, struct rts_tracker_key);
	__type(value, struct rts_tracker_sum);
} tracker_keys SEC(".maps");
#endif

// Those of keys that are small numbers, in trackers that have such: no table is searched, which
// costs more than all the rest where it is not in the caches.
#ifdef TRACKER_SMALL_KEYS
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RTS_SMALL_SERIES * RTS_SMALL_KEYS);
	__type(key, rts_u32);
	__type(value, struct rts_tracker_sum);
} tracker_small SEC(".maps");
#endif

// The first keys of each CPU, in trackers that have neither of both.
#if !defined(TRACKER_SMALL_KEYS) && !defined(TRACKER_KEY_HISTOGRAMS)
#define TRACKER_ROWS
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << RTS_ROWS_BITS);
	__type(key, rts_u32);
	__type(value, struct rts_tracker_row);
} tracker_rows SEC(".maps");
#endif

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_tracker_losses);
} tracker_losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RTS_SERIES_MAX);
	__type(key, rts_u32);
	__type(value, struct tracker_totals);
} tracker_totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} tracker_hits SEC(".maps");

// Of `struct rts_tracker_losses` the counter at this place. Apart, as all that is rare: what each
// call runs through lies together.
static __noinline int tracker_loses(rts_u32 place)
{
	struct rts_tracker_losses *losses = LOOKUP(tracker_losses, 0);

	if (losses && place < sizeof(*losses))
		*(rts_u64 *)((void *)losses + (place & ~7u)) += 1;
	return 0;
}

#define TRACKER_LOSS(field) tracker_loses(__builtin_offsetof(struct rts_tracker_losses, field))

static __always_inline struct tracker_task *tracker_task(struct task_struct *task)
{
	return bpf_task_storage_get(&tracker_tasks, task, 0, 0);
}

// Whether a task is of whoever counts. A monitor is the watch that it started, too; the child of a
// watch is the command that it watches.
static __always_inline bool tracker_is_ours(const struct task_struct *task)
{
	return task->tgid == own_tgid || (tracker_config.turns && meant_is_of_child(task));
}

// Whether this task's intervals are measured, as the chain's targets are chosen; the watch's own
// are only where its name was asked for.
static __always_inline bool tracker_wants(struct tracker_task *state, struct task_struct *task)
{
	struct meant *meant = &state->meant;

	if (task->prio > tracker_config.prio_max || (meant->ours && !meant->target))
		return false;
	if (tracker_config.target_kind == RTS_TARGET_REAL_TIME)
		return task->prio < PRIO_FAIR_MIN && !meant->passes;
	return tracker_config.target_kind == RTS_TARGET_ALL || filter_named(meant, task);
}

// Of a task whose storage is not at hand: every task needs none.
static __always_inline bool tracker_wants_task(struct task_struct *task)
{
	struct tracker_task *state;

	if (tracker_config.target_kind == RTS_TARGET_ALL)
		return task->prio <= tracker_config.prio_max && !tracker_is_ours(task);
	if (tracker_config.target_kind == RTS_TARGET_REAL_TIME && task->prio >= PRIO_FAIR_MIN)
		return false;
	state = tracker_task(task);
	return state && tracker_wants(state, task);
}

// Of a task that is interrupted: an interrupt is one whomever it interrupts, the watch too.
static __always_inline bool tracker_wants_interrupted(struct task_struct *task)
{
	if (tracker_config.target_kind == RTS_TARGET_ALL)
		return task->prio <= tracker_config.prio_max;
	return tracker_wants_task(task);
}

// Whether intervals of this CPU are measured.
static __always_inline bool tracker_cpu(void)
{
	return !tracker_config.cpus_filtered || filter_cpu();
}

static __always_inline bool tracker_only(rts_u64 key)
{
	if (!tracker_config.only_length)
		return true;
	for (rts_u32 i = 0; i < RTS_ONLY_MAX && i < tracker_config.only_length; i++)
		if (tracker_config.only[i] == key)
			return true;
	return false;
}

// NMIs, hard interrupts and a softirq being served (include/linux/preempt.h).
#define IN_INTERRUPT 0xff0100

// Whether the current task does what happens here itself, and is not just interrupted by it. The
// CPU's count of that lies at a known distance from its run queue, which the task points at; where
// nobody knows the distance, no task is accused.
static __always_inline bool tracker_is_by_task(void)
{
	struct task_struct *current = bpf_get_current_task_btf();
	rts_u32 count = IN_INTERRUPT;
	rts_u64 queue;

	if (!tracker_config.preempt_count_offset ||
	    !bpf_core_field_exists(((struct cfs_rq *)0)->rq))
		return false;
	queue = (rts_u64)current->se.cfs_rq->rq;
	bpf_probe_read_kernel(&count, sizeof(count),
			(const void *)(queue + tracker_config.preempt_count_offset));
	return !(count & IN_INTERRUPT);
}

static __always_inline void tracker_nobody(struct rts_task *task)
{
	__builtin_memset(task, 0, sizeof(*task));
	task->tid = -1;
}

// Who wakes somebody here: an interrupt is nobody.
static __always_inline void tracker_waker(struct rts_task *waker)
{
	if (tracker_is_by_task())
		task_describe(waker, bpf_get_current_task_btf());
	else
		tracker_nobody(waker);
}

// An interval that ends here and now, with nobody in it yet.
static __always_inline void tracker_ends(struct rts_tracked *tracked, rts_u64 begin_ns,
		rts_u64 now_ns, rts_u64 key, rts_u8 series)
{
	__builtin_memset(tracked, 0, sizeof(*tracked));
	tracked->begin_ns = begin_ns;
	tracked->end_ns = now_ns;
	tracked->key = key;
	tracked->series = series;
	tracked->cpu = bpf_get_smp_processor_id();
	tracked->task.tid = -1;
	tracked->other.tid = -1;
}

// What an interval is counted by. Who was in it is looked for only where somebody is told.
struct tracker_interval {
	rts_u64 begin_ns;
	rts_u64 end_ns;
	rts_u64 key;
	rts_u64 detail;    // of the row, not of each interval
	const char *label; // 0: none
	rts_u32 group;
	rts_u8 series;
};

// Of a name of the kernel's that is longer than a label, its beginning.
#define tracker_label(label, name)                            \
	do {                                                  \
		__builtin_memcpy(label, name, RTS_COMM_LENGTH); \
		(label)[RTS_COMM_LENGTH - 1] = 0;             \
	} while (0)

// Makes room for a row; another CPU may have done so.
static __noinline bool tracker_new_sum(const struct rts_tracker_key *key)
{
#ifdef TRACKER_KEY_HISTOGRAMS
	struct rts_tracker_wide_sum *new = LOOKUP(tracker_new_key, 0);

	if (!new)
		return false;
	bpf_map_update_elem(&tracker_keys, key, new, BPF_NOEXIST);
#else
	struct rts_tracker_sum new = {};

	bpf_map_update_elem(&tracker_keys, key, &new, BPF_NOEXIST);
#endif
	return true;
}

// Keys may be pointers, with which the verifier lets nobody compute: a copy of half of one is a
// number.
static __always_inline rts_u32 tracker_half(rts_u64 key)
{
	rts_u32 half;

	barrier_var(key);
	asm volatile("%0 = %1" : "=w"(half) : "w"((rts_u32)key));
	return half;
}

#ifdef TRACKER_ROWS
// The row of a key that came first to its place in the array; none for a later one, which the table
// has. An interrupt may come between and count in the table: both are added up.
static __noinline struct rts_tracker_sum *tracker_row(const struct rts_tracker_key *key)
{
	rts_u32 mixed = (tracker_half(key->key) + key->group + key->series) * 0x9e3779b9u;
	struct rts_tracker_row *row = LOOKUP(tracker_rows, mixed >> (32 - RTS_ROWS_BITS));
	rts_u32 series = key->series + 1;

	if (!row)
		return 0;
	if (!row->key.series &&
	    !__sync_val_compare_and_swap(&row->key.series, 0, series)) {
		row->key.group = key->group;
		row->key.key = key->key;
	}
	if (row->key.key != key->key || row->key.group != key->group || row->key.series != series)
		return 0;
	return &row->sum;
}
#endif

// The row in the table.
static __noinline struct rts_tracker_sum *tracker_table_row(const struct rts_tracker_key *key)
{
	struct rts_tracker_sum *sum = bpf_map_lookup_elem(&tracker_keys, key);

	if (!sum && tracker_new_sum(key))
		sum = bpf_map_lookup_elem(&tracker_keys, key);
	return sum;
}

static __always_inline struct rts_tracker_sum *tracker_sum(const struct tracker_interval *interval)
{
	struct rts_tracker_key key = {
		.key = interval->key,
		.group = interval->group,
		.series = interval->series,
	};
#ifdef TRACKER_ROWS
	struct rts_tracker_sum *sum;
#endif
#ifdef TRACKER_SMALL_KEYS
	rts_u64 place = interval->key - RTS_SMALL_FIRST;

	if (place < RTS_SMALL_KEYS)
		return LOOKUP(tracker_small, interval->series * RTS_SMALL_KEYS + place);
#endif
#ifdef TRACKER_ROWS
	sum = tracker_row(&key);
	if (sum)
		return sum;
#endif
	return tracker_table_row(&key);
}

static __always_inline void tracker_sum_up(const struct tracker_interval *interval,
		rts_u64 duration_ns, rts_u32 bucket)
{
	struct rts_tracker_sum *sum = tracker_sum(interval);

	if (!sum) {
		TRACKER_LOSS(keys_full);
		return;
	}
	// The first on this CPU gives the row its name.
	if (!sum->count) {
		sum->detail = interval->detail;
		if (interval->label)
			__builtin_memcpy(sum->label, interval->label, RTS_COMM_LENGTH);
	}
	sum->count++;
	sum->sum_ns += duration_ns;
	if (duration_ns > sum->max_ns)
		sum->max_ns = duration_ns;
#ifdef TRACKER_KEY_HISTOGRAMS
	if (bucket < RTS_BUCKETS_MAX)
		((struct rts_tracker_wide_sum *)sum)->buckets[bucket]++;
#endif
}

static __always_inline bool tracker_allows(struct rts_tracker_series *series,
		rts_u32 number, rts_u64 duration_ns, rts_u64 now_ns)
{
	struct tracker_totals *totals = LOOKUP(tracker_totals, number);
	rts_u64 next_ns;

	if (!totals)
		return false;
	next_ns = totals->next_hit_ns;
	if ((config.new_worst_only && duration_ns <= totals->worst_hit_ns) || now_ns < next_ns)
		return false;
	// Two CPUs that race for the same place: one wins, the other is counted as suppressed.
	if (config.rate_limit_ns && __sync_val_compare_and_swap(&totals->next_hit_ns, next_ns,
					now_ns + config.rate_limit_ns) != next_ns)
		return false;
	if (config.new_worst_only)
		totals->worst_hit_ns = duration_ns;
	return true;
}

// A place in the ring for an interval that may be reported, without stacks; to be submitted.
static __always_inline struct rts_tracker_hit *tracker_reserve(const struct rts_tracked *tracked)
{
	struct rts_tracker_series *series = SERIES_OF(tracked->series);
	rts_u64 duration_ns = tracked->end_ns - tracked->begin_ns;
	struct rts_tracker_hit *hit;

	if (!series)
		return 0;
	if (!tracker_allows(series, tracked->series, duration_ns, tracked->end_ns)) {
		series->suppressed++;
		return 0;
	}
	hit = bpf_ringbuf_reserve(&tracker_hits, sizeof(*hit), 0);
	if (!hit) {
		TRACKER_LOSS(lost);
		return 0;
	}
	series->hits++;
	hit->number = series->hits;
	hit->tracked = *tracked;
	hit->stack.length = 0;
	hit->other_stack.length = 0;
	return hit;
}

// Counts an interval; whether it is the longest yet or is to be reported, so that somebody wants to
// know who was in it: that goes to `tracker_told`.
static __always_inline bool tracker_counts(const struct tracker_interval *interval)
{
	struct rts_tracker_series *series = SERIES_OF(interval->series);
	rts_u64 duration_ns = interval->end_ns - interval->begin_ns;
	rts_u32 bucket = histogram_bucket(duration_ns);
	bool is_longest;

	// Not an interval: the clocks of two CPUs differ by more than it is long.
	if ((rts_s64)duration_ns < 0) {
		TRACKER_LOSS(unpaired);
		return false;
	}
	if (!series || bucket >= RTS_BUCKETS_MAX)
		return false;
	if (!series->count || duration_ns < series->min_ns)
		series->min_ns = duration_ns;
	is_longest = !series->count || duration_ns > series->max_ns;
	if (is_longest)
		series->max_ns = duration_ns;
	series->count++;
	series->sum_ns += duration_ns;
	series->buckets[bucket]++;
	tracker_sum_up(interval, duration_ns, bucket);
	return is_longest || duration_ns >= tracker_config.threshold_ns;
}

// What was counted, with nobody in it yet.
static __always_inline void tracker_of(struct rts_tracked *tracked,
		const struct tracker_interval *interval)
{
	tracker_ends(tracked, interval->begin_ns, interval->end_ns, interval->key, interval->series);
	tracked->group = interval->group;
	if (interval->label)
		__builtin_memcpy(tracked->label, interval->label, RTS_COMM_LENGTH);
}

// Keeps an interval that was counted as the longest, if it still is; a place in the ring when it is
// to be reported.
static __always_inline struct rts_tracker_hit *tracker_told(const struct rts_tracked *tracked)
{
	struct rts_tracker_series *series = SERIES_OF(tracked->series);
	rts_u64 duration_ns = tracked->end_ns - tracked->begin_ns;

	if (!series)
		return 0;
	if (duration_ns == series->max_ns)
		series->worst = *tracked;
	return duration_ns >= tracker_config.threshold_ns ? tracker_reserve(tracked) : 0;
}

// Counts an interval of which everything is known, as `tracker_counts`.
static __always_inline bool tracker_counts_known(const struct rts_tracked *tracked)
{
	struct tracker_interval interval = {
		.begin_ns = tracked->begin_ns,
		.end_ns = tracked->end_ns,
		.key = tracked->key,
		.detail = tracked->detail,
		.label = tracked->label,
		.group = tracked->group,
		.series = tracked->series,
	};

	return tracker_counts(&interval);
}

// The user's own function, in a frame of its own: what is on the stack below is not for its sake.
static __noinline int tracker_acts(const struct rts_tracker_hit *from)
{
	const struct rts_tracked *tracked = &from->tracked;
	struct action_place place;
	struct rts_action_hit *hit = action_begins(&place);

	if (!hit) {
		TRACKER_LOSS(lost);
		return 0;
	}
	hit->number = from->number;
	hit->begin_ns = tracked->begin_ns;
	hit->end_ns = tracked->end_ns;
	hit->key = tracked->key;
	hit->detail = tracked->detail;
	action_task(&hit->task, &tracked->task);
	action_task(&hit->other, &tracked->other);
	hit->cpu = tracked->cpu;
	hit->kind = tracked->series;
	hit->flags = tracked->flags & RTS_TRACKED_OPEN ? RTS_ACTION_OPEN : 0;
	for (rts_u32 i = 0; i < RTS_COMM_LENGTH; i++)
		hit->tracker[i] = tracker_config.name[i];
	__builtin_memcpy(hit->label, tracked->label, RTS_COMM_LENGTH);
	action_runs(hit, &place);
	return 0;
}

static __always_inline void tracker_send(struct rts_tracker_hit *hit)
{
	if (config.acts)
		tracker_acts(hit);
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
}

// All that is left to do of an interval that was counted and that somebody wants to know of.
__attribute__((unused)) static __noinline int tracker_tells(const struct rts_tracked *tracked)
{
	struct rts_tracker_hit *hit = tracker_told(tracked);

	if (hit)
		tracker_send(hit);
	return 0;
}

// The same of the current task's, of which little is known yet.
__attribute__((unused)) static __noinline int
tracker_tells_current(const struct tracker_interval *interval, rts_u64 detail)
{
	struct rts_tracked tracked;

	tracker_of(&tracked, interval);
	tracked.detail = detail;
	task_describe(&tracked.task, bpf_get_current_task_btf());
	return tracker_tells(&tracked);
}

// Whether what is open for a task is over the threshold already: then a stack is worth its cost.
static __always_inline bool tracker_is_late(const struct tracker_task *state, rts_u64 now_ns)
{
	return state->begin_ns && now_ns - state->begin_ns >= tracker_config.threshold_ns;
}

static __always_inline void tracker_take_kept_stack(struct rts_stack *to, struct task_struct *task,
		const struct tracker_task *state)
{
	struct rts_stack *kept;

	if (!tracker_config.stacks || !state->has_stack)
		return;
	kept = bpf_task_storage_get(&tracker_stacks, task, 0, 0);
	if (kept)
		*to = *kept;
}

#endif
