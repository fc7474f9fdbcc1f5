// SPDX-License-Identifier: MIT OR Apache-2.0
/* A program with one event that does nothing else: what its start costs is what rings cost. */
#include <rtscope/event.h>

int main(void)
{
    RTSCOPE_EVENT(start, here, u64("i", 1));
    return 0;
}
