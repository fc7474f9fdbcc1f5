// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The records of the monitor: the phases of wake-ups, counted in the kernel for an interval. Like
// `event.h` self-contained; `crates/abi/src/monitor.rs` is the Rust view, and its test compares
// every offset.

#ifndef RTSCOPE_MONITOR_H
#define RTSCOPE_MONITOR_H

#include "event.h"

// A wake-up's parts, and the sums that begin at the expiry of a timer.
enum rts_monitor_phase {
	RTS_PHASE_TIMER = 0,  // from the timer's expiry to its function
	RTS_PHASE_WAKEUP = 1, // from there, or from the wake-up, to the run queue
	RTS_PHASE_SWITCH = 2, // from there onto a CPU
	RTS_PHASE_TIMER_WAKEUP = 3,
	RTS_PHASE_TIMER_WAKEUP_SWITCH = 4,
	RTS_PHASE_RETURN = 5, // from the CPU to the return to user space
	RTS_PHASE_TOTAL = 6,  // from the expiry to there
};
#define RTS_MONITOR_PHASES 7
#define RTS_MONITOR_PHASES_ROOM 8

// Whom a sample belongs to: bits, so that each sample is counted once.
enum rts_monitor_group {
	RTS_GROUP_REAL_TIME = 1,
	RTS_GROUP_NAMED = 2,
};
#define RTS_MONITOR_GROUPS 4

// OSADL's form: a bucket for each microsecond, and one for what is longer.
#define RTS_LINEAR_MAX 10240

// In place of a mode: no program saw this sample. Its first part is timer and wake-up together, and
// its culprit was last seen to come on that CPU.
#define RTS_MONITOR_HIDDEN 4

// The longest sample of an interval, with who ran meanwhile.
struct rts_monitor_worst {
	rts_u64 value_ns;
	rts_u64 at_ns; // when it ended
	rts_u64 parts_ns[4]; // timer, wake-up, switch, return, as far as it got
	rts_u64 instruction; // that was interrupted; 0: unknown
	struct rts_task victim;
	struct rts_task culprit;
	rts_u32 cpu;
	rts_s32 call; // in which the victim waited; -1: in none
	rts_u8 mode;  // enum rts_mode: what was interrupted, where `instruction` is known; or hidden
	rts_u8 timer; // the sample has a timer: the first part is one
	rts_u8 padding[6];
	struct rts_stack stack; // of the culprit
};

// What every sample of a phase writes besides its bucket.
struct rts_monitor_sums {
	rts_u64 sum_ns;
	rts_u64 max_ns;
	rts_u64 min_inverted_ns; // ~min: zero is none
	rts_u64 busy;            // somebody writes `worst`
};

// One per CPU, side of the double buffer and group. The phases of a wake-up lie beside each other,
// and so do their buckets, which are of much the same size: it touches few lines of memory, and few
// pages.
struct rts_monitor_series {
	struct rts_monitor_sums sums[RTS_MONITOR_PHASES_ROOM];
	rts_u32 buckets[RTS_BUCKETS_MAX][RTS_MONITOR_PHASES_ROOM]; // full, they stay so
	struct rts_monitor_worst worst[RTS_MONITOR_PHASES];
};

// One per CPU, side of the double buffer and phase: of real-time tasks.
struct rts_monitor_linear {
	rts_u32 counts[RTS_LINEAR_MAX + 1];
};

// What was not measured; one per CPU.
struct rts_monitor_losses {
	rts_u64 storage_failures; // tasks that the kernel had no storage for when asked
	rts_u64 unpaired;         // samples whose clocks differ by more than they are long
	rts_u64 worst_missed;     // worst ones of which only the length is kept
	rts_u64 hidden;           // no program saw them; they are counted by the kernel's accounts
	rts_u64 unseen;           // activations that no program saw and whose length nobody knows
};

// Beside `struct rts_config`, which has the targets.
struct rts_monitor_config {
	rts_u8 linear;
	rts_u8 until_return;
	rts_u8 every_task; // not the targets alone
	rts_u8 padding[5];
};

#endif
