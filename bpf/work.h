// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Where a target is at its own work, as a timer's interrupt finds it: in an activation that is
// late, or is on its way to be. No timer is ours: the tick comes to whoever works for long.

#ifndef RTSCOPE_WORK_H
#define RTSCOPE_WORK_H

#include "evidence.h"

// So far apart, at least, are two looks on one CPU, whatever timers expire there.
#define LOOK_NS_MIN 1000000

// The kernel's instruction at which `timer` interrupted the task. 0: it was in its own program.
static __always_inline rts_u64 interrupted_in_kernel(struct hrtimer *timer)
{
	struct pt_regs *regs;

	if (!config.irq_regs_offset)
		return 0;
	regs = (struct pt_regs *)per_cpu_word(timer->base->cpu_base, config.irq_regs_offset);
	return regs && !regs_user(regs) ? regs_instruction(regs) : 0;
}

static __always_inline void evidence_worked(struct task_struct *task, struct hrtimer *timer,
		rts_u64 now_ns)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct rts_evidence *slot;
	rts_u64 stack_pointer;

	if (!regs)
		return;
	slot = evidence_begin(RTS_EVIDENCE_WORKED, now_ns);
	if (!slot)
		return;
	task_describe(&slot->worked.task, task);
	slot->worked.process = config.in_namespace ? meant_id_at(task->group_leader, own_level)
						   : task->tgid;
	slot->worked.instruction = regs_instruction(regs);
	stack_pointer = regs_stack_pointer(regs);
	slot->worked.stack_pointer = stack_pointer;
	slot->worked.frame_pointer = regs_frame_pointer(regs);
	slot->worked.kernel_instruction = interrupted_in_kernel(timer);
	slot->worked.words_length = RTS_WORKED_WORDS;
	if (bpf_probe_read_user(slot->worked.words, sizeof(slot->worked.words),
				(const void *)stack_pointer))
		slot->worked.words_length = 0;
	evidence_end(slot);
}

static __always_inline void look_at_work(struct cpu_state *cpu, struct hrtimer *timer,
		rts_u64 now_ns)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task_state *state;
	rts_s64 age_ns;

	if ((current->flags & PF_KTHREAD) || now_ns - cpu->looked_ns < LOOK_NS_MIN)
		return;
	state = task_state(current);
	if (!state || state->phase != PHASE_ACTIVE || !filter_target(state, current))
		return;
	age_ns = now_ns - activation_origin(state);
	if (age_ns < (rts_s64)(config.threshold_ns / 2))
		return;
	cpu->looked_ns = now_ns;
	evidence_worked(current, timer, now_ns);
}

#endif
