/* Priority inversion: a periodic victim shares a lock with a task of a lower priority, and a third
 * task, of a priority in between, takes the CPU. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "lab.h"

/* Priorities below the victim's. */
#define MIDDLE 10
#define LOW 20
/* One activation of so many finds the lock taken. */
#define EVERY 8
/* The middle task begins so long after the victim. */
#define MIDDLE_LAG_NS 1000000

static struct {
	const struct options *options;
	const char *kind;
	pthread_mutex_t mutex;
	sem_t low_begins;
	sem_t middle_begins;
	uint64_t expiry_ns;
} shared;

/* Holds the lock for `length_ns` of its own CPU time, from `lead_ns` before the victim comes. */
static void *low(void *unused)
{
	const struct options *options = shared.options;

	(void)unused;
	place(options->cpu, options->priority - LOW);
	pthread_setname_np(pthread_self(), "lab-low");
	for (;;) {
		uint64_t begin_ns;

		sem_wait(&shared.low_begins);
		sleep_until_ns(shared.expiry_ns - options->lead_ns);
		pthread_mutex_lock(&shared.mutex);
		begin_ns = now_ns();
		burn_cpu_ns(options->length_ns);
		truth_add("low", "lab-low", options->cpu, begin_ns, now_ns());
		pthread_mutex_unlock(&shared.mutex);
	}
	return NULL;
}

static void *middle(void *unused)
{
	const struct options *options = shared.options;

	(void)unused;
	place(options->cpu, options->priority - MIDDLE);
	pthread_setname_np(pthread_self(), "lab-middle");
	for (;;) {
		uint64_t begin_ns;

		sem_wait(&shared.middle_begins);
		sleep_until_ns(shared.expiry_ns + MIDDLE_LAG_NS);
		begin_ns = now_ns();
		burn_cpu_ns(options->length_ns * 2);
		truth_add("middle", "lab-middle", options->cpu, begin_ns, now_ns());
	}
	return NULL;
}

static void make_mutex(const char *protocol)
{
	pthread_mutexattr_t attr;
	int pi = strcmp(protocol, "pi") == 0;
	int error;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, pi ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
	error = pthread_mutex_init(&shared.mutex, &attr);
	if (error)
		fail("cannot make the mutex", error);
}

/* The victim is this thread; what it suffers from the lock is logged as the kind. */
void run_inversion(const char *kind, const struct options *options)
{
	uint64_t expiry_ns = (now_ns() / options->period_ns + 2) * options->period_ns;

	shared.options = options;
	make_mutex(options->mutex);
	sem_init(&shared.low_begins, 0, 0);
	sem_init(&shared.middle_begins, 0, 0);
	start(low, NULL);
	start(middle, NULL);
	place(options->cpu, options->priority);
	for (unsigned int i = 0; i < options->count && !stopping; i++) {
		uint64_t begin_ns;

		sleep_until_ns(expiry_ns);
		begin_ns = now_ns();
		pthread_mutex_lock(&shared.mutex);
		truth_add(kind, options->name, options->cpu, begin_ns, now_ns());
		pthread_mutex_unlock(&shared.mutex);
		while (expiry_ns <= now_ns())
			expiry_ns += options->period_ns;
		if (i % EVERY == EVERY - 1) {
			/* Far enough ahead for both to be asleep by then. */
			expiry_ns += options->period_ns;
			shared.expiry_ns = expiry_ns;
			sem_post(&shared.low_begins);
			sem_post(&shared.middle_begins);
		}
	}
}
