/* Periodic tasks: one that does all right, and two that harm themselves. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab.h"

#define PAGE_BYTES 4096
/* Of the thread that wakes a victim from another CPU. */
#define WAKER_PRIORITY 90

/* Work of one activation; it logs the truth about itself. */
typedef void (*work_t)(const char *kind, const struct options *options, void *state);

/* What wakes the victim at `expiry_ns`, or at an instant of its own choice, which it returns. */
typedef uint64_t (*wait_t)(uint64_t expiry_ns);

static uint64_t wait_clock(uint64_t expiry_ns)
{
	sleep_until_ns(expiry_ns);
	return expiry_ns;
}

static int tick = -1;

/* The module's interrupt thread wakes us, and says when its timer was due. */
static uint64_t wait_device(uint64_t expiry_ns)
{
	uint64_t due_ns;

	if (read(tick, &due_ns, sizeof(due_ns)) == (ssize_t)sizeof(due_ns))
		return due_ns;
	if (!stopping)
		fail("cannot read /dev/rtscope-tick", errno);
	return expiry_ns;
}

static struct {
	sem_t due;
	uint64_t period_ns;
	int cpu;
	volatile uint64_t expiry_ns;
} waker;

static void *wake_from_afar(void *unused)
{
	uint64_t expiry_ns = (now_ns() / waker.period_ns + 2) * waker.period_ns;

	(void)unused;
	place(waker.cpu, WAKER_PRIORITY);
	pthread_setname_np(pthread_self(), "lab-waker");
	for (;; expiry_ns += waker.period_ns) {
		sleep_until_ns(expiry_ns);
		waker.expiry_ns = expiry_ns;
		sem_post(&waker.due);
	}
	return NULL;
}

static uint64_t wait_waker(uint64_t expiry_ns)
{
	if (sem_wait(&waker.due) == 0)
		return waker.expiry_ns;
	return expiry_ns;
}

static wait_t source(const struct options *options)
{
	char arm[64];
	int length;

	if (!strncmp(options->source, "cpu", 3)) {
		waker.cpu = atoi(options->source + 3);
		waker.period_ns = options->period_ns;
		sem_init(&waker.due, 0, 0);
		start(wake_from_afar, NULL);
		return wait_waker;
	}
	if (strcmp(options->source, "device"))
		return wait_clock;
	tick = open("/dev/rtscope-tick", O_RDWR | O_CLOEXEC);
	length = snprintf(arm, sizeof(arm), "%" PRIu64 " %d", options->period_ns / 1000,
			  options->cpu);
	if (tick < 0 || write(tick, arm, (size_t)length) != length)
		fail("cannot arm /dev/rtscope-tick", errno);
	return wait_device;
}

static void periodic(const char *kind, const struct options *options, work_t work, void *state)
{
	uint64_t expiry_ns = (now_ns() / options->period_ns + 2) * options->period_ns;
	wait_t wait = source(options);

	place(options->cpu, options->priority);
	for (unsigned int i = 0; i < options->count && !stopping; i++) {
		uint64_t due_ns = wait(expiry_ns);

		if (work)
			work(kind, options, state);
		else if (!stopping)
			/* What a victim suffers: from the expiry of its timer to its own run. */
			truth_add(kind, options->name, options->cpu, due_ns, now_ns());
		/* What was missed is missed; the grid stays. */
		while (expiry_ns <= now_ns())
			expiry_ns += options->period_ns;
	}
}

void run_victim(const char *kind, const struct options *options)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("cannot lock the memory", errno);
	enter_cgroup(options->cgroup);
	periodic(kind, options, NULL, NULL);
}

static void touch(const char *kind, const struct options *options, void *state)
{
	volatile char *pages = state;
	uint64_t begin_ns = now_ns();

	for (size_t at = 0; at < options->bytes; at += PAGE_BYTES)
		pages[at] = 1;
	/* They are gone again before the next activation; that is its own work too. */
	if (madvise(state, options->bytes, MADV_DONTNEED))
		fail("cannot give the pages back", errno);
	truth_add(kind, options->name, options->cpu, begin_ns, now_ns());
}

void run_pages(const char *kind, const struct options *options)
{
	void *pages = mmap(NULL, options->bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		fail("cannot map pages", errno);
	periodic(kind, options, touch, pages);
}

struct sink {
	int file;
	char *data;
};

static void store(const char *kind, const struct options *options, void *state)
{
	const struct sink *sink = state;
	uint64_t begin_ns = now_ns();

	if (pwrite(sink->file, sink->data, options->bytes, 0) != (ssize_t)options->bytes)
		fail("cannot write the file", errno);
	if (fdatasync(sink->file) && errno != EINVAL)
		fail("cannot write through", errno);
	truth_add(kind, options->name, options->cpu, begin_ns, now_ns());
}

void run_write(const char *kind, const struct options *options)
{
	struct sink sink = {
		.file = open(options->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
		.data = aligned_alloc(PAGE_BYTES, options->bytes),
	};

	if (sink.file < 0 || !sink.data)
		fail("cannot open the file", errno);
	memset(sink.data, 0, options->bytes);
	periodic(kind, options, store, &sink);
	close(sink.file);
	free(sink.data);
}
