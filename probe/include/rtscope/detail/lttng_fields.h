/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * LTTng's macros for fields, brought down to six kinds. Before the kind's own words: whether
 * filters alone see the field, whether it is in network order, and where types of its print begin
 * (enum rtscope_field: signed or not is told from the C type where it is decimal).
 */
#ifndef RTSCOPE_DETAIL_LTTNG_FIELDS_H
#define RTSCOPE_DETAIL_LTTNG_FIELDS_H

/* The type without const and volatile, which say nothing of a value: C++ compilers warn of casts
 * to types that have them. */
#ifdef __cplusplus
/* Providers may be included inside of extern "C", where templates cannot be. */
extern "C++" {
template <typename T> struct rtscope_lttng_plain_ {
    typedef T plain;
};
template <typename T> struct rtscope_lttng_plain_<const T> {
    typedef T plain;
};
template <typename T> struct rtscope_lttng_plain_<volatile T> {
    typedef T plain;
};
template <typename T> struct rtscope_lttng_plain_<const volatile T> {
    typedef T plain;
};
}
#define RTSCOPE_LTTNG_PLAIN_(type) rtscope_lttng_plain_<type>::plain
#else
#define RTSCOPE_LTTNG_PLAIN_(type) type
#endif

#define RTSCOPE_LTTNG_DECIMAL_(type)                                                              \
    ((RTSCOPE_LTTNG_PLAIN_(type))(intptr_t)-1 < (RTSCOPE_LTTNG_PLAIN_(type))(intptr_t)1           \
         ? RTSCOPE_FIELD_I8                                                                       \
         : RTSCOPE_FIELD_U8)
#define RTSCOPE_LTTNG_HEX_(type) RTSCOPE_FIELD_X8

#define lttng_ust_field_integer(type, item, source)                                               \
    RTSCOPE_LTTNG_NUMBER_(0, 0, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source)
#define lttng_ust_field_integer_hex(type, item, source)                                           \
    RTSCOPE_LTTNG_NUMBER_(0, 0, RTSCOPE_LTTNG_HEX_(type), type, item, source)
#define lttng_ust_field_integer_network(type, item, source)                                       \
    RTSCOPE_LTTNG_NUMBER_(0, 1, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source)
#define lttng_ust_field_integer_network_hex(type, item, source)                                   \
    RTSCOPE_LTTNG_NUMBER_(0, 1, RTSCOPE_LTTNG_HEX_(type), type, item, source)
#define lttng_ust_field_integer_nowrite(type, item, source)                                       \
    RTSCOPE_LTTNG_NUMBER_(1, 0, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source)

/* Floats have no size of 1 and 2: theirs are counted back from that of 4. */
#define RTSCOPE_LTTNG_FLOAT_ (RTSCOPE_FIELD_F32 - 2)
#define lttng_ust_field_float(type, item, source)                                                 \
    RTSCOPE_LTTNG_NUMBER_(0, 0, RTSCOPE_LTTNG_FLOAT_, type, item, source)
#define lttng_ust_field_float_nowrite(type, item, source)                                         \
    RTSCOPE_LTTNG_NUMBER_(1, 0, RTSCOPE_LTTNG_FLOAT_, type, item, source)

#define lttng_ust_field_array(type, item, source, length)                                         \
    RTSCOPE_LTTNG_ARRAY_(0, 0, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source, length)
#define lttng_ust_field_array_hex(type, item, source, length)                                     \
    RTSCOPE_LTTNG_ARRAY_(0, 0, RTSCOPE_LTTNG_HEX_(type), type, item, source, length)
#define lttng_ust_field_array_network(type, item, source, length)                                 \
    RTSCOPE_LTTNG_ARRAY_(0, 1, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source, length)
#define lttng_ust_field_array_network_hex(type, item, source, length)                             \
    RTSCOPE_LTTNG_ARRAY_(0, 1, RTSCOPE_LTTNG_HEX_(type), type, item, source, length)
#define lttng_ust_field_array_nowrite(type, item, source, length)                                 \
    RTSCOPE_LTTNG_ARRAY_(1, 0, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source, length)
#define lttng_ust_field_array_nowrite_hex(type, item, source, length)                             \
    RTSCOPE_LTTNG_ARRAY_(1, 0, RTSCOPE_LTTNG_HEX_(type), type, item, source, length)
#define lttng_ust_field_array_network_nowrite(type, item, source, length)                         \
    RTSCOPE_LTTNG_ARRAY_(1, 1, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source, length)
#define lttng_ust_field_array_network_nowrite_hex(type, item, source, length)                     \
    RTSCOPE_LTTNG_ARRAY_(1, 1, RTSCOPE_LTTNG_HEX_(type), type, item, source, length)

#define lttng_ust_field_sequence(type, item, source, length_type, length)                         \
    RTSCOPE_LTTNG_SEQUENCE_(0, 0, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source, length)
#define lttng_ust_field_sequence_hex(type, item, source, length_type, length)                     \
    RTSCOPE_LTTNG_SEQUENCE_(0, 0, RTSCOPE_LTTNG_HEX_(type), type, item, source, length)
#define lttng_ust_field_sequence_network(type, item, source, length_type, length)                 \
    RTSCOPE_LTTNG_SEQUENCE_(0, 1, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source, length)
#define lttng_ust_field_sequence_network_hex(type, item, source, length_type, length)             \
    RTSCOPE_LTTNG_SEQUENCE_(0, 1, RTSCOPE_LTTNG_HEX_(type), type, item, source, length)
#define lttng_ust_field_sequence_nowrite(type, item, source, length_type, length)                 \
    RTSCOPE_LTTNG_SEQUENCE_(1, 0, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source, length)
#define lttng_ust_field_sequence_nowrite_hex(type, item, source, length_type, length)             \
    RTSCOPE_LTTNG_SEQUENCE_(1, 0, RTSCOPE_LTTNG_HEX_(type), type, item, source, length)
#define lttng_ust_field_sequence_network_nowrite(type, item, source, length_type, length)         \
    RTSCOPE_LTTNG_SEQUENCE_(1, 1, RTSCOPE_LTTNG_DECIMAL_(type), type, item, source, length)
#define lttng_ust_field_sequence_network_nowrite_hex(type, item, source, length_type, length)     \
    RTSCOPE_LTTNG_SEQUENCE_(1, 1, RTSCOPE_LTTNG_HEX_(type), type, item, source, length)

#define lttng_ust_field_array_text(type, item, source, length)                                    \
    RTSCOPE_LTTNG_CHARACTERS_(0, item, source, length)
#define lttng_ust_field_array_text_nowrite(type, item, source, length)                            \
    RTSCOPE_LTTNG_CHARACTERS_(1, item, source, length)
#define lttng_ust_field_sequence_text(type, item, source, length_type, length)                    \
    RTSCOPE_LTTNG_TEXT_(0, item, source, length)
#define lttng_ust_field_sequence_text_nowrite(type, item, source, length_type, length)            \
    RTSCOPE_LTTNG_TEXT_(1, item, source, length)
#define lttng_ust_field_string(item, source) RTSCOPE_LTTNG_TEXT_(0, item, source, -1)
#define lttng_ust_field_string_nowrite(item, source) RTSCOPE_LTTNG_TEXT_(1, item, source, -1)

/* Bytes of a media type, since 2.14: told as bytes, without it. */
#define lttng_ust_field_fixed_length_blob(item, source, length, media_type)                       \
    lttng_ust_field_array_hex(uint8_t, item, source, length)
#define lttng_ust_field_fixed_length_blob_nowrite(item, source, length, media_type)               \
    lttng_ust_field_array_nowrite_hex(uint8_t, item, source, length)
#define lttng_ust_field_variable_length_blob(item, source, length_type, length, media_type)       \
    lttng_ust_field_sequence_hex(uint8_t, item, source, length_type, length)
#define lttng_ust_field_variable_length_blob_nowrite(item, source, length_type, length,           \
                                                     media_type)                                  \
    lttng_ust_field_sequence_nowrite_hex(uint8_t, item, source, length_type, length)

#define lttng_ust_field_enum(provider, name, type, item, source)                                  \
    RTSCOPE_LTTNG_LABELLED_(0, provider, name, type, item, source)
#define lttng_ust_field_enum_nowrite(provider, name, type, item, source)                          \
    RTSCOPE_LTTNG_LABELLED_(1, provider, name, type, item, source)

#define lttng_ust_field_unused(source)
#define lttng_ust_field_unused_nowrite(source)

/* Labels, where RTSCOPE_LTTNG_ENUM_ looks at them. */
#define lttng_ust_field_enum_value(label, value)                                                  \
    next_ = rtscope_lttng_label_(text_, label, (int64_t)(value), (int64_t)(value));
#define lttng_ust_field_enum_range(label, first, last)                                            \
    next_ = rtscope_lttng_label_(text_, label, (int64_t)(first), (int64_t)(last));
#define lttng_ust_field_enum_auto(label)                                                          \
    next_ = rtscope_lttng_label_(text_, label, next_, next_);

#endif
