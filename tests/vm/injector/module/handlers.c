// SPDX-License-Identifier: GPL-2.0-only
// Long handlers: a hard interrupt, an interrupt thread and a tasklet. The interrupts have real
// numbers and names; a hard irq_work on the same CPU stands for the device that raises them.
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/irqdesc.h>
#include <linux/kernel.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/ktime.h>

#include "lab.h"

/* One part of a storm: the kernel leaves the others to ksoftirqd when a task is to run. */
#define STORM_PART_NS 400000

/* The fault that is running; device.c lets only one run at a time. */
static struct {
	const struct lab_fault *fault;
	u64 length_ns;
	u64 storm_until_ns;
	unsigned int irq;
	int cpu;
	struct completion done;
} now;

static unsigned int irq_hard;
static unsigned int irq_threaded;

static void burn_and_log(void)
{
	u64 begin_ns = ktime_get_ns();

	lab_burn(now.length_ns);
	lab_truth_add(now.fault, begin_ns, ktime_get_ns());
	complete(&now.done);
}

static noinline irqreturn_t lab_device(int irq, void *data)
{
	burn_and_log();
	return IRQ_HANDLED;
}

static noinline irqreturn_t lab_threaded(int irq, void *data)
{
	/* A line without a device has no affinity that its thread could follow. */
	if (raw_smp_processor_id() != now.cpu)
		set_cpus_allowed_ptr(current, cpumask_of(now.cpu));
	burn_and_log();
	return IRQ_HANDLED;
}

static void raise_interrupt(struct irq_work *work)
{
	generic_handle_irq(now.irq);
}

static struct irq_work raiser = IRQ_WORK_INIT_HARD(raise_interrupt);

static void lab_tasklet_handler(struct tasklet_struct *tasklet);
static DECLARE_TASKLET(lab_tasklet, lab_tasklet_handler);

static noinline void lab_tasklet_handler(struct tasklet_struct *tasklet)
{
	u64 begin_ns = ktime_get_ns();

	if (!now.storm_until_ns) {
		burn_and_log();
		return;
	}
	lab_burn(STORM_PART_NS);
	lab_truth_add(now.fault, begin_ns, ktime_get_ns());
	if (ktime_get_ns() < now.storm_until_ns)
		tasklet_schedule(&lab_tasklet);
	else
		complete(&now.done);
}

static void begin(const struct lab_fault *fault, u64 length_ns)
{
	now.fault = fault;
	now.length_ns = length_ns;
	now.storm_until_ns = 0;
	now.cpu = raw_smp_processor_id();
	init_completion(&now.done);
}

static int run_interrupt(const struct lab_fault *fault, u64 length_ns, unsigned int irq)
{
	begin(fault, length_ns);
	now.irq = irq;
	irq_work_queue(&raiser);
	wait_for_completion(&now.done);
	irq_work_sync(&raiser);
	return 0;
}

static int run_hardirq(const struct lab_fault *fault, u64 length_ns)
{
	return run_interrupt(fault, length_ns, irq_hard);
}

static int run_threadirq(const struct lab_fault *fault, u64 length_ns)
{
	return run_interrupt(fault, length_ns, irq_threaded);
}

/* Raised with bottom halves off, the softirq runs when they come back on, in this thread; raised
 * anywhere else in a thread, it would wait for ksoftirqd. */
static void schedule_here(void)
{
	local_bh_disable();
	tasklet_schedule(&lab_tasklet);
	local_bh_enable();
}

static int run_softirq(const struct lab_fault *fault, u64 length_ns)
{
	begin(fault, length_ns);
	schedule_here();
	wait_for_completion(&now.done);
	return 0;
}

static int run_storm(const struct lab_fault *fault, u64 length_ns)
{
	begin(fault, length_ns);
	now.storm_until_ns = ktime_get_ns() + length_ns;
	schedule_here();
	wait_for_completion(&now.done);
	return 0;
}

const struct lab_fault lab_handlers[] = {
	{ "hardirq", "lab_device", run_hardirq },
	{ "threadirq", "lab_threaded", run_threadirq },
	{ "softirq", "lab_tasklet", run_softirq },
	{ "storm", "lab_tasklet", run_storm },
};
const size_t lab_handlers_count = ARRAY_SIZE(lab_handlers);

int lab_line(unsigned int *irq)
{
	int number = irq_alloc_desc(0);

	if (number < 0)
		return number;
	irq_set_chip_and_handler(number, &dummy_irq_chip, handle_simple_irq);
	irq_clear_status_flags(number, IRQ_NOREQUEST | IRQ_NOPROBE);
	*irq = number;
	return 0;
}

int lab_handlers_init(void)
{
	int error = lab_line(&irq_hard);

	if (error)
		return error;
	error = lab_line(&irq_threaded);
	if (error)
		goto free_hard;
	/* Not threaded on PREEMPT_RT either: this is the driver that should have been. */
	error = request_irq(irq_hard, lab_device, IRQF_NO_THREAD, "lab_device", &now);
	if (error)
		goto free_threaded;
	error = request_threaded_irq(irq_threaded, NULL, lab_threaded, IRQF_ONESHOT,
				     "lab_threaded", &now);
	if (error)
		goto release_hard;
	return 0;

release_hard:
	free_irq(irq_hard, &now);
free_threaded:
	irq_free_desc(irq_threaded);
free_hard:
	irq_free_desc(irq_hard);
	return error;
}

void lab_handlers_exit(void)
{
	tasklet_kill(&lab_tasklet);
	free_irq(irq_threaded, &now);
	free_irq(irq_hard, &now);
	irq_free_desc(irq_threaded);
	irq_free_desc(irq_hard);
}
