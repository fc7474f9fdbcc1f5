/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A provider with every macro that LTTng-UST 2.13 has, by its names of today. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER every
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "every.h"
#if !defined(EVERY_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define EVERY_H
#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_ENUM(every, colour,
    LTTNG_UST_TP_ENUM_VALUES(
        lttng_ust_field_enum_value("RED", 0)
        lttng_ust_field_enum_value("GREEN", 3)
        lttng_ust_field_enum_auto("BLUE")
        lttng_ust_field_enum_range("GREYS", 10, 19)
    )
)

LTTNG_UST_TRACEPOINT_EVENT(every, numbers,
    LTTNG_UST_TP_ARGS(int, a, unsigned long, b, uint32_t, net, double, half, const void *, where),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, i, a)
        lttng_ust_field_integer(signed char, i8, (signed char)a)
        lttng_ust_field_integer(unsigned short, u16, (unsigned short)b)
        lttng_ust_field_integer(long, l, -(long)b)
        lttng_ust_field_integer(uint64_t, u64, b)
        lttng_ust_field_integer_hex(unsigned long, h, b)
        lttng_ust_field_integer_hex(const void *, pointer, where)
        lttng_ust_field_integer_network(uint32_t, n, net)
        lttng_ust_field_integer_network_hex(uint32_t, nh, net)
        lttng_ust_field_integer_nowrite(int, hidden, a)
        lttng_ust_field_float(float, f, (float)half)
        lttng_ust_field_float(double, d, half)
        lttng_ust_field_float_nowrite(double, hidden_d, half)
        lttng_ust_field_enum(every, colour, int, e, a)
        lttng_ust_field_enum_nowrite(every, colour, int, hidden_e, a)
        lttng_ust_field_unused(where)
        lttng_ust_field_unused_nowrite(where)
    )
)
LTTNG_UST_TRACEPOINT_LOGLEVEL(every, numbers, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)
LTTNG_UST_TRACEPOINT_MODEL_EMF_URI(every, numbers, "http://example.com/model")

LTTNG_UST_TRACEPOINT_EVENT(every, arrays,
    LTTNG_UST_TP_ARGS(const int *, v, const uint16_t *, net, const char *, text),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_array(int, a, v, 3)
        lttng_ust_field_array_hex(int, ah, v, 3)
        lttng_ust_field_array_network(uint16_t, an, net, 2)
        lttng_ust_field_array_network_hex(uint16_t, anh, net, 2)
        lttng_ust_field_array_text(char, at, text, 8)
        lttng_ust_field_array_nowrite(int, b, v, 3)
        lttng_ust_field_array_nowrite_hex(int, bh, v, 3)
        lttng_ust_field_array_network_nowrite(uint16_t, bn, net, 2)
        lttng_ust_field_array_network_nowrite_hex(uint16_t, bnh, net, 2)
        lttng_ust_field_array_text_nowrite(char, bt, text, 8)
    )
)

LTTNG_UST_TRACEPOINT_EVENT(every, sequences,
    LTTNG_UST_TP_ARGS(const int *, v, size_t, count, const uint16_t *, net, const char *, text),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_sequence(int, s, v, size_t, count)
        lttng_ust_field_sequence_hex(int, sh, v, unsigned char, (unsigned char)count)
        lttng_ust_field_sequence_network(uint16_t, sn, net, size_t, 2)
        lttng_ust_field_sequence_network_hex(uint16_t, snh, net, size_t, 2)
        lttng_ust_field_sequence_text(char, st, text, size_t, 3)
        lttng_ust_field_sequence_nowrite(int, t, v, size_t, count)
        lttng_ust_field_sequence_nowrite_hex(int, th, v, size_t, count)
        lttng_ust_field_sequence_network_nowrite(uint16_t, tn, net, size_t, 2)
        lttng_ust_field_sequence_network_nowrite_hex(uint16_t, tnh, net, size_t, 2)
        lttng_ust_field_sequence_text_nowrite(char, tt, text, size_t, 3)
        lttng_ust_field_string(string, text)
        lttng_ust_field_string_nowrite(hidden_string, text)
    )
)

LTTNG_UST_TRACEPOINT_EVENT_CLASS(every, work,
    LTTNG_UST_TP_ARGS(int, id),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, id, id))
)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(every, work, every, begin, LTTNG_UST_TP_ARGS(int, id))
LTTNG_UST_TRACEPOINT_LOGLEVEL(every, begin, LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(every, work, every, end, LTTNG_UST_TP_ARGS(int, id))

LTTNG_UST_TRACEPOINT_EVENT(every, nothing, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(every, nothing_either, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())

#endif
#include <lttng/tracepoint-event.h>
