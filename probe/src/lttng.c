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

/* What was described. The probe keeps it for good: a provider that comes again, with the same
 * description, gets it again. */
struct kept {
    struct rtscope_lttng_event event;
    int is_in_use;
    struct kept *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rtscope_lttng_site *sites;
static struct rtscope_lttng_source *sources;
static struct kept *all;
/* So many of them are events that are not in use. */
static size_t unused;

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

/* The text of a source: an event's or an enumeration's description. */
static void describe(const struct rtscope_lttng_source *source, struct rtscope_lttng_text *text)
{
    if (source->record) {
        rtscope_lttng_byte_(text, source->level ? *source->level : RTSCOPE_LEVEL_DEBUG_LINE);
        rtscope_lttng_string_(text, source->provider);
    } else {
        /* Enumerations have one name, and theirs is looked for by both. */
        append(text, source->provider, strlen(source->provider));
        rtscope_lttng_byte_(text, '_');
    }
    rtscope_lttng_string_(text, source->name);
    source->describe(text);
}

/* The same event of a provider that was there before, and whose place nobody has. */
static struct kept *known_event(const struct rtscope_lttng_text *text)
{
    struct kept *one = unused ? all : NULL;
    while (one && (one->event.late.kind != RTSCOPE_ENTRY_EVENT || one->is_in_use ||
                   one->event.late.text_bytes != text->length ||
                   memcmp(one->event.late.text, text->bytes, text->length) != 0))
        one = one->next;
    return one;
}

/* The enumeration that has the name now, where it is the same. */
static struct kept *known_labels(const struct rtscope_lttng_text *text)
{
    struct kept *one = all;
    while (one && (one->event.late.kind != RTSCOPE_ENTRY_ENUMERATION ||
                   strcmp(one->event.late.text, text->bytes) != 0))
        one = one->next;
    const int is_same = one && one->event.late.text_bytes == text->length &&
                        memcmp(one->event.late.text, text->bytes, text->length) == 0;
    return is_same ? one : NULL;
}

static struct kept *made(const struct rtscope_lttng_text *text, uint32_t kind)
{
    struct kept *const own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->event.late.text = text->bytes;
    own->event.late.text_bytes = (uint32_t)text->length;
    own->event.late.kind = kind;
    rtscope_add(&own->event.late);
    own->next = all;
    all = own;
    return own;
}

/* Gives what a source describes to the probe, once. */
static struct rtscope_lttng_event *keep(const struct rtscope_lttng_source *source)
{
    struct rtscope_lttng_text text = {NULL, 0, 0, 0};
    const int is_event = source->record != NULL;
    struct kept *known = NULL, *own;
    describe(source, &text);
    if (!text.failed)
        known = is_event ? known_event(&text) : known_labels(&text);
    own = known;
    if (!known && !text.failed)
        own = made(&text, is_event ? RTSCOPE_ENTRY_EVENT : RTSCOPE_ENTRY_ENUMERATION);
    if (known || !own)
        free(text.bytes);
    if (!own)
        return NULL;
    unused -= known && is_event;
    own->is_in_use = 1;
    own->event.record = source->record;
    return &own->event;
}

void rtscope_lttng_add_source_(struct rtscope_lttng_source *source)
{
    pthread_mutex_lock(&lock);
    source->event = keep(source);
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
    if (source->event && source->record) {
        /* The event is the first of what is kept. */
        ((struct kept *)(void *)source->event)->is_in_use = 0;
        unused++;
    }
    pthread_mutex_unlock(&lock);
}
