/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How many addresses a process may have that locks all its memory. The kernel counts all of them
 * against the limit, also those without memory: large rings would make its mlockall fail.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the program takes later: its heap, what it reads. */
#define SPARE_BYTES (UINT64_C(1) << 20)

int rtscope_minds_addresses(void)
{
    struct rlimit limit;
    return (rtscope_calls() & (RTSCOPE_CALLS_MLOCKALL | RTSCOPE_CALLS_UNSEEN)) ||
           getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* Whether the limit is none for this process. */
static int may_lock_anything(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    memset(sets, 0, sizeof sets);
    return syscall(SYS_capget, &header, sets) == 0 &&
           (sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK));
}

/* All addresses that the process has; 0 where nobody says. */
static uint64_t addresses_bytes(void)
{
    char text[64];
    if (rtscope_read_small("/proc/self/statm", text, sizeof text) <= 0)
        return 0;
    return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t rtscope_lockable_bytes(uint64_t enough, uint64_t leaving)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        may_lock_anything() || !(rtscope_calls_known() & RTSCOPE_CALLS_MLOCKALL))
        return UINT64_MAX;
    const uint64_t used = addresses_bytes() - leaving + SPARE_BYTES;
    /* Without rings it could not lock itself either. */
    if (used >= limit.rlim_cur || limit.rlim_cur - used >= enough)
        return UINT64_MAX;
    return limit.rlim_cur - used;
}
