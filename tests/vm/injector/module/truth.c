// SPDX-License-Identifier: GPL-2.0-only
// The log of what was really injected. No code that gives a verdict ever reads it.
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "lab.h"

#define TRUTHS_MAX 8192

static struct lab_truth truths[TRUTHS_MAX];
static size_t truths_count;
static DEFINE_RAW_SPINLOCK(truths_lock);

void lab_truth_add(const struct lab_fault *fault, u64 begin_ns, u64 end_ns)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&truths_lock, flags);
	if (truths_count < TRUTHS_MAX)
		truths[truths_count++] = (struct lab_truth){
			.kind = fault->kind,
			.function = fault->function,
			.cpu = raw_smp_processor_id(),
			.begin_ns = begin_ns,
			.end_ns = end_ns,
		};
	raw_spin_unlock_irqrestore(&truths_lock, flags);
}

bool lab_truth_get(size_t index, struct lab_truth *truth)
{
	unsigned long flags;
	bool found;

	raw_spin_lock_irqsave(&truths_lock, flags);
	found = index < truths_count;
	if (found)
		*truth = truths[index];
	raw_spin_unlock_irqrestore(&truths_lock, flags);
	return found;
}
