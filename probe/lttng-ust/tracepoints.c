/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In the place of liblttng-ust-tracepoint.so.1: places in the code and functions of providers come
 * and go in any order, and meet by name and signature. Of several functions for one event the one
 * that came first is called: all of them record the same.
 */
#define _GNU_SOURCE
#include "abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int lttng_ust_tracepoint_module_register(struct ust_tracepoint *const *first, int length);
int lttng_ust_tracepoint_module_unregister(struct ust_tracepoint *const *first);
void lttng_ust_tp_rcu_read_lock(void);
void lttng_ust_tp_rcu_read_unlock(void);
void *lttng_ust_tp_rcu_dereference_sym(void *pointer);
void lttng_ust_tp_disable_destructors(void);
int lttng_ust_tp_get_destructors_state(void);

/* Places of one program or library. */
struct module {
    struct ust_tracepoint *const *first;
    int length;
    struct module *next;
};

/* A function of a provider. Threads may be on their way into it: it is used again, never freed. */
struct function {
    const char *provider;
    const char *name;
    const char *signature;
    struct ust_probe probes[2];
    int is_there;
    struct function *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;
static struct function *functions;

static int fits(const struct function *function, const struct ust_tracepoint *place)
{
    return function->is_there && strcmp(function->provider, place->provider) == 0 &&
           strcmp(function->name, place->name) == 0 &&
           (!place->signature || strcmp(function->signature, place->signature) == 0);
}

/* Calls the function that fits, or none. */
static void connect(struct ust_tracepoint *place)
{
    const struct function *found = NULL;
    for (const struct function *one = functions; one; one = one->next)
        if (fits(one, place))
            found = one;
    const struct ust_probe *const probes = found ? found->probes : NULL;
    if (!probes)
        __atomic_store_n(&place->state, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&place->probes, probes, __ATOMIC_RELEASE);
    if (probes)
        __atomic_store_n(&place->state, 1, __ATOMIC_RELEASE);
}

static void connect_module(const struct module *module)
{
    for (int place = 0; place < module->length; place++)
        if (module->first[place])
            connect(module->first[place]);
}

static void connect_all(void)
{
    for (const struct module *module = modules; module; module = module->next)
        connect_module(module);
}

int lttng_ust_tracepoint_module_register(struct ust_tracepoint *const *first, int length)
{
    struct module *const module = malloc(sizeof *module);
    if (!module)
        return -1;
    module->first = first;
    module->length = length;
    pthread_mutex_lock(&lock);
    module->next = modules;
    modules = module;
    connect_module(module);
    pthread_mutex_unlock(&lock);
    return 0;
}

int lttng_ust_tracepoint_module_unregister(struct ust_tracepoint *const *first)
{
    pthread_mutex_lock(&lock);
    struct module **link = &modules;
    while (*link && (*link)->first != first)
        link = &(*link)->next;
    struct module *const found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
    return 0;
}

/* One that is not in use, or a new one; the first of the list is the newest. */
static struct function *unused(void)
{
    for (struct function *one = functions; one; one = one->next)
        if (!one->is_there)
            return one;
    struct function *const made = calloc(1, sizeof *made);
    if (made) {
        made->next = functions;
        functions = made;
    }
    return made;
}

int lttng_ust_tracepoint_provider_register(const char *provider, const char *name,
                                           void (*function)(void), void *data,
                                           const char *signature)
{
    pthread_mutex_lock(&lock);
    struct function *const own = unused();
    if (own) {
        own->provider = provider;
        own->name = name;
        own->signature = signature;
        own->probes[0].function = function;
        own->probes[0].data = data;
        own->is_there = 1;
        connect_all();
    }
    pthread_mutex_unlock(&lock);
    return own ? 0 : -1;
}

int lttng_ust_tracepoint_provider_unregister(const char *provider, const char *name,
                                             void (*function)(void), void *data)
{
    int found = -1;
    pthread_mutex_lock(&lock);
    for (struct function *one = functions; one && found; one = one->next)
        if (one->is_there && one->probes[0].function == function && one->probes[0].data == data &&
            strcmp(one->provider, provider) == 0 && strcmp(one->name, name) == 0) {
            one->is_there = 0;
            found = 0;
        }
    connect_all();
    pthread_mutex_unlock(&lock);
    return found;
}

/* What a place sees is never freed while the program runs: there is nothing to hold. */
void lttng_ust_tp_rcu_read_lock(void) {}

void lttng_ust_tp_rcu_read_unlock(void) {}

void *lttng_ust_tp_rcu_dereference_sym(void *pointer)
{
    return pointer;
}

static int has_destructors = 1;

void lttng_ust_tp_disable_destructors(void)
{
    has_destructors = 0;
}

int lttng_ust_tp_get_destructors_state(void)
{
    return has_destructors;
}
