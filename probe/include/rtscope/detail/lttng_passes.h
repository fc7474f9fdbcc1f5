/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What LTTng's macros mean in each pass of tracepoint-event.h. */
#ifndef RTSCOPE_DETAIL_LTTNG_PASSES_H
#define RTSCOPE_DETAIL_LTTNG_PASSES_H

/*
 * First pass. The bytes of fields that do not vary (and of the lengths of those that do) are a
 * constant; levels may be given or not, which only the linker's weak names can tell; enumerations
 * are made known before the events that mean them.
 */
#define RTSCOPE_LTTNG_CLASS_BYTES_(provider_, name_, args, fields)                                \
    enum { rtscope_lttng_bytes_##provider_##___##name_ = 0 fields };
#define RTSCOPE_LTTNG_NUMBER_BYTES_(hidden, network, first, type, item, source) +sizeof(type)
#define RTSCOPE_LTTNG_LABELLED_BYTES_(hidden, provider, name, type, item, source) +sizeof(type)
#define RTSCOPE_LTTNG_ARRAY_BYTES_(hidden, network, first, type, item, source, length)            \
    +sizeof(type) * (length)
#define RTSCOPE_LTTNG_SEQUENCE_BYTES_(hidden, network, first, type, item, source, length) +2
#define RTSCOPE_LTTNG_CHARACTERS_BYTES_(hidden, item, source, length) +(length)
#define RTSCOPE_LTTNG_TEXT_BYTES_(hidden, item, source, length) +2

#define RTSCOPE_LTTNG_INSTANCE_LEVEL_(class_provider, class_name, provider_, name_, args)         \
    RTSCOPE_LTTNG_BEGIN_C_                                                                        \
    extern const unsigned char rtscope_lttng_level_##provider_##___##name_                        \
        __attribute__((weak, visibility("hidden")));                                              \
    RTSCOPE_LTTNG_END_C_

#define RTSCOPE_LTTNG_ENUM_LABELS_(provider_, name_, values)                                      \
    static void rtscope_lttng_labels_##provider_##___##name_(struct rtscope_lttng_text *text_)    \
    {                                                                                             \
        int64_t next_ = 0;                                                                        \
        values(void) next_;                                                                       \
    }                                                                                             \
    RTSCOPE_LTTNG_SOURCE_(102, provider_, name_, "",                                              \
                          rtscope_lttng_labels_##provider_##___##name_, NULL, NULL, enum_)

/* Tells the library at the start, and takes it back at the end. */
#define RTSCOPE_LTTNG_SOURCE_(when, provider_, name_, signature, describe, record, level, kind)   \
    static struct rtscope_lttng_source rtscope_lttng_##kind##provider_##___##name_ = {            \
        #provider_, #name_, signature, describe, record, level, NULL, NULL};                      \
    static __attribute__((constructor(when), used)) void                                          \
        rtscope_lttng_add_##kind##provider_##___##name_(void)                                     \
    {                                                                                             \
        rtscope_lttng_add_source_(&rtscope_lttng_##kind##provider_##___##name_);                  \
    }                                                                                             \
    static __attribute__((destructor(when), used)) void                                           \
        rtscope_lttng_remove_##kind##provider_##___##name_(void)                                  \
    {                                                                                             \
        rtscope_lttng_remove_source_(&rtscope_lttng_##kind##provider_##___##name_);               \
    }

/* Second pass: levels that are given, and a function that says what the fields are. */
#define RTSCOPE_LTTNG_LEVEL_GIVEN_(provider_, name_, level_)                                      \
    RTSCOPE_LTTNG_BEGIN_C_                                                                        \
    const unsigned char rtscope_lttng_level_##provider_##___##name_ = (level_);                   \
    RTSCOPE_LTTNG_END_C_

#define RTSCOPE_LTTNG_CLASS_DESCRIBE_(provider_, name_, args, fields)                             \
    static void rtscope_lttng_describe_##provider_##___##name_(struct rtscope_lttng_text *text_)  \
    {                                                                                             \
        fields rtscope_lttng_byte_(text_, RTSCOPE_FIELD_END);                                     \
    }
#define RTSCOPE_LTTNG_HIDE_(hidden)                                                               \
    if (hidden)                                                                                   \
        rtscope_lttng_byte_(text_, RTSCOPE_FIELD_HIDDEN);
#define RTSCOPE_LTTNG_TYPE_(network, first, type, item)                                           \
    if (network)                                                                                  \
        rtscope_lttng_byte_(text_, RTSCOPE_FIELD_BIG_ENDIAN);                                     \
    rtscope_lttng_number_(text_, (unsigned)(first), sizeof(type));                                \
    rtscope_lttng_string_(text_, #item);
#define RTSCOPE_LTTNG_NUMBER_DESCRIBE_(hidden, network, first, type, item, source)                \
    RTSCOPE_LTTNG_HIDE_(hidden)                                                                   \
    RTSCOPE_LTTNG_TYPE_(network, first, type, item)
#define RTSCOPE_LTTNG_LABELLED_DESCRIBE_(hidden, provider, name, type, item, source)              \
    RTSCOPE_LTTNG_HIDE_(hidden)                                                                   \
    rtscope_lttng_byte_(text_, RTSCOPE_FIELD_ENUMERATION);                                        \
    rtscope_lttng_string_(text_, #provider "_" #name);                                            \
    RTSCOPE_LTTNG_TYPE_(0, RTSCOPE_LTTNG_DECIMAL_(type), type, item)
#define RTSCOPE_LTTNG_ARRAY_DESCRIBE_(hidden, network, first, type, item, source, length)         \
    RTSCOPE_LTTNG_HIDE_(hidden)                                                                   \
    rtscope_lttng_byte_(text_, RTSCOPE_FIELD_ARRAY);                                              \
    rtscope_lttng_count_(text_, (uint32_t)(length));                                              \
    RTSCOPE_LTTNG_TYPE_(network, first, type, item)
#define RTSCOPE_LTTNG_SEQUENCE_DESCRIBE_(hidden, network, first, type, item, source, length)      \
    RTSCOPE_LTTNG_HIDE_(hidden)                                                                   \
    rtscope_lttng_byte_(text_, RTSCOPE_FIELD_SEQUENCE);                                           \
    RTSCOPE_LTTNG_TYPE_(network, first, type, item)
#define RTSCOPE_LTTNG_CHARACTERS_DESCRIBE_(hidden, item, source, length)                          \
    RTSCOPE_LTTNG_HIDE_(hidden)                                                                   \
    rtscope_lttng_byte_(text_, RTSCOPE_FIELD_ARRAY);                                              \
    rtscope_lttng_count_(text_, (uint32_t)(length));                                              \
    rtscope_lttng_byte_(text_, RTSCOPE_FIELD_TEXT);                                               \
    rtscope_lttng_string_(text_, #item);
#define RTSCOPE_LTTNG_TEXT_DESCRIBE_(hidden, item, source, length)                                \
    RTSCOPE_LTTNG_HIDE_(hidden)                                                                   \
    rtscope_lttng_byte_(text_, RTSCOPE_FIELD_TEXT);                                               \
    rtscope_lttng_string_(text_, #item);

/*
 * Third pass: a function that puts the fields that are seen, or (wanted_ = 1) those that are
 * hidden, and for each instance one that records. What a field is made from is evaluated once at
 * most.
 */
#define RTSCOPE_LTTNG_CLASS_PUT_(provider_, name_, args, fields)                                  \
    static inline __attribute__((always_inline, unused)) unsigned char                            \
        *rtscope_lttng_put_##provider_##___##name_(                                               \
            const int wanted_, unsigned char *at_, size_t *room_ RTSCOPE_LTTNG_MORE_PROTO_(args)) \
    {                                                                                             \
        (void)wanted_;                                                                            \
        (void)room_;                                                                              \
        fields return at_;                                                                        \
    }
#define RTSCOPE_LTTNG_NUMBER_PUT_(hidden, network, first, type, item, source)                     \
    if (wanted_ == hidden) {                                                                      \
        __typeof__(type) value_ = (RTSCOPE_LTTNG_PLAIN_(type))(source);                           \
        __builtin_memcpy(at_, &value_, sizeof value_);                                            \
        at_ += sizeof value_;                                                                     \
    }
#define RTSCOPE_LTTNG_LABELLED_PUT_(hidden, provider, name, type, item, source)                   \
    RTSCOPE_LTTNG_NUMBER_PUT_(hidden, 0, 0, type, item, source)
#define RTSCOPE_LTTNG_ARRAY_PUT_(hidden, network, first, type, item, source, length)              \
    if (wanted_ == hidden) {                                                                      \
        rtscope_copy_(at_, (source), sizeof(type) * (length));                                    \
        at_ += sizeof(type) * (length);                                                           \
    }
#define RTSCOPE_LTTNG_SEQUENCE_PUT_(hidden, network, first, type, item, source, length)           \
    if (wanted_ == hidden)                                                                        \
        at_ = rtscope_put_sequence_(at_, room_, (source), (size_t)(length), sizeof(type));
#define RTSCOPE_LTTNG_CHARACTERS_PUT_(hidden, item, source, length)                               \
    RTSCOPE_LTTNG_ARRAY_PUT_(hidden, 0, 0, char, item, source, length)
#define RTSCOPE_LTTNG_TEXT_PUT_(hidden, item, source, length)                                     \
    if (wanted_ == hidden) {                                                                      \
        const char *const value_ = (const char *)(source);                                        \
        at_ = rtscope_put_text_(at_, room_, value_ ? value_ : "(null)", (size_t)(length));        \
    }

/* An event without fields leaves its memory as it is, which is no mistake. */
#define RTSCOPE_LTTNG_FILLED_(stage) __asm__ volatile("" : : "r"(stage) : "memory")

#define RTSCOPE_LTTNG_INSTANCE_RECORD_(class_provider_, class_name_, provider_, name_, args)      \
    static void rtscope_lttng_record_##provider_##___##name_(                                     \
        void *target_ RTSCOPE_LTTNG_MORE_PROTO_(args))                                            \
    {                                                                                             \
        const struct rtscope_late *const late_ =                                                  \
            &((const struct rtscope_lttng_event *)target_)->late;                                 \
        uint64_t stage_[RTSCOPE_WORDS_(rtscope_lttng_bytes_##class_provider_##___##class_name_ +  \
                                       RTSCOPE_PAYLOAD_BYTES_MAX) +                               \
                        2u];                                                                      \
        unsigned char *const begin_ = (unsigned char *)stage_;                                    \
        size_t room_ = RTSCOPE_PAYLOAD_BYTES_MAX;                                                 \
        const size_t bytes_ =                                                                     \
            (size_t)(rtscope_lttng_put_##class_provider_##___##class_name_(                       \
                         0, begin_, &room_ RTSCOPE_LTTNG_MORE_VALUES_(args)) -                    \
                     begin_);                                                                     \
        if (__builtin_expect(*(volatile uint8_t *)&late_->state->enabled & RTSCOPE_FILTERED,      \
                             0)) {                                                                \
            unsigned char *const behind_ = begin_ + RTSCOPE_WORDS_(bytes_) * 8;                   \
            const size_t hidden_ =                                                                \
                (size_t)(rtscope_lttng_put_##class_provider_##___##class_name_(                   \
                             1, behind_, &room_ RTSCOPE_LTTNG_MORE_VALUES_(args)) -               \
                         behind_);                                                                \
            RTSCOPE_LTTNG_FILLED_(stage_);                                                        \
            if (!rtscope_pass_(late_->state, begin_, bytes_, behind_, hidden_))                   \
                return;                                                                           \
        }                                                                                         \
        rtscope_write_late(late_, stage_, bytes_);                                                \
    }                                                                                             \
    RTSCOPE_LTTNG_SOURCE_(103, provider_, name_, RTSCOPE_LTTNG_STRING_(args),                     \
                          rtscope_lttng_describe_##class_provider_##___##class_name_,             \
                          (void (*)(void))rtscope_lttng_record_##provider_##___##name_,           \
                          &rtscope_lttng_level_##provider_##___##name_, event_)

#endif
