/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `rtscope watch --bpf-action FILE` runs in the kernel at each hit, at that moment, on the CPU
 * and in the context in which it was found: a function of yours, called with the hit.
 *
 *	#include <linux/types.h>
 *	#include <linux/bpf.h>
 *	#include <rtscope/action.bpf.h>
 *
 *	char LICENSE[] SEC("license") = "GPL";
 *
 *	__u64 longest_ns;
 *
 *	RTS_ACTION(hit)
 *	{
 *		if (hit->end_ns - hit->begin_ns > longest_ns)
 *			longest_ns = hit->end_ns - hit->begin_ns;
 *		return 0;
 *	}
 *
 *	clang -target bpf -O2 -g -c action.bpf.c
 *
 * The function has no SEC() of its own: it becomes part of the programs that find hits, and may
 * call what programs of tracing may. Its maps are made with theirs and go with the watch, but for
 * those that pin themselves; its names must not be theirs. Programs in FILE are not started.
 */

#ifndef RTSCOPE_ACTION_BPF_H
#define RTSCOPE_ACTION_BPF_H

#include <bpf/bpf_helpers.h>

enum rts_action_flag {
	RTS_ACTION_OPEN = 1, /* it has not ended: `end_ns` is when it was looked at */
};

struct rts_action_task {
	__s32 tid;  /* -1: nobody */
	__s32 prio; /* 20 is nice 0; below 0: real-time, -1 less its priority */
	char comm[16];
};

struct rts_action_hit {
	__u64 number;   /* from 1; each kind of interval has numbers of its own on each CPU */
	__u64 begin_ns; /* CLOCK_MONOTONIC */
	__u64 end_ns;
	__u64 key;	/* what the tracker's rows are told apart by, a call or an interrupt */
	__u64 detail;	/* the number beside it, as a sector */
	struct rts_action_task task;  /* whose it is */
	struct rts_action_task other; /* who ended it or was in its way */
	__u32 cpu;
	__u32 kind;  /* which of the tracker's intervals, from 0 on in the order of its table */
	__u32 flags; /* enum rts_action_flag */
	__u32 padding;
	char tracker[16]; /* its name; empty without one, of a late task */
	char label[16];	  /* a text of the tracker's own, as a disk's name */
};

/* What rtscope calls. What it returns says nothing yet: return 0. */
int rtscope_action(struct rts_action_hit *hit);

/* Defines it; the kernel's verifier cannot know that there is a hit, and must be shown. */
#define RTS_ACTION(hit)                                                                 \
	static __attribute__((always_inline)) int rts_action_of(struct rts_action_hit *hit); \
	int rtscope_action(struct rts_action_hit *rts_hit)                              \
	{                                                                               \
		return rts_hit ? rts_action_of(rts_hit) : 0;                            \
	}                                                                               \
	static __attribute__((always_inline)) int rts_action_of(struct rts_action_hit *hit)

#endif
