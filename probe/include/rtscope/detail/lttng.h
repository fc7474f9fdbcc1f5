/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What providers written for LTTng-UST ask of the library; sites and providers meet by name. */
#ifndef RTSCOPE_DETAIL_LTTNG_H
#define RTSCOPE_DETAIL_LTTNG_H

#include <rtscope/detail/lttng_site.h>
#include <rtscope/detail/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An event. The library's memory, never given back: a thread may be on its way through it. */
struct rtscope_lttng_event {
    void (*record)(void);
    struct rtscope_late late;
};

/* A description that grows. */
struct rtscope_lttng_text {
    char *bytes;
    size_t length;
    size_t room;
    int failed;
};

/* An event or an enumeration, as its provider says it. */
struct rtscope_lttng_source {
    const char *provider;
    const char *name;
    const char *signature;
    void (*describe)(struct rtscope_lttng_text *text);
    /* NULL for an enumeration. */
    void (*record)(void);
    /* NULL for the usual one. */
    const unsigned char *level;
    /* The library's. */
    struct rtscope_lttng_event *event;
    struct rtscope_lttng_source *next;
};

void rtscope_lttng_add_source_(struct rtscope_lttng_source *source);
void rtscope_lttng_remove_source_(struct rtscope_lttng_source *source);

/* Parts of descriptions: a byte, four of them, a text with its zero. */
void rtscope_lttng_byte_(struct rtscope_lttng_text *text, unsigned byte);
void rtscope_lttng_count_(struct rtscope_lttng_text *text, uint32_t count);
void rtscope_lttng_string_(struct rtscope_lttng_text *text, const char *string);
/* The type of a number: where types of its kind begin, and its bytes. */
void rtscope_lttng_number_(struct rtscope_lttng_text *text, unsigned first, size_t bytes);
/* A label of an enumeration; returns the value behind its last. */
int64_t rtscope_lttng_label_(struct rtscope_lttng_text *text, const char *label, int64_t first,
                             int64_t last);

#ifdef __cplusplus
}
#endif

#endif
