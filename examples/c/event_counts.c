// SPDX-License-Identifier: MIT OR Apache-2.0
// How many events of each name a trace has, and how many were lost.
// usage: event_counts TRACE [FILTER]

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rtscope.h>

static int fail(struct rtscope_error *error)
{
	fprintf(stderr, "%s\n", rtscope_error_text(error));
	rtscope_error_free(error);
	return 1;
}

static int count(struct rtscope_walk *walk, uint64_t *counts, uint64_t *lost)
{
	struct rtscope_error *error = NULL;

	for (;;) {
		struct rtscope_loss loss;
		struct rtscope_bad_bytes damage;

		switch (rtscope_next(walk, &error)) {
		case RTSCOPE_EVENT:
			counts[rtscope_class(walk)]++;
			break;
		case RTSCOPE_LOST:
			if (rtscope_lost(walk, &loss))
				*lost += loss.count;
			break;
		case RTSCOPE_DAMAGE:
			if (rtscope_damage(walk, &damage))
				fprintf(stderr, "%s at byte %" PRIu64 ": %s\n", damage.file,
					damage.offset_bytes, damage.reason);
			break;
		case RTSCOPE_END:
			return 0;
		default:
			return fail(error);
		}
	}
}

int main(int argc, char **argv)
{
	struct rtscope_select select = RTSCOPE_SELECT_INIT;
	struct rtscope_error *error = NULL;
	struct rtscope_trace *trace;
	struct rtscope_walk *walk;
	uint64_t *counts, lost = 0;
	uint32_t classes;
	int status;

	if (argc < 2) {
		fprintf(stderr, "usage: %s TRACE [FILTER]\n", argv[0]);
		return 1;
	}
	if (argc > 2)
		select.filter = argv[2];
	trace = rtscope_open((const char *const *)&argv[1], 1, NULL, &error);
	if (!trace)
		return fail(error);
	walk = rtscope_items(trace, &select, &error);
	if (!walk) {
		rtscope_close(trace);
		return fail(error);
	}
	classes = rtscope_class_count(trace);
	counts = calloc(classes ? classes : 1, sizeof(*counts));
	status = counts ? count(walk, counts, &lost) : 1;
	for (uint32_t class = 0; status == 0 && class < classes; class++)
		if (counts[class])
			printf("%8" PRIu64 "  %s\n", counts[class], rtscope_class_name(trace, class));
	if (status == 0)
		printf("%8" PRIu64 "  lost\n", lost);
	free(counts);
	rtscope_walk_free(walk);
	rtscope_close(trace);
	return status;
}
