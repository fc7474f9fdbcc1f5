/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Contexts that applications provide themselves, as recorders want them. */
#ifndef RTSCOPE_LTTNG_UST_CONTEXTS_H
#define RTSCOPE_LTTNG_UST_CONTEXTS_H

#include <stddef.h>

/* Programs have functions of such names. */
#pragma GCC visibility push(hidden)

/* More of them are left out. */
#define CONTEXTS_MAX 8

/* One of them, there for good. */
struct app_context;
struct app_contexts {
    size_t length;
    struct app_context *all[CONTEXTS_MAX];
};

/* Those that recorders want now, each under a name of its own. */
void contexts_wanted(struct app_contexts *wanted);
/* The name of its field in events. */
const char *context_field(const struct app_context *context);
/* Appends its value in this moment, as a text; of a provider that is not there, an empty one. */
unsigned char *context_put(const struct app_context *context, void *probe, unsigned char *at,
                           size_t *room);

#pragma GCC visibility pop

#endif
