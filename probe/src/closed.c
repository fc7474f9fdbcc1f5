/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Libraries that were closed, while others still record. What comes again to the same place has its
 * switches and descriptions again: programs that load and close a library all day need no more room
 * for it than for one.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct closed {
    struct closed *next;
    uint64_t switches_offset;
    uint64_t switches_bytes;
    uint64_t table_begin;
    uint64_t table_end;
};

static struct closed *all;

void rtscope_closed_add(const struct rtscope_object *object)
{
    struct closed *const closed = malloc(sizeof *closed);
    if (!closed)
        return;
    closed->switches_offset = object->switches_offset;
    closed->switches_bytes = object->switches_bytes;
    closed->table_begin = object->table_begin;
    closed->table_end = object->table_end;
    closed->next = all;
    all = closed;
}

void rtscope_closed_forget(void)
{
    /* A thread of the parent may be in the middle of it. */
    if (rtscope_forks_in_child())
        all = NULL;
    while (all) {
        struct closed *const next = all->next;
        free(all);
        all = next;
    }
}

/* The descriptions of a closed library, beside those of one that comes. */
struct comparing {
    const char *table;
    uint64_t place;
    uint64_t end;
    uint64_t switches_offset;
    int differ;
};

/* The next entry; NULL behind the last. */
static const char *next_entry(struct comparing *comparing, struct rtscope_entry *entry)
{
    while (comparing->place < comparing->end) {
        const char *const at = comparing->table + comparing->place;
        memcpy(entry, at, sizeof *entry);
        comparing->place += entry->entry_bytes;
        /* Notes are about what has no entry. */
        if (entry->kind != RTSCOPE_ENTRY_NOTE)
            return at + sizeof *entry;
    }
    return NULL;
}

static void compare_enumeration(const struct rtscope_enumeration_ *one,
                                struct comparing *comparing)
{
    struct rtscope_entry entry;
    const char *at = next_entry(comparing, &entry);
    comparing->differ |= !at || entry.kind != RTSCOPE_ENTRY_ENUMERATION ||
                         entry.text_bytes != rtscope_enumeration_bytes(one) ||
                         strcmp(at, one->name) != 0;
    if (comparing->differ)
        return;
    at += strlen(at) + 1;
    for (size_t place = 0; place < one->length && !comparing->differ; place++) {
        const struct rtscope_label_ *const label = &one->labels[place];
        comparing->differ = memcmp(at, &label->first, 8) != 0 ||
                            memcmp(at + 8, &label->last, 8) != 0 ||
                            strcmp(at + 16, label->text) != 0;
        at += 16 + strlen(at + 16) + 1;
    }
}

static void compare_site(const struct rtscope_site *site, void *context)
{
    struct comparing *const comparing = context;
    struct rtscope_description event = {site->text, site->text_bytes, 1, NULL, NULL, 0};
    struct rtscope_refusal why;
    struct rtscope_entry entry;
    if (comparing->differ || rtscope_description_check(&event, &why) != 0)
        return;
    const char *const at = next_entry(comparing, &entry);
    const size_t front = event.left_out, behind = front + (front > 0);
    comparing->differ =
        !at || entry.kind != RTSCOPE_ENTRY_EVENT ||
        entry.switch_offset != comparing->switches_offset + site->switch_offset ||
        entry.code_address != site->code_address ||
        entry.text_bytes != event.text_bytes - (front > 0) ||
        memcmp(at, event.text, front) != 0 ||
        memcmp(at + front, event.text + behind, event.text_bytes - behind) != 0;
}

static int is_same(const struct rtscope_file *file, const struct rtscope_object *object,
                   const struct closed *closed)
{
    const struct rtscope_sections_ *const sections = object->sections;
    struct comparing comparing = {(const char *)file->header + file->header->table_offset,
                                  closed->table_begin, closed->table_end,
                                  closed->switches_offset, 0};
    struct rtscope_entry entry;
    if (closed->switches_bytes != object->switches_bytes)
        return 0;
    for (const struct rtscope_enumeration_ *const *one = sections->enumerations_begin;
         one != sections->enumerations_end; one++)
        if (*one && !comparing.differ)
            compare_enumeration(*one, &comparing);
    if (!comparing.differ)
        rtscope_sections_each(sections, compare_site, &comparing);
    return !comparing.differ && !next_entry(&comparing, &entry);
}

int rtscope_closed_take(const struct rtscope_file *file, struct rtscope_object *object)
{
    struct closed **link = &all;
    while (*link && !is_same(file, object, *link))
        link = &(*link)->next;
    struct closed *const found = *link;
    if (!found)
        return 0;
    object->switches_offset = found->switches_offset;
    object->table_begin = found->table_begin;
    object->table_end = found->table_end;
    *link = found->next;
    free(found);
    return 1;
}
