/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls into the rooms, and the trampolines that they reach. No page can be written and run at the
 * same time, at no moment: a part of an object is made writable and no longer executable, then the
 * other way round. Nothing of it runs meanwhile: there is one thread, its signals are blocked, and
 * from one change to the next it makes no call, not even into the C library.
 */
#define _GNU_SOURCE
#include "patchable.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* How far a call may reach; a little less than 2 GiB, as distances count from its end. */
#define REACH_BYTES ((uintptr_t)0x7fff0000)
/* Free room is looked for so far apart. */
#define STEP_BYTES ((uintptr_t)65536)
/* Nothing is mapped below (vm.mmap_min_addr). */
#define ADDRESS_MIN ((uintptr_t)65536)

static const struct patch_refusal forbidden = {
    "the system forbids to change code",
    "allow it (MemoryDenyWriteExecute=no, SELinux's execmod), or " PATCH_INSTRUMENT};
static const struct patch_refusal out_of_reach = {"no free memory within reach of its code",
                                                  PATCH_INSTRUMENT};

/* Both trampolines of a page, and where they go on. */
struct trampolines {
    /* For functions that begin at their room, and for those that begin at an endbr64 before. */
    unsigned char plain[32];
    unsigned char behind_endbr[32];
    uintptr_t entered;
};

/* The last page with trampolines: objects near each other share it. */
static struct trampolines *last;

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/*
 * push %rax; movabs switch, %al; test %al, %al; jne 1f; pop %rax; ret
 * 1: mov $back, %eax; jmp *entered(%rip)
 *
 * A call and its return, as shadow stacks (-fcf-protection) want it, and no register is changed.
 * Who unwinds from these few instructions, as a profiler may, finds no way on; from where they lead
 * to there is one.
 */
static void make_trampoline(struct trampolines *page, unsigned char *at, uint32_t back)
{
    static const unsigned char look[] = {0x50, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0,
                                         0x84, 0xc0, 0x75, 0x02, 0x58, 0xc3};
    static const unsigned char go[] = {0xb8, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0};
    const uintptr_t state = (uintptr_t)&patch_switch->enabled;
    unsigned char *const end = at + sizeof look + sizeof go;
    const uint32_t distance = (uint32_t)((unsigned char *)&page->entered - end);
    memcpy(at, look, sizeof look);
    memcpy(at + 2, &state, sizeof state);
    memcpy(at + sizeof look, go, sizeof go);
    memcpy(at + sizeof look + 1, &back, sizeof back);
    memcpy(end - sizeof distance, &distance, sizeof distance);
}

static int reaches(uintptr_t page, uintptr_t begin, uintptr_t end)
{
    const uintptr_t page_end = page + sizeof(struct trampolines);
    const uintptr_t low = page < begin ? page : begin;
    const uintptr_t high = page_end > end ? page_end : end;
    return high - low <= REACH_BYTES;
}

/* A free page below the code: above a program is where its heap grows. */
static void *map_below(uintptr_t begin, uintptr_t end, uintptr_t page)
{
    uintptr_t at = (begin & ~(STEP_BYTES - 1));
    while (at >= ADDRESS_MIN + STEP_BYTES && reaches(at -= STEP_BYTES, begin, end)) {
        void *const map = mmap((void *)at, page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (map == (void *)at)
            return map;
        /* Before Linux 4.17 the address is a wish. */
        if (map != MAP_FAILED)
            munmap(map, page);
    }
    return NULL;
}

/* Trampolines within reach of all that lies from `begin` to `end`. */
static struct trampolines *trampolines_for(uintptr_t begin, uintptr_t end,
                                            const struct patch_refusal **refusal)
{
    const uintptr_t page = page_bytes();
    if (last && reaches((uintptr_t)last, begin, end))
        return last;
    struct trampolines *const made = map_below(begin, end, page);
    if (!made) {
        *refusal = &out_of_reach;
        return NULL;
    }
    made->entered = (uintptr_t)patch_entered;
    make_trampoline(made, made->plain, PATCH_CALL_BYTES);
    make_trampoline(made, made->behind_endbr, PATCH_CALL_BYTES + PATCH_ENDBR_BYTES);
    if (mprotect(made, page, PROT_READ | PROT_EXEC) != 0) {
        munmap(made, page);
        *refusal = &forbidden;
        return NULL;
    }
    last = made;
    return made;
}

/* Whether a page of the file may be run again after it was written to: some systems forbid it, and
 * code of which that turns out too late would be lost. */
static int may_rewrite(const char *file)
{
    const uintptr_t page = page_bytes();
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    void *const map = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return 0;
    int may = 0;
    if (mprotect(map, page, PROT_READ | PROT_WRITE) == 0) {
        volatile unsigned char *const byte = map;
        *byte = *byte;
        may = mprotect(map, page, PROT_READ | PROT_EXEC) == 0;
    }
    munmap(map, page);
    return may;
}

/* Not the C library's, which a program may replace by a function of its own. */
static inline __attribute__((always_inline)) long protect(uintptr_t begin, uintptr_t bytes,
                                                          long flags)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_mprotect), "D"(begin), "S"(bytes), "d"(flags)
                     : "rcx", "r11", "memory");
    return result;
}

/* Makes no call: what it needs is inlined. */
static inline __attribute__((always_inline)) void write_call(const struct patch_site *site,
                                                             const struct trampolines *page)
{
    volatile unsigned char *const room = site->room;
    const unsigned char *const to = site->behind_endbr ? page->behind_endbr : page->plain;
    const uint32_t distance = (uint32_t)(to - (site->room + PATCH_CALL_BYTES));
    room[0] = 0xe8;
    for (unsigned place = 0; place < sizeof distance; place++)
        room[1 + place] = (unsigned char)(distance >> 8 * place);
    for (unsigned place = PATCH_CALL_BYTES; place < site->room_bytes; place++)
        room[place] = 0x90;
}

/* All calls of one part of the object. The whole part changes, so that no limit on the number of
 * mappings can come between. */
static int write_part(const struct patch_object *object, uintptr_t begin, uintptr_t end,
                      long flags, const struct trampolines *page)
{
    const uintptr_t mask = page_bytes() - 1;
    const uintptr_t first = begin & ~mask, bytes = ((end + mask) & ~mask) - first;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const long result = protect(first, bytes, PROT_READ | PROT_WRITE);
    if (result == 0) {
        for (size_t place = 0; place < object->sites_length; place++) {
            const uintptr_t at = (uintptr_t)object->sites[place].room;
            if (at >= begin && at < end)
                write_call(&object->sites[place], page);
        }
        /* Tried before (may_rewrite); there is no way on without this code. */
        if (protect(first, bytes, flags) != 0)
            __builtin_trap();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result == 0;
}

void patch_write(struct patch_object *object)
{
    const struct dl_phdr_info *const info = object->info;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    for (size_t place = 0; place < object->sites_length; place++) {
        const uintptr_t at = (uintptr_t)object->sites[place].room;
        begin = at < begin ? at : begin;
        end = at + PATCH_CALL_BYTES > end ? at + PATCH_CALL_BYTES : end;
    }
    if (!may_rewrite(object->file)) {
        object->refusal = &forbidden;
        return;
    }
    const struct trampolines *const page = trampolines_for(begin, end, &object->refusal);
    for (unsigned place = 0; page && place < info->dlpi_phnum; place++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[place];
        const uintptr_t part_begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || part->p_flags & PF_W)
            continue;
        const long flags = (part->p_flags & PF_R ? PROT_READ : 0) | PROT_EXEC;
        if (!write_part(object, part_begin, part_begin + part->p_memsz, flags, page)) {
            object->refusal = &forbidden;
            return;
        }
    }
}
