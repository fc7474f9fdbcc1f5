/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the fields of an event are made of. Each word of the user's becomes a class of fields with
 * its arguments; what a class needs to be described, measured and stored stands in one place.
 */
#ifndef RTSCOPE_DETAIL_FIELDS_H
#define RTSCOPE_DETAIL_FIELDS_H

#include <stddef.h>
#include <stdint.h>

/* Of nothing the pointer may be none, which memcpy must not see. */
static inline __attribute__((always_inline)) void rtscope_copy_(void *at, const void *from,
                                                                size_t bytes)
{
    if (bytes)
        __builtin_memcpy(at, from, bytes);
}

/* The user's words. Numbers: code (enum rtscope_field), what stands before it, type. */
#define RTSCOPE_FIELD_u8(name, value) number_, 1, "", uint8_t, name, value
#define RTSCOPE_FIELD_u16(name, value) number_, 2, "", uint16_t, name, value
#define RTSCOPE_FIELD_u32(name, value) number_, 3, "", uint32_t, name, value
#define RTSCOPE_FIELD_u64(name, value) number_, 4, "", uint64_t, name, value
#define RTSCOPE_FIELD_i8(name, value) number_, 5, "", int8_t, name, value
#define RTSCOPE_FIELD_i16(name, value) number_, 6, "", int16_t, name, value
#define RTSCOPE_FIELD_i32(name, value) number_, 7, "", int32_t, name, value
#define RTSCOPE_FIELD_i64(name, value) number_, 8, "", int64_t, name, value
#define RTSCOPE_FIELD_x8(name, value) number_, 9, "", uint8_t, name, value
#define RTSCOPE_FIELD_x16(name, value) number_, 10, "", uint16_t, name, value
#define RTSCOPE_FIELD_x32(name, value) number_, 11, "", uint32_t, name, value
#define RTSCOPE_FIELD_x64(name, value) number_, 12, "", uint64_t, name, value
#define RTSCOPE_FIELD_f32(name, value) number_, 13, "", float, name, value
#define RTSCOPE_FIELD_f64(name, value) number_, 14, "", double, name, value
#define RTSCOPE_FIELD_n16(name, value) number_, 2, ".byte 65\n", uint16_t, name, value
#define RTSCOPE_FIELD_n32(name, value) number_, 3, ".byte 65\n", uint32_t, name, value
#define RTSCOPE_FIELD_n64(name, value) number_, 4, ".byte 65\n", uint64_t, name, value
#define RTSCOPE_LABELLED_(labels) ".byte 66\n.asciz \"" #labels "\"\n"
#define RTSCOPE_FIELD_e8(name, labels, value)                                                     \
    number_, 1, RTSCOPE_LABELLED_(labels), uint8_t, name, value
#define RTSCOPE_FIELD_e32(name, labels, value)                                                    \
    number_, 7, RTSCOPE_LABELLED_(labels), int32_t, name, value
#define RTSCOPE_FIELD_e64(name, labels, value)                                                    \
    number_, 8, RTSCOPE_LABELLED_(labels), int64_t, name, value
#define RTSCOPE_FIELD_text(name, value) text_, name, value, (size_t)-1
#define RTSCOPE_FIELD_text_n(name, value, length_max) text_, name, value, length_max
#define RTSCOPE_FIELD_bytes(name, pointer, length) bytes_, name, pointer, length
#define RTSCOPE_FIELD_chars(name, pointer, size) array_, "15\n", 1u, name, pointer, size
#define RTSCOPE_FIELD_array(name, type, pointer, count)                                           \
    array_, RTSCOPE_ELEMENT_##type, name, pointer, count
#define RTSCOPE_FIELD_sequence(name, type, pointer, count)                                        \
    sequence_, RTSCOPE_ELEMENT_##type, name, pointer, count
#define RTSCOPE_FIELD_nowrite(field) hidden_, RTSCOPE_FIELD_##field
#define RTSCOPE_FIELD_end() end_, 0

/* Elements of arrays and sequences: their code, their size. */
#define RTSCOPE_ELEMENT_u8 "1\n", 1u
#define RTSCOPE_ELEMENT_u16 "2\n", 2u
#define RTSCOPE_ELEMENT_u32 "3\n", 4u
#define RTSCOPE_ELEMENT_u64 "4\n", 8u
#define RTSCOPE_ELEMENT_i8 "5\n", 1u
#define RTSCOPE_ELEMENT_i16 "6\n", 2u
#define RTSCOPE_ELEMENT_i32 "7\n", 4u
#define RTSCOPE_ELEMENT_i64 "8\n", 8u
#define RTSCOPE_ELEMENT_x8 "9\n", 1u
#define RTSCOPE_ELEMENT_x16 "10\n", 2u
#define RTSCOPE_ELEMENT_x32 "11\n", 4u
#define RTSCOPE_ELEMENT_x64 "12\n", 8u
#define RTSCOPE_ELEMENT_f32 "13\n", 4u
#define RTSCOPE_ELEMENT_f64 "14\n", 8u

/* Calls the macro of the field's class. */
#define RTSCOPE_CLASS_(macro, ...) RTSCOPE_CLASS_1_(macro, __VA_ARGS__)
#define RTSCOPE_CLASS_1_(macro, class_, ...) macro##class_(__VA_ARGS__)
#define RTSCOPE_NUMBERED_CLASS_(macro, n, ...) RTSCOPE_NUMBERED_CLASS_1_(macro, n, __VA_ARGS__)
#define RTSCOPE_NUMBERED_CLASS_1_(macro, n, class_, ...) macro##class_(n, __VA_ARGS__)

/*
 * Of each field: its description (assembler text) with the counts in it, whether its name or its
 * count breaks a limit, whether its length varies, its bytes when it does not (else those of its
 * length), those that are hidden, how it gets into the payload, and how a hidden one gets behind
 * it.
 */
#define RTSCOPE_DESCRIBE_(n, field)                                                               \
    RTSCOPE_NUMBERED_CLASS_(RTSCOPE_DESCRIBE_, n, RTSCOPE_FIELD_##field)
#define RTSCOPE_COUNTS_(n, field)                                                                 \
    RTSCOPE_NUMBERED_CLASS_(RTSCOPE_COUNTS_, n, RTSCOPE_FIELD_##field)
#define RTSCOPE_MISNAMED_(field) +RTSCOPE_CLASS_(RTSCOPE_MISNAMED_, RTSCOPE_FIELD_##field)
#define RTSCOPE_TOO_LONG_(field) +RTSCOPE_CLASS_(RTSCOPE_TOO_LONG_, RTSCOPE_FIELD_##field)
#define RTSCOPE_VARIES_(field) +RTSCOPE_CLASS_(RTSCOPE_VARIES_, RTSCOPE_FIELD_##field)
#define RTSCOPE_BYTES_(field) +RTSCOPE_CLASS_(RTSCOPE_BYTES_, RTSCOPE_FIELD_##field)
#define RTSCOPE_UNSEEN_(field) +RTSCOPE_CLASS_(RTSCOPE_UNSEEN_, RTSCOPE_FIELD_##field)
#define RTSCOPE_PUT_(field) RTSCOPE_CLASS_(RTSCOPE_PUT_, RTSCOPE_FIELD_##field)
#define RTSCOPE_HIDE_(field) RTSCOPE_CLASS_(RTSCOPE_HIDE_, RTSCOPE_FIELD_##field)

#define RTSCOPE_NAMED_(name) ".asciz " #name "\n"
#define RTSCOPE_DESCRIBE_number_(n, code, before, type, name, value)                              \
    before ".byte " #code "\n" RTSCOPE_NAMED_(name)
#define RTSCOPE_DESCRIBE_text_(n, name, value, length_max) ".byte 15\n" RTSCOPE_NAMED_(name)
#define RTSCOPE_DESCRIBE_bytes_(n, name, pointer, length) ".byte 16\n" RTSCOPE_NAMED_(name)
#define RTSCOPE_DESCRIBE_array_(n, element, size, name, pointer, count)                           \
    ".byte 67\n.long %c[rtscope_count_" #n "]\n.byte " element RTSCOPE_NAMED_(name)
#define RTSCOPE_DESCRIBE_sequence_(n, element, size, name, pointer, count)                        \
    ".byte 68\n.byte " element RTSCOPE_NAMED_(name)
#define RTSCOPE_DESCRIBE_hidden_(n, class_, ...)                                                  \
    ".byte 64\n" RTSCOPE_DESCRIBE_##class_(n, __VA_ARGS__)
#define RTSCOPE_DESCRIBE_end_(n, none) ".byte 0\n"

/* The counts that descriptions mention, as any constant that the compiler knows. */
#define RTSCOPE_COUNTS_number_(n, code, before, type, name, value)
#define RTSCOPE_COUNTS_text_(n, name, value, length_max)
#define RTSCOPE_COUNTS_bytes_(n, name, pointer, length)
#define RTSCOPE_COUNTS_array_(n, element, size, name, pointer, count)                             \
    , [rtscope_count_##n] "i"((uint32_t)(count))
#define RTSCOPE_COUNTS_sequence_(n, element, size, name, pointer, count)
#define RTSCOPE_COUNTS_hidden_(n, class_, ...) RTSCOPE_COUNTS_##class_(n, __VA_ARGS__)
#define RTSCOPE_COUNTS_end_(n, none)

/* Names of 1 to 255 bytes, none of them zero; of which letters they are, the library looks at. */
#define RTSCOPE_IS_MISNAMED_(name)                                                                \
    (sizeof(name) < 2 || sizeof(name) > 256 || __builtin_strlen(name) + 1 != sizeof(name))
#define RTSCOPE_MISNAMED_number_(code, before, type, name, value) RTSCOPE_IS_MISNAMED_(name)
#define RTSCOPE_MISNAMED_text_(name, value, length_max) RTSCOPE_IS_MISNAMED_(name)
#define RTSCOPE_MISNAMED_bytes_(name, pointer, length) RTSCOPE_IS_MISNAMED_(name)
#define RTSCOPE_MISNAMED_array_(element, size, name, pointer, count) RTSCOPE_IS_MISNAMED_(name)
#define RTSCOPE_MISNAMED_sequence_(element, size, name, pointer, count) RTSCOPE_IS_MISNAMED_(name)
#define RTSCOPE_MISNAMED_hidden_(class_, ...) RTSCOPE_MISNAMED_##class_(__VA_ARGS__)
#define RTSCOPE_MISNAMED_end_(none) 0

#define RTSCOPE_TOO_LONG_number_(code, before, type, name, value) 0
#define RTSCOPE_TOO_LONG_text_(name, value, length_max) 0
#define RTSCOPE_TOO_LONG_bytes_(name, pointer, length) 0
#define RTSCOPE_TOO_LONG_array_(element, size, name, pointer, count)                              \
    ((uint64_t)(count) > RTSCOPE_ARRAY_LENGTH_MAX)
#define RTSCOPE_TOO_LONG_sequence_(element, size, name, pointer, count) 0
#define RTSCOPE_TOO_LONG_hidden_(class_, ...) RTSCOPE_TOO_LONG_##class_(__VA_ARGS__)
#define RTSCOPE_TOO_LONG_end_(none) 0

#define RTSCOPE_VARIES_number_(code, before, type, name, value) 0
#define RTSCOPE_VARIES_text_(name, value, length_max) 1
#define RTSCOPE_VARIES_bytes_(name, pointer, length) 1
#define RTSCOPE_VARIES_array_(element, size, name, pointer, count) 0
#define RTSCOPE_VARIES_sequence_(element, size, name, pointer, count) 1
#define RTSCOPE_VARIES_hidden_(class_, ...) RTSCOPE_VARIES_##class_(__VA_ARGS__)
#define RTSCOPE_VARIES_end_(none) 0

#define RTSCOPE_BYTES_number_(code, before, type, name, value) sizeof(type)
#define RTSCOPE_BYTES_text_(name, value, length_max) 2u
#define RTSCOPE_BYTES_bytes_(name, pointer, length) 2u
#define RTSCOPE_BYTES_array_(element, size, name, pointer, count) (size) * (size_t)(count)
#define RTSCOPE_BYTES_sequence_(element, size, name, pointer, count) 2u
#define RTSCOPE_BYTES_hidden_(class_, ...) 0u
#define RTSCOPE_BYTES_end_(none) 0u

#define RTSCOPE_UNSEEN_number_(code, before, type, name, value) 0u
#define RTSCOPE_UNSEEN_text_(name, value, length_max) 0u
#define RTSCOPE_UNSEEN_bytes_(name, pointer, length) 0u
#define RTSCOPE_UNSEEN_array_(element, size, name, pointer, count) 0u
#define RTSCOPE_UNSEEN_sequence_(element, size, name, pointer, count) 0u
#define RTSCOPE_UNSEEN_hidden_(class_, ...) RTSCOPE_BYTES_##class_(__VA_ARGS__)
#define RTSCOPE_UNSEEN_end_(none) 0u

#define RTSCOPE_PUT_number_(code, before, type, name, value)                                      \
    {                                                                                             \
        const type rtscope_value_ = (type)(value);                                                \
        __builtin_memcpy(rtscope_at_, &rtscope_value_, sizeof(type));                             \
        rtscope_at_ += sizeof(type);                                                              \
    }
/* Later fixed fields keep their room: what varies takes at most what is left beside them. */
#define RTSCOPE_PUT_text_(name, value, length_max)                                                \
    rtscope_at_ = rtscope_put_text_(rtscope_at_, &rtscope_room_, (value), (length_max));
#define RTSCOPE_PUT_bytes_(name, pointer, length)                                                 \
    rtscope_at_ = rtscope_put_bytes_(rtscope_at_, &rtscope_room_, (pointer), (length));
#define RTSCOPE_PUT_array_(element, size, name, pointer, count)                                   \
    rtscope_copy_(rtscope_at_, (pointer), (size) * (size_t)(count));                              \
    rtscope_at_ += (size) * (size_t)(count);
#define RTSCOPE_PUT_sequence_(element, size, name, pointer, count)                                \
    rtscope_at_ = rtscope_put_sequence_(rtscope_at_, &rtscope_room_, (pointer), (count), (size));
#define RTSCOPE_PUT_hidden_(class_, ...)
#define RTSCOPE_PUT_end_(none)

#define RTSCOPE_HIDE_number_(code, before, type, name, value)
#define RTSCOPE_HIDE_text_(name, value, length_max)
#define RTSCOPE_HIDE_bytes_(name, pointer, length)
#define RTSCOPE_HIDE_array_(element, size, name, pointer, count)
#define RTSCOPE_HIDE_sequence_(element, size, name, pointer, count)
#define RTSCOPE_HIDE_hidden_(class_, ...) RTSCOPE_PUT_##class_(__VA_ARGS__)
#define RTSCOPE_HIDE_end_(none)

#define RTSCOPE_FIXED_BYTES_(...) (RTSCOPE_EACH_(RTSCOPE_BYTES_, __VA_ARGS__))
#define RTSCOPE_HIDDEN_BYTES_(...) (RTSCOPE_EACH_(RTSCOPE_UNSEEN_, __VA_ARGS__))
#define RTSCOPE_ANY_VARIES_(...) (RTSCOPE_EACH_(RTSCOPE_VARIES_, __VA_ARGS__))
#define RTSCOPE_WORDS_(bytes) (((bytes) + 7u) / 8u)
/* The word that may end with filling; the first when there is none. */
#define RTSCOPE_LAST_WORD_(bytes) (((bytes) + 7u) / 8u - ((bytes) > 0u))
/* The words of a payload of fixed size; 1 where the size varies and nobody asks. */
#define RTSCOPE_FIXED_WORDS_(...)                                                                 \
    (RTSCOPE_ANY_VARIES_(__VA_ARGS__) ? 1u : RTSCOPE_WORDS_(RTSCOPE_FIXED_BYTES_(__VA_ARGS__)))
/* What is left for text, bytes and sequences: never less than nothing. */
#define RTSCOPE_ROOM_BYTES_(...)                                                                  \
    (RTSCOPE_FIXED_BYTES_(__VA_ARGS__) + RTSCOPE_HIDDEN_BYTES_(__VA_ARGS__) <                     \
             RTSCOPE_PAYLOAD_BYTES_MAX                                                            \
         ? RTSCOPE_PAYLOAD_BYTES_MAX -                                                            \
               (RTSCOPE_FIXED_BYTES_(__VA_ARGS__) + RTSCOPE_HIDDEN_BYTES_(__VA_ARGS__))           \
         : (size_t)0)
/* The room on the stack, with a word in which hidden fields begin anew, and never none. */
#define RTSCOPE_STAGE_WORDS_(...)                                                                 \
    ((RTSCOPE_ANY_VARIES_(__VA_ARGS__)                                                            \
          ? RTSCOPE_WORDS_(RTSCOPE_PAYLOAD_BYTES_MAX)                                             \
          : RTSCOPE_WORDS_(RTSCOPE_FIXED_BYTES_(__VA_ARGS__)) +                                   \
                RTSCOPE_WORDS_(RTSCOPE_HIDDEN_BYTES_(__VA_ARGS__))) +                             \
     1u)

#ifdef __cplusplus
#define RTSCOPE_ASSERT_(condition, what) static_assert(condition, what)
#else
#define RTSCOPE_ASSERT_(condition, what) __extension__ _Static_assert(condition, what)
#endif
/* What a declaration must keep to; docs/format/rings.md has the same limits. */
#define RTSCOPE_CHECK_FIELDS_(...)                                                                \
    RTSCOPE_ASSERT_((RTSCOPE_EACH_(RTSCOPE_MISNAMED_, __VA_ARGS__)) == 0,                         \
                    "the name of a field has 1 to 255 bytes, and no zero");                       \
    RTSCOPE_ASSERT_((RTSCOPE_EACH_(RTSCOPE_TOO_LONG_, __VA_ARGS__)) == 0,                         \
                    "an array has at most 512 elements");                                         \
    RTSCOPE_ASSERT_(!RTSCOPE_ANY_VARIES_(__VA_ARGS__) ||                                          \
                        RTSCOPE_FIXED_BYTES_(__VA_ARGS__) +                                       \
                                RTSCOPE_HIDDEN_BYTES_(__VA_ARGS__) <=                             \
                            RTSCOPE_PAYLOAD_BYTES_MAX,                                            \
                    "fields of fixed length leave no room for text, bytes and sequences: with "   \
                    "them, an event has 512 bytes");                                              \
    RTSCOPE_ASSERT_(RTSCOPE_FIXED_BYTES_(__VA_ARGS__) + RTSCOPE_HIDDEN_BYTES_(__VA_ARGS__) <=     \
                        RTSCOPE_FIXED_BYTES_MAX,                                                  \
                    "fields of fixed length have at most 4080 bytes together")

/* A label of an enumeration, for the values from `first` to `last`. */
struct rtscope_label_ {
    int64_t first;
    int64_t last;
    const char *text;
};

struct rtscope_enumeration_ {
    const char *name;
    const struct rtscope_label_ *labels;
    size_t length;
};

#if defined(__has_attribute)
#if __has_attribute(retain)
#define RTSCOPE_KEEP_ used, retain
#endif
#endif
#ifndef RTSCOPE_KEEP_
#define RTSCOPE_KEEP_ used
#endif

/*
 * At file scope, for the fields e8, e32 and e64 of this program or library:
 *
 *     RTSCOPE_ENUMERATION(light, RTSCOPE_LABEL("red", RED), RTSCOPE_LABELS("broken", 7, 9))
 *
 * The section has pointers: compilers give structs in it an alignment of their own choice, and what
 * walks them as an array ends between two.
 */
#define RTSCOPE_ENUMERATION(name, ...) RTSCOPE_ENUMERATION_(name, __VA_ARGS__)
#define RTSCOPE_ENUMERATION_(name, ...)                                                           \
    static const struct rtscope_label_ rtscope_labels_##name[] = {__VA_ARGS__};                   \
    static const struct rtscope_enumeration_ rtscope_enumeration_##name = {                       \
        #name, rtscope_labels_##name,                                                             \
        sizeof rtscope_labels_##name / sizeof *rtscope_labels_##name};                            \
    static const struct rtscope_enumeration_ *rtscope_enumeration_at_##name                       \
        __attribute__((section("rtscope_enumeration_list"), RTSCOPE_KEEP_, aligned(8))) =         \
            &rtscope_enumeration_##name
#define RTSCOPE_LABEL(text, value) {(int64_t)(value), (int64_t)(value), text}
#define RTSCOPE_LABELS(text, first, last) {(int64_t)(first), (int64_t)(last), text}

#endif
