/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LTTng-UST's free text, as an event of the probe: lttng_ust_tracef:event. */
#ifndef RTSCOPE_LTTNG_TRACEF_H
#define RTSCOPE_LTTNG_TRACEF_H

#include <lttng/tracepoint.h>
#include <rtscope/detail/lttng_print.h>

#define lttng_ust_tracef(...)                                                                     \
    do {                                                                                          \
        char text_[RTSCOPE_PAYLOAD_BYTES_MAX];                                                    \
        RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_DEBUG, lttng_ust_tracef, event,                         \
                            text("msg", rtscope_lttng_print_(text_, __VA_ARGS__)));               \
    } while (0)

#define lttng_ust_vtracef(format, values)                                                         \
    do {                                                                                          \
        char text_[RTSCOPE_PAYLOAD_BYTES_MAX];                                                    \
        RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_DEBUG, lttng_ust_tracef, event,                         \
                            text("msg", rtscope_lttng_vprint_(text_, format, values)));           \
    } while (0)

#define tracef lttng_ust_tracef
#define vtracef lttng_ust_vtracef

#endif
