/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a child of fork keeps of its parent's rings: addresses. Where a signal handler forked above
 * an event, the child goes on in the middle of it when the handler returns, with places in those
 * rings in its registers. There it finds rings that have no memory, and private pages.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A head that no ring has, as those count in 8 bytes: who compares it with one that was read before
 * begins again. Everything below it is unread, so that nothing finds room. */
#define HEAD_OF_NONE ((UINT64_C(1) << 62) + 1)

/* So many generations: who forks in a handler in a child that forked in a handler. */
#define GENERATIONS_MAX 4

static struct {
    void *at;
    uint64_t bytes;
} left[GENERATIONS_MAX];

static unsigned newest;

static void forget(unsigned place)
{
    if (left[place].bytes)
        munmap(left[place].at, left[place].bytes);
    left[place].bytes = 0;
}

void rtscope_left_forget(void)
{
    for (unsigned place = 0; place < GENERATIONS_MAX; place++)
        forget(place);
}

/* How far into the file an event may look. With rseq the data is out of reach: a head is compared
 * before anything is stored there. */
static uint64_t reach(const struct rtscope_file *file, uint64_t switches_used)
{
    const struct rtscope_header *const header = file->header;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t end = file->map_bytes;
    if (header->rseq)
        /* Where filters begin they have 8 bytes that are none. */
        end = header->filters_used > 8 ? header->objects_offset
                                       : header->switches_offset + switches_used;
    return (end + page - 1) & ~(page - 1);
}

void rtscope_left_keep(struct rtscope_file *parent, uint64_t switches_used)
{
    struct rtscope_header *const header = parent->header;
    if (!header)
        return;
    const uint64_t bytes = parent->map_bytes, kept = reach(parent, switches_used);
    const size_t rings = (size_t)header->sets_length * header->rings_length;
    struct rtscope_ring *const first = rtscope_rings_of(header, 0);
    parent->header = NULL;
    if (mmap(header, kept, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
        munmap(header, bytes);
        return;
    }
    if (kept < bytes)
        munmap((char *)header + kept, bytes - kept);
    for (size_t ring = 0; ring < rings; ring++) {
        first[ring].head = HEAD_OF_NONE;
        first[ring].owner = 1;
        first[ring].absent = 1;
    }
    newest = (newest + 1) % GENERATIONS_MAX;
    forget(newest);
    left[newest].at = header;
    left[newest].bytes = kept;
}
