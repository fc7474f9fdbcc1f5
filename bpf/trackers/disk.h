// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What the trackers of disks share: which disk and which operation a request is of, and an interval
// that begins for them. Rows are few, so that each has a histogram of its own.

#ifndef RTSCOPE_TRACKERS_DISK_H
#define RTSCOPE_TRACKERS_DISK_H

#define TRACKER_KEY_HISTOGRAMS

#include "stages.h"

#define OPERATION_MASK 0xff // REQ_OP_MASK

struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
} RELOCATED;

// Whose disk a key means, without the operation.
static __always_inline rts_u64 disk_of(rts_u64 key)
{
	return key >> 8;
}

// The current task asks `disk` for the operation in `flags`; whether that is measured. When it
// begins is left to the caller.
static __always_inline bool disk_asked(struct rts_tracker_open *open, const struct gendisk *disk,
		rts_u32 flags, rts_u64 sector)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (!disk || !tracker_wants_task(current))
		return false;
	open->tracked.key = ((rts_u64)disk->major << 20 | disk->first_minor) << 8 |
			    (flags & OPERATION_MASK);
	if (!tracker_only(disk_of(open->tracked.key)))
		return false;
	open->tracked.detail = sector;
	open->tracked.other.tid = -1;
	task_describe(&open->tracked.task, current);
	tracker_label(open->tracked.label, disk->disk_name);
	return true;
}

#endif
