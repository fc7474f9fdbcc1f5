/* Plays scenarios: what the parts of the program share. docs/scenarios.md has the language. */
#ifndef ACTOR_H
#define ACTOR_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TASKS_MAX 16
#define STEPS_MAX 32
#define THINGS_MAX 8
#define LOG_MAX 16384
#define NAME_MAX_BYTES 32

/* How a task has its CPU. */
struct policy {
	int policy;          /* SCHED_OTHER, SCHED_FIFO, SCHED_RR or SCHED_DEADLINE */
	int priority;        /* of a real-time policy; nice value of SCHED_OTHER */
	uint64_t runtime_ns; /* of SCHED_DEADLINE, in each period */
	uint64_t period_ns;
};

struct step;
struct player;

/* One kind of step: how it is called, what its words are, and what it does. A letter of `words`
 * each: d a duration, n a number, p a policy, w a word. */
struct verb {
	const char *name;
	const char *words;
	void (*play)(struct player *player, const struct step *step);
};

struct step {
	const struct verb *verb;
	uint64_t duration_ns;
	int number;
	struct policy policy;
	char word[2][NAME_MAX_BYTES];
};

/* A line of the scenario: one thread, or one process. */
struct task {
	char role[NAME_MAX_BYTES];
	char name[NAME_MAX_BYTES];
	struct policy policy;
	cpu_set_t cpus;
	bool has_cpus;
	bool is_process;
	int steps_count;
	int loop_at; /* the first step that is repeated until the end; -1: none is */
	struct step steps[STEPS_MAX];
};

/* A mutex, a channel or a control group, by its name. */
struct thing {
	char name[NAME_MAX_BYTES];
	char kind[NAME_MAX_BYTES];
	int number;
};

struct scenario {
	char name[64];
	uint64_t length_ns;
	int tasks_count;
	int things_count;
	struct task tasks[TASKS_MAX];
	struct thing things[THINGS_MAX];
};

/* What became of a step. */
struct entry {
	int task;
	const char *what; /* a string that all processes have at the same place */
	char about[NAME_MAX_BYTES];
	uint64_t due_ns; /* of an activation; else the begin again */
	uint64_t begin_ns;
	uint64_t end_ns;
};

/* One memory for all processes of a scenario. */
struct shared {
	_Atomic uint64_t start_ns; /* 0: not yet */
	uint64_t end_ns;
	_Atomic int ready;
	_Atomic int entries_count;
	_Atomic int lost;
	pid_t tids[TASKS_MAX];
	struct entry entries[LOG_MAX];
	pthread_mutex_t mutexes[THINGS_MAX];
	_Atomic int words[THINGS_MAX]; /* futexes, flags, who takes a signal */
	_Atomic uint64_t posted_ns[THINGS_MAX];
	int files[THINGS_MAX][2];      /* of pipes and eventfds */
};

/* A task that plays. */
struct player {
	const struct scenario *scenario;
	const struct task *task;
	struct shared *shared;
	int index;
	int timer;       /* a timerfd, or 0 for one that signals; -1: none yet */
	int epoll;
	uint64_t due_ns; /* of the activation under way; 0: none is */
	uint64_t begin_ns;
	uint64_t next_ns; /* multiples of the period from the start on */
};

/* read.c */
int scenarios_read(const char *path, struct scenario **scenarios);
int thing_find(const struct scenario *scenario, const char *name);

/* Each ends with a verb without a name. */
extern const struct verb work_verbs[];
extern const struct verb wait_verbs[];
extern const struct verb machine_verbs[];
const struct verb *verb_find(const char *name);

/* work.c */
void policy_set(pid_t tid, const struct policy *policy);

/* waits.c: logs the activation that ends here, if one does. */
void activation_end(struct player *player);

/* timers.c: wait for the next expiry; when that was. */
uint64_t wait_timerfd(struct player *player, uint64_t period_ns, bool epoll);
uint64_t wait_signal(struct player *player, uint64_t period_ns);

/* machine.c: control groups of either version, below the root. */
void group_make(const struct scenario *scenario, const struct thing *thing);
void group_remove(const struct scenario *scenario, const struct thing *thing);
void machine_restore(void);

/* play.c */
void scenario_play(const struct scenario *scenario);

/* pulse.c: what the machine did not run; prints what is new of it. */
void pulse_start(void);
void pulse_print(void);

/* base.c */
uint64_t now_ns(void);
void sleep_until_ns(uint64_t when_ns);
bool is_over(const struct player *player);
void log_add(struct player *player, const char *what, const char *about, uint64_t due_ns,
	     uint64_t begin_ns);
_Noreturn void fail(const char *what, const char *about, int error);

#endif
