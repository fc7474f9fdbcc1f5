// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The records of the trackers: what they count in the kernel, what they send, what they are asked.
// Like `../event.h` self-contained and little-endian as the host; `crates/abi/src/trackers.rs` is
// the Rust view, and its test compares every offset.

#ifndef RTSCOPE_TRACKERS_RECORD_H
#define RTSCOPE_TRACKERS_RECORD_H

#include "../event.h"

/* Intervals that one tracker tells apart, as queue and device. */
#define RTS_SERIES_MAX 5
#define RTS_ONLY_MAX 32
#define RTS_KEYS_MAX 2048
/* Of those with a histogram each; user space makes room for fewer. */
#define RTS_WIDE_KEYS_MAX 256
#define RTS_OPEN_MAX 16384
/* Keys that are small numbers from RTS_SMALL_FIRST on: interrupts, vectors, system calls. */
#define RTS_SMALL_FIRST (-16)
#define RTS_SMALL_KEYS 512
#define RTS_SMALL_SERIES 2
/* In the key of a system call: its number is of the table for programs of 32 bits. */
#define RTS_CALL_OF_32_BITS (1ull << 32)

enum rts_tracked_flag {
	RTS_TRACKED_OPEN = 1, // it had not ended when it was looked at
};

// One interval. What `key` and `detail` are is the tracker's own affair.
struct rts_tracked {
	rts_u64 begin_ns;
	rts_u64 end_ns;
	rts_u64 key;    // intervals of one key are one row of the table
	rts_u64 detail;
	rts_u32 group;  // tells equal keys apart: a process, for addresses
	rts_u32 cpu;    // where it ended
	rts_u8 series;
	rts_u8 flags;   // enum rts_tracked_flag
	rts_u16 more;   // one more number of the tracker's own
	rts_u8 padding[4];
	struct rts_task task;
	struct rts_task other; // who ended it, or was in its way
	char label[RTS_COMM_LENGTH];
};

struct rts_tracker_hit {
	rts_u64 number; // from 1
	struct rts_tracked tracked;
	struct rts_stack stack;       // of `task`
	struct rts_stack other_stack; // of `other`
};

// One per CPU and series.
struct rts_tracker_series {
	rts_u64 count;
	rts_u64 sum_ns;
	rts_u64 min_ns;
	rts_u64 max_ns;
	rts_u64 hits;
	rts_u64 suppressed; // over the threshold, but not sent: rate limit, not the worst, enough hits
	struct rts_tracked worst;
	rts_u64 buckets[RTS_BUCKETS_MAX];
};

// What was not measured; one per CPU.
struct rts_tracker_losses {
	rts_u64 lost;      // hits for which the ring had no room
	rts_u64 full;      // beginnings for which the table of what is open had no room
	rts_u64 unpaired;  // beginnings that came twice, ends that fit no beginning
	rts_u64 keys_full; // intervals that are in the sums, but in no row of the table by key
	rts_u64 storage_failures; // tasks that the kernel had no storage for when asked
};

struct rts_tracker_key {
	rts_u64 key;
	rts_u32 group;
	rts_u32 series;
};

// One per CPU and key.
struct rts_tracker_sum {
	rts_u64 count;
	rts_u64 sum_ns;
	rts_u64 max_ns;
	rts_u64 detail; // of its first interval
	char label[RTS_COMM_LENGTH];
};

/* The first keys of each CPU have rows in an array, where no table is searched. */
#define RTS_ROWS_BITS 8

// A row of that array: a key that has come first to its place keeps it.
struct rts_tracker_row {
	struct rts_tracker_key key; // its series is one more: 0 is nobody's
	struct rts_tracker_sum sum;
};

// The same where rows are few: each with a histogram of its own.
struct rts_tracker_wide_sum {
	struct rts_tracker_sum sum;
	rts_u64 buckets[RTS_BUCKETS_MAX];
};

// An interval that has begun, by the address of what it belongs to.
struct rts_tracker_open {
	struct rts_tracked tracked; // its `end_ns` is 0
	rts_u64 issued_ns;          // when its second part began; 0: not yet
};

/* Of a pair: numbers and a text by which an end finds its begin. */
#define RTS_PAIR_NUMBERS 2
#define RTS_PAIR_ARGUMENTS 8
#define RTS_PAIR_SLOTS 6
#define RTS_PAIR_TEXT 48

/* Places in which the mark of one side may be. */
#define RTS_PAIR_SITES 512

// Where an argument of a mark is.
enum rts_mark_kind {
	RTS_MARK_NOTHING = 0, // nowhere, or where nobody can read it
	RTS_MARK_CONSTANT = 1,
	RTS_MARK_REGISTER = 2,
	RTS_MARK_MEMORY = 3,
};

#define RTS_MARK_NO_REGISTER 0xffff

struct rts_mark_argument {
	rts_s64 offset; // the number itself, or what is added to the address
	rts_u16 base;   // where the register is in the kernel's own, or RTS_MARK_NO_REGISTER
	rts_u16 index;  // the same
	rts_u8 kind;    // enum rts_mark_kind
	rts_u8 shift;   // of the index
	rts_u8 size_bytes;
	rts_u8 is_signed;
};

// A mark in one place of its program.
struct rts_mark {
	struct rts_mark_argument arguments[RTS_PAIR_ARGUMENTS];
};

struct rts_pair_key {
	rts_u64 numbers[RTS_PAIR_NUMBERS];
	char text[RTS_COMM_LENGTH];
};

// A begin whose end has not come.
struct rts_pair_open {
	rts_u64 begin_ns;
	struct rts_task task;
};

// What the code of a filter and a key is lent: it reads the first ones and writes the key.
struct rts_pair_frame {
	rts_u64 now_ns;
	rts_s64 prio;
	struct rts_pair_key key;
	rts_u64 arguments[RTS_PAIR_ARGUMENTS]; // of a function of user space, the last its result
	rts_u64 slots[RTS_PAIR_SLOTS];
	char looked_at[RTS_PAIR_TEXT];
};

enum rts_pair_side { RTS_PAIR_FROM = 0, RTS_PAIR_TO = 1 };

// One per CPU: what each side saw, and what its filter let through.
struct rts_pair_counts {
	rts_u64 seen[2];
	rts_u64 matched[2];
	rts_u64 alone; // ends of which no begin is open
};

// What an oracle sees: each event that matched, as the tracker stamped it.
struct rts_pair_seen {
	struct rts_pair_key key;
	rts_u64 time_ns;
	rts_u32 side; // enum rts_pair_side
	rts_s32 tid;
};

// Beside `struct rts_config`, which has the thresholds, the targets and the limits. What each call
// asks comes first, again where the other one has it: one line of memory.
struct rts_tracker_config {
	rts_u64 threshold_ns;
	rts_u64 waiting_ns;
	rts_s64 preempt_count_offset; // from this CPU's run queue; 0: unknown
	rts_s32 prio_max;
	rts_u32 only_length;        // 0: any
	rts_u8 target_kind;
	rts_u8 cpus_filtered;
	rts_u8 turns;               // user space turns the halves of the counters over
	rts_u8 stacks;
	rts_u8 oracle; // every event that it saw goes into a ring, too
	rts_u8 padding[3];
	char name[RTS_COMM_LENGTH]; // the tracker's
	rts_u64 only[RTS_ONLY_MAX]; // keys
};

#endif
