/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A provider by the older names, with the macros that instrumented robots' middleware uses. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER robot
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "robot.h"
#if !defined(ROBOT_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define ROBOT_H
#include <lttng/tracepoint.h>
#include <stdbool.h>
#include <stdint.h>

#define IDENTITY_BYTES 16

TRACEPOINT_EVENT(
    TRACEPOINT_PROVIDER,
    node_init,
    TP_ARGS(const void *, node_arg, const char *, name_arg, const char *, space_arg),
    TP_FIELDS(
        ctf_integer_hex(const void *, node, node_arg)
        ctf_string(name, name_arg)
        ctf_string(space, space_arg)
    )
)
TRACEPOINT_EVENT(
    TRACEPOINT_PROVIDER,
    publisher_init,
    TP_ARGS(const void *, publisher_arg, const uint8_t *, identity_arg, size_t, depth_arg),
    TP_FIELDS(
        ctf_integer_hex(const void *, publisher, publisher_arg)
        ctf_array(uint8_t, identity, identity_arg, IDENTITY_BYTES)
        ctf_integer(size_t, depth, depth_arg)
    )
)
TRACEPOINT_EVENT_CLASS(
    TRACEPOINT_PROVIDER,
    call,
    TP_ARGS(const void *, callback_arg, bool, inside_arg),
    TP_FIELDS(
        ctf_integer_hex(const void *, callback, callback_arg)
        ctf_integer(int, inside, (inside_arg ? 1 : 0))
    )
)
TRACEPOINT_EVENT_INSTANCE(TRACEPOINT_PROVIDER, call, callback_start,
                          TP_ARGS(const void *, callback_arg, bool, inside_arg))
TRACEPOINT_LOGLEVEL(TRACEPOINT_PROVIDER, callback_start, TRACE_INFO)
#endif
#include <lttng/tracepoint-event.h>
