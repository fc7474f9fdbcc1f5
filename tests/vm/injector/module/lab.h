/* SPDX-License-Identifier: GPL-2.0-only */
/* Faults with a known truth: what the parts of the module share. */
#ifndef RTSCOPE_LAB_H
#define RTSCOPE_LAB_H

#include <linux/types.h>

/* One fault that happened, on CLOCK_MONOTONIC. */
struct lab_truth {
	const char *kind;
	const char *function;
	int cpu;
	u64 begin_ns;
	u64 end_ns;
};

/* One fault that can be asked for. `run` is called on the CPU that it is for, in a kernel thread;
 * it returns when the fault is over and logged, or a negative error. */
struct lab_fault {
	const char *kind;
	const char *function;
	int (*run)(const struct lab_fault *fault, u64 length_ns);
};

extern const struct lab_fault lab_sections[];
extern const size_t lab_sections_count;
extern const struct lab_fault lab_handlers[];
extern const size_t lab_handlers_count;
extern const struct lab_fault lab_consoles[];
extern const size_t lab_consoles_count;

int lab_handlers_init(void);
void lab_handlers_exit(void);
void lab_console_init(void);
void lab_console_exit(void);
int lab_tick_init(void);
void lab_tick_exit(void);

/* Makes an interrupt line without a device behind it; zero, or a negative error. */
int lab_line(unsigned int *irq);

/* Adds a line to the log; callable from every context but NMI. */
void lab_truth_add(const struct lab_fault *fault, u64 begin_ns, u64 end_ns);
/* Copies line `index` to `truth`; false when there are not so many. */
bool lab_truth_get(size_t index, struct lab_truth *truth);

/* Burns the CPU for `length_ns`; inlined, so that a stack shows the function that asked. */
#define lab_burn(length_ns)                                                                        \
	do {                                                                                       \
		u64 lab_until_ns = ktime_get_ns() + (length_ns);                                   \
		while (ktime_get_ns() < lab_until_ns)                                              \
			cpu_relax();                                                               \
	} while (0)

#endif
