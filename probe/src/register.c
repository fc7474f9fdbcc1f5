/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs and libraries come, fork and go: their descriptions go into the table of the shared
 * file, and the file's pages of switches are mapped over theirs.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since glibc 2.35; elsewhere their addresses are zero. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* What the assembler laid down at each place with an event; the text follows. */
struct site {
    uint32_t text_bytes;
    /* From here. */
    int32_t switch_distance;
};

static struct {
    struct rtscope_settings settings;
    struct rtscope_file file;
    struct rtscope_object *objects;
    ptrdiff_t area_offset;
    ptrdiff_t tid_offset;
    uint64_t switches_used;
    uint32_t next_id;
    int begun;
} process;

/* glibc keeps a thread's id 16 bytes before the list of robust mutexes that it gives the kernel.
 * Believed only where the id is really there; otherwise records say 0. */
static ptrdiff_t find_tid(void)
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

static ptrdiff_t find_rseq_area(void)
{
    if (!process.settings.rseq || !&__rseq_size || !&__rseq_offset || __rseq_size == 0)
        return 0;
    /* Registered in this thread means registered by glibc in all. */
    const char *const area = rtscope_thread_pointer_() + __rseq_offset;
    return (int32_t)((const volatile uint32_t *)(const void *)area)[1] >= 0 ? __rseq_offset : 0;
}

/* Makes the file; without one, nothing can be enabled and nothing else happens. */
static int begin_process(void)
{
    process.switches_used = 0;
    process.next_id = RTSCOPE_ID_FIRST;
    process.file.header = NULL;
    if (process.settings.disabled ||
        rtscope_file_create(&process.file, &process.settings, process.area_offset != 0) != 0)
        return -1;
    rtscope_write_clock = process.settings.clock;
    rtscope_write_mode = &process.file.header->mode;
    return 0;
}

/* Appends to the table; returns the bytes that the entry takes, 0 when there is no room. */
static uint64_t append(struct rtscope_header *header, uint64_t used, const struct site *site,
                       uint32_t id, uint64_t switch_offset)
{
    struct rtscope_entry entry;
    const uint64_t bytes = (sizeof entry + site->text_bytes + 7) & ~UINT64_C(7);
    if (bytes > header->table_bytes - used || id > UINT16_MAX ||
        rtscope_file_populate(&process.file, header->table_offset + used, bytes) != 0)
        return 0;
    memset(&entry, 0, sizeof entry);
    entry.entry_bytes = (uint32_t)bytes;
    entry.text_bytes = site->text_bytes;
    entry.id = id;
    entry.switch_offset = switch_offset;
    char *const at = (char *)header + header->table_offset + used;
    memcpy(at, &entry, sizeof entry);
    memcpy(at + sizeof entry, site + 1, site->text_bytes);
    return bytes;
}

/* Describes all events of an object, and enables those that are wanted already. */
static void describe(const struct rtscope_object *object, const char *at, const char *end)
{
    struct rtscope_header *const header = process.file.header;
    uint64_t used = header->table_used;
    struct rtscope_switch *const first = object->switches;
    const uint64_t begin = used;
    for (const char *place = at; place < end;) {
        const struct site *const site = (const struct site *)(const void *)place;
        const char *const own = (const char *)&site->switch_distance + site->switch_distance;
        const uint64_t offset = object->switches_offset + (uint64_t)(own - (const char *)first);
        const uint64_t bytes = append(header, used, site, process.next_id, offset);
        struct rtscope_switch *const shared =
            (struct rtscope_switch *)(void *)((char *)header + offset);
        if (bytes)
            shared->id = process.next_id++;
        else
            header->unregistered++;
        used += bytes;
        place += (sizeof *site + site->text_bytes + 7) & ~(size_t)7;
    }
    __atomic_store_n(&header->table_used, used, __ATOMIC_RELEASE);
    /* The table first, the sessions then: a recorder does it the other way round, so that none of
     * both can miss the other. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    struct rtscope_wishes wishes;
    rtscope_wishes_read(&wishes, &process.settings);
    const char *const table = (const char *)header + header->table_offset;
    for (uint64_t place = begin; place < used;) {
        struct rtscope_entry entry;
        memcpy(&entry, table + place, sizeof entry);
        const char *const provider = table + place + sizeof entry + 1;
        if (rtscope_wishes_match(&wishes, provider, provider + strlen(provider) + 1))
            ((struct rtscope_switch *)(void *)((char *)header + entry.switch_offset))->enabled = 1;
        place += entry.entry_bytes;
    }
}

/* Maps the file's switches over the object's. A shared mapping is doubled by mremap of no bytes,
 * so that no descriptor must stay open; an emulator that cannot do that gets the file anew. */
static int map_switches(struct rtscope_object *object)
{
    struct rtscope_header *const header = process.file.header;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t bytes = object->switches_bytes;
    if (((uintptr_t)object->switches | bytes) & (page - 1) ||
        bytes > header->switches_bytes - process.switches_used)
        return -1;
    object->switches_offset = header->switches_offset + process.switches_used;
    if (rtscope_file_populate(&process.file, object->switches_offset, bytes) != 0 ||
        (mremap((char *)header + object->switches_offset, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                object->switches) == MAP_FAILED &&
         rtscope_file_map(&process.file, object->switches_offset, bytes, object->switches) != 0))
        return -1;
    (void)madvise(object->switches, bytes, MADV_WILLNEED);
    process.switches_used += bytes;
    return 0;
}

static void point_to_rings(struct rtscope_object *object)
{
    const struct rtscope_header *const header = process.file.header;
    char *const map = (char *)process.file.header;
    object->rings = (struct rtscope_ring *)(void *)(map + header->controls_offset);
    object->data = (unsigned char *)map + header->data_offset;
    object->ring_bytes = process.settings.ring_bytes;
    object->subbuffer_bytes = process.settings.subbuffer_bytes;
    object->rings_length = header->rings_length;
    object->area_offset = process.area_offset;
    object->tid_offset = process.tid_offset;
    object->fast = process.area_offset && process.settings.clock == RTSCOPE_CLOCK_COUNTER;
}

/* The sections of an object, as its constructor gave them; kept for the child of a fork. */
static void attach(struct rtscope_object *object, const char *begin, const char *end)
{
    if (!process.file.header)
        return;
    if (map_switches(object) != 0) {
        process.file.header->unregistered++;
        return;
    }
    point_to_rings(object);
    describe(object, begin, end);
}

/* A child has rings of its own. Its switches are still the parent's pages until they are mapped
 * anew; where that fails they are replaced by private zeros, and it is not traced. */
static void after_fork_in_child(void)
{
    struct rtscope_file parent = process.file;
    if (!parent.header)
        return;
    const int failed = begin_process();
    for (struct rtscope_object *object = process.objects; object; object = object->next) {
        mmap(object->switches, object->switches_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (!failed)
            attach(object, object->events_begin, object->events_end);
    }
    rtscope_file_unmap(&parent);
}

void rtscope_register_(struct rtscope_object *object, const char *events_begin,
                       const char *events_end, struct rtscope_switch *switches_begin,
                       struct rtscope_switch *switches_end)
{
    if (events_begin == events_end)
        return;
    if (!process.begun) {
        process.begun = 1;
        rtscope_settings_read(&process.settings);
        process.area_offset = find_rseq_area();
        process.tid_offset = find_tid();
        if (begin_process() == 0)
            pthread_atfork(NULL, NULL, after_fork_in_child);
    }
    if (!process.file.header)
        return;
    object->events_begin = events_begin;
    object->events_end = events_end;
    object->switches = switches_begin;
    object->switches_bytes =
        (uint64_t)((const char *)switches_end - (const char *)switches_begin);
    object->next = process.objects;
    process.objects = object;
    attach(object, events_begin, events_end);
}

/* Whether anything was recorded, or still may be. */
static int in_use(const struct rtscope_header *header)
{
    const char *const map = (const char *)header;
    const struct rtscope_ring *const rings =
        (const struct rtscope_ring *)(const void *)(map + header->controls_offset);
    const struct rtscope_switch *const switches =
        (const struct rtscope_switch *)(const void *)(map + header->switches_offset);
    for (uint32_t cpu = 0; cpu < header->rings_length; cpu++)
        if (rings[cpu].head)
            return 1;
    for (uint64_t place = 0; place < process.switches_used / sizeof *switches; place++)
        if (switches[place].enabled)
            return 1;
    return 0;
}

/* The mapping stays: other objects may still record after our destructors, until the very end. A
 * file in which nothing was recorded goes; any other is the recorder's to remove. */
void rtscope_unregister_(struct rtscope_object *object)
{
    struct rtscope_object **link = &process.objects;
    while (*link && *link != object)
        link = &(*link)->next;
    if (*link)
        *link = object->next;
    if (!process.objects && process.file.header && process.file.header->pid == (int)getpid() &&
        !in_use(process.file.header))
        unlink(process.file.path);
}

void rtscope_forget(void)
{
    struct rtscope_wishes wishes;
    struct rtscope_settings settings = process.settings;
    settings.events = NULL;
    rtscope_wishes_read(&wishes, &settings);
    /* A recorder that is there wants to read what we leave, and removes it. */
    if (wishes.length == 0 && process.file.header && process.file.header->pid == (int)getpid())
        unlink(process.file.path);
}
