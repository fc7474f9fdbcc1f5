// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * npt's loop: reads the counter, notes how long the iteration took, records an event if asked. With
 * RTSCOPE_LOOP_LTTNG it is compiled at run time, and its events are LTTng-UST's.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef RTSCOPE_LOOP_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "npt_lttng.h"
#define NUMBERS(counter, duration) lttng_ust_tracepoint(npt, loop, counter, duration)
#define TEXT(counter, words) lttng_ust_tracepoint(npt, text, counter, words)
#else
#include <rtscope/event.h>
#define NUMBERS(i, d) RTSCOPE_EVENT(npt, loop, u64("counter", i), u64("duration", d))
#define TEXT(i, words) RTSCOPE_EVENT(npt, text, u64("counter", i), text("words", words))
#endif

/* What an iteration does besides measuring itself. The same as `Body` in mod.rs. */
enum body { BODY_NOTHING, BODY_CLOCK, BODY_NUMBERS, BODY_TEXT };

/* The same as `Counts` in mod.rs. */
struct rtscope_loop_counts {
    /* Iterations by ticks; longer ones are counted as overruns. */
    uint64_t *bins;
    uint64_t bins_length;
    uint64_t counted;
    uint64_t overruns;
    uint64_t overruns_sum;
    uint64_t ticks_max;
};

/* The same as `Loop` in mod.rs. */
struct rtscope_loop {
    uint64_t iterations;
    /* Iterations at the beginning that are not counted. */
    uint64_t dropped;
    /* Ticks from one iteration to the next; 0 for as fast as it goes. */
    uint64_t pace;
    /* An `enum body`. */
    uint64_t body;
    /* Of all that were counted, first to last. */
    uint64_t elapsed;
    /* Changes whenever something takes the CPU from the loop; never, if nobody counts that. */
    const volatile uint64_t *interruptions;
    /* Where it is to run. */
    uint64_t cpu;
    /* Whoever is moved to another CPU loses more ticks than this. */
    uint64_t move_ticks;
    /* It found itself on another CPU, and ended: the iteration that took it there does not
     * count. */
    uint64_t lost_cpu;
    /* Iterations in which it did not change, and in which it did. */
    struct rtscope_loop_counts free;
    struct rtscope_loop_counts hit;
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

/* For another tracer that is loaded, which looks into the environment; NULL for no value. */
void rtscope_loop_environment(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
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

static inline void keep(struct rtscope_loop *loop, uint64_t ticks, int hit)
{
    struct rtscope_loop_counts *const counts = hit ? &loop->hit : &loop->free;
    counts->counted++;
    if (ticks > counts->ticks_max)
        counts->ticks_max = ticks;
    if (ticks < counts->bins_length) {
        counts->bins[ticks]++;
        return;
    }
    counts->overruns++;
    counts->overruns_sum += ticks;
}

/* Whether it still runs where it is to run; notes when not. */
static __attribute__((noinline)) int in_place(struct rtscope_loop *loop)
{
    loop->lost_cpu = sched_getcpu() != (int)loop->cpu;
    return !loop->lost_cpu;
}

static inline __attribute__((always_inline)) void record(enum body body, uint64_t i,
                                                         uint64_t duration)
{
    static const char words[] = "thirty-two bytes of text it has.";
    if (body == BODY_CLOCK)
        (void)counter();
    else if (body == BODY_NUMBERS)
        NUMBERS(i, duration);
    else if (body == BODY_TEXT)
        TEXT(i, words);
}

/* As fast as it goes: an iteration lasts until the next one begins. What comes between a reading of
 * the counter and that of the interruptions counts for the iterations on both sides. */
static inline __attribute__((always_inline)) void fast(struct rtscope_loop *loop, enum body body,
                                                       const volatile uint8_t *stop)
{
    const uint64_t all = loop->iterations + loop->dropped;
    uint64_t seen = *loop->interruptions, last = counter(), first = last;
    for (uint64_t i = 0; i < all && !*stop; i++) {
        if (i == loop->dropped)
            first = counter();
        const uint64_t before = *loop->interruptions;
        const uint64_t now = counter(), duration = now - last;
        const int hit = *loop->interruptions != seen;
        seen = before;
        last = now;
        if (duration > loop->move_ticks && !in_place(loop))
            break;
        record(body, i, duration);
        if (i >= loop->dropped)
            keep(loop, duration, hit);
    }
    loop->elapsed = counter() - first;
}

/* At its pace: an iteration is what it records. Behind its pace it begins where the last one ended,
 * as above: a reading of the counter more would be what limits the rate. */
static inline __attribute__((always_inline)) void paced(struct rtscope_loop *loop, enum body body,
                                                        const volatile uint8_t *stop)
{
    const uint64_t all = loop->iterations + loop->dropped;
    uint64_t seen = *loop->interruptions, begin = counter();
    uint64_t next = begin, first = begin, duration = 0;
    for (uint64_t i = 0; i < all && !*stop; i++) {
        if (i == loop->dropped)
            first = begin;
        next += loop->pace;
        uint64_t longest = 0;
        while (begin < next) {
            const uint64_t last = begin;
            seen = *loop->interruptions;
            begin = counter();
            if (begin - last > longest)
                longest = begin - last;
        }
        if (longest > loop->move_ticks && !in_place(loop))
            break;
        record(body, i, duration);
        const uint64_t before = *loop->interruptions;
        const uint64_t now = counter();
        const int hit = *loop->interruptions != seen;
        duration = now - begin;
        seen = before;
        begin = now;
        if (duration > loop->move_ticks && !in_place(loop))
            break;
        if (i >= loop->dropped)
            keep(loop, duration, hit);
    }
    loop->elapsed = counter() - first;
}

/* The compiler makes a loop of each body, so that no branch of ours is measured. */
#define LOOP(name, body)                                                                         \
    static __attribute__((noinline)) void name(struct rtscope_loop *loop,                        \
                                               const volatile uint8_t *stop)                     \
    {                                                                                            \
        if (loop->pace)                                                                          \
            paced(loop, body, stop);                                                             \
        else                                                                                     \
            fast(loop, body, stop);                                                              \
    }
LOOP(loop_nothing, BODY_NOTHING)
LOOP(loop_clock, BODY_CLOCK)
LOOP(loop_numbers, BODY_NUMBERS)
LOOP(loop_text, BODY_TEXT)

void rtscope_loop_run(struct rtscope_loop *loop, const volatile uint8_t *stop);
void rtscope_loop_run(struct rtscope_loop *loop, const volatile uint8_t *stop)
{
    void (*const loops[])(struct rtscope_loop *, const volatile uint8_t *) = {
        [BODY_NOTHING] = loop_nothing,
        [BODY_CLOCK] = loop_clock,
        [BODY_NUMBERS] = loop_numbers,
        [BODY_TEXT] = loop_text,
    };
    /* Else the first iteration of each length pays for a page. */
    memset(loop->free.bins, 0, loop->free.bins_length * sizeof *loop->free.bins);
    memset(loop->hit.bins, 0, loop->hit.bins_length * sizeof *loop->hit.bins);
    loops[loop->body](loop, stop);
}
