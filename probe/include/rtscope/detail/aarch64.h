/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What only the machine can say, on arm64: places in the code, the counter, restartable sequences.
 * x86_64.h explains each part; what is stored last is stored with release here.
 */
#ifndef RTSCOPE_DETAIL_AARCH64_H
#define RTSCOPE_DETAIL_AARCH64_H

#include <stdint.h>

#define RTSCOPE_PAGE_LOG2_ "16"

#define RTSCOPE_SITE_(address, level, description, ...)                                           \
    __asm__(".pushsection rtscope_switches,\"aw\",@nobits\n"                                      \
            ".subsection 0\n.p2align " RTSCOPE_PAGE_LOG2_ "\n"                                    \
            ".subsection 1\n771:\n.zero 8\n"                                                      \
            ".subsection 2\n.p2align " RTSCOPE_PAGE_LOG2_ "\n"                                    \
            ".popsection\n"                                                                       \
            ".pushsection rtscope_events,\"a?\",@progbits\n.balign 8\n"                           \
            "772:\n.long 774f-773f\n.long 771b-.\n.long 776f-.\n"                                 \
            "773:\n.byte %c[rtscope_level]\n" description "774:\n.balign 8\n.popsection\n"        \
            ".reloc ., R_AARCH64_NONE, 772b\n"                                                    \
            "776:\nadrp %0, 771b\n"                                                               \
            "add %0, %0, :lo12:771b"                                                              \
            : "=r"(address)                                                                       \
            : [rtscope_level] "i"((uint8_t)(level))__VA_ARGS__)

static inline __attribute__((always_inline)) char *rtscope_thread_pointer_(void)
{
    char *pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

/* The kernel's name for the clock that reads the same counter. */
#define RTSCOPE_COUNTER_CLOCKSOURCE_ "arch_sys_counter"

static inline __attribute__((always_inline)) uint64_t rtscope_counter_(void)
{
    uint64_t counter;
    __asm__ volatile("isb\nmrs %0, cntvct_el0" : "=r"(counter) : : "memory");
    return counter;
}

#define RTSCOPE_RSEQ_BEGIN_                                                                       \
    ".pushsection rtscope_rseq_cs,\"aw?\"\n.balign 32\n"                                          \
    "770:\n.long 0, 0\n.quad 771f, 772f-771f, 774f\n.popsection\n"                                \
    "mov %w[aborted], #0\n"                                                                       \
    "adrp x9, 770b\n"                                                                             \
    "add x9, x9, :lo12:770b\n"                                                                    \
    "str x9, [%[area], #8]\n"                                                                     \
    "771:\n"                                                                                      \
    "ldr w9, [%[area], #4]\n"                                                                     \
    "cmp w9, %w[cpu]\n"                                                                           \
    "b.ne 774f\n"
/* The abort handler stays in the section of the code: a branch reaches no farther. */
#define RTSCOPE_RSEQ_END_                                                                         \
    "772:\n"                                                                                      \
    "b 775f\n"                                                                                    \
    ".inst 0xd428bc00\n"                                                                          \
    "774:\n"                                                                                      \
    "mov %w[aborted], #1\n"                                                                       \
    "775:\n"                                                                                      \
    "str xzr, [%[area], #8]\n"

#define RTSCOPE_RSEQ_SAME_HEAD_                                                                   \
    "ldr x9, [%[ring]]\n"                                                                         \
    "cmp x9, %[head]\n"                                                                           \
    "b.ne 774f\n"

#define RTSCOPE_STORE_(aborted_, p_, first_, payload_, words_)                                    \
    __asm__ volatile(                                                                             \
        RTSCOPE_RSEQ_BEGIN_ RTSCOPE_RSEQ_SAME_HEAD_                                               \
        "str %[first], [%[at]]\n"                                                                 \
        "str %[time], [%[at], #8]\n"                                                              \
        ".set rtscope_place, 0\n"                                                                 \
        ".rept %c[words]\n"                                                                       \
        "ldr x9, [%[payload], #rtscope_place]\n"                                                  \
        "str x9, [%[at], #16+rtscope_place]\n"                                                    \
        ".set rtscope_place, rtscope_place+8\n"                                                   \
        ".endr\n"                                                                                 \
        "stlr %[end], [%[ring]]\n"                                                                \
        RTSCOPE_RSEQ_END_                                                                         \
        : [aborted] "=&r"(aborted_)                                                               \
        : [area] "r"((p_).area), [cpu] "r"((p_).cpu), [ring] "r"((p_).ring),                      \
          [head] "r"((p_).head), [end] "r"((p_).end), [at] "r"((p_).at), [first] "r"(first_),     \
          [time] "r"((p_).time), [payload] "r"(payload_), [words] "i"(words_)                     \
        : "memory", "cc", "x9")

/* Whether the inline path may be taken; what it reads then was written before that. */
#define RTSCOPE_IS_FAST_(object_) __atomic_load_n(&(object_).fast, __ATOMIC_ACQUIRE)

/* One attempt at a record of a constant number of payload words. */
#define RTSCOPE_TRY_(aborted_, object_, low_, tid_, payload_, words_)                             \
    do {                                                                                          \
        struct rtscope_place_ rtscope_place_;                                                     \
        const uint64_t rtscope_first_ = (low_) | (uint64_t)(tid_) << 32;                          \
        if (rtscope_claim_(&(object_), &rtscope_place_, (words_) + 2u))                           \
            RTSCOPE_STORE_(aborted_, rtscope_place_, rtscope_first_, payload_, words_);           \
        else                                                                                      \
            (aborted_) = 1;                                                                       \
    } while (0)

static inline int rtscope_store_words_(void *area, uint32_t cpu, uint64_t *ring, uint64_t head,
                                       uint64_t end, uint64_t *at, uint64_t first, uint64_t time,
                                       const uint64_t *payload, uint64_t words)
{
    uint32_t aborted;
    uint64_t place = 0;
    __asm__ volatile(
        RTSCOPE_RSEQ_BEGIN_ RTSCOPE_RSEQ_SAME_HEAD_
        "str %[first], [%[at]]\n"
        "str %[time], [%[at], #8]\n"
        "add x10, %[at], #16\n"
        "b 777f\n"
        "776:\n"
        "ldr x9, [%[payload], %[place], lsl #3]\n"
        "str x9, [x10, %[place], lsl #3]\n"
        "add %[place], %[place], #1\n"
        "777:\n"
        "cmp %[place], %[words]\n"
        "b.ne 776b\n"
        "stlr %[end], [%[ring]]\n"
        RTSCOPE_RSEQ_END_
        : [aborted] "=&r"(aborted), [place] "+&r"(place)
        : [area] "r"(area), [cpu] "r"(cpu), [ring] "r"(ring), [head] "r"(head), [end] "r"(end),
          [at] "r"(at), [first] "r"(first), [time] "r"(time), [payload] "r"(payload),
          [words] "r"(words)
        : "memory", "cc", "x9", "x10");
    return (int)aborted;
}

static inline int rtscope_store_pair_(void *area, uint32_t cpu, uint64_t *ring, uint64_t head,
                                      uint64_t *where, uint64_t value, uint64_t *commit,
                                      uint64_t committed)
{
    uint32_t aborted;
    __asm__ volatile(
        RTSCOPE_RSEQ_BEGIN_ RTSCOPE_RSEQ_SAME_HEAD_
        "str %[value], [%[where]]\n"
        "stlr %[committed], [%[commit]]\n"
        RTSCOPE_RSEQ_END_
        : [aborted] "=&r"(aborted)
        : [area] "r"(area), [cpu] "r"(cpu), [ring] "r"(ring), [head] "r"(head),
          [where] "r"(where), [value] "r"(value), [commit] "r"(commit),
          [committed] "r"(committed)
        : "memory", "cc", "x9");
    return (int)aborted;
}

static inline int rtscope_count_(void *area, uint32_t cpu, uint64_t *counter)
{
    uint32_t aborted;
    __asm__ volatile(
        RTSCOPE_RSEQ_BEGIN_
        "ldr x9, [%[counter]]\n"
        "add x9, x9, #1\n"
        "str x9, [%[counter]]\n"
        RTSCOPE_RSEQ_END_
        : [aborted] "=&r"(aborted)
        : [area] "r"(area), [cpu] "r"(cpu), [counter] "r"(counter)
        : "memory", "cc", "x9");
    return (int)aborted;
}

#endif
