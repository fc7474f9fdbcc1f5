/* A thread on each CPU that nothing goes ahead of, and that notes when it was late: then the
 * machine did not run that CPU, or the kernel did not let anybody on it. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "actor.h"

#define PERIOD_NS 5000000
/* Less than this is an emulator's own way. */
#define LATE_NS_MIN 2000000
#define PRIORITY 99
#define CPUS_MAX 8
#define LATE_MAX 4096

static struct pulse {
	int cpu;
	/* Written by its thread alone; what is below the count stays as it is. */
	_Atomic int count;
	int printed;
	uint64_t due_ns[LATE_MAX], end_ns[LATE_MAX];
} pulses[CPUS_MAX];

static void *beat(void *argument)
{
	struct policy policy = { .policy = SCHED_FIFO, .priority = PRIORITY };
	struct pulse *pulse = argument;
	uint64_t due_ns = now_ns();
	char name[16];
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(pulse->cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	snprintf(name, sizeof(name), "pulse/%d", pulse->cpu);
	prctl(PR_SET_NAME, name);
	policy_set(0, &policy);
	for (;;) {
		uint64_t end_ns;

		due_ns += PERIOD_NS;
		sleep_until_ns(due_ns);
		end_ns = now_ns();
		if (end_ns - due_ns < LATE_NS_MIN)
			continue;
		if (pulse->count < LATE_MAX) {
			pulse->due_ns[pulse->count] = due_ns;
			pulse->end_ns[pulse->count] = end_ns;
			pulse->count++;
		}
		due_ns = end_ns;
	}
	return NULL;
}

void pulse_start(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	for (int cpu = 0; cpu < count && cpu < CPUS_MAX; cpu++) {
		pthread_t thread;

		pulses[cpu].cpu = cpu;
		if (pthread_create(&thread, NULL, beat, &pulses[cpu]))
			fail("cannot start", "the pulse", errno);
	}
}

void pulse_print(void)
{
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		struct pulse *pulse = &pulses[cpu];

		for (; pulse->printed < pulse->count; pulse->printed++) {
			uint64_t due_ns = pulse->due_ns[pulse->printed];

			printf("machine pulse/%d 0 late - %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cpu,
			       due_ns, due_ns, pulse->end_ns[pulse->printed]);
		}
	}
}
