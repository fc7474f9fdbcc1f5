// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Stops a thread before one instruction of the way of a record, and does something to it there. A
 * trap is laid at the instruction: single steps would abort a restartable sequence before they
 * reached into it.
 *
 *     stepped reach KIND BEFORE < ADDRESSES    which of the addresses an event executes
 *     stepped kill|signal|move|fork ADDRESS KIND BEFORE
 *
 * The traced child writes BEFORE events, the one in question, and two more. Where $LATE is set,
 * its rings get their size and memory between the two, as from a recorder that comes then. Exits
 * with 0 when it was stopped there, with 1 when it did not come by; says how its rings are called.
 */
#define _GNU_SOURCE
#define RTSCOPE_NO_CONSTRUCTOR
#include <dirent.h>
#include <fcntl.h>
#include <rtscope/event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDRESSES_MAX 65536
#define AFTER 2
/* The number of the event that the signal handler writes. */
#define NESTED 1000000
#define TRAP 0xcc

/* What a recorder gives that comes late. */
#define LATE_BYTES (32u << 10)

static unsigned long addresses[ADDRESSES_MAX];
static unsigned char codes[ADDRESSES_MAX];
static int is_text;

static void write_fixed(uint64_t number)
{
    RTSCOPE_EVENT(steps, fixed, u64("number", number), u64("check", ~number * 31), u64("end", 7));
}

static void write_text(uint64_t number)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    RTSCOPE_EVENT(steps, text, u64("number", number),
                  text_n("check", letters + number % 26, number % 23));
}

static __attribute__((noinline)) void write_one(uint64_t number)
{
    if (is_text)
        write_text(number);
    else
        write_fixed(number);
}

static void on_signal(int number)
{
    (void)number;
    write_one(NESTED);
}

static pid_t forked = -1;

/* The child goes on in the middle of the event, as its parent does. */
static void on_fork(int number)
{
    (void)number;
    forked = fork();
}

static void pin(pid_t task, int number)
{
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(number, &cpu);
    if (sched_setaffinity(task, sizeof cpu, &cpu) != 0)
        exit(3);
}

static void be_traced(uint64_t before)
{
    pin(0, 0);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_fork);
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
        _exit(3);
    rtscope_attach();
    for (uint64_t number = 0; number < before; number++)
        write_one(number);
    raise(SIGSTOP);
    write_one(before);
    if (forked)
        raise(SIGSTOP);
    for (uint64_t number = before + 1; number <= before + AFTER; number++)
        write_one(number);
    int status = 0;
    while (forked > 0 && waitpid(forked, &status, WUNTRACED) == forked && WIFSTOPPED(status))
        kill(forked, SIGCONT);
    _exit(status != 0);
}

/* Does what a recorder does that finds the rings of a program that runs. */
static void give_size(pid_t child)
{
    const char *const folder = getenv("RTSCOPE_DIR");
    char path[512] = "", name[32];
    snprintf(name, sizeof name, "rings-%d-", child);
    DIR *const list = opendir(folder);
    for (const struct dirent *entry; list && (entry = readdir(list));)
        if (strncmp(entry->d_name, name, strlen(name)) == 0)
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    const int fd = open(path, O_RDWR);
    struct rtscope_header *const header =
        mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!list || fd < 0 || header == MAP_FAILED || header->ring_bytes != 0)
        exit(3);
    const uint64_t bytes = header->rings_length * (uint64_t)LATE_BYTES;
    if (posix_fallocate(fd, (off_t)header->data_offset, (off_t)bytes) != 0)
        exit(3);
    header->ring_bytes = LATE_BYTES;
    for (uint32_t ring = 0; ring < header->rings_length; ring++) {
        struct rtscope_ring control;
        const off_t at = (off_t)(header->controls_offset + ring * sizeof control);
        memset(&control, 0, sizeof control);
        if (pwrite(fd, &control, sizeof control, at) != (ssize_t)sizeof control)
            exit(3);
    }
    struct rtscope_switch states[2];
    if (pread(fd, states, sizeof states, (off_t)header->switches_offset) != sizeof states)
        exit(3);
    for (int place = 0; place < 2; place++)
        states[place].enabled = states[place].sets = 1;
    if (pwrite(fd, states, sizeof states, (off_t)header->switches_offset) != sizeof states)
        exit(3);
    closedir(list);
    close(fd);
}

/* Waits for the child; returns the signal that stopped it, or 0 when it has ended well. */
static int stopped_by(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child)
        exit(3);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        exit(3);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        exit(3);
    return WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
}

static void go_on(pid_t child, int with_signal)
{
    if (ptrace(PTRACE_CONT, child, 0, (void *)(intptr_t)with_signal) != 0)
        exit(3);
}

static int memory_of(pid_t child)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    const int fd = open(path, O_RDWR);
    if (fd < 0)
        exit(3);
    return fd;
}

static void lay_traps(int memory, size_t length)
{
    const unsigned char trap = TRAP;
    for (size_t place = 0; place < length; place++)
        if (pread(memory, &codes[place], 1, (off_t)addresses[place]) != 1 ||
            pwrite(memory, &trap, 1, (off_t)addresses[place]) != 1)
            exit(3);
}

static void take_trap(int memory, size_t place)
{
    if (pwrite(memory, &codes[place], 1, (off_t)addresses[place]) != 1)
        exit(3);
}

/* Takes away the trap that stopped the child, which then stands before the instruction. */
static size_t step_back(pid_t child, int memory, size_t length)
{
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, child, 0, &registers) != 0)
        exit(3);
    size_t place = 0;
    while (place < length && addresses[place] != registers.rip - 1)
        place++;
    if (place == length)
        exit(3);
    take_trap(memory, place);
    registers.rip--;
    if (ptrace(PTRACE_SETREGS, child, 0, &registers) != 0)
        exit(3);
    return place;
}

/* Until the event in question is written; says each address that was come by. */
static void reach(pid_t child, int memory, size_t length)
{
    go_on(child, 0);
    while (stopped_by(child) == SIGTRAP) {
        printf("%lx\n", addresses[step_back(child, memory, length)]);
        go_on(child, 0);
    }
    for (size_t place = 0; place < length; place++)
        take_trap(memory, place);
}

/* Returns whether the child came by. */
static int act(pid_t child, int memory, const char *what)
{
    go_on(child, 0);
    if (stopped_by(child) != SIGTRAP) {
        take_trap(memory, 0);
        return 0;
    }
    if (strcmp(what, "kill") == 0) {
        kill(child, SIGKILL);
        stopped_by(child);
        return 1;
    }
    step_back(child, memory, 1);
    if (strcmp(what, "move") == 0)
        pin(child, 1);
    const int forks = strcmp(what, "fork") == 0;
    go_on(child, forks ? SIGUSR2 : strcmp(what, "signal") == 0 ? SIGUSR1 : 0);
    int stopped = stopped_by(child);
    /* Where the other process ends at once. */
    while (forks && stopped == SIGCHLD) {
        go_on(child, 0);
        stopped = stopped_by(child);
    }
    if (stopped != SIGSTOP)
        exit(3);
    return 1;
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    const int reaches = strcmp(words[1], "reach") == 0;
    char **const rest = words + (reaches ? 2 : 3);
    size_t length = 0;
    if (reaches)
        while (length < ADDRESSES_MAX && scanf("%lx", &addresses[length]) == 1)
            length++;
    else
        addresses[length++] = strtoul(words[2], 0, 16);
    is_text = strcmp(rest[0], "text") == 0;
    const pid_t child = fork();
    if (child == 0)
        be_traced(strtoull(rest[1], 0, 10));
    if (child < 0 || stopped_by(child) != SIGSTOP)
        return 3;
    const int memory = memory_of(child);
    if (getenv("LATE"))
        give_size(child);
    lay_traps(memory, length);
    int came_by = 1;
    if (reaches)
        reach(child, memory, length);
    else
        came_by = act(child, memory, words[1]);
    if (!reaches)
        printf("rings-%d-\n", child);
    if (kill(child, 0) == 0) {
        int stopped;
        do {
            go_on(child, 0);
        } while ((stopped = stopped_by(child)) == SIGCHLD);
        if (stopped != 0)
            return 3;
    }
    return !came_by;
}
