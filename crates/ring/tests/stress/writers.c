// SPDX-License-Identifier: MIT OR Apache-2.0
/* Threads, and signal handlers above them, that count what they write: each writer has a pair of
 * counters in a file, one raised before an event and one behind it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <rtscope/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct counters {
    volatile uint64_t begun, done;
};

static struct counters *counters;
static uint32_t threads;
static uint64_t events_max;
static int signals;
static __thread uint32_t own;

/* Two events in turn: one of fixed size, and one whose text tells what it must be. */
static void write_one(uint32_t writer)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    struct counters *const mine = &counters[writer];
    const uint64_t number = mine->begun;
    mine->begun = number + 1;
    if (number % 2)
        RTSCOPE_EVENT(stress, fixed, u32("writer", writer), u64("number", number),
                      u64("check", ~number * 31));
    else
        RTSCOPE_EVENT(stress, text, u32("writer", writer), u64("number", number),
                      text_n("check", letters + number % 26, number % 23));
    mine->done = number + 1;
}

static void on_signal(int number)
{
    (void)number;
    write_one(threads + own);
}

static void *run(void *index)
{
    own = (uint32_t)(uintptr_t)index;
    timer_t timer;
    if (signals) {
        struct sigevent event;
        const struct itimerspec every = {{0, 50000}, {0, 50000}};
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGUSR1;
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
            timer_settime(timer, 0, &every, 0) != 0)
            abort();
    }
    while (counters[own].begun < events_max)
        write_one(own);
    if (signals)
        timer_delete(timer);
    return 0;
}

int main(int count, char **words)
{
    pthread_t others[64];
    if (count < 5)
        return 2;
    const int fd = open(words[1], O_RDWR);
    threads = (uint32_t)atoi(words[2]);
    events_max = strtoull(words[3], 0, 10);
    signals = atoi(words[4]);
    counters = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || counters == MAP_FAILED || threads > 64)
        return 2;
    signal(SIGUSR1, on_signal);
    for (uintptr_t index = 1; index < threads; index++)
        pthread_create(&others[index], 0, run, (void *)index);
    run(0);
    for (uintptr_t index = 1; index < threads; index++)
        pthread_join(others[index], 0);
    return 0;
}
