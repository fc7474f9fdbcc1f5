/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tracepoints and providers written for LTTng-UST come and go in any order, and meet by name. */
#define _GNU_SOURCE
#include <rtscope/detail/lttng.h>
#include <rtscope/event.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(offsetof(struct rtscope_lttng_event, late.state) ==
                       offsetof(struct rtscope_lttng_target, state) &&
                   offsetof(struct rtscope_lttng_event, record) ==
                       offsetof(struct rtscope_lttng_target, record),
               "a site sees the beginning of an event");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rtscope_lttng_site *sites;
static struct rtscope_lttng_source *sources;

/* Room for `bytes` more at the end of the text. */
static char *grow(struct rtscope_lttng_text *text, size_t bytes)
{
    if (!text->failed && bytes > text->room - text->length) {
        const size_t room = 2 * text->room + bytes;
        char *const moved = realloc(text->bytes, room);
        text->failed = !moved;
        text->bytes = moved ? moved : text->bytes;
        text->room = moved ? room : text->room;
    }
    if (text->failed)
        return NULL;
    text->length += bytes;
    return text->bytes + text->length - bytes;
}

static void append(struct rtscope_lttng_text *text, const void *bytes, size_t length)
{
    char *const at = grow(text, length);
    if (at)
        memcpy(at, bytes, length);
}

void rtscope_lttng_byte_(struct rtscope_lttng_text *text, unsigned byte)
{
    const unsigned char kept = (unsigned char)byte;
    append(text, &kept, 1);
}

void rtscope_lttng_count_(struct rtscope_lttng_text *text, uint32_t count)
{
    append(text, &count, sizeof count);
}

void rtscope_lttng_string_(struct rtscope_lttng_text *text, const char *string)
{
    append(text, string, strlen(string) + 1);
}

void rtscope_lttng_number_(struct rtscope_lttng_text *text, unsigned first, size_t bytes)
{
    rtscope_lttng_byte_(text, first + (unsigned)__builtin_ctzll(bytes));
}

int64_t rtscope_lttng_label_(struct rtscope_lttng_text *text, const char *label, int64_t first,
                             int64_t last)
{
    append(text, &first, sizeof first);
    append(text, &last, sizeof last);
    rtscope_lttng_string_(text, label);
    return last + 1;
}

static struct rtscope_lttng_target *target_of(struct rtscope_lttng_source *source)
{
    return (struct rtscope_lttng_target *)(void *)source->event;
}

static int fits(const struct rtscope_lttng_site *site, const struct rtscope_lttng_source *source)
{
    return source->event && strcmp(site->provider, source->provider) == 0 &&
           strcmp(site->name, source->name) == 0 &&
           strcmp(site->signature, source->signature) == 0;
}

static void aim(struct rtscope_lttng_site *site, struct rtscope_lttng_target *target)
{
    __atomic_store_n(&site->target, target, __ATOMIC_RELEASE);
}

void rtscope_lttng_add_site_(struct rtscope_lttng_site *site)
{
    pthread_mutex_lock(&lock);
    if (site->users++ == 0) {
        site->next = sites;
        sites = site;
        for (struct rtscope_lttng_source *source = sources; source; source = source->next)
            if (source->record && fits(site, source))
                aim(site, target_of(source));
    }
    pthread_mutex_unlock(&lock);
}

void rtscope_lttng_remove_site_(struct rtscope_lttng_site *site)
{
    pthread_mutex_lock(&lock);
    struct rtscope_lttng_site **link = &sites;
    while (*link && *link != site)
        link = &(*link)->next;
    if (*link && --site->users == 0)
        *link = site->next;
    pthread_mutex_unlock(&lock);
}

/* Describes the event or the enumeration, and gives it to the probe for good. */
static struct rtscope_lttng_event *describe(const struct rtscope_lttng_source *source)
{
    struct rtscope_lttng_text text = {NULL, 0, 0, 0};
    const int is_event = source->record != NULL;
    struct rtscope_lttng_event *const event = calloc(1, sizeof *event);
    if (is_event) {
        rtscope_lttng_byte_(&text, source->level ? *source->level : RTSCOPE_LEVEL_DEBUG_LINE);
        rtscope_lttng_string_(&text, source->provider);
    } else {
        /* Enumerations have one name, and theirs is looked for by both. */
        append(&text, source->provider, strlen(source->provider));
        rtscope_lttng_byte_(&text, '_');
    }
    rtscope_lttng_string_(&text, source->name);
    source->describe(&text);
    if (!event || text.failed) {
        free(text.bytes);
        free(event);
        return NULL;
    }
    event->record = source->record;
    event->late.text = text.bytes;
    event->late.text_bytes = (uint32_t)text.length;
    event->late.kind = is_event ? RTSCOPE_ENTRY_EVENT : RTSCOPE_ENTRY_ENUMERATION;
    rtscope_add(&event->late);
    return event;
}

void rtscope_lttng_add_source_(struct rtscope_lttng_source *source)
{
    pthread_mutex_lock(&lock);
    source->event = describe(source);
    source->next = sources;
    sources = source;
    for (struct rtscope_lttng_site *site = sites; site; site = site->next)
        if (source->record && fits(site, source))
            aim(site, target_of(source));
    pthread_mutex_unlock(&lock);
}

/* Its code goes away: sites that still have it are off. */
void rtscope_lttng_remove_source_(struct rtscope_lttng_source *source)
{
    pthread_mutex_lock(&lock);
    struct rtscope_lttng_source **link = &sources;
    while (*link && *link != source)
        link = &(*link)->next;
    if (*link)
        *link = source->next;
    for (struct rtscope_lttng_site *site = sites; site; site = site->next)
        if (source->event && site->target == target_of(source))
            aim(site, &rtscope_lttng_nobody_);
    pthread_mutex_unlock(&lock);
}
