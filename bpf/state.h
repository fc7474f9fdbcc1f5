// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Where the watch keeps its state. State travels with the work: hard interrupts have a frame per
// CPU, and so have softirqs, but on PREEMPT_RT, where the task that runs one can be switched out in
// the middle: there its frame lives in that task. A wake-up copies the chain into the wakee.

#ifndef RTSCOPE_STATE_H
#define RTSCOPE_STATE_H

#include "meant.h"

#define STEP_MASK (RTS_STEPS_MAX - 1)
// A chain that is older or longer than this is not handed on: two tasks that wake each other for
// ever would make one chain for ever.
#define CHAIN_AGE_NS_MAX 10000000000ull
#define CHAIN_STEPS_MAX 64

// Steps in a ring: step i lies in slot i & STEP_MASK, so that the last 16 remain and nothing moves.
struct chain {
	rts_u64 origin_ns;
	rts_u32 count; // steps ever appended; 0: no chain
	rts_u32 preemptions;
	rts_u32 flags;
	rts_u32 padding;
	struct rts_step steps[RTS_STEPS_MAX];
};

// A timer's handler in progress. The chain is put together only if the handler wakes somebody.
struct hrtimer_frame {
	rts_u64 entry_ns;
	rts_u64 expiry_ns; // 0: not a moment to count from
	rts_u64 release_ns; // of one that was armed after its expiry: that expiry; 0: was not
	rts_u64 soft_ns; // before its slack, when that is worth to be told; else 0
	rts_s32 id;
	rts_u32 active;
};

struct hardirq_frame {
	rts_u64 entry_ns;
	rts_u64 nmi_ns; // entry of the NMI that it follows; 0: none
	rts_u64 previous_ns; // entry of the interrupt before the burst: interrupts were on then
	rts_u64 burst_ns;    // entry of the first of those that came at once, one behind the other
	rts_u64 left_ns;     // end of the last interrupt that another CPU asked for
	rts_u64 exit_ns;     // of a handler that asked for its thread
	rts_s32 thread_tid;  // that thread, until it is woken; 0: none
	rts_s32 irq;
	rts_u8 active; // 1: its handler runs; 2: it wakes the handler's thread
	rts_u8 passed; // the filters let its chain begin
	rts_u8 repaired;
	rts_u8 late_seen; // the first late timer of an interrupt is the evidence
	struct hrtimer_frame hrtimer;
};

// A softirq in progress: where its chain lies, and whether that is still the one it began with.
struct softirq_frame {
	rts_u32 generation;
	rts_u32 vector_plus_1; // 0: none
	struct hrtimer_frame hrtimer;
};

// Per CPU and vector. `raised` collects for the next run while `running` serves the present one.
struct softirq_slot {
	rts_u32 generation;
	rts_u32 running; // index of the running chain; the other one is the raised chain
	rts_u32 raised;
	rts_u32 padding;
	struct chain chains[2];
};

struct cpu_state {
	struct hardirq_frame hardirq;
	struct softirq_frame softirq; // of the idle task, and of every task where none is preempted
	rts_u64 nmi_entry_ns;
	rts_u64 nmi_exit_ns;
	rts_u64 steal_ns; // at the last record
	rts_u64 throttled_rq; // of the group that last used up its quota here
	rts_u64 throttled_ns; // when that was seen
	rts_u64 untold_ns; // a hit is in the ring since then, and nobody was woken for it; 0: none
	rts_s32 came_tid; // who came on last, and as what
	rts_s32 came_prio;
	rts_u32 came_policy;
	rts_u32 served; // a deadline server runs it; nobody can tell any more when it leaves
	rts_u64 stacks_paid_ns; // until then the stacks that were taken here are paid for
	rts_u64 looked_ns; // when it was last noted where a target was at its work here
	rts_u32 came_asks; // who came on last may ask others, or pass on what it was asked
	rts_u32 padding;
};

enum task_phase {
	PHASE_NONE = 0,
	PHASE_WOKEN = 1,  // by a chain, not yet on a CPU
	PHASE_ACTIVE = 2, // runs, or was preempted, on behalf of its chain
	PHASE_INSIDE = 3, // blocked inside its activation, or woken from there and not yet on a CPU
	PHASE_STOPPED = 4, // stopped, traced or frozen
	PHASE_YIELDED = 5, // gave up what was left of its budget: it goes on with a new one
};

// A target may lose its priority while it waits.
enum was_target {
	WAS_NO_TARGET = 0,
	WAS_TARGET = 1,
	WAS_LENT_TARGET = 2, // only for as long as another task lent it its priority
};

// How a target begins that has not slept since.
enum starts {
	STARTS_NOT = 0,
	STARTS_BORN = 1,
	STARTS_NAMED = 2, // by taking the name by which it is meant
};

// On which the releases of a target lie that sleeps until moments (grid.h).
struct grid {
	rts_u64 last_ns; // the moment of the last release; 0: none
	rts_u64 period_ns;
	rts_u64 perhaps_begin_ns; // the last cycle had sleeps beside it: it counts if the grid goes on
	rts_u64 perhaps_done_ns;
	rts_u32 perhaps_sleeps; // 0: it had none
	rts_u8 again; // so many times between two releases are multiples of the period
	rts_u8 rounds; // not all of them exactly
	rts_u8 beside; // so many sleeps of the present cycle lay beside it
	rts_u8 shifted; // so many of these, in a row, one period after the other
	rts_u64 beside_ns; // until when the last of these was
};

// What a target asked of a task, directly or through others.
struct wants {
	rts_u64 cycle_ns; // in the cycle that began then
	rts_s32 by;       // 0: nothing
	rts_u32 answered; // it has woken the target since
};

// The frame is first: its address is the storage's own, and the verifier allows no arithmetic on a
// pointer that may be null, which compilers love to do before the test. Then comes what nearly each
// wake-up and switch of a target touches, side by side: often another CPU has written it last, and
// each line of its cache has to come from there.
struct task_state {
	struct softirq_frame softirq;
	rts_u8 phase;
	rts_u8 waiting_reported;
	rts_u8 was_target; // enum was_target, when it was woken
	rts_u8 waker_policy;
	rts_u8 waker_flags;
	rts_u8 stopped; // and not yet on a CPU again
	rts_u8 has_waker_stack; // that of the last wake-up was taken
	rts_u8 asleep; // enum rts_asleep, when it was stopped
	rts_u8 left;    // its activation ended as it left the CPU, and it was not woken since
	rts_u8 sleeps;  // it was woken since it computed for long: it is no task that only computes
	rts_u8 starts; // enum starts, until it sleeps
	rts_u8 arms;    // its sleep's timer was armed after its last sleep
	rts_u8 spins; // it left the CPU last for a lock that other kernels spin for: that is no sleep
	rts_u8 unsure;  // it may have been due already, or not yet: it was stopped in its sleep
	rts_u8 resumed; // its activation goes on behind a sleep
	rts_u8 busy;    // it was at its last work for most of the time from its origin to its switch-in
	struct meant meant;
	rts_u64 slept_ns; // since when it sleeps, or slept last
	rts_u64 woken_ns;
	rts_u64 waits_ns; // its activation begins no earlier, whatever its chain says; 0: as that says
	rts_u64 activation; // counts them; whoever begins one writes it before the chain
	rts_u64 program_ns; // since when its program runs, which has not slept yet; 0: it has
	rts_u64 overdue_ns; // a release of its timer passed then, and it sleeps for that now; 0: none
	rts_u64 told; // the last one whose end somebody told
	rts_u64 armed_ns; // until when it sleeps at most, or slept last; 0: no such time
	rts_u64 word; // of a futex that may be a lock's, for which it sleeps; 0: none
	rts_u64 home_at; // where it waits for work
	rts_u64 served_ns; // when it last got work there; 0: not known
	rts_u64 released_at; // where it slept until its timer's last release
	rts_u64 cycle_ns; // its timer's last release, where all that was since then is known; else 0
	rts_u8 met; // it was a target before
	rts_u8 telling; // its end is copied, on the CPU that it leaves
	rts_u8 home_kind; // enum home_kind
	rts_u8 napped; // one of its sleeps elsewhere was for time, or a time-out gave it its work
	rts_u8 home_again; // so often it got work where it waits for that, less its other sleeps
	rts_u8 word_readers; // several readers seem to have the lock whose word it sleeps for
	rts_u8 in_cycle; // its activation belongs to its present cycle, as its release or an answer
	rts_u8 timed; // its last release found it asleep for time, and for nothing else
	rts_u32 away; // sleeps elsewhere since it last got work
	rts_u32 timer;  // the one that woke it last, as steps number it; 0: none did
	struct wants asked;
	rts_u64 quota_rq; // the run queue on which its quota would keep it; 0: its group has no say
	rts_u64 throttled_ns; // since when its quota keeps it from a CPU, as far as is seen; 0: no
	rts_u64 parked_at; // the word for which alone it sleeps, if it seems to be a lock's
	rts_u64 release_ns; // expiry of its timer that it armed after that; 0: none
	struct rts_task culprit; // kept for chains that end after the switch
	struct rts_task waker;
	struct chain chain;
	rts_s32 born_prio; // as it was born, without what others lent it
	rts_u64 stopped_until_ns;
	rts_u64 stop_ns; // when it was stopped
	rts_u64 stopped_at; // the instruction of user space that it goes on with
	rts_u64 asleep_until_ns; // it was stopped in a sleep that was to last until then; 0: not known
	rts_u64 cut_ns; // until then it was to wait for its next release as others woke it; 0: not so
	rts_u64 timer_due_ns; // when its timer is due, as it armed that last
	rts_u8 has_cycles; // others have woken it in between releases by its timer
	rts_u8 released_again; // so often its timer found it where it had before, less its other sleeps
	rts_u8 calm; // so many times between two releases behind cycles in time
	rts_u8 own_moment; // its last sleep to a moment was elsewhere than at its releases
	rts_u8 paced; // its last release found it asleep to a moment
	rts_u64 reported_id; // of the hit that said that it still waits
	rts_u64 window_ns; // with a window: when its own began, and its worst since then
	rts_u64 window_worst_ns;
	rts_u64 last_release_ns; // the expiry before `release_ns`
	rts_u32 word_value; // the value that the word is to lose
	rts_u32 word_owner; // the tid that seems to be written beside it; 0: none
	rts_u64 word_ns; // since when it sleeps for that word
	rts_u64 unparked_ns; // when it was last woken where it seems to be parked
	rts_u8 parked_again; // so many times in a row
	rts_u8 parked_long; // one of the works in between took as long as a late activation
	rts_u64 quota_wait_ns; // since when it waits for a CPU
	rts_u64 quota_ns; // how long tasks had been kept on that queue, but for what went on then
	rts_u64 quota_since_ns; // since when that went on, by the CPU's clock; 0: it did not
	rts_u64 released_ns; // the last release
	rts_u32 releases; // by its timer
	rts_u32 others; // sleeps since the last that others ended, or a length of time
	rts_s32 client_of; // to whom it came last by itself with something to do
	rts_u32 client_turns; // how often, less its answers
	rts_u32 gaps_us[RTS_GAPS_MAX]; // the last times between two, in a ring
	struct grid grid;
};

struct resched_slot {
	rts_u64 set_ns; // need-resched was set; 0: no
	rts_u32 flags; // enum rts_preemption_flag, since then
	rts_u32 padding_flags;
	rts_u64 cpu_base; // of this CPU's timers: what other per-CPU variables are counted from
	rts_u64 padding[5];
};

// Who asked for a process to stop, and how.
struct stop_request {
	struct rts_task by;
	rts_u32 signal;
	rts_u32 padding;
};

struct steal_seen {
	rts_u64 time_ns; // 0: never
	rts_u64 total_ns;
};

#define LATE_SLOTS 256

// What the rate lets out.
struct rate {
	rts_u64 next_ns; // when the next one may go
	int tid;         // whose the last one was
	bool waits;      // another task's was held back since
};

// Hits of one watch, over all CPUs. Touched only by chains over the threshold.
struct totals {
	rts_u64 hits;
	rts_u64 worst_hit_ns;
	rts_u64 worst_real_time_ns;
	// Others of the same process, which nobody waits for, take no real-time task's place.
	struct rate of_real_time, of_others;
	struct rts_task freezer; // who froze a control group of the second version last
	rts_u64 frozen_group;    // its number
	// Armings after the timer's own expiry, by hash of its address: that lateness is its own.
	rts_u64 armed_late[LATE_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

// Apart from `tasks`, which every task has: only targets have one, and small storage is more often
// granted where the kernel must not wait for memory.
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rts_stack);
} waker_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RTS_SOFTIRQS_MAX);
	__type(key, rts_u32);
	__type(value, struct softirq_slot);
} softirqs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct totals);
} watch_totals SEC(".maps");

// User space raises it meanwhile: only what is longer is sent. Apart from the totals, which the
// kernel writes.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, rts_u64);
} watch_floor SEC(".maps");

// By CPU number: another CPU may set need-resched. User space sets max_entries of these two.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct resched_slot);
} resched SEC(".maps");

// By process.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, rts_s32);
	__type(value, struct stop_request);
} stop_requests SEC(".maps");

// By CPU number: whoever reads them is on another CPU.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct steal_seen);
} steals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_evidence_ring);
} evidence SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} hits SEC(".maps");

// Wakes the reader of the hits, whatever they left free.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} bell SEC(".maps");

// Of those that are held back; read a few times a second.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} late_ones SEC(".maps");

const volatile struct rts_config config;

#define LOOKUP(map, key_value)                                   \
	({                                                       \
		rts_u32 key = (key_value);                       \
		bpf_map_lookup_elem(&(map), &key);               \
	})

// The next activation of a task begins, in the place of the one before.
static __always_inline void activation_begin(struct task_state *state)
{
	*(volatile rts_u64 *)&state->activation += 1;
	state->waiting_reported = 0;
	state->overdue_ns = 0;
	state->starts = STARTS_NOT;
	*(volatile rts_u64 *)&state->waits_ns = 0;
}

// Since when what a task was woken for counts as its latency.
static __always_inline rts_u64 activation_origin(const struct task_state *state)
{
	rts_u64 origin_ns = *(volatile rts_u64 *)&state->chain.origin_ns;
	rts_u64 waits_ns = *(volatile rts_u64 *)&state->waits_ns;

	return waits_ns > origin_ns ? waits_ns : origin_ns;
}

static __always_inline struct task_state *task_state(struct task_struct *task)
{
	return bpf_task_storage_get(&tasks, task, 0, 0);
}

// The frame of the softirq that this context runs, if it runs one.
static __always_inline struct softirq_frame *softirq_frame(struct cpu_state *cpu)
{
	struct task_struct *current;

	if (!config.softirqs_in_tasks)
		return &cpu->softirq;
	current = bpf_get_current_task_btf();
	if (!current->pid)
		return &cpu->softirq;
	return (struct softirq_frame *)task_state(current);
}

static __always_inline struct rts_counters *count(void)
{
	return LOOKUP(counters, 0);
}

#define COUNT(field)                                             \
	do {                                                     \
		struct rts_counters *per_cpu = count();          \
		if (per_cpu)                                     \
			per_cpu->field++;                        \
	} while (0)

#endif
