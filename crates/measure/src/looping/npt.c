// SPDX-License-Identifier: MIT OR Apache-2.0
/* npt's loop: reads the counter, notes how long the iteration took, records an event if asked. */
#define _GNU_SOURCE
#include <rtscope/event.h>
#include <stdlib.h>

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
};

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

static inline void keep(struct rtscope_loop *loop, uint64_t ticks)
{
    loop->counted++;
    if (ticks > loop->ticks_max)
        loop->ticks_max = ticks;
    if (ticks < loop->bins_length) {
        loop->bins[ticks]++;
        return;
    }
    loop->overruns++;
    loop->overruns_sum += ticks;
}

void rtscope_loop_run(struct rtscope_loop *loop, const volatile uint8_t *stop)
{
    const uint64_t all = loop->iterations + loop->dropped;
    uint64_t last = rtscope_counter_(), next = last, duration = 0;
    for (uint64_t i = 0; i < all && !*stop; i++) {
        if (loop->pace) {
            next += loop->pace;
            while (rtscope_counter_() < next)
                ;
            last = rtscope_counter_();
            if (loop->events)
                RTSCOPE_EVENT(npt, loop, u64("counter", i), u64("duration", duration));
            duration = rtscope_counter_() - last;
        } else {
            const uint64_t now = rtscope_counter_();
            duration = now - last;
            last = now;
            if (loop->events)
                RTSCOPE_EVENT(npt, loop, u64("counter", i), u64("duration", duration));
        }
        if (i >= loop->dropped)
            keep(loop, duration);
    }
}
