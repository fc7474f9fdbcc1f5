// SPDX-License-Identifier: GPL-2.0-only
// /dev/rtscope-tick: a periodic device whose interrupt is threaded. Write `PERIOD_us CPU` to start
// it; each read waits for its next interrupt and returns the instant at which that was due, on
// CLOCK_MONOTONIC, at multiples of the period.
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "lab.h"

#define PERIOD_US_MIN 100
#define PERIOD_US_MAX 1000000

static struct {
	struct hrtimer timer;
	wait_queue_head_t readers;
	u64 period_ns;
	u64 due_ns;
	u64 count;
	unsigned int irq;
	int cpu;
	atomic_t open;
} tick;

static enum hrtimer_restart tick_due(struct hrtimer *timer)
{
	tick.due_ns = ktime_to_ns(hrtimer_get_expires(timer));
	generic_handle_irq(tick.irq);
	hrtimer_forward_now(timer, ns_to_ktime(tick.period_ns));
	return HRTIMER_RESTART;
}

static noinline irqreturn_t lab_tick(int irq, void *data)
{
	/* A line without a device has no affinity that its thread could follow. */
	if (raw_smp_processor_id() != tick.cpu)
		set_cpus_allowed_ptr(current, cpumask_of(tick.cpu));
	WRITE_ONCE(tick.count, tick.count + 1);
	wake_up_interruptible(&tick.readers);
	return IRQ_HANDLED;
}

static void tick_start(void *data)
{
	u64 first_ns = (div64_u64(ktime_get_ns(), tick.period_ns) + 2) * tick.period_ns;

	hrtimer_start(&tick.timer, ns_to_ktime(first_ns), HRTIMER_MODE_ABS_PINNED_HARD);
}

static ssize_t tick_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	unsigned int period_us, cpu;
	char text[32];

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = 0;
	if (sscanf(text, "%u %u", &period_us, &cpu) != 2)
		return -EINVAL;
	if (period_us < PERIOD_US_MIN || period_us > PERIOD_US_MAX || cpu >= nr_cpu_ids ||
	    !cpu_online(cpu))
		return -ERANGE;
	hrtimer_cancel(&tick.timer);
	tick.period_ns = period_us * 1000ULL;
	tick.cpu = cpu;
	smp_call_function_single(cpu, tick_start, NULL, 1);
	return size;
}

static ssize_t tick_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	u64 before = READ_ONCE(tick.count), due_ns;

	if (size != sizeof(due_ns))
		return -EINVAL;
	if (wait_event_interruptible(tick.readers, READ_ONCE(tick.count) != before))
		return -EINTR;
	due_ns = READ_ONCE(tick.due_ns);
	return copy_to_user(to, &due_ns, sizeof(due_ns)) ? -EFAULT : size;
}

static int tick_open(struct inode *inode, struct file *file)
{
	return atomic_cmpxchg(&tick.open, 0, 1) ? -EBUSY : 0;
}

static int tick_release(struct inode *inode, struct file *file)
{
	hrtimer_cancel(&tick.timer);
	atomic_set(&tick.open, 0);
	return 0;
}

static const struct file_operations tick_operations = {
	.owner = THIS_MODULE,
	.open = tick_open,
	.read = tick_read,
	.write = tick_write,
	.release = tick_release,
};

static struct miscdevice tick_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rtscope-tick",
	.fops = &tick_operations,
};

int lab_tick_init(void)
{
	int error = lab_line(&tick.irq);

	if (error)
		return error;
	init_waitqueue_head(&tick.readers);
	hrtimer_init(&tick.timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	tick.timer.function = tick_due;
	error = request_threaded_irq(tick.irq, NULL, lab_tick, IRQF_ONESHOT, "lab_tick", &tick);
	if (error)
		goto free_line;
	error = misc_register(&tick_device);
	if (error)
		goto release;
	return 0;

release:
	free_irq(tick.irq, &tick);
free_line:
	irq_free_desc(tick.irq);
	return error;
}

void lab_tick_exit(void)
{
	misc_deregister(&tick_device);
	hrtimer_cancel(&tick.timer);
	free_irq(tick.irq, &tick);
	irq_free_desc(tick.irq);
}
