/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The function that a preloaded one stands before. */
#ifndef RTSCOPE_PRELOAD_NEXT_H
#define RTSCOPE_PRELOAD_NEXT_H

#include <dlfcn.h>
#include <string.h>

/* ISO C has no cast from an object's pointer to a function's; POSIX makes them alike. */
#define RTSCOPE_NEXT(function, name)                                                              \
    do {                                                                                          \
        void *const rtscope_found_ = dlsym(RTLD_NEXT, name);                                      \
        memcpy(&(function), &rtscope_found_, sizeof rtscope_found_);                              \
    } while (0)

#endif
