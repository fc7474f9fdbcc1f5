/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An event of two numbers: rtscope's; LTTng-UST's with TICK_LTTNG; nobody's with TICK_NONE. */
#ifdef TICK_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "npt_lttng.h"
#define TICK(i) lttng_ust_tracepoint(npt, loop, i, i)
#elif defined TICK_NONE
#define TICK(i) (void)(i)
#else
#include <rtscope/event.h>
#define TICK(i) RTSCOPE_EVENT(npt, loop, u64("counter", i), u64("duration", i))
#endif
