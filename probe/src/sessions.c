/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which events are wanted when a program or library appears. A recorder leaves a file `session-…`
 * with a pattern a line in the user's directory, or in root's; the environment may name more.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More sessions of a folder than this are not read, which is said. A recorder removes those that
 * nobody holds. */
#define SESSIONS_MAX 1024

/* The line before those of a session, and how the line begins that names it. */
static const char session_begin[] = "!";
static const char session_word[] = "!session ";

/* Adds the patterns of a list whose parts end with one of `separators`. */
static void add(struct rtscope_event_rules *rules, const char *list, const char *separators)
{
    while (*list) {
        const size_t length = strcspn(list, separators);
        if (length > 0 && rules->length + length + 1 > sizeof rules->patterns) {
            rules->left_out = "they have more lines than are read";
        } else if (length > 0) {
            memcpy(rules->patterns + rules->length, list, length);
            rules->patterns[rules->length + length] = '\0';
            rules->length += length + 1;
        }
        list += length + (list[length] != '\0');
    }
}

/* A session of us or of root, which nobody else could have written. */
static void add_session(struct rtscope_event_rules *rules, int folder, const char *name)
{
    struct stat status;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (status.st_uid == geteuid() || status.st_uid == 0) &&
        !(status.st_mode & (S_IWGRP | S_IWOTH))) {
        const ssize_t length = read(fd, rtscope_desk, sizeof rtscope_desk - 1);
        rtscope_desk[length > 0 ? length : 0] = '\0';
        add(rules, session_begin, "\n");
        add(rules, rtscope_desk, "\n");
    }
    close(fd);
}

static void add_sessions(struct rtscope_event_rules *rules, const char *path)
{
    const int folder = rtscope_directory_open(path, 0);
    DIR *const list = folder < 0 ? NULL : fdopendir(folder);
    if (!list) {
        if (folder >= 0)
            close(folder);
        return;
    }
    const struct dirent *entry;
    for (int found = 0; (entry = readdir(list));) {
        if (strncmp(entry->d_name, "session-", 8) != 0)
            continue;
        if (++found > SESSIONS_MAX) {
            rules->left_out = "more files in the folder are called session-… than are read";
            break;
        }
        add_session(rules, folder, entry->d_name);
    }
    closedir(list);
}

static int has_session(const char *path)
{
    const int folder = rtscope_directory_open(path, 0);
    DIR *const list = folder < 0 ? NULL : fdopendir(folder);
    if (!list) {
        const int reason = errno;
        if (folder >= 0)
            close(folder);
        return reason == EMFILE || reason == ENFILE || reason == ENOMEM;
    }
    const struct dirent *entry;
    int found = 0;
    while (!found && (entry = readdir(list)))
        found = strncmp(entry->d_name, "session-", 8) == 0;
    closedir(list);
    return found;
}

int rtscope_sessions_any(const char *directory)
{
    char path[RTSCOPE_PATH_MAX];
    if (rtscope_directory_path(directory, geteuid(), path, sizeof path) == 0 &&
        has_session(path))
        return 1;
    return !directory && geteuid() != 0 &&
           rtscope_directory_path(NULL, 0, path, sizeof path) == 0 && has_session(path);
}

void rtscope_event_rules_read(struct rtscope_event_rules *rules,
                              const struct rtscope_settings *settings)
{
    char path[RTSCOPE_PATH_MAX];
    rules->length = 0;
    rules->left_out = NULL;
    if (settings->events)
        add(rules, settings->events, ",");
    if (rtscope_directory_path(settings->directory, geteuid(), path, sizeof path) == 0)
        add_sessions(rules, path);
    if (!settings->directory && geteuid() != 0 &&
        rtscope_directory_path(NULL, 0, path, sizeof path) == 0)
        add_sessions(rules, path);
}

/* Whether `pattern` names an event: `provider:name`, or a provider alone. */
static int is_named(const char *pattern, const char *provider, const char *full)
{
    return fnmatch(pattern, strchr(pattern, ':') ? full : provider, 0) == 0;
}

/* A rule is a pattern; a third part is the gravest level that is not wanted any more, as a number.
 * Patterns that follow, each behind a `-`, are left out. A filter that follows (behind a space) is
 * the recorder's to give: until it has done so, the event is off. */
static int matches(const char *rule, unsigned level, const char *provider, const char *full)
{
    char *const own = rtscope_desk;
    const size_t length = strcspn(rule, " ");
    if (length >= RTSCOPE_DESK_BYTES)
        return 0;
    memcpy(own, rule, length);
    own[length] = '\0';
    for (char *left_out = strrchr(own, '-'); left_out; left_out = strrchr(own, '-')) {
        if (is_named(left_out + 1, provider, full))
            return 0;
        *left_out = '\0';
    }
    char *const name = strchr(own, ':');
    char *const wanted = name ? strchr(name + 1, ':') : NULL;
    if (wanted) {
        *wanted = '\0';
        if (level > strtoul(wanted + 1, NULL, 10))
            return 0;
    }
    return is_named(own, provider, full);
}

/* A line of the rules, and whose it is: the number of a set, or -1. */
struct line {
    const char *text;
    int set;
};

/* The session that a line names; 0: it names none. */
static uint64_t session_of(const char *text)
{
    const size_t length = sizeof session_word - 1;
    return strncmp(text, session_word, length) == 0 ? strtoull(text + length, NULL, 16) : 0;
}

static int set_of(const struct rtscope_event_rules *rules, uint64_t session)
{
    for (int set = 0; set < (int)RTSCOPE_SETS_MAX; set++)
        if (rules->sessions[set] == session)
            return set;
    return -1;
}

/* Goes to the next line, to the first from one without text; 0 behind the last. */
static int next_line(const struct rtscope_event_rules *rules, struct line *line)
{
    line->text = line->text ? line->text + strlen(line->text) + 1 : rules->patterns;
    if (line->text >= rules->patterns + rules->length)
        return 0;
    const uint64_t session = session_of(line->text);
    if (session)
        line->set = set_of(rules, session);
    else if (strcmp(line->text, session_begin) == 0)
        line->set = 0;
    return 1;
}

unsigned rtscope_event_rules_give_sets(struct rtscope_event_rules *rules)
{
    struct line line = {NULL, 0};
    size_t given = 0;
    unsigned sets = 0;
    memset(rules->sessions, 0, sizeof rules->sessions);
    while (next_line(rules, &line)) {
        const uint64_t session = session_of(line.text);
        if (session && line.set < 0 && given < RTSCOPE_SETS_MAX) {
            line.set = (int)given;
            rules->sessions[given++] = session;
        }
        if (line.set >= 0 && line.text[0] != '!')
            sets |= 1u << line.set;
    }
    return sets;
}

static unsigned match_any(const struct rtscope_event_rules *rules, unsigned level,
                          const char *provider, const char *name, int with_filters)
{
    char full[512];
    struct line line = {NULL, 0};
    unsigned sets = 0;
    const int length = snprintf(full, sizeof full, "%s:%s", provider, name);
    if (length < 0 || (size_t)length >= sizeof full)
        return 0;
    while (next_line(rules, &line))
        if (line.set >= 0 && !(sets & 1u << line.set) &&
            (with_filters || !strchr(line.text, ' ')) &&
            matches(line.text, level, provider, full))
            sets |= 1u << line.set;
    return sets;
}

unsigned rtscope_event_rules_match(const struct rtscope_event_rules *rules, unsigned level,
                                   const char *provider, const char *name)
{
    return match_any(rules, level, provider, name, 0);
}

unsigned rtscope_event_rules_name(const struct rtscope_event_rules *rules, unsigned level,
                                  const char *provider, const char *name)
{
    return match_any(rules, level, provider, name, 1);
}

/* The most that those lines of a set ask for which begin with `word`. */
static uint64_t largest(const struct rtscope_event_rules *rules, uint32_t set, const char *word)
{
    const size_t length = strlen(word);
    struct line line = {NULL, 0};
    uint64_t most = 0;
    while (next_line(rules, &line)) {
        const uint64_t bytes = line.set == (int)set && strncmp(line.text, word, length) == 0
                                   ? rtscope_size(line.text + length, 0)
                                   : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

struct rtscope_ring_rules rtscope_event_rules_rings(const struct rtscope_event_rules *rules,
                                                    uint32_t set)
{
    const struct rtscope_ring_rules rings = {largest(rules, set, "!ring "),
                                             largest(rules, set, "!ring-at-most "),
                                             largest(rules, set, "!rings-in-all "),
                                             largest(rules, set, "!rings-per-user ")};
    return rings;
}

size_t rtscope_event_rules_contexts(const struct rtscope_event_rules *rules, char *names,
                                    size_t room)
{
    static const char word[] = "!app-context ";
    size_t used = 0;
    for (size_t at = 0; at < rules->length; at += strlen(rules->patterns + at) + 1) {
        const char *const line = rules->patterns + at;
        const char *const name = line + sizeof word - 1;
        if (strncmp(line, word, sizeof word - 1) != 0 || strlen(name) >= room - used)
            continue;
        used += (size_t)(stpcpy(names + used, name) - (names + used)) + 1;
    }
    return used;
}

unsigned rtscope_event_rules_overwrite(const struct rtscope_event_rules *rules)
{
    struct line line = {NULL, 0};
    unsigned sets = 0;
    while (next_line(rules, &line))
        if (line.set >= 0 && strcmp(line.text, "!overwrite") == 0)
            sets |= 1u << line.set;
    return sets;
}
