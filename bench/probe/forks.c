// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a fork costs a process that records. To stdout one line, medians in nanoseconds: of the
 * call, and of the time from the call until the child, which ends at once, is gone.
 *
 *     forks COUNT
 */
#define _GNU_SOURCE
#include "tick.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

int main(int words_count, char **words)
{
    const int count = words_count == 2 ? atoi(words[1]) : 0;
    if (count < 1)
        return 2;
    double *const call = malloc(sizeof *call * (size_t)count);
    double *const whole = malloc(sizeof *whole * (size_t)count);
    if (!call || !whole)
        return 1;
    TICK(0);
    for (int i = 0; i < count; i++) {
        const double begin = now_ns();
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        call[i] = now_ns() - begin;
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return 1;
        whole[i] = now_ns() - begin;
        TICK(i + 1);
    }
    printf("{\"call_ns\": %.0f, \"whole_ns\": %.0f}\n", median(call, count), median(whole, count));
    return 0;
}
