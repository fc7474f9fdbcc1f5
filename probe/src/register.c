/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs and libraries come, fork and go: their descriptions go into the table of the shared
 * file (table.c), and the file's pages of switches are mapped over theirs.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* So much of a ring has no event to wait for where nobody chose its size. */
#define WARM_BYTES (UINT64_C(256) << 10)

/* What is wanted, when it was last asked. */
static struct rtscope_event_rules rules;

/* The switch of late events where nothing is traced: always off. */
static struct rtscope_switch off;

static struct {
    struct rtscope_settings settings;
    struct rtscope_file file;
    struct rtscope_table table;
    struct rtscope_object *objects;
    struct rtscope_late *late, *late_last;
    ptrdiff_t area_offset;
    ptrdiff_t tid_offset;
    uint64_t switches_used;
    /* A bit for each set whose rings have memory, with pages of this process. */
    unsigned warm_sets;
    /* Whether the file was looked at for the last time. */
    int has_ended;
    int knows_forks;
    /* So many variables that are not followed were noted in the file. */
    unsigned complaints_noted;
    int said_left_out;
    int begun;
} process;

/* Threads that record find a size last: what belongs to it is there then. */
static void give_size(struct rtscope_object *object, const struct rtscope_set_plan *set)
{
    object->ring_mask = set->ring_bytes - 1;
    object->subbuffer_bytes = set->subbuffer_bytes;
    __atomic_store_n(&object->ring_bytes, set->ring_bytes, __ATOMIC_RELEASE);
    const int is_fast = process.area_offset && process.tid_offset &&
                        process.settings.clock == RTSCOPE_CLOCK_COUNTER;
    __atomic_store_n(&object->fast, is_fast, __ATOMIC_RELEASE);
}

static void point_to_rings(struct rtscope_object *object, uint32_t place)
{
    const struct rtscope_header *const header = process.file.header;
    const struct rtscope_set_plan *const set = &process.settings.sets[place];
    object->rings = rtscope_rings_of(header, place);
    object->data = (unsigned char *)header + rtscope_set_of(header, place).data_offset;
    object->rings_length = header->rings_length;
    object->area_offset = process.area_offset;
    object->tid_offset = process.tid_offset;
    object->fast = 0;
    object->ring_bytes = 0;
    if (set->ring_bytes)
        give_size(object, set);
}

void rtscope_know_size(uint32_t place, uint64_t ring_bytes)
{
    struct rtscope_set_plan *const set = &process.settings.sets[place];
    set->subbuffer_bytes = rtscope_subbuffer_bytes(ring_bytes, process.settings.subbuffers);
    set->ring_bytes = ring_bytes;
    give_size(&rtscope_write_views[place], set);
    /* All that is no view writes into set 0. */
    struct rtscope_object *const first = place == 0 ? process.objects : NULL;
    for (struct rtscope_object *object = first; object; object = object->next)
        give_size(object, set);
}

/* What the objects that are there already ask of the file. */
static void count_needs(void)
{
    process.settings.switches_bytes = process.settings.table_bytes = 0;
    for (const struct rtscope_object *object = process.objects; object; object = object->next) {
        const struct rtscope_sections_ *const sections = object->sections;
        process.settings.switches_bytes += object->switches_bytes;
        /* An entry is a little larger than its site. */
        process.settings.table_bytes +=
            2 * (uint64_t)(sections->events_end - sections->events_begin);
    }
    for (const struct rtscope_late *late = process.late; late; late = late->next) {
        process.settings.switches_bytes += sizeof *late->state;
        process.settings.table_bytes += sizeof(struct rtscope_entry) + late->text_bytes + 8;
    }
}

/* Whose the sets are, what recorders ask of their rings, and who wants an event that is there
 * already, from these on: only then is memory given at once. */
static void ask_recorders(const struct rtscope_object *object, const struct rtscope_late *late)
{
    unsigned wanted = 0;
    rtscope_event_rules_read(&rules, &process.settings);
    const unsigned all = rtscope_event_rules_give_sets(&rules);
    for (; object && wanted != all; object = object->next)
        wanted |= rtscope_object_is_wanted(&rules, object, all);
    for (; late && wanted != all; late = late->next)
        wanted |= rtscope_late_is_wanted(&rules, late, all);
    for (uint32_t place = 0; place < RTSCOPE_SETS_MAX; place++) {
        struct rtscope_set_plan *const set = &process.settings.sets[place];
        set->session = rules.sessions[place];
        set->rings = rtscope_event_rules_rings(&rules, place);
        set->is_wanted = (wanted & 1u << place) != 0;
    }
    process.settings.is_wanted = wanted != 0;
    process.settings.has_no_spare_sets = 0;
    process.settings.has_no_room = rtscope_minds_addresses();
}

/* Makes the file; without one, nothing can be enabled and nothing else happens. */
static int begin_process(void)
{
    process.switches_used = 0;
    process.table = (struct rtscope_table){&process.file, RTSCOPE_ID_FIRST, 0};
    process.warm_sets = 0;
    process.has_ended = 0;
    process.complaints_noted = 0;
    process.said_left_out = 0;
    process.file.header = NULL;
    count_needs();
    rtscope_closed_forget();
    if (process.settings.disabled)
        return -1;
    process.settings.refused = rtscope_is_amid() ? EDEADLK : 0;
    ask_recorders(process.objects, process.late);
    if (rtscope_file_create(&process.file, &process.settings, process.area_offset != 0) != 0)
        return -1;
    struct rtscope_header *const header = process.file.header;
    rtscope_write_clock = process.settings.clock;
    rtscope_write_block_ns = process.settings.block_ns;
    rtscope_filters_.at = (const unsigned char *)header + header->filters_offset;
    rtscope_filters_.bytes = header->filters_bytes;
    memset(rtscope_write_views, 0, sizeof rtscope_write_views);
    for (uint32_t set = 0; set < process.settings.sets_length; set++) {
        rtscope_write_modes[set] = set == 0 ? &header->mode : &header->more[set - 1].mode;
        point_to_rings(&rtscope_write_views[set], set);
    }
    rtscope_sizes_begin(&process.file, &process.settings);
    return 0;
}

/* Rings of a size that somebody chose are this process's pages from then on; of others only so much
 * as all had that nobody chose. */
static void warm(uint32_t place)
{
    const struct rtscope_set_plan *const set = &process.settings.sets[place];
    const int is_chosen = process.settings.ring_bytes_asked || set->rings.exactly;
    process.warm_sets |= 1u << place;
    rtscope_sizes_choose(&process.file, &process.settings, place, &rules);
    rtscope_file_give(&process.file, place, rtscope_event_rules_rings(&rules, place).per_user);
    rtscope_file_warm(&process.file, place, is_chosen ? set->ring_bytes : WARM_BYTES);
}

/* Lets `sets` have an event. Memory first, or the first events would find none. */
static void switch_on(uint64_t offset, unsigned sets)
{
    void *const own = (char *)process.file.header + offset;
    for (uint32_t place = 0; place < process.settings.sets_length; place++)
        if (sets & ~process.warm_sets & ~rtscope_write_late_sets & 1u << place)
            warm(place);
    rtscope_switch_give(own, sets);
}

/* Whose the sets are by now. */
static void know_sessions(void)
{
    const struct rtscope_header *const header = process.file.header;
    for (uint32_t set = 0; set < header->sets_length && set < RTSCOPE_SETS_MAX; set++)
        rules.sessions[set] = rtscope_set_of(header, set).session;
}

/* Makes the entries up to `used` known, and enables those that are wanted already. */
static void publish(uint64_t used)
{
    struct rtscope_header *const header = process.file.header;
    const uint64_t begin = header->table_used;
    __atomic_store_n(&header->table_used, used, __ATOMIC_RELEASE);
    /* The table first, the sessions then: a recorder does it the other way round, so that none of
     * both can miss the other. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    rtscope_event_rules_read(&rules, &process.settings);
    know_sessions();
    const unsigned overwrite = rtscope_event_rules_overwrite(&rules);
    for (uint32_t set = 0; set < process.settings.sets_length; set++)
        if (overwrite & 1u << set)
            *rtscope_write_modes[set] = RTSCOPE_MODE_OVERWRITE;
    const char *const table = (const char *)header + header->table_offset;
    for (uint64_t place = begin; place < used;) {
        struct rtscope_entry entry;
        memcpy(&entry, table + place, sizeof entry);
        const char *const text = table + place + sizeof entry;
        const char *const provider = text + 1;
        const unsigned wanted =
            entry.kind == RTSCOPE_ENTRY_EVENT
                ? rtscope_event_rules_match(&rules, (uint8_t)text[0], provider,
                                            provider + strlen(provider) + 1)
                : 0;
        if (wanted)
            switch_on(entry.switch_offset, wanted);
        place += entry.entry_bytes;
    }
}

struct describing {
    const struct rtscope_object *object;
    uint64_t used;
};

static void describe_site(const struct rtscope_site *site, void *context)
{
    struct describing *const describing = context;
    const struct rtscope_facts facts = {RTSCOPE_ENTRY_EVENT,
                                describing->object->switches_offset + site->switch_offset,
                                site->code_address};
    struct rtscope_description event = {site->text, site->text_bytes, 1, NULL, NULL, 0};
    if (rtscope_table_event(&process.table, &event, &facts, &describing->used) &&
        process.file.missing_rings)
        rtscope_table_missing_rings(&process.table, &event, &describing->used);
}

/* Once in a file, under the name of the process: which variables are not followed, and that events
 * may be off that a recorder wants. */
static void note_complaints(uint64_t *used)
{
    const struct rtscope_refusal left_out = {
        "its first events may be missing, as not all sessions of recorders were read:",
        rules.left_out, "", "remove the files session-… from the folder, and record again"};
    if (rules.left_out && !process.said_left_out)
        rtscope_table_note(&process.table, "rtscope_probe", process.file.header->name, &left_out,
                           used);
    process.said_left_out |= rules.left_out != NULL;
    const struct rtscope_settings *const settings = &process.settings;
    for (; process.complaints_noted < settings->complaints_length; process.complaints_noted++)
        rtscope_table_note(&process.table, "rtscope_probe", process.file.header->name,
                           &settings->complaints[process.complaints_noted], used);
}

/* Describes all events of an object. */
static void describe(struct rtscope_object *object)
{
    const struct rtscope_sections_ *const sections = object->sections;
    struct describing describing = {object, process.file.header->table_used};
    note_complaints(&describing.used);
    for (const struct rtscope_enumeration_ *const *one = sections->enumerations_begin;
         one != sections->enumerations_end; one++)
        if (*one)
            rtscope_table_enumeration(&process.table, *one, &describing.used);
    rtscope_sections_each(sections, describe_site, &describing);
    object->table_begin = process.file.header->table_used;
    object->table_end = describing.used;
    publish(describing.used);
}

/* Of a program or library that stays untraced: under a name that whoever wants all events has. */
static void refuse_object(const struct rtscope_refusal *why)
{
    struct rtscope_header *const header = process.file.header;
    uint64_t used = header->table_used;
    header->unregistered++;
    rtscope_table_note(&process.table, "rtscope_probe", header->name, why, &used);
    publish(used);
}

/* Describes an entry that is made at run time. Its switch lies in the file alone. */
static void describe_late(struct rtscope_late *late)
{
    struct rtscope_header *const header = process.file.header;
    struct rtscope_facts facts = {late->kind, 0, 0};
    const uint64_t place = process.switches_used;
    late->state = &off;
    if (!header)
        return;
    if (late->kind == RTSCOPE_ENTRY_EVENT) {
        facts.switch_offset = header->switches_offset + place;
        if (place + sizeof *late->state > header->switches_bytes ||
            rtscope_file_populate(&process.file, facts.switch_offset, sizeof *late->state) != 0) {
            header->unregistered++;
            return;
        }
    }
    uint64_t used = header->table_used;
    note_complaints(&used);
    struct rtscope_description event = {late->text, late->text_bytes, 0, NULL, NULL, 0};
    if (late->kind != RTSCOPE_ENTRY_EVENT) {
        char *const at = rtscope_table_append(&process.table, late->text_bytes, &facts, &used);
        if (at)
            memcpy(at, late->text, late->text_bytes);
    } else if (rtscope_table_event(&process.table, &event, &facts, &used)) {
        late->state = (struct rtscope_switch *)(void *)((char *)header + facts.switch_offset);
        process.switches_used += sizeof *late->state;
    }
    publish(used);
}

/* Maps the file's switches over the object's. A shared mapping is doubled by mremap of no bytes,
 * so that no descriptor must stay open; an emulator that cannot do that gets the file anew. */
static int map_switches(const struct rtscope_object *object)
{
    const uint64_t bytes = object->switches_bytes, offset = object->switches_offset;
    if (rtscope_file_populate(&process.file, offset, bytes) != 0 ||
        (mremap((char *)process.file.header + offset, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                object->switches) == MAP_FAILED &&
         rtscope_file_map(&process.file, offset, bytes, object->switches) != 0))
        return -1;
    (void)madvise(object->switches, bytes, MADV_WILLNEED);
    return 0;
}

/* Finds room for the object's switches among the file's. */
static int place_switches(struct rtscope_object *object)
{
    const struct rtscope_header *const header = process.file.header;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t bytes = object->switches_bytes;
    /* Late events may have left a page in the middle. */
    const uint64_t used = (process.switches_used + page - 1) & ~(page - 1);
    if (((uintptr_t)object->switches | bytes) & (page - 1) || used > header->switches_bytes ||
        bytes > header->switches_bytes - used)
        return -1;
    object->switches_offset = header->switches_offset + used;
    process.switches_used = used + bytes;
    return 0;
}

static void attach(struct rtscope_object *object)
{
    static const char no_events[] = "a program or library has no events:";
    static const struct rtscope_refusal unfit = {
        no_events, "what its compiler laid down is not what is known here", "",
        "build the program and librtscope-probe from one version"};
    static const struct rtscope_refusal unmapped = {
        no_events, "the pages of its switches cannot be shared", "",
        "link it without options that move sections, with at most a million events"};
    if (!process.file.header)
        return;
    if (!rtscope_sections_fit(object->sections)) {
        refuse_object(&unfit);
        return;
    }
    const int is_known = rtscope_closed_take(&process.file, object);
    const uint64_t used = process.switches_used;
    if ((!is_known && place_switches(object) != 0) || map_switches(object) != 0) {
        /* Where there was no memory, who looks at the switches must not touch these pages. */
        process.switches_used = used;
        refuse_object(&unmapped);
        return;
    }
    point_to_rings(object, 0);
    if (!is_known)
        describe(object);
    /* A thread of the parent may have had the lock of the list of what is loaded: a child never
     * asks for it, and knows what its parent knew. */
    if (!rtscope_forks_in_child())
        rtscope_objects_note(&process.file);
}

/* Takes the switches from the object: it is off, whatever recorders do. */
static void detach(const struct rtscope_object *object)
{
    mmap(object->switches, object->switches_bytes, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* All that is there goes into a new file, the oldest first: events get the ids that they had, as a
 * thread may be about to write one, and an enumeration comes before what means it. A child has
 * rings of its own, also where its parent found none: it tries, and says who has none. Its switches
 * are still the parent's pages until they are mapped anew; where that fails they are replaced by
 * private zeros, and it is not traced. */
static void begin_anew(void)
{
    const int failed = begin_process();
    for (struct rtscope_object *object = process.objects; object; object = object->next) {
        detach(object);
        if (!failed)
            attach(object);
    }
    for (struct rtscope_late *late = process.late; late; late = late->next)
        describe_late(late);
}

void rtscope_begin_in_child(void)
{
    if (!process.begun)
        return;
    struct rtscope_file parent = process.file;
    const uint64_t switches_used = process.switches_used;
    begin_anew();
    if (process.file.header && parent.header)
        rtscope_objects_inherit(&process.file, &parent);
    rtscope_left_keep(&parent, switches_used);
}

/* Whether somebody who wants an event wants rings of another size than all have. */
static int asks_for_rings(void)
{
    for (uint32_t place = 0; place < RTSCOPE_SETS_MAX; place++) {
        const struct rtscope_set_plan *const set = &process.settings.sets[place];
        if (set->is_wanted && (set->rings.exactly || set->rings.at_most))
            return 1;
    }
    return 0;
}

/* Libraries come before the program: nobody may have wanted an event when the file was made. When
 * the first comes that a recorder wants, the file is made anew, with rings as it asks. Gives
 * whether it was: what came, from these on, is then attached already. */
static int was_made_larger(const struct rtscope_object *object, const struct rtscope_late *late)
{
    if (!process.file.header || process.settings.is_wanted ||
        rtscope_file_has_memory(&process.file))
        return 0;
    ask_recorders(object, late);
    if (!asks_for_rings())
        return 0;
    struct rtscope_file before = process.file;
    const struct rtscope_header *const header = before.header;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    /* Other threads may be looking at its switches; all else goes. */
    const uint64_t kept =
        header->switches_offset + ((process.switches_used + page - 1) & ~(page - 1));
    const uint64_t leaving = before.map_bytes - kept;
    process.settings.leaving_bytes = leaving;
    begin_anew();
    process.settings.leaving_bytes = 0;
    unlink(before.path);
    munmap((char *)before.header + kept, leaving);
    return 1;
}

/* The process's file, made for the first description; without one nothing is traced. */
static void begin(void)
{
    if (process.begun)
        return;
    process.begun = 1;
    rtscope_settings_read(&process.settings);
    process.area_offset = rtscope_find_rseq_area(process.settings.rseq);
    process.tid_offset = rtscope_find_tid();
    begin_process();
    rtscope_ending_watch();
    if (!process.settings.disabled && !process.knows_forks) {
        process.knows_forks = 1;
        rtscope_forks_watch();
    }
}

/* The last library with events is closed: what is mapped goes, until one comes again. */
static void close_process(const struct rtscope_object *last)
{
    if (process.file.header)
        detach(last);
    memset(rtscope_write_views, 0, sizeof rtscope_write_views);
    memset(&rtscope_filters_, 0, sizeof rtscope_filters_);
    rtscope_closed_forget();
    rtscope_left_forget();
    rtscope_sizes_begin(NULL, NULL);
    rtscope_file_unmap(&process.file);
    process.begun = 0;
}

void rtscope_register_object_(struct rtscope_object *object,
                              const struct rtscope_sections_ *sections)
{
    if (sections->events_begin == sections->events_end)
        return;
    /* Nobody who loads a library looks for an errno of ours. */
    const int error = errno;
    rtscope_lock();
    object->sections = sections;
    object->switches = sections->switches_begin;
    object->switches_bytes =
        (uint64_t)((const char *)sections->switches_end - (const char *)object->switches);
    object->next = NULL;
    rtscope_settle();
    struct rtscope_object **end = &process.objects;
    while (*end)
        end = &(*end)->next;
    __atomic_store_n(end, object, __ATOMIC_RELEASE);
    begin();
    if (!was_made_larger(object, NULL))
        attach(object);
    rtscope_unlock();
    errno = error;
}

void rtscope_add(struct rtscope_late *entry)
{
    const int error = errno;
    rtscope_lock();
    entry->next = NULL;
    rtscope_settle();
    /* There may be thousands. */
    __atomic_store_n(process.late ? &process.late_last->next : &process.late, entry,
                     __ATOMIC_RELEASE);
    process.late_last = entry;
    begin();
    if (!was_made_larger(NULL, entry))
        describe_late(entry);
    rtscope_unlock();
    errno = error;
}

void rtscope_write_late(const struct rtscope_late *event, uint64_t *payload, size_t payload_bytes)
{
    /* A process without rings has no switch that is on. */
    if (rtscope_write_views[0].rings)
        rtscope_write_(&rtscope_write_views[0], event->state->id, payload, payload_bytes);
}

size_t rtscope_app_contexts_(char *names, size_t room)
{
    rtscope_lock();
    if (!process.begun)
        rtscope_settings_read(&process.settings);
    rtscope_event_rules_read(&rules, &process.settings);
    const size_t used = rtscope_event_rules_contexts(&rules, names, room);
    rtscope_unlock();
    return used;
}

uint32_t rtscope_own_tid(void)
{
    return process.tid_offset
               ? *(volatile uint32_t *)(rtscope_thread_pointer_() + process.tid_offset)
               : 0;
}

/* A file in which nothing was recorded goes; any other is the recorder's to remove. */
static void end_file(void)
{
    const struct rtscope_file *const file = &process.file;
    const pid_t own = getpid();
    process.has_ended = 1;
    if (file->header && file->header->pid == own) {
        const int may_be_read =
            process.table.has_notes && rtscope_sessions_any(process.settings.directory);
        rtscope_file_end(file,
                         rtscope_file_in_use(file, process.switches_used) || may_be_read);
    }
    /* A recorder that is there wants to tell who had no rings. */
    const char *const told_in = file->is_refused_elsewhere ? NULL : process.settings.directory;
    if (file->refused_pid == own && !rtscope_sessions_any(told_in))
        unlink(file->path);
}

/* A process that ends and may have forbidden itself system calls is left as it is: the first of
 * ours would end it before its output is written. Whoever comes next removes its file. */
static int ends_untouched(void)
{
    return rtscope_is_ending() && rtscope_may_be_confined();
}

/* Where the process ends the mapping stays: other objects may still record after our destructors,
 * until the very end. */
void rtscope_unregister_(struct rtscope_object *object)
{
    if (ends_untouched())
        return;
    rtscope_lock();
    struct rtscope_object **link = &process.objects;
    while (*link && *link != object)
        link = &(*link)->next;
    if (*link)
        __atomic_store_n(link, object->next, __ATOMIC_RELEASE);
    const int stays = process.objects || process.late || &rtscope_stays_;
    if (rtscope_is_ending()) {
        if (!process.objects)
            end_file();
    } else if (!stays) {
        end_file();
        close_process(object);
    } else if (process.file.header && object->table_end > object->table_begin) {
        rtscope_closed_add(object);
    }
    rtscope_unlock();
}

/* Of a process whose libraries with events were closed before its end, or were there before its
 * own code and are taken for closed: they come before whoever watches for the end. What stays
 * loaded for good gets here at the end alone. It takes no lock: behind all others it has to wait
 * for nobody. */
static __attribute__((destructor(101), used)) void end_without_objects(void)
{
    if (process.begun && !process.has_ended && !process.objects &&
        (&rtscope_stays_ || rtscope_is_ending()) && !rtscope_may_be_confined())
        end_file();
}

void rtscope_forget(void)
{
    /* A recorder that is there wants to read what we leave, and removes it. */
    if (process.file.header && process.file.header->pid == (int)getpid() &&
        !rtscope_sessions_any(process.settings.directory))
        unlink(process.file.path);
}
