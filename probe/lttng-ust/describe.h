/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A provider's event as the probe describes it, and how its record is made. */
#ifndef RTSCOPE_LTTNG_UST_DESCRIBE_H
#define RTSCOPE_LTTNG_UST_DESCRIBE_H

#include "abi.h"
#include "contexts.h"

#include <rtscope/detail/record.h>

/* Programs have functions of such names. */
#pragma GCC visibility push(hidden)

/* What the provider's function hands over next, and what becomes of it. */
enum step_kind {
    /* So many bytes, as they are. */
    STEP_BYTES,
    /* A count, which elements or a text follow: they bring it along. */
    STEP_LENGTH,
    /* Elements of so many bytes each. */
    STEP_ELEMENTS,
    STEP_TEXT,
};
struct step {
    int kind;
    uint32_t bytes;
};

struct described {
    /* As the probe takes it; allocated, also where it is refused. */
    char *text;
    uint32_t text_bytes;
    struct step *steps;
    uint32_t steps_length;
    /* Of what does not vary. */
    uint32_t fixed_bytes;
    /* Behind the fields, a text each. */
    struct app_contexts contexts;
    /* Why it cannot be recorded, with the field's name; NULL where it can. */
    const char *refused;
    const char *refused_field;
};

/* Describes an event, with `contexts` behind its fields. -1: there is no memory. */
int describe(struct described *described, const char *provider, const struct ust_event *event,
             const struct app_contexts *contexts);
/* The description of an enumeration's labels, allocated; NULL: there is no memory. */
char *describe_labels(const struct ust_labels *labels, uint32_t *bytes);

#pragma GCC visibility pop

#endif
