/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What log handlers of other languages call: one function for each language's logging, with the
 * events and fields of LTTng's agents. Levels are the language's own numbers.
 */
#include <rtscope/event.h>

void rtscope_agent_python(const char *message, const char *logger, const char *function,
                          uint32_t line, uint32_t level, uint64_t thread, const char *thread_name);
void rtscope_agent_jul(const char *message, const char *logger, const char *class_name,
                       const char *method, int64_t millis, int32_t level, int32_t thread);
void rtscope_agent_log4j2(const char *message, const char *logger, const char *class_name,
                          const char *method, const char *file, int32_t line, int64_t millis,
                          int32_t level, const char *thread_name);

void rtscope_agent_python(const char *message, const char *logger, const char *function,
                          uint32_t line, uint32_t level, uint64_t thread, const char *thread_name)
{
    RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_INFO, lttng_python, event, text("logger_name", logger),
                        text("funcName", function), u32("lineno", line),
                        u32("int_loglevel", level), u64("thread", thread),
                        text("threadName", thread_name), text("msg", message));
}

void rtscope_agent_jul(const char *message, const char *logger, const char *class_name,
                       const char *method, int64_t millis, int32_t level, int32_t thread)
{
    RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_INFO, lttng_jul, event, text("logger_name", logger),
                        text("class_name", class_name), text("method_name", method),
                        i64("long_millis", millis), i32("int_loglevel", level),
                        i32("int_threadid", thread), text("msg", message));
}

void rtscope_agent_log4j2(const char *message, const char *logger, const char *class_name,
                          const char *method, const char *file, int32_t line, int64_t millis,
                          int32_t level, const char *thread_name)
{
    RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_INFO, lttng_log4j2, event, text("logger_name", logger),
                        text("class_name", class_name), text("method_name", method),
                        text("filename", file), i32("line_number", line),
                        i64("timestamp", millis), i32("int_loglevel", level),
                        text("thread_name", thread_name), text("msg", message));
}
