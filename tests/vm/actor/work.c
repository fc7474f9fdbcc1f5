/* Steps that use a CPU, take locks, or change who the task is. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "actor.h"

/* No step has the CPU for longer, whatever the scenario says. */
#define BURN_NS_MAX 400000000

static uint64_t bounded(uint64_t length_ns)
{
	return length_ns < BURN_NS_MAX ? length_ns : BURN_NS_MAX;
}

static void burn_for(uint64_t length_ns)
{
	uint64_t until_ns = now_ns() + bounded(length_ns);

	while (now_ns() < until_ns)
		;
}

/* By the clock, however often it is preempted. */
static void burn(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();

	burn_for(step->duration_ns);
	log_add(player, "burn", "", begin_ns, begin_ns);
}

static uint64_t own_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* So much CPU time of its own. */
static void work(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns(), until_ns = own_ns() + bounded(step->duration_ns);

	while (own_ns() < until_ns)
		;
	if (step->duration_ns >= 1000000)
		log_add(player, "work", "", begin_ns, begin_ns);
}

static void lock(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();
	int at = thing_find(player->scenario, step->word[0]);

	pthread_mutex_lock(&player->shared->mutexes[at]);
	log_add(player, "lock", step->word[0], begin_ns, begin_ns);
}

static void unlock(struct player *player, const struct step *step)
{
	pthread_mutex_unlock(&player->shared->mutexes[thing_find(player->scenario, step->word[0])]);
}

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

void policy_set(pid_t tid, const struct policy *policy)
{
	bool is_other = policy->policy == SCHED_OTHER;
	struct attributes attributes = {
		.size = sizeof(attributes),
		.policy = (uint32_t)policy->policy,
		.nice = is_other ? policy->priority : 0,
		.priority = is_other ? 0 : (uint32_t)policy->priority,
		.runtime_ns = policy->runtime_ns,
		.deadline_ns = policy->period_ns,
		.period_ns = policy->period_ns,
	};

	if (syscall(SYS_sched_setattr, tid, &attributes, 0))
		fail("cannot take the policy", "sched_setattr", errno);
}

static void become(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();

	policy_set(0, &step->policy);
	log_add(player, "policy", "", begin_ns, begin_ns);
}

/* Gives another task of the scenario a policy. */
static void force(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < player->scenario->tasks_count; i++)
		if (!strcmp(player->scenario->tasks[i].name, step->word[0]))
			policy_set(player->shared->tids[i], &step->policy);
	log_add(player, "force", step->word[0], begin_ns, begin_ns);
}

static void rename_to(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();

	prctl(PR_SET_NAME, step->word[0]);
	log_add(player, "name", step->word[0], begin_ns, begin_ns);
}

/* Another task may use this CPU alone from now on. */
static void send_to(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(step->number, &cpus);
	for (int i = 0; i < player->scenario->tasks_count; i++)
		if (!strcmp(player->scenario->tasks[i].name, step->word[0]))
			sched_setaffinity(player->shared->tids[i], sizeof(cpus), &cpus);
	log_add(player, "send", step->word[0], begin_ns, begin_ns);
}

static void move(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (step->number < 0 || cpu == step->number)
			CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("cannot move", player->task->name, errno);
	log_add(player, "move", "", begin_ns, begin_ns);
}

/* A child burns and ends; nobody waits for it. */
static void fork_burn(struct player *player, const struct step *step)
{
	if (fork() == 0) {
		uint64_t begin_ns = now_ns();

		burn_for(step->duration_ns);
		log_add(player, "burn", "", begin_ns, begin_ns);
		_exit(0);
	}
}

/* A child sleeps and ends; its parent waits for it. */
static void fork_wait(struct player *player, const struct step *step)
{
	pid_t child = fork();

	if (child == 0) {
		sleep_until_ns(now_ns() + step->duration_ns);
		_exit(0);
	}
	/* To make one is work of its own; to wait for its end is none. */
	activation_end(player);
	waitpid(child, NULL, 0);
}

/* A child has its parent's memory and sleeps; until it ends the parent sleeps too, in the midst of
 * its work. */
static void vfork_wait(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();
	pid_t child = vfork();

	if (child == 0) {
		sleep_until_ns(begin_ns + step->duration_ns);
		_exit(0);
	}
	log_add(player, "vfork", "", begin_ns, begin_ns);
	waitpid(child, NULL, 0);
}

/* Writes so many pages into a channel, in which there may be no room. */
static void put_pages(struct player *player, const struct step *step)
{
	static const char page[4096];
	int place = thing_find(player->scenario, step->word[0]);
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < step->number; i++)
		if (write(player->shared->files[place][1], page, sizeof(page)) < 0)
			fail("cannot write to", step->word[0], errno);
	log_add(player, "put", step->word[0], begin_ns, begin_ns);
}

/* Reads what there is of a page; waits where there is nothing. */
static void get_page(struct player *player, const struct step *step)
{
	int place = thing_find(player->scenario, step->word[0]);
	char page[4096];

	if (read(player->shared->files[place][0], page, sizeof(page)) < 0)
		fail("cannot read from", step->word[0], errno);
}

static void end(struct player *player, const struct step *step)
{
	(void)step;
	activation_end(player);
	if (player->task->is_process)
		_exit(0);
	pthread_exit(NULL);
}

#define PAGE_BYTES 4096

/* Maps so many pages, writes to each, and gives them back. */
static void touch(struct player *player, const struct step *step)
{
	size_t bytes = (size_t)step->number * PAGE_BYTES;
	uint64_t begin_ns = now_ns();
	volatile char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		fail("cannot map pages", player->task->name, errno);
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		pages[at] = 1;
	munmap((void *)pages, bytes);
	log_add(player, "touch", "", begin_ns, begin_ns);
}

/* Spins until the flag is set, at most as long as any step may have the CPU. */
static void spin(struct player *player, const struct step *step)
{
	_Atomic int *flag = &player->shared->words[thing_find(player->scenario, step->word[0])];
	uint64_t begin_ns = now_ns();

	*flag = 0;
	while (!*flag && now_ns() < begin_ns + BURN_NS_MAX)
		;
	log_add(player, "spin", step->word[0], begin_ns, begin_ns);
}

static void set(struct player *player, const struct step *step)
{
	player->shared->words[thing_find(player->scenario, step->word[0])] = 1;
}

const struct verb work_verbs[] = {
	{ "burn", "d", burn },       { "work", "d", work },         { "lock", "w", lock },
	{ "unlock", "w", unlock },   { "policy", "p", become },     { "force", "wp", force },
	{ "name", "w", rename_to },  { "move", "n", move },         { "fork", "d", fork_burn },
	{ "child", "d", fork_wait }, { "exit", "", end },           { "touch", "n", touch },
	{ "spin", "w", spin },       { "set", "w", set },           { "send", "wn", send_to },
	{ "vfork", "d", vfork_wait }, { "put", "wn", put_pages },   { "get", "w", get_page },
	{ NULL, NULL, NULL },
};
