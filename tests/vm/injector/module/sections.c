// SPDX-License-Identifier: GPL-2.0-only
// Sections that hold interrupts or preemption off, each in a function with a name of its own.
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/spinlock.h>
#include <linux/ktime.h>

#include "lab.h"

/* The truth is taken inside the section and logged after it, so that the log's own lock does not
 * make the section longer. */
struct span {
	u64 begin_ns;
	u64 end_ns;
};

static noinline void lab_drain_fifo(u64 length_ns, struct span *span)
{
	unsigned long flags;

	local_irq_save(flags);
	span->begin_ns = ktime_get_ns();
	lab_burn(length_ns);
	span->end_ns = ktime_get_ns();
	local_irq_restore(flags);
	/* Work after the section: a pending interrupt is taken here, inside this function. */
	cpu_relax();
	barrier();
}

static noinline void lab_poll_register(u64 length_ns, struct span *span)
{
	local_irq_disable();
	span->begin_ns = ktime_get_ns();
	lab_burn(length_ns);
	span->end_ns = ktime_get_ns();
	local_irq_enable();
	cpu_relax();
	barrier();
}

static noinline void lab_raw_lock(u64 length_ns, struct span *span)
{
	static DEFINE_RAW_SPINLOCK(lock);
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	span->begin_ns = ktime_get_ns();
	lab_burn(length_ns);
	span->end_ns = ktime_get_ns();
	raw_spin_unlock_irqrestore(&lock, flags);
	barrier();
}

static noinline void lab_spin_section(u64 length_ns, struct span *span)
{
	preempt_disable();
	span->begin_ns = ktime_get_ns();
	lab_burn(length_ns);
	span->end_ns = ktime_get_ns();
	preempt_enable();
	barrier();
}

static noinline void lab_walk_list(u64 length_ns, struct span *span)
{
	static DEFINE_RAW_SPINLOCK(lock);

	raw_spin_lock(&lock);
	span->begin_ns = ktime_get_ns();
	lab_burn(length_ns);
	span->end_ns = ktime_get_ns();
	raw_spin_unlock(&lock);
	barrier();
}

#define SECTION(name)                                                                              \
	static int run_##name(const struct lab_fault *fault, u64 length_ns)                        \
	{                                                                                          \
		struct span span;                                                                  \
                                                                                                   \
		name(length_ns, &span);                                                            \
		lab_truth_add(fault, span.begin_ns, span.end_ns);                                  \
		return 0;                                                                          \
	}

SECTION(lab_drain_fifo)
SECTION(lab_poll_register)
SECTION(lab_raw_lock)
SECTION(lab_spin_section)
SECTION(lab_walk_list)

const struct lab_fault lab_sections[] = {
	{ "irqoff", "lab_drain_fifo", run_lab_drain_fifo },
	{ "irqoff", "lab_poll_register", run_lab_poll_register },
	{ "irqoff", "lab_raw_lock", run_lab_raw_lock },
	{ "preemptoff", "lab_spin_section", run_lab_spin_section },
	{ "preemptoff", "lab_walk_list", run_lab_walk_list },
};
const size_t lab_sections_count = ARRAY_SIZE(lab_sections);
