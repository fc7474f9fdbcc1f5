// SPDX-License-Identifier: MIT OR Apache-2.0
/* The loop's events as LTTng-UST's provider. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER npt
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "npt_lttng.h"
#if !defined(NPT_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define NPT_LTTNG_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(npt, loop, LTTNG_UST_TP_ARGS(unsigned long, i, unsigned long, d),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, counter, i)
                                                   lttng_ust_field_integer(unsigned long,
                                                                           duration, d)))
LTTNG_UST_TRACEPOINT_EVENT(npt, text, LTTNG_UST_TP_ARGS(unsigned long, i, const char *, s),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, counter, i)
                                                   lttng_ust_field_string(words, s)))
#endif
#include <lttng/tracepoint-event.h>
