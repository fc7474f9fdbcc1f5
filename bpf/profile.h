// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Own run time of each program, apart for calls that changed state and calls that did not. Off, it
// leaves nothing in the loaded program.

#ifndef RTSCOPE_PROFILE_H
#define RTSCOPE_PROFILE_H

#include "kernel.h"

#include "histogram.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * RTS_PROGRAMS_MAX);
	__type(key, rts_u32);
	__type(value, struct rts_profile);
} profiles SEC(".maps");

static __always_inline int profile_end(rts_u32 program, rts_u64 begin_ns, bool changed)
{
	rts_u64 own_ns = bpf_ktime_get_ns() - begin_ns;
	rts_u32 key = 2 * program + changed;
	struct rts_profile *profile = bpf_map_lookup_elem(&profiles, &key);
	rts_u32 bucket = histogram_bucket(own_ns);

	if (!profile || bucket >= RTS_BUCKETS_MAX)
		return 0;
	profile->calls++;
	profile->total_ns += own_ns;
	profile->buckets[bucket]++;
	if (own_ns > profile->max_ns)
		profile->max_ns = own_ns;
	return 0;
}

// Runs `body`, which says whether it changed state, as the whole of a program.
#define PROFILED(enabled, program, body)                                      \
	({                                                                    \
		rts_u64 begin_ns = (enabled) ? bpf_ktime_get_ns() : 0;        \
		bool changed = (body);                                        \
		(enabled) ? profile_end(program, begin_ns, changed) : 0;      \
	})

#endif
