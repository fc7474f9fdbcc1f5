/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Latencies between two events of your own BPF programs: counted in the kernel, with a histogram,
 * a threshold, a time-out and a call-back. Nothing is allocated where an interval begins.
 *
 *	static void too_slow(void *ctx, const struct request *key,
 *			     const struct rts_track_interval *interval)
 *	{
 *		// over the threshold, or still open after the time-out (interval->flags)
 *	}
 *	RTS_TRACK(requests, struct request, 4096, too_slow);
 *
 *	requests_in(&key);		// in the program of the event that begins
 *	requests_out(ctx, &key);	// in the program of the event that ends
 *
 * Include vmlinux.h, or <linux/bpf.h> and <linux/types.h>, before it. Needs Linux 5.13 or later for
 * the time-out, 5.2 for the rest. Include this once; RTS_TRACK defines, for a name N:
 *
 *	N_open		map: what is open, by key
 *	N_statistics	map, per CPU: struct rts_track_statistics
 *	N_threshold_ns	read-only data, to be set before loading; 0: each is a hit
 *	N_timeout_ns	the same; 0: nothing is looked for
 *	N_worst_only	the same; not 0: only what is worse than each hit before is one
 *	N_in(key)	begins: 0, or -1 when the map is full
 *	N_out(ctx, key)	ends: its nanoseconds, or -1 when none of this key is open
 *	N_drop(key)	forgets what is open: it comes to no end
 *	N_check		program of type syscall that looks for what is open for too long:
 *			user space runs it now and then (bpf_prog_test_run_opts)
 *
 * A key that begins again while it is open begins anew, and is counted in `again`. A key's padding
 * must be zero.
 */

#ifndef RTSCOPE_TRACK_BPF_H
#define RTSCOPE_TRACK_BPF_H

#include <bpf/bpf_helpers.h>

/* Each power of two has 16 buckets: a bucket is at most 1/16 of its value wide. */
#define RTS_TRACK_SUB_BITS 4
#define RTS_TRACK_BUCKETS 640

enum rts_track_flag {
	RTS_TRACK_OVER = 1, /* it ended, and took at least the threshold */
	RTS_TRACK_OPEN = 2, /* it has not ended: `end_ns` is when it was looked at */
};

struct rts_track_interval {
	__u64 begin_ns; /* CLOCK_MONOTONIC */
	__u64 end_ns;
	__u32 cpu;	/* where it ended */
	__u32 flags;	/* enum rts_track_flag */
};

struct rts_track_open {
	__u64 begin_ns;
	__u64 reported; /* not 0: it was reported while it was open */
};

struct rts_track_statistics {
	__u64 count;
	__u64 sum_ns;
	__u64 min_ns;
	__u64 max_ns;
	__u64 hits;  /* calls of the call-back */
	__u64 full;  /* begins for which the map had no room: intervals are missing */
	__u64 again; /* begins of a key that was open */
	__u64 alone; /* ends of which no begin was open */
	__u64 buckets[RTS_TRACK_BUCKETS];
};

static __always_inline __u32 rts_track_log2(__u64 value)
{
	__u32 log2 = 0, shift;

	shift = (value > 0xffffffffull) << 5;
	value >>= shift;
	log2 |= shift;
	shift = (value > 0xffff) << 4;
	value >>= shift;
	log2 |= shift;
	shift = (value > 0xff) << 3;
	value >>= shift;
	log2 |= shift;
	shift = (value > 0xf) << 2;
	value >>= shift;
	log2 |= shift;
	shift = (value > 0x3) << 1;
	value >>= shift;
	return log2 | shift | (value >> 1);
}

/* The bucket of a value: the value itself below 16, then 16 for each power of two. */
static __always_inline __u32 rts_track_bucket(__u64 value)
{
	__u32 octave, bucket;

	if (value < (1 << RTS_TRACK_SUB_BITS))
		return value;
	octave = rts_track_log2(value) - RTS_TRACK_SUB_BITS;
	bucket = ((octave + 1) << RTS_TRACK_SUB_BITS) +
		 ((value >> octave) & ((1 << RTS_TRACK_SUB_BITS) - 1));
	return bucket < RTS_TRACK_BUCKETS ? bucket : RTS_TRACK_BUCKETS - 1;
}

static __always_inline void rts_track_count(struct rts_track_statistics *statistics, __u64 took_ns)
{
	__u64 bucket = rts_track_bucket(took_ns);

	/* What is compared below is what is added to the address: the verifier wants it so. */
	asm volatile("" : "+r"(bucket));
	if (!statistics->count || took_ns < statistics->min_ns)
		statistics->min_ns = took_ns;
	if (took_ns > statistics->max_ns)
		statistics->max_ns = took_ns;
	statistics->count++;
	statistics->sum_ns += took_ns;
	if (bucket < RTS_TRACK_BUCKETS)
		statistics->buckets[bucket]++;
}

/* Not every program uses all of it. */
#define RTS_TRACK_UNUSED static __attribute__((unused)) __always_inline

#define RTS_TRACK(name, key_type, capacity, callback)                                           \
	struct {                                                                                \
		__uint(type, BPF_MAP_TYPE_HASH);                                                \
		__uint(max_entries, capacity);                                                  \
		__type(key, key_type);                                                          \
		__type(value, struct rts_track_open);                                           \
	} name##_open SEC(".maps");                                                             \
                                                                                                \
	struct {                                                                                \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                        \
		__uint(max_entries, 1);                                                         \
		__type(key, __u32);                                                             \
		__type(value, struct rts_track_statistics);                                     \
	} name##_statistics SEC(".maps");                                                       \
                                                                                                \
	const volatile __u64 name##_threshold_ns = 0;                                           \
	const volatile __u64 name##_timeout_ns = 0;                                             \
	const volatile __u64 name##_worst_only = 0;                                             \
	__u64 name##_worst_ns = 0;                                                              \
                                                                                                \
	static __always_inline struct rts_track_statistics *name##_of_cpu(void)                 \
	{                                                                                       \
		__u32 zero = 0;                                                                 \
                                                                                                \
		return bpf_map_lookup_elem(&name##_statistics, &zero);                          \
	}                                                                                       \
                                                                                                \
	RTS_TRACK_UNUSED int name##_in(const key_type *key)                                     \
	{                                                                                       \
		struct rts_track_open open = { .begin_ns = bpf_ktime_get_ns() };                \
		struct rts_track_statistics *statistics = name##_of_cpu();                      \
                                                                                                \
		if (!statistics ||                                                              \
		    !bpf_map_update_elem(&name##_open, key, &open, BPF_NOEXIST))                \
			return 0;                                                               \
		if (!bpf_map_update_elem(&name##_open, key, &open, BPF_EXIST)) {                \
			statistics->again++;                                                    \
			return 0;                                                               \
		}                                                                               \
		statistics->full++;                                                             \
		return -1;                                                                      \
	}                                                                                       \
                                                                                                \
	RTS_TRACK_UNUSED void name##_drop(const key_type *key)                                  \
	{                                                                                       \
		bpf_map_delete_elem(&name##_open, key);                                         \
	}                                                                                       \
                                                                                                \
	static __always_inline _Bool name##_is_hit(__u64 took_ns)                               \
	{                                                                                       \
		if (took_ns < name##_threshold_ns)                                              \
			return 0;                                                               \
		if (!name##_worst_only)                                                         \
			return 1;                                                               \
		if (took_ns <= name##_worst_ns)                                                 \
			return 0;                                                               \
		name##_worst_ns = took_ns;                                                      \
		return 1;                                                                       \
	}                                                                                       \
                                                                                                \
	RTS_TRACK_UNUSED __s64 name##_out(void *ctx, const key_type *key)                       \
	{                                                                                       \
		struct rts_track_statistics *statistics = name##_of_cpu();                      \
		struct rts_track_open *open = bpf_map_lookup_elem(&name##_open, key);           \
		struct rts_track_interval interval = {};                                        \
		__u64 took_ns;                                                                  \
                                                                                                \
		if (!statistics)                                                                \
			return -1;                                                              \
		if (open)                                                                       \
			interval.begin_ns = open->begin_ns;                                     \
		/* Of two ends at once one has it. */                                           \
		if (!open || bpf_map_delete_elem(&name##_open, key)) {                          \
			statistics->alone++;                                                    \
			return -1;                                                              \
		}                                                                               \
		interval.end_ns = bpf_ktime_get_ns();                                           \
		interval.cpu = bpf_get_smp_processor_id();                                      \
		interval.flags = RTS_TRACK_OVER;                                                \
		took_ns = interval.end_ns - interval.begin_ns;                                  \
		/* The clocks of two CPUs differ by more than it is long. */                    \
		if ((__s64)took_ns < 0)                                                         \
			took_ns = 0;                                                            \
		rts_track_count(statistics, took_ns);                                           \
		if (name##_is_hit(took_ns)) {                                                   \
			statistics->hits++;                                                     \
			callback(ctx, key, &interval);                                          \
		}                                                                               \
		return took_ns;                                                                 \
	}                                                                                       \
                                                                                                \
	static long name##_look(void *map, const key_type *key, struct rts_track_open *open,    \
				void *unused)                                                   \
	{                                                                                       \
		struct rts_track_statistics *statistics = name##_of_cpu();                      \
		struct rts_track_interval interval = {};                                        \
		__u64 now_ns = bpf_ktime_get_ns();                                              \
                                                                                                \
		(void)map;                                                                      \
		(void)unused;                                                                   \
		if (!statistics || open->reported ||                                            \
		    (__s64)(now_ns - open->begin_ns) < (__s64)name##_timeout_ns)                \
			return 0;                                                               \
		open->reported = 1;                                                             \
		interval.begin_ns = open->begin_ns;                                             \
		interval.end_ns = now_ns;                                                       \
		interval.cpu = bpf_get_smp_processor_id();                                      \
		interval.flags = RTS_TRACK_OPEN;                                                \
		statistics->hits++;                                                             \
		callback((void *)0, key, &interval);                                            \
		return 0;                                                                       \
	}                                                                                       \
                                                                                                \
	SEC("syscall") int name##_check(void *ctx)                                              \
	{                                                                                       \
		(void)ctx;                                                                      \
		if (name##_timeout_ns)                                                          \
			bpf_for_each_map_elem(&name##_open, name##_look, (void *)0, 0);         \
		return 0;                                                                       \
	}                                                                                       \
	struct name##_takes_a_semicolon

#endif
