// SPDX-License-Identifier: GPL-2.0-only
// A console as slow as a serial line: where the kernel prints in the context that logs, interrupts
// are off for as long as a record takes.
#include <linux/console.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/processor.h>

#include "lab.h"

/* A thread that prints for others does so within this. */
#define WAIT_MS_MAX 2000

static const struct lab_fault *fault_now;
static u64 record_ns; /* the next record takes so long; 0: no time */

static noinline void lab_console_write(struct console *console, const char *text, unsigned int size)
{
	u64 length_ns = READ_ONCE(record_ns), begin_ns;

	if (!length_ns)
		return;
	begin_ns = ktime_get_ns();
	lab_burn(length_ns);
	lab_truth_add(fault_now, begin_ns, ktime_get_ns());
	WRITE_ONCE(record_ns, 0);
}

static struct console lab_console = {
	.name = "lab",
	.write = lab_console_write,
	.flags = CON_ENABLED,
	.index = -1,
};

static int run_console(const struct lab_fault *fault, u64 length_ns)
{
	unsigned int waited_ms;

	fault_now = fault;
	WRITE_ONCE(record_ns, length_ns);
	pr_emerg("rtscope lab: a record for a slow console\n");
	for (waited_ms = 0; READ_ONCE(record_ns) && waited_ms < WAIT_MS_MAX; waited_ms += 10)
		msleep(10);
	return READ_ONCE(record_ns) ? -ETIMEDOUT : 0;
}

const struct lab_fault lab_consoles[] = {
	{ "console", "lab_console", run_console },
};
const size_t lab_consoles_count = ARRAY_SIZE(lab_consoles);

void lab_console_init(void)
{
	register_console(&lab_console);
}

void lab_console_exit(void)
{
	unregister_console(&lab_console);
}
