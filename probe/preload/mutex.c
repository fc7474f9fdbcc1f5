/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Preloaded, records the use of mutexes by LTTng's names (lttng_ust_pthread:pthread_mutex_lock_req,
 * lock_acq, trylock, unlock), and who had to wait: rtscope_mutex:wait_begin and wait_end lie around
 * the waiting alone, so that recording only these two costs an uncontended lock nothing.
 */
#define _GNU_SOURCE
#include "next.h"

#include <errno.h>
#include <pthread.h>
#include <rtscope/event.h>
#include <time.h>

typedef int take_function(pthread_mutex_t *);
typedef int timed_function(pthread_mutex_t *, const struct timespec *);
typedef int clock_function(pthread_mutex_t *, clockid_t, const struct timespec *);

static struct {
    take_function *lock;
    take_function *trylock;
    take_function *unlock;
    timed_function *timedlock;
    clock_function *clocklock;
} next;

/* Before the constructors, which may lock already; whoever is earlier still finds them itself.
 * Twice by two threads is the same as once. */
static __attribute__((constructor(101))) void find(void)
{
    RTSCOPE_NEXT(next.lock, "pthread_mutex_lock");
    RTSCOPE_NEXT(next.trylock, "pthread_mutex_trylock");
    RTSCOPE_NEXT(next.timedlock, "pthread_mutex_timedlock");
    RTSCOPE_NEXT(next.clocklock, "pthread_mutex_clocklock");
    RTSCOPE_NEXT(next.unlock, "pthread_mutex_unlock");
}

#define ADDRESS(mutex) x64("mutex", (uintptr_t)(mutex))

/* Tries first, so that only a lock that is held makes events of waiting. What trylock answers
 * beyond EBUSY (a dead owner, too many recursions) is what lock would have answered. */
#define TAKE(mutex, wait)                                                                         \
    if (!next.unlock)                                                                             \
        find();                                                                                   \
    RTSCOPE_EVENT(lttng_ust_pthread, pthread_mutex_lock_req, ADDRESS(mutex));                     \
    int status = next.trylock(mutex);                                                             \
    if (status == EBUSY) {                                                                        \
        RTSCOPE_EVENT(rtscope_mutex, wait_begin, ADDRESS(mutex));                                 \
        status = (wait);                                                                          \
        RTSCOPE_EVENT(rtscope_mutex, wait_end, ADDRESS(mutex), i32("status", status));            \
    }                                                                                             \
    RTSCOPE_EVENT(lttng_ust_pthread, pthread_mutex_lock_acq, ADDRESS(mutex),                      \
                  i32("status", status));                                                         \
    return status

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    TAKE(mutex, next.lock(mutex));
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    TAKE(mutex, next.timedlock(mutex, until));
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    TAKE(mutex, next.clocklock(mutex, clock, until));
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    if (!next.unlock)
        find();
    const int status = next.trylock(mutex);
    RTSCOPE_EVENT(lttng_ust_pthread, pthread_mutex_trylock, ADDRESS(mutex),
                  i32("status", status));
    return status;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (!next.unlock)
        find();
    const int status = next.unlock(mutex);
    RTSCOPE_EVENT(lttng_ust_pthread, pthread_mutex_unlock, ADDRESS(mutex), i32("status", status));
    return status;
}
