// SPDX-License-Identifier: GPL-2.0-only
// /dev/rtscope-inject: write `KIND FUNCTION LENGTH_us CPU [BEGIN_ns]` for a fault, at once or at
// an instant of CLOCK_MONOTONIC; read the log of truth, a line
// `KIND FUNCTION CPU BEGIN_ns END_ns` each.
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "lab.h"

/* Longer, and the kernel's own watchdogs join in. */
#define LENGTH_US_MAX 5000000
/* How far ahead a fault may be asked for. */
#define WAIT_NS_MAX 10000000000ULL
#define REQUEST_MAX 128
#define WORD_FORMAT "%31s"
#define WORD_MAX 32

struct request {
	const struct lab_fault *fault;
	u64 length_ns;
	u64 begin_ns; /* 0: at once */
};

/* One fault at a time: two at once would not know each other's truth. */
static DEFINE_MUTEX(one_at_a_time);

static const struct lab_fault *find(const struct lab_fault *faults, size_t count, const char *kind,
				    const char *function)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(faults[i].kind, kind) && !strcmp(faults[i].function, function))
			return &faults[i];
	return NULL;
}

static long run_here(void *data)
{
	struct request *request = data;
	ktime_t begin = ns_to_ktime(request->begin_ns);

	if (request->begin_ns) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule_hrtimeout(&begin, HRTIMER_MODE_ABS);
	}
	return request->fault->run(request->fault, request->length_ns);
}

static ssize_t lab_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char text[REQUEST_MAX], kind[WORD_MAX], function[WORD_MAX];
	unsigned int length_us, cpu;
	struct request request = {};
	int words;
	long error;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = 0;
	words = sscanf(text, WORD_FORMAT " " WORD_FORMAT " %u %u %llu", kind, function, &length_us,
		       &cpu, &request.begin_ns);
	if (words != 4 && words != 5)
		return -EINVAL;
	request.fault = find(lab_sections, lab_sections_count, kind, function);
	if (!request.fault)
		request.fault = find(lab_handlers, lab_handlers_count, kind, function);
	if (!request.fault)
		request.fault = find(lab_consoles, lab_consoles_count, kind, function);
	if (!request.fault)
		return -ENOENT;
	if (length_us > LENGTH_US_MAX || cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -ERANGE;
	if (request.begin_ns > ktime_get_ns() + WAIT_NS_MAX)
		return -ERANGE;
	request.length_ns = length_us * 1000ULL;

	if (mutex_lock_interruptible(&one_at_a_time))
		return -EINTR;
	error = work_on_cpu(cpu, run_here, &request);
	mutex_unlock(&one_at_a_time);
	return error ? error : size;
}

static void *truth_at(struct seq_file *seq, loff_t *at)
{
	return lab_truth_get(*at, seq->private) ? seq->private : NULL;
}

static void *truth_next(struct seq_file *seq, void *truth, loff_t *at)
{
	++*at;
	return truth_at(seq, at);
}

static void truth_stop(struct seq_file *seq, void *truth)
{
}

static int truth_show(struct seq_file *seq, void *data)
{
	const struct lab_truth *truth = data;

	seq_printf(seq, "%s %s %d %llu %llu\n", truth->kind, truth->function, truth->cpu,
		   truth->begin_ns, truth->end_ns);
	return 0;
}

static const struct seq_operations truth_lines = {
	.start = truth_at,
	.next = truth_next,
	.stop = truth_stop,
	.show = truth_show,
};

static int lab_open(struct inode *inode, struct file *file)
{
	struct lab_truth *line;

	/* A misc device leaves a pointer to itself there, which seq_open takes for its own. */
	file->private_data = NULL;
	line = __seq_open_private(file, &truth_lines, sizeof(*line));
	return line ? 0 : -ENOMEM;
}

static const struct file_operations lab_operations = {
	.owner = THIS_MODULE,
	.open = lab_open,
	.read = seq_read,
	.write = lab_write,
	.llseek = seq_lseek,
	.release = seq_release_private,
};

static struct miscdevice lab_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rtscope-inject",
	.fops = &lab_operations,
};

static int __init lab_init(void)
{
	int error = lab_handlers_init();

	if (error)
		return error;
	error = lab_tick_init();
	if (error)
		goto handlers;
	error = misc_register(&lab_device);
	if (error)
		goto tick;
	lab_console_init();
	return 0;

tick:
	lab_tick_exit();
handlers:
	lab_handlers_exit();
	return error;
}

static void __exit lab_exit(void)
{
	lab_console_exit();
	misc_deregister(&lab_device);
	lab_tick_exit();
	lab_handlers_exit();
}

module_init(lab_init);
module_exit(lab_exit);
MODULE_DESCRIPTION("Faults with a known truth, for tests of rtscope");
MODULE_LICENSE("GPL");
