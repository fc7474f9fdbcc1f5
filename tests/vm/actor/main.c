/* actor FILE: plays the scenarios of a file, one after the other, and prints what each task did:
 * `ROLE NAME TID WHAT ABOUT DUE_ns BEGIN_ns END_ns` on CLOCK_MONOTONIC. With --pulse also when the
 * machine did not run a CPU. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "actor.h"

/* It must get a CPU when a scenario ends, whatever that does. It sleeps meanwhile. */
#define PRIORITY 98

static const struct verb *find_in(const struct verb *verbs, const char *name)
{
	while (verbs->name && strcmp(verbs->name, name))
		verbs++;
	return verbs->name ? verbs : NULL;
}

const struct verb *verb_find(const char *name)
{
	const struct verb *verb = find_in(work_verbs, name);

	verb = verb ? verb : find_in(wait_verbs, name);
	return verb ? verb : find_in(machine_verbs, name);
}

int main(int argc, char **argv)
{
	struct policy policy = { .policy = SCHED_FIFO, .priority = PRIORITY };
	struct scenario *scenarios;
	sigset_t signals;
	int count;

	if (argc < 2) {
		fprintf(stderr, "usage: actor FILE [--check|--pulse]\n");
		return 1;
	}
	count = scenarios_read(argv[1], &scenarios);
	if (argc > 2 && !strcmp(argv[2], "--check"))
		return 0;
	/* What one task posts to another. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	policy_set(0, &policy);
	if (argc > 2 && !strcmp(argv[2], "--pulse"))
		pulse_start();
	for (int i = 0; i < count; i++)
		scenario_play(&scenarios[i]);
	return 0;
}
