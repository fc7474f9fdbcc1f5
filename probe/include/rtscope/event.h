/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Events of an application: one include, one line at the call site.
 *
 *     RTSCOPE_EVENT(npt, loop, u64("i", i), u64("duration_ns", d));
 *
 * Fields, up to 23 (22 beside a cookie), with names of up to 255 letters, digits and underscores:
 *     u8 u16 u32 u64, i8 i16 i32 i64, x8 x16 x32 x64 (printed in hexadecimal), f32 f64
 *     n16 n32 n64                               in network order, as they lie in memory
 *     e8 e32 e64("name", enumeration, value)    with the labels of RTSCOPE_ENUMERATION
 *     text("name", string), text_n("name", string, length_max)
 *     chars("name", pointer, 16)                characters of an array, the size a constant
 *     array("name", u32, pointer, 4)            so many numbers, the count a constant up to 512
 *     sequence("name", u32, pointer, count)     any number of numbers
 *     bytes("name", pointer, length)            bytes of no further type
 *     nowrite(field)                            any of these: seen by filters, in no record
 * An event with text, bytes or a sequence has RTSCOPE_PAYLOAD_BYTES_MAX (512) bytes for all its
 * fields, two of them for each length; what is beyond is cut, and a text that was cut ends in
 * "...". Without such fields an event has up to RTSCOPE_FIXED_BYTES_MAX (4080) bytes. Declarations
 * that break these limits are not compiled; names with other letters, and a name that two fields
 * have, make the recorder say why there is no such event.
 *
 * RTSCOPE_BEGIN and RTSCOPE_END mark spans and work items, RTSCOPE_PRINT takes free text.
 *
 * A disabled event costs a load and a branch that is not taken; its fields are not evaluated. An
 * enabled one makes no system call, takes no lock, allocates nothing and executes no atomic
 * instruction; it may be used in signal handlers. Link with librtscope-probe.
 *
 * Environment (ignored by set-uid programs): RTSCOPE_DIR, RTSCOPE_EVENTS (patterns to enable at
 * the start), RTSCOPE_MODE (discard, overwrite, block), RTSCOPE_BLOCK_US, RTSCOPE_RING_SIZE,
 * RTSCOPE_SUBBUFFERS, RTSCOPE_HUGE_PAGES, RTSCOPE_CLOCK (monotonic), RTSCOPE_RSEQ (off),
 * RTSCOPE_DISABLE.
 */
#ifndef RTSCOPE_EVENT_H
#define RTSCOPE_EVENT_H

#include <rtscope/detail/each.h>
#include <rtscope/detail/fields.h>
#include <rtscope/detail/record.h>
#include <rtscope/layout.h>
#include <string.h>

/* LTTng's log levels. */
#define RTSCOPE_LEVEL_EMERG 0
#define RTSCOPE_LEVEL_ALERT 1
#define RTSCOPE_LEVEL_CRIT 2
#define RTSCOPE_LEVEL_ERR 3
#define RTSCOPE_LEVEL_WARNING 4
#define RTSCOPE_LEVEL_NOTICE 5
#define RTSCOPE_LEVEL_INFO 6
#define RTSCOPE_LEVEL_DEBUG_SYSTEM 7
#define RTSCOPE_LEVEL_DEBUG_PROGRAM 8
#define RTSCOPE_LEVEL_DEBUG_PROCESS 9
#define RTSCOPE_LEVEL_DEBUG_MODULE 10
#define RTSCOPE_LEVEL_DEBUG_UNIT 11
#define RTSCOPE_LEVEL_DEBUG_FUNCTION 12
#define RTSCOPE_LEVEL_DEBUG_LINE 13
#define RTSCOPE_LEVEL_DEBUG 14

/*
 * RTSCOPE_EVENT(provider, name, fields…). The name is taken as it is written, also where it is a
 * macro's, as errno is; the provider may be a macro. The digit before the name is what keeps the
 * preprocessor off it; the library takes it away.
 */
#define RTSCOPE_EVENT(provider, ...)                                                              \
    RTSCOPE_EVENT_(RTSCOPE_LEVEL_DEBUG_LINE, provider, 0##__VA_ARGS__, end())

/* RTSCOPE_EVENT_LEVEL(level, provider, name, fields…) */
#define RTSCOPE_EVENT_LEVEL(level, provider, ...)                                                 \
    RTSCOPE_EVENT_(level, provider, 0##__VA_ARGS__, end())

#define RTSCOPE_EVENT_(level, provider, name, ...)                                                \
    do {                                                                                          \
        struct rtscope_switch *rtscope_switch_;                                                   \
        RTSCOPE_CHECK_EVENT_(level, provider, name);                                              \
        RTSCOPE_CHECK_FIELDS_(__VA_ARGS__);                                                       \
        RTSCOPE_DECLARE_(rtscope_switch_, level, provider, name, __VA_ARGS__);                    \
        const uint8_t rtscope_enabled_ = *(volatile uint8_t *)&rtscope_switch_->enabled;          \
        if (__builtin_expect(rtscope_enabled_, 0))                                                \
            RTSCOPE_RECORD_(__VA_ARGS__);                                                         \
    } while (0)

/* The event's switch and its description. */
#define RTSCOPE_DECLARE_(address, level, provider, name, ...)                                     \
    RTSCOPE_SITE_(address, level,                                                                 \
                  ".asciz \"" #provider "\"\n.asciz \"" #name "\"\n" RTSCOPE_NUMBERED_(           \
                      RTSCOPE_DESCRIBE_, __VA_ARGS__),                                            \
                  RTSCOPE_NUMBERED_(RTSCOPE_COUNTS_, __VA_ARGS__))

/* Only letters, digits and underscores can be parts of a struct's name. A provider that begins with
 * a digit is a macro that nobody meant: GNU C has `linux` and `unix`, which are 1. */
#define RTSCOPE_CHECK_EVENT_(level, provider, name)                                               \
    struct provider##_is_a_provider_;                                                             \
    struct rtscope_name_##name;                                                                   \
    RTSCOPE_ASSERT_((level) >= 0 && (level) <= 255, "a level has 8 bits");                        \
    RTSCOPE_ASSERT_(sizeof(#provider) <= 256, "a provider has at most 255 bytes");                \
    RTSCOPE_ASSERT_(sizeof(#name) > 2 && sizeof(#name) <= 257, "a name has 1 to 255 bytes")

/*
 * RTSCOPE_BEGIN(provider, name, cookie, fields…) and RTSCOPE_END(provider, name, cookie, fields…):
 * the events name_begin and name_end, whose field `cookie` says which belong together: a number of
 * the work item, or the address of what is worked on. Threads may begin and end in any order.
 */
#define RTSCOPE_BEGIN(provider, ...)                                                              \
    RTSCOPE_SPAN_(RTSCOPE_LEVEL_DEBUG_LINE, begin, provider, 0##__VA_ARGS__, end())
#define RTSCOPE_END(provider, ...)                                                                \
    RTSCOPE_SPAN_(RTSCOPE_LEVEL_DEBUG_LINE, end, provider, 0##__VA_ARGS__, end())
#define RTSCOPE_SPAN_(level, edge, provider, name, value, ...)                                    \
    RTSCOPE_EVENT_(level, provider, name##_##edge, x64("cookie", (uint64_t)(value)), __VA_ARGS__)

/*
 * RTSCOPE_PRINT(provider, name, format, …): free text as printf makes it, up to 510 bytes. The text
 * is made in the traced thread, by the C library, and only while the event is enabled: it costs
 * what snprintf costs.
 */
#define RTSCOPE_PRINT(provider, ...)                                                              \
    RTSCOPE_PRINT_(RTSCOPE_LEVEL_DEBUG, provider, 0##__VA_ARGS__)

/* RTSCOPE_PRINT_LEVEL(level, provider, name, format, …) */
#define RTSCOPE_PRINT_LEVEL(level, provider, ...)                                                 \
    RTSCOPE_PRINT_(level, provider, 0##__VA_ARGS__)

#define RTSCOPE_PRINT_(level, provider, name, ...)                                                \
    do {                                                                                          \
        char rtscope_text_[RTSCOPE_PAYLOAD_BYTES_MAX];                                            \
        RTSCOPE_EVENT_(level, provider, name,                                                     \
                       text("msg", rtscope_print_(rtscope_text_, __VA_ARGS__)), end());           \
    } while (0)

#define RTSCOPE_RECORD_(...)                                                                      \
    do {                                                                                          \
        uint64_t rtscope_stage_[RTSCOPE_STAGE_WORDS_(__VA_ARGS__)];                               \
        unsigned char *rtscope_at_ = (unsigned char *)rtscope_stage_;                             \
        size_t rtscope_room_ = RTSCOPE_ROOM_BYTES_(__VA_ARGS__);                                  \
        (void)rtscope_room_;                                                                      \
        if (!RTSCOPE_ANY_VARIES_(__VA_ARGS__))                                                    \
            rtscope_stage_[RTSCOPE_LAST_WORD_(RTSCOPE_FIXED_BYTES_(__VA_ARGS__))] = 0;            \
        RTSCOPE_EACH_(RTSCOPE_PUT_, __VA_ARGS__)                                                  \
        const size_t rtscope_bytes_ = (size_t)(rtscope_at_ - (unsigned char *)rtscope_stage_);    \
        if (__builtin_expect(rtscope_enabled_ & RTSCOPE_FILTERED, 0)) {                           \
            unsigned char *const rtscope_hidden_ =                                                \
                (unsigned char *)(rtscope_stage_ + RTSCOPE_WORDS_(rtscope_bytes_));               \
            rtscope_at_ = rtscope_hidden_;                                                        \
            RTSCOPE_EACH_(RTSCOPE_HIDE_, __VA_ARGS__)                                             \
            /* An event without fields leaves its memory as it is, which is no mistake. */        \
            __asm__ volatile("" : : "r"(rtscope_stage_) : "memory");                              \
            if (!rtscope_pass_(rtscope_switch_, rtscope_stage_, rtscope_bytes_, rtscope_hidden_,  \
                               (size_t)(rtscope_at_ - rtscope_hidden_)))                          \
                break;                                                                            \
        }                                                                                         \
        /* One attempt here; whatever it meets, the library deals with. */                        \
        uint32_t rtscope_aborted_ = 1;                                                            \
        if (!RTSCOPE_ANY_VARIES_(__VA_ARGS__) && RTSCOPE_IS_FAST_(rtscope_object_)) {              \
            const uint32_t rtscope_low_ = (RTSCOPE_FIXED_WORDS_(__VA_ARGS__) + 2u) |              \
                                          (uint32_t)rtscope_switch_->id << 16;                    \
            RTSCOPE_TRY_(rtscope_aborted_, rtscope_object_, rtscope_low_,                         \
                         rtscope_tid_(&rtscope_object_), rtscope_stage_,                          \
                         RTSCOPE_FIXED_WORDS_(__VA_ARGS__));                                      \
        }                                                                                         \
        if (__builtin_expect(rtscope_aborted_, 0))                                                \
            rtscope_write_(&rtscope_object_, rtscope_switch_->id, rtscope_stage_,                 \
                           rtscope_bytes_);                                                       \
    } while (0)

#endif
