/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How many addresses a process may have that locks all its memory. The kernel counts all of them
 * against the limit, also those without memory: large rings would make its mlockall fail. Whether
 * it calls that is seen from what it is linked with, before it runs.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <elf.h>
#include <link.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More bound places are not looked at: a program that large has no room in such a limit. */
#define BOUND_MAX (1u << 18)
/* What the program takes later: its heap, what it reads. */
#define SPARE_BYTES (UINT64_C(1) << 20)

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

static int is_mlockall(const struct dynamic *dynamic, const ElfW(Sym) *symbol)
{
    static const char name[] = "mlockall";
    return symbol->st_shndx == SHN_UNDEF && symbol->st_name < dynamic->texts_bytes &&
           dynamic->texts_bytes - symbol->st_name >= sizeof name &&
           memcmp(dynamic->texts + symbol->st_name, name, sizeof name) == 0;
}

static int binds_mlockall(const struct dynamic *dynamic, const struct bound *bound, uint32_t *left)
{
    const uint64_t length = bound->at ? bound->bytes / sizeof *bound->at : 0;
    for (uint64_t place = 0; place < length && *left; place++, (*left)--) {
        const uint64_t symbol = ELF64_R_SYM(bound->at[place].r_info);
        if (symbol && is_mlockall(dynamic, &dynamic->symbols[symbol]))
            return 1;
    }
    return 0;
}

/* What walks over the objects knows, and what is found. */
struct look {
    uint32_t left;
    /* Whether the program has a loader: else nobody sees what it calls. */
    int has_loader;
};

static int wants_mlockall(struct dl_phdr_info *info, size_t size, void *context)
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
        if (found.symbols && found.texts &&
            (binds_mlockall(&found, &found.bound[0], &look->left) ||
             binds_mlockall(&found, &found.bound[1], &look->left)))
            return 1;
    }
    return 0;
}

/* Whether something that is loaded calls mlockall, or may do so unseen; of a child what its parent
 * found. */
static struct {
    int calls;
    int unseen;
} seen = {1, 1};

static void look_for_calls(void)
{
    struct look look = {BOUND_MAX, 0};
    if (rtscope_forks_in_child())
        return;
    seen.calls = dl_iterate_phdr(wants_mlockall, &look);
    seen.unseen = !look.has_loader || look.left == 0;
}

int rtscope_minds_addresses(void)
{
    struct rlimit limit;
    look_for_calls();
    return seen.calls || seen.unseen || getrlimit(RLIMIT_AS, &limit) != 0 ||
           limit.rlim_cur != RLIM_INFINITY;
}

/* Whether the limit is none for this process. */
static int may_lock_anything(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    memset(sets, 0, sizeof sets);
    return syscall(SYS_capget, &header, sets) == 0 &&
           (sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK));
}

/* All addresses that the process has; 0 where nobody says. */
static uint64_t addresses_bytes(void)
{
    char text[64];
    if (rtscope_read_small("/proc/self/statm", text, sizeof text) <= 0)
        return 0;
    return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t rtscope_lockable_bytes(uint64_t enough, uint64_t leaving)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        may_lock_anything() || !seen.calls)
        return UINT64_MAX;
    const uint64_t used = addresses_bytes() - leaving + SPARE_BYTES;
    /* Without rings it could not lock itself either. */
    if (used >= limit.rlim_cur || limit.rlim_cur - used >= enough)
        return UINT64_MAX;
    return limit.rlim_cur - used;
}
