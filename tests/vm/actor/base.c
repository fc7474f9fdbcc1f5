/* Time, and the log of who did what from when to when. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "actor.h"

uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void sleep_until_ns(uint64_t when_ns)
{
	struct timespec when = {
		.tv_sec = (time_t)(when_ns / 1000000000u),
		.tv_nsec = (long)(when_ns % 1000000000u),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

bool is_over(const struct player *player)
{
	return now_ns() >= player->shared->end_ns;
}

void log_add(struct player *player, const char *what, const char *about, uint64_t due_ns,
	     uint64_t begin_ns)
{
	uint64_t end_ns = now_ns();
	int at = player->shared->entries_count++;
	struct entry *entry;

	if (at >= LOG_MAX) {
		player->shared->lost++;
		return;
	}
	entry = &player->shared->entries[at];
	entry->task = player->index;
	strncpy(entry->about, about, NAME_MAX_BYTES - 1);
	entry->due_ns = due_ns;
	entry->begin_ns = begin_ns;
	entry->end_ns = end_ns;
	entry->what = what;
}

void fail(const char *what, const char *about, int error)
{
	fprintf(stderr, "actor: %s: %s: %s\n", what, about, strerror(error));
	exit(1);
}
