// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The records of system calls with their contents: what user space asks for each call, what the
// kernel sends. Like `event.h` self-contained and little-endian as the host;
// `crates/abi/src/syscalls.rs` is the Rust view, and its test compares every offset.

#ifndef RTSCOPE_SYSCALL_H
#define RTSCOPE_SYSCALL_H

#include "event.h"

#define RTS_CALL_ARGUMENTS 6
/* Contents that one record may have. */
#define RTS_CALL_CONTENTS_MAX 3
/* Numbers of calls; those of the other word size follow in the same table. */
#define RTS_CALLS_MAX 1024
/* What a text, and anything else, may take, in bytes. */
#define RTS_CALL_TEXT_BYTES 4096
#define RTS_CALL_BLOCK_BYTES 128
/* Tasks that are tracked at once; one more counts as a loss. */
#define RTS_TRACKED_MAX 65536
/* In place of a content's length: it could not be read. */
#define RTS_CALL_UNREADABLE 0xffff

enum rts_content_kind {
	RTS_CONTENT_NONE = 0,
	RTS_CONTENT_TEXT = 1,    // up to its zero byte
	RTS_CONTENT_FIXED = 2,   // `size` bytes
	RTS_CONTENT_LENGTH = 3,  // as many bytes as argument `length` says, at most `size`
	RTS_CONTENT_POINTED = 4, // as the integer says to which argument `length` points
	RTS_CONTENT_RESULT = 5,  // as the call's result says
	RTS_CONTENT_VECTOR = 6,  // the first of an array of `struct iovec`; at exit cut to the result
	RTS_CONTENT_MESSAGE = 7, // the same of a `struct msghdr`
	RTS_CONTENT_NAME = 8,    // the address of a `struct msghdr`
};

// What is read at the address that argument `argument` holds.
struct rts_content {
	rts_u8 kind; // enum rts_content_kind
	rts_u8 argument;
	rts_u8 length;
	rts_u8 size;
};

enum rts_wanted {
	RTS_WANTED_ENTRY = 1,
	RTS_WANTED_EXIT = 2,
};

// What is asked of one call.
struct rts_call {
	rts_u8 wanted; // enum rts_wanted
	rts_u8 again; // a text of the entry that could not be read is read again at the exit
	rts_u8 padding[2];
	struct rts_content entry[RTS_CALL_CONTENTS_MAX];
	struct rts_content exit[RTS_CALL_CONTENTS_MAX];
};

enum rts_syscall_flag {
	RTS_SYSCALL_EXIT = 1,
	RTS_SYSCALL_COMPAT = 2, // of the other word size
	RTS_SYSCALL_AGAIN = 4,  // its contents are those of the entry, which could not be read there
	RTS_SYSCALL_FAULT = 8,  // no call: a page fault that a program serves; its address is first
};

// An entry or an exit; contents follow it, without gaps.
struct rts_syscall {
	rts_u64 time_ns;
	rts_s64 result;
	rts_u64 arguments[RTS_CALL_ARGUMENTS];
	rts_u64 lost; // of this CPU so far
	rts_s32 tid;
	rts_s32 number;
	rts_u16 flags; // enum rts_syscall_flag
	rts_u16 lengths[RTS_CALL_CONTENTS_MAX];
};

// One per CPU.
struct rts_syscall_counters {
	rts_u64 lost;     // the ring had no room
	rts_u64 left_out; // calls of the recorder itself
};

#endif
