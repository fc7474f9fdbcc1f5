/* Faults that a task suffers from others: hogs, neighbours, priority inversion, and those of the
 * kernel module at an instant of our choice. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lab.h"

/* Priorities of the three threads of an inversion, above the one asked for. */
#define LOW 0
#define MIDDLE 10
#define HIGH 20

/* The module logs the truth; here is nothing to add. */
void run_kernel(const char *kind, const struct options *options)
{
	int device = open("/dev/rtscope-inject", O_WRONLY | O_CLOEXEC);

	(void)kind;
	if (device < 0)
		fail("cannot open /dev/rtscope-inject", errno);
	for (unsigned int i = 0; i < options->count; i++) {
		char line[128];
		int length = snprintf(line, sizeof(line), "%s %" PRIu64 " %d %" PRIu64,
				      options->fault, options->length_ns / 1000, options->cpu,
				      options->lead_ns ? aligned_ns(options) : 0);

		if (length >= (int)sizeof(line) || write(device, line, (size_t)length) != length)
			fail("the module refuses the fault", errno);
		sleep_until_ns(now_ns() + options->gap_ns);
	}
	close(device);
}

void run_hog(const char *kind, const struct options *options)
{
	place(options->cpu, options->priority);
	for (unsigned int i = 0; i < options->count; i++) {
		uint64_t begin_ns;

		if (options->lead_ns)
			sleep_until_ns(aligned_ns(options));
		begin_ns = now_ns();
		burn_until_ns(begin_ns + options->length_ns);
		truth_add(kind, options->name, options->cpu, begin_ns, now_ns());
		sleep_until_ns(now_ns() + options->gap_ns);
	}
}

static struct {
	const struct options *options;
	pthread_mutex_t mutex;
	pthread_barrier_t locked;
	uint64_t start_ns;
} inversion;

static void *low(void *kind)
{
	const struct options *options = inversion.options;
	uint64_t begin_ns;

	place(options->cpu, options->priority + LOW);
	pthread_setname_np(pthread_self(), "lab-low");
	pthread_mutex_lock(&inversion.mutex);
	begin_ns = now_ns();
	inversion.start_ns = begin_ns + 2000000;
	pthread_barrier_wait(&inversion.locked);
	burn_cpu_ns(options->length_ns);
	truth_add(kind, "lab-low", options->cpu, begin_ns, now_ns());
	pthread_mutex_unlock(&inversion.mutex);
	return NULL;
}

static void *middle(void *kind)
{
	const struct options *options = inversion.options;
	uint64_t begin_ns;

	place(options->cpu, options->priority + MIDDLE);
	pthread_setname_np(pthread_self(), "lab-middle");
	pthread_barrier_wait(&inversion.locked);
	/* After `high` has begun to wait. */
	sleep_until_ns(inversion.start_ns + 1000000);
	begin_ns = now_ns();
	burn_cpu_ns(options->length_ns);
	truth_add(kind, "lab-middle", options->cpu, begin_ns, now_ns());
	return NULL;
}

static void *high(void *kind)
{
	const struct options *options = inversion.options;
	uint64_t begin_ns;

	place(options->cpu, options->priority + HIGH);
	pthread_setname_np(pthread_self(), "lab-high");
	pthread_barrier_wait(&inversion.locked);
	sleep_until_ns(inversion.start_ns);
	begin_ns = now_ns();
	pthread_mutex_lock(&inversion.mutex);
	truth_add(kind, "lab-high", options->cpu, begin_ns, now_ns());
	pthread_mutex_unlock(&inversion.mutex);
	return NULL;
}

void run_inversion(const char *kind, const struct options *options)
{
	void *(*const bodies[])(void *) = { low, middle, high };
	int pi = strcmp(options->mutex, "pi") == 0;
	pthread_t threads[3];
	pthread_mutexattr_t attr;
	int error;

	inversion.options = options;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, pi ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
	error = pthread_mutex_init(&inversion.mutex, &attr);
	if (error)
		fail("cannot make the mutex", error);
	pthread_barrier_init(&inversion.locked, NULL, 3);
	for (int i = 0; i < 3; i++) {
		error = pthread_create(&threads[i], NULL, bodies[i], (void *)kind);
		if (error)
			fail("cannot start a thread", error);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}
