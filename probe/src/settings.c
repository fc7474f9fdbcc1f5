/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How large rings are, and for which CPUs. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING_BYTES_DEFAULT (UINT64_C(256) << 10)
/* Of sets that are there for recorders to come; they have no memory, but a process that locks all
 * that it has gives them some. */
#define RING_BYTES_SPARE (UINT64_C(64) << 10)
/* Of the room in shared memory, rings that nobody asked for take one part in so many. */
#define ROOM_PARTS 16u
/* And of what recorders leave to all processes (`LEFT_PARTS` of the recorder). */
#define ALL_PARTS 16u
/* Rings that have to be small have at least so many bytes. */
#define RING_BYTES_SMALL (UINT64_C(64) << 10)
/* Rings that get their size later have addresses for so much, the first set's and the others', as
 * far as all of a process are no more than that. */
#define ROOM_BYTES (UINT64_C(64) << 20)
#define ROOM_BYTES_OTHERS (UINT64_C(8) << 20)
#define ROOM_BYTES_IN_ALL (UINT64_C(4) << 30)
/* Where all programs of a user have a bound, the next has a part of what is left of it, so small
 * that a thousand find some. */
#define USER_PARTS 512u
char rtscope_desk[RTSCOPE_DESK_BYTES];

long rtscope_read_small(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t length = read(fd, text, size - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

uint64_t rtscope_power_of_two(uint64_t number)
{
    uint64_t power = 1;
    while (power < number && power <= UINT64_MAX / 2)
        power <<= 1;
    return power;
}

/* The counter is a clock where the kernel itself trusts it. In a program for another machine, under
 * an emulator, the kernel's counter is not the one that we read. */
uint32_t rtscope_best_clock(void)
{
    char name[32];
    if (rtscope_read_small("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                   sizeof name) <= 0)
        return RTSCOPE_CLOCK_MONOTONIC;
    name[strcspn(name, "\n")] = '\0';
    return strcmp(name, RTSCOPE_COUNTER_CLOCKSOURCE_) == 0 ? RTSCOPE_CLOCK_COUNTER
                                                            : RTSCOPE_CLOCK_MONOTONIC;
}

/* Offsets are told of the namespace that children will have, which is nearly always our own. */
int64_t rtscope_time_namespace_ns(void)
{
    static const char monotonic[] = "monotonic";
    char own[64], of_children[64];
    if (rtscope_read_small("/proc/self/timens_offsets", rtscope_desk, sizeof rtscope_desk) <= 0)
        return 0;
    const char *const line = strstr(rtscope_desk, monotonic);
    if (!line)
        return 0;
    char *behind;
    const int64_t seconds = strtoll(line + sizeof monotonic - 1, &behind, 10);
    const int64_t offset_ns = seconds * 1000000000 + strtoll(behind, NULL, 10);
    if (offset_ns == 0)
        return 0;
    const ssize_t length = readlink("/proc/self/ns/time", own, sizeof own);
    return length > 0 &&
                   readlink("/proc/self/ns/time_for_children", of_children, sizeof of_children) ==
                       length &&
                   memcmp(own, of_children, (size_t)length) == 0
               ? offset_ns
               : 0;
}

/* What rings may take in `folder` that nobody asked to be so large, each of `cpus`. */
static uint64_t room(const struct rtscope_settings *settings, int folder, uint32_t cpus)
{
    const uint64_t shared = rtscope_shared_left(folder), memory = settings->memory_left;
    return (shared < memory ? shared : memory) / ROOM_PARTS / cpus;
}

/* What a file takes beside its rings. */
static uint64_t bytes_beside(const struct rtscope_settings *settings)
{
    return RTSCOPE_SWITCHES_BYTES + RTSCOPE_FILTERS_BYTES + RTSCOPE_OBJECTS_BYTES +
           RTSCOPE_TABLE_BYTES + settings->switches_bytes + settings->table_bytes;
}

/* Sets of rings that recorders have; the first is there for the environment's events too. */
static uint32_t sets_given(const struct rtscope_settings *settings)
{
    uint32_t given = 1;
    while (given < RTSCOPE_SETS_MAX && settings->sets[given].session)
        given++;
    return given;
}

/* Of what all processes together may take for the rings of one CPU, the next has a part of what is
 * left. A recorder says so too, but hundreds can start before it has its turn. */
static uint64_t share_of_all(const struct rtscope_settings *settings,
                             const struct rtscope_ring_rules *rules, int folder, uint64_t cpus)
{
    const uint64_t spare = (RTSCOPE_SETS_MAX - 1) * cpus * RING_BYTES_SPARE;
    const struct rtscope_sizes sizes = {bytes_beside(settings), cpus * RING_BYTES_DEFAULT + spare,
                                        RTSCOPE_SETS_MAX * cpus * rules->at_most};
    const uint64_t used = rtscope_rings_bytes(folder, &sizes, cpus * rules->in_all) / cpus;
    return used < rules->in_all ? (rules->in_all - used) / ALL_PARTS : 0;
}

/* As many sub-buffers as there are to be, or, where little is left of what a user has, two. */
static uint64_t least_bytes(const struct rtscope_settings *settings,
                            const struct rtscope_set_plan *set)
{
    const uint64_t count = set->is_wanted && set->rings.per_user ? 2 : settings->subbuffers;
    return count * RTSCOPE_SUBBUFFER_BYTES_MIN;
}

/* What a recorder would like, as far as there is room; a program that is not recorded when it
 * starts has small rings, for whom comes later. */
static uint64_t bytes_of_choice(const struct rtscope_settings *settings,
                                const struct rtscope_set_plan *set, int folder)
{
    if (!set->is_wanted)
        return RING_BYTES_DEFAULT;
    const uint32_t cpus = rtscope_cpus_possible();
    uint64_t most = room(settings, folder, cpus), least = RING_BYTES_SMALL;
    uint64_t bytes = RING_BYTES_DEFAULT;
    if (set->rings.at_most)
        bytes = rtscope_power_of_two(set->rings.at_most);
    if (set->rings.at_most && set->rings.in_all) {
        const uint64_t share = share_of_all(settings, &set->rings, folder, cpus);
        most = share < most ? share : most;
    }
    if (set->rings.per_user) {
        const uint64_t left = rtscope_left_of_user(folder, set->rings.per_user);
        const uint64_t share = left / USER_PARTS / cpus;
        most = share < most ? share : most;
        least = least_bytes(settings, set);
    }
    while (bytes > most && bytes > least)
        bytes /= 2;
    return bytes;
}

/* What somebody asked for, whatever it costs: the environment first, as whoever starts a program
 * knows best, then a recorder where it wants an event of this process. 0: nobody. */
static uint64_t bytes_asked(const struct rtscope_settings *settings,
                            const struct rtscope_set_plan *set)
{
    if (settings->ring_bytes_asked)
        return settings->ring_bytes_asked;
    return set->is_wanted ? set->rings.exactly : 0;
}

/* The next of what is too much: a set that no recorder has yet, or half of the largest rings that
 * nobody asked for; 0 where there is none. */
static int take_less(struct rtscope_settings *settings, uint64_t least)
{
    struct rtscope_set_plan *largest = NULL;
    if (settings->sets_length > sets_given(settings)) {
        settings->sets_length--;
        return 1;
    }
    for (uint32_t place = 0; place < settings->sets_length; place++) {
        struct rtscope_set_plan *const set = &settings->sets[place];
        if (!bytes_asked(settings, set) && set->ring_bytes > least &&
            (!largest || set->ring_bytes > largest->ring_bytes))
            largest = set;
    }
    if (largest)
        largest->ring_bytes /= 2;
    return largest != NULL;
}

static uint64_t bytes_of_rings(const struct rtscope_settings *settings)
{
    uint64_t bytes = 0;
    for (uint32_t place = 0; place < settings->sets_length; place++)
        bytes += settings->sets[place].ring_bytes;
    return bytes * rtscope_cpus_possible();
}

/* Less where a process that locks its memory has no room for them. */
static void fit_lockable(struct rtscope_settings *settings, uint64_t least)
{
    const uint64_t beside = bytes_beside(settings);
    const uint64_t most = rtscope_lockable_bytes(beside + bytes_of_rings(settings),
                                                  settings->leaving_bytes);
    while (beside + bytes_of_rings(settings) > most && take_less(settings, least))
        ;
}

/* How large the rings of a set may become that have no size yet. */
static uint64_t room_bytes(uint32_t place)
{
    const uint64_t cpus = rtscope_cpus_possible();
    uint64_t first = ROOM_BYTES, others = ROOM_BYTES_OTHERS;
    while (cpus * (first + (RTSCOPE_SETS_MAX - 1) * others) > ROOM_BYTES_IN_ALL) {
        others = first > others ? others : others / 2;
        first /= 2;
    }
    return place == 0 ? first : others;
}

uint64_t rtscope_subbuffer_bytes(uint64_t ring_bytes, uint64_t subbuffers)
{
    const uint64_t bytes = ring_bytes / subbuffers;
    return bytes < RTSCOPE_SUBBUFFER_BYTES_MIN ? RTSCOPE_SUBBUFFER_BYTES_MIN : bytes;
}

uint64_t rtscope_settings_choose(struct rtscope_settings *settings, uint32_t place, int folder)
{
    const struct rtscope_set_plan *const set = &settings->sets[place];
    settings->memory_left = rtscope_memory_left();
    const uint64_t asked = bytes_asked(settings, set);
    const uint64_t least = least_bytes(settings, set);
    uint64_t bytes =
        rtscope_power_of_two(asked ? asked : bytes_of_choice(settings, set, folder));
    bytes = bytes < least ? least : bytes;
    bytes = bytes < set->room_bytes ? bytes : set->room_bytes;
    return bytes * rtscope_cpus_possible() <= settings->memory_left / 2 ? bytes : 0;
}

void rtscope_settings_size(struct rtscope_settings *settings, int folder)
{
    const uint32_t given = sets_given(settings);
    settings->sets_length = settings->has_no_spare_sets ? given : RTSCOPE_SETS_MAX;
    for (uint32_t place = 0; place < settings->sets_length; place++) {
        struct rtscope_set_plan *const set = &settings->sets[place];
        uint64_t bytes = RING_BYTES_SPARE;
        set->ring_bytes = set->room_bytes = 0;
        if (place < given)
            bytes = bytes_asked(settings, set);
        if (!settings->has_no_room && !set->is_wanted && (place >= given || !bytes)) {
            set->room_bytes = room_bytes(place);
            continue;
        }
        if (!bytes)
            bytes = bytes_of_choice(settings, set, folder);
        const uint64_t least = least_bytes(settings, set);
        bytes = rtscope_power_of_two(bytes);
        set->ring_bytes = bytes < least ? least : bytes;
    }
    fit_lockable(settings, settings->subbuffers * RTSCOPE_SUBBUFFER_BYTES_MIN);
    for (uint32_t place = 0; place < settings->sets_length; place++) {
        struct rtscope_set_plan *const set = &settings->sets[place];
        set->subbuffer_bytes = rtscope_subbuffer_bytes(set->ring_bytes, settings->subbuffers);
    }
}

int rtscope_settings_ask_less(struct rtscope_settings *settings)
{
    const int of_addresses = errno != EFBIG && errno != ENOSPC && errno != EOVERFLOW;
    if (!settings->has_no_room && of_addresses)
        return settings->has_no_room = 1;
    int can = !settings->has_no_spare_sets && settings->sets_length > sets_given(settings);
    settings->has_no_spare_sets = 1;
    if (can)
        return 1;
    for (uint32_t place = 0; place < RTSCOPE_SETS_MAX; place++) {
        struct rtscope_set_plan *const set = &settings->sets[place];
        can |= set->is_wanted && set->rings.at_most && !settings->ring_bytes_asked &&
               !set->rings.exactly;
        set->rings.at_most = 0;
    }
    return can;
}

int rtscope_set_takes_memory(const struct rtscope_set_plan *set)
{
    return set->is_wanted || set->ring_bytes > RING_BYTES_DEFAULT;
}

/* Calls `each` with both ends of every range of a list such as `0-3,8`. */
static void each_range(const char *list, void (*each)(uint32_t first, uint32_t last, void *),
                       void *context)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        const unsigned long first = strtoul(list, &end, 10);
        unsigned long last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (first < RTSCOPE_CPUS_MAX && last < RTSCOPE_CPUS_MAX && first <= last)
            each((uint32_t)first, (uint32_t)last, context);
        if (*end != ',')
            return;
        list = end + 1;
    }
}

static void last_of_all(uint32_t first, uint32_t last, void *count)
{
    (void)first;
    if (*(uint32_t *)count < last + 1)
        *(uint32_t *)count = last + 1;
}

uint32_t rtscope_cpus_possible(void)
{
    uint32_t count = 0;
    if (rtscope_read_small("/sys/devices/system/cpu/possible", rtscope_desk,
                           sizeof rtscope_desk) > 0)
        each_range(rtscope_desk, last_of_all, &count);
    if (count == 0) {
        /* The C library may know no better than by the CPUs that this thread may use. */
        const long configured = sysconf(_SC_NPROCESSORS_CONF);
        cpu_set_t allowed;
        count = configured > 0 && configured < (long)RTSCOPE_CPUS_MAX ? (uint32_t)configured : 1;
        if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
            for (uint32_t cpu = count; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &allowed))
                    count = cpu + 1;
    }
    return count;
}

struct each_cpu {
    void (*each)(uint32_t cpu, void *context);
    void *context;
};

static void cpus_of_range(uint32_t first, uint32_t last, void *context)
{
    const struct each_cpu *const call = context;
    for (uint32_t cpu = first; cpu <= last; cpu++)
        call->each(cpu, call->context);
}

void rtscope_cpus_online(void (*each)(uint32_t cpu, void *context), void *context)
{
    struct each_cpu call = {each, context};
    if (rtscope_read_small("/sys/devices/system/cpu/online", rtscope_desk,
                           sizeof rtscope_desk) > 0) {
        each_range(rtscope_desk, cpus_of_range, &call);
        return;
    }
    /* Without /sys none is known to be offline. */
    const uint32_t possible = rtscope_cpus_possible();
    for (uint32_t cpu = 0; cpu < possible; cpu++)
        each(cpu, context);
}
