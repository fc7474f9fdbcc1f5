/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The way of a record into its ring, and the registration of the program or library that this
 * header is compiled into. Nothing here is for callers; event.h is.
 */
#ifndef RTSCOPE_DETAIL_RECORD_H
#define RTSCOPE_DETAIL_RECORD_H

#include <rtscope/detail/fields.h>
#include <rtscope/layout.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__ELF__) || !defined(__LP64__)
#error "rtscope's probe is for 64-bit ELF systems"
#elif defined(__x86_64__)
#include <rtscope/detail/x86_64.h>
#elif defined(__aarch64__)
#include <rtscope/detail/aarch64.h>
#else
#error "rtscope's probe knows x86-64 and arm64"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the recording path must know, one copy in each program and library (hidden and weak), so
 * that it is reached without a detour. Private to the process: nothing that bounds a write is read
 * from shared memory.
 */
struct rtscope_object {
    struct rtscope_ring *rings;
    unsigned char *data;
    uint64_t ring_bytes;
    uint64_t ring_mask;
    uint64_t subbuffer_bytes;
    /* From the thread pointer. */
    ptrdiff_t area_offset;
    ptrdiff_t tid_offset;
    uint32_t rings_length;
    /* Whether the inline path may be taken: rseq, thread ids, the CPU's counter as the clock. */
    uint32_t fast;
    /* Constructors that ran, one for each file compiled with this header. */
    uint32_t constructed;
    /* Named, so that -fpack-struct changes nothing. */
    uint32_t padding;
    /* For the library alone: what to map again in a fork's child. */
    struct rtscope_object *next;
    const struct rtscope_sections_ *sections;
    struct rtscope_switch *switches;
    uint64_t switches_bytes;
    uint64_t switches_offset;
    /* Its descriptions in the table. */
    uint64_t table_begin;
    uint64_t table_end;
};

/* What the assembly of a record knows of struct rtscope_ring. */
#define RTSCOPE_RING_LOG2_ 7
#define RTSCOPE_RING_TAIL_ 64
typedef char rtscope_ring_is_as_assembly_knows_it_
    [sizeof(struct rtscope_ring) == 1u << RTSCOPE_RING_LOG2_ &&
             offsetof(struct rtscope_ring, head) == 0 &&
             offsetof(struct rtscope_ring, tail) == RTSCOPE_RING_TAIL_
         ? 1
         : -1];

/* Where the linker put a program's or library's descriptions. */
struct rtscope_sections_ {
    const char *events_begin;
    const char *events_end;
    struct rtscope_switch *switches_begin;
    struct rtscope_switch *switches_end;
    const struct rtscope_enumeration_ *const *enumerations_begin;
    const struct rtscope_enumeration_ *const *enumerations_end;
};

/*
 * An entry of the table that is made at run time: for generated code and for other languages. The
 * memory, that of the text too, is the library's from then on: it is needed in fork's children.
 */
struct rtscope_late {
    /* Given back for an event; never NULL after rtscope_add, and off where nothing is traced. */
    struct rtscope_switch *state;
    /* The description, as layout.h says. */
    const char *text;
    uint32_t text_bytes;
    /* enum rtscope_entry_kind */
    uint32_t kind;
    struct rtscope_late *next;
};

/* A place for one record. It is only ever passed to what is inlined, so that it needs no memory. */
struct rtscope_place_ {
    void *area;
    uint64_t *ring;
    uint64_t *at;
    uint64_t head;
    uint64_t end;
    uint64_t time;
    uint32_t cpu;
};

/* Removes this process's rings, whatever they hold, unless a recorder is there to read them: for a
 * program that recorded for itself alone. */
void rtscope_forget(void);

/* Adds an entry to the table of this process; an enumeration before the events that mean it. Makes
 * system calls and takes a lock. */
void rtscope_add(struct rtscope_late *entry);
/* Writes an event that was added: `payload` has room for RTSCOPE_PAYLOAD_BYTES_MAX bytes. To be
 * called when the switch is on, and passed when it is filtered (rtscope_pass_). */
void rtscope_write_late(const struct rtscope_late *event, uint64_t *payload, size_t payload_bytes);

/* In the library. */
void rtscope_register_object_(struct rtscope_object *object,
                              const struct rtscope_sections_ *sections);
void rtscope_unregister_(struct rtscope_object *object);
int rtscope_pass_(const struct rtscope_switch *state, void *payload, size_t payload_bytes,
                  void *hidden, size_t hidden_bytes);
void rtscope_write_(const struct rtscope_object *object, uint32_t id, uint64_t *payload,
                    size_t payload_bytes);
unsigned char *rtscope_put_text_(unsigned char *at, size_t *room, const char *text,
                                 size_t length_max);
unsigned char *rtscope_put_bytes_(unsigned char *at, size_t *room, const void *bytes,
                                  size_t length);
unsigned char *rtscope_put_sequence_(unsigned char *at, size_t *room, const void *elements,
                                     size_t length, size_t element_bytes);
/* The contexts of applications that recorders want, each as `PROVIDER:CONTEXT` and a zero; returns
 * their bytes. */
size_t rtscope_app_contexts_(char *names, size_t room);
/* Prints into `text`, RTSCOPE_PAYLOAD_BYTES_MAX bytes large; returns it. */
const char *rtscope_print_(char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The linker's names for the ends of the sections. They must be spelt as they are: under another
 * name (asm) gcc forgets that they are hidden, and a library without events finds another's. */
extern const char __start_rtscope_events[] __attribute__((weak, visibility("hidden")));
extern const char __stop_rtscope_events[] __attribute__((weak, visibility("hidden")));
extern struct rtscope_switch __start_rtscope_switches[]
    __attribute__((weak, visibility("hidden")));
extern struct rtscope_switch __stop_rtscope_switches[]
    __attribute__((weak, visibility("hidden")));
extern const struct rtscope_enumeration_ *__start_rtscope_enumeration_list[]
    __attribute__((weak, visibility("hidden")));
extern const struct rtscope_enumeration_ *__stop_rtscope_enumeration_list[]
    __attribute__((weak, visibility("hidden")));

__attribute__((weak, visibility("hidden"))) struct rtscope_object rtscope_object_;

/* Makes this program's or library's events known; a program that defines RTSCOPE_NO_CONSTRUCTOR in
 * all its files calls it when it wants to be traced, and has no rings before. */
static inline void rtscope_attach(void)
{
    static struct rtscope_sections_ sections;
    if (rtscope_object_.constructed++ != 0)
        return;
    sections.events_begin = __start_rtscope_events;
    sections.events_end = __stop_rtscope_events;
    sections.switches_begin = __start_rtscope_switches;
    sections.switches_end = __stop_rtscope_switches;
    sections.enumerations_begin = __start_rtscope_enumeration_list;
    sections.enumerations_end = __stop_rtscope_enumeration_list;
    rtscope_register_object_(&rtscope_object_, &sections);
}

static inline void rtscope_detach(void)
{
    if (--rtscope_object_.constructed == 0)
        rtscope_unregister_(&rtscope_object_);
}

#ifndef RTSCOPE_NO_CONSTRUCTOR
/* Before the constructors of the program, so that they can be traced; and after its destructors. */
static __attribute__((constructor(101), used)) void rtscope_construct_(void)
{
    rtscope_attach();
}

static __attribute__((destructor(101), used)) void rtscope_destruct_(void)
{
    rtscope_detach();
}
#endif

static inline __attribute__((always_inline)) struct rtscope_ring *
rtscope_ring_(const struct rtscope_object *object, uint32_t cpu)
{
    return object->rings + cpu;
}

/* The calling thread's id as the process sees it, where glibc keeps it. */
static inline __attribute__((always_inline)) uint32_t
rtscope_tid_(const struct rtscope_object *object)
{
    const char *const thread = rtscope_thread_pointer_();
    return *(const volatile uint32_t *)(const void *)(thread + object->tid_offset);
}

/* What a variable holds at this place in the code, and not before. */
#define RTSCOPE_NOW_(variable) (*(const volatile __typeof__(variable) *)&(variable))

/*
 * Chooses the place of the next record: offset first, then the clock; the section then finds out
 * whether both still hold, which makes the times in a ring rise. Returns 0 where the record does
 * not fit at the head, or the CPU has no ring.
 */
static inline __attribute__((always_inline)) int
rtscope_claim_(const struct rtscope_object *object, struct rtscope_place_ *place, uint64_t words)
{
    place->area = rtscope_thread_pointer_() + object->area_offset;
    const uint32_t cpu = *(volatile uint32_t *)place->area;
    if (__builtin_expect(cpu >= object->rings_length, 0))
        return 0;
    /* The ring first: where a handler forks above this, the child has others from then on, and what
     * it takes of them fits to no ring of its parent's. */
    struct rtscope_ring *const rings = RTSCOPE_NOW_(object->rings);
    struct rtscope_ring *const ring = rings + cpu;
    const uint64_t head = *(volatile uint64_t *)&ring->head;
    const uint64_t ring_bytes = RTSCOPE_NOW_(object->ring_bytes);
    const uint64_t subbuffer_bytes = RTSCOPE_NOW_(object->subbuffer_bytes);
    const uint64_t end = head + words * 8;
    place->time = rtscope_counter_();
    place->cpu = cpu;
    /* The head is the first of it; under -fpack-struct gcc would warn of its address. */
    place->ring = (uint64_t *)(void *)((char *)rings + cpu * sizeof *ring);
    place->head = head;
    place->end = end;
    place->at = (uint64_t *)(void *)(RTSCOPE_NOW_(object->data) + cpu * ring_bytes +
                                     (head & RTSCOPE_NOW_(object->ring_mask)));
    /* In one sub-buffer, and not over what is still to be read. */
    return __builtin_expect(
        ((head ^ (end - 1)) < subbuffer_bytes) &
            (end - *(volatile uint64_t *)&ring->tail <= ring_bytes),
        1);
}

#ifdef __cplusplus
}
#endif

#endif
