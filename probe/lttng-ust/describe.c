/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From LTTng's description of an event to the probe's. */
#define _GNU_SOURCE
#include "describe.h"

#include <stdlib.h>
#include <string.h>

#define LEVEL_DEFAULT 13

/* A text that grows; nothing more is appended once memory was short. */
struct growing {
    char *bytes;
    size_t length;
    size_t room;
    int has_failed;
};

static void append(struct growing *text, const void *bytes, size_t length)
{
    if (!text->has_failed && length > text->room - text->length) {
        const size_t room = 2 * text->room + length;
        char *const moved = realloc(text->bytes, room);
        text->has_failed = !moved;
        if (moved) {
            text->bytes = moved;
            text->room = room;
        }
    }
    if (text->has_failed)
        return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void append_byte(struct growing *text, unsigned byte)
{
    const unsigned char kept = (unsigned char)byte;
    append(text, &kept, 1);
}

static void append_name(struct growing *text, const char *name)
{
    append(text, name, strlen(name) + 1);
}

/* The type of an integer, behind what says that its bytes are in network order; 0: there is none
 * of its size. */
static unsigned integer_code(const struct ust_type *type)
{
    const struct ust_integer *const integer = (const struct ust_integer *)(const void *)type;
    const unsigned bytes = integer->bits / 8;
    if (type->kind != UST_INTEGER || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
        return 0;
    const unsigned first = integer->base == 16  ? RTSCOPE_FIELD_X8
                           : integer->is_signed ? RTSCOPE_FIELD_I8
                                                : RTSCOPE_FIELD_U8;
    return first + (unsigned)__builtin_ctz(bytes);
}

static void append_order(struct growing *text, const struct ust_type *type)
{
    if (((const struct ust_integer *)(const void *)type)->is_reversed)
        append_byte(text, RTSCOPE_FIELD_BIG_ENDIAN);
}

static uint32_t integer_bytes(const struct ust_type *type)
{
    return ((const struct ust_integer *)(const void *)type)->bits / 8;
}

struct describing {
    struct described *described;
    struct growing text;
};

static void add_step(struct describing *describing, int kind, uint32_t bytes)
{
    struct described *const described = describing->described;
    const struct step step = {kind, bytes};
    described->steps[described->steps_length++] = step;
    if (kind == STEP_BYTES)
        described->fixed_bytes += bytes;
    else if (kind != STEP_LENGTH)
        described->fixed_bytes += sizeof(uint16_t);
}

/* An integer or its labels. Returns 0 where there is no such type. */
static int describe_integer(struct describing *describing, const struct ust_type *type,
                            const char *labels)
{
    const unsigned code = integer_code(type);
    if (!code)
        return 0;
    append_order(&describing->text, type);
    if (labels) {
        append_byte(&describing->text, RTSCOPE_FIELD_ENUMERATION);
        append_name(&describing->text, labels);
    }
    append_byte(&describing->text, code);
    add_step(describing, STEP_BYTES, integer_bytes(type));
    return 1;
}

static int describe_float(struct describing *describing, const struct ust_type *type)
{
    const struct ust_float *const real = (const struct ust_float *)(const void *)type;
    const uint32_t bytes = (real->exponent_bits + real->mantissa_bits) / 8;
    if ((bytes != 4 && bytes != 8) || real->is_reversed)
        return 0;
    append_byte(&describing->text, bytes == 4 ? RTSCOPE_FIELD_F32 : RTSCOPE_FIELD_F64);
    add_step(describing, STEP_BYTES, bytes);
    return 1;
}

static int describe_array(struct describing *describing, const struct ust_type *type)
{
    const struct ust_array *const array = (const struct ust_array *)(const void *)type;
    const uint32_t length = array->length;
    const unsigned code = integer_code(array->element);
    if (!code)
        return 0;
    const int is_text = array->encoding != UST_ENCODING_NONE;
    if (!is_text)
        append_order(&describing->text, array->element);
    append_byte(&describing->text, RTSCOPE_FIELD_ARRAY);
    append(&describing->text, &length, sizeof length);
    append_byte(&describing->text, is_text ? RTSCOPE_FIELD_TEXT : code);
    add_step(describing, STEP_BYTES, length * integer_bytes(array->element));
    return 1;
}

static int describe_sequence(struct describing *describing, const struct ust_type *type)
{
    const struct ust_sequence *const sequence = (const struct ust_sequence *)(const void *)type;
    const unsigned code = integer_code(sequence->element);
    if (!code || sequence->length_name)
        return 0;
    if (sequence->encoding != UST_ENCODING_NONE) {
        append_byte(&describing->text, RTSCOPE_FIELD_TEXT);
        add_step(describing, STEP_TEXT, 1);
        return 1;
    }
    append_order(&describing->text, sequence->element);
    append_byte(&describing->text, RTSCOPE_FIELD_SEQUENCE);
    append_byte(&describing->text, code);
    add_step(describing, STEP_ELEMENTS, integer_bytes(sequence->element));
    return 1;
}

static int describe_type(struct describing *describing, const struct ust_type *type)
{
    const struct ust_enum *const labelled = (const struct ust_enum *)(const void *)type;
    switch (type->kind) {
    case UST_INTEGER:
        return describe_integer(describing, type, NULL);
    case UST_ENUM:
        return describe_integer(describing, labelled->container, labelled->labels->name);
    case UST_FLOAT:
        return describe_float(describing, type);
    case UST_STRING:
        append_byte(&describing->text, RTSCOPE_FIELD_TEXT);
        add_step(describing, STEP_TEXT, 1);
        return 1;
    case UST_ARRAY:
        return describe_array(describing, type);
    case UST_SEQUENCE:
        return describe_sequence(describing, type);
    default:
        return 0;
    }
}

/* A sequence stands behind its length, which the probe's has in itself. */
static int is_length(const struct ust_class *class_, size_t place)
{
    return place + 1 < class_->length && class_->fields[place + 1]->type->kind == UST_SEQUENCE;
}

/* As many as an event can have, behind its own fields. */
static void describe_contexts(struct describing *describing, size_t fields,
                              const struct app_contexts *contexts)
{
    struct app_contexts *const kept = &describing->described->contexts;
    while (kept->length < contexts->length && fields + kept->length < RTSCOPE_FIELDS_MAX) {
        struct app_context *const context = contexts->all[kept->length];
        kept->all[kept->length++] = context;
        append_byte(&describing->text, RTSCOPE_FIELD_TEXT);
        append_name(&describing->text, context_field(context));
        describing->described->fixed_bytes += sizeof(uint16_t);
    }
}

int describe(struct described *described, const char *provider, const struct ust_event *event,
             const struct app_contexts *contexts)
{
    const struct ust_class *const class_ = event->class_;
    struct describing describing = {described, {NULL, 0, 0, 0}};
    const int *const level = event->level ? *event->level : NULL;
    memset(described, 0, sizeof *described);
    described->steps = calloc(class_->length + 1, sizeof *described->steps);
    if (!described->steps)
        return -1;
    append_byte(&describing.text, level ? (unsigned)*level : LEVEL_DEFAULT);
    append_name(&describing.text, provider);
    append_name(&describing.text, event->name);
    for (size_t place = 0; place < class_->length && !described->refused; place++) {
        const struct ust_field *const field = class_->fields[place];
        if (field->is_hidden)
            continue;
        if (is_length(class_, place)) {
            add_step(&describing, STEP_LENGTH, 0);
            continue;
        }
        if (!describe_type(&describing, field->type)) {
            described->refused = "a field is of a type that is not known:";
            described->refused_field = field->name;
        }
        append_name(&describing.text, field->name);
    }
    describe_contexts(&describing, class_->length, contexts);
    append_byte(&describing.text, RTSCOPE_FIELD_END);
    if (!described->refused && described->fixed_bytes > RTSCOPE_FIXED_BYTES_MAX) {
        described->refused = "its fields of fixed length have more than 4080 bytes:";
        described->refused_field = event->name;
    }
    described->text = describing.text.bytes;
    described->text_bytes = (uint32_t)describing.text.length;
    return describing.text.has_failed ? -1 : 0;
}

char *describe_labels(const struct ust_labels *labels, uint32_t *bytes)
{
    struct growing text = {NULL, 0, 0, 0};
    int64_t next = 0;
    append_name(&text, labels->name);
    for (unsigned place = 0; place < labels->length; place++) {
        const struct ust_label *const label = labels->labels[place];
        const int is_automatic = (label->options & UST_LABEL_IS_AUTOMATIC) != 0;
        const int64_t first = is_automatic ? next : (int64_t)label->first.value;
        const int64_t last = is_automatic ? next : (int64_t)label->last.value;
        append(&text, &first, sizeof first);
        append(&text, &last, sizeof last);
        append_name(&text, label->text);
        next = (int64_t)((uint64_t)last + 1);
    }
    *bytes = (uint32_t)text.length;
    if (text.has_failed) {
        free(text.bytes);
        return NULL;
    }
    return text.bytes;
}
