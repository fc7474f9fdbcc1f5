/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the C library keeps what a record needs of its thread: from the thread pointer, so that no
 * system call is needed. */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since glibc 2.35; elsewhere their addresses are zero. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* glibc keeps a thread's id 16 bytes before the list of robust mutexes that it gives the kernel.
 * Believed only where the id is really there; otherwise records say 0. */
ptrdiff_t rtscope_find_tid(void)
{
    char *head = NULL;
    size_t length = 0;
    if (syscall(SYS_get_robust_list, 0, &head, &length) != 0 || !head)
        return 0;
    int32_t found;
    memcpy(&found, head - 16, sizeof found);
    if (found != (int32_t)syscall(SYS_gettid))
        return 0;
    return head - 16 - rtscope_thread_pointer_();
}

ptrdiff_t rtscope_find_rseq_area(int is_wanted)
{
    if (!is_wanted || !&__rseq_size || !&__rseq_offset || __rseq_size == 0)
        return 0;
    /* Registered in this thread means registered by glibc in all. */
    const char *const area = rtscope_thread_pointer_() + __rseq_offset;
    return (int32_t)((const volatile uint32_t *)(const void *)area)[1] >= 0 ? __rseq_offset : 0;
}
