/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the inline path leaves to a call: full sub-buffers, losses, texts, machines without rseq. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* After so many aborts an event counts as lost: a debugger that steps aborts each time. */
#define ATTEMPTS_MAX 4096u

/* The process's clock. */
uint32_t rtscope_write_clock;
uint32_t rtscope_write_block_ns;
struct rtscope_object rtscope_write_views[RTSCOPE_SETS_MAX];
volatile uint32_t *rtscope_write_modes[RTSCOPE_SETS_MAX];

unsigned rtscope_write_late_sets;

/* The set that is written to through `object`. */
static size_t set_of(const struct rtscope_object *object)
{
    for (size_t set = 1; set < RTSCOPE_SETS_MAX; set++)
        if (object == &rtscope_write_views[set])
            return set;
    return 0;
}

/* What happens to an event when its ring is full. */
static uint32_t mode_of(const struct rtscope_object *object)
{
    return *rtscope_write_modes[set_of(object)];
}

/*
 * Gives a ring its memory at its first event, in a child of fork, whether or not another thread
 * does the same: the one system call that an event ever makes. Returns whether it has some; one
 * that is refused is the last that asks for this set.
 */
static int take_memory(const struct rtscope_object *object, uint32_t cpu)
{
    const unsigned set = 1u << set_of(object);
    struct rtscope_ring *const ring = rtscope_ring_(object, cpu);
    uint64_t full = -object->ring_bytes;
    const int error = errno;
    if (!(__atomic_load_n(&rtscope_write_late_sets, __ATOMIC_RELAXED) & set))
        return 0;
    if (madvise(object->data + cpu * object->ring_bytes, object->ring_bytes,
                MADV_POPULATE_WRITE) != 0) {
        __atomic_fetch_and(&rtscope_write_late_sets, ~set, __ATOMIC_RELAXED);
        errno = error;
        return 0;
    }
    /* First: who finds it full, and not absent, makes room by moving the tail on. */
    __atomic_compare_exchange_n(&ring->tail, &full, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->absent, 0, __ATOMIC_RELEASE);
    return 1;
}

int64_t rtscope_clock_ahead_ns;

/* The vDSO answers; no system call. */
uint64_t rtscope_monotonic_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec -
           (uint64_t)rtscope_clock_ahead_ns;
}

static uint64_t now(void)
{
    return rtscope_write_clock == RTSCOPE_CLOCK_COUNTER ? rtscope_counter_()
                                                        : rtscope_monotonic_ns();
}

/* A record fits its sub-buffer, and its length its header. */
static uint64_t record_bytes_max(const struct rtscope_object *object)
{
    const uint64_t most = UINT16_MAX * UINT64_C(8);
    return object->subbuffer_bytes < most ? object->subbuffer_bytes : most;
}

/* Whether the rings have a size by now; what belongs to it can be read then. */
static int has_size(const struct rtscope_object *object)
{
    return __atomic_load_n(&object->ring_bytes, __ATOMIC_ACQUIRE) != 0 ||
           rtscope_sizes_take((uint32_t)set_of(object));
}

/* Rare, so an atomic may be paid: the thread has no area, or never gets through its section. */
static void count_atomically(const struct rtscope_object *object, uint32_t cpu, int cause)
{
    struct rtscope_ring *const ring =
        rtscope_ring_(object, cpu < object->rings_length ? cpu : 0);
    __atomic_fetch_add(&ring->lost[cause], 1, __ATOMIC_RELAXED);
}

/* Counts a loss on this CPU; a section, so that no count is lost between two threads. */
static void count(const struct rtscope_object *object, void *area, int cause)
{
    for (uint32_t attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        const uint32_t cpu = *(volatile uint32_t *)area;
        if (cpu >= object->rings_length)
            break;
        if (!rtscope_count_(area, cpu, &rtscope_ring_(object, cpu)->lost[cause]))
            return;
    }
    count_atomically(object, 0, cause);
}

/* The same from whatever thread. */
static void count_lost(const struct rtscope_object *object, int cause)
{
    if (object->area_offset)
        count(object, rtscope_thread_pointer_() + object->area_offset, cause);
    else
        count_atomically(object, 0, cause);
}

/*
 * In the mode block: spins until a reader has made room, at most the time that one event may wait.
 * Returns whether it is worth another attempt.
 */
static int wait_for_room(uint32_t mode, uint64_t *until_ns, const struct rtscope_ring *ring,
                         uint64_t tail)
{
    if (mode != RTSCOPE_MODE_BLOCK)
        return 0;
    if (*until_ns == 0)
        *until_ns = rtscope_monotonic_ns() + rtscope_write_block_ns;
    while (*(const volatile uint64_t *)&ring->tail == tail)
        if (rtscope_monotonic_ns() >= *until_ns)
            return 0;
    return 1;
}

/* What one event has been through. */
struct trial {
    uint32_t attempts;
    /* In the mode block: until when it waits, on CLOCK_MONOTONIC; 0: it does not wait yet. */
    uint64_t wait_until_ns;
};

/*
 * Where a record does not fit at the head: pads to the next sub-buffer, or gives up the oldest
 * one. Returns 1 when it is worth another attempt, 0 when the event is lost and counted.
 */
static int make_room(const struct rtscope_object *object, void *area, struct trial *trial,
                     uint64_t words)
{
    const uint32_t cpu = *(volatile uint32_t *)area;
    if ((int32_t)((volatile uint32_t *)area)[1] < 0 || cpu >= object->rings_length) {
        count_atomically(object, cpu, RTSCOPE_LOSS_NO_RSEQ);
        return 0;
    }
    if (trial->attempts > ATTEMPTS_MAX) {
        count_atomically(object, cpu, RTSCOPE_LOSS_ABORTED);
        return 0;
    }
    if (words * 8 > record_bytes_max(object)) {
        count(object, area, RTSCOPE_LOSS_TOO_LARGE);
        return 0;
    }
    /* First, as where a place is chosen: a handler may fork above this. */
    struct rtscope_ring *const ring = RTSCOPE_NOW_(object->rings) + cpu;
    /* Before its tail, which is that of a full one until it has memory. */
    if (__atomic_load_n(&ring->absent, __ATOMIC_ACQUIRE)) {
        if (take_memory(object, cpu))
            return 1;
        count(object, area, RTSCOPE_LOSS_NO_RING);
        return 0;
    }
    const uint64_t head = *(volatile uint64_t *)&ring->head;
    const uint64_t tail = *(volatile uint64_t *)&ring->tail;
    const uint64_t mask = RTSCOPE_NOW_(object->subbuffer_bytes) - 1;
    const uint64_t ring_bytes = RTSCOPE_NOW_(object->ring_bytes);
    const int crosses = (head ^ (head + words * 8 - 1)) > mask;
    const uint64_t end = crosses ? (head | mask) + 1 : head + words * 8;
    if (end - tail > ring_bytes) {
        const uint32_t mode = mode_of(object);
        if (mode != RTSCOPE_MODE_OVERWRITE) {
            if (wait_for_room(mode, &trial->wait_until_ns, ring, tail))
                return 1;
            count(object, area, RTSCOPE_LOSS_FULL);
            return 0;
        }
        const uint64_t kept = ((end + mask) & ~mask) - ring_bytes;
        rtscope_store_pair_(area, cpu, &ring->head, head, &ring->tail, kept, &ring->tail,
                            kept);
    } else if (crosses) {
        uint64_t *const at = (uint64_t *)(void *)(RTSCOPE_NOW_(object->data) + cpu * ring_bytes +
                                                  (head & (ring_bytes - 1)));
        rtscope_store_pair_(area, cpu, &ring->head, head, at, RTSCOPE_ID_PADDING,
                            &ring->head, end);
    }
    return 1;
}

/* A ring that is to be taken, as it was known before that. */
struct owned {
    struct rtscope_ring *ring;
    unsigned char *data;
    uint64_t ring_bytes;
    uint32_t subbuffer_mask;
};

/* The ring first: where a handler forks above this, the child has others from then on, and one of
 * its parent's, which it has no more, cannot be taken. */
static struct owned ring_to_take(const struct rtscope_object *object, uint32_t index)
{
    struct owned to_take;
    to_take.ring = RTSCOPE_NOW_(object->rings) + index;
    to_take.ring_bytes = RTSCOPE_NOW_(object->ring_bytes);
    to_take.subbuffer_mask = (uint32_t)(RTSCOPE_NOW_(object->subbuffer_bytes) - 1);
    to_take.data = RTSCOPE_NOW_(object->data) + index * to_take.ring_bytes;
    return to_take;
}

/* Whether a ring of this thread's can grow to `end`, in the mode block after some waiting. */
static int has_room(const struct rtscope_object *object, const struct owned *owned, uint64_t end,
                    uint64_t *until_ns)
{
    for (;;) {
        const uint64_t tail = *(const volatile uint64_t *)&owned->ring->tail;
        if (end - tail <= owned->ring_bytes)
            return 1;
        if (!wait_for_room(mode_of(object), until_ns, owned->ring, tail))
            return 0;
    }
}

/* Takes a ring that nobody has: 0 and 1 are all that an owner is. */
static int take(struct rtscope_ring *ring)
{
    return __atomic_exchange_n(&ring->owner, 1, __ATOMIC_ACQUIRE) == 0;
}

/* One record into a ring that this thread alone may write now. */
static int write_owned(const struct rtscope_object *object, const struct owned *owned,
                       uint64_t first, const uint64_t *payload, uint64_t words)
{
    struct rtscope_ring *const ring = owned->ring;
    const uint64_t mask = owned->subbuffer_mask, ring_mask = owned->ring_bytes - 1;
    uint64_t head = ring->head, until_ns = 0;
    if ((head ^ (head + words * 8 - 1)) > mask) {
        const uint64_t end = (head | mask) + 1;
        if (mode_of(object) != RTSCOPE_MODE_OVERWRITE &&
            !has_room(object, owned, end, &until_ns))
            return RTSCOPE_LOSS_FULL;
        memset(owned->data + (head & ring_mask), 0, 8);
        __atomic_store_n(&ring->head, end, __ATOMIC_RELEASE);
        head = end;
    }
    const uint64_t end = head + words * 8;
    if (!has_room(object, owned, end, &until_ns)) {
        if (mode_of(object) != RTSCOPE_MODE_OVERWRITE)
            return RTSCOPE_LOSS_FULL;
        __atomic_store_n(&ring->tail, ((end + mask) & ~mask) - owned->ring_bytes,
                         __ATOMIC_RELEASE);
    }
    uint64_t *const at = (uint64_t *)(void *)(owned->data + (head & ring_mask));
    at[0] = first;
    at[1] = now();
    memcpy(at + 2, payload, (size_t)(words - 2) * 8);
    __atomic_store_n(&ring->head, end, __ATOMIC_RELEASE);
    return -1;
}

/*
 * Without rseq: rings are taken by turns. A thread tries each ring once, beginning with its
 * CPU's, and never waits: a ring that another thread left in the middle (it was preempted, or this
 * is a signal handler above it) is passed by. Two atomic instructions instead of none; a kill in
 * the middle leaves the head where it was, and the ring without a writer. By itself: the way with
 * rseq needs no stack for it.
 */
__attribute__((noinline)) static void write_by_turns(const struct rtscope_object *object,
                                                     uint64_t first, const uint64_t *payload,
                                                     uint64_t words)
{
    /* The vDSO answers; no system call. */
    const int here = sched_getcpu();
    uint32_t begin = here >= 0 ? (uint32_t)here % object->rings_length : 0;
    int cause = RTSCOPE_LOSS_NO_RING;
    for (uint32_t step = 0; step < object->rings_length; step++) {
        const uint32_t index = (begin + step) % object->rings_length;
        const struct owned owned = ring_to_take(object, index);
        if (*(const volatile uint64_t *)&owned.ring->absent && !take_memory(object, index))
            continue;
        cause = RTSCOPE_LOSS_BUSY;
        if (!take(owned.ring))
            continue;
        cause = write_owned(object, &owned, first, payload, words);
        __atomic_store_n(&owned.ring->owner, 0, __ATOMIC_RELEASE);
        begin = index;
        break;
    }
    if (cause >= 0)
        count_atomically(object, begin, cause);
}

void rtscope_write_(const struct rtscope_object *object, uint32_t id, uint64_t *payload,
                    size_t payload_bytes)
{
    const uint64_t payload_words = (payload_bytes + 7) / 8;
    const uint64_t words = payload_words + 2;
    char *const thread = rtscope_thread_pointer_();
    const uint32_t tid =
        object->tid_offset ? *(volatile uint32_t *)(thread + object->tid_offset) : 0;
    const uint64_t first = words | (uint64_t)id << 16 | (uint64_t)tid << 32;
    memset((unsigned char *)payload + payload_bytes, 0, (size_t)payload_words * 8 - payload_bytes);
    if (!has_size(object)) {
        count_lost(object, RTSCOPE_LOSS_NO_RING);
        return;
    }
    const int fits = words * 8 <= record_bytes_max(object);
    if (!object->area_offset) {
        if (fits)
            write_by_turns(object, first, payload, words);
        else
            count_atomically(object, 0, RTSCOPE_LOSS_TOO_LARGE);
        return;
    }
    void *const area = thread + object->area_offset;
    struct trial trial = {0, 0};
    for (;;) {
        struct rtscope_place_ place;
        if (fits && trial.attempts++ < ATTEMPTS_MAX && rtscope_claim_(object, &place, words)) {
            if (rtscope_write_clock != RTSCOPE_CLOCK_COUNTER)
                place.time = now();
            if (!rtscope_store_words_(place.area, place.cpu, place.ring, place.head, place.end,
                                      place.at, first, place.time, payload, payload_words))
                return;
        } else if (!make_room(object, area, &trial, words)) {
            return;
        }
    }
}

/* As many elements as there is room for, behind their number. */
unsigned char *rtscope_put_sequence_(unsigned char *at, size_t *room, const void *elements,
                                     size_t length, size_t element_bytes)
{
    const size_t most = *room / element_bytes;
    /* A count that was negative is none. */
    const int none = !elements || length > PTRDIFF_MAX;
    const uint16_t kept = (uint16_t)(none ? 0 : length < most ? length : most);
    const size_t bytes = kept * element_bytes;
    memcpy(at, &kept, sizeof kept);
    if (kept)
        memcpy(at + sizeof kept, elements, bytes);
    *room -= bytes;
    return at + sizeof kept + bytes;
}

const char *rtscope_print_(char *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (vsnprintf(text, RTSCOPE_PAYLOAD_BYTES_MAX, format, values) < 0)
        text[0] = '\0';
    va_end(values);
    return text;
}

/* The length first, then as much as there is room for. */
unsigned char *rtscope_put_bytes_(unsigned char *at, size_t *room, const void *bytes,
                                  size_t length)
{
    return rtscope_put_sequence_(at, room, bytes, length, 1);
}

/* A text that finds no room for all of it ends in what says so. */
unsigned char *rtscope_put_text_(unsigned char *at, size_t *room, const char *text,
                                 size_t length_max)
{
    const size_t seen = *room + 1;
    const size_t length = text ? strnlen(text, length_max < seen ? length_max : seen) : 0;
    unsigned char *const behind = rtscope_put_bytes_(at, room, text, length);
    if (length == seen) {
        const size_t marks = seen - 1 < 3 ? seen - 1 : 3;
        memset(behind - marks, '.', marks);
    }
    return behind;
}
