/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Before each pass of tracepoint-event.h: nothing means anything. */
#undef RTSCOPE_LTTNG_EVENT_
#undef RTSCOPE_LTTNG_CLASS_
#undef RTSCOPE_LTTNG_INSTANCE_
#undef RTSCOPE_LTTNG_LEVEL_
#undef RTSCOPE_LTTNG_ENUM_
#undef RTSCOPE_LTTNG_NUMBER_
#undef RTSCOPE_LTTNG_LABELLED_
#undef RTSCOPE_LTTNG_ARRAY_
#undef RTSCOPE_LTTNG_SEQUENCE_
#undef RTSCOPE_LTTNG_CHARACTERS_
#undef RTSCOPE_LTTNG_TEXT_

/* An event is a class and its only instance. */
#define RTSCOPE_LTTNG_EVENT_(provider, name, args, fields)                                        \
    RTSCOPE_LTTNG_CLASS_(provider, name, RTSCOPE_LTTNG_PARAMS_(args),                             \
                         RTSCOPE_LTTNG_PARAMS_(fields))                                           \
    RTSCOPE_LTTNG_INSTANCE_(provider, name, provider, name, RTSCOPE_LTTNG_PARAMS_(args))
#define RTSCOPE_LTTNG_CLASS_(provider, name, args, fields)
#define RTSCOPE_LTTNG_INSTANCE_(class_provider, class_name, provider, name, args)
#define RTSCOPE_LTTNG_LEVEL_(provider, name, level)
#define RTSCOPE_LTTNG_ENUM_(provider, name, values)
