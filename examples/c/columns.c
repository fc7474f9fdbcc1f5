// SPDX-License-Identifier: MIT OR Apache-2.0
// Sums a column of a trace in batches: no call per event.
// usage: columns TRACE COLUMN

#include <inttypes.h>
#include <stdio.h>

#include <rtscope.h>

static int fail(struct rtscope_error *error)
{
	fprintf(stderr, "%s\n", rtscope_error_text(error));
	rtscope_error_free(error);
	return 1;
}

static int is_there(const struct ArrowArray *column, int64_t row)
{
	const uint8_t *valid = column->buffers[0];

	return !valid || (valid[row / 8] >> (row % 8) & 1);
}

/* "I" is uint32 in Arrow's letters, "i" int32, "l" int64, "g" double. */
static double value(const struct ArrowArray *column, char format, int64_t row)
{
	switch (format) {
	case 'I':
		return ((const uint32_t *)column->buffers[1])[row];
	case 'i':
		return ((const int32_t *)column->buffers[1])[row];
	case 's':
		return ((const int16_t *)column->buffers[1])[row];
	case 'l':
		return (double)((const int64_t *)column->buffers[1])[row];
	case 'g':
		return ((const double *)column->buffers[1])[row];
	default:
		return 0;
	}
}

int main(int argc, char **argv)
{
	struct rtscope_error *error = NULL;
	struct rtscope_trace *trace;
	struct rtscope_table *table;
	struct ArrowSchema schema;
	struct ArrowArray batch;
	int64_t rows = 0, values = 0;
	double sum = 0;
	int more;

	if (argc != 3) {
		fprintf(stderr, "usage: %s TRACE COLUMN\n", argv[0]);
		return 1;
	}
	trace = rtscope_open((const char *const *)&argv[1], 1, NULL, &error);
	if (!trace)
		return fail(error);
	table = rtscope_batches(trace, NULL, (const char *const *)&argv[2], 1, 100, &error);
	rtscope_close(trace);
	if (!table)
		return fail(error);
	if (rtscope_batch_schema(table, &schema, &error) < 0)
		return fail(error);
	while ((more = rtscope_batch_next(table, &batch, &error)) == 1) {
		const struct ArrowArray *column = batch.children[0];

		for (int64_t row = 0; row < column->length; row++) {
			if (!is_there(column, row))
				continue;
			sum += value(column, schema.children[0]->format[0], row);
			values++;
		}
		rows += batch.length;
		batch.release(&batch);
	}
	if (more < 0)
		return fail(error);
	printf("%s (%s): %" PRId64 " of %" PRId64 " events have it, sum %g, %" PRIu64 " lost\n",
	       schema.children[0]->name, schema.children[0]->format, values, rows, sum,
	       rtscope_batch_lost(table));
	schema.release(&schema);
	rtscope_table_free(table);
	return 0;
}
