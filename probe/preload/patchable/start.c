/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Preloaded, records the entry of every function of a program, and of the libraries that are loaded
 * with it, that was compiled with room there (-fpatchable-function-entry=5 or more):
 * rtscope_patchable:func_entry. Not under LTTng's name for entries: who knows that one waits for
 * the exits, which are not seen. rtscope_patchable:object tells what was found in whom.
 */
#define _GNU_SOURCE
#include "patchable.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <rtscope/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

static void tell(const struct patch_object *object)
{
    RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_INFO, rtscope_patchable, object, text("path", object->path),
                        u64("functions", object->sites_length), u32("too_short", object->too_short),
                        u32("unknown", object->unknown),
                        text("reason", object->refusal ? object->refusal->found : ""));
}

/* For recorders, whenever they come: why there are no entries of an object. */
static void note(const struct patch_object *object)
{
    static const char event[] = "rtscope_patchable\0func_entry";
    static const char what[] = "no function entries of ";
    const char *const found = object->refusal->found, *const fix = object->refusal->fix;
    const size_t bytes = sizeof event + sizeof what + strlen(object->path) + strlen(found) + 1 +
                         strlen(fix) + 1;
    /* The library's from then on. */
    struct rtscope_late *const entry = calloc(1, sizeof *entry);
    char *const text = malloc(bytes);
    if (!entry || !text) {
        free(entry);
        free(text);
        return;
    }
    memcpy(text, event, sizeof event);
    char *at = stpcpy(stpcpy(text + sizeof event, what), object->path) + 1;
    at = stpcpy(at, found) + 1;
    at = stpcpy(at, fix) + 1;
    entry->text = text;
    entry->text_bytes = (uint32_t)(at - text);
    entry->kind = RTSCOPE_ENTRY_NOTE;
    rtscope_add(entry);
}

#ifdef __x86_64__

static const struct patch_refusal not_alone = {
    "other threads run already, which may be in its code",
    "start threads behind the beginning of main, or " PATCH_INSTRUMENT};

static const struct patch_refusal unknown_threads = {
    "whether other threads run is not known: there is no /proc/self/task", "mount /proc"};

/* What speaks against this being the only thread. */
static const struct patch_refusal *other_threads(void)
{
    DIR *const tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    size_t found = 0;
    if (!tasks)
        return &unknown_threads;
    while ((entry = readdir(tasks)))
        found += entry->d_name[0] != '.';
    closedir(tasks);
    return found == 1 ? NULL : &not_alone;
}

/* What records an entry, and what that calls: the record of its entries would never end. */
static int records(const struct dl_phdr_info *info)
{
    const uintptr_t own[] = {
        (uintptr_t)patch_entered,
        (uintptr_t)rtscope_write_,
        getauxval(AT_BASE),
#ifdef __GLIBC__
        (uintptr_t)gnu_get_libc_version,
#endif
    };
    for (size_t place = 0; place < sizeof own / sizeof *own; place++)
        if (patch_holds(info, own[place], 1, 0, 0))
            return 1;
    return 0;
}

/* Whether RTSCOPE_PATCHABLE, a list of patterns, names the file; all are meant without it. */
static int is_wanted(const char *path)
{
    const char *list = secure_getenv("RTSCOPE_PATCHABLE");
    const char *const slash = strrchr(path, '/');
    char pattern[256];
    if (!list)
        return 1;
    for (; *list; list += *list == ',') {
        const size_t length = strcspn(list, ",");
        if (length < sizeof pattern) {
            memcpy(pattern, list, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, slash ? slash + 1 : path, 0) == 0)
                return 1;
        }
        list += length;
    }
    return 0;
}

/* What holds for all objects of the process. */
struct process {
    const struct patch_refusal *refusal;
    char program[PATH_MAX];
};

static int each(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct process *const process = context;
    struct patch_object object;
    (void)size;
    memset(&object, 0, sizeof object);
    object.info = info;
    /* The program itself has no name here, and what is no file (the vDSO) has no folder. */
    const int is_program = !info->dlpi_name || !*info->dlpi_name;
    object.path = is_program ? process->program : info->dlpi_name;
    object.file = is_program ? "/proc/self/exe" : info->dlpi_name;
    if (!strchr(object.path, '/') || !is_wanted(object.path) || (!is_program && records(info)))
        return 0;
    patch_find(&object);
    if (object.records && process->refusal)
        object.refusal = process->refusal;
    if (object.records && !object.refusal)
        patch_judge(&object);
    if (object.sites_length)
        patch_write(&object);
    if (object.refusal) {
        object.sites_length = 0;
        note(&object);
    }
    if (object.records || object.refusal) {
        patch_calling = (uintptr_t)__builtin_frame_address(0);
        tell(&object);
        patch_calling = 0;
    }
    free(object.sites);
    free(object.records);
    return 0;
}

static __attribute__((constructor(102))) void start(void)
{
    struct process process = {patch_prepare(), ""};
    if (secure_getenv("RTSCOPE_DISABLE"))
        return;
    if (!process.refusal)
        process.refusal = other_threads();
    const ssize_t length = readlink("/proc/self/exe", process.program, sizeof process.program - 1);
    process.program[length > 0 ? length : 0] = '\0';
    dl_iterate_phdr(each, &process);
}

#else

/* The event, which never comes: for a recorder that wants it the rings stay, with the note. */
static __attribute__((used)) void never(void)
{
    RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_DEBUG_FUNCTION, rtscope_patchable, func_entry,
                        x64("addr", 0), x64("call_site", 0));
}

static __attribute__((constructor(102))) void start(void)
{
    static const struct patch_refusal machine = {"done on x86-64 alone", PATCH_INSTRUMENT};
    const struct patch_object all = {.path = "any program", .refusal = &machine};
    note(&all);
    tell(&all);
}

#endif
