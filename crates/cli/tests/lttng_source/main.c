/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fires each tracepoint of both providers, and both kinds of free text (words.c). C and C++. */
#include <arpa/inet.h>
#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "robot.h"
#undef TRACEPOINT_DEFINE
#undef TRACEPOINT_CREATE_PROBES
#undef LTTNG_UST_TRACEPOINT_CREATE_PROBES
#ifndef LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_DEFINE
#endif
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "every.h"

void words(void);

int main(int count, char **arguments)
{
    (void)arguments;
    /* With any argument: not before somebody records. */
    while (count > 1 && !lttng_ust_tracepoint_enabled(every, numbers))
        usleep(1000);
    const int values[3] = {1, -2, 3};
    const uint16_t net[2] = {htons(258), htons(4660)};
    const uint8_t identity[IDENTITY_BYTES] = {1, 2, 3};
    const void *const where = (const void *)0x1234;
    for (int i = 0; i < 5; i++)
        lttng_ust_tracepoint(every, numbers, i * 3, 70000ul, htonl(258), 0.5, where);
    lttng_ust_tracepoint(every, arrays, values, net, "seven\0\0");
    lttng_ust_tracepoint(every, sequences, values, 3, net, "abcdef");
    lttng_ust_tracepoint(every, sequences, values, 0, net, "abc");
    lttng_ust_tracepoint(every, begin, 7);
    if (lttng_ust_tracepoint_enabled(every, end))
        lttng_ust_do_tracepoint(every, end, 7);
    lttng_ust_tracepoint(every, nothing);
    lttng_ust_tracepoint(every, nothing_either);
    tracepoint(robot, node_init, where, "camera", (const char *)0);
    tracepoint(robot, publisher_init, where, identity, 10);
    if (tracepoint_enabled(robot, callback_start))
        do_tracepoint(robot, callback_start, where, true);
    tracepoint(robot, message, where, "frame", 5, "image\0\0", INT64_C(-1234567890123), 0.25);
    words();
    return 0;
}
