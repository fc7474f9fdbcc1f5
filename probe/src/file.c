/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The process's shared file: where it is, how it is laid out, how it gets its memory. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_ATTEMPTS 8

/* Areas begin at a page of whatever size the machine has; the controls follow the header, with
 * which they share pages that are needed from the start. */
#define AREA_ALIGNMENT UINT64_C(65536)
#define CONTROLS_ALIGNMENT UINT64_C(128)

static uint64_t align(uint64_t offset)
{
    return (offset + AREA_ALIGNMENT - 1) & ~(AREA_ALIGNMENT - 1);
}

static uint64_t end_of_controls(const struct rtscope_header *header)
{
    return header->controls_offset +
           (uint64_t)header->sets_length * header->rings_length * sizeof(struct rtscope_ring);
}

struct rtscope_set rtscope_set_of(const struct rtscope_header *header, uint32_t place)
{
    if (place > 0)
        return header->more[place - 1];
    const struct rtscope_set first = {header->session,         header->data_offset,
                                      header->ring_bytes,      header->subbuffer_bytes,
                                      header->mode,            0};
    return first;
}

struct rtscope_ring *rtscope_rings_of(const struct rtscope_header *header, uint32_t place)
{
    return (struct rtscope_ring *)(void *)((char *)header + header->controls_offset) +
           (size_t)place * header->rings_length;
}

int rtscope_directory_path(const char *wanted, unsigned uid, char *path, size_t size)
{
    const int length = wanted && *wanted ? snprintf(path, size, "%s", wanted)
                                         : snprintf(path, size, "/dev/shm/rtscope-%u", uid);
    return length > 0 && (size_t)length < size ? 0 : -1;
}

/* Nobody but its owner, us or root, can write to it. */
static int is_trusted(const struct stat *status)
{
    return (status->st_uid == geteuid() || status->st_uid == 0) &&
           !(status->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens a directory that is to be trusted. */
int rtscope_directory_open(const char *path, int create)
{
    struct stat status;
    if (create && mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && is_trusted(&status))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* The thread's name. Not by the C library's function: what is linked with that may be a program
 * that forbids itself system calls (linked.c). */
static void read_name(struct rtscope_header *header)
{
    (void)syscall(SYS_prctl, PR_GET_NAME, header->name, 0, 0, 0);
}

/* CLOCK_MONOTONIC now, and the CPU's counter between two readings of it that are close together; no
 * counter where none were. */
static void read_clocks(struct rtscope_header *header, int with_counter)
{
    for (int attempt = 0; attempt < CLOCK_ATTEMPTS; attempt++) {
        header->begin_ns = rtscope_monotonic_ns();
        const uint64_t counter = rtscope_counter_();
        const uint64_t after_ns = rtscope_monotonic_ns();
        if (!with_counter)
            return;
        if (after_ns - header->begin_ns <= RTSCOPE_PAIR_WIDTH_NS) {
            header->begin_counter = counter;
            return;
        }
    }
}

/* The data of each set, behind all else; gives where their addresses end. The file ends behind the
 * last that has a size. */
static uint64_t lay_out_sets(struct rtscope_header *header,
                             const struct rtscope_settings *settings)
{
    uint64_t end = header->table_offset + header->table_bytes;
    header->file_bytes = align(end);
    for (uint32_t place = 0; place < settings->sets_length; place++) {
        const struct rtscope_set_plan *const plan = &settings->sets[place];
        const struct rtscope_set set = {plan->session,         align(end), plan->ring_bytes,
                                        plan->subbuffer_bytes, settings->mode, 0};
        end = set.data_offset +
              header->rings_length * (set.ring_bytes ? set.ring_bytes : plan->room_bytes);
        header->room_bytes[place] = plan->room_bytes;
        if (set.ring_bytes)
            header->file_bytes = align(end);
        if (place > 0) {
            header->more[place - 1] = set;
            continue;
        }
        header->session = set.session;
        header->data_offset = set.data_offset;
        header->ring_bytes = set.ring_bytes;
        header->subbuffer_bytes = set.subbuffer_bytes;
        header->mode = set.mode;
    }
    return align(end);
}

static uint64_t lay_out(struct rtscope_header *header, const struct rtscope_settings *settings,
                        uint32_t rings_length, uint32_t rseq)
{
    header->version = RTSCOPE_LAYOUT_VERSION;
    header->header_bytes = sizeof *header;
    read_clocks(header, settings->clock == RTSCOPE_CLOCK_COUNTER);
    header->pid = (int32_t)getpid();
    header->clock = settings->clock;
    header->sets_length = settings->sets_length;
    header->block_ns = settings->block_ns;
    header->rseq = rseq;
    header->rings_length = rings_length;
    header->controls_offset =
        (sizeof *header + CONTROLS_ALIGNMENT - 1) & ~(CONTROLS_ALIGNMENT - 1);
    header->switches_offset = align(end_of_controls(header));
    header->switches_bytes = align(RTSCOPE_SWITCHES_BYTES + settings->switches_bytes);
    header->filters_offset = align(header->switches_offset + header->switches_bytes);
    header->filters_bytes = RTSCOPE_FILTERS_BYTES;
    /* Where none begins: 0 says that there is none. */
    header->filters_used = 8;
    header->objects_offset = align(header->filters_offset + RTSCOPE_FILTERS_BYTES);
    header->objects_bytes = RTSCOPE_OBJECTS_BYTES;
    header->table_offset = align(header->objects_offset + RTSCOPE_OBJECTS_BYTES);
    header->table_bytes = align(RTSCOPE_TABLE_BYTES + settings->table_bytes);
    header->subbuffers = (uint32_t)settings->subbuffers;
    read_name(header);
    return lay_out_sets(header, settings);
}

/* One CPU's ring: memory first, then it is no longer marked as absent. The memory is the file's:
 * this process has none of it before it records. */
struct giving {
    struct rtscope_file *file;
    /* Open, or -1 where its name leads nowhere any more: the mapping then has to do. */
    int fd;
    uint32_t set;
    /* Bytes that its rings lack. */
    uint64_t needed;
};

/* So far the tail of a ring without memory lies behind its head: it looks full, whatever size it
 * gets. */
static uint64_t behind_bytes(const struct rtscope_header *header, uint32_t set)
{
    const uint64_t room = header->room_bytes[set];
    return room ? room : rtscope_set_of(header, set).ring_bytes;
}

static int give_memory(const struct giving *giving, uint64_t offset, uint64_t bytes)
{
    if (giving->fd >= 0)
        return posix_fallocate(giving->fd, (off_t)offset, (off_t)bytes);
    char *const at = (char *)giving->file->header + offset;
    return madvise(at, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
}

static void give_ring(uint32_t cpu, void *context)
{
    const struct giving *const giving = context;
    const struct rtscope_header *const header = giving->file->header;
    const struct rtscope_set set = rtscope_set_of(header, giving->set);
    struct rtscope_ring *const ring = rtscope_rings_of(header, giving->set) + cpu;
    if (cpu >= header->rings_length || !ring->absent || !set.ring_bytes)
        return;
    const uint64_t offset = set.data_offset + cpu * set.ring_bytes;
    const int refused = give_memory(giving, offset, set.ring_bytes);
    if (refused != 0) {
        giving->file->missing_rings = refused;
        return;
    }
    /* A recorder may do the same at the same time, and be further already. */
    uint64_t full = ring->head - behind_bytes(header, giving->set);
    __atomic_store_n(&ring->absent, 0, __ATOMIC_RELEASE);
    __atomic_compare_exchange_n(&ring->tail, &full, ring->head, 0, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

/* Every ring is absent until it has memory; `tail` sends the inline path to where this is seen. */
static void make_absent(const struct rtscope_header *header, uint32_t set)
{
    const uint64_t bytes = behind_bytes(header, set);
    struct rtscope_ring *const rings = rtscope_rings_of(header, set);
    for (uint32_t cpu = 0; cpu < header->rings_length; cpu++) {
        rings[cpu].absent = 1;
        rings[cpu].tail = rings[cpu].head - bytes;
    }
}

static void count_absent(uint32_t cpu, void *context)
{
    struct giving *const giving = context;
    const struct rtscope_header *const header = giving->file->header;
    if (cpu < header->rings_length && rtscope_rings_of(header, giving->set)[cpu].absent)
        giving->needed += rtscope_set_of(header, giving->set).ring_bytes;
}

/* Gives what a user's files may have together, or nothing: what of it is beyond goes again, so that
 * of many that start at once none has more. Nobody writes to these rings yet. */
static void give_within(struct giving *giving, int folder, uint64_t per_user)
{
    const struct rtscope_header *const header = giving->file->header;
    const struct rtscope_set set = rtscope_set_of(header, giving->set);
    rtscope_cpus_online(count_absent, giving);
    if (giving->needed == 0 || giving->needed > rtscope_left_of_user(folder, per_user))
        return;
    rtscope_cpus_online(give_ring, giving);
    /* Who takes the last of it keeps that. */
    if (rtscope_left_of_user(folder, per_user + 1) > 0)
        return;
    make_absent(header, giving->set);
    (void)fallocate(giving->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)set.data_offset, (off_t)(header->rings_length * set.ring_bytes));
}

int rtscope_file_folder(const struct rtscope_file *file)
{
    char path[RTSCOPE_PATH_MAX];
    memcpy(path, file->path, sizeof path);
    *strrchr(path, '/') = '\0';
    return rtscope_directory_open(path, 0);
}

void rtscope_file_give(struct rtscope_file *file, uint32_t set, uint64_t per_user)
{
    struct giving giving = {file, open(file->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC), set, 0};
    const int folder = per_user ? rtscope_file_folder(file) : -1;
    if (!per_user)
        rtscope_cpus_online(give_ring, &giving);
    else if (folder >= 0 && giving.fd >= 0)
        give_within(&giving, folder, per_user);
    if (folder >= 0)
        close(folder);
    if (giving.fd >= 0)
        close(giving.fd);
}

/* Whether rings can wait for their memory until there is an event for them: those of children, most
 * of which write none. Where a user's files have a bound it is counted, which takes more than an
 * event may. */
static int can_wait(const struct rtscope_file *file, const struct rtscope_set_plan *set)
{
    return rtscope_forks_in_child() && !set->rings.per_user &&
           madvise(file->header, 1, MADV_POPULATE_WRITE) == 0;
}

static void make_rings(struct rtscope_file *file, int fd, const struct rtscope_settings *settings,
                       int folder)
{
    rtscope_write_late_sets = 0;
    for (uint32_t place = 0; place < file->header->sets_length; place++) {
        const struct rtscope_set_plan *const set = &settings->sets[place];
        struct giving giving = {file, fd, place, 0};
        make_absent(file->header, place);
        if (!rtscope_set_takes_memory(set))
            continue;
        if (can_wait(file, set))
            rtscope_write_late_sets |= 1u << place;
        else if (set->rings.per_user)
            give_within(&giving, folder, set->rings.per_user);
        else
            rtscope_cpus_online(give_ring, &giving);
    }
}

/* Whole pages around a part of the file, open for reading and writing. */
static char *open_pages(const struct rtscope_file *file, uint64_t offset, uint64_t *bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t begin = offset & ~(page - 1);
    char *const at = (char *)file->header + begin;
    *bytes = ((offset + *bytes + page - 1) & ~(page - 1)) - begin;
    return mprotect(at, *bytes, PROT_READ | PROT_WRITE) == 0 ? at : NULL;
}

int rtscope_file_populate(const struct rtscope_file *file, uint64_t offset, uint64_t bytes)
{
    char *const at = open_pages(file, offset, &bytes);
    /* Before Linux 5.14 there is no such advice: pages then come with the first store. */
    return at && (madvise(at, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL) ? 0 : -1;
}

void rtscope_file_warm(const struct rtscope_file *file, uint32_t place, uint64_t bytes)
{
    const struct rtscope_header *const header = file->header;
    const struct rtscope_set set = rtscope_set_of(header, place);
    const struct rtscope_ring *const rings = rtscope_rings_of(header, place);
    const uint64_t most = bytes < set.ring_bytes ? bytes : set.ring_bytes;
    for (uint32_t cpu = 0; cpu < header->rings_length; cpu++)
        if (!rings[cpu].absent)
            (void)madvise((char *)file->header + set.data_offset + cpu * set.ring_bytes, most,
                          MADV_POPULATE_WRITE);
}

static void count_cpu(uint32_t cpu, void *count)
{
    (void)cpu;
    ++*(uint32_t *)count;
}

/* Rings that take more than half of what memory is left would have the kernel end somebody. */
static int is_beyond_memory(const struct rtscope_settings *settings)
{
    uint32_t online = 0;
    uint64_t bytes = 0;
    for (uint32_t set = 0; set < settings->sets_length; set++)
        if (rtscope_set_takes_memory(&settings->sets[set]))
            bytes += settings->sets[set].ring_bytes;
    if (bytes == 0)
        return 0;
    rtscope_cpus_online(count_cpu, &online);
    if (online * bytes <= settings->memory_left / 2)
        return 0;
    errno = EOVERFLOW;
    return 1;
}

/* A file beyond the process's limit is not even tried: that would be a signal, SIGXFSZ. */
static int is_beyond_limit(uint64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        bytes <= limit.rlim_cur)
        return 0;
    errno = EFBIG;
    return 1;
}

/* Maps the whole file, and what is behind its end until rings get their size. What is not in use
 * stays closed or has no file, so that a process that locks its memory does not fill it. */
static void *map_closed(int fd, const struct rtscope_header *plan, uint64_t map_bytes)
{
    char *const map = mmap(NULL, map_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (map == MAP_FAILED)
        return NULL;
    /* A core of a process that crashes would hold zeros for all addresses. */
    (void)madvise(map, map_bytes, MADV_DONTDUMP);
    if (mprotect(map + plan->filters_offset, plan->filters_bytes, PROT_READ) == 0 &&
        mprotect(map + plan->data_offset, map_bytes - plan->data_offset,
                 PROT_READ | PROT_WRITE) == 0)
        return map;
    munmap(map, map_bytes);
    return NULL;
}

static int fill(struct rtscope_file *file, int fd, const struct rtscope_header *plan,
                const struct rtscope_settings *settings, int folder)
{
    const uint64_t front = end_of_controls(plan);
    if (is_beyond_memory(settings) || is_beyond_limit(plan->file_bytes) ||
        ftruncate(fd, (off_t)plan->file_bytes) != 0)
        return -1;
    const int refused = posix_fallocate(fd, 0, (off_t)front);
    if (refused != 0) {
        errno = refused;
        return -1;
    }
    void *const map = map_closed(fd, plan, file->map_bytes);
    if (!map)
        return -1;
    file->header = map;
    file->missing_rings = 0;
    /* Where the machine gives shared memory no huge pages, small ones do. */
    if (settings->huge_pages)
        (void)madvise((char *)map + plan->data_offset, file->map_bytes - plan->data_offset,
                      MADV_HUGEPAGE);
    /* The mapping keeps the lock when the descriptor is closed: it ends with the process. */
    if (rtscope_file_populate(file, 0, front) != 0 || flock(fd, LOCK_SH | LOCK_NB) != 0) {
        munmap(map, file->map_bytes);
        file->header = NULL;
        return -1;
    }
    memcpy(file->header, plan, sizeof *plan);
    make_rings(file, fd, settings, folder);
    __atomic_store_n(&file->header->magic, RTSCOPE_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

/* Tells recorders who has no rings, and why: `ERRNO NAME`, in a link, which takes no page of memory
 * where there is none, in the directory that is open as `folder`, if it is. `file->path` becomes
 * the link's. */
static void leave_refusal(struct rtscope_file *file, int folder, const char *directory,
                          const struct rtscope_header *plan, int reason)
{
    char text[sizeof plan->name + 16];
    const int length = snprintf(file->path, sizeof file->path, "%s/without-%d-%llx", directory,
                                (int)plan->pid, (unsigned long long)plan->begin_ns);
    snprintf(text, sizeof text, "%d %s", reason, plan->name);
    file->refused_pid = length > 0 && (size_t)length < sizeof file->path &&
                                (folder < 0 ? symlink(text, file->path)
                                            : symlinkat(text, folder,
                                                        strrchr(file->path, '/') + 1)) == 0
                            ? (int)plan->pid
                            : 0;
}

/* Where the process's files are. */
struct place {
    int folder;
    char directory[RTSCOPE_PATH_MAX];
};

/* Makes the file of `plan`; -1, with the reason in errno. */
static int create_planned(struct rtscope_file *file, const struct rtscope_settings *settings,
                          const struct rtscope_header *plan, const struct place *place)
{
    const int length = snprintf(file->path, sizeof file->path, "%s/rings-%d-%llx",
                                place->directory, (int)plan->pid,
                                (unsigned long long)plan->begin_ns);
    errno = ENAMETOOLONG;
    if (length <= 0 || (size_t)length >= sizeof file->path)
        return -1;
    const char *const name = strrchr(file->path, '/') + 1;
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int fd = openat(place->folder, name, flags, 0600);
    if (fd < 0)
        return -1;
    const int result = fill(file, fd, plan, settings, place->folder);
    const int reason = errno;
    if (result != 0)
        unlinkat(place->folder, name, 0);
    close(fd);
    errno = reason;
    return result;
}

/* Who this is, where there is no file that says so. */
static void name_self(struct rtscope_header *who)
{
    memset(who, 0, sizeof *who);
    read_clocks(who, 0);
    who->pid = (int32_t)getpid();
    read_name(who);
}

/* A process that can open nothing, not even the directory, can still leave a link in it. */
static void refuse_unopened(struct rtscope_file *file, const char *directory, int reason)
{
    struct rtscope_header who;
    struct stat status;
    if (lstat(directory, &status) != 0 || !S_ISDIR(status.st_mode) || !is_trusted(&status))
        return;
    name_self(&who);
    leave_refusal(file, -1, directory, &who, reason);
}

/* Where its own folder cannot be used, a process says so where recorders look by themselves. */
static void refuse_directory(struct rtscope_file *file, struct place *place)
{
    struct rtscope_header who;
    if (rtscope_directory_path(NULL, geteuid(), place->directory, RTSCOPE_PATH_MAX) != 0)
        return;
    place->folder = rtscope_directory_open(place->directory, 0);
    if (place->folder < 0)
        return;
    name_self(&who);
    leave_refusal(file, place->folder, place->directory, &who, ENOTDIR);
    file->is_refused_elsewhere = 1;
    close(place->folder);
}

int rtscope_file_create(struct rtscope_file *file, struct rtscope_settings *settings,
                        uint32_t rseq)
{
    struct rtscope_header plan;
    struct place place;
    char *const directory = place.directory;
    file->refused_pid = file->is_refused_elsewhere = 0;
    rtscope_clock_ahead_ns = rtscope_time_namespace_ns();
    if (rtscope_directory_path(settings->directory, geteuid(), directory, RTSCOPE_PATH_MAX) != 0)
        return -1;
    place.folder = rtscope_directory_open(directory, 1);
    if (place.folder < 0) {
        if (errno == EMFILE || errno == ENFILE)
            refuse_unopened(file, directory, errno);
        else if (settings->directory)
            refuse_directory(file, &place);
        return -1;
    }
    const uint32_t cpus = rtscope_cpus_possible();
    int result;
    /* Rings that nobody wants yet take none. */
    settings->memory_left = settings->is_wanted || settings->ring_bytes_asked
                                ? rtscope_memory_left()
                                : UINT64_MAX;
    /* Before our own, which may need their room. */
    rtscope_sweep(place.folder);
    do {
        memset(&plan, 0, sizeof plan);
        rtscope_settings_size(settings, place.folder);
        file->map_bytes = lay_out(&plan, settings, cpus, rseq);
        errno = settings->refused;
        result = errno ? -1 : create_planned(file, settings, &plan, &place);
    } while (result != 0 && !settings->refused && rtscope_settings_ask_less(settings));
    if (result != 0)
        leave_refusal(file, place.folder, directory, &plan, errno);
    close(place.folder);
    return result;
}

int rtscope_file_has_memory(const struct rtscope_file *file)
{
    const struct rtscope_ring *const rings = rtscope_rings_of(file->header, 0);
    const uint32_t length = file->header->sets_length * file->header->rings_length;
    for (uint32_t ring = 0; ring < length; ring++)
        if (!*(const volatile uint64_t *)&rings[ring].absent)
            return 1;
    return 0;
}

int rtscope_file_in_use(const struct rtscope_file *file, uint64_t switches_bytes)
{
    const struct rtscope_header *const header = file->header;
    const char *const map = (const char *)header;
    const struct rtscope_ring *const rings = rtscope_rings_of(header, 0);
    const struct rtscope_switch *const switches =
        (const struct rtscope_switch *)(const void *)(map + header->switches_offset);
    for (uint32_t ring = 0; ring < header->sets_length * header->rings_length; ring++)
        if (rings[ring].head)
            return 1;
    for (uint64_t place = 0; place < switches_bytes / sizeof *switches; place++)
        if (switches[place].enabled)
            return 1;
    return 0;
}

void rtscope_file_end(const struct rtscope_file *file, int is_wanted)
{
    if (!is_wanted)
        unlink(file->path);
    const int fd = rtscope_file_folder(file);
    if (fd < 0)
        return;
    /* What our children left behind. */
    rtscope_sweep(fd);
    close(fd);
}

int rtscope_file_map(const struct rtscope_file *file, uint64_t offset, uint64_t bytes, void *where)
{
    const int fd = open(file->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    void *const map = mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                           (off_t)offset);
    close(fd);
    return map == MAP_FAILED ? -1 : 0;
}

void rtscope_file_unmap(struct rtscope_file *file)
{
    if (file->header)
        munmap(file->header, file->map_bytes);
    file->header = NULL;
}
