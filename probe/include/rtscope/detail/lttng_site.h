/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A tracepoint written for LTTng-UST, where it is called. It needs no library: the provider, which
 * may be loaded later, or never, brings it.
 */
#ifndef RTSCOPE_DETAIL_LTTNG_SITE_H
#define RTSCOPE_DETAIL_LTTNG_SITE_H

#include <dlfcn.h>
#include <rtscope/layout.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a site calls: the beginning of struct rtscope_lttng_event. Reached by one pointer, so that
 * a thread sees both or none. */
struct rtscope_lttng_target {
    /* Takes the target, then the event's arguments. */
    void (*record)(void);
    struct rtscope_switch *state;
};

struct rtscope_lttng_site {
    const char *provider;
    const char *name;
    /* The arguments as they are written; a provider with others is another's. */
    const char *signature;
    struct rtscope_lttng_target *target;
    /* Makes the linker take the provider out of its archive. */
    const int *wanted;
    /* The library's. */
    struct rtscope_lttng_site *next;
    /* Libraries that bring the same tracepoint share one of them. */
    unsigned users;
};

/* Without a provider: off. */
__attribute__((weak, visibility("hidden"))) struct rtscope_switch rtscope_lttng_off_;
__attribute__((weak, visibility("hidden"))) struct rtscope_lttng_target rtscope_lttng_nobody_ = {
    NULL, &rtscope_lttng_off_};

void rtscope_lttng_add_site_(struct rtscope_lttng_site *site) __attribute__((weak));
void rtscope_lttng_remove_site_(struct rtscope_lttng_site *site) __attribute__((weak));

typedef void rtscope_lttng_change_(struct rtscope_lttng_site *site);

/* A program that is linked without the library finds it when it is installed. */
static inline rtscope_lttng_change_ *rtscope_lttng_find_(rtscope_lttng_change_ *linked,
                                                         const char *name)
{
    rtscope_lttng_change_ *change = linked;
    if (!change) {
        void *const library = dlopen("librtscope-probe.so.1", RTLD_NOW | RTLD_GLOBAL);
        void *const found = library ? dlsym(library, name) : NULL;
        memcpy(&change, &found, sizeof change);
    }
    return change;
}

static inline void rtscope_lttng_site_begin_(struct rtscope_lttng_site *site)
{
    rtscope_lttng_change_ *const add =
        rtscope_lttng_find_(rtscope_lttng_add_site_, "rtscope_lttng_add_site_");
    if (add)
        add(site);
}

static inline void rtscope_lttng_site_end_(struct rtscope_lttng_site *site)
{
    rtscope_lttng_change_ *const remove =
        rtscope_lttng_find_(rtscope_lttng_remove_site_, "rtscope_lttng_remove_site_");
    if (remove)
        remove(site);
}

static inline __attribute__((always_inline)) struct rtscope_lttng_target *
rtscope_lttng_target_(const struct rtscope_lttng_site *site)
{
    return *(struct rtscope_lttng_target *const volatile *)&site->target;
}

static inline __attribute__((always_inline)) int
rtscope_lttng_is_on_(const struct rtscope_lttng_site *site)
{
    return *(volatile const uint8_t *)&rtscope_lttng_target_(site)->state->enabled;
}

#ifdef __cplusplus
}
#endif

#endif
