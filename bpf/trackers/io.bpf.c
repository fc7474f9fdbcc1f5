// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What lies above the requests of `block`: system calls in which a task asked for a disk, from
// entry to exit, and what the file system asked for, from there to its completion. Key is the
// device and the operation, of a call that of its first. The task is the one that asks.

#define TRACKER_KEEPS_IN_TASKS
#include "disk.h"

enum { CALL = 0, FILE_SYSTEM = 1 };

struct block_device {
	struct gendisk *bd_disk;
} RELOCATED;

struct bvec_iter {
	rts_u64 bi_sector;
	rts_u32 bi_size;
} RELOCATED;

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	rts_u32 bi_opf;
	struct bvec_iter bi_iter;
} RELOCATED;

struct request {
	struct bio *bio;
} RELOCATED;

// A request may be made of so many.
#define BIOS_MAX 1024

// What a call asked for first.
struct asked {
	rts_u64 key; // 0: nothing yet
	rts_u64 sector;
	char label[RTS_COMM_LENGTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RTS_KEYS_MAX);
	__type(key, rts_u32); // tid
	__type(value, struct asked);
} asked SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tracker_task *state = tracker_task(current);

	if (!state || !tracker_wants(state, current))
		return 0;
	// Not open before it asks for something: it may wait for anything.
	state->key = 0;
	state->detail = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void call_asks(struct task_struct *current,
		const struct rts_tracked *tracked)
{
	struct tracker_task *state = tracker_task(current);
	rts_u32 tid = current->pid;
	struct asked first = { .key = tracked->key, .sector = tracked->detail };

	if (!state || !state->detail || state->key)
		return;
	__builtin_memcpy(first.label, tracked->label, RTS_COMM_LENGTH);
	state->key = 1;
	bpf_map_update_elem(&asked, &tid, &first, BPF_ANY);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tracker_task *state = tracker_task(current);
	struct rts_tracked tracked;
	struct asked *first;
	rts_u32 tid = current->pid;
	rts_u64 begin_ns;

	if (!state || !state->key)
		return 0;
	begin_ns = state->detail;
	state->key = 0;
	state->detail = 0;
	first = bpf_map_lookup_elem(&asked, &tid);
	if (!first) {
		TRACKER_LOSS(full);
		return 0;
	}
	tracker_ends(&tracked, begin_ns, bpf_ktime_get_ns(), first->key, CALL);
	tracked.detail = first->sector;
	__builtin_memcpy(tracked.label, first->label, RTS_COMM_LENGTH);
	bpf_map_delete_elem(&asked, &tid);
	task_describe(&tracked.task, current);
	stage_ends(&tracked, tracked.begin_ns, tracked.end_ns, CALL);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(block_bio_queue, struct bio *bio)
{
	struct rts_tracker_open open = {};

	if (!disk_asked(&open, bio->bi_bdev->bd_disk, bio->bi_opf, bio->bi_iter.bi_sector))
		return 0;
	call_asks(bpf_get_current_task_btf(), &open.tracked);
	open.tracked.series = FILE_SYSTEM;
	open.tracked.begin_ns = bpf_ktime_get_ns();
	open_begins((rts_u64)bio, &open);
	return 0;
}

static __noinline int bio_ends(rts_u64 address, rts_u64 now_ns)
{
	struct rts_tracker_open open;

	if (open_take(address, &open))
		stage_ends(&open.tracked, open.tracked.begin_ns, now_ns, FILE_SYSTEM);
	return 0;
}

// Of a disk without requests, as one that is made of others.
SEC("tp_btf/block_bio_complete")
int BPF_PROG(block_bio_complete, void *queue, struct bio *bio)
{
	return bio_ends((rts_u64)bio, bpf_ktime_get_ns());
}

struct bios {
	rts_u64 address; // of the next one
	rts_u64 left;    // bytes that are done
	rts_u64 now_ns;
};

static long next_bio_ends(rts_u64 number, struct bios *bios)
{
	const struct bio *bio = (const struct bio *)bios->address;
	rts_u32 bytes;

	if (!bio)
		return 1;
	bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	if (bytes > bios->left)
		return 1;
	bios->left -= bytes;
	bios->address = (rts_u64)BPF_CORE_READ(bio, bi_next);
	bio_ends((rts_u64)bio, bios->now_ns);
	return 0;
}

// What a request was made of is complete with it, or with a part of it.
SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *request, rts_u8 error, unsigned int bytes)
{
	struct bios bios = {
		.address = (rts_u64)request->bio,
		.left = bytes,
		.now_ns = bpf_ktime_get_ns(),
	};

	bpf_loop(BIOS_MAX, next_bio_ends, &bios, 0);
	return 0;
}
