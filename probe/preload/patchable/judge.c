/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whether there is room for a call at a function's entry.
 *
 * A record of __patchable_function_entries is the address of a function's first nop. With
 * -fpatchable-function-entry=N,M the first M of them stand before the function, and an endbr64 may
 * stand before the others; neither N nor M is recorded. Where the function begins is told by the
 * table for unwinding (.eh_frame_hdr), which is in memory also of programs without symbols. A call
 * goes to the first nops that are run: behind the beginning, and behind an endbr64 that stands
 * there. So nothing can enter between its bytes.
 */
#define _GNU_SOURCE
#include "patchable.h"

#include <stdlib.h>
#include <string.h>

/* The encodings of .eh_frame_hdr that linkers use: a distance of 32 bits from the place itself
 * (DW_EH_PE_pcrel | sdata4), a count of 32 bits (udata4), distances from the table's beginning
 * (DW_EH_PE_datarel | sdata4). */
#define FRAME_POINTER 0x1b
#define COUNT 0x03
#define TABLE 0x3b
/* Its version and encodings, the pointer to .eh_frame, the count. */
#define TABLE_OFFSET 12u

static const struct patch_refusal no_table = {"it has no table of its functions (.eh_frame_hdr)",
                                              "link it with --eh-frame-hdr"};
static const struct patch_refusal no_room = {"no function of it has room for a call at its entry",
                                             "compile it with -fpatchable-function-entry=5"};
static const struct patch_refusal unknown = {
    "the entries of its functions are in no way that is known here", PATCH_INSTRUMENT};

/* The functions of an object, by rising address. */
struct functions {
    const unsigned char *base;
    /* Two distances each: of the function and of its description. */
    const int32_t (*pairs)[2];
    size_t length;
};

static int find_functions(const struct dl_phdr_info *info, struct functions *functions)
{
    for (unsigned place = 0; place < info->dlpi_phnum; place++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[place];
        const unsigned char *const base =
            (const unsigned char *)(info->dlpi_addr + part->p_vaddr);
        uint32_t length;
        if (part->p_type != PT_GNU_EH_FRAME || part->p_memsz < TABLE_OFFSET)
            continue;
        if (base[0] != 1 || base[1] != FRAME_POINTER || base[2] != COUNT || base[3] != TABLE)
            return 0;
        memcpy(&length, base + 8, sizeof length);
        if (length > (part->p_memsz - TABLE_OFFSET) / sizeof *functions->pairs)
            return 0;
        functions->base = base;
        functions->pairs = (const int32_t(*)[2])(const void *)(base + TABLE_OFFSET);
        functions->length = length;
        return 1;
    }
    return 0;
}

static const unsigned char *begin_of(const struct functions *functions, size_t index)
{
    return functions->base + functions->pairs[index][0];
}

/* The end of a function as its description says; its beginning where that cannot be read. */
static const unsigned char *end_of(const struct functions *functions, size_t index,
                                   const struct dl_phdr_info *info)
{
    const unsigned char *const begin = begin_of(functions, index);
    const unsigned char *const entry = functions->base + functions->pairs[index][1];
    int32_t distance;
    uint32_t bytes;
    if (!patch_holds(info, (uintptr_t)entry, 16, PF_R, 0))
        return begin;
    /* Behind its length and the distance to what descriptions have in common. */
    memcpy(&distance, entry + 8, sizeof distance);
    memcpy(&bytes, entry + 12, sizeof bytes);
    return entry + 8 + distance == begin ? begin + bytes : begin;
}

/* How many functions begin at `address` or before it. */
static size_t count_until(const struct functions *functions, const unsigned char *address)
{
    size_t low = 0, high = functions->length;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (begin_of(functions, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int is_endbr(const unsigned char *at, const unsigned char *end)
{
    return end - at >= (ptrdiff_t)PATCH_ENDBR_BYTES && memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0;
}

/* The length of the nop at `at`: 90, or 0f 1f with an operand that is not looked at, behind any
 * number of 66 and 2e; 0 where there is none. */
static size_t nop_bytes(const unsigned char *at, const unsigned char *end)
{
    const unsigned char *place = at;
    while (place < end && (*place == 0x66 || *place == 0x2e))
        place++;
    if (place < end && *place == 0x90)
        return (size_t)(place + 1 - at);
    if (end - place < 3 || place[0] != 0x0f || place[1] != 0x1f || (place[2] & 0x38) != 0)
        return 0;
    const unsigned mode = place[2] >> 6, register_or_memory = place[2] & 7;
    if (mode == 3)
        return (size_t)(place + 3 - at);
    const int has_index = register_or_memory == 4;
    if (has_index && end - place < 4)
        return 0;
    const int is_far = mode == 0 && (has_index ? (place[3] & 7) == 5 : register_or_memory == 5);
    const size_t distance_bytes = mode == 1 ? 1 : mode == 2 || is_far ? 4 : 0;
    const size_t bytes = 3 + (size_t)has_index + distance_bytes;
    return (size_t)(end - place) < bytes ? 0 : (size_t)(place - at) + bytes;
}

/* Whether there are nops and nothing else from `at` to `end`. */
static int all_nops(const unsigned char *at, const unsigned char *end)
{
    while (at < end) {
        const size_t bytes = nop_bytes(at, end);
        if (bytes == 0)
            return 0;
        at += bytes;
    }
    return at == end;
}

/*
 * Bytes of whole nops in which a call has room, or 0. gcc makes the room of nops of one byte, clang
 * of the longest that there are: a short nop that is not of one byte is all there is, and what
 * follows may be padding before the target of a jump.
 */
static size_t room_bytes(const unsigned char *at, const unsigned char *end)
{
    const size_t first = nop_bytes(at, end);
    if (first >= PATCH_CALL_BYTES)
        return first;
    for (size_t place = 0; place < PATCH_CALL_BYTES; place++)
        if (at + place >= end || at[place] != 0x90)
            return 0;
    return PATCH_CALL_BYTES;
}

/* The index of the function that a record is about; `functions->length` where there is none. */
static size_t function_of(const struct functions *functions, const unsigned char *record,
                          const struct dl_phdr_info *info)
{
    const size_t until = count_until(functions, record);
    if (until > 0) {
        const unsigned char *const begin = begin_of(functions, until - 1);
        const ptrdiff_t distance = record - begin;
        const unsigned char *const end = end_of(functions, until - 1, info);
        if (distance == 0 || (distance == (ptrdiff_t)PATCH_ENDBR_BYTES && end > record &&
                              is_endbr(begin, end)))
            return until - 1;
    }
    /* The first nops stand before the function. */
    if (until < functions->length) {
        const unsigned char *const begin = begin_of(functions, until);
        if (patch_holds(info, (uintptr_t)record, (size_t)(begin - record), PF_R | PF_X, PF_W) &&
            all_nops(record, begin))
            return until;
    }
    return functions->length;
}

static void judge_one(struct patch_object *object, const struct functions *functions,
                      const unsigned char *record)
{
    const struct dl_phdr_info *const info = object->info;
    const size_t index = function_of(functions, record, info);
    if (index == functions->length) {
        object->unknown++;
        return;
    }
    const unsigned char *const begin = begin_of(functions, index);
    const unsigned char *const end = end_of(functions, index, info);
    /* Code that cannot be read, or is written to, is not ours to judge. */
    if (end <= begin ||
        !patch_holds(info, (uintptr_t)begin, (size_t)(end - begin), PF_R | PF_X, PF_W)) {
        object->unknown++;
        return;
    }
    const int behind_endbr = is_endbr(begin, end);
    const unsigned char *const room = begin + (behind_endbr ? PATCH_ENDBR_BYTES : 0);
    const size_t bytes = room_bytes(room, end);
    if (bytes == 0) {
        object->too_short++;
        return;
    }
    struct patch_site *const site = &object->sites[object->sites_length++];
    site->room = (unsigned char *)(uintptr_t)room;
    site->room_bytes = (uint8_t)bytes;
    site->behind_endbr = (uint8_t)behind_endbr;
}

void patch_judge(struct patch_object *object)
{
    struct functions functions;
    if (!find_functions(object->info, &functions)) {
        object->refusal = &no_table;
        return;
    }
    object->sites = malloc(object->records_length * sizeof *object->sites);
    if (!object->sites) {
        object->refusal = &patch_no_memory;
        return;
    }
    for (size_t place = 0; place < object->records_length; place++)
        /* What the linker dropped may leave a zero behind. */
        if (object->records[place])
            judge_one(object, &functions, (const unsigned char *)object->records[place]);
    if (!object->sites_length && object->too_short + object->unknown)
        object->refusal = object->too_short ? &no_room : &unknown;
}
