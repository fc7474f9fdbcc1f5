/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rings that say nothing and whose process is gone. Who forks and then runs another program leaves
 * some each time: the child has rings of its own, and exec tells nobody. What anything was recorded
 * in, or lost, is the recorder's to remove.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* No more files than this are looked at; shared memory lists its newest first. */
#define FILES_MAX 16
/* Controls that are read at once. */
#define CONTROLS 4

/* Whether the rings behind `header` never had a record, nor lost one. */
static int say_nothing(int fd, const struct rtscope_header *header)
{
    struct rtscope_ring rings[CONTROLS];
    if (header->rings_length > RTSCOPE_CPUS_MAX || header->sets_length > RTSCOPE_SETS_MAX ||
        header->unregistered)
        return 0;
    const uint32_t length = header->sets_length * header->rings_length;
    for (uint32_t ring = 0; ring < length; ring += CONTROLS) {
        const uint32_t left = length - ring;
        const uint32_t count = left < CONTROLS ? left : CONTROLS;
        const uint64_t offset = header->controls_offset + ring * sizeof *rings;
        if (pread(fd, rings, count * sizeof *rings, (off_t)offset) !=
            (ssize_t)(count * sizeof *rings))
            return 0;
        for (uint32_t place = 0; place < count; place++) {
            if (rings[place].head)
                return 0;
            for (int cause = 0; cause < RTSCOPE_LOSSES; cause++)
                if (rings[place].lost[cause])
                    return 0;
        }
    }
    return 1;
}

static int is_useless(int fd)
{
    struct rtscope_header header;
    struct stat status;
    /* Complete first: before that its maker may not have locked it yet. */
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
           header.magic == RTSCOPE_MAGIC && header.version == RTSCOPE_LAYOUT_VERSION &&
           flock(fd, LOCK_EX | LOCK_NB) == 0 && say_nothing(fd, &header);
}

void rtscope_sweep(int folder)
{
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const list = own < 0 ? NULL : fdopendir(own);
    if (!list) {
        if (own >= 0)
            close(own);
        return;
    }
    const struct dirent *entry;
    for (int looked = 0; looked < FILES_MAX && (entry = readdir(list));) {
        if (strncmp(entry->d_name, "rings-", 6) != 0)
            continue;
        looked++;
        const int fd =
            openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (is_useless(fd))
            unlinkat(folder, entry->d_name, 0);
        close(fd);
    }
    closedir(list);
}
