/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The map of the process: which programs and libraries lie where, and their build ids, so that
 * addresses have names even when the process is gone. */
#define _GNU_SOURCE
#include "internal.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A build id is 20 bytes long, or less. */
#define BUILD_ID_MAX 64u

struct found {
    struct rtscope_loaded entry;
    const unsigned char *build_id;
    const char *path;
};

struct noting {
    const struct rtscope_file *file;
    uint64_t used;
    uint64_t now_ns;
};

/* The build id in the notes of a loaded object. */
static void find_build_id(struct found *found, const char *at, const char *end)
{
    while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *const note = (const ElfW(Nhdr) *)(const void *)at;
        const size_t name_bytes = ((size_t)note->n_namesz + 3) & ~(size_t)3;
        const size_t text_bytes = ((size_t)note->n_descsz + 3) & ~(size_t)3;
        at += sizeof *note;
        if (name_bytes + text_bytes > (size_t)(end - at))
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(at, "GNU", 4) == 0 &&
            note->n_descsz <= BUILD_ID_MAX) {
            found->build_id = (const unsigned char *)at + name_bytes;
            found->entry.build_id_bytes = (uint16_t)note->n_descsz;
            return;
        }
        at += name_bytes + text_bytes;
    }
}

static int is_same(const struct found *found, const struct rtscope_loaded *known, const char *at)
{
    const struct rtscope_loaded *const loaded = &found->entry;
    const size_t id_bytes = loaded->build_id_bytes;
    return known->begin == loaded->begin && known->bytes == loaded->bytes &&
           known->build_id_bytes == id_bytes && known->path_bytes == loaded->path_bytes &&
           (!id_bytes || memcmp(at, found->build_id, id_bytes) == 0) &&
           memcmp(at + id_bytes, found->path, loaded->path_bytes) == 0;
}

/* Whether the last that was noted of its addresses is this object. */
static int is_known(const struct noting *noting, const struct found *found)
{
    const struct rtscope_header *const header = noting->file->header;
    const char *const area = (const char *)header + header->objects_offset;
    const struct rtscope_loaded *const loaded = &found->entry;
    int same = 0;
    for (uint64_t place = 0; place < noting->used;) {
        struct rtscope_loaded known;
        memcpy(&known, area + place, sizeof known);
        if (known.begin < loaded->begin + loaded->bytes &&
            loaded->begin < known.begin + known.bytes)
            same = is_same(found, &known, area + place + sizeof known);
        place += known.entry_bytes;
    }
    return same;
}

static void append(struct noting *noting, struct found *found)
{
    const struct rtscope_header *const header = noting->file->header;
    struct rtscope_loaded *const entry = &found->entry;
    const size_t path_bytes = entry->path_bytes;
    const uint64_t bytes =
        (sizeof *entry + entry->build_id_bytes + path_bytes + 7) & ~(uint64_t)7;
    const uint64_t offset = header->objects_offset + noting->used;
    if (bytes > header->objects_bytes - noting->used ||
        rtscope_file_populate(noting->file, offset, bytes) != 0)
        return;
    entry->entry_bytes = (uint32_t)bytes;
    entry->noticed_ns = noting->now_ns;
    char *const at = (char *)noting->file->header + offset;
    memcpy(at, entry, sizeof *entry);
    if (entry->build_id_bytes)
        memcpy(at + sizeof *entry, found->build_id, entry->build_id_bytes);
    memcpy(at + sizeof *entry + entry->build_id_bytes, found->path, path_bytes);
    noting->used += bytes;
}

static int note(struct dl_phdr_info *info, size_t size, void *context)
{
    struct noting *const noting = context;
    struct found found;
    uint64_t begin = UINT64_MAX, end = 0;
    (void)size;
    memset(&found, 0, sizeof found);
    for (unsigned place = 0; place < info->dlpi_phnum; place++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[place];
        const char *const at = (const char *)(uintptr_t)(info->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_NOTE && !found.build_id)
            find_build_id(&found, at, at + part->p_memsz);
        if (part->p_type != PT_LOAD)
            continue;
        begin = begin < part->p_vaddr ? begin : part->p_vaddr;
        end = end > part->p_vaddr + part->p_memsz ? end : part->p_vaddr + part->p_memsz;
    }
    if (end <= begin)
        return 0;
    found.entry.begin = info->dlpi_addr + begin;
    found.entry.bytes = end - begin;
    found.entry.bias = info->dlpi_addr;
    found.path = info->dlpi_name;
    if (!found.path || !*found.path) {
        /* The program itself has no name here. */
        const ssize_t length =
            readlink("/proc/self/exe", rtscope_desk, sizeof rtscope_desk - 1);
        rtscope_desk[length > 0 ? length : 0] = '\0';
        found.path = rtscope_desk;
    }
    found.entry.path_bytes = (uint16_t)strnlen(found.path, PATH_MAX);
    if (!is_known(noting, &found))
        append(noting, &found);
    return 0;
}

void rtscope_objects_note(const struct rtscope_file *file)
{
    struct noting noting = {file, file->header->objects_used, rtscope_monotonic_ns()};
    dl_iterate_phdr(note, &noting);
    __atomic_store_n(&file->header->objects_used, noting.used, __ATOMIC_RELEASE);
}

void rtscope_objects_inherit(const struct rtscope_file *file, const struct rtscope_file *parent)
{
    struct rtscope_header *const header = file->header;
    const char *const known = (const char *)parent->header + parent->header->objects_offset;
    const uint64_t used = __atomic_load_n(&parent->header->objects_used, __ATOMIC_ACQUIRE);
    /* The parent may have more since, in pages that are closed in this process. */
    if (used > header->objects_bytes ||
        rtscope_file_populate(parent, parent->header->objects_offset, used) != 0 ||
        rtscope_file_populate(file, header->objects_offset, used) != 0)
        return;
    memcpy((char *)header + header->objects_offset, known, used);
    __atomic_store_n(&header->objects_used, used, __ATOMIC_RELEASE);
}
