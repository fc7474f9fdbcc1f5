/* Faults of user space with a known truth: what the parts of the program share. */
#ifndef LAB_H
#define LAB_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* What the command line asks for; not every fault uses all. */
struct options {
	int cpu;             /* where everything runs */
	int priority;        /* SCHED_FIFO, or 0 for SCHED_OTHER */
	uint64_t length_ns;  /* of one fault */
	uint64_t gap_ns;     /* between the end of a fault and the next */
	uint64_t period_ns;  /* of a periodic victim; its activations are at multiples of it */
	uint64_t lead_ns;    /* begin so long before a multiple of the period; 0: at once */
	unsigned int count;  /* faults, or activations of a victim */
	size_t bytes;        /* touched or written in each activation */
	const char *file;    /* written to; a client's: the server's address */
	const char *mutex;   /* "plain" or "pi" */
	const char *policy;  /* of a hog: "fifo" or "rr" */
	const char *name;    /* of the process; the kind's name when not given */
	const char *fault;   /* for the kernel module: `KIND FUNCTION` */
	const char *source;  /* of activations: "clock", "device" or "cpuN", a thread there */
	char **command;      /* what follows the options: a program and its arguments */
	const char *cgroup;  /* below the root of cgroup2, to live in; empty for none */
};

/* Set by SIGTERM: a victim ends its loop and prints its truth. */
extern volatile sig_atomic_t stopping;

/* CLOCK_MONOTONIC, as the kernel's trace clock `mono` and the kernel module use it. */
uint64_t now_ns(void);
void sleep_until_ns(uint64_t when_ns);
/* Burns the CPU for so long by the clock, however often it is preempted. */
void burn_until_ns(uint64_t when_ns);
/* Burns so much CPU time of this thread. */
void burn_cpu_ns(uint64_t length_ns);

/* Moves this thread to `cpu` and to SCHED_FIFO `priority`; ends the program when it may not. */
void place(int cpu, int priority);
/* Starts a thread that no signal interrupts;. */
pthread_t start(void *(*body)(void *state), void *state);
/* Moves this process into a control group that exists. */
void enter_cgroup(const char *cgroup);
/* Keeps a line of truth; it is printed at the end, when it can disturb nothing. */
void truth_add(const char *kind, const char *name, int cpu, uint64_t begin_ns, uint64_t end_ns);
void truth_print(void);
/* Prints what failed and ends the program. */
_Noreturn void fail(const char *what, int error);

/* The next instant that lies `lead_ns` before a multiple of the period, at least a few
 * milliseconds ahead. */
uint64_t aligned_ns(const struct options *options);

void run_kernel(const char *kind, const struct options *options);
void run_hog(const char *kind, const struct options *options);
void run_two(const char *kind, const struct options *options);
void run_bandwidth(const char *kind, const struct options *options);
void run_quota(const char *kind, const struct options *options);
void run_inversion(const char *kind, const struct options *options);
void run_victim(const char *kind, const struct options *options);
void run_pages(const char *kind, const struct options *options);
void run_write(const char *kind, const struct options *options);
void run_client(const char *kind, const struct options *options);
void run_logged(const char *kind, const struct options *options);

#endif
