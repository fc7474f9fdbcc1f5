// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that record as fast as they go, each on a CPU of its own. One line of JSON to stdout.
 *
 *     scale CPU LOOPS N WHAT     N threads on as many CPUs up to CPU: of events, or of clock
 *                                readings, the machine's own bound
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <rtscope/event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS_MAX 64

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

static double cpu_time_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
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
    pin(writer->cpu);
    pthread_barrier_wait(writer->begin);
    const double begin = cpu_time_ns();
    if (writer->reads_clock)
        for (uint64_t i = 0; i < writer->loops; i++)
            (void)counter();
    else
        for (uint64_t i = 0; i < writer->loops; i++)
            RTSCOPE_EVENT(npt, loop, u64("counter", i), u64("duration", i));
    writer->per_cpu_second = (double)writer->loops * 1e9 / (cpu_time_ns() - begin);
    return NULL;
}

int main(int count, char **words)
{
    struct writer writers[THREADS_MAX];
    pthread_barrier_t begin;
    double sum = 0;
    if (count != 5)
        return 2;
    const int cpu = atoi(words[1]), threads = atoi(words[3]);
    const uint64_t loops = strtoull(words[2], 0, 10);
    if (threads < 1 || threads > THREADS_MAX || threads > cpu + 1)
        return 2;
    pthread_barrier_init(&begin, NULL, (unsigned)threads);
    for (int place = 0; place < threads; place++) {
        writers[place] = (struct writer){.begin = &begin,
                                         .cpu = cpu - place,
                                         .reads_clock = strcmp(words[4], "clock") == 0,
                                         .loops = loops};
        pthread_create(&writers[place].thread, NULL, write_events, &writers[place]);
    }
    for (int place = 0; place < threads; place++) {
        pthread_join(writers[place].thread, NULL);
        sum += writers[place].per_cpu_second;
    }
    printf("{\"threads\": %d, \"per_cpu_second\": %.0f}\n", threads, sum);
    return 0;
}
