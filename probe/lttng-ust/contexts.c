/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Contexts that the application itself provides: it gives each provider a name, and a recorder
 * asks for `$app.PROVIDER:CONTEXT`. Providers and wishes come in any order, and meet by name.
 */
#define _GNU_SOURCE
#include "contexts.h"

#include "abi.h"

#include <pthread.h>
#include <rtscope/detail/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "$app."
/* Of all names that recorders ask for. */
#define NAMES_BYTES 2048

struct app_context {
    /* What callbacks get, with all that it points to. */
    struct ust_app_context given;
    struct ust_field field;
    struct ust_type type;
    /* NULL while nobody provides it. */
    const struct ust_context_provider *provider;
    struct app_context *next;
    /* Of the field in our events. */
    char *name;
};
struct registered_provider {
    const struct ust_context_provider *provider;
    struct registered_provider *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct app_context *contexts;
static struct registered_provider *providers;

/* Whether the context, `$app.PROVIDER:CONTEXT`, is of the provider with this name. */
static int is_of(const struct app_context *context, const char *provider)
{
    const size_t length = strlen(provider);
    return strncmp(context->given.name, provider, length) == 0 &&
           context->given.name[length] == ':';
}

static void set_provider(struct app_context *context, const struct ust_context_provider *provider)
{
    __atomic_store_n(&context->provider, provider, __ATOMIC_RELEASE);
}

/* From `PROVIDER:CONTEXT`. */
static struct app_context *make(const char *wanted)
{
    struct app_context *const made = calloc(1, sizeof *made);
    char *name = NULL;
    if (!made || asprintf(&made->given.name, PREFIX "%s", wanted) < 0) {
        free(made);
        return NULL;
    }
    if (asprintf(&name, "app_%s", wanted) < 0) {
        free(made->given.name);
        free(made);
        return NULL;
    }
    for (char *at = name; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *at))
            *at = '_';
    made->name = name;
    made->type.kind = UST_DYNAMIC;
    made->field.struct_size = sizeof made->field;
    made->field.name = made->given.name;
    made->field.type = &made->type;
    made->given.struct_size = sizeof made->given;
    made->given.field = &made->field;
    for (const struct registered_provider *one = providers; one; one = one->next)
        if (is_of(made, one->provider->name))
            set_provider(made, one->provider);
    made->next = contexts;
    contexts = made;
    return made;
}

static struct app_context *find_or_make(const char *wanted)
{
    struct app_context *one = contexts;
    while (one && strcmp(one->given.name + strlen(PREFIX), wanted) != 0)
        one = one->next;
    return one ? one : make(wanted);
}

/* Two fields of an event cannot have one name. */
static int is_among(const struct app_contexts *all, const struct app_context *context)
{
    size_t place = 0;
    while (place < all->length && strcmp(all->all[place]->name, context->name) != 0)
        place++;
    return place < all->length;
}

void contexts_wanted(struct app_contexts *wanted)
{
    char names[NAMES_BYTES];
    const size_t bytes = rtscope_app_contexts_(names, sizeof names);
    wanted->length = 0;
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < bytes && wanted->length < CONTEXTS_MAX; at += strlen(names + at) + 1) {
        struct app_context *const context = find_or_make(names + at);
        if (context && !is_among(wanted, context))
            wanted->all[wanted->length++] = context;
    }
    pthread_mutex_unlock(&lock);
}

const char *context_field(const struct app_context *context)
{
    return context->name;
}

unsigned char *context_put(const struct app_context *context, void *probe, unsigned char *at,
                           size_t *room)
{
    const struct ust_context_provider *const provider =
        __atomic_load_n(&context->provider, __ATOMIC_ACQUIRE);
    struct ust_context_value value = {UST_DYNAMIC_NONE, {0}};
    char number[32];
    const char *text = number;
    number[0] = '\0';
    if (provider)
        provider->get_value((void *)(uintptr_t)&context->given, probe, &value);
    if (value.kind >= UST_DYNAMIC_S8 && value.kind <= UST_DYNAMIC_S64)
        snprintf(number, sizeof number, "%lld", (long long)value.of.number);
    else if (value.kind >= UST_DYNAMIC_U8 && value.kind <= UST_DYNAMIC_U64)
        snprintf(number, sizeof number, "%llu", (unsigned long long)value.of.number);
    else if (value.kind == UST_DYNAMIC_FLOAT || value.kind == UST_DYNAMIC_DOUBLE)
        snprintf(number, sizeof number, "%.*g", value.kind == UST_DYNAMIC_FLOAT ? 9 : 17,
                 value.of.real);
    else if (value.kind == UST_DYNAMIC_TEXT)
        text = value.of.text;
    return rtscope_put_text_(at, room, text, (size_t)-1);
}

struct registered_provider *
lttng_ust_context_provider_register(const struct ust_context_provider *provider);
void lttng_ust_context_provider_unregister(struct registered_provider *registered);

/* As LTTng: a name of its own that begins with `$app.` and has no colon, or nothing. */
struct registered_provider *
lttng_ust_context_provider_register(const struct ust_context_provider *provider)
{
    struct registered_provider *const own = calloc(1, sizeof *own);
    int is_taken = !own || strncmp(provider->name, PREFIX, strlen(PREFIX)) != 0 ||
                   strchr(provider->name, ':') || !provider->get_value;
    pthread_mutex_lock(&lock);
    for (const struct registered_provider *one = providers; one; one = one->next)
        is_taken |= strcmp(one->provider->name, provider->name) == 0;
    if (!is_taken) {
        own->provider = provider;
        own->next = providers;
        providers = own;
        for (struct app_context *one = contexts; one; one = one->next)
            if (is_of(one, provider->name))
                set_provider(one, provider);
    }
    pthread_mutex_unlock(&lock);
    if (is_taken)
        free(own);
    return is_taken ? NULL : own;
}

void lttng_ust_context_provider_unregister(struct registered_provider *registered)
{
    pthread_mutex_lock(&lock);
    struct registered_provider **link = &providers;
    while (*link && *link != registered)
        link = &(*link)->next;
    struct registered_provider *const found = *link;
    if (found)
        *link = found->next;
    for (struct app_context *one = contexts; found && one; one = one->next)
        if (one->provider == found->provider)
            set_provider(one, NULL);
    pthread_mutex_unlock(&lock);
    free(found);
}
