/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a program that was compiled with LTTng-UST's headers (2.13, ABI 1 of liblttng-ust.so)
 * shares with the library that it is run with: the layouts alone, under names of our own. A
 * structure may grow at its end; none shrinks. abi_check.c compares them with LTTng's headers.
 */
#ifndef RTSCOPE_LTTNG_UST_ABI_H
#define RTSCOPE_LTTNG_UST_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Providers of another major version have other layouts. */
#define UST_PROVIDER_MAJOR 3u

/* A place in the code, and who is called from there. */
struct ust_probe {
    void (*function)(void);
    void *data;
};
struct ust_tracepoint {
    uint32_t struct_size;
    const char *provider;
    const char *name;
    int state;
    /* Ended by one without a function; NULL: none. */
    const struct ust_probe *probes;
    int *provider_reference;
    /* Of the arguments, as a text. */
    const char *signature;
};

enum ust_type_kind {
    UST_INTEGER = 0,
    UST_STRING = 1,
    UST_FLOAT = 2,
    UST_ENUM = 4,
    UST_ARRAY = 5,
    UST_SEQUENCE = 6,
    UST_DYNAMIC = 3,
};
enum { UST_ENCODING_NONE = 0 };

/* Every type begins with its kind. */
struct ust_type {
    int kind;
};
struct ust_integer {
    struct ust_type type;
    uint32_t struct_size;
    unsigned bits;
    unsigned short alignment_bits;
    unsigned is_signed : 1;
    unsigned is_reversed : 1;
    unsigned base;
};
struct ust_float {
    struct ust_type type;
    uint32_t struct_size;
    unsigned exponent_bits;
    unsigned mantissa_bits;
    unsigned short alignment_bits;
    unsigned is_reversed : 1;
};
struct ust_array {
    struct ust_type type;
    uint32_t struct_size;
    const struct ust_type *element;
    unsigned length;
    unsigned alignment;
    int encoding;
};
struct ust_sequence {
    struct ust_type type;
    uint32_t struct_size;
    /* NULL: the field before it. */
    const char *length_name;
    const struct ust_type *element;
    unsigned alignment;
    int encoding;
};
struct ust_value {
    unsigned long long value;
    unsigned is_signed : 1;
};
enum { UST_LABEL_IS_AUTOMATIC = 1 };
struct ust_label {
    uint32_t struct_size;
    struct ust_value first;
    struct ust_value last;
    const char *text;
    unsigned options;
};
struct ust_labels {
    uint32_t struct_size;
    const char *name;
    const struct ust_label *const *labels;
    unsigned length;
    const void *provider;
};
struct ust_enum {
    struct ust_type type;
    uint32_t struct_size;
    const struct ust_labels *labels;
    const struct ust_type *container;
};
struct ust_field {
    uint32_t struct_size;
    const char *name;
    const struct ust_type *type;
    unsigned is_hidden : 1;
    unsigned is_not_for_filters : 1;
};
struct ust_class {
    uint32_t struct_size;
    const struct ust_field *const *fields;
    size_t length;
    void (*function)(void);
    const char *signature;
    const void *provider;
};
struct ust_event {
    uint32_t struct_size;
    const char *name;
    const void *provider;
    const struct ust_class *class_;
    /* Both may be NULL. */
    const int *const *level;
    const char *const *uri;
};
struct ust_provider {
    uint32_t struct_size;
    const char *name;
    const struct ust_event *const *events;
    unsigned length;
    uint32_t major;
    uint32_t minor;
};

/* What a provider's function is given as its data, and what it finds from there. */
enum { UST_RECORDER = 0 };
struct ust_session {
    uint32_t struct_size;
    void *own;
    int active;
};
struct ust_channel {
    uint32_t struct_size;
    void *own;
    int kind;
    void *child;
    int enabled;
    struct ust_session *session;
};
/* One record while it is made. */
struct ust_context {
    uint32_t struct_size;
    /* The struct ust_recorder of the event. */
    void *client;
    size_t bytes;
    int alignment;
    void *probe;
    /* Ours, from `reserve` to `commit`. */
    void *own;
};
struct ust_operations {
    uint32_t struct_size;
    void *own;
    int (*reserve)(struct ust_context *context);
    void (*commit)(struct ust_context *context);
    void (*write)(struct ust_context *context, const void *from, size_t bytes, size_t alignment);
    void (*copy_text)(struct ust_context *context, const char *from, size_t bytes);
    void (*copy_padded)(struct ust_context *context, const char *from, size_t bytes);
};
struct ust_buffer {
    uint32_t struct_size;
    struct ust_channel *channel;
    void *own;
    struct ust_operations *operations;
};
struct ust_enabled {
    uint32_t struct_size;
    void *own;
    int kind;
    void *child;
    int enabled;
    int has_filter;
    int (*filter)(const struct ust_enabled *event, const char *stack, void *probe, void *context);
};
struct ust_recorder {
    uint32_t struct_size;
    struct ust_enabled *event;
    void *own;
    struct ust_buffer *buffer;
};

/* The value of a context that the application provides. */
enum ust_dynamic_kind {
    UST_DYNAMIC_NONE = 0,
    UST_DYNAMIC_S8 = 1,
    UST_DYNAMIC_S64 = 4,
    UST_DYNAMIC_U8 = 5,
    UST_DYNAMIC_U64 = 8,
    UST_DYNAMIC_FLOAT = 9,
    UST_DYNAMIC_DOUBLE = 10,
    UST_DYNAMIC_TEXT = 11,
};
struct ust_context_value {
    int kind;
    union {
        int64_t number;
        const char *text;
        double real;
    } of;
};
/* What its callbacks are given first. */
struct ust_app_context {
    uint32_t struct_size;
    struct ust_field *field;
    /* `$app.PROVIDER:CONTEXT` */
    char *name;
};
struct ust_context_provider {
    uint32_t struct_size;
    /* `$app.PROVIDER` */
    const char *name;
    /* What puts the value into a record of LTTng's; nobody calls them here. */
    size_t (*get_size)(void *context, void *probe, size_t offset);
    void (*record)(void *context, void *probe, struct ust_context *record,
                   struct ust_buffer *buffer);
    void (*get_value)(void *context, void *probe, struct ust_context_value *value);
    void *own;
};

/* tracepoints.c, which is liblttng-ust-tracepoint.so */
int lttng_ust_tracepoint_provider_register(const char *provider, const char *name,
                                           void (*function)(void), void *data,
                                           const char *signature);
int lttng_ust_tracepoint_provider_unregister(const char *provider, const char *name,
                                             void (*function)(void), void *data);

#endif
