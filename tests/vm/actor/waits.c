/* Steps in which a task waits: for its next activation, for an instant, for another task. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "actor.h"

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};
}

void activation_end(struct player *player)
{
	if (player->due_ns)
		log_add(player, "activation", "", player->due_ns, player->begin_ns);
	player->due_ns = 0;
}

/* Sleeps for the period, from now on; the instant at which that is over. */
static uint64_t sleep_for(uint64_t period_ns)
{
	struct timespec length = timespec_of(period_ns);
	uint64_t due_ns = now_ns() + period_ns;

	nanosleep(&length, NULL);
	return due_ns;
}

static uint64_t wait_poll(uint64_t period_ns)
{
	uint64_t due_ns = now_ns() + period_ns;

	poll(NULL, 0, (int)(period_ns / 1000000));
	return due_ns;
}

static void wait_futex(uint64_t until_ns)
{
	struct timespec until = timespec_of(until_ns);
	int word = 0;

	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &until, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

/* The clock that can be set; what is due is told by the one that cannot. */
static void wait_wall(uint64_t until_ns)
{
	struct timespec wall;
	uint64_t ns = now_ns();

	clock_gettime(CLOCK_REALTIME, &wall);
	wall = timespec_of((uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec +
			   (until_ns > ns ? until_ns - ns : 0));
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &wall, NULL);
}

static void every(struct player *player, const struct step *step)
{
	uint64_t period_ns = step->duration_ns, due_ns;
	const char *kind = step->word[0];

	activation_end(player);
	if (!player->next_ns) {
		player->next_ns = player->shared->start_ns + 2 * period_ns;
		/* On a busy machine it has its name and its policy late: it is due once it sleeps. */
		while (player->next_ns < now_ns() + period_ns / 2)
			player->next_ns += period_ns;
	}
	due_ns = player->next_ns;
	if (!strcmp(kind, "timerfd") || !strcmp(kind, "epoll")) {
		due_ns = wait_timerfd(player, period_ns, *kind == 'e');
	} else if (!strcmp(kind, "signal")) {
		due_ns = wait_signal(player, period_ns);
	} else if (!strcmp(kind, "rel")) {
		due_ns = sleep_for(period_ns);
	} else if (!strcmp(kind, "poll")) {
		due_ns = wait_poll(period_ns);
	} else {
		/* What was missed is missed with `skip`, and made up for with the others. */
		while (!strcmp(kind, "skip") && player->next_ns <= now_ns())
			player->next_ns += period_ns;
		due_ns = player->next_ns;
		player->next_ns += period_ns;
		if (!strcmp(kind, "futex"))
			wait_futex(due_ns);
		else if (!strcmp(kind, "wall"))
			wait_wall(due_ns);
		else
			sleep_until_ns(due_ns);
	}
	player->begin_ns = now_ns();
	player->due_ns = due_ns;
}

static void at(struct player *player, const struct step *step)
{
	activation_end(player);
	sleep_until_ns(player->shared->start_ns + step->duration_ns);
}

static void pause_for(struct player *player, const struct step *step)
{
	activation_end(player);
	sleep_until_ns(now_ns() + step->duration_ns);
}

static void futex(_Atomic int *word, int operation, int value)
{
	syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void post(struct player *player, const struct step *step)
{
	int place = thing_find(player->scenario, step->word[0]);
	const char *kind = player->scenario->things[place].kind;
	struct shared *shared = player->shared;
	uint64_t one = 1;

	shared->posted_ns[place] = now_ns();
	if (!strcmp(kind, "futex")) {
		shared->words[place] = 1;
		futex(&shared->words[place], FUTEX_WAKE, 1);
	} else if (!strcmp(kind, "signal")) {
		if (shared->words[place])
			syscall(SYS_tkill, shared->words[place], SIGRTMIN);
	} else if (write(shared->files[place][1], &one, sizeof(one)) < 0) {
		fail("cannot post to", step->word[0], errno);
	}
}

/* Waits for the next post; the work since then is an activation that was due at it. */
static void take(struct player *player, const struct step *step)
{
	int place = thing_find(player->scenario, step->word[0]);
	const char *kind = player->scenario->things[place].kind;
	struct shared *shared = player->shared;
	uint64_t value;

	activation_end(player);
	if (!strcmp(kind, "futex")) {
		while (!shared->words[place])
			futex(&shared->words[place], FUTEX_WAIT, 0);
		shared->words[place] = 0;
	} else if (!strcmp(kind, "signal")) {
		sigset_t signals;
		int signal;

		sigemptyset(&signals);
		sigaddset(&signals, SIGRTMIN);
		shared->words[place] = (int)syscall(SYS_gettid);
		sigwait(&signals, &signal);
	} else if (read(shared->files[place][0], &value, sizeof(value)) < 0) {
		fail("cannot take from", step->word[0], errno);
	}
	player->begin_ns = now_ns();
	player->due_ns = shared->posted_ns[place];
}

const struct verb wait_verbs[] = {
	{ "every", "wd", every },  { "at", "d", at },       { "sleep", "d", pause_for },
	{ "post", "w", post },     { "take", "w", take },   { NULL, NULL, NULL },
};
