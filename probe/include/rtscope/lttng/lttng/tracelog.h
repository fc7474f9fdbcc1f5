/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LTTng-UST's log lines, as events of the probe: lttng_ust_tracelog, named by their level. */
#ifndef RTSCOPE_LTTNG_TRACELOG_H
#define RTSCOPE_LTTNG_TRACELOG_H

#include <lttng/tracepoint.h>
#include <rtscope/detail/lttng_print.h>

/* A level's name stands for the event; a description wants its number. */
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG 0
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_ALERT 1
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_CRIT 2
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_ERR 3
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING 4
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_NOTICE 5
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO 6
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_SYSTEM 7
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROGRAM 8
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROCESS 9
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_MODULE 10
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_UNIT 11
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_FUNCTION 12
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_LINE 13
#define RTSCOPE_LTTNG_NUMBER_OF_LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG 14
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_EMERG 0
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_ALERT 1
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_CRIT 2
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_ERR 3
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_WARNING 4
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_NOTICE 5
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_INFO 6
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_DEBUG_SYSTEM 7
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_DEBUG_PROGRAM 8
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_DEBUG_PROCESS 9
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_DEBUG_MODULE 10
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_DEBUG_UNIT 11
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_DEBUG_FUNCTION 12
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_DEBUG_LINE 13
#define RTSCOPE_LTTNG_NUMBER_OF_TRACE_DEBUG 14

#define RTSCOPE_LTTNG_LOG_(number, level, message)                                                \
    do {                                                                                          \
        char text_[RTSCOPE_PAYLOAD_BYTES_MAX];                                                    \
        RTSCOPE_EVENT_LEVEL(number, lttng_ust_tracelog, level, i32("line", __LINE__),             \
                            text("file", __FILE__), text("func", __func__),                       \
                            text("msg", message));                                                \
    } while (0)

#define lttng_ust_tracelog(level, ...)                                                            \
    RTSCOPE_LTTNG_LOG_(RTSCOPE_LTTNG_NUMBER_OF_##level, level,                                    \
                       rtscope_lttng_print_(text_, __VA_ARGS__))
#define lttng_ust_vtracelog(level, format, values)                                                \
    RTSCOPE_LTTNG_LOG_(RTSCOPE_LTTNG_NUMBER_OF_##level, level,                                    \
                       rtscope_lttng_vprint_(text_, format, values))

#define tracelog lttng_ust_tracelog
#define vtracelog lttng_ust_vtracelog

#endif
