/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How much memory rings may take: of shared memory, of the machine, and of the control group that
 * the process is in, which ends one that takes more.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Of `stat`. */
#define BLOCK_BYTES 512u

/* A control group's files, in both versions of the interface. */
struct interface {
    /* Where its line in /proc/self/cgroup has this, */
    const char *mark;
    /* its folder is below this one. */
    const char *root;
    const char *most;
    const char *used;
    const char *given_back;
};
static const struct interface interfaces[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "\ntotal_inactive_file "},
};

/* The number behind `key` in a small file; UINT64_MAX where there is none. */
static uint64_t number_in(const char *folder, const char *file, const char *key)
{
    char path[RTSCOPE_PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (length < 0 || (size_t)length >= sizeof path ||
        rtscope_read_small(path, rtscope_desk, sizeof rtscope_desk) <= 0)
        return UINT64_MAX;
    const char *at = strstr(rtscope_desk, key);
    if (!at)
        return UINT64_MAX;
    at += strlen(key);
    at += strspn(at, " ");
    return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : UINT64_MAX;
}

/* What a group has left for whoever is in it. */
static uint64_t left_in(const char *folder, const struct interface *interface)
{
    const uint64_t most = number_in(folder, interface->most, "");
    if (most == UINT64_MAX)
        return UINT64_MAX;
    const uint64_t used = number_in(folder, interface->used, "");
    /* Pages of files go when others are needed. */
    const uint64_t files = number_in(folder, "memory.stat", interface->given_back);
    const uint64_t kept = files < used ? used - files : used;
    return kept < most ? most - kept : 0;
}

/* The least of a group and of those that it is in. */
static uint64_t left_from(char *folder, const struct interface *interface)
{
    const size_t root = strlen(interface->root);
    uint64_t least = UINT64_MAX;
    for (;;) {
        const uint64_t left = left_in(folder, interface);
        least = left < least ? left : least;
        char *const slash = strrchr(folder, '/');
        if ((size_t)(slash - folder) < root)
            return least;
        *slash = '\0';
    }
}

static uint64_t left_in_groups(void)
{
    uint64_t least = UINT64_MAX;
    for (size_t place = 0; place < sizeof interfaces / sizeof *interfaces; place++) {
        const struct interface *const interface = &interfaces[place];
        char folder[RTSCOPE_PATH_MAX];
        if (rtscope_read_small("/proc/self/cgroup", rtscope_desk, sizeof rtscope_desk) <= 0)
            break;
        const char *const line = strstr(rtscope_desk, interface->mark);
        if (!line)
            continue;
        const char *const path = line + strlen(interface->mark);
        const int length = snprintf(folder, sizeof folder, "%s%.*s", interface->root,
                                    (int)strcspn(path, "\n"), path);
        if (length < 0 || (size_t)length >= sizeof folder)
            continue;
        if (folder[length - 1] == '/')
            folder[length - 1] = '\0';
        const uint64_t left = left_from(folder, interface);
        least = left < least ? left : least;
    }
    return least;
}

uint64_t rtscope_memory_left(void)
{
    const uint64_t kib = number_in("/proc", "meminfo", "\nMemAvailable:");
    const uint64_t groups = left_in_groups();
    return kib < groups >> 10 ? kib << 10 : groups;
}

uint64_t rtscope_shared_left(int folder)
{
    struct statfs facts;
    return fstatfs(folder, &facts) == 0 ? (uint64_t)facts.f_bavail * (uint64_t)facts.f_bsize : 0;
}

/* Large rings get their memory right after they got their size: who looks meanwhile must see it. A
 * file of many names counts once. */
static uint64_t rings_bytes_of(const struct stat *status, const struct rtscope_sizes *sizes)
{
    const uint64_t file = (uint64_t)status->st_size;
    const uint64_t names = status->st_nlink ? (uint64_t)status->st_nlink : 1;
    const uint64_t rings = file > sizes->beside ? file - sizes->beside : 0;
    if (rings <= sizes->small)
        return (uint64_t)status->st_blocks * BLOCK_BYTES / names;
    return (rings < sizes->large ? rings : sizes->large) / names;
}

uint64_t rtscope_rings_bytes(int folder, const struct rtscope_sizes *sizes, uint64_t most)
{
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const list = own < 0 ? NULL : fdopendir(own);
    if (!list) {
        if (own >= 0)
            close(own);
        return 0;
    }
    const struct dirent *entry;
    uint64_t bytes = 0;
    while (bytes < most && (entry = readdir(list))) {
        struct stat status;
        if (strncmp(entry->d_name, "rings-", 6) == 0 &&
            fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += rings_bytes_of(&status, sizes);
    }
    closedir(list);
    return bytes;
}

uint64_t rtscope_left_of_user(int folder, uint64_t most)
{
    static const struct rtscope_sizes as_they_are = {0, UINT64_MAX, 0};
    const uint64_t taken = rtscope_rings_bytes(folder, &as_they_are, most);
    return taken < most ? most - taken : 0;
}
