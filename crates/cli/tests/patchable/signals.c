/* A signal that comes every few microseconds, into the record of entries too, and whose handler
 * leaves by siglongjmp now and then: ends with 0 and prints how often each function was entered. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#define APART __attribute__((noinline))
#define TIMES 60000
#define HANDLED 300

static volatile sig_atomic_t handled;
static volatile unsigned worked;
static sigjmp_buf back;

static APART void on_alarm(int signal)
{
    (void)signal;
    handled++;
    if (handled % 8 == 0)
        siglongjmp(back, 1);
}

static APART void work(void)
{
    worked++;
}

__attribute__((patchable_function_entry(0))) int main(void)
{
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm};
    volatile unsigned called = 0;
    sigaction(SIGALRM, &action, NULL);
    sigsetjmp(back, 1);
    setitimer(ITIMER_REAL, &often, NULL);
    while (called < TIMES && handled < HANDLED) {
        called++;
        work();
        for (volatile int n = 0; n < 200; n++)
            ;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%u %d\n", called, (int)handled);
    return worked > called || worked + handled < called;
}
