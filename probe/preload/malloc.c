/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Preloaded, records who takes and gives back memory, by LTTng's names: lttng_ust_libc:malloc,
 * calloc, realloc, memalign, posix_memalign, free. Fields as there.
 */
#define _GNU_SOURCE
#include "next.h"

#include <errno.h>
#include <rtscope/event.h>
#include <stdlib.h>
#include <string.h>

/* What dlsym allocates while we ask it where malloc is; never given back. */
#define EARLY_BYTES 8192u
#define EARLY_ALIGNMENT 16u

static unsigned char early[EARLY_BYTES] __attribute__((aligned(EARLY_ALIGNMENT)));
static size_t early_used;

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void (*free)(void *);
} next;

/* Runs from the first call of any of these, long before there is a second thread. */
static int find(void)
{
    static int begun;
    if (next.free)
        return 1;
    if (begun)
        return 0;
    begun = 1;
    RTSCOPE_NEXT(next.malloc, "malloc");
    RTSCOPE_NEXT(next.calloc, "calloc");
    RTSCOPE_NEXT(next.realloc, "realloc");
    RTSCOPE_NEXT(next.memalign, "memalign");
    RTSCOPE_NEXT(next.aligned_alloc, "aligned_alloc");
    RTSCOPE_NEXT(next.posix_memalign, "posix_memalign");
    RTSCOPE_NEXT(next.free, "free");
    return 1;
}

static int is_early(const void *memory)
{
    const unsigned char *const byte = memory;
    return byte >= early && byte < early + EARLY_BYTES;
}

/* Zeroed, as all of it is used once only. */
static void *take_early(size_t bytes)
{
    const size_t rounded = (bytes + EARLY_ALIGNMENT - 1) & ~(size_t)(EARLY_ALIGNMENT - 1);
    if (rounded < bytes || rounded > EARLY_BYTES - early_used)
        return NULL;
    void *const memory = early + early_used;
    early_used += rounded;
    return memory;
}

void *malloc(size_t size)
{
    if (!find())
        return take_early(size);
    void *const memory = next.malloc(size);
    RTSCOPE_EVENT(lttng_ust_libc, malloc, u64("size", size), x64("ptr", (uintptr_t)memory));
    return memory;
}

void *calloc(size_t count, size_t size)
{
    if (!find())
        return size && count > EARLY_BYTES / size ? NULL : take_early(count * size);
    void *const memory = next.calloc(count, size);
    RTSCOPE_EVENT(lttng_ust_libc, calloc, u64("nmemb", count), u64("size", size),
                  x64("ptr", (uintptr_t)memory));
    return memory;
}

/* An early piece's length is not known: what lies behind it is copied too, and does no harm. */
static void *move_early(const void *from, size_t size)
{
    const size_t behind = (size_t)(early + EARLY_BYTES - (const unsigned char *)from);
    void *const memory = find() ? next.malloc(size) : take_early(size);
    if (memory)
        memmove(memory, from, size < behind ? size : behind);
    return memory;
}

void *realloc(void *old, size_t size)
{
    const uintptr_t before = (uintptr_t)old;
    if (is_early(old))
        return move_early(old, size);
    if (!find())
        return take_early(size);
    void *const memory = next.realloc(old, size);
    RTSCOPE_EVENT(lttng_ust_libc, realloc, x64("in_ptr", before), u64("size", size),
                  x64("ptr", (uintptr_t)memory));
    return memory;
}

void *memalign(size_t alignment, size_t size)
{
    if (!find())
        return NULL;
    void *const memory = next.memalign(alignment, size);
    RTSCOPE_EVENT(lttng_ust_libc, memalign, u64("alignment", alignment), u64("size", size),
                  x64("ptr", (uintptr_t)memory));
    return memory;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    if (!find())
        return NULL;
    void *const memory = next.aligned_alloc(alignment, size);
    RTSCOPE_EVENT(lttng_ust_libc, memalign, u64("alignment", alignment), u64("size", size),
                  x64("ptr", (uintptr_t)memory));
    return memory;
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (!find())
        return ENOMEM;
    const int result = next.posix_memalign(memory, alignment, size);
    RTSCOPE_EVENT(lttng_ust_libc, posix_memalign,
                  x64("out_ptr", result == 0 ? (uintptr_t)*memory : 0),
                  u64("alignment", alignment), u64("size", size), i32("result", result));
    return result;
}

void free(void *memory)
{
    if (is_early(memory) || !find())
        return;
    RTSCOPE_EVENT(lttng_ust_libc, free, x64("ptr", (uintptr_t)memory));
    next.free(memory);
}
