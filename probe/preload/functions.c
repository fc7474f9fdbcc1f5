/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Preloaded, records entry and exit of every function of a program that was compiled with
 * -finstrument-functions, by LTTng's names: lttng_ust_cyg_profile:func_entry and func_exit.
 */
#include <rtscope/event.h>

#define PLAIN __attribute__((no_instrument_function))

PLAIN void __cyg_profile_func_enter(void *function, void *call_site);
PLAIN void __cyg_profile_func_exit(void *function, void *call_site);

void __cyg_profile_func_enter(void *function, void *call_site)
{
    RTSCOPE_EVENT(lttng_ust_cyg_profile, func_entry, x64("addr", (uintptr_t)function),
                  x64("call_site", (uintptr_t)call_site));
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
    RTSCOPE_EVENT(lttng_ust_cyg_profile, func_exit, x64("addr", (uintptr_t)function),
                  x64("call_site", (uintptr_t)call_site));
}
