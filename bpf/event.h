// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The records that cross the border between the kernel's watch and user space.
//
// Self-contained: no include, every size and padding explicit, little-endian as the host. Enums
// only ever grow at their end; the values of steps, ends and modes are those of
// docs/format/evidence.md. Times are nanoseconds of CLOCK_MONOTONIC; priorities are LTTng's (the
// kernel's minus 100) unless a field says otherwise. `crates/abi` is the Rust view of this file;
// its test compares every offset.

#ifndef RTSCOPE_EVENT_H
#define RTSCOPE_EVENT_H

typedef __UINT8_TYPE__ rts_u8;
typedef __UINT16_TYPE__ rts_u16;
typedef __UINT32_TYPE__ rts_u32;
typedef __UINT64_TYPE__ rts_u64;
typedef __INT32_TYPE__ rts_s32;
typedef __INT64_TYPE__ rts_s64;

/* Raised with every change of a record. */
#define RTS_ABI_VERSION 11

#define RTS_COMM_LENGTH 16
#define RTS_STEPS_MAX 16
#define RTS_STACK_MAX 32
#define RTS_IRQS_MAX 8
#define RTS_TIDS_MAX 64
#define RTS_PATTERNS_MAX 8
#define RTS_GROUPS_MAX 1024
#define RTS_GROUP_BYTES 128
#define RTS_GROUP_TAIL_BYTES 32
#define RTS_CPU_WORDS 16
#define RTS_EVIDENCE_SLOTS 512
#define RTS_EVIDENCE_WORDS 48
#define RTS_WORKED_WORDS 40
#define RTS_SOFTIRQS_MAX 10
#define RTS_PHASE_THREADS_MAX 1024
#define RTS_GAPS_MAX 8

// Log-linear histogram: values below 16 ns have a bucket each, then 16 buckets per octave, up to
// 2^41 ns (36 minutes); what is longer falls into the last bucket.
#define RTS_SUB_BITS 4
#define RTS_OCTAVES_MAX 41
#define RTS_BUCKETS_MAX ((RTS_OCTAVES_MAX - RTS_SUB_BITS + 1) << RTS_SUB_BITS)

enum rts_step_kind {
	RTS_STEP_TIMER_EXPIRY = 1,
	RTS_STEP_NMI = 2,
	RTS_STEP_HARDIRQ = 3,
	RTS_STEP_HRTIMER = 4,
	RTS_STEP_SOFTIRQ_RAISE = 5,
	RTS_STEP_SOFTIRQ = 6,
	RTS_STEP_WAKING = 7,
	RTS_STEP_SWITCH_IN = 8,
	RTS_STEP_USER_RETURN = 9,
	RTS_STEP_BLOCKED = 10,
	RTS_STEP_PREEMPTED = 11,
};

enum rts_end_kind {
	RTS_END_SWITCH_IN = 0,
	RTS_END_USER_RETURN = 1,
	RTS_END_BLOCKED = 2,
	RTS_END_WAITING = 3,
};

// Those that the programs know by themselves; `tables.h` has all.
enum rts_irq {
	RTS_IRQ_LOCAL_TIMER = -1,
	RTS_IRQ_WORK = -4,
};

enum rts_chain_flag {
	RTS_CHAIN_STALE = 1,    // its origin was too old to hand on: it starts at a later wake-up
	RTS_CHAIN_REPAIRED = 2, // an exit was missed in it
	RTS_CHAIN_UNSEEN = 4, // its wake-up was not seen: it starts at its timer, or as it ran
	RTS_CHAIN_NEAR = 8, // nobody asked for its task, which works with those that are asked for
	RTS_CHAIN_STRANGER = 16, // nobody asked for its task, which is real-time
};

// Who is judged beside those who are asked for, with RTS_TARGET_FLAGGED.
enum rts_beside {
	RTS_BESIDE_NOBODY = 0,
	// Real-time tasks of other processes that real-time tasks which are asked for wake.
	RTS_BESIDE_WOKEN = 1,
	// Whoever may have kept these from their deadline: every real-time task, those of the command,
	// and threads of the same processes that wake them or that they wake.
	RTS_BESIDE_ALL = 2,
};

enum rts_target_kind {
	RTS_TARGET_ALL = 0,
	RTS_TARGET_REAL_TIME = 1,
	// By name, tid, process, namespace or descent, resolved once per task; by control group,
	// whenever that changes; or by priority.
	RTS_TARGET_FLAGGED = 2,
};

enum rts_evidence_kind {
	RTS_EVIDENCE_LATE_TIMER = 1,
	RTS_EVIDENCE_PREEMPTION_OFF = 2,
	RTS_EVIDENCE_BLOCKED = 3,   // a target blocked inside its activation
	RTS_EVIDENCE_THROTTLED = 4, // a target may not run: its group has used up its quota
	RTS_EVIDENCE_STOPPED = 5,   // a target was stopped, traced or frozen
	RTS_EVIDENCE_RELEASED = 6,  // a target's timer proves a release before it was waited for
	RTS_EVIDENCE_MOMENT = 7,    // a task of a hit as it was then
	RTS_EVIDENCE_STEAL = 8,     // what the hypervisor took from a CPU
	RTS_EVIDENCE_WORKED = 9,    // where a timer's interrupt found a target at its own work
};

// What a target waits for while it is blocked inside its activation.
enum rts_blocked {
	RTS_BLOCKED_KERNEL = 0, // uninterruptible; nothing says for what
	RTS_BLOCKED_IO = 1,     // a device, by the kernel's own mark
	RTS_BLOCKED_LOCK = 2,   // a lock whose owner the kernel knows
	RTS_BLOCKED_MUTEX = 3,  // a futex that looks like a mutex; the owner is what user space says
	RTS_BLOCKED_FAULT = 4,  // a page fault that somebody else has to serve
	RTS_BLOCKED_WRITE = 5,  // what it writes into has no room
	RTS_BLOCKED_SPIN = 6,   // it did not block: until now it spun for a lock of the owner
	RTS_BLOCKED_READERS = 7, // a lock of user space that several readers have
};

enum rts_mode {
	RTS_MODE_KERNEL = 0,
	RTS_MODE_USER = 1,
	RTS_MODE_IDLE = 2,
	RTS_MODE_ENABLED = 3, // kernel code, but not where interrupts come back on
};

// What keeps a target from running although nobody has its CPU.
enum rts_stop {
	RTS_STOP_SIGNAL = 0,
	RTS_STOP_TRACED = 1,
	RTS_STOP_FROZEN = 2,
};

// How a target slept when it was stopped.
enum rts_asleep {
	RTS_ASLEEP_NO = 0,    // it did not: its work waits
	RTS_ASLEEP_UNTIL = 1, // until an instant, and for nothing else
	RTS_ASLEEP_EVENT = 2, // until somebody wakes it, whether there is a last instant or not
};

// Why a target's activation began before it was waited for.
enum rts_release {
	RTS_RELEASE_OVERRUN = 0, // the target was still busy when its own timer was due
	RTS_RELEASE_SLACK = 1,   // its timer may be as late as its slack
};

// Whose moment it is.
enum rts_role {
	RTS_ROLE_TARGET = 0,
	RTS_ROLE_RUNNING = 1, // had the CPU before the target came on it, or has it while that waits
	RTS_ROLE_WAKER = 2,
	RTS_ROLE_LOWERED = 3, // leaves the CPU in the call by which it lowered itself
};

enum rts_moment_flag {
	RTS_MOMENT_KERNEL_THREAD = 1,
	RTS_MOMENT_SERVED = 2, // a deadline server ran it in place of its own class
	RTS_MOMENT_QUOTA = 4,  // its control group has used up its quota
	RTS_MOMENT_LIMITED = 8, // its control group, or one above it, has a quota
};

enum rts_preemption_flag {
	RTS_PREEMPTION_SERVED = 1, // a deadline server ran it meanwhile
	RTS_PREEMPTION_USER = 2,   // a timer's interrupt found it in user mode meanwhile
};

// Programs whose own run time the profile switch measures.
enum rts_program {
	RTS_PROGRAM_EMPTY = 0,
	RTS_PROGRAM_IRQ_ENTRY = 1,
	RTS_PROGRAM_IRQ_EXIT = 2,
	RTS_PROGRAM_SOFTIRQ_RAISE = 3,
	RTS_PROGRAM_SOFTIRQ_ENTRY = 4,
	RTS_PROGRAM_SOFTIRQ_EXIT = 5,
	RTS_PROGRAM_HRTIMER_START = 6,
	RTS_PROGRAM_HRTIMER_ENTRY = 7,
	RTS_PROGRAM_HRTIMER_EXIT = 8,
	RTS_PROGRAM_WAKING = 9,
	RTS_PROGRAM_SWITCH = 10,
	RTS_PROGRAM_NEED_RESCHED = 11,
	RTS_PROGRAM_SYS_EXIT = 12,
	RTS_PROGRAMS_MAX = 13,
};

// One state change. Hard interrupts have no name here: user space knows the handler of a number.
struct rts_step {
	rts_u64 time_ns;
	rts_u32 cpu;
	rts_s32 id;
	rts_s32 prio;
	rts_u8 kind; // enum rts_step_kind
	rts_u8 padding[3];
	char comm[RTS_COMM_LENGTH];
};

struct rts_stack {
	rts_u32 length; // frames used
	rts_u32 padding;
	rts_u64 frames[RTS_STACK_MAX]; // innermost first
};

struct rts_task {
	rts_s32 tid; // -1: none
	rts_s32 prio;
	char comm[RTS_COMM_LENGTH];
};

struct rts_hit {
	rts_u64 id; // from 1
	rts_u64 origin_ns;
	rts_u64 end_ns;
	struct rts_task target;
	struct rts_task culprit;
	rts_u32 end_kind; // enum rts_end_kind
	rts_u32 preemptions;
	rts_u32 overflow;
	rts_u32 flags; // enum rts_chain_flag
	rts_u32 steps_length;
	rts_u32 cost_ns; // what this hit took of its CPU, after its end
	struct rts_step steps[RTS_STEPS_MAX]; // oldest first
	struct rts_stack waker_stack;
	struct rts_stack wakee_stack;
	struct rts_stack culprit_stack;
};

// A late activation of which only this is told: the limits let no whole hit go out.
struct rts_late {
	rts_u64 origin_ns;
	rts_u64 began_ns; // when the target was scheduled in; 0: not yet
	rts_u64 end_ns;
	struct rts_task target;
	struct rts_task culprit; // who left the CPU when it came; itself: it was at work before
	rts_u32 end_kind; // enum rts_end_kind
	rts_u32 preemptions;
};

// Whether others began the cycles of a target, and not its timer.
enum rts_by_others {
	RTS_BY_OTHERS = 1,
	RTS_BY_OTHERS_NAPS = 2, // and in each of them it slept for a length of time, or to a moment
};

// What was seen of the cycles of a target in which it slept for others, or for a length of time,
// after a timer of its own woke it and before that did again: it may have slept inside its work. Or
// of a target that others give its work, from one wait for that to the next.
struct rts_cycles {
	struct rts_task task;
	rts_u64 cycles;
	rts_u64 sleeps; // how often
	rts_u64 over; // cycles that are longer than the threshold, to the end of their last work
	rts_u64 worst_begin_ns; // of the longest
	rts_u64 worst_end_ns;
	rts_u32 gaps_length; // times between two releases, ever
	rts_u32 by_others; // enum rts_by_others; not 0: it has no gaps
	rts_u32 gaps_us[RTS_GAPS_MAX]; // the last of them, in a ring
};

// A timer's interrupt that came late.
struct rts_late_timer {
	rts_u64 expiry_ns;
	rts_u64 hrtimer;
	rts_u64 function;
	rts_u64 instruction; // the interrupted one
	rts_u64 steal_ns;
	struct rts_task task; // the interrupted one
	rts_u32 came_on; // bit i: interrupts may have come on right before `stack.frames[i]`
	rts_u8 mode;     // enum rts_mode
	rts_u8 padding[3];
	struct rts_stack stack; // with the interrupt's own frames before `instruction`
};

// A task that kept the CPU although need-resched was set.
struct rts_preemption_off {
	rts_u64 begin_ns;
	struct rts_task task;
	rts_u32 flags; // enum rts_preemption_flag
	rts_u32 padding;
	struct rts_stack stack;
};

// A target that blocked inside its activation. Of a mutex's owner only the tid is known.
struct rts_blocked_record {
	rts_u64 lock;
	struct rts_task task;
	struct rts_task owner;
	rts_u8 on; // enum rts_blocked
	rts_u8 padding[7];
	struct rts_stack stack;
};

// A target that may not run: its group has used up its quota.
struct rts_throttled {
	rts_u64 begin_ns;
	rts_u64 kept_ns; // how long it was kept, by the kernel's own count; 0: not known
	struct rts_task task;
};

// A target that was stopped.
struct rts_stopped {
	struct rts_task task;
	struct rts_task by; // who did it, as far as that is known
	rts_u32 signal; // 0: none
	rts_u8 how; // enum rts_stop
	rts_u8 asleep; // enum rts_asleep
	rts_u8 padding[2];
};

// A moment from which on a target was due.
struct rts_released {
	rts_u64 release_ns;
	rts_u64 previous_ns; // origin of its activation before; 0: unknown
	rts_u64 slack_ns;
	struct rts_task task;
	rts_u8 why; // enum rts_release
	rts_u8 padding[7];
};

// A task of a hit as it was at a moment.
struct rts_moment {
	struct rts_task task;
	rts_s32 came_prio; // the best since it was scheduled in, of the one that runs
	rts_u8 role; // enum rts_role
	rts_u8 policy; // the kernel's number
	rts_u8 came_policy;
	rts_u8 flags; // enum rts_moment_flag
};

// What the hypervisor took from this CPU since `begin_ns`.
struct rts_steal {
	rts_u64 begin_ns;
	rts_u64 steal_ns;
};

// Where in its user code a target was, and what lies on its stack there: its callers are found by
// the files that it runs, which user space reads.
struct rts_worked {
	struct rts_task task;
	rts_s32 process; // as the watch's own PID namespace numbers it
	rts_u32 words_length;
	rts_u64 instruction;
	rts_u64 stack_pointer;
	rts_u64 frame_pointer;
	rts_u64 kernel_instruction; // 0: it was in its program, or that is not known
	rts_u64 words[RTS_WORKED_WORDS]; // from the stack pointer on
};

// `sequence` is 2 × the record's number + 1 while it is written, + 2 when it is whole: a reader
// that sees an odd or changed value drops the slot.
struct rts_evidence {
	rts_u64 sequence;
	rts_u64 time_ns;
	rts_u8 kind; // enum rts_evidence_kind
	rts_u8 padding[7];
	union {
		rts_u64 words[RTS_EVIDENCE_WORDS];
		struct rts_late_timer late_timer;
		struct rts_preemption_off preemption_off;
		struct rts_blocked_record blocked;
		struct rts_throttled throttled;
		struct rts_stopped stopped;
		struct rts_released released;
		struct rts_moment moment;
		struct rts_steal steal;
		struct rts_worked worked;
	};
};

// One per CPU, in an array that user space maps. `head` counts the records ever begun.
struct rts_evidence_ring {
	rts_u64 head;
	rts_u64 padding[7];
	struct rts_evidence slots[RTS_EVIDENCE_SLOTS];
};

// One per CPU.
struct rts_counters {
	rts_u64 samples;
	rts_u64 worst_ns;
	rts_u64 suppressed; // over the threshold, but not sent: rate limit, not the worst, enough hits
	rts_u64 lost;       // hits for which the ring had no room
	rts_u64 stale;      // chains cut because they were too old or too long to hand on
	rts_u64 repaired;   // frames reset because an exit was missed
	rts_u64 untracked;  // wake-ups of tasks that have no storage, and may be targets
	rts_u64 storage_failures; // tasks that the kernel had no storage for when asked
	rts_u64 dropped; // targets' activations over the threshold of which the end was not seen
	rts_u64 unseen;  // activations of targets whose wake-up was not seen
	rts_u64 undated; // those of them that no timer of the task's dates
	rts_u64 unplaced; // those of which nothing says when they began
	rts_u64 unmeant; // those of tasks that were targets no more at their end
	rts_u64 renamed; // targets that are called otherwise now, and are none any more
	rts_u64 unslept; // programs that never slept, and were at work for longer than the threshold
	rts_u64 start_ups; // of targets, longer than the threshold: nobody waits for them
	rts_u64 overlooked; // targets' waits beyond the time-out that were over before a look
	rts_u64 buckets[RTS_BUCKETS_MAX];
};

// Own run time of one program, in `changed` and unchanged calls; one per CPU.
struct rts_profile {
	rts_u64 calls;
	rts_u64 total_ns;
	rts_u64 max_ns;
	rts_u64 buckets[RTS_BUCKETS_MAX];
};

// The last activation of one measuring thread, in an array that user space maps. Each has a cache
// line of its own. 0: not seen.
struct rts_phases {
	rts_u64 entry_ns;  // its timer's function began
	rts_u64 wakeup_ns; // it came on a run queue
	rts_u64 switch_ns; // it was scheduled in
	rts_u64 padding[5];
};

// A name pattern as a bit-parallel automaton: bit i of the state means that i elements matched.
struct rts_pattern {
	rts_u32 accept[256]; // per byte: the states that it moves on
	rts_u32 loops;       // states that any byte keeps (`*`)
	rts_u32 match;       // the accepting state
	rts_u32 of_process;  // 0: of the thread's name, 1: of that of its process's first thread
	rts_u32 padding;
};

// The kernel's priorities from `first` to `last`, both included.
struct rts_prios {
	rts_s32 first;
	rts_s32 last;
};

// A control group: the kernel's number of its hierarchy (0: version 2), and of its folder in there.
struct rts_group {
	rts_u64 id;
	rts_u32 hierarchy;
	rts_u32 padding;
};

// How a control group is called that may be made yet: the last components of its path, of which the
// last one may have any bytes between two texts.
struct rts_group_name {
	rts_u8 head_length;
	rts_u8 tail_length;
	rts_u8 last_length; // what of `head` is of the last component
	rts_u8 is_open;    // any bytes may stand between them; else `tail` is empty
	rts_u8 is_whole;   // it is the path from the root on
	rts_u8 padding[3];
	char head[RTS_GROUP_BYTES];
	char tail[RTS_GROUP_TAIL_BYTES];
};

struct rts_config {
	rts_u64 threshold_ns;
	rts_u64 rate_limit_ns;
	rts_u64 hits_max; // 0: no limit
	rts_u64 waiting_ns; // 0: off
	rts_u64 evidence_floor_ns; // 0: no evidence
	rts_u64 window_ns; // each task's worst of so long a time goes out; 0: the other limits hold
	rts_u64 slack_floor_ns; // from which slack on a timer's lateness counts from before it
	rts_s64 steal_offset; // from this CPU's hrtimer_bases; 0: unknown
	rts_s64 irq_regs_offset; // likewise
	rts_s64 rq_offset; // likewise
	rts_s32 prio_max; // the kernel's scale: only targets at most this
	rts_s32 softirq; // -1: any
	rts_u32 irqs_length; // 0: any
	rts_s32 irqs[RTS_IRQS_MAX];
	rts_u32 tids_length;
	rts_s32 tids[RTS_TIDS_MAX];
	rts_u32 pids_length;
	rts_s32 pids[RTS_TIDS_MAX];
	rts_u32 prios_length;
	struct rts_prios prios[RTS_PATTERNS_MAX];
	rts_u32 namespaces_length;
	rts_u32 namespaces[RTS_PATTERNS_MAX]; // of processes, by the kernel's numbers of them
	rts_s32 family; // this process and all that descend from it; 0: nobody
	rts_u32 levels_up; // that the ids asked for are above our own PID namespace
	rts_u32 group_names_length;
	rts_u32 patterns_length;
	rts_u32 cpus_max; // CPUs that this machine may have
	rts_u8 target_kind;
	rts_u8 end_kind;
	rts_u8 new_worst_only;
	rts_u8 waker_stacks;
	rts_u8 profile;
	rts_u8 cpus_filtered;
	rts_u8 real_time; // with RTS_TARGET_FLAGGED: those of RTS_TARGET_REAL_TIME too
	rts_u8 notes_late; // tell of late activations that are held back
	rts_u8 groups; // with RTS_TARGET_FLAGGED: members of the groups in the map too
	rts_u8 in_namespace; // ids are those of a PID namespace that is not the first
	rts_u8 acts; // a function of the user's is called at each hit
	rts_u8 softirqs_in_tasks; // a task that runs one may be switched out in the middle
	rts_u8 family_named; // names, processes' names and priorities mean those of `family` alone
	rts_u8 beside; // enum rts_beside
	rts_u8 padding[2];
	rts_u64 cpus[RTS_CPU_WORDS];
	struct rts_pattern patterns[RTS_PATTERNS_MAX];
	struct rts_group_name group_names[RTS_PATTERNS_MAX];
};

#endif
