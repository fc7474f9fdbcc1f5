/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A provider by the older names, with the macros that instrumented robots' middleware uses, in its
 * shapes: constant types, and a field whose name is a keyword of C++. */
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
        ctf_string(namespace, space_arg)
    )
)
TRACEPOINT_EVENT(
    TRACEPOINT_PROVIDER,
    publisher_init,
    TP_ARGS(const void *, publisher_arg, const uint8_t *, identity_arg, const size_t, depth_arg),
    TP_FIELDS(
        ctf_integer_hex(const void *, publisher, publisher_arg)
        ctf_array(uint8_t, identity, identity_arg, IDENTITY_BYTES)
        ctf_integer(const size_t, depth, depth_arg)
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
TRACEPOINT_EVENT(
    TRACEPOINT_PROVIDER,
    message,
    TP_ARGS(const void *, buffer_arg, const char *, bytes_arg, size_t, length_arg,
            const char *, kind_arg, int64_t, stamp_arg, double, load_arg),
    TP_FIELDS(
        ctf_integer_hex(const void *, buffer, buffer_arg)
        ctf_sequence_text(char, bytes, bytes_arg, size_t, length_arg)
        ctf_sequence(char, raw, bytes_arg, uint32_t, (uint32_t)length_arg)
        ctf_sequence_hex(uint8_t, hex, (const uint8_t *)bytes_arg, size_t, length_arg)
        ctf_array_text(char, kind, kind_arg, 8)
        ctf_integer(int64_t, stamp, stamp_arg)
        ctf_float(double, load, load_arg)
    )
)
#endif
#include <lttng/tracepoint-event.h>
