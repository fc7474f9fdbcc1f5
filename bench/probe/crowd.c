// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Many processes that record now and then.
 *
 *     crowd PROCESSES EVENTS     each process records so many events, two a second
 */
#include "tick.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void record(int events)
{
    const struct timespec half = {0, 500000000};
    for (int i = 0; i < events; i++) {
        TICK(i);
        nanosleep(&half, NULL);
    }
}

int main(int count, char **words)
{
    int failed = 0;
    if (count != 3)
        return 2;
    const int processes = atoi(words[1]), events = atoi(words[2]);
    for (int process = 0; process < processes; process++) {
        const pid_t child = fork();
        failed |= child < 0;
        if (!child) {
            record(events);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        continue;
    return failed;
}
