/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The lock of what is registered, and the children of forks. A fork of a process does not take the
 * lock, and calls nothing of ours in the parent: where this is in a library that another thread
 * closes meanwhile, the C library may call the handler before a fork and not the one behind it, or
 * either when its code is gone. The child's alone is there whenever it is called.
 *
 * So a child may come while another thread of its parent has the lock. What it needs, the lists of
 * objects and of late events, therefore holds at every moment: an entry is complete before a list
 * leads to it (rtscope_settle), and comes and goes by one store.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Where nothing can be mapped. */
#define NOWHERE ((void *)(uintptr_t)4096)

/* The thread that has the lock, 0: nobody; and how many wait for it. */
static uint32_t holder;
static uint32_t waiting;

/* The holder on the recording path: not a thread, as it can find out about none. */
#define AMID UINT32_MAX
/* So often it looks for the lock; another that is there has it for some stores. */
#define TRIES_MAX 1000
/* So many waits for AMID are enough: a handler may have left it by a jump, and it is nobody's. */
#define WAITS_MAX 100

/* The thread pointer of whoever is there, else NULL. */
static char *amid;

/* In a child from the fork to the end of its handler. */
static int in_child;

/* Whether a thread of this process has that id. Of the lock's holder it says no in a child that was
 * made without our handler (_Fork), while another thread of its parent had the lock. */
static int lives(uint32_t thread)
{
    return syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH;
}

static int take(uint32_t from, uint32_t own)
{
    return __atomic_compare_exchange_n(&holder, &from, own, 0, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Without a system call where that can be: whoever ends may have forbidden itself all. */
static uint32_t own_thread(void)
{
    const uint32_t known = rtscope_own_tid();
    return known ? known : (uint32_t)syscall(SYS_gettid);
}

void rtscope_lock(void)
{
    static const struct timespec soon = {0, 10000000};
    const int error = errno;
    const uint32_t own = own_thread();
    unsigned waits = 0;
    while (!take(0, own)) {
        const uint32_t other = __atomic_load_n(&holder, __ATOMIC_RELAXED);
        const int is_gone = other == AMID ? ++waits > WAITS_MAX : other && !lives(other);
        if (is_gone && take(other, own))
            break;
        __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
        if (other)
            (void)syscall(SYS_futex, &holder, FUTEX_WAIT_PRIVATE, other, &soon, NULL, 0);
        __atomic_fetch_sub(&waiting, 1, __ATOMIC_SEQ_CST);
    }
    errno = error;
}

void rtscope_unlock(void)
{
    const int error = errno;
    __atomic_store_n(&holder, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST))
        (void)syscall(SYS_futex, &holder, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = error;
}

int rtscope_lock_shortly(void)
{
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        if (!take(0, AMID))
            continue;
        __atomic_store_n(&amid, rtscope_thread_pointer_(), __ATOMIC_RELEASE);
        return 1;
    }
    return 0;
}

/* Who waits looks again by itself. */
void rtscope_unlock_shortly(void)
{
    __atomic_store_n(&amid, NULL, __ATOMIC_RELEASE);
    uint32_t own = AMID;
    __atomic_compare_exchange_n(&holder, &own, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

int rtscope_is_amid(void)
{
    return in_child && amid == rtscope_thread_pointer_();
}

/* The kernel copies the pages of a process that forks one after the other, while other threads go
 * on, and holds back who changes what is mapped. */
void rtscope_settle(void)
{
    (void)munmap(NOWHERE, 1);
}

static void after_fork_in_child(void)
{
    const int error = errno;
    /* Who waits or is in the middle of something is a thread of the parent's. */
    waiting = 0;
    holder = (uint32_t)syscall(SYS_gettid);
    in_child = 1;
    rtscope_begin_in_child();
    in_child = 0;
    rtscope_unlock();
    errno = error;
}

void rtscope_forks_watch(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

int rtscope_forks_in_child(void)
{
    return in_child;
}
