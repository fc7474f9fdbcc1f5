/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Text for tracef and tracelog, made in the traced thread while the event is on. */
#ifndef RTSCOPE_DETAIL_LTTNG_PRINT_H
#define RTSCOPE_DETAIL_LTTNG_PRINT_H

#include <rtscope/event.h>
#include <stdarg.h>
#include <stdio.h>

static inline __attribute__((unused, format(printf, 2, 0))) const char *
rtscope_lttng_vprint_(char *text, const char *format, va_list values)
{
    if (vsnprintf(text, RTSCOPE_PAYLOAD_BYTES_MAX, format, values) < 0)
        text[0] = '\0';
    return text;
}

static inline __attribute__((unused, format(printf, 2, 3))) const char *
rtscope_lttng_print_(char *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    rtscope_lttng_vprint_(text, format, values);
    va_end(values);
    return text;
}

#endif
