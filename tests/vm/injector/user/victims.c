/* Periodic tasks: one that does all right, and two that harm themselves. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab.h"

#define PAGE_BYTES 4096

/* Work of one activation; the truth about it is logged by the caller. */
typedef void (*work_t)(const struct options *options, void *state);

static void periodic(const char *kind, const struct options *options, work_t work, void *state)
{
	uint64_t expiry_ns = (now_ns() / options->period_ns + 2) * options->period_ns;

	for (unsigned int i = 0; i < options->count; i++) {
		uint64_t begin_ns;

		sleep_until_ns(expiry_ns);
		begin_ns = now_ns();
		if (work) {
			work(options, state);
			truth_add(kind, options->name, options->cpu, begin_ns, now_ns());
		} else {
			/* What a victim suffers: from the expiry of its timer to its own run. */
			truth_add(kind, options->name, options->cpu, expiry_ns, begin_ns);
		}
		/* What was missed is missed; the grid stays. */
		while (expiry_ns <= now_ns())
			expiry_ns += options->period_ns;
	}
}

void run_victim(const char *kind, const struct options *options)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("cannot lock the memory", errno);
	place(options->cpu, options->priority);
	periodic(kind, options, NULL, NULL);
}

static void touch(const struct options *options, void *state)
{
	volatile char *pages = state;

	for (size_t at = 0; at < options->bytes; at += PAGE_BYTES)
		pages[at] = 1;
	/* They are gone again before the next activation. */
	if (madvise(state, options->bytes, MADV_DONTNEED))
		fail("cannot give the pages back", errno);
}

void run_pages(const char *kind, const struct options *options)
{
	void *pages = mmap(NULL, options->bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		fail("cannot map pages", errno);
	place(options->cpu, options->priority);
	periodic(kind, options, touch, pages);
}

struct sink {
	int file;
	char *data;
};

static void store(const struct options *options, void *state)
{
	const struct sink *sink = state;

	if (pwrite(sink->file, sink->data, options->bytes, 0) != (ssize_t)options->bytes)
		fail("cannot write the file", errno);
	if (fdatasync(sink->file) && errno != EINVAL)
		fail("cannot write through", errno);
}

void run_write(const char *kind, const struct options *options)
{
	struct sink sink = {
		.file = open(options->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
		.data = calloc(1, options->bytes),
	};

	if (sink.file < 0 || !sink.data)
		fail("cannot open the file", errno);
	place(options->cpu, options->priority);
	periodic(kind, options, store, &sink);
	close(sink.file);
	free(sink.data);
}
