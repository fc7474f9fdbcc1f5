/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Free text, whose own tracepoints may not share a file with those that are defined. */
#include <lttng/tracef.h>
#include <lttng/tracelog.h>

void words(void);

void words(void)
{
    lttng_ust_tracef("free %s %d", "text", 42);
    lttng_ust_tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_ERR, "line %d", 1);
}
