/* Plays one scenario: makes what it names, starts its tasks, ends them, and prints their log. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"

/* From the moment when all tasks are there to the scenario's begin. */
#define AHEAD_NS 3000000
/* Beyond its end a task that still has work is ended. */
#define GRACE_NS 60000000
/* A real-time task that runs for longer without a sleep is killed by the kernel. */
#define RT_US_MAX 1000000
/* On a busy host an emulator takes its time. */
#define READY_NS_MAX 60000000000u

static void prepare(struct player *player)
{
	const struct task *task = player->task;

	player->shared->tids[player->index] = (pid_t)syscall(SYS_gettid);
	if (task->has_cpus && sched_setaffinity(0, sizeof(task->cpus), &task->cpus))
		fail("cannot move", task->name, errno);
	for (int i = 0; i < task->steps_count; i++)
		if (!strcmp(task->steps[i].verb->name, "join"))
			task->steps[i].verb->play(player, &task->steps[i]);
	player->shared->ready++;
	while (!player->shared->start_ns)
		sleep_until_ns(now_ns() + 500000);
	prctl(PR_SET_NAME, task->name);
	policy_set(0, &task->policy);
}

static void play(struct player *player)
{
	const struct task *task = player->task;
	int at = 0;

	prepare(player);
	while (!is_over(player)) {
		if (at == task->steps_count) {
			if (task->loop_at < 0)
				break;
			at = task->loop_at;
		}
		if (strcmp(task->steps[at].verb->name, "join"))
			task->steps[at].verb->play(player, &task->steps[at]);
		at++;
	}
	activation_end(player);
	/* To end is work too, which is in no log. */
	sleep_until_ns(player->shared->end_ns);
}

static void *play_thread(void *player)
{
	play(player);
	return NULL;
}

static void things_make(const struct scenario *scenario, struct shared *shared)
{
	for (int i = 0; i < scenario->things_count; i++) {
		const struct thing *thing = &scenario->things[i];
		pthread_mutexattr_t attributes;

		pthread_mutexattr_init(&attributes);
		if (thing->number)
			pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
		if (!strcmp(thing->kind, "pi"))
			pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
		pthread_mutex_init(&shared->mutexes[i], &attributes);
		if (!strcmp(thing->kind, "pipe") && pipe(shared->files[i]))
			fail("no pipe", thing->name, errno);
		if (!strcmp(thing->kind, "socket") &&
		    socketpair(AF_UNIX, SOCK_STREAM, 0, shared->files[i]))
			fail("no sockets", thing->name, errno);
		if (!strcmp(thing->kind, "eventfd"))
			shared->files[i][0] = shared->files[i][1] = eventfd(0, 0);
		if (!strcmp(thing->kind, "group"))
			group_make(scenario, thing);
	}
}

/* The process of all tasks that are threads. */
static void tasks_start(const struct scenario *scenario, struct shared *shared)
{
	static struct player players[TASKS_MAX];
	pthread_t threads[TASKS_MAX];
	int count = 0;

	for (int i = 0; i < scenario->tasks_count; i++) {
		players[i] = (struct player){ .scenario = scenario,
					      .task = &scenario->tasks[i],
					      .shared = shared,
					      .index = i,
					      .timer = -1 };
		if (!scenario->tasks[i].is_process) {
			if (pthread_create(&threads[count++], NULL, play_thread, &players[i]))
				fail("cannot start", scenario->tasks[i].name, errno);
		} else if (fork() == 0) {
			play(&players[i]);
			_exit(0);
		}
	}
	while (count)
		pthread_join(threads[--count], NULL);
	while (wait(NULL) > 0)
		;
}

static void log_print(const struct scenario *scenario, struct shared *shared)
{
	int count = shared->entries_count;

	printf("scenario %s %" PRIu64 " %" PRIu64 "\n", scenario->name, (uint64_t)shared->start_ns,
	       shared->end_ns);
	for (int i = 0; i < scenario->tasks_count; i++)
		printf("task %s %d\n", scenario->tasks[i].name, shared->tids[i]);
	for (int i = 0; i < count && i < LOG_MAX; i++) {
		const struct entry *entry = &shared->entries[i];
		const struct task *task = &scenario->tasks[entry->task];

		printf("%s %s %d %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", task->role,
		       task->name, shared->tids[entry->task], entry->what,
		       *entry->about ? entry->about : "-", entry->due_ns, entry->begin_ns,
		       entry->end_ns);
	}
	if (shared->lost)
		printf("lost %d\n", shared->lost);
}

/* What the module did since it was last asked. */
static void module_print(void)
{
	static int known;
	FILE *file = fopen("/dev/rtscope-inject", "re");
	char line[256];

	for (int i = 0; file && fgets(line, sizeof(line), file); i++) {
		if (i >= known) {
			printf("kernel %s", line);
			known++;
		}
	}
	if (file)
		fclose(file);
}

static void start(const struct scenario *scenario, struct shared *shared, pid_t leader)
{
	uint64_t limit_ns = now_ns() + READY_NS_MAX;

	while (shared->ready < scenario->tasks_count && now_ns() < limit_ns)
		sleep_until_ns(now_ns() + 500000);
	if (shared->ready < scenario->tasks_count) {
		kill(-leader, SIGKILL);
		fail("its tasks did not start", scenario->name, ETIME);
	}
	shared->end_ns = now_ns() + AHEAD_NS + scenario->length_ns;
	shared->start_ns = now_ns() + AHEAD_NS;
	sleep_until_ns(shared->end_ns + GRACE_NS);
}

void scenario_play(const struct scenario *scenario)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rlimit limit = { RT_US_MAX, RT_US_MAX };
	pid_t leader;

	if (shared == MAP_FAILED)
		fail("no memory for", scenario->name, errno);
	things_make(scenario, shared);
	fflush(stdout);
	leader = fork();
	if (leader == 0) {
		struct policy other = { .policy = SCHED_OTHER };

		setpgid(0, 0);
		policy_set(0, &other);
		setrlimit(RLIMIT_RTTIME, &limit);
		mlockall(MCL_CURRENT | MCL_FUTURE);
		tasks_start(scenario, shared);
		_exit(0);
	}
	setpgid(leader, leader);
	start(scenario, shared, leader);
	kill(-leader, SIGKILL);
	while (waitpid(leader, NULL, 0) < 0 && errno == EINTR)
		;
	machine_restore();
	for (int i = 0; i < scenario->things_count; i++) {
		if (!strcmp(scenario->things[i].kind, "group"))
			group_remove(scenario, &scenario->things[i]);
		if (!strcmp(scenario->things[i].kind, "pipe") ||
		    !strcmp(scenario->things[i].kind, "socket"))
			close(shared->files[i][1]);
		if (shared->files[i][0])
			close(shared->files[i][0]);
	}
	log_print(scenario, shared);
	module_print();
	pulse_print();
	munmap(shared, sizeof(*shared));
}
