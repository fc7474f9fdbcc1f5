/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LTTng's macros outside the passes of tracepoint-event.h: tracepoints are declared and, where they
 * are asked for, defined. Included again behind every provider. */
#undef RTSCOPE_LTTNG_EVENT_
#undef RTSCOPE_LTTNG_CLASS_
#undef RTSCOPE_LTTNG_INSTANCE_
#undef RTSCOPE_LTTNG_LEVEL_
#undef RTSCOPE_LTTNG_ENUM_

#define RTSCOPE_LTTNG_EVENT_(provider, name, args, fields)                                        \
    RTSCOPE_LTTNG_DECLARE_(provider, name, RTSCOPE_LTTNG_PARAMS_(args))                           \
    RTSCOPE_LTTNG_DEFINE_(provider, name, RTSCOPE_LTTNG_PARAMS_(args))
#define RTSCOPE_LTTNG_CLASS_(provider, name, args, fields)
#define RTSCOPE_LTTNG_INSTANCE_(class_provider, class_name, provider, name, args)                 \
    RTSCOPE_LTTNG_EVENT_(provider, name, RTSCOPE_LTTNG_PARAMS_(args), )
#define RTSCOPE_LTTNG_LEVEL_(provider, name, level)
#define RTSCOPE_LTTNG_ENUM_(provider, name, values)
