/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where the linker collected the entries: the section's place is known from the object's file
 * alone, its contents, with which relocation is done, from memory.
 */
#define _GNU_SOURCE
#include "patchable.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTION "__patchable_function_entries"
/* Longer names of sections than this no linked object has. */
#define NAMES_BYTES_MAX (16u << 20)

int patch_holds(const struct dl_phdr_info *info, uintptr_t address, size_t bytes, uint32_t flags,
                uint32_t without)
{
    for (unsigned place = 0; place < info->dlpi_phnum; place++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[place];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & flags) == flags &&
            !(part->p_flags & without) && address >= begin && bytes <= part->p_memsz &&
            address - begin <= part->p_memsz - bytes)
            return 1;
    }
    return 0;
}

static const struct patch_refusal unreadable = {
    "its file cannot be read", "leave it readable where it was when the program started"};
static const struct patch_refusal replaced = {"its file is no longer the one that was loaded",
                                              "start the program again"};
const struct patch_refusal patch_no_memory = {"no memory", "raise its 'ulimit -v'"};
static const struct patch_refusal not_loaded = {"its section " SECTION " is not loaded",
                                                PATCH_INSTRUMENT};

/* A part of the file in memory of its own, or NULL. */
static void *read_part(int fd, uint64_t offset, size_t bytes)
{
    char *const part = malloc(bytes);
    if (part && pread(fd, part, bytes, (off_t)offset) == (ssize_t)bytes)
        return part;
    free(part);
    return NULL;
}

/* Whether the file has the program headers of what is loaded: it may have been replaced. */
static int is_loaded(const struct patch_object *object, int fd, const ElfW(Ehdr) *header)
{
    const size_t bytes = object->info->dlpi_phnum * sizeof(ElfW(Phdr));
    if (header->e_phnum != object->info->dlpi_phnum || header->e_phentsize != sizeof(ElfW(Phdr)))
        return 0;
    void *const parts = read_part(fd, header->e_phoff, bytes);
    const int same = parts && memcmp(parts, object->info->dlpi_phdr, bytes) == 0;
    free(parts);
    return same;
}

static int is_named(const ElfW(Shdr) *section, const char *names, size_t names_bytes)
{
    return section->sh_name < names_bytes && names_bytes - section->sh_name >= sizeof SECTION &&
           memcmp(names + section->sh_name, SECTION, sizeof SECTION) == 0;
}

/* Adds a section's records; a linker may make several, of functions that may be dropped. */
static void use(struct patch_object *object, const ElfW(Shdr) *section)
{
    const uintptr_t begin = object->info->dlpi_addr + section->sh_addr;
    if (!patch_holds(object->info, begin, section->sh_size, PF_R, 0)) {
        object->refusal = &not_loaded;
        return;
    }
    const size_t length = section->sh_size / sizeof(uintptr_t);
    uintptr_t *const records =
        realloc(object->records, (object->records_length + length) * sizeof *records);
    if (!records) {
        object->refusal = &patch_no_memory;
        return;
    }
    memcpy(records + object->records_length, (const void *)begin, length * sizeof *records);
    object->records = records;
    object->records_length += length;
}

static void find_section(struct patch_object *object, int fd, const ElfW(Ehdr) *header)
{
    if (header->e_shnum == 0 || header->e_shstrndx >= header->e_shnum ||
        header->e_shentsize != sizeof(ElfW(Shdr)))
        return;
    ElfW(Shdr) *const sections =
        read_part(fd, header->e_shoff, header->e_shnum * sizeof(ElfW(Shdr)));
    const size_t names_bytes = sections ? sections[header->e_shstrndx].sh_size : 0;
    char *const names = names_bytes && names_bytes <= NAMES_BYTES_MAX
                            ? read_part(fd, sections[header->e_shstrndx].sh_offset, names_bytes)
                            : NULL;
    if (!names)
        object->refusal = &unreadable;
    for (unsigned place = 0; names && place < header->e_shnum; place++)
        if (is_named(&sections[place], names, names_bytes) && sections[place].sh_size)
            use(object, &sections[place]);
    free(names);
    free(sections);
}

void patch_find(struct patch_object *object)
{
    ElfW(Ehdr) header;
    const int fd = open(object->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
        object->refusal = &unreadable;
    else if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || !is_loaded(object, fd, &header))
        object->refusal = &replaced;
    else
        find_section(object, fd, &header);
    if (fd >= 0)
        close(fd);
}
