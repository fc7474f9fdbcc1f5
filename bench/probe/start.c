// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program with one event that does nothing else: what its start costs is what its tracer costs.
 *
 *     start          records the event
 *     start locked   locks all memory before, and says how many KiB are locked, and resident
 */
#include "tick.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(int count, char **words)
{
    const int locks = count == 2 && strcmp(words[1], "locked") == 0;
    if (locks && mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        return 1;
    TICK(1);
    if (!locks)
        return 0;
    char line[256];
    FILE *const status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmLck:", 6) == 0 || strncmp(line, "VmRSS:", 6) == 0)
            fputs(line, stdout);
    return status == NULL;
}
