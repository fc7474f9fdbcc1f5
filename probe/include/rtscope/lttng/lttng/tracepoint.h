/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * LTTng-UST's tracepoints (2.13's names and the older ones), recorded by the probe: with
 * -I…/rtscope/lttng before LTTng's own headers, providers and their callers compile unchanged.
 */
#ifndef RTSCOPE_LTTNG_TRACEPOINT_H
#define RTSCOPE_LTTNG_TRACEPOINT_H

#include <rtscope/detail/lttng_args.h>
#include <rtscope/detail/lttng_site.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define lttng_ust_tracepoint_enabled(provider, name)                                              \
    __builtin_expect(rtscope_lttng_is_on_(&lttng_ust_tracepoint_##provider##___##name), 0)

#define lttng_ust_do_tracepoint(provider, name, ...)                                              \
    lttng_ust_tracepoint_cb_##provider##___##name(__VA_ARGS__)

#define lttng_ust_tracepoint(provider, name, ...)                                                 \
    do {                                                                                          \
        if (lttng_ust_tracepoint_enabled(provider, name))                                         \
            lttng_ust_do_tracepoint(provider, name, __VA_ARGS__);                                 \
    } while (0)

/* LTTng's log levels. */
enum {
    LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG = 0,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_ALERT = 1,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_CRIT = 2,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_ERR = 3,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING = 4,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_NOTICE = 5,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO = 6,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_SYSTEM = 7,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROGRAM = 8,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROCESS = 9,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_MODULE = 10,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_UNIT = 11,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_FUNCTION = 12,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_LINE = 13,
    LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG = 14,
};

/* What providers are written with. The macros that they come down to (RTSCOPE_LTTNG_…_) mean
 * something else in each pass of tracepoint-event.h; here they declare tracepoints. */
#define LTTNG_UST_TP_ARGS(...) __VA_ARGS__
#define LTTNG_UST_TP_FIELDS(...) __VA_ARGS__
#define LTTNG_UST_TP_ENUM_VALUES(...) __VA_ARGS__
#define LTTNG_UST_TRACEPOINT_EVENT(provider, name, args, fields)                                  \
    RTSCOPE_LTTNG_EVENT_(provider, name, RTSCOPE_LTTNG_PARAMS_(args),                             \
                         RTSCOPE_LTTNG_PARAMS_(fields))
#define LTTNG_UST_TRACEPOINT_EVENT_CLASS(provider, name, args, fields)                            \
    RTSCOPE_LTTNG_CLASS_(provider, name, RTSCOPE_LTTNG_PARAMS_(args),                             \
                         RTSCOPE_LTTNG_PARAMS_(fields))
#define LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(class_provider, class_name, provider, name, args)     \
    RTSCOPE_LTTNG_INSTANCE_(class_provider, class_name, provider, name,                           \
                            RTSCOPE_LTTNG_PARAMS_(args))
#define LTTNG_UST_TRACEPOINT_LOGLEVEL(provider, name, level)                                      \
    RTSCOPE_LTTNG_LEVEL_(provider, name, level)
#define LTTNG_UST_TRACEPOINT_ENUM(provider, name, values)                                         \
    RTSCOPE_LTTNG_ENUM_(provider, name, RTSCOPE_LTTNG_PARAMS_(values))
/* Where a model of the program would stand; nobody reads it. */
#define LTTNG_UST_TRACEPOINT_MODEL_EMF_URI(provider, name, uri)

#include <rtscope/detail/lttng_declare.h>
#include <rtscope/detail/lttng_old_names.h>

#define RTSCOPE_LTTNG_DECLARE_(provider_, name_, args)                                            \
    RTSCOPE_LTTNG_BEGIN_C_                                                                        \
    extern struct rtscope_lttng_site lttng_ust_tracepoint_##provider_##___##name_                 \
        RTSCOPE_LTTNG_VISIBLE_;                                                                   \
    static inline __attribute__((always_inline, unused)) void                                     \
        lttng_ust_tracepoint_cb_##provider_##___##name_(RTSCOPE_LTTNG_PROTO_(args))               \
    {                                                                                             \
        struct rtscope_lttng_target *const target_ =                                              \
            rtscope_lttng_target_(&lttng_ust_tracepoint_##provider_##___##name_);                 \
        if (__builtin_expect(target_->record != NULL, 1))                                         \
            ((void (*)(void *RTSCOPE_LTTNG_MORE_PROTO_(args)))target_->record)(                   \
                target_ RTSCOPE_LTTNG_MORE_VALUES_(args));                                        \
    }                                                                                             \
    RTSCOPE_LTTNG_END_C_

#define RTSCOPE_LTTNG_SITE_(provider_, name_, args)                                               \
    RTSCOPE_LTTNG_BEGIN_C_                                                                        \
    extern int lttng_ust_tracepoint_provider_##provider_;                                         \
    struct rtscope_lttng_site lttng_ust_tracepoint_##provider_##___##name_ = {                    \
        #provider_, #name_, RTSCOPE_LTTNG_STRING_(args), &rtscope_lttng_nobody_,                  \
        RTSCOPE_LTTNG_WANTED_(provider_), NULL, 0};                                               \
    static __attribute__((constructor(102), used)) void                                           \
        rtscope_lttng_begin_##provider_##___##name_(void)                                         \
    {                                                                                             \
        rtscope_lttng_site_begin_(&lttng_ust_tracepoint_##provider_##___##name_);                 \
    }                                                                                             \
    static __attribute__((destructor(102), used)) void                                            \
        rtscope_lttng_end_##provider_##___##name_(void)                                           \
    {                                                                                             \
        rtscope_lttng_site_end_(&lttng_ust_tracepoint_##provider_##___##name_);                   \
    }                                                                                             \
    RTSCOPE_LTTNG_END_C_

#ifdef __cplusplus
#define RTSCOPE_LTTNG_BEGIN_C_ extern "C" {
#define RTSCOPE_LTTNG_END_C_ }
#else
#define RTSCOPE_LTTNG_BEGIN_C_
#define RTSCOPE_LTTNG_END_C_
#endif

#endif

/* From here on once for each inclusion, because headers say what they want before they include. */
#if defined(TRACEPOINT_DEFINE) && !defined(LTTNG_UST_TRACEPOINT_DEFINE)
#define LTTNG_UST_TRACEPOINT_DEFINE
#endif
#if defined(TRACEPOINT_PROBE_DYNAMIC_LINKAGE) &&                                                  \
    !defined(LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE)
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#endif

#undef RTSCOPE_LTTNG_DEFINE_
#ifdef LTTNG_UST_TRACEPOINT_DEFINE
#define RTSCOPE_LTTNG_DEFINE_ RTSCOPE_LTTNG_SITE_
#else
#define RTSCOPE_LTTNG_DEFINE_(provider, name, args)
#endif

#undef RTSCOPE_LTTNG_WANTED_
#ifdef LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#define RTSCOPE_LTTNG_WANTED_(provider) NULL
#else
#define RTSCOPE_LTTNG_WANTED_(provider) &lttng_ust_tracepoint_provider_##provider
#endif

#undef RTSCOPE_LTTNG_VISIBLE_
#ifdef LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#define RTSCOPE_LTTNG_VISIBLE_ __attribute__((visibility("hidden")))
#else
#define RTSCOPE_LTTNG_VISIBLE_ __attribute__((visibility("default")))
#endif
