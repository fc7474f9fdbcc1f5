/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What log handlers of other languages call: one function for each language's logging, with the
 * events and fields of LTTng's agents. Levels are the language's own numbers.
 */
#include <rtscope/event.h>

void rtscope_agent_python_line(const char *asctime, const char *logger, const char *function,
                               uint32_t line, uint32_t level, uint64_t thread,
                               const char *thread_name, const char *message);
int rtscope_agent_python_is_on(void);
void rtscope_agent_jul(const char *message, const char *logger, const char *class_name,
                       const char *method, int64_t millis, int32_t level, int32_t thread);
void rtscope_agent_log4j2(const char *message, const char *logger, const char *class_name,
                          const char *method, const char *file, int32_t line, int64_t millis,
                          int32_t level, const char *thread_name);

/* A line of Python's log. */
struct python_line {
    const char *asctime;
    const char *logger;
    const char *function;
    const char *thread_name;
    const char *message;
    uint64_t thread;
    uint32_t line;
    uint32_t level;
};

/* Records it while somebody wants it; of NULL, finds out whether. Returns that. */
static int python(const struct python_line *own)
{
    struct rtscope_switch *rtscope_switch_;
#define FIELDS                                                                                    \
    text("logger_name", own->logger), text("funcName", own->function),                            \
        u32("lineno", own->line), u32("int_loglevel", own->level), u64("thread", own->thread),    \
        text("threadName", own->thread_name), text("asctime", own->asctime),                      \
        text("msg", own->message), end()
    RTSCOPE_DECLARE_(rtscope_switch_, RTSCOPE_LEVEL_INFO, lttng_python, 0event, FIELDS);
    const uint8_t rtscope_enabled_ = *(volatile uint8_t *)&rtscope_switch_->enabled;
    if (own && rtscope_enabled_)
        RTSCOPE_RECORD_(FIELDS);
#undef FIELDS
    return rtscope_enabled_ != 0;
}

void rtscope_agent_python_line(const char *asctime, const char *logger, const char *function,
                               uint32_t line, uint32_t level, uint64_t thread,
                               const char *thread_name, const char *message)
{
    const struct python_line own = {asctime, logger, function, thread_name,
                                    message, thread, line,     level};
    python(&own);
}

int rtscope_agent_python_is_on(void)
{
    return python(NULL);
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
