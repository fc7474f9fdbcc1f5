// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// An action of `rtscope watch --bpf-action`: counts in the kernel, at each hit, who was in the way
// and for how long, and leaves the table to whoever reads it while the watch runs.
//
//	clang -target bpf -O2 -g -I/usr/include/$(uname -m)-linux-gnu -c count_culprits.bpf.c
//	sudo rtscope watch wakeup --over 1ms --bpf-action count_culprits.bpf.o
//	sudo bpftool map dump name culprits

#include <linux/types.h>
#include <linux/bpf.h>

#include <rtscope/action.bpf.h>

char LICENSE[] SEC("license") = "GPL";

struct culprit {
	__u64 hits;
	__u64 sum_ns;
	char comm[16];
	char tracker[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __s32); // its tid
	__type(value, struct culprit);
} culprits SEC(".maps");

RTS_ACTION(hit)
{
	struct culprit *culprit = bpf_map_lookup_elem(&culprits, &hit->other.tid);
	struct culprit first = { .hits = 1, .sum_ns = hit->end_ns - hit->begin_ns };

	if (culprit) {
		__sync_fetch_and_add(&culprit->hits, 1);
		__sync_fetch_and_add(&culprit->sum_ns, first.sum_ns);
		return 0;
	}
	__builtin_memcpy(first.comm, hit->other.comm, sizeof(first.comm));
	__builtin_memcpy(first.tracker, hit->tracker, sizeof(first.tracker));
	bpf_map_update_elem(&culprits, &hit->other.tid, &first, BPF_ANY);
	return 0;
}
