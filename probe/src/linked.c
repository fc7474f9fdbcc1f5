/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a process may do later, seen from the functions that its program and libraries are linked
 * with, before they run: lock all its memory, or forbid itself system calls.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* More bound places are not looked at: what so large a program calls is not known. */
#define BOUND_MAX (1u << 18)

/* What a call means. */
struct call {
    unsigned what;
    const char *name;
    size_t name_bytes;
};
#define CALL(what, name) {what, name, sizeof name}
static const struct call calls[] = {
    CALL(RTSCOPE_CALLS_MLOCKALL, "mlockall"),
    /* Who may forbid itself calls promises first to get no more rights. */
    CALL(RTSCOPE_CALLS_SECCOMP, "prctl"),
    CALL(RTSCOPE_CALLS_SECCOMP, "seccomp_load"),
};

/* Places that the loader binds to symbols. */
struct bound {
    const ElfW(Rela) *at;
    uint64_t bytes;
};
/* What the linker left about a program or library. */
struct dynamic {
    const ElfW(Sym) *symbols;
    const char *texts;
    uint64_t texts_bytes;
    /* Functions; all others. */
    struct bound bound[2];
};

/* What a walk over the objects finds. */
struct look {
    unsigned found;
    uint32_t left;
    /* Whether the program has a loader: else nobody sees what it calls. */
    int has_loader;
};

/* What was found, and how many objects had ever been loaded then; all that there may be before
 * anybody looked. */
static struct {
    unsigned calls;
    unsigned long long adds;
    /* Whether it is what the parent of this child found. */
    int is_of_parent;
} seen = {RTSCOPE_CALLS_MLOCKALL | RTSCOPE_CALLS_SECCOMP | RTSCOPE_CALLS_UNSEEN, 0, 0};

/* Where something of an object is: loaders put addresses into its table, or leave offsets. NULL
 * where that is in no part of it. */
static const void *place_of(const struct dl_phdr_info *info, ElfW(Addr) at)
{
    const uintptr_t place = at < info->dlpi_addr ? at + info->dlpi_addr : at;
    for (unsigned part = 0; part < info->dlpi_phnum; part++) {
        const ElfW(Phdr) *const one = &info->dlpi_phdr[part];
        if (one->p_type == PT_LOAD && place - info->dlpi_addr - one->p_vaddr < one->p_memsz)
            return (const void *)place;
    }
    return NULL;
}

static struct dynamic dynamic_of(const struct dl_phdr_info *info, const ElfW(Dyn) *at)
{
    struct dynamic found;
    memset(&found, 0, sizeof found);
    for (; at->d_tag != DT_NULL; at++) {
        if (at->d_tag == DT_SYMTAB)
            found.symbols = place_of(info, at->d_un.d_ptr);
        else if (at->d_tag == DT_STRTAB)
            found.texts = place_of(info, at->d_un.d_ptr);
        else if (at->d_tag == DT_STRSZ)
            found.texts_bytes = at->d_un.d_val;
        else if (at->d_tag == DT_JMPREL)
            found.bound[0].at = place_of(info, at->d_un.d_ptr);
        else if (at->d_tag == DT_PLTRELSZ)
            found.bound[0].bytes = at->d_un.d_val;
        else if (at->d_tag == DT_RELA)
            found.bound[1].at = place_of(info, at->d_un.d_ptr);
        else if (at->d_tag == DT_RELASZ)
            found.bound[1].bytes = at->d_un.d_val;
    }
    return found;
}

static unsigned meaning(const struct dynamic *dynamic, const ElfW(Sym) *symbol)
{
    if (symbol->st_shndx != SHN_UNDEF || symbol->st_name >= dynamic->texts_bytes)
        return 0;
    const char *const name = dynamic->texts + symbol->st_name;
    const uint64_t most = dynamic->texts_bytes - symbol->st_name;
    for (size_t place = 0; place < sizeof calls / sizeof *calls; place++) {
        const struct call *const call = &calls[place];
        if (*name == *call->name && call->name_bytes <= most &&
            memcmp(name, call->name, call->name_bytes) == 0)
            return call->what;
    }
    return 0;
}

static void look_at(struct look *look, const struct dynamic *dynamic, const struct bound *bound)
{
    const uint64_t length = bound->at ? bound->bytes / sizeof *bound->at : 0;
    for (uint64_t place = 0; place < length && look->left; place++, look->left--) {
        const uint64_t symbol = ELF64_R_SYM(bound->at[place].r_info);
        if (symbol)
            look->found |= meaning(dynamic, &dynamic->symbols[symbol]);
    }
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct look *const look = context;
    (void)size;
    for (unsigned part = 0; part < info->dlpi_phnum; part++) {
        const ElfW(Phdr) *const one = &info->dlpi_phdr[part];
        look->has_loader |= one->p_type == PT_INTERP;
        if (one->p_type != PT_DYNAMIC)
            continue;
        const struct dynamic found =
            dynamic_of(info, (const ElfW(Dyn) *)(info->dlpi_addr + one->p_vaddr));
        if (!found.symbols || !found.texts)
            continue;
        look_at(look, &found, &found.bound[0]);
        look_at(look, &found, &found.bound[1]);
    }
    return 0;
}

/* How many objects were ever loaded; the first says it. */
static int read_adds(struct dl_phdr_info *info, size_t size, void *context)
{
    const size_t enough = offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds;
    if (size >= enough)
        *(unsigned long long *)context = info->dlpi_adds;
    return 1;
}

static unsigned long long adds(void)
{
    unsigned long long count = 0;
    dl_iterate_phdr(read_adds, &count);
    return count;
}

unsigned rtscope_calls(void)
{
    struct look look = {0, BOUND_MAX, 0};
    if (rtscope_forks_in_child()) {
        seen.is_of_parent = 1;
        return seen.calls;
    }
    seen.adds = adds();
    dl_iterate_phdr(look_at_object, &look);
    if (!look.has_loader || look.left == 0)
        look.found |= RTSCOPE_CALLS_UNSEEN;
    seen.calls = look.found;
    return seen.calls;
}

unsigned rtscope_calls_known(void)
{
    return seen.calls;
}

int rtscope_may_be_confined(void)
{
    static const unsigned may = RTSCOPE_CALLS_SECCOMP | RTSCOPE_CALLS_UNSEEN;
    /* A thread of the parent may have had the lock of the list of what is loaded. */
    if (!(seen.calls & may) && !seen.is_of_parent && adds() != seen.adds)
        rtscope_calls();
    return (seen.calls & may) != 0;
}
