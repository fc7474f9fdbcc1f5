/* Reads scenarios: a line each for what there is and for each task, `ROLE NAME POLICY OPTIONS |
 * STEP, STEP…`. Lines that only the judge reads are left alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"

#define LINE_MAX_BYTES 2048

static const char *const for_the_judge[] = { "fault",   "over",  "accuse", "advice",
					     "silence", "known", NULL };
static const char *const things[] = { "mutex", "channel", "group", NULL };
static const char *const roles[] = { "victim", "culprit", "innocent", "helper", NULL };

static bool is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word))
		words++;
	return *words;
}

/* `200us`, `3ms`, `1s`. */
static uint64_t duration(const char *text)
{
	char *unit;
	unsigned long long value = strtoull(text, &unit, 10);

	if (unit == text)
		fail("no duration", text, EINVAL);
	if (!strcmp(unit, "us"))
		return value * 1000;
	if (!strcmp(unit, "ms"))
		return value * 1000000;
	if (!strcmp(unit, "s"))
		return value * 1000000000;
	fail("a duration without a unit", text, EINVAL);
}

/* `fifo:50`, `rr:20`, `other:0`, `dl:3ms/10ms`. */
static struct policy policy(const char *text)
{
	struct policy policy = { 0 };
	char runtime[NAME_MAX_BYTES], period[NAME_MAX_BYTES];

	if (sscanf(text, "fifo:%d", &policy.priority) == 1)
		policy.policy = SCHED_FIFO;
	else if (sscanf(text, "rr:%d", &policy.priority) == 1)
		policy.policy = SCHED_RR;
	else if (sscanf(text, "other:%d", &policy.priority) == 1)
		policy.policy = SCHED_OTHER;
	else if (sscanf(text, "dl:%31[^/]/%31s", runtime, period) == 2) {
		policy.policy = SCHED_DEADLINE;
		policy.runtime_ns = duration(runtime);
		policy.period_ns = duration(period);
	} else {
		fail("no policy", text, EINVAL);
	}
	return policy;
}

/* `0`, `1`, `0+1`. */
static void cpus(struct task *task, char *list)
{
	char *rest;

	CPU_ZERO(&task->cpus);
	for (char *one = strtok_r(list, "+", &rest); one; one = strtok_r(NULL, "+", &rest))
		CPU_SET(atoi(one), &task->cpus);
	task->has_cpus = true;
}

static void step(struct task *task, char *text)
{
	struct step *step = &task->steps[task->steps_count];
	char *rest, *word = strtok_r(text, " ", &rest);
	int names = 0;

	if (!word)
		fail("an empty step of", task->name, EINVAL);
	if (!strcmp(word, "loop")) {
		task->loop_at = task->steps_count;
		return;
	}
	step->verb = verb_find(word);
	if (!step->verb)
		fail("no such step", word, EINVAL);
	if (++task->steps_count >= STEPS_MAX)
		fail("too many steps of", task->name, E2BIG);
	for (const char *kind = step->verb->words; *kind; kind++) {
		word = strtok_r(NULL, " ", &rest);
		if (!word)
			fail("a word is missing behind", step->verb->name, EINVAL);
		if (*kind == 'd')
			step->duration_ns = duration(word);
		else if (*kind == 'n')
			step->number = atoi(word);
		else if (*kind == 'p')
			step->policy = policy(word);
		else
			snprintf(step->word[names++], NAME_MAX_BYTES, "%s", word);
	}
	if (strtok_r(NULL, " ", &rest))
		fail("a word too many behind", step->verb->name, EINVAL);
}

static void task(struct scenario *scenario, char *line)
{
	struct task *task = &scenario->tasks[scenario->tasks_count++];
	char *bar = strchr(line, '|'), *rest, *word;

	if (scenario->tasks_count > TASKS_MAX || !bar)
		fail("too many tasks, or no '|'", scenario->name, EINVAL);
	*bar = 0;
	task->loop_at = -1;
	snprintf(task->role, NAME_MAX_BYTES, "%s", strtok_r(line, " ", &rest));
	word = strtok_r(NULL, " ", &rest);
	snprintf(task->name, NAME_MAX_BYTES, "%s", word ? word : "");
	word = strtok_r(NULL, " ", &rest);
	task->policy = policy(word ? word : "");
	while ((word = strtok_r(NULL, " ", &rest))) {
		if (!strncmp(word, "cpu=", 4))
			cpus(task, word + 4);
		else if (!strcmp(word, "process"))
			task->is_process = true;
		else
			fail("no such option", word, EINVAL);
	}
	for (char *one = strtok_r(bar + 1, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		step(task, one);
}

static void line_read(struct scenario *scenario, char *line)
{
	char word[NAME_MAX_BYTES] = "", name[64] = "", kind[NAME_MAX_BYTES] = "";
	int number = 0;
	int count = sscanf(line, "%31s %63s %31s %d", word, name, kind, &number);

	if (count < 1 || *word == '#' || is_one_of(word, for_the_judge))
		return;
	if (!strcmp(word, "length") && count >= 2) {
		scenario->length_ns = duration(name);
	} else if (is_one_of(word, things) && scenario->things_count < THINGS_MAX) {
		struct thing *thing = &scenario->things[scenario->things_count++];

		memcpy(thing->name, name, NAME_MAX_BYTES - 1);
		snprintf(thing->kind, NAME_MAX_BYTES, "%s", *word == 'g' ? "group" : kind);
		thing->number = *word == 'g' ? atoi(kind) : number;
	} else if (is_one_of(word, roles)) {
		task(scenario, line);
	} else {
		fail("no such line", word, EINVAL);
	}
}

int scenarios_read(const char *path, struct scenario **scenarios)
{
	FILE *file = fopen(path, "re");
	char line[LINE_MAX_BYTES];
	int count = 0;

	if (!file)
		fail("cannot read", path, errno);
	*scenarios = NULL;
	while (fgets(line, sizeof(line), file)) {
		char name[64];

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "scenario %63s", name) == 1) {
			*scenarios = realloc(*scenarios, (size_t)(count + 1) * sizeof(**scenarios));
			if (!*scenarios)
				fail("no memory for", name, ENOMEM);
			memset(&(*scenarios)[count], 0, sizeof(**scenarios));
			snprintf((*scenarios)[count++].name, sizeof(name), "%s", name);
		} else if (count) {
			line_read(&(*scenarios)[count - 1], line);
		}
	}
	fclose(file);
	return count;
}

int thing_find(const struct scenario *scenario, const char *name)
{
	for (int i = 0; i < scenario->things_count; i++)
		if (!strcmp(scenario->things[i].name, name))
			return i;
	fail("no such mutex, channel or group", name, ENOENT);
}
