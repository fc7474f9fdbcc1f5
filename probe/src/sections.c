/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What compilers and linkers laid down, and what other languages describe, is looked at before it
 * is believed: one program of many must not end because its build was unusual.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* What the assembler laid down at each place with an event; the text follows. */
struct laid {
    uint32_t text_bytes;
    /* From here. */
    int32_t switch_distance;
    int32_t code_distance;
};

#define LETTERS "give it letters, digits and underscores alone"

#define NO_EVENT "there is no event"
static const struct rtscope_refusal cut_off = {
    NO_EVENT, "its description is cut off", "",
    "build the program and librtscope-probe from one version"};

/* Takes the site at `place`; returns where the next begins, NULL where there is none in
 * `sections`. */
static const char *take_site(const struct rtscope_sections_ *sections, const char *place,
                             struct rtscope_site *site)
{
    const struct laid *const laid = (const struct laid *)(const void *)place;
    const size_t left = (size_t)(sections->events_end - place);
    if (left < sizeof *laid || laid->text_bytes > left - sizeof *laid)
        return NULL;
    const uintptr_t own = (uintptr_t)&laid->switch_distance + (uintptr_t)laid->switch_distance;
    const uintptr_t begin = (uintptr_t)sections->switches_begin;
    const uintptr_t end = (uintptr_t)sections->switches_end;
    if (own < begin || own >= end || (own - begin) % sizeof(struct rtscope_switch))
        return NULL;
    site->text = (const char *)(laid + 1);
    site->text_bytes = laid->text_bytes;
    site->switch_offset = own - begin;
    site->code_address = (uintptr_t)&laid->code_distance + (uintptr_t)laid->code_distance;
    const size_t bytes = (sizeof *laid + laid->text_bytes + 7) & ~(size_t)7;
    return bytes < left ? place + bytes : sections->events_end;
}

int rtscope_sections_each(const struct rtscope_sections_ *sections,
                          void (*each)(const struct rtscope_site *site, void *context),
                          void *context)
{
    struct rtscope_site site;
    if (sections->events_begin > sections->events_end || (uintptr_t)sections->events_begin % 8)
        return -1;
    for (const char *place = sections->events_begin; place != sections->events_end;) {
        place = take_site(sections, place, &site);
        if (!place)
            return -1;
        if (each)
            each(&site, context);
    }
    return 0;
}

/* An enumeration lies in the same program or library as its pointer. */
static int is_near(const struct rtscope_enumeration_ *const *pointer)
{
    const uintptr_t from = (uintptr_t)pointer, to = (uintptr_t)*pointer;
    return !*pointer || (to < from ? from - to : to - from) <= INT32_MAX;
}

int rtscope_sections_fit(const struct rtscope_sections_ *sections)
{
    const struct rtscope_enumeration_ *const *one = sections->enumerations_begin;
    const uintptr_t begin = (uintptr_t)one;
    const uintptr_t end = (uintptr_t)sections->enumerations_end;
    if (begin > end || begin % sizeof *one || end % sizeof *one)
        return 0;
    while (one != sections->enumerations_end && is_near(one))
        one++;
    return one == sections->enumerations_end && rtscope_sections_each(sections, NULL, NULL) == 0;
}

static int is_identifier(const char *name)
{
    const char *at = name;
    while ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
           (*at >= '0' && *at <= '9') || *at == '_')
        at++;
    return at != name && !*at;
}

static int refuse(struct rtscope_refusal *why, const char *found, const char *text,
                  const char *fix)
{
    why->what = NO_EVENT;
    why->found = found;
    why->text = text;
    why->fix = fix;
    return -1;
}

/* Takes a text up to its zero. */
static const char *take_text(const char **at, const char *end)
{
    const char *const text = *at;
    const char *const zero = memchr(text, 0, (size_t)(end - text));
    *at = zero ? zero + 1 : end;
    return zero ? text : NULL;
}

/* Takes what stands before a field's name. Returns its type, or -1. */
static int take_type(const char **at, const char *end, struct rtscope_refusal *why)
{
    uint32_t count;
    while (*at != end) {
        const unsigned char code = (unsigned char)*(*at)++;
        if (code < RTSCOPE_FIELD_HIDDEN)
            return code <= RTSCOPE_FIELD_BYTES
                       ? code
                       : refuse(why, "a field has a type that is not known", "", cut_off.fix);
        if (code == RTSCOPE_FIELD_ENUMERATION && !take_text(at, end))
            break;
        if (code != RTSCOPE_FIELD_ARRAY)
            continue;
        if ((size_t)(end - *at) < sizeof count)
            break;
        memcpy(&count, *at, sizeof count);
        *at += sizeof count;
        if (count > RTSCOPE_ARRAY_LENGTH_MAX)
            return refuse(why, "an array has more than 512 elements", "",
                          "make it shorter, or a sequence");
    }
    *why = cut_off;
    return -1;
}

/* The fields of an event, from `at` on. */
static int check_fields(const char *at, const char *end, struct rtscope_refusal *why)
{
    const char *names[RTSCOPE_FIELDS_MAX];
    for (unsigned length = 0;; length++) {
        const int type = take_type(&at, end, why);
        if (type < 0)
            return type;
        if (type == RTSCOPE_FIELD_END)
            return at == end ? 0 : refuse(why, "a name ends before its end", "", LETTERS);
        if (length == RTSCOPE_FIELDS_MAX)
            return refuse(why, "it has more than 64 fields", "", "record it as two events");
        names[length] = take_text(&at, end);
        if (!names[length]) {
            *why = cut_off;
            return -1;
        }
        if (!is_identifier(names[length]))
            return refuse(why, "a field's name is no identifier: ", names[length], LETTERS);
        if (strlen(names[length]) > RTSCOPE_NAME_BYTES_MAX)
            return refuse(why, "a field's name has more than 255 bytes", "", "shorten it");
        for (unsigned other = 0; other < length; other++)
            if (strcmp(names[other], names[length]) == 0)
                return refuse(why, "two of its fields have the name ", names[length],
                              "rename one of them");
    }
}

int rtscope_description_check(struct rtscope_description *event, struct rtscope_refusal *why)
{
    const char *at = event->text + 1;
    const char *const end = event->text + event->text_bytes;
    event->provider = event->name = "";
    *why = cut_off;
    if (event->text_bytes < 2)
        return -1;
    const char *const provider = take_text(&at, end);
    const char *const name = take_text(&at, end);
    if (!name)
        return -1;
    event->provider = provider;
    event->left_out = event->is_site && *name == '0' ? (size_t)(name - event->text) : 0;
    event->name = name + (event->left_out > 0);
    const char *const wrong = !is_identifier(provider)      ? provider
                              : !is_identifier(event->name) ? event->name
                                                            : NULL;
    if (wrong)
        return refuse(why, "a name is no identifier: ", wrong, LETTERS);
    if (strlen(provider) > RTSCOPE_NAME_BYTES_MAX || strlen(event->name) > RTSCOPE_NAME_BYTES_MAX)
        return refuse(why, "a name has more than 255 bytes", "", "shorten it");
    return check_fields(at, end, why);
}

void rtscope_description_copy(char *at, const struct rtscope_description *event)
{
    const size_t front = event->left_out;
    const size_t behind = front + (front > 0);
    memcpy(at, event->text, front);
    memcpy(at + front, event->text + behind, event->text_bytes - behind);
}

/* `name` with underscores for what can be in no name, as one that recorders read. */
static size_t put_identifier(char *at, const char *name)
{
    size_t length = 0;
    for (; name[length] && length < RTSCOPE_NAME_BYTES_MAX; length++) {
        const char letter[2] = {name[length], '\0'};
        at[length] = is_identifier(letter) ? letter[0] : '_';
    }
    if (!length)
        at[length++] = '_';
    at[length] = '\0';
    return length + 1;
}

uint32_t rtscope_note(char note[RTSCOPE_DESK_BYTES], const char *provider, const char *name,
                      const struct rtscope_refusal *why)
{
    size_t used = put_identifier(note, provider);
    used += put_identifier(note + used, name);
    /* Each part is short enough for all of them to fit. */
    used += (size_t)sprintf(note + used, "%s %.255s:%.255s", why->what, provider, name) + 1;
    used += (size_t)sprintf(note + used, "%.255s%.255s", why->found, why->text) + 1;
    return (uint32_t)(used + (size_t)sprintf(note + used, "%.255s", why->fix) + 1);
}
