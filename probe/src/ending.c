/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Destructors run when a library is closed and when the process ends, and are not told which. What
 * is only called at the end is a function of the C library's: ours may be gone by then.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <semaphore.h>
#include <stdlib.h>

/* Of C++'s runtime, in every C library. For `library` serves what no library has: closing one then
 * does not call it. None at all the thread sanitizer takes for a function without an argument. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

/* Posted when the process ends; never given back, as it may be needed behind everything. */
static sem_t *ended;

void rtscope_ending_watch(void)
{
    sem_t *const made = ended ? NULL : malloc(sizeof *made);
    if (!made)
        return;
    void (*const post)(void) = (void (*)(void))sem_post;
    if (sem_init(made, 0, 0) == 0 && __cxa_atexit((void (*)(void *))post, made, made) == 0)
        ended = made;
    else
        free(made);
}

int rtscope_is_ending(void)
{
    int count;
    return !ended || sem_getvalue(ended, &count) != 0 || count > 0;
}
