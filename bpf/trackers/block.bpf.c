// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Requests to block devices: from their beginning to the driver, and from the driver to their
// completion. Key is the device and the operation, detail the first sector. The task is the one
// that submitted it.

#include "disk.h"

enum { QUEUE = 0, DEVICE = 1 };

struct request_queue {
	struct gendisk *disk;
} RELOCATED;

struct request {
	struct request_queue *q;
	rts_u32 cmd_flags;
	rts_u32 __data_len;
	rts_u64 __sector;
} RELOCATED;

static __always_inline int begins(struct request *request)
{
	struct rts_tracker_open open = {};

	if (!disk_asked(&open, request->q->disk, request->cmd_flags, request->__sector))
		return 0;
	open.tracked.begin_ns = bpf_ktime_get_ns();
	open.tracked.series = QUEUE;
	open_begins((rts_u64)request, &open);
	return 0;
}

// Where it is counted as I/O; requests that the block layer makes by itself are not.
SEC("tp_btf/block_io_start")
int BPF_PROG(block_io_start, struct request *request)
{
	return begins(request);
}

// Merged into another one, it goes no way of its own.
SEC("tp_btf/block_rq_merge")
int BPF_PROG(block_rq_merge, struct request *request)
{
	open_ends((rts_u64)request);
	return 0;
}

// Issued again after the driver gave it back, it was in the queue until the last time.
SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_rq_issue, struct request *request)
{
	struct rts_tracker_open *open = open_find((rts_u64)request);

	if (!open)
		return 0;
	open->issued_ns = bpf_ktime_get_ns();
	open->tracked.series = DEVICE;
	return 0;
}

// A part of it may be complete before the whole.
SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *request, rts_u8 error, unsigned int bytes)
{
	rts_u64 now_ns = bpf_ktime_get_ns();
	struct rts_tracker_open open;

	if (bytes < request->__data_len || !open_take((rts_u64)request, &open))
		return 0;
	if (!open.issued_ns) {
		TRACKER_LOSS(unpaired);
		return 0;
	}
	stage_ends(&open.tracked, open.tracked.begin_ns, open.issued_ns, QUEUE);
	stage_ends(&open.tracked, open.issued_ns, now_ns, DEVICE);
	return 0;
}
