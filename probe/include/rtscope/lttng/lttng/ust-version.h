/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The version of LTTng-UST whose macros are here; CMake's FindLTTngUST reads it.
 */
#ifndef LTTNG_UST_VERSION_H
#define LTTNG_UST_VERSION_H

#define LTTNG_UST_MAJOR_VERSION 2
#define LTTNG_UST_MINOR_VERSION 13
#define LTTNG_UST_PATCHLEVEL_VERSION 0

#endif
