/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rings that get their size while the process runs: nobody needed them when it started. Their
 * addresses are there from the start, as nothing of the probe runs later that could map any, and
 * the file ends before them: so they take no memory, also where all of the process's is locked.
 *
 * A recorder makes the file longer, gives them memory, and stores their size in the header, or the
 * process does where a library with wanted events comes. The recording path never goes by what
 * stands there: the first event that finds no size takes it over into the process's own memory,
 * where it is a size that fits into the addresses, and from then on it stays.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct {
    struct rtscope_header *header;
    /* For each ring; 0 where the size is no question. */
    uint64_t room_bytes[RTSCOPE_SETS_MAX];
} sizes;

void rtscope_sizes_begin(const struct rtscope_file *file, const struct rtscope_settings *settings)
{
    for (uint32_t place = 0; place < RTSCOPE_SETS_MAX; place++)
        sizes.room_bytes[place] = settings && place < settings->sets_length
                                      ? settings->sets[place].room_bytes
                                      : 0;
    __atomic_store_n(&sizes.header, file ? file->header : NULL, __ATOMIC_RELEASE);
}

static uint64_t *stored(struct rtscope_header *header, uint32_t place)
{
    return place == 0 ? &header->ring_bytes : &header->more[place - 1].ring_bytes;
}

/* Stores a size where nobody did, and makes the file so long; 0, or an errno. In one step: several
 * may do so, and the first decides. */
static int store(const struct rtscope_file *file, uint32_t place, uint64_t ring_bytes)
{
    struct rtscope_header *const header = file->header;
    const uint64_t end =
        rtscope_set_of(header, place).data_offset + header->rings_length * ring_bytes;
    struct rlimit limit;
    uint64_t none = 0;
    /* Beyond it a process is ended (SIGXFSZ). */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && end > limit.rlim_cur)
        return EFBIG;
    const int fd = open(file->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    /* Its last byte: who makes it longer this way never makes it shorter than others did. */
    const int refused = posix_fallocate(fd, (off_t)end - 1, 1);
    close(fd);
    if (refused == 0)
        __atomic_compare_exchange_n(stored(header, place), &none, ring_bytes, 0, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    return refused;
}

void rtscope_sizes_choose(struct rtscope_file *file, struct rtscope_settings *settings,
                          uint32_t place, const struct rtscope_event_rules *rules)
{
    struct rtscope_set_plan *const set = &settings->sets[place];
    if (__atomic_load_n(stored(file->header, place), __ATOMIC_RELAXED))
        return;
    const int folder = rtscope_file_folder(file);
    set->is_wanted = 1;
    set->rings = rtscope_event_rules_rings(rules, place);
    const uint64_t bytes = rtscope_settings_choose(settings, place, folder);
    const int refused = bytes ? store(file, place, bytes) : EOVERFLOW;
    if (folder >= 0)
        close(folder);
    if (refused)
        file->missing_rings = refused;
}

int rtscope_sizes_take(uint32_t place)
{
    struct rtscope_header *const header = __atomic_load_n(&sizes.header, __ATOMIC_ACQUIRE);
    if (!header)
        return 0;
    /* Read once, and believed only as far as it was looked at. */
    const uint64_t bytes = __atomic_load_n(stored(header, place), __ATOMIC_ACQUIRE);
    if (bytes < 2 * RTSCOPE_SUBBUFFER_BYTES_MIN || bytes & (bytes - 1) ||
        bytes > sizes.room_bytes[place] || !rtscope_lock_shortly())
        return 0;
    /* Another thread may have done it meanwhile. */
    if (!rtscope_write_views[place].ring_bytes)
        rtscope_know_size(place, bytes);
    rtscope_unlock_shortly();
    return 1;
}
