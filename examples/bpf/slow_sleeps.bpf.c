// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// A BPF program of one's own with rtscope/track.bpf.h: how long each thread sleeps in
// clock_nanosleep, and every sleep over a threshold as a record in a ring.
//
//	clang -target bpf -O2 -g -I/usr/include/$(uname -m)-linux-gnu -c slow_sleeps.bpf.c
//	bpftool prog loadall slow_sleeps.bpf.o /sys/fs/bpf/slow_sleeps autoattach
//	bpftool map dump name sleeps_statistics

#include <linux/types.h>
#include <linux/bpf.h>

#include <rtscope/track.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct thread {
	__u64 pid_and_tid;
};

struct slow_sleep {
	struct thread thread;
	struct rts_track_interval interval;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} slow_sleeps SEC(".maps");

static void too_long(void *ctx, const struct thread *thread,
		     const struct rts_track_interval *interval)
{
	struct slow_sleep *record = bpf_ringbuf_reserve(&slow_sleeps, sizeof(*record), 0);

	if (!record)
		return;
	record->thread = *thread;
	record->interval = *interval;
	bpf_ringbuf_submit(record, 0);
}

RTS_TRACK(sleeps, struct thread, 1024, too_long);

SEC("tracepoint/syscalls/sys_enter_clock_nanosleep")
int sleep_begins(void *ctx)
{
	struct thread thread = { bpf_get_current_pid_tgid() };

	sleeps_in(&thread);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_clock_nanosleep")
int sleep_ends(void *ctx)
{
	struct thread thread = { bpf_get_current_pid_tgid() };

	sleeps_out(ctx, &thread);
	return 0;
}
