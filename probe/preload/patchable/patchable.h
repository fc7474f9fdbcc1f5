/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Entries of functions that were compiled with -fpatchable-function-entry: found, judged, written.
 *
 *   start.c    when: before main, while there is one thread; tells what became of each object
 *   find.c     where: the sections __patchable_function_entries of what is loaded
 *   judge.c    whether: the room at an entry, of which nothing is believed that is not seen
 *   write.c    the calls, and the trampolines within their reach
 *   entered.c  what a call does
 */
#ifndef RTSCOPE_PRELOAD_PATCHABLE_H
#define RTSCOPE_PRELOAD_PATCHABLE_H

#include <link.h>
#include <rtscope/layout.h>
#include <stddef.h>
#include <stdint.h>

#define PATCH_HIDDEN __attribute__((visibility("hidden")))

/* What the compiler puts where an indirect branch may land (-fcf-protection). */
#define PATCH_ENDBR_BYTES 4u

/* A function whose entry has room. */
struct patch_site {
    /* The room, PATCH_CALL_BYTES or a little more: whole instructions. */
    unsigned char *room;
    uint8_t room_bytes;
    /* Whether an endbr64 stands before it, at the function's address. */
    uint8_t behind_endbr;
};

/* A call with a distance of 32 bits. */
#define PATCH_CALL_BYTES 5u

/* Why nothing of an object is recorded: what was found, and what fixes it. */
struct patch_refusal {
    const char *found;
    const char *fix;
};
PATCH_HIDDEN extern const struct patch_refusal patch_no_memory;
/* Where nothing of its own fixes it. */
#define PATCH_INSTRUMENT                                                                          \
    "compile it with -finstrument-functions and preload librtscope-functions.so"

/* A program or library that is loaded. */
struct patch_object {
    const struct dl_phdr_info *info;
    const char *path;
    /* The same file, to be opened: also where the path is no longer its own. */
    const char *file;
    /* What the linker collected in __patchable_function_entries: an address for each function. */
    uintptr_t *records;
    size_t records_length;
    struct patch_site *sites;
    size_t sites_length;
    /* Functions that are left alone: with less room than a call needs, and those at whose record
     * there is no entry that could be recognised. */
    uint32_t too_short;
    uint32_t unknown;
    /* Why none of its functions is recorded, or NULL. */
    const struct patch_refusal *refusal;
};

/* Whether `bytes` from `address` on lie in one part of the object that is loaded with all of
 * `flags` (PF_R, PF_X) and none of `without`. */
PATCH_HIDDEN int patch_holds(const struct dl_phdr_info *info, uintptr_t address, size_t bytes,
                             uint32_t flags, uint32_t without);

/* find.c: sets `records`, which the caller frees, or a refusal; without either the object has no
 * such functions. */
PATCH_HIDDEN void patch_find(struct patch_object *object);

/* judge.c: sets `sites`, which the caller frees, and counts the others; or sets a refusal. */
PATCH_HIDDEN void patch_judge(struct patch_object *object);

/* write.c: writes calls at all sites; or none, and sets a refusal. */
PATCH_HIDDEN void patch_write(struct patch_object *object);

/* entered.c: prepares; returns why it cannot be done on this machine, or NULL. */
PATCH_HIDDEN const struct patch_refusal *patch_prepare(void);
/* The switch of the event, valid from patch_prepare on. */
PATCH_HIDDEN extern const struct rtscope_switch *patch_switch;
/* Where in the stack the call into the library lies that this thread is in; 0: it is in none. What
 * is entered deeper in the stack is not recorded. */
PATCH_HIDDEN extern __thread uintptr_t patch_calling __attribute__((tls_model("initial-exec")));
/* Where trampolines go on while the event is on: behind the function's return address the caller's
 * rax is pushed, and rax says how far before that return address the function begins. */
PATCH_HIDDEN void patch_entered(void);

#endif
