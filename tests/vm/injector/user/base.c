/* Time, placement and the log of truth. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lab.h"

#define TRUTHS_MAX 65536

struct truth {
	const char *kind;
	const char *name;
	int cpu;
	uint64_t begin_ns;
	uint64_t end_ns;
};

static struct truth truths[TRUTHS_MAX];
static size_t truths_count;
static pthread_mutex_t truths_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t read_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

volatile sig_atomic_t stopping;

uint64_t now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

void sleep_until_ns(uint64_t when_ns)
{
	struct timespec when = {
		.tv_sec = (time_t)(when_ns / 1000000000u),
		.tv_nsec = (long)(when_ns % 1000000000u),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR && !stopping)
		;
}

void burn_until_ns(uint64_t when_ns)
{
	while (now_ns() < when_ns)
		;
}

void burn_cpu_ns(uint64_t length_ns)
{
	uint64_t until_ns = read_ns(CLOCK_THREAD_CPUTIME_ID) + length_ns;

	while (read_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		;
}

/* Time to get from here into the sleep, on the slowest of the emulated machines. */
#define AHEAD_NS 3000000

uint64_t aligned_ns(const struct options *options)
{
	uint64_t at_ns = (now_ns() / options->period_ns + 1) * options->period_ns;

	while (at_ns < now_ns() + options->lead_ns + AHEAD_NS)
		at_ns += options->period_ns;
	return at_ns - options->lead_ns;
}

void place(int cpu, int priority)
{
	struct sched_param param = { .sched_priority = priority };
	cpu_set_t cpus;
	int error;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	error = pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (error)
		fail("cannot move to the CPU", error);
	error = pthread_setschedparam(pthread_self(), priority ? SCHED_FIFO : SCHED_OTHER, &param);
	if (error)
		fail("cannot take the priority", error);
}

pthread_t start(void *(*body)(void *state), void *state)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, body, state);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		fail("cannot start a thread", error);
	return thread;
}

void enter_cgroup(const char *cgroup)
{
	char path[128];
	int file;

	if (!*cgroup)
		return;
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", cgroup);
	file = open(path, O_WRONLY | O_CLOEXEC);
	if (file < 0 || write(file, "0", 1) != 1)
		fail("cannot enter the control group", errno);
	close(file);
}

void truth_add(const char *kind, const char *name, int cpu, uint64_t begin_ns, uint64_t end_ns)
{
	pthread_mutex_lock(&truths_lock);
	if (truths_count < TRUTHS_MAX)
		truths[truths_count++] = (struct truth){ kind, name, cpu, begin_ns, end_ns };
	pthread_mutex_unlock(&truths_lock);
}

void truth_print(void)
{
	for (size_t i = 0; i < truths_count; i++)
		printf("%s %s %d %" PRIu64 " %" PRIu64 "\n", truths[i].kind, truths[i].name,
		       truths[i].cpu, truths[i].begin_ns, truths[i].end_ns);
}

void fail(const char *what, int error)
{
	fprintf(stderr, "injector-user: %s: %s\n", what, strerror(error));
	exit(1);
}
