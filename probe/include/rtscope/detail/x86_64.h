/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What only the machine can say: places in the code, the counter, restartable sequences.
 *
 * A restartable sequence (rseq) is a stretch of instructions that the kernel sends to an abort
 * handler when the thread was preempted, migrated or got a signal inside. Ours end with the one
 * store that makes a record exist.
 */
#ifndef RTSCOPE_DETAIL_X86_64_H
#define RTSCOPE_DETAIL_X86_64_H

#include <stdint.h>

/* Pages of the section of switches must be no other section's: log2 of the largest page. */
#define RTSCOPE_PAGE_LOG2_ "12"

/*
 * Lays down a switch and a description, and gives the switch's address. Subsection 0 has only the
 * alignment, 2 only the filling, so that the section has its pages for itself. The empty
 * relocation keeps a linker that collects garbage from dropping the description.
 */
#define RTSCOPE_SITE_(address, level, description, ...)                                           \
    __asm__(".pushsection rtscope_switches,\"aw\",@nobits\n"                                      \
            ".subsection 0\n.p2align " RTSCOPE_PAGE_LOG2_ "\n"                                    \
            ".subsection 1\n771:\n.zero 8\n"                                                      \
            ".subsection 2\n.p2align " RTSCOPE_PAGE_LOG2_ "\n"                                    \
            ".popsection\n"                                                                       \
            ".pushsection rtscope_events,\"a?\",@progbits\n.balign 8\n"                           \
            "772:\n.long 774f-773f\n.long 771b-.\n.long 776f-.\n"                                 \
            "773:\n.byte %c[rtscope_level]\n" description "774:\n.balign 8\n.popsection\n"        \
            ".reloc ., R_X86_64_NONE, 772b\n"                                                     \
            "776:\nleaq 771b(%%rip), %0"                                                          \
            : "=r"(address)                                                                       \
            : [rtscope_level] "i"((uint8_t)(level))__VA_ARGS__)

static inline __attribute__((always_inline)) char *rtscope_thread_pointer_(void)
{
    char *pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

/* The kernel's name for the clock that reads the same counter. */
#define RTSCOPE_COUNTER_CLOCKSOURCE_ "tsc"

static inline __attribute__((always_inline)) uint64_t rtscope_counter_(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

/* Before a section: its description into the thread's area. Behind it: the abort handler, with the
 * signature that the kernel asks for, and the description's removal, because one that points into
 * a library that is gone would kill the thread. */
#define RTSCOPE_RSEQ_ENTER_                                                                       \
    ".pushsection rtscope_rseq_cs,\"aw?\"\n.balign 32\n"                                          \
    "770:\n.long 0, 0\n.quad 771f, 772f-771f, 774f\n.popsection\n"                                \
    "xorl %k[aborted], %k[aborted]\n"                                                             \
    "leaq 770b(%%rip), %%rax\n"                                                                   \
    "movq %%rax, 8(%[area])\n"                                                                    \
    "771:\n"
#define RTSCOPE_RSEQ_BEGIN_                                                                       \
    RTSCOPE_RSEQ_ENTER_                                                                           \
    "cmpl %[cpu], 4(%[area])\n"                                                                   \
    "jnz 774f\n"
#define RTSCOPE_RSEQ_END_                                                                         \
    "772:\n"                                                                                      \
    ".pushsection rtscope_rseq_abort,\"ax?\"\n"                                                   \
    ".byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n"                                                  \
    "774:\nmovl $1, %k[aborted]\njmp 775f\n.popsection\n"                                         \
    "775:\n"                                                                                      \
    "movq $0, 8(%[area])\n"

/* Whether the inline path may be taken, and what it reads was written: loads stay in order here. */
#define RTSCOPE_IS_FAST_(object_) ((object_).fast)

/*
 * One attempt at a record of a constant number of payload words, all of it in the section: which
 * CPU, where its head stands, whether the record fits there and in its sub-buffer, the clock, the
 * stores. Nothing can come between, so nothing is compared again. Not a function: the number must
 * be a constant for the assembler even where the compiler does not optimise.
 */
#define RTSCOPE_TRY_(aborted_, object_, low_, tid_, payload_, words_)                             \
    do {                                                                                          \
        uint64_t rtscope_ring_at_, rtscope_head_, rtscope_data_at_;                               \
        __asm__ volatile(                                                                         \
            RTSCOPE_RSEQ_ENTER_                                                                   \
            "movl 4(%[area]), %k[at]\n"                                                           \
            "cmpl %[length], %k[at]\n"                                                            \
            "jae 774f\n"                                                                          \
            "movq %[at], %[ring]\n"                                                               \
            "shlq %[control_log2], %[ring]\n"                                                     \
            "addq %[rings], %[ring]\n"                                                            \
            "imulq %[bytes], %[at]\n"                                                             \
            "movq (%[ring]), %[head]\n"                                                           \
            "addq %[data], %[at]\n"                                                               \
            "leaq 15+8*%c[words](%[head]), %%rax\n"                                               \
            "movq %[mask], %%rdx\n"                                                               \
            "xorq %[head], %%rax\n"                                                               \
            "andq %[head], %%rdx\n"                                                               \
            "cmpq %[subbuffer], %%rax\n"                                                          \
            "jae 774f\n"                                                                          \
            "addq %%rdx, %[at]\n"                                                                 \
            "addq $16+8*%c[words], %[head]\n"                                                     \
            "movq %[head], %%rax\n"                                                               \
            "subq %c[tail](%[ring]), %%rax\n"                                                     \
            "cmpq %[bytes], %%rax\n"                                                              \
            "ja 774f\n"                                                                           \
            "rdtsc\n"                                                                             \
            "movl %[low], (%[at])\n"                                                              \
            "movl %[tid], 4(%[at])\n"                                                             \
            "movl %%eax, 8(%[at])\n"                                                              \
            "movl %%edx, 12(%[at])\n"                                                             \
            ".set rtscope_place, 0\n"                                                             \
            ".rept %c[words]\n"                                                                   \
            "movq rtscope_place(%[payload]), %%rax\n"                                             \
            "movq %%rax, 16+rtscope_place(%[at])\n"                                               \
            ".set rtscope_place, rtscope_place+8\n"                                               \
            ".endr\n"                                                                             \
            "movq %[head], (%[ring])\n"                                                           \
            RTSCOPE_RSEQ_END_                                                                     \
            : [aborted] "=&r"(aborted_), [ring] "=&r"(rtscope_ring_at_),                          \
              [head] "=&r"(rtscope_head_), [at] "=&r"(rtscope_data_at_)                           \
            : [area] "r"(rtscope_thread_pointer_() + (object_).area_offset),                      \
              [length] "m"((object_).rings_length), [rings] "m"((object_).rings),                 \
              [data] "m"((object_).data), [bytes] "m"((object_).ring_bytes),                      \
              [mask] "m"((object_).ring_mask), [subbuffer] "m"((object_).subbuffer_bytes),        \
              [low] "r"(low_), [tid] "r"(tid_), [payload] "r"(payload_), [words] "i"(words_),     \
              [control_log2] "i"(RTSCOPE_RING_LOG2_), [tail] "i"(RTSCOPE_RING_TAIL_)              \
            : "memory", "cc", "rax", "rdx");                                                      \
    } while (0)

/* At a place chosen before, any number of payload words; returns whether it was aborted. */
static inline int rtscope_store_words_(void *area, uint32_t cpu, uint64_t *ring, uint64_t head,
                                       uint64_t end, uint64_t *at, uint64_t first, uint64_t time,
                                       const uint64_t *payload, uint64_t words)
{
    uint32_t aborted;
    uint64_t place = 0;
    __asm__ volatile(
        RTSCOPE_RSEQ_BEGIN_
        "cmpq %[head], (%[ring])\n"
        "jnz 774f\n"
        "movq %[first], (%[at])\n"
        "movq %[time], %%rax\n"
        "movq %%rax, 8(%[at])\n"
        "jmp 777f\n"
        "776:\n"
        "movq (%[payload],%[place],8), %%rax\n"
        "movq %%rax, 16(%[at],%[place],8)\n"
        "incq %[place]\n"
        "777:\n"
        "cmpq %[words], %[place]\n"
        "jnz 776b\n"
        "movq %[end], (%[ring])\n"
        RTSCOPE_RSEQ_END_
        : [aborted] "=&r"(aborted), [place] "+&r"(place)
        : [area] "r"(area), [cpu] "r"(cpu), [ring] "r"(ring), [head] "r"(head), [end] "r"(end),
          [at] "r"(at), [first] "r"(first), [time] "m"(time), [payload] "r"(payload),
          [words] "m"(words)
        : "memory", "cc", "rax");
    return (int)aborted;
}

/* Where the ring's head still is `head`: stores `value`, then `committed` at `commit`. */
static inline int rtscope_store_pair_(void *area, uint32_t cpu, uint64_t *ring, uint64_t head,
                                      uint64_t *where, uint64_t value, uint64_t *commit,
                                      uint64_t committed)
{
    uint32_t aborted;
    __asm__ volatile(
        RTSCOPE_RSEQ_BEGIN_
        "cmpq %[head], (%[ring])\n"
        "jnz 774f\n"
        "movq %[value], (%[where])\n"
        "movq %[committed], (%[commit])\n"
        RTSCOPE_RSEQ_END_
        : [aborted] "=&r"(aborted)
        : [area] "r"(area), [cpu] "r"(cpu), [ring] "r"(ring), [head] "r"(head),
          [where] "r"(where), [value] "r"(value), [commit] "r"(commit),
          [committed] "r"(committed)
        : "memory", "cc", "rax");
    return (int)aborted;
}

/* Adds one to a counter of this CPU. */
static inline int rtscope_count_(void *area, uint32_t cpu, uint64_t *counter)
{
    uint32_t aborted;
    __asm__ volatile(
        RTSCOPE_RSEQ_BEGIN_
        "incq (%[counter])\n"
        RTSCOPE_RSEQ_END_
        : [aborted] "=&r"(aborted)
        : [area] "r"(area), [cpu] "r"(cpu), [counter] "r"(counter)
        : "memory", "cc", "rax");
    return (int)aborted;
}

#endif
