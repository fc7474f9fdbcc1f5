// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What ftrace does not note with an event: who the task is, to whom it belongs, what its CPU has
// counted. Like `event.h` self-contained and little-endian as the host;
// `crates/abi/src/contexts.rs` is the Rust view, and its test compares every offset.

#ifndef RTSCOPE_CONTEXT_H
#define RTSCOPE_CONTEXT_H

#include "event.h"

/* Counters that one recording may have. */
#define RTS_CONTEXT_COUNTERS 4
/* Real, effective and saved user, the same of the group. */
#define RTS_CONTEXT_IDS 6
/* Namespaces: cgroup, ipc, mnt, net, pid, time, user, uts. */
#define RTS_CONTEXT_NAMESPACES 8
/* A host's name, padded. */
#define RTS_CONTEXT_HOST_BYTES 72
/* In place of a user or a group: its namespace does not say, or nobody could be asked. */
#define RTS_CONTEXT_NO_ID 0xffffffff

enum rts_context_wanted {
	RTS_CONTEXT_TASK = 1,   // name, priority, nice, number of the parent
	RTS_CONTEXT_VIRTUAL = 2, // numbers as the task's own PID namespace has them
	RTS_CONTEXT_ID = 4,
	RTS_CONTEXT_VIRTUAL_ID = 8, // as the task's own user namespace has them
	RTS_CONTEXT_NAMESPACE = 16,
	RTS_CONTEXT_HOST = 32,
};

struct rts_context_config {
	rts_u32 wanted;   // enum rts_context_wanted
	rts_u32 counters; // how many
	rts_u32 cpus;     // each counter has so many places
	rts_u32 bytes;    // of a record: up to the last that is wanted
};

// From `time_ns` on, until the next of its CPU. What is not wanted is zero.
struct rts_context {
	rts_u64 time_ns;
	rts_u64 lost; // of this CPU so far
	rts_s32 tid;
	rts_s32 ppid;
	rts_s32 vpid;
	rts_s32 vtid;
	rts_s32 vppid;
	rts_s32 prio;
	rts_s32 nice;
	rts_s32 pid;
	char comm[RTS_COMM_LENGTH];
	rts_u32 ids[RTS_CONTEXT_IDS];
	rts_u32 virtual_ids[RTS_CONTEXT_IDS];
	rts_u32 namespaces[RTS_CONTEXT_NAMESPACES];
	rts_u64 counters[RTS_CONTEXT_COUNTERS];
	char host[RTS_CONTEXT_HOST_BYTES];
};

#endif
