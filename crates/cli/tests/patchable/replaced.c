/* The program has its own of what the library calls when it records, with room at their entries. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile unsigned sink;

APART void step(void)
{
    sink++;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    step();
    for (size_t n = 0; n < bytes; n++)
        ((volatile char *)to)[n] = ((const char *)from)[n];
    return to;
}

void *memset(void *to, int byte, size_t bytes)
{
    step();
    for (size_t n = 0; n < bytes; n++)
        ((volatile char *)to)[n] = (char)byte;
    return to;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    step();
    return (int)syscall(SYS_clock_gettime, clock, time);
}

int sched_getcpu(void)
{
    unsigned cpu = 0;
    step();
    syscall(SYS_getcpu, &cpu, NULL, NULL);
    return (int)cpu;
}

static APART void own(void)
{
    sink += 2;
}

int main(void)
{
    for (int n = 0; n < 100; n++)
        own();
    return 0;
}
