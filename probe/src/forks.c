/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Who forks while a library is closed that has the runtime in itself: the C library calls our
 * handlers without a lock, and who waits in the middle of them must not find its code gone, or,
 * worse, that of the library that was opened next.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <time.h>

/* So often, a millisecond each, a library waits that is closed. */
#define TRIES_MAX 1000

static unsigned under_way;

void rtscope_fork_begins(void)
{
    __atomic_fetch_add(&under_way, 1, __ATOMIC_SEQ_CST);
}

void rtscope_fork_ends(void)
{
    __atomic_fetch_sub(&under_way, 1, __ATOMIC_SEQ_CST);
}

/* The threads that were forking too are the parent's. */
void rtscope_fork_is_child(void)
{
    __atomic_store_n(&under_way, 0, __ATOMIC_SEQ_CST);
}

void rtscope_forks_await(void)
{
    static const struct timespec millisecond = {0, 1000000};
    for (int try = 0; try < TRIES_MAX && __atomic_load_n(&under_way, __ATOMIC_SEQ_CST); try++)
        (void)nanosleep(&millisecond, NULL);
}
