/* Faults that a task suffers from others: hogs, neighbours, limits of CPU time, and those of the
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

/* A gap between two looks at the clock from which on somebody else had the CPU. */
#define GAP_NS_MIN 30000

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

/* Its own end is no part of the fault: before that it sleeps, at least for this. */
#define END_GAP_NS 5000000
/* Round robin is FIFO with a slice; only the name in a report tells them apart. */
static void take_turns(int priority)
{
	struct sched_param param = { .sched_priority = priority };
	int error = pthread_setschedparam(pthread_self(), SCHED_RR, &param);

	if (error)
		fail("cannot take the policy", error);
}

void run_hog(const char *kind, const struct options *options)
{
	uint64_t gap_ns = options->gap_ns ? options->gap_ns : END_GAP_NS;

	place(options->cpu, options->priority);
	if (!strcmp(options->policy, "rr"))
		take_turns(options->priority);
	for (unsigned int i = 0; i < options->count; i++) {
		uint64_t begin_ns;

		if (options->lead_ns)
			sleep_until_ns(aligned_ns(options));
		begin_ns = now_ns();
		burn_until_ns(begin_ns + options->length_ns);
		truth_add(kind, options->name, options->cpu, begin_ns, now_ns());
		sleep_until_ns(now_ns() + gap_ns);
	}
}

static void *hog(void *options)
{
	run_hog("hog", options);
	return NULL;
}

/* A fault of the module, and a hog that is due in it and runs for twice as long after it. */
void run_two(const char *kind, const struct options *options)
{
	struct options hog_options = *options;
	pthread_t thread;

	(void)kind;
	hog_options.length_ns *= 2;
	hog_options.lead_ns /= 2;
	thread = start(hog, &hog_options);
	run_kernel(kind, options);
	pthread_join(thread, NULL);
}

/* Burns until `until_ns` and logs each stretch in which nobody else had the CPU, or, for `gaps`,
 * each in which somebody else or nobody had it, when it lasts a millisecond. */
static void burn_and_log(const char *kind, const struct options *options, uint64_t until_ns,
			 int gaps)
{
	uint64_t begin_ns = now_ns(), last_ns = begin_ns;

	while (last_ns < until_ns) {
		uint64_t ns = now_ns();

		if (ns - last_ns >= GAP_NS_MIN) {
			if (!gaps && last_ns - begin_ns >= 1000000)
				truth_add(kind, options->name, options->cpu, begin_ns, last_ns);
			if (gaps && ns - last_ns >= 1000000)
				truth_add(kind, options->name, options->cpu, last_ns, ns);
			begin_ns = ns;
		}
		last_ns = ns;
	}
}

static struct {
	const struct options *options;
	const char *kind;
	uint64_t until_ns;
} fair;

static void *burn_as_fair(void *unused)
{
	(void)unused;
	place(fair.options->cpu, 0);
	pthread_setname_np(pthread_self(), fair.options->name);
	burn_and_log(fair.kind, fair.options, fair.until_ns, 0);
	return NULL;
}

/* A real-time task that takes all of its CPU, and a fair one that the kernel lets in all the same:
 * its runs are the truth. The bandwidth is counted by periods of a second that begin when they
 * like: two seconds hold a whole one. */
void run_bandwidth(const char *kind, const struct options *options)
{
	uint64_t until_ns = now_ns() + options->length_ns;
	pthread_t thread;

	fair.options = options;
	fair.kind = kind;
	fair.until_ns = until_ns;
	thread = start(burn_as_fair, NULL);
	pthread_setname_np(pthread_self(), "lab-greedy");
	place(options->cpu, options->priority);
	burn_until_ns(until_ns);
	pthread_join(thread, NULL);
}

/* A fair task that uses up the quota of its control group: the gaps are the truth. */
void run_quota(const char *kind, const struct options *options)
{
	enter_cgroup(options->cgroup);
	place(options->cpu, 0);
	burn_and_log(kind, options, now_ns() + options->length_ns, 1);
}
