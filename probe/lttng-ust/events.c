/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In the place of liblttng-ust.so.1: providers that were compiled with LTTng-UST's headers are
 * made known to the probe, and what they hand over becomes its records.
 */
#define _GNU_SOURCE
#include "describe.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many records of a thread can be in the making: signal handlers come in between. */
#define NESTED_MAX 3
/* What varies comes behind what does not. */
#define RECORD_BYTES (RTSCOPE_FIXED_BYTES_MAX + RTSCOPE_PAYLOAD_BYTES_MAX)

struct registered;
struct registered *lttng_ust_probe_register(const struct ust_provider *provider);
void lttng_ust_probe_unregister(struct registered *registered);

/* An event that was described. The probe keeps it for good: a provider that comes again, with the
 * same description, gets it again. */
struct recorded {
    struct ust_enabled enabled;
    struct ust_recorder recorder;
    struct rtscope_late late;
    struct described described;
    int is_in_use;
    struct recorded *next;
};

/* An event of a provider that is there. */
struct connected {
    struct recorded *recorded;
    const struct ust_event *event;
};
struct registered {
    const struct ust_provider *provider;
    size_t length;
    struct connected connected[];
};

/* A record in the making. */
struct making {
    const struct recorded *recorded;
    uint32_t step;
    unsigned char *at;
    size_t room;
    uint64_t payload[RECORD_BYTES / 8 + 1];
};
static __thread struct making making[NESTED_MAX];
static __thread unsigned nested;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct recorded *all;

static int reserve(struct ust_context *context)
{
    const struct ust_recorder *const recorder = context->client;
    const struct recorded *const recorded = recorder->own;
    if (!*(const volatile uint8_t *)&recorded->late.state->enabled || nested == NESTED_MAX)
        return -EPERM;
    struct making *const own = &making[nested];
    /* A handler that comes now takes the next. */
    nested++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    own->recorded = recorded;
    own->step = 0;
    own->at = (unsigned char *)own->payload;
    own->room = RTSCOPE_PAYLOAD_BYTES_MAX;
    if (recorded->described.fixed_bytes < RTSCOPE_PAYLOAD_BYTES_MAX)
        own->room -= recorded->described.fixed_bytes;
    context->own = own;
    return 0;
}

/* The next step; NULL behind the last, which a provider of another version would need. */
static const struct step *next_step(struct making *own)
{
    const struct described *const described = &own->recorded->described;
    return own->step < described->steps_length ? &described->steps[own->step++] : NULL;
}

static void write_bytes(struct ust_context *context, const void *from, size_t bytes,
                        size_t alignment)
{
    struct making *const own = context->own;
    const struct step *const step = next_step(own);
    (void)alignment;
    if (!step)
        return;
    if (step->kind == STEP_BYTES && bytes == step->bytes) {
        memcpy(own->at, from, bytes);
        own->at += bytes;
    } else if (step->kind == STEP_ELEMENTS) {
        own->at = rtscope_put_sequence_(own->at, &own->room, from, bytes / step->bytes,
                                        step->bytes);
    }
}

static void copy_text(struct ust_context *context, const char *from, size_t bytes)
{
    struct making *const own = context->own;
    const struct step *const step = next_step(own);
    if (step && step->kind == STEP_TEXT)
        own->at = rtscope_put_text_(own->at, &own->room, from, bytes);
}

/* Characters up to the first zero: of an array, which is filled with zeros, or of a sequence. */
static void copy_padded(struct ust_context *context, const char *from, size_t bytes)
{
    struct making *const own = context->own;
    const struct step *const step = next_step(own);
    if (step && step->kind == STEP_TEXT) {
        own->at = rtscope_put_text_(own->at, &own->room, from, bytes);
    } else if (step && step->kind == STEP_BYTES && bytes == step->bytes) {
        const size_t length = strnlen(from, bytes);
        memcpy(own->at, from, length);
        memset(own->at + length, 0, bytes - length);
        own->at += bytes;
    }
}

/* What the application says of this moment, behind the fields. */
static void put_contexts(struct making *own, void *probe)
{
    const struct app_contexts *const contexts = &own->recorded->described.contexts;
    for (size_t place = 0; place < contexts->length; place++)
        own->at = context_put(contexts->all[place], probe, own->at, &own->room);
}

static void commit(struct ust_context *context)
{
    struct making *const own = context->own;
    put_contexts(own, context->probe);
    const struct rtscope_late *const late = &own->recorded->late;
    const size_t bytes = (size_t)(own->at - (unsigned char *)own->payload);
    const int is_whole = own->step == own->recorded->described.steps_length;
    const int is_filtered = (late->state->enabled & RTSCOPE_FILTERED) != 0;
    uint64_t none = 0;
    if (is_whole && (!is_filtered || rtscope_pass_(late->state, own->payload, bytes, &none, 0)))
        rtscope_write_late(late, own->payload, bytes);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nested--;
}

static struct ust_operations operations = {sizeof operations, NULL,      reserve,    commit,
                                           write_bytes,       copy_text, copy_padded};
static struct ust_session session = {sizeof session, NULL, 1};
static struct ust_channel channel = {sizeof channel, NULL, 0, NULL, 1, &session};
static struct ust_buffer buffer = {sizeof buffer, &channel, NULL, &operations};

/* Labels stand before the event that means them. What finds no memory has numbers without labels.
 */
static void add_labels(const struct ust_class *class_)
{
    for (size_t place = 0; place < class_->length; place++) {
        const struct ust_field *const field = class_->fields[place];
        const struct ust_enum *const labelled = (const void *)field->type;
        if (field->is_hidden || field->type->kind != UST_ENUM)
            continue;
        struct rtscope_late *const late = calloc(1, sizeof *late);
        if (!late)
            continue;
        late->kind = RTSCOPE_ENTRY_ENUMERATION;
        late->text = describe_labels(labelled->labels, &late->text_bytes);
        if (late->text)
            rtscope_add(late);
        else
            free(late);
    }
}

/* Tells recorders why there is no such event. */
static void add_note(const struct described *described, const char *provider, const char *name)
{
    struct rtscope_late *const late = calloc(1, sizeof *late);
    char *text = NULL;
    const int length =
        asprintf(&text, "%s%c%s%cno events of %s:%s%c%s %s%cbuild its provider with our headers",
                 provider, 0, name, 0, provider, name, 0, described->refused,
                 described->refused_field, 0);
    if (!late || length < 0) {
        free(late);
        return;
    }
    late->kind = RTSCOPE_ENTRY_NOTE;
    late->text = text;
    late->text_bytes = (uint32_t)length + 1;
    rtscope_add(late);
}

/* The same event of a provider that was there before, and whose place nobody has. */
static struct recorded *known(const struct described *described)
{
    for (struct recorded *one = all; one; one = one->next)
        if (!one->is_in_use && one->described.text_bytes == described->text_bytes &&
            memcmp(one->described.text, described->text, described->text_bytes) == 0)
            return one;
    return NULL;
}

static void forget(struct described *described)
{
    free(described->text);
    free(described->steps);
}

static struct recorded *recorded_of(const char *provider, const struct ust_event *event,
                                    const struct app_contexts *contexts)
{
    struct described described;
    struct recorded *own = NULL;
    if (describe(&described, provider, event, contexts) != 0) {
        forget(&described);
        return NULL;
    }
    if (described.refused)
        add_note(&described, provider, event->name);
    else
        own = known(&described);
    if (own || described.refused || !(own = calloc(1, sizeof *own))) {
        forget(&described);
        return own;
    }
    own->described = described;
    own->enabled.struct_size = sizeof own->enabled;
    own->enabled.kind = UST_RECORDER;
    own->enabled.child = &own->recorder;
    own->enabled.enabled = 1;
    own->recorder.struct_size = sizeof own->recorder;
    own->recorder.event = &own->enabled;
    own->recorder.own = own;
    own->recorder.buffer = &buffer;
    own->late.kind = RTSCOPE_ENTRY_EVENT;
    own->late.text = described.text;
    own->late.text_bytes = described.text_bytes;
    add_labels(event->class_);
    rtscope_add(&own->late);
    own->next = all;
    all = own;
    return own;
}

/* The caller ends the program where it gets nothing: without memory it has no events. */
struct registered *lttng_ust_probe_register(const struct ust_provider *provider)
{
    static struct registered empty;
    const int is_known = provider->major == UST_PROVIDER_MAJOR;
    const size_t length = is_known ? provider->length : 0;
    struct registered *const own = calloc(1, sizeof *own + length * sizeof *own->connected);
    if (!own)
        return &empty;
    struct app_contexts contexts;
    contexts_wanted(&contexts);
    own->provider = provider;
    pthread_mutex_lock(&lock);
    for (size_t place = 0; place < length; place++) {
        const struct ust_event *const event = provider->events[place];
        struct recorded *const recorded = recorded_of(provider->name, event, &contexts);
        const struct connected connected = {recorded, event};
        if (!recorded || lttng_ust_tracepoint_provider_register(
                             provider->name, event->name, event->class_->function,
                             &recorded->enabled, event->class_->signature) != 0)
            continue;
        recorded->is_in_use = 1;
        own->connected[own->length++] = connected;
    }
    pthread_mutex_unlock(&lock);
    return own;
}

void lttng_ust_probe_unregister(struct registered *registered)
{
    if (!registered || !registered->provider)
        return;
    pthread_mutex_lock(&lock);
    for (size_t place = 0; place < registered->length; place++) {
        struct connected *const one = &registered->connected[place];
        lttng_ust_tracepoint_provider_unregister(registered->provider->name, one->event->name,
                                                 one->event->class_->function,
                                                 &one->recorded->enabled);
        one->recorded->is_in_use = 0;
    }
    pthread_mutex_unlock(&lock);
    free(registered);
}
