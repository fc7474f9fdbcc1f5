/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The table of a process's file: an entry for each event, each enumeration, and each reason why an
 * event is missing. What is appended is known to recorders once register.c publishes it.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>

char *rtscope_table_append(struct rtscope_table *table, uint32_t text_bytes,
                           const struct rtscope_facts *facts, uint64_t *used)
{
    struct rtscope_header *const header = table->file->header;
    struct rtscope_entry entry;
    const int is_event = facts->kind == RTSCOPE_ENTRY_EVENT;
    table->has_notes |= facts->kind == RTSCOPE_ENTRY_NOTE;
    const uint64_t bytes = (sizeof entry + text_bytes + 7) & ~UINT64_C(7);
    if (bytes > header->table_bytes - *used || (is_event && table->next_id > UINT16_MAX) ||
        rtscope_file_populate(table->file, header->table_offset + *used, bytes) != 0) {
        header->unregistered += is_event;
        return NULL;
    }
    memset(&entry, 0, sizeof entry);
    entry.entry_bytes = (uint32_t)bytes;
    entry.text_bytes = text_bytes;
    entry.kind = facts->kind;
    entry.switch_offset = facts->switch_offset;
    entry.code_address = facts->code_address;
    if (is_event) {
        struct rtscope_switch *const shared =
            (struct rtscope_switch *)(void *)((char *)header + facts->switch_offset);
        entry.id = table->next_id++;
        shared->id = (uint16_t)entry.id;
    }
    char *const at = (char *)header + header->table_offset + *used;
    memcpy(at, &entry, sizeof entry);
    *used += bytes;
    return at + sizeof entry;
}

size_t rtscope_enumeration_bytes(const struct rtscope_enumeration_ *enumeration)
{
    size_t bytes = strlen(enumeration->name) + 1;
    for (size_t place = 0; place < enumeration->length; place++)
        bytes += 16 + strlen(enumeration->labels[place].text) + 1;
    return bytes;
}

void rtscope_table_enumeration(struct rtscope_table *table,
                               const struct rtscope_enumeration_ *enumeration, uint64_t *used)
{
    const struct rtscope_facts facts = {RTSCOPE_ENTRY_ENUMERATION, 0, 0};
    const size_t bytes = rtscope_enumeration_bytes(enumeration);
    if (bytes > UINT32_MAX)
        return;
    char *at = rtscope_table_append(table, (uint32_t)bytes, &facts, used);
    if (!at)
        return;
    at = stpcpy(at, enumeration->name) + 1;
    for (size_t place = 0; place < enumeration->length; place++) {
        const struct rtscope_label_ *const label = &enumeration->labels[place];
        memcpy(at, &label->first, 8);
        memcpy(at + 8, &label->last, 8);
        at = stpcpy(at + 16, label->text) + 1;
    }
}

void rtscope_table_note(struct rtscope_table *table, const char *provider, const char *name,
                        const struct rtscope_refusal *why, uint64_t *used)
{
    static const struct rtscope_facts facts = {RTSCOPE_ENTRY_NOTE, 0, 0};
    const uint32_t bytes = rtscope_note(rtscope_desk, provider, name, why);
    char *const at = rtscope_table_append(table, bytes, &facts, used);
    if (at)
        memcpy(at, rtscope_desk, bytes);
}

int rtscope_table_event(struct rtscope_table *table, struct rtscope_description *event,
                        const struct rtscope_facts *facts, uint64_t *used)
{
    struct rtscope_refusal why;
    if (rtscope_description_check(event, &why) != 0) {
        rtscope_table_note(table, event->provider, event->name, &why, used);
        return 0;
    }
    char *const at = rtscope_table_append(
        table, (uint32_t)(event->text_bytes - (event->left_out > 0)), facts, used);
    if (at)
        rtscope_description_copy(at, event);
    return at != NULL;
}

void rtscope_table_missing_rings(struct rtscope_table *table,
                                 const struct rtscope_description *event, uint64_t *used)
{
    struct rtscope_refusal why = {
        "some CPUs have no ring for", "their memory was refused: ",
        strerror(table->file->missing_rings),
        "make room in its directory, or set RTSCOPE_RING_SIZE=64K; start it again"};
    table->file->missing_rings = 0;
    rtscope_table_note(table, event->provider, event->name, &why, used);
}
