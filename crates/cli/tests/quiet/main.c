// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A thread that records events between two markers, and makes no system call of its own there:
 *
 *     quiet EVENTS [call]
 *
 * The markers are events for whoever reads the trace and system calls that fail for whoever watches
 * those. With `call` it makes one there, so that who looks can be seen to look.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <rtscope/event.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The clocks of two tracers may lie apart: markers and system calls must not lie as near. */
#define APART_NS 1000000

static unsigned long events;
static int calls;

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* in the vDSO: no system call */
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void spin(void)
{
    for (const long long begin = now_ns(); now_ns() - begin < APART_NS;)
        ;
}

static void *trace(void *nothing)
{
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(sched_getcpu(), &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    syscall(SYS_write, -1, "begin", 5);
    spin();
    RTSCOPE_EVENT(quiet, begin);
    for (unsigned long i = 0; i < events; i++)
        RTSCOPE_EVENT(quiet, loop, u64("i", i), text("s", "thirty-two bytes of text, or more"));
    if (calls) {
        spin();
        syscall(SYS_getppid);
        spin();
    }
    RTSCOPE_EVENT(quiet, end);
    spin();
    syscall(SYS_write, -1, "end", 3);
    return nothing;
}

int main(int count, char **words)
{
    pthread_t thread;
    events = strtoul(words[1], 0, 10);
    calls = count > 2;
    pthread_create(&thread, 0, trace, 0);
    return pthread_join(thread, 0);
}
