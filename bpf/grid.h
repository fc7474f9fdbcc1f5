// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The grid on which sleeps until a moment release a target: one period after the other, whatever
// its work takes. A sleep until a moment beside it is none of its releases: a lock, or a wait for
// something that is tried again. Recordings have the same rule, with the median of the last
// releases in place of the first time between two of them.

#ifndef RTSCOPE_GRID_H
#define RTSCOPE_GRID_H

#include "state.h"

// So many times between two releases tell whether these lie on a grid.
#define GRID_SURE 8
// All of these lie no farther beside a multiple of the period than that by this.
#define GRID_NEAR 64
// Who computes each moment from the time it is may be kept from that: so far beside is another
// sleep, as a part of the period.
#define GRID_FAR 8
// A program that adds one period after the other rounds so much at most, and sleeps for nothing
// else so near to its grid.
#define GRID_ROUNDED_NS 50
#define GRID_EXACT_NS 1000
// So many sleeps beside it may be in one cycle, which is no longer than so many periods.
#define GRID_BESIDE_MAX 64
#define GRID_PERIODS_MAX 16
// So often in a row one period after the other is another grid.
#define GRID_SHIFTED 2
// A sleep that is as long as the period, but for this part of it, is for the next release: who
// counts its next period from when it is done sleeps for as long, whatever its work takes.
#define GRID_WHOLE 16

static __always_inline void grid_forget(struct grid *grid)
{
	grid->last_ns = 0;
	grid->period_ns = 0;
	grid->again = 0;
	grid->beside = 0;
	grid->perhaps_sleeps = 0;
}

// How far a length of time lies beside the next multiple of the period.
static __always_inline rts_u64 grid_beside_ns(const struct grid *grid, rts_u64 length_ns)
{
	rts_u64 more_ns;

	if (!grid->period_ns || length_ns < grid->period_ns / 2)
		return ~0ull;
	more_ns = length_ns % grid->period_ns;
	return more_ns < grid->period_ns / 2 ? more_ns : grid->period_ns - more_ns;
}

// Whether a sleep until `due_ns` that began then was as long as a period.
static __always_inline bool grid_is_whole(const struct grid *grid, rts_u64 due_ns, rts_u64 slept_ns)
{
	rts_s64 longer_ns = (rts_s64)(due_ns - slept_ns - grid->period_ns);

	return (longer_ns < 0 ? -longer_ns : longer_ns) <= (rts_s64)(grid->period_ns / GRID_WHOLE);
}

// A sleep until `due_ns`, which began then, released the target; 0: it slept for something else.
static __always_inline void grid_released(struct grid *grid, rts_u64 due_ns, rts_u64 slept_ns)
{
	bool is_sure = grid->again == GRID_SURE;
	rts_u64 beside_ns;

	// It is known to go by that already.
	if (due_ns && due_ns == grid->last_ns)
		return;
	if (!due_ns || due_ns <= grid->last_ns) {
		grid_forget(grid);
		grid->last_ns = due_ns;
		return;
	}
	beside_ns = grid_beside_ns(grid, due_ns - grid->last_ns);
	if (beside_ns <= grid->period_ns / GRID_NEAR) {
		if (beside_ns > GRID_ROUNDED_NS)
			grid->rounds = 1;
		if (!is_sure)
			grid->again++;
	} else if (is_sure && !grid_is_whole(grid, due_ns, slept_ns)) {
		// It was kept from computing its moment, or had none to wait for: the grid goes on.
		return;
	} else if (!is_sure) {
		grid->period_ns = grid->last_ns ? due_ns - grid->last_ns : 0;
		grid->again = 0;
		grid->rounds = 0;
	}
	grid->last_ns = due_ns;
}

enum grid_sleep {
	GRID_RELEASE = 0, // for a release, as far as the grid tells
	GRID_INSIDE = 1,  // inside the present cycle
	GRID_LEFT = 2,    // for a release of another grid: nobody knows when the present cycle ended
};

// What a sleep until `due_ns` was, which began then and is over. Who sleeps one period after the
// other beside its grid began it anew, and many sleeps beside it are another pace.
static __always_inline enum grid_sleep grid_slept(struct grid *grid, rts_u64 due_ns,
		rts_u64 slept_ns)
{
	rts_u64 far_ns = grid->rounds ? grid->period_ns / GRID_FAR : GRID_EXACT_NS;
	rts_u64 gap_ns = due_ns - grid->beside_ns;

	if (grid->again < GRID_SURE || !due_ns)
		return GRID_RELEASE;
	if (due_ns > grid->last_ns && grid_beside_ns(grid, due_ns - grid->last_ns) <= far_ns)
		return GRID_RELEASE;
	if (grid_is_whole(grid, due_ns, slept_ns)) {
		// What lay beside the one before was the way to this one.
		bool moved = grid->beside || grid->perhaps_sleeps;

		grid->last_ns = due_ns;
		grid->beside = 0;
		grid->perhaps_sleeps = 0;
		return moved ? GRID_LEFT : GRID_RELEASE;
	}
	grid->shifted = grid->beside && grid_beside_ns(grid, gap_ns) <= grid->period_ns / GRID_NEAR ?
				grid->shifted + 1 : 0;
	if (grid->shifted == GRID_SHIFTED) {
		grid->last_ns = due_ns;
		grid->beside = 0;
		return GRID_LEFT;
	}
	if (grid->beside == GRID_BESIDE_MAX ||
	    due_ns > grid->last_ns + grid->period_ns * GRID_PERIODS_MAX) {
		grid_forget(grid);
		return GRID_LEFT;
	}
	grid->beside++;
	grid->beside_ns = due_ns;
	return GRID_INSIDE;
}

#endif
