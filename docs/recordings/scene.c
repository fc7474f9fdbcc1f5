// SPDX-License-Identifier: MIT OR Apache-2.0
// The scene of late-loop.txt, as the only program of a guest: a loop of 10 ms at SCHED_FIFO 50, and
// a hog at SCHED_FIFO 60 that spins once. ftrace's text goes to the console.

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACING "/sys/kernel/tracing/"
#define MS 1000000LL
#define PERIOD_NS (10 * MS)
#define WORK_NS (300 * 1000LL)
#define EARLY_NS (2 * MS)
#define SPIN_NS (6 * MS)
#define PERIODS 8
#define LATE_PERIOD 4

static const char *const EVENTS[] = {
    "sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup", "sched/sched_migrate_task",
    "irq", "irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit",
    "timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit",
};

// When the hog ran, by its own clock; told at the end, as to print is work too.
static struct {
    long long first_ns, last_ns;
} *truth;

static void put(const char *path, const char *text) {
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        printf("cannot write %s\n", path);
    close(file);
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 * MS + now.tv_nsec;
}

static void sleep_until(long long at_ns) {
    struct timespec at = {at_ns / (1000 * MS), at_ns % (1000 * MS)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void spin_until(long long at_ns) {
    while (now_ns() < at_ns)
        ;
}

static void loop(long long start_ns) {
    for (int period = 0; period < PERIODS; period++) {
        sleep_until(start_ns + period * PERIOD_NS);
        spin_until(now_ns() + WORK_NS);
    }
}

static void hog(long long start_ns) {
    long long begin_ns = start_ns + LATE_PERIOD * PERIOD_NS - EARLY_NS;
    sleep_until(begin_ns);
    truth->first_ns = now_ns();
    spin_until(begin_ns + SPIN_NS);
    truth->last_ns = now_ns();
}

static void begin(const char *name, int priority, void (*work)(long long), long long start_ns) {
    if (fork())
        return;
    struct sched_param param = {priority};
    prctl(PR_SET_NAME, name);
    if (sched_setscheduler(0, SCHED_FIFO, &param))
        printf("cannot be real-time\n");
    work(start_ns);
    _exit(0);
}

static void show(const char *path) {
    char bytes[4096];
    ssize_t count;
    int file = open(path, O_RDONLY);
    while ((count = read(file, bytes, sizeof bytes)) > 0)
        fwrite(bytes, 1, count, stdout);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    mkdir("/sys", 0755);
    mount("sysfs", "/sys", "sysfs", 0, NULL);
    mount("tracefs", TRACING, "tracefs", 0, NULL);
    truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    // What the kernel does behind its boot is not of this scene.
    sleep_until(now_ns() + 2000 * MS);
    put(TRACING "trace_clock", "mono");
    for (size_t at = 0; at < sizeof EVENTS / sizeof *EVENTS; at++) {
        char path[128];
        snprintf(path, sizeof path, TRACING "events/%s/enable", EVENTS[at]);
        put(path, "1");
    }
    long long start_ns = now_ns() + 100 * MS;
    begin("ctrl_loop", 50, loop, start_ns);
    begin("rt_hog", 60, hog, start_ns);
    while (wait(NULL) > 0)
        ;
    put(TRACING "tracing_on", "0");
    printf("truth: rt_hog ran from %lld to %lld\n", truth->first_ns, truth->last_ns);
    printf("late: %lld\n>>>\n", start_ns + LATE_PERIOD * PERIOD_NS);
    show(TRACING "trace");
    printf("<<<\n");
    fflush(stdout);
    reboot(RB_POWER_OFF);
}
