// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes a small trace with all types of fields.
// usage: write_trace NEW-DIRECTORY

#include <stdio.h>
#include <string.h>

#include <rtscope.h>

static int fail(struct rtscope_writer *writer, struct rtscope_error *error)
{
	fprintf(stderr, "%s\n", rtscope_error_text(error));
	rtscope_error_free(error);
	rtscope_writer_free(writer);
	return 1;
}

int main(int argc, char **argv)
{
	static const char *const users[] = { "ann", "bob", "eve" };
	struct rtscope_error *error = NULL;
	struct rtscope_writer *writer;
	int64_t stream, request, id, user, sizes;

	if (argc != 2) {
		fprintf(stderr, "usage: %s NEW-DIRECTORY\n", argv[0]);
		return 1;
	}
	writer = rtscope_create(argv[1], &error);
	if (!writer)
		return fail(writer, error);
	rtscope_add_environment(writer, "hostname", "example", &error);
	stream = rtscope_add_stream(writer, "app", &error);
	request = rtscope_add_class(writer, (uint32_t)stream, "app:request", &error);
	id = rtscope_add_field(writer, (uint32_t)request, "id", "u32", &error);
	user = rtscope_add_field(writer, (uint32_t)request, "user", "string", &error);
	sizes = rtscope_add_field(writer, (uint32_t)request, "sizes", "u16[]", &error);
	/* Numbers are -1 after an error, and what uses them fails too: one look is enough. */
	if (error)
		return fail(writer, error);
	for (uint32_t n = 0; n < 10; n++) {
		const char *name = users[n % 3];
		uint64_t numbers[] = { n, n * 10 };
		int status = 0;

		status |= rtscope_set_u64(writer, (uint32_t)request, (uint32_t)id, n, &error);
		status |= rtscope_set_text(writer, (uint32_t)request, (uint32_t)user, name,
					   strlen(name), &error);
		status |= rtscope_set_u64s(writer, (uint32_t)request, (uint32_t)sizes, numbers,
					   n % 3, &error);
		status |= rtscope_write(writer, (uint32_t)request, n % 2, 1000 * (int64_t)n, &error);
		if (status)
			return fail(writer, error);
	}
	if (rtscope_finish(writer, &error) < 0)
		return fail(writer, error);
	rtscope_writer_free(writer);
	return 0;
}
