/* injector-user KIND OPTIONS: makes a fault of user space and prints the truth about it, a line
 * `KIND NAME CPU BEGIN_ns END_ns` each. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

static const struct {
	const char *name;
	void (*run)(const char *kind, const struct options *options);
} kinds[] = {
	{ "kernel", run_kernel },       { "hog", run_hog },       { "neighbour", run_hog },
	{ "inversion", run_inversion }, { "victim", run_victim }, { "pages", run_pages },
	{ "write", run_write },         { "two", run_two },       { "bandwidth", run_bandwidth },
	{ "quota", run_quota },         { "client", run_client }, { "logged", run_logged },
};

static uint64_t number(const char *name, const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end) {
		fprintf(stderr, "injector-user: --%s wants a number, not '%s'\n", name, text);
		exit(1);
	}
	return value;
}

static void set(struct options *options, const char *name, const char *value)
{
	if (!strcmp(name, "file"))
		options->file = value;
	else if (!strcmp(name, "mutex"))
		options->mutex = value;
	else if (!strcmp(name, "name"))
		options->name = value;
	else if (!strcmp(name, "policy"))
		options->policy = value;
	else if (!strcmp(name, "fault"))
		options->fault = value;
	else if (!strcmp(name, "source"))
		options->source = value;
	else if (!strcmp(name, "cgroup"))
		options->cgroup = value;
	else if (!strcmp(name, "cpu"))
		options->cpu = (int)number(name, value);
	else if (!strcmp(name, "prio"))
		options->priority = (int)number(name, value);
	else if (!strcmp(name, "count"))
		options->count = (unsigned int)number(name, value);
	else if (!strcmp(name, "bytes"))
		options->bytes = number(name, value);
	else if (!strcmp(name, "length"))
		options->length_ns = number(name, value) * 1000;
	else if (!strcmp(name, "gap"))
		options->gap_ns = number(name, value) * 1000;
	else if (!strcmp(name, "lead"))
		options->lead_ns = number(name, value) * 1000;
	else if (!strcmp(name, "period"))
		options->period_ns = number(name, value) * 1000;
}

static void parse(struct options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{ "cpu", 1, NULL, 0 },    { "prio", 1, NULL, 0 },  { "length", 1, NULL, 0 },
		{ "gap", 1, NULL, 0 },    { "count", 1, NULL, 0 }, { "period", 1, NULL, 0 },
		{ "bytes", 1, NULL, 0 },  { "file", 1, NULL, 0 },  { "mutex", 1, NULL, 0 },
		{ "name", 1, NULL, 0 },   { "lead", 1, NULL, 0 },  { "fault", 1, NULL, 0 },
		{ "source", 1, NULL, 0 }, { "cgroup", 1, NULL, 0 }, { "policy", 1, NULL, 0 },
		{ NULL, 0, NULL, 0 },
	};
	int index, found;

	while ((found = getopt_long(argc, argv, "", known, &index)) != -1) {
		if (found)
			exit(1); /* getopt has said why */
		set(options, known[index].name, optarg);
	}
	options->command = argv + optind;
}

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

int main(int argc, char **argv)
{
	struct options options = {
		.count = 1,
		.length_ns = 1000000,
		.period_ns = 10000000,
		.bytes = 4096,
		.file = "injected",
		.mutex = "plain",
		.policy = "fifo",
		.fault = "",
		.source = "clock",
		.cgroup = "",
	};
	const char *kind = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kind, kinds[i].name))
			continue;
		options.name = kinds[i].name;
		parse(&options, argc - 1, argv + 1);
		/* What follows in a log is split at spaces. */
		if (strchr(options.name, ' '))
			fail("--name may hold no space", EINVAL);
		pthread_setname_np(pthread_self(), options.name);
		/* Without SA_RESTART: it ends every wait. */
		sigaction(SIGTERM, &(struct sigaction){ .sa_handler = stop }, NULL);
		kinds[i].run(kinds[i].name, &options);
		truth_print();
		return 0;
	}
	fprintf(stderr, "usage: injector-user KIND [--cpu N] [--length US] … [-- COMMAND]\n");
	return 1;
}
