// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A loop that does nothing but read the counter and, where asked, record an event: how much longer
 * an iteration takes is what the event costs. The method of npt. One line of JSON to stdout.
 *
 *     npt VARIANT CPU LOOPS      none, clock, event, text
 *     npt rate CPU LOOPS N WHAT  N threads on as many CPUs up to CPU, each as fast as it goes: of
 *                                events, or of clock readings, the machine's own bound
 *
 * With NPT_LTTNG defined, the events are LTTng-UST's.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef NPT_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "npt_lttng.h"
#define EVENT(i, d) lttng_ust_tracepoint(npt, loop, i, d)
#define TEXT(i, s) lttng_ust_tracepoint(npt, text, i, s)
#else
#include <rtscope/event.h>
#define EVENT(i, d) RTSCOPE_EVENT(npt, loop, u64("i", i), u64("duration", d))
#define TEXT(i, s) RTSCOPE_EVENT(npt, text, u64("i", i), text("s", s))
#endif

/* Ticks that have a bin of their own; longer iterations are kept as the maximum only. */
#define BINS (1u << 20)
/* Iterations at the beginning that are not counted. */
#define DROPPED 1000

static uint64_t bins[BINS];
static uint64_t over, ticks_max;

static inline uint64_t counter(void)
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

static double ns_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double now_ns(void)
{
    return ns_of(CLOCK_MONOTONIC);
}

static double ticks_per_ns(void)
{
    const double begin = now_ns();
    const uint64_t first = counter();
    while (now_ns() - begin < 1e8)
        ;
    return (double)(counter() - first) / (now_ns() - begin);
}

static inline void keep(uint64_t ticks)
{
    if (ticks > ticks_max)
        ticks_max = ticks;
    if (ticks < BINS)
        bins[ticks]++;
    else
        over++;
}

/* The same loop for each variant, so that no branch of ours is measured. */
#define LOOP(body)                                       \
    for (uint64_t i = 0; i < loops + DROPPED; i++) {     \
        const uint64_t t = counter(), d = t - last;      \
        last = t;                                        \
        if (i == DROPPED) {                              \
            memset(bins, 0, sizeof bins);                \
            over = ticks_max = 0;                        \
            last = first = counter();                    \
        } else                                           \
            keep(d);                                     \
        body;                                            \
    }

static double percentile(uint64_t count, double share, double scale)
{
    uint64_t sum = 0;
    for (uint64_t ticks = 0; ticks < BINS; ticks++)
        if ((sum += bins[ticks]) >= (uint64_t)(share * (double)count))
            return (double)ticks / scale;
    return (double)ticks_max / scale;
}

/* The mean of the shortest 99.9 %: what is longer was interrupted. */
static double kept_mean(uint64_t count, double scale)
{
    const uint64_t kept = count - count / 1000;
    uint64_t seen = 0;
    double sum = 0;
    for (uint64_t ticks = 0; ticks < BINS && seen < kept; ticks++) {
        const uint64_t here = bins[ticks] < kept - seen ? bins[ticks] : kept - seen;
        sum += (double)here * (double)ticks;
        seen += here;
    }
    return sum / (double)kept / scale;
}

static double deviation(uint64_t count, double scale)
{
    double sum = 0, squares = 0;
    for (uint64_t ticks = 0; ticks < BINS; ticks++) {
        sum += (double)bins[ticks] * (double)ticks;
        squares += (double)bins[ticks] * (double)ticks * (double)ticks;
    }
    const double mean = sum / (double)count, variance = squares / (double)count - mean * mean;
    return sqrt(variance > 0 ? variance : 0) / scale;
}

static double shortest(double scale)
{
    uint64_t ticks = 0;
    while (ticks < BINS - 1 && !bins[ticks])
        ticks++;
    return (double)ticks / scale;
}

static void pin(int number)
{
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(number, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
}

struct writer {
    pthread_t thread;
    pthread_barrier_t *begin;
    int cpu;
    int reads_clock;
    uint64_t loops;
    /* Of its CPU time: what shares its CPU does not count, what shares its caches does. */
    double per_cpu_second;
};

static void *write_events(void *context)
{
    struct writer *const writer = context;
    volatile uint64_t sink;
    pin(writer->cpu);
    pthread_barrier_wait(writer->begin);
    const double begin = ns_of(CLOCK_THREAD_CPUTIME_ID);
    if (writer->reads_clock)
        for (uint64_t i = 0; i < writer->loops; i++)
            sink = counter();
    else
        for (uint64_t i = 0; i < writer->loops; i++)
            EVENT(i, i);
    (void)sink;
    const double used = ns_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    writer->per_cpu_second = (double)writer->loops * 1e9 / used;
    return NULL;
}

static int rate(int cpu, uint64_t loops, int threads, int reads_clock)
{
    struct writer writers[64];
    pthread_barrier_t begin;
    double sum = 0;
    if (threads < 1 || threads > 64 || threads > cpu + 1)
        return 2;
    pthread_barrier_init(&begin, NULL, (unsigned)threads);
    for (int place = 0; place < threads; place++) {
        writers[place] = (struct writer){
            .begin = &begin, .cpu = cpu - place, .reads_clock = reads_clock, .loops = loops};
        pthread_create(&writers[place].thread, NULL, write_events, &writers[place]);
    }
    for (int place = 0; place < threads; place++) {
        pthread_join(writers[place].thread, NULL);
        sum += writers[place].per_cpu_second;
    }
    printf("{\"threads\": %d, \"per_cpu_second\": %.0f}\n", threads, sum);
    return 0;
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    const char *const variant = words[1];
    const char *const text = "thirty-two bytes of text it has.";
    const uint64_t loops = strtoull(words[3], 0, 10);
    if (strcmp(variant, "rate") == 0)
        return rate(atoi(words[2]), loops, count > 4 ? atoi(words[4]) : 1,
                    count > 5 && strcmp(words[5], "clock") == 0);
    pin(atoi(words[2]));
    mlockall(MCL_CURRENT | MCL_FUTURE);
    const double scale = ticks_per_ns();
    uint64_t last = counter(), first = last;
    volatile uint64_t sink;
    if (strcmp(variant, "event") == 0)
        LOOP(EVENT(i, d))
    else if (strcmp(variant, "text") == 0)
        LOOP(TEXT(i, text))
    else if (strcmp(variant, "clock") == 0)
        LOOP(sink = counter())
    else
        LOOP((void)0)
    (void)sink;
    const double total = (double)(counter() - first) / scale;
    printf("{\"loops\": %llu, \"mean_ns\": %.3f, \"kept_mean_ns\": %.3f, ",
           (unsigned long long)loops, total / (double)loops, kept_mean(loops, scale));
    printf("\"p50_ns\": %.1f, \"p99_ns\": %.1f, \"p999_ns\": %.1f, \"p9999_ns\": %.1f, ",
           percentile(loops, 0.5, scale), percentile(loops, 0.99, scale),
           percentile(loops, 0.999, scale), percentile(loops, 0.9999, scale));
    printf("\"min_ns\": %.1f, \"deviation_ns\": %.1f, ", shortest(scale), deviation(loops, scale));
    printf("\"max_ns\": %.1f, \"over\": %llu}\n", (double)ticks_max / scale,
           (unsigned long long)over);
    return 0;
}
