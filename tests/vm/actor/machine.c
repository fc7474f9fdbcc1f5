/* Steps that change the machine or stop a task, and control groups of either version. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "actor.h"

#define PATH_MAX_BYTES 192
/* The period of a group's quota. */
#define QUOTA_PERIOD_US 100000

static bool is_unified(void)
{
	return access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

/* A group's folder; `controller` counts where each has a tree of its own. */
static void folder(char *path, const char *controller, const char *name)
{
	snprintf(path, PATH_MAX_BYTES, "/sys/fs/cgroup/%s/rtscope-actor-%s",
		 is_unified() ? "" : controller, name);
}

static int put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t count = file < 0 ? -1 : write(file, text, strlen(text));

	if (file >= 0)
		close(file);
	return count < 0 ? errno : 0;
}

static void put_in(const char *controller, const char *name, const char *file, const char *text)
{
	char path[PATH_MAX_BYTES + 64], at[PATH_MAX_BYTES];
	int error;

	folder(at, controller, name);
	snprintf(path, sizeof(path), "%s/%s", at, file);
	error = put(path, text);
	if (error)
		fail("cannot write", path, error);
}

static const char *const controllers[] = { "cpu", "freezer", NULL };

void group_make(const struct scenario *scenario, const struct thing *thing)
{
	char path[PATH_MAX_BYTES], text[64];

	(void)scenario;
	for (const char *const *one = controllers; *one; one++) {
		folder(path, *one, thing->name);
		if (mkdir(path, 0755) && errno != EEXIST)
			fail("cannot make the group", path, errno);
	}
	if (!thing->number)
		return;
	if (is_unified()) {
		snprintf(text, sizeof(text), "%d %d", thing->number * 1000, QUOTA_PERIOD_US);
		put_in("cpu", thing->name, "cpu.max", text);
		return;
	}
	snprintf(text, sizeof(text), "%d", thing->number * 1000);
	put_in("cpu", thing->name, "cpu.cfs_period_us", "100000");
	put_in("cpu", thing->name, "cpu.cfs_quota_us", text);
}

void group_remove(const struct scenario *scenario, const struct thing *thing)
{
	char path[PATH_MAX_BYTES];

	(void)scenario;
	for (const char *const *one = controllers; *one; one++) {
		folder(path, *one, thing->name);
		/* Who was in it may still be on its way out. */
		for (int i = 0; rmdir(path) && errno == EBUSY && i < 200; i++)
			sleep_until_ns(now_ns() + 5000000);
	}
}

static void join(struct player *player, const struct step *step)
{
	const char *name = step->word[0];

	(void)player;
	put_in("cpu", name, "cgroup.procs", "0");
	if (!is_unified())
		put_in("freezer", name, "cgroup.procs", "0");
}

static void freeze(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();
	bool unified = is_unified();
	const char *file = unified ? "cgroup.freeze" : "freezer.state";

	put_in("freezer", step->word[0], file, unified ? "1" : "FROZEN");
	sleep_until_ns(begin_ns + step->duration_ns);
	put_in("freezer", step->word[0], file, unified ? "0" : "THAWED");
	log_add(player, "freeze", step->word[0], begin_ns, begin_ns);
}

static pid_t tid_of(struct player *player, const char *name)
{
	for (int i = 0; i < player->scenario->tasks_count; i++)
		if (!strcmp(player->scenario->tasks[i].name, name))
			return player->shared->tids[i];
	fail("no such task", name, ENOENT);
}

/* Of a task that is a process: the signal stops all of it. */
static void stop(struct player *player, const struct step *step)
{
	pid_t pid = tid_of(player, step->word[0]);
	uint64_t begin_ns = now_ns();

	kill(pid, SIGSTOP);
	sleep_until_ns(begin_ns + step->duration_ns);
	kill(pid, SIGCONT);
	log_add(player, "stop", step->word[0], begin_ns, begin_ns);
}

static void trace(struct player *player, const struct step *step)
{
	pid_t pid = tid_of(player, step->word[0]);
	uint64_t begin_ns = now_ns();

	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL))
		fail("cannot trace", step->word[0], errno);
	waitpid(pid, NULL, __WALL);
	sleep_until_ns(begin_ns + step->duration_ns);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	log_add(player, "trace", step->word[0], begin_ns, begin_ns);
}

static void slack(struct player *player, const struct step *step)
{
	(void)player;
	prctl(PR_SET_TIMERSLACK, step->duration_ns);
}

/* A fault of the module, on this task's CPU; it returns when that is over. */
static void inject(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();
	char line[128];
	int error;

	snprintf(line, sizeof(line), "%s %s %llu %d", step->word[0], step->word[1],
		 (unsigned long long)(step->duration_ns / 1000), sched_getcpu());
	error = put("/dev/rtscope-inject", line);
	if (error)
		fail("the module refuses", line, error);
	log_add(player, "inject", step->word[1], begin_ns, begin_ns);
}

static void online(int cpu, const char *value)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	put(path, value);
}

static int cpu_off = -1;

static void offline(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();

	cpu_off = step->number;
	online(cpu_off, "0");
	sleep_until_ns(begin_ns + step->duration_ns);
	online(cpu_off, "1");
	log_add(player, "offline", "", begin_ns, begin_ns);
}

/* Moves the wall clock by so many milliseconds, for so long. */
static void clock_step(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();

	for (int sign = 1; sign >= -1; sign -= 2) {
		struct timespec wall;
		int64_t ns;

		clock_gettime(CLOCK_REALTIME, &wall);
		ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec +
		     (int64_t)sign * step->number * 1000000;
		wall = (struct timespec){ ns / 1000000000, ns % 1000000000 };
		clock_settime(CLOCK_REALTIME, &wall);
		if (sign > 0)
			sleep_until_ns(begin_ns + step->duration_ns);
	}
	log_add(player, "clock", "", begin_ns, begin_ns);
}

/* Has the driver of the laboratory stop the emulator. */
static void stall(struct player *player, const struct step *step)
{
	uint64_t begin_ns = now_ns();
	char line[96];

	snprintf(line, sizeof(line), "rtscope-vm: %.2f stall 20 %llu\n", (double)begin_ns / 1e9,
		 (unsigned long long)(step->duration_ns / 1000000));
	put("/dev/console", line);
	log_add(player, "stall", "", begin_ns, begin_ns);
}

void machine_restore(void)
{
	if (cpu_off >= 0)
		online(cpu_off, "1");
}

const struct verb machine_verbs[] = {
	{ "join", "w", join },     { "freeze", "wd", freeze },    { "stop", "wd", stop },
	{ "trace", "wd", trace },  { "slack", "d", slack },       { "inject", "wwd", inject },
	{ "offline", "nd", offline }, { "clock", "nd", clock_step }, { "stall", "d", stall },
	{ NULL, NULL, NULL },
};
