/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* librtscope: open any trace, walk its events in time order, take them as tables, write a trace.
 *
 * Link with -lrtscope. C++ has a wrapper in rtscope.hpp; the Python package has the same calls.
 *
 * Rules
 * - A call that can fail takes a last argument `error`: null, or a place that holds null. When it
 *   fails it returns NULL or -1 and writes an error there, to be freed with rtscope_error_free;
 *   a place that holds an error keeps it, so that several calls may share one place.
 *   Other calls answer 0, -1 or NULL when there is nothing to answer, null handles included.
 * - Times are nanoseconds on the trace's clock; rtscope_wall_ns gives nanoseconds since 1970.
 * - Numbers of classes and fields are those of one open trace.
 * - Threads: a trace and a bound field may be used by many threads at once; a walk, a table and a
 *   writer by one at a time, whichever it is. Handles may be freed in any order.
 * - Texts of a handle live as long as it; those of an event until the next call of rtscope_next,
 *   rtscope_seek or rtscope_json with its walk.
 * - Structures that you fill begin with their size: start with the _INIT of their kind.
 */
#ifndef RTSCOPE_H
#define RTSCOPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compare with rtscope_abi_version(): a library of another number is not for this header. */
#define RTSCOPE_ABI_VERSION 1

int rtscope_abi_version(void);
const char *rtscope_version(void);

/* ---- errors: what failed, the value that was found, the change that fixes it ---- */

struct rtscope_error;

enum {
	RTSCOPE_NOT_FOUND = 1,
	RTSCOPE_INVALID_INPUT = 2,
	RTSCOPE_CORRUPT = 3,
	RTSCOPE_UNSUPPORTED = 4,
	RTSCOPE_PERMISSION_DENIED = 5,
	RTSCOPE_ALREADY_EXISTS = 6,
	RTSCOPE_STORAGE_FULL = 7,
	RTSCOPE_INTERRUPTED = 8,
	RTSCOPE_IO = 9,
	/* A mistake of the library; please report it. */
	RTSCOPE_INTERNAL = 100,
};

int rtscope_error_kind(const struct rtscope_error *error);
const char *rtscope_error_what(const struct rtscope_error *error);
/* NULL when there is no such part. */
const char *rtscope_error_found(const struct rtscope_error *error);
const char *rtscope_error_fix(const struct rtscope_error *error);
/* All parts, a line each. */
const char *rtscope_error_text(const struct rtscope_error *error);
void rtscope_error_free(struct rtscope_error *error);

/* ---- a trace ---- */

struct rtscope_trace;

struct rtscope_open_options {
	size_t size;
	/* To add to the wall clock. */
	int64_t clock_offset_ns;
	/* Not 0: only the time in which all streams of a trace have packets. */
	int intersection;
};

#define RTSCOPE_OPEN_OPTIONS_INIT { sizeof(struct rtscope_open_options), 0, 0 }

/* Opens one trace, or several as one on the clock of the first; options may be NULL. */
struct rtscope_trace *rtscope_open(const char *const *paths, size_t count,
				   const struct rtscope_open_options *options,
				   struct rtscope_error **error);
/* Walks, tables and fields of it go on. */
void rtscope_close(struct rtscope_trace *trace);
/* From the first packet's begin to the last one's end; 0 when nobody says. */
int rtscope_range(const struct rtscope_trace *trace, int64_t *begin_ns, int64_t *end_ns);
int64_t rtscope_wall_ns(const struct rtscope_trace *trace, int64_t time_ns);
/* "hostname", "kernel_release", "tracer_name", ...; NULL when the trace does not say. */
const char *rtscope_environment(const struct rtscope_trace *trace, const char *key);
/* Returns how many there are, and writes at most count of them. */
size_t rtscope_cpus(const struct rtscope_trace *trace, uint32_t *cpus, size_t count);

/* ---- who made tasks late ---- */

/* What is asked, as after `rtscope diagnose`; NULL asks for what that does by itself. */
struct rtscope_question {
	size_t size;
	/* Names, ids, process:NAME, rt, ... with commas between; NULL: the trace's hits, else all
	 * real-time tasks. */
	const char *tasks;
	/* Those that took longer; 0: the worst. */
	int64_t over_ns;
	/* "block" (the end of the work) or "switch-in"; NULL: "block". */
	const char *until;
	/* At most so many, the worst first; 0: all. */
	size_t worst;
	/* Only activations that end in [begin_ns, end_ns) */
	int64_t begin_ns;
	int64_t end_ns;
};

#define RTSCOPE_QUESTION_INIT { sizeof(struct rtscope_question), 0, 0, 0, 10, INT64_MIN, INT64_MAX }

/* JSON of the schema rtscope.diagnosis version 1, as from `rtscope diagnose --json`. */
char *rtscope_diagnose(const struct rtscope_trace *trace, const struct rtscope_question *question,
		       struct rtscope_error **error);
void rtscope_text_free(char *text);

/* ---- classes of events and their fields, both numbered from 0 ---- */

/* How a field is asked for. */
enum {
	RTSCOPE_UNSIGNED = 1,
	RTSCOPE_SIGNED = 2,
	RTSCOPE_FLOAT = 3,
	RTSCOPE_TEXT = 4,
	/* Arrays, structures, variants, blobs: rtscope_json, or a table. */
	RTSCOPE_OTHER = 5,
};

/* Where a field lives. */
enum {
	RTSCOPE_PAYLOAD = 1,
	RTSCOPE_EVENT_CONTEXT = 2,
	RTSCOPE_EVENT_HEADER = 3,
	RTSCOPE_STREAM_CONTEXT = 4,
	RTSCOPE_PACKET_CONTEXT = 5,
	RTSCOPE_PACKET_HEADER = 6,
};

uint32_t rtscope_class_count(const struct rtscope_trace *trace);
const char *rtscope_class_name(const struct rtscope_trace *trace, uint32_t class_number);
uint32_t rtscope_field_count(const struct rtscope_trace *trace, uint32_t class_number);
const char *rtscope_field_name(const struct rtscope_trace *trace, uint32_t class_number,
			       uint32_t field);
int rtscope_field_kind(const struct rtscope_trace *trace, uint32_t class_number, uint32_t field);
int rtscope_field_scope(const struct rtscope_trace *trace, uint32_t class_number, uint32_t field);

struct rtscope_field;

/* Binds a name once, in every class that has it: no look-up per event. */
struct rtscope_field *rtscope_bind(const struct rtscope_trace *trace, const char *name,
				   struct rtscope_error **error);
/* The same for one field of one class. */
struct rtscope_field *rtscope_bind_at(const struct rtscope_trace *trace, uint32_t class_number,
				      uint32_t field, struct rtscope_error **error);
void rtscope_field_free(struct rtscope_field *field);

/* ---- items in the order of time: events, losses, damage ---- */

struct rtscope_walk;

/* The part of a trace that is asked for; NULL is all of it. */
struct rtscope_select {
	size_t size;
	/* [begin_ns, end_ns) */
	int64_t begin_ns;
	int64_t end_ns;
	/* Only events of these CPUs; a count of 0 is all. */
	const uint32_t *cpus;
	size_t cpu_count;
	/* As in `rtscope cat --filter`; NULL is all. */
	const char *filter;
};

#define RTSCOPE_SELECT_INIT { sizeof(struct rtscope_select), INT64_MIN, INT64_MAX, NULL, 0, NULL }

/* What rtscope_next returns. */
enum {
	RTSCOPE_FAILED = -1,
	RTSCOPE_END = 0,
	RTSCOPE_EVENT = 1,
	/* Events are missing here, whatever was selected; ask rtscope_lost. */
	RTSCOPE_LOST = 2,
	/* Bytes could not be understood; ask rtscope_damage. */
	RTSCOPE_DAMAGE = 3,
};

struct rtscope_walk *rtscope_items(const struct rtscope_trace *trace,
				   const struct rtscope_select *select,
				   struct rtscope_error **error);
void rtscope_walk_free(struct rtscope_walk *walk);
/* What looks like a mistake in the filter, from number 0 to the first NULL. */
const char *rtscope_note(const struct rtscope_walk *walk, size_t number);
int rtscope_next(struct rtscope_walk *walk, struct rtscope_error **error);
/* rtscope_next then gives the first selected item at or after time_ns, forward or back. */
int rtscope_seek(struct rtscope_walk *walk, int64_t time_ns, struct rtscope_error **error);

/* Of the event that the walk stands on: */
int64_t rtscope_time_ns(const struct rtscope_walk *walk);
/* -1 when its stream has none. */
int rtscope_cpu(const struct rtscope_walk *walk);
uint32_t rtscope_class(const struct rtscope_walk *walk);

/* Not ended by a zero; data is NULL when there is no such value. */
struct rtscope_bytes {
	const char *data;
	size_t size;
};

/* RTSCOPE_UNSIGNED to RTSCOPE_OTHER when the event has the field, else 0. */
int rtscope_has(const struct rtscope_walk *walk, const struct rtscope_field *field);
/* 0, or no bytes, when the event has no such field or it is of another kind. */
int64_t rtscope_i64(const struct rtscope_walk *walk, const struct rtscope_field *field);
uint64_t rtscope_u64(const struct rtscope_walk *walk, const struct rtscope_field *field);
double rtscope_f64(const struct rtscope_walk *walk, const struct rtscope_field *field);
struct rtscope_bytes rtscope_text(const struct rtscope_walk *walk,
				  const struct rtscope_field *field);
/* Any field, on one line. */
struct rtscope_bytes rtscope_json(struct rtscope_walk *walk, const struct rtscope_field *field);

enum {
	RTSCOPE_CAUSE_UNKNOWN = 0,
	/* The tracer's buffer was full. */
	RTSCOPE_CAUSE_DISCARDED = 1,
	/* The reader was overtaken. */
	RTSCOPE_CAUSE_OVERRUN = 2,
};

struct rtscope_loss {
	int64_t begin_ns;
	int64_t end_ns;
	/* Means something only when is_counted is not 0. */
	uint64_t count;
	int is_counted;
	/* -1: not known */
	int cpu;
	int cause;
};

struct rtscope_bad_bytes {
	const char *file;
	uint64_t offset_bytes;
	const char *reason;
};

/* The last loss and the last damage; 0 when there was none. */
int rtscope_lost(const struct rtscope_walk *walk, struct rtscope_loss *loss);
int rtscope_damage(const struct rtscope_walk *walk, struct rtscope_bad_bytes *damage);

/* ---- tables: batches of columns, as Arrow's C data interface lays them out ---- */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

struct rtscope_table;

/* Columns are "time_ns", "wall_time", "cpu", "event" and fields by name (a field of one of these
 * names has a _ behind it). columns == NULL is time_ns, cpu, event and all fields of the classes
 * that the filter can want. rows_max == 0 leaves the size of batches to the library. */
struct rtscope_table *rtscope_batches(const struct rtscope_trace *trace,
				      const struct rtscope_select *select,
				      const char *const *columns, size_t count, size_t rows_max,
				      struct rtscope_error **error);
void rtscope_table_free(struct rtscope_table *table);
/* You release what these write. */
int rtscope_batch_schema(const struct rtscope_table *table, struct ArrowSchema *schema,
			 struct rtscope_error **error);
/* 1: a batch was written; 0: there are no more. */
int rtscope_batch_next(const struct rtscope_table *table, struct ArrowArray *batch,
		       struct rtscope_error **error);
/* The rest of the batches for libraries that take a stream. */
int rtscope_batch_stream(const struct rtscope_table *table, struct ArrowArrayStream *stream,
			 struct rtscope_error **error);
/* In what was read so far. */
uint64_t rtscope_batch_lost(const struct rtscope_table *table);
uint64_t rtscope_batch_damaged(const struct rtscope_table *table);

/* ---- writing a trace: declare, then write; it appears when it is finished ---- */

struct rtscope_writer;

struct rtscope_writer *rtscope_create(const char *path, struct rtscope_error **error);
/* Gives the trace its name. The writer has still to be freed. */
int rtscope_finish(struct rtscope_writer *writer, struct rtscope_error **error);
/* A trace that was not finished is removed. */
void rtscope_writer_free(struct rtscope_writer *writer);

int rtscope_add_environment(struct rtscope_writer *writer, const char *key, const char *value,
			    struct rtscope_error **error);
/* The wall clock, in nanoseconds since 1970 (UTC), at time 0. */
int rtscope_set_wall_offset_ns(struct rtscope_writer *writer, int64_t offset_ns,
			       struct rtscope_error **error);
/* "ctf1" (CTF 1.8, also without this call) or "ctf2". */
int rtscope_set_format(struct rtscope_writer *writer, const char *format,
		       struct rtscope_error **error);
/* These return numbers. */
int64_t rtscope_add_stream(struct rtscope_writer *writer, const char *name,
			   struct rtscope_error **error);
int64_t rtscope_add_class(struct rtscope_writer *writer, uint32_t stream, const char *name,
			  struct rtscope_error **error);
/* Types: u8 u16 u32 u64, i8 .. i64, x8 .. x64 (hexadecimal), f32 f64, string, any number with []
 * behind it, and labels: "u8{LOW=0..9,HIGH=10}". */
int64_t rtscope_add_field(struct rtscope_writer *writer, uint32_t class_number, const char *name,
			  const char *type, struct rtscope_error **error);

/* Fields of the next event of a class; what is not set is zero, or empty. */
int rtscope_set_i64(struct rtscope_writer *writer, uint32_t class_number, uint32_t field,
		    int64_t value, struct rtscope_error **error);
int rtscope_set_u64(struct rtscope_writer *writer, uint32_t class_number, uint32_t field,
		    uint64_t value, struct rtscope_error **error);
int rtscope_set_f64(struct rtscope_writer *writer, uint32_t class_number, uint32_t field,
		    double value, struct rtscope_error **error);
int rtscope_set_text(struct rtscope_writer *writer, uint32_t class_number, uint32_t field,
		     const void *bytes, size_t size, struct rtscope_error **error);
int rtscope_set_i64s(struct rtscope_writer *writer, uint32_t class_number, uint32_t field,
		     const int64_t *values, size_t count, struct rtscope_error **error);
int rtscope_set_u64s(struct rtscope_writer *writer, uint32_t class_number, uint32_t field,
		     const uint64_t *values, size_t count, struct rtscope_error **error);
int rtscope_set_f64s(struct rtscope_writer *writer, uint32_t class_number, uint32_t field,
		     const double *values, size_t count, struct rtscope_error **error);
/* On one stream and CPU time must not go backwards. */
int rtscope_write(struct rtscope_writer *writer, uint32_t class_number, uint32_t cpu,
		  int64_t time_ns, struct rtscope_error **error);
/* How many events were lost so far, all together: before the next event. */
int rtscope_discarded(struct rtscope_writer *writer, uint32_t stream, uint32_t cpu, uint64_t total,
		      struct rtscope_error **error);

#ifdef __cplusplus
}
#endif

#endif /* RTSCOPE_H */
