/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Events of an application: one include, one line at the call site.
 *
 *     RTSCOPE_EVENT(npt, loop, u64("i", i), u64("duration_ns", d));
 *
 * Fields: u8 u16 u32 u64, i8 i16 i32 i64, x8 x16 x32 x64 (printed in hexadecimal), f32 f64,
 * text("name", string), text_n("name", string, length_max), bytes("name", pointer, length).
 * Up to 20 fields; text and bytes together up to RTSCOPE_PAYLOAD_BYTES_MAX, what is beyond is cut.
 *
 * A disabled event costs a load and a branch that is not taken; its fields are not evaluated. An
 * enabled one makes no system call, takes no lock, allocates nothing and executes no atomic
 * instruction; it may be used in signal handlers. Link with librtscope-probe.
 *
 * Environment (ignored by set-uid programs): RTSCOPE_DIR, RTSCOPE_EVENTS (patterns to enable at
 * the start), RTSCOPE_MODE (discard, overwrite), RTSCOPE_RING_SIZE, RTSCOPE_SUBBUFFERS,
 * RTSCOPE_CLOCK (monotonic), RTSCOPE_RSEQ (off), RTSCOPE_DISABLE.
 */
#ifndef RTSCOPE_EVENT_H
#define RTSCOPE_EVENT_H

#include <rtscope/detail/each.h>
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

/* RTSCOPE_EVENT(provider, name, fields…) */
#define RTSCOPE_EVENT(...) RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_DEBUG_LINE, __VA_ARGS__)

/* RTSCOPE_EVENT_LEVEL(level, provider, name, fields…) */
#define RTSCOPE_EVENT_LEVEL(...) RTSCOPE_EVENT_(__VA_ARGS__, end())

#define RTSCOPE_EVENT_(level, provider, name, ...)                                                \
    do {                                                                                          \
        struct rtscope_switch *rtscope_switch_;                                                   \
        RTSCOPE_SITE_(rtscope_switch_,                                                            \
                      ".byte " RTSCOPE_STRING_(level) "\n.asciz \"" #provider "\"\n"              \
                      ".asciz \"" #name "\"\n" RTSCOPE_EACH_(RTSCOPE_DESCRIBE_, __VA_ARGS__));    \
        if (__builtin_expect(*(volatile uint8_t *)&rtscope_switch_->enabled, 0))                  \
            RTSCOPE_RECORD_(__VA_ARGS__);                                                         \
    } while (0)

#define RTSCOPE_STRING_(level) RTSCOPE_STRING_1_(level)
#define RTSCOPE_STRING_1_(level) #level

/*
 * What each kind of field is: its description (assembler text), whether its length varies, its
 * size when it does not, and how it gets into the payload.
 */
#define RTSCOPE_DESCRIBE_(field) RTSCOPE_DESCRIBE_##field
#define RTSCOPE_VARIES_(field) +RTSCOPE_VARIES_##field
#define RTSCOPE_BYTES_(field) +RTSCOPE_BYTES_##field
#define RTSCOPE_PUT_(field) RTSCOPE_PUT_##field

#define RTSCOPE_DESCRIBE_end() ".byte 0\n"
#define RTSCOPE_VARIES_end() 0
#define RTSCOPE_BYTES_end() 0u
#define RTSCOPE_PUT_end()

#define RTSCOPE_TYPED_(code, name) ".byte " #code "\n.asciz " #name "\n"
#define RTSCOPE_PUT_NUMBER_(type, value)                                                          \
    {                                                                                             \
        const type rtscope_value_ = (type)(value);                                                \
        __builtin_memcpy(rtscope_at_, &rtscope_value_, sizeof(type));                             \
        rtscope_at_ += sizeof(type);                                                              \
    }

#define RTSCOPE_DESCRIBE_u8(name, value) RTSCOPE_TYPED_(1, name)
#define RTSCOPE_DESCRIBE_u16(name, value) RTSCOPE_TYPED_(2, name)
#define RTSCOPE_DESCRIBE_u32(name, value) RTSCOPE_TYPED_(3, name)
#define RTSCOPE_DESCRIBE_u64(name, value) RTSCOPE_TYPED_(4, name)
#define RTSCOPE_DESCRIBE_i8(name, value) RTSCOPE_TYPED_(5, name)
#define RTSCOPE_DESCRIBE_i16(name, value) RTSCOPE_TYPED_(6, name)
#define RTSCOPE_DESCRIBE_i32(name, value) RTSCOPE_TYPED_(7, name)
#define RTSCOPE_DESCRIBE_i64(name, value) RTSCOPE_TYPED_(8, name)
#define RTSCOPE_DESCRIBE_x8(name, value) RTSCOPE_TYPED_(9, name)
#define RTSCOPE_DESCRIBE_x16(name, value) RTSCOPE_TYPED_(10, name)
#define RTSCOPE_DESCRIBE_x32(name, value) RTSCOPE_TYPED_(11, name)
#define RTSCOPE_DESCRIBE_x64(name, value) RTSCOPE_TYPED_(12, name)
#define RTSCOPE_DESCRIBE_f32(name, value) RTSCOPE_TYPED_(13, name)
#define RTSCOPE_DESCRIBE_f64(name, value) RTSCOPE_TYPED_(14, name)
#define RTSCOPE_DESCRIBE_text(name, value) RTSCOPE_TYPED_(15, name)
#define RTSCOPE_DESCRIBE_text_n(name, value, length_max) RTSCOPE_TYPED_(15, name)
#define RTSCOPE_DESCRIBE_bytes(name, pointer, length) RTSCOPE_TYPED_(16, name)

#define RTSCOPE_VARIES_u8(name, value) 0
#define RTSCOPE_VARIES_u16(name, value) 0
#define RTSCOPE_VARIES_u32(name, value) 0
#define RTSCOPE_VARIES_u64(name, value) 0
#define RTSCOPE_VARIES_i8(name, value) 0
#define RTSCOPE_VARIES_i16(name, value) 0
#define RTSCOPE_VARIES_i32(name, value) 0
#define RTSCOPE_VARIES_i64(name, value) 0
#define RTSCOPE_VARIES_x8(name, value) 0
#define RTSCOPE_VARIES_x16(name, value) 0
#define RTSCOPE_VARIES_x32(name, value) 0
#define RTSCOPE_VARIES_x64(name, value) 0
#define RTSCOPE_VARIES_f32(name, value) 0
#define RTSCOPE_VARIES_f64(name, value) 0
#define RTSCOPE_VARIES_text(name, value) 1
#define RTSCOPE_VARIES_text_n(name, value, length_max) 1
#define RTSCOPE_VARIES_bytes(name, pointer, length) 1

#define RTSCOPE_BYTES_u8(name, value) 1u
#define RTSCOPE_BYTES_u16(name, value) 2u
#define RTSCOPE_BYTES_u32(name, value) 4u
#define RTSCOPE_BYTES_u64(name, value) 8u
#define RTSCOPE_BYTES_i8(name, value) 1u
#define RTSCOPE_BYTES_i16(name, value) 2u
#define RTSCOPE_BYTES_i32(name, value) 4u
#define RTSCOPE_BYTES_i64(name, value) 8u
#define RTSCOPE_BYTES_x8(name, value) 1u
#define RTSCOPE_BYTES_x16(name, value) 2u
#define RTSCOPE_BYTES_x32(name, value) 4u
#define RTSCOPE_BYTES_x64(name, value) 8u
#define RTSCOPE_BYTES_f32(name, value) 4u
#define RTSCOPE_BYTES_f64(name, value) 8u
#define RTSCOPE_BYTES_text(name, value) 2u
#define RTSCOPE_BYTES_text_n(name, value, length_max) 2u
#define RTSCOPE_BYTES_bytes(name, pointer, length) 2u

#define RTSCOPE_PUT_u8(name, value) RTSCOPE_PUT_NUMBER_(uint8_t, value)
#define RTSCOPE_PUT_u16(name, value) RTSCOPE_PUT_NUMBER_(uint16_t, value)
#define RTSCOPE_PUT_u32(name, value) RTSCOPE_PUT_NUMBER_(uint32_t, value)
#define RTSCOPE_PUT_u64(name, value) RTSCOPE_PUT_NUMBER_(uint64_t, value)
#define RTSCOPE_PUT_i8(name, value) RTSCOPE_PUT_NUMBER_(int8_t, value)
#define RTSCOPE_PUT_i16(name, value) RTSCOPE_PUT_NUMBER_(int16_t, value)
#define RTSCOPE_PUT_i32(name, value) RTSCOPE_PUT_NUMBER_(int32_t, value)
#define RTSCOPE_PUT_i64(name, value) RTSCOPE_PUT_NUMBER_(int64_t, value)
#define RTSCOPE_PUT_x8(name, value) RTSCOPE_PUT_NUMBER_(uint8_t, value)
#define RTSCOPE_PUT_x16(name, value) RTSCOPE_PUT_NUMBER_(uint16_t, value)
#define RTSCOPE_PUT_x32(name, value) RTSCOPE_PUT_NUMBER_(uint32_t, value)
#define RTSCOPE_PUT_x64(name, value) RTSCOPE_PUT_NUMBER_(uint64_t, value)
#define RTSCOPE_PUT_f32(name, value) RTSCOPE_PUT_NUMBER_(float, value)
#define RTSCOPE_PUT_f64(name, value) RTSCOPE_PUT_NUMBER_(double, value)
/* Later fixed fields keep their room: a text takes at most what is left beside them. */
#define RTSCOPE_PUT_text(name, value)                                                             \
    rtscope_at_ = rtscope_put_text_(rtscope_at_, &rtscope_room_, (value), (size_t)-1);
#define RTSCOPE_PUT_text_n(name, value, length_max)                                               \
    rtscope_at_ = rtscope_put_text_(rtscope_at_, &rtscope_room_, (value), (length_max));
#define RTSCOPE_PUT_bytes(name, pointer, length)                                                  \
    rtscope_at_ = rtscope_put_bytes_(rtscope_at_, &rtscope_room_, (pointer), (length));

#define RTSCOPE_FIXED_BYTES_(...) (RTSCOPE_EACH_(RTSCOPE_BYTES_, __VA_ARGS__))
#define RTSCOPE_ANY_VARIES_(...) (RTSCOPE_EACH_(RTSCOPE_VARIES_, __VA_ARGS__))
#define RTSCOPE_WORDS_(bytes) (((bytes) + 7u) / 8u)
/* The words of a payload of fixed size; 1 where the size varies and nobody asks. */
#define RTSCOPE_FIXED_WORDS_(...)                                                                 \
    (RTSCOPE_ANY_VARIES_(__VA_ARGS__) ? 1u : RTSCOPE_WORDS_(RTSCOPE_FIXED_BYTES_(__VA_ARGS__)))
/* The room on the stack, at least a word. */
#define RTSCOPE_STAGE_WORDS_(...)                                                                 \
    (RTSCOPE_ANY_VARIES_(__VA_ARGS__)                                                             \
         ? RTSCOPE_WORDS_(RTSCOPE_PAYLOAD_BYTES_MAX)                                              \
         : RTSCOPE_WORDS_(RTSCOPE_FIXED_BYTES_(__VA_ARGS__)) + 1u)

#define RTSCOPE_RECORD_(...)                                                                      \
    do {                                                                                          \
        uint64_t rtscope_stage_[RTSCOPE_STAGE_WORDS_(__VA_ARGS__)];                               \
        unsigned char *rtscope_at_ = (unsigned char *)rtscope_stage_;                             \
        size_t rtscope_room_ =                                                                    \
            RTSCOPE_PAYLOAD_BYTES_MAX - (size_t)RTSCOPE_FIXED_BYTES_(__VA_ARGS__);                \
        (void)rtscope_room_;                                                                      \
        if (!RTSCOPE_ANY_VARIES_(__VA_ARGS__))                                                    \
            rtscope_stage_[RTSCOPE_STAGE_WORDS_(__VA_ARGS__) - 2u +                               \
                           (RTSCOPE_STAGE_WORDS_(__VA_ARGS__) < 2u)] = 0;                         \
        RTSCOPE_EACH_(RTSCOPE_PUT_, __VA_ARGS__)                                                  \
        if (RTSCOPE_ANY_VARIES_(__VA_ARGS__) || !rtscope_object_.fast) {                          \
            rtscope_write_(&rtscope_object_, rtscope_switch_->id, rtscope_stage_,                 \
                           (size_t)(rtscope_at_ - (unsigned char *)rtscope_stage_));              \
            break;                                                                                \
        }                                                                                         \
        struct rtscope_place_ rtscope_place_;                                                     \
        rtscope_place_.attempts = 0;                                                              \
        while (rtscope_claim_(&rtscope_object_, &rtscope_place_,                                  \
                              RTSCOPE_FIXED_WORDS_(__VA_ARGS__) + 2u)) {                          \
            uint32_t rtscope_aborted_;                                                            \
            const uint64_t rtscope_first_ =                                                       \
                (RTSCOPE_FIXED_WORDS_(__VA_ARGS__) + 2u) | (uint64_t)rtscope_switch_->id << 16 |  \
                (uint64_t)rtscope_place_.tid << 32;                                               \
            RTSCOPE_STORE_(rtscope_aborted_, rtscope_place_, rtscope_first_, rtscope_stage_,      \
                           RTSCOPE_FIXED_WORDS_(__VA_ARGS__));                                    \
            if (__builtin_expect(!rtscope_aborted_, 1))                                           \
                break;                                                                            \
        }                                                                                         \
    } while (0)

#endif
