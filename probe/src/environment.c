/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the environment says. A value that makes no sense is not followed, and recorders are told
 * so; texts are copied, because programs write over their environment (to show a title, say).
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUBBUFFERS_DEFAULT 8u
#define BLOCK_US_DEFAULT 100u
#define BLOCK_US_MAX 1000000u

/* A size, as far as it is one: `64K`, `4M` or bytes (1), or not (0). */
static int take_size(const char *text, uint64_t *bytes)
{
    char *end;
    if (*text < '0' || *text > '9')
        return 0;
    const unsigned long long number = strtoull(text, &end, 10);
    const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    *bytes = number > UINT64_MAX >> shift ? UINT64_MAX : (uint64_t)number << shift;
    return end[shift > 0] == '\0';
}

uint64_t rtscope_size(const char *text, uint64_t otherwise)
{
    uint64_t bytes;
    if (!text || !take_size(text, &bytes))
        return otherwise;
    return bytes < RTSCOPE_RING_BYTES_MAX ? bytes : RTSCOPE_RING_BYTES_MAX;
}

static void complain(struct rtscope_settings *settings, const struct rtscope_refusal *complaint)
{
    if (settings->complaints_length < RTSCOPE_COMPLAINTS_MAX)
        settings->complaints[settings->complaints_length++] = *complaint;
}

/* secure_getenv: who runs a set-uid program must not choose where it writes. An empty text says
 * nothing. */
static const char *variable(const char *name)
{
    const char *const text = secure_getenv(name);
    return text && *text ? text : NULL;
}

/* A variable with a number. */
struct number {
    const char *name;
    /* `NAME is not followed by` */
    const char *what;
    const char *fix;
    uint64_t most;
    /* Instead of nothing, and of what is no number; instead of more than the most. */
    uint64_t otherwise;
    uint64_t beyond;
};

static uint64_t number_of(struct rtscope_settings *settings, const struct number *number)
{
    const char *const text = variable(number->name);
    struct rtscope_refusal complaint = {number->what, "no number: ", text, number->fix};
    uint64_t found;
    if (!text)
        return number->otherwise;
    const int is_number = take_size(text, &found);
    if (is_number && found <= number->most)
        return found;
    if (is_number)
        complaint.found = "too much: ";
    complain(settings, &complaint);
    return is_number ? number->beyond : number->otherwise;
}

/* A variable whose value is one of a few words. */
struct choice {
    const char *name;
    const char *what;
    const char *fix;
    /* The first means the same as nothing. */
    const char *words[3];
};

static uint32_t choice_of(struct rtscope_settings *settings, const struct choice *choice)
{
    const char *const text = variable(choice->name);
    for (uint32_t word = 0; text && word < 3 && choice->words[word]; word++)
        if (strcmp(text, choice->words[word]) == 0)
            return word;
    if (text) {
        const struct rtscope_refusal complaint = {choice->what, "no such word: ", text,
                                                  choice->fix};
        complain(settings, &complaint);
    }
    return 0;
}

/* Whether a list of patterns has a level, the third part of one, that is no number. */
static int has_odd_level(const char *list)
{
    for (unsigned colons = 0; *list; list++) {
        colons = *list == ',' ? 0 : colons + (*list == ':');
        if (colons == 2 && *list == ':' && (list[1] < '0' || list[1] > '9'))
            return 1;
    }
    return 0;
}

static const char *events_of(struct rtscope_settings *settings)
{
    static char events[RTSCOPE_RULES_BYTES];
    const char *const text = variable("RTSCOPE_EVENTS");
    struct rtscope_refusal complaint = {"RTSCOPE_EVENTS is not followed by",
                                        "it has more than 4095 bytes", "",
                                        "name all of a provider, as in npt:*"};
    if (!text)
        return NULL;
    if (strlen(text) >= sizeof events) {
        complain(settings, &complaint);
        return NULL;
    }
    if (has_odd_level(text)) {
        complaint.found = "no number as level: ";
        complaint.text = strcpy(events, text);
        complaint.fix = "a level is a number from 0 to 14, as in npt:*:6";
        complain(settings, &complaint);
        return NULL;
    }
    return strcpy(events, text);
}

/* A path that stays the same when the program changes its own folder. */
static const char *directory_of(struct rtscope_settings *settings)
{
    static char directory[RTSCOPE_DIRECTORY_MAX];
    const char *const text = variable("RTSCOPE_DIR");
    const struct rtscope_refusal complaint = {"RTSCOPE_DIR is not followed by",
                                              "its path has more than 191 bytes: ", text,
                                              "give it a folder of its user, as /dev/shm/rings"};
    size_t used = 0;
    if (!text)
        return NULL;
    if (*text != '/' && getcwd(directory, sizeof directory - 1))
        used = (size_t)(stpcpy(directory + strlen(directory), "/") - directory);
    if ((*text == '/' || used) && strlen(text) < sizeof directory - used) {
        strcpy(directory + used, text);
        return directory;
    }
    complain(settings, &complaint);
    return NULL;
}

void rtscope_settings_read(struct rtscope_settings *settings)
{
    static const struct number subbuffers = {
        "RTSCOPE_SUBBUFFERS", "RTSCOPE_SUBBUFFERS is not followed by",
        "give it a number from 2 to 64",
        RTSCOPE_SUBBUFFERS_MAX, SUBBUFFERS_DEFAULT, RTSCOPE_SUBBUFFERS_MAX};
    static const struct number ring = {
        "RTSCOPE_RING_SIZE", "RTSCOPE_RING_SIZE is not followed by",
        "give it bytes, as in 64K or 4M, and 4G at most",
        RTSCOPE_RING_BYTES_MAX, 0, 0};
    static const struct number block = {
        "RTSCOPE_BLOCK_US", "RTSCOPE_BLOCK_US is not followed by",
        "give it microseconds, a second at most",
        BLOCK_US_MAX, BLOCK_US_DEFAULT, BLOCK_US_MAX};
    static const struct choice mode = {"RTSCOPE_MODE", "RTSCOPE_MODE is not followed by",
                                       "it is discard, overwrite or block",
                                       {"discard", "overwrite", "block"}};
    static const uint32_t modes[] = {RTSCOPE_MODE_DISCARD, RTSCOPE_MODE_OVERWRITE,
                                     RTSCOPE_MODE_BLOCK};
    static const struct choice clock = {"RTSCOPE_CLOCK", "RTSCOPE_CLOCK is not followed by",
                                        "it is counter or monotonic", {"counter", "monotonic"}};
    static const struct choice rseq = {"RTSCOPE_RSEQ", "RTSCOPE_RSEQ is not followed by",
                                       "it is on or off", {"on", "off"}};
    settings->complaints_length = 0;
    const uint64_t count = rtscope_power_of_two(number_of(settings, &subbuffers));
    settings->subbuffers = count < 2 ? 2 : count;
    settings->ring_bytes_asked = number_of(settings, &ring);
    settings->block_ns = (uint32_t)number_of(settings, &block) * 1000;
    settings->mode = modes[choice_of(settings, &mode)];
    settings->clock = choice_of(settings, &clock) ? RTSCOPE_CLOCK_MONOTONIC : rtscope_best_clock();
    settings->rseq = choice_of(settings, &rseq) == 0;
    settings->huge_pages = secure_getenv("RTSCOPE_HUGE_PAGES") != NULL;
    settings->disabled = secure_getenv("RTSCOPE_DISABLE") != NULL;
    settings->events = events_of(settings);
    settings->directory = directory_of(settings);
}
