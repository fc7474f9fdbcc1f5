/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The other half of liblttng-ust.so.1: tracef and tracelog, which print into an event; and what
 * LTTng wants to be told, which the probe finds out by itself.
 */
#define _GNU_SOURCE
#include "abi.h"

#include <rtscope/detail/lttng_print.h>
#include <rtscope/event.h>

/* The state that callers look at first is always on: the event is looked at here. */
#define PLACE(provider_, name_)                                                                   \
    struct ust_tracepoint lttng_ust_tracepoint_##provider_##___##name_;                           \
    struct ust_tracepoint lttng_ust_tracepoint_##provider_##___##name_ = {                        \
        sizeof(struct ust_tracepoint), #provider_, #name_, 1, NULL, NULL, NULL}

void lttng_ust__vtracef(const char *format, va_list values)
    __attribute__((format(printf, 1, 0)));
void lttng_ust__tracef(const char *format, ...) __attribute__((format(printf, 1, 2)));

PLACE(lttng_ust_tracef, event);

void lttng_ust__vtracef(const char *format, va_list values)
{
    char text[RTSCOPE_PAYLOAD_BYTES_MAX];
    RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_DEBUG, lttng_ust_tracef, event,
                        text("msg", rtscope_lttng_vprint_(text, format, values)));
}

void lttng_ust__tracef(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    lttng_ust__vtracef(format, values);
    va_end(values);
}

#define LOG(name_, level)                                                                         \
    PLACE(lttng_ust_tracelog, LTTNG_UST_TRACEPOINT_LOGLEVEL_##name_);                             \
    void lttng_ust__vtracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##name_(                              \
        const char *file, int line, const char *function, const char *format, va_list values)     \
        __attribute__((format(printf, 4, 0)));                                                    \
    void lttng_ust__vtracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##name_(                              \
        const char *file, int line, const char *function, const char *format, va_list values)     \
    {                                                                                             \
        char text[RTSCOPE_PAYLOAD_BYTES_MAX];                                                     \
        RTSCOPE_EVENT_LEVEL(level, lttng_ust_tracelog, LTTNG_UST_TRACEPOINT_LOGLEVEL_##name_,     \
                            i32("line", line), text("file", file), text("func", function),        \
                            text("msg", rtscope_lttng_vprint_(text, format, values)));            \
    }                                                                                             \
    void lttng_ust__tracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##name_(                               \
        const char *file, int line, const char *function, const char *format, ...)                \
        __attribute__((format(printf, 4, 5)));                                                    \
    void lttng_ust__tracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##name_(                               \
        const char *file, int line, const char *function, const char *format, ...)                \
    {                                                                                             \
        va_list values;                                                                           \
        va_start(values, format);                                                                 \
        lttng_ust__vtracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##name_(file, line, function, format,  \
                                                                   values);                       \
        va_end(values);                                                                           \
    }

LOG(EMERG, 0)
LOG(ALERT, 1)
LOG(CRIT, 2)
LOG(ERR, 3)
LOG(WARNING, 4)
LOG(NOTICE, 5)
LOG(INFO, 6)
LOG(DEBUG_SYSTEM, 7)
LOG(DEBUG_PROGRAM, 8)
LOG(DEBUG_PROCESS, 9)
LOG(DEBUG_MODULE, 10)
LOG(DEBUG_UNIT, 11)
LOG(DEBUG_FUNCTION, 12)
LOG(DEBUG_LINE, 13)
LOG(DEBUG, 14)

/* Forks, other users and namespaces, and libraries that come: nothing is to be done. */
#define NOTHING(name)                                                                             \
    void name(void);                                                                              \
    void name(void) {}

NOTHING(lttng_ust_init_thread)
NOTHING(lttng_ust_before_fork)
NOTHING(lttng_ust_after_fork_parent)
NOTHING(lttng_ust_after_fork_child)
NOTHING(lttng_ust_after_setns)
NOTHING(lttng_ust_after_unshare)
NOTHING(lttng_ust_after_setuid)
NOTHING(lttng_ust_after_setgid)
NOTHING(lttng_ust_after_seteuid)
NOTHING(lttng_ust_after_setegid)
NOTHING(lttng_ust_after_setreuid)
NOTHING(lttng_ust_after_setregid)
NOTHING(lttng_ust_after_setresuid)
NOTHING(lttng_ust_after_setresgid)
NOTHING(lttng_ust_dl_update)
NOTHING(lttng_ust_context_procname_reset)
