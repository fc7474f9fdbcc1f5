// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * npt's loop: reads the counter, notes how long the iteration took, records an event if asked. With
 * RTSCOPE_LOOP_LTTNG it is compiled at run time, and its events are LTTng-UST's.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef RTSCOPE_LOOP_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "npt_lttng.h"
#define EVENT(counter, duration) lttng_ust_tracepoint(npt, loop, counter, duration)
#else
#include <rtscope/event.h>
#define EVENT(i, d) RTSCOPE_EVENT(npt, loop, u64("counter", i), u64("duration", d))
#endif

/* An iteration that an interrupt may have hit. The same as `Long` in mod.rs. */
struct rtscope_loop_long {
    uint64_t begin;
    uint64_t ticks;
};

/* The same as `Loop` in mod.rs. */
struct rtscope_loop {
    uint64_t iterations;
    /* Iterations at the beginning that are not counted. */
    uint64_t dropped;
    /* Ticks from one iteration to the next; 0 for as fast as it goes. */
    uint64_t pace;
    uint64_t events;
    /* Counts by ticks; longer iterations are counted as overruns. */
    uint64_t *bins;
    uint64_t bins_length;
    uint64_t counted;
    uint64_t overruns;
    uint64_t overruns_sum;
    uint64_t ticks_max;
    /* Of all that were counted, first to last. */
    uint64_t elapsed;
    /* Iterations of at least so many ticks are kept with their time, as long as there is room. */
    uint64_t long_ticks;
    struct rtscope_loop_long *longs;
    uint64_t longs_room;
    uint64_t longs_length;
    uint64_t longs_unkept;
};

#ifndef RTSCOPE_LOOP_LTTNG
/* Makes the loop's events known, and switches them on unless the user said which. Without a
 * recorder the newest are kept, and then forgotten. */
void rtscope_loop_attach(void)
{
    setenv("RTSCOPE_EVENTS", "npt", 0);
    setenv("RTSCOPE_MODE", "overwrite", 0);
    rtscope_attach();
}

void rtscope_loop_detach(int forget)
{
    if (forget)
        rtscope_forget();
    rtscope_detach();
}

/* Before another tracer is loaded, which looks into the environment. */
void rtscope_loop_environment(const char *name, const char *value)
{
    setenv(name, value, 1);
}
#endif

static inline __attribute__((always_inline)) uint64_t counter(void)
{
#ifdef __x86_64__
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
#else
    uint64_t now;
    __asm__ volatile("isb\nmrs %0, cntvct_el0" : "=r"(now) : : "memory");
    return now;
#endif
}

static __attribute__((noinline)) void keep_long(struct rtscope_loop *loop, uint64_t begin,
                                                uint64_t ticks)
{
    if (loop->longs_length < loop->longs_room)
        loop->longs[loop->longs_length++] = (struct rtscope_loop_long){begin, ticks};
    else
        loop->longs_unkept++;
}

static inline void keep(struct rtscope_loop *loop, uint64_t begin, uint64_t ticks)
{
    loop->counted++;
    if (ticks > loop->ticks_max)
        loop->ticks_max = ticks;
    if (ticks >= loop->long_ticks)
        keep_long(loop, begin, ticks);
    if (ticks < loop->bins_length) {
        loop->bins[ticks]++;
        return;
    }
    loop->overruns++;
    loop->overruns_sum += ticks;
}

void rtscope_loop_run(struct rtscope_loop *loop, const volatile uint8_t *stop);
void rtscope_loop_run(struct rtscope_loop *loop, const volatile uint8_t *stop)
{
    const uint64_t all = loop->iterations + loop->dropped;
    uint64_t last = counter(), first = last, next = last, begin = last, duration = 0;
    for (uint64_t i = 0; i < all && !*stop; i++) {
        if (i == loop->dropped)
            first = counter();
        if (loop->pace) {
            next += loop->pace;
            while (counter() < next)
                ;
            begin = counter();
            if (loop->events)
                EVENT(i, duration);
            duration = counter() - begin;
        } else {
            const uint64_t now = counter();
            duration = now - last;
            begin = last;
            last = now;
            if (loop->events)
                EVENT(i, duration);
        }
        if (i >= loop->dropped)
            keep(loop, begin, duration);
    }
    loop->elapsed = counter() - first;
}
