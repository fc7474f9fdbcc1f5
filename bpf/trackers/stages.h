// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What trackers of two intervals in a row share: the first ends where the second begins, and what
// is open is found by a number, most often an address of the kernel's.

#ifndef RTSCOPE_TRACKERS_STAGES_H
#define RTSCOPE_TRACKERS_STAGES_H

#include "open.h"
#include "tasks.h"

// The intervals of work that is asked for here and runs there.
enum { ASKED = 0, RUNS = 1 };

static __always_inline void stage_ends(struct rts_tracked *tracked, rts_u64 begin_ns,
		rts_u64 now_ns, rts_u8 series)
{
	tracked->begin_ns = begin_ns;
	tracked->end_ns = now_ns;
	tracked->series = series;
	tracked->cpu = bpf_get_smp_processor_id();
	if (tracker_counts_known(tracked))
		tracker_tells(tracked);
}

// What was asked for under one number runs from here on, under another one: the first may be freed
// or used again meanwhile.
static __always_inline void run_begins(rts_u64 asked, rts_u64 run)
{
	rts_u64 now_ns = bpf_ktime_get_ns();
	struct rts_tracker_open running;

	if (!open_take(asked, &running))
		return;
	task_describe(&running.tracked.other, bpf_get_current_task_btf());
	stage_ends(&running.tracked, running.tracked.begin_ns, now_ns, ASKED);
	running.tracked.begin_ns = now_ns;
	running.tracked.end_ns = 0;
	running.tracked.series = RUNS;
	open_begins(run, &running);
}

static __always_inline void run_ends(rts_u64 run)
{
	rts_u64 now_ns = bpf_ktime_get_ns();
	struct rts_tracker_open open;

	if (open_take(run, &open))
		stage_ends(&open.tracked, open.tracked.begin_ns, now_ns, RUNS);
}

#endif
