// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Evidence of sections with interrupts or preemption off, in a per-CPU overwriting ring that user
// space maps and reads without a system call.

#ifndef RTSCOPE_EVIDENCE_H
#define RTSCOPE_EVIDENCE_H

#include "hit.h"

// An interrupt may write while a task on the same CPU writes: each takes its own slot by an atomic
// add. Exchange, not a plain store: the slot must be odd before its first byte changes.
static __always_inline struct rts_evidence *evidence_begin_of(rts_u32 number_of_cpu, rts_u8 kind,
		rts_u64 time_ns)
{
	struct rts_evidence_ring *ring = LOOKUP(evidence, number_of_cpu);
	struct rts_evidence *slot;
	rts_u64 number;

	if (!ring)
		return 0;
	number = __sync_fetch_and_add(&ring->head, 1);
	slot = &ring->slots[number & (RTS_EVIDENCE_SLOTS - 1)];
	__sync_lock_test_and_set(&slot->sequence, 2 * number + 1);
	slot->kind = kind;
	slot->time_ns = time_ns;
	return slot;
}

static __always_inline struct rts_evidence *evidence_begin(rts_u8 kind, rts_u64 time_ns)
{
	return evidence_begin_of(bpf_get_smp_processor_id(), kind, time_ns);
}

static __always_inline void evidence_end(struct rts_evidence *slot)
{
	__sync_fetch_and_add(&slot->sequence, 1);
}

static __always_inline rts_u64 per_cpu_word(const void *cpu_base, rts_s64 offset)
{
	rts_u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), cpu_base + offset);
	return word;
}

static __always_inline rts_u64 steal_since(struct cpu_state *cpu, const void *cpu_base)
{
	rts_u64 now_ns, before_ns = cpu->steal_ns;

	if (!config.steal_offset)
		return 0;
	now_ns = per_cpu_word(cpu_base, config.steal_offset);
	cpu->steal_ns = now_ns;
	return before_ns && now_ns > before_ns ? now_ns - before_ns : 0;
}

// A timer that expired before the first of a row of interrupts was held up with it, and may come on
// the way out of one of them: where interrupts came back on is what that one found, further out in
// the stack. User space knows which frame that is. Frames are marked in memory: a sum that the
// verifier followed would be a state of its own for each of its values.
static __always_inline void mark_where_interrupts_came_on(struct rts_late_timer *late,
		const struct hardirq_frame *frame, rts_u64 expiry_ns)
{
	if (frame->burst_ns == frame->entry_ns || expiry_ns >= frame->burst_ns)
		return;
	for (rts_u32 i = 0; i < RTS_STACK_MAX; i++) {
		if (i >= late->stack.length)
			break;
		if (interrupts_came_on(late->stack.frames[i]))
			late->came_on |= 1u << i;
	}
}

// A timer's interrupt came late. Its own CPU had interrupts off, unless it ran user code or idled,
// or was where no interrupts come back on: then it was the hardware, or a hypervisor,
// or another interrupt came after the expiry: then the timer was not pending here. One that was
// served right before it says nothing, but where the clock was set: that is an interrupt too, which
// makes timers of the wall clock late at once.
static __always_inline void evidence_late_timer(void *ctx, struct cpu_state *cpu,
		struct hrtimer *timer, rts_u64 expiry_ns)
{
	struct hardirq_frame *frame = &cpu->hardirq;
	struct task_struct *current = bpf_get_current_task_btf();
	const void *cpu_base = timer->base->cpu_base;
	struct rts_late_timer *late;
	struct rts_evidence *slot;
	struct pt_regs *regs;

	if (!config.irq_regs_offset || expiry_ns <= frame->previous_ns)
		return;
	if (frame->burst_ns != frame->entry_ns && timer->base->offset)
		return;
	regs = (struct pt_regs *)per_cpu_word(cpu_base, config.irq_regs_offset);
	if (!regs)
		return;
	slot = evidence_begin(RTS_EVIDENCE_LATE_TIMER, frame->entry_ns);
	if (!slot)
		return;
	late = &slot->late_timer;
	late->expiry_ns = expiry_ns;
	late->hrtimer = (rts_u64)timer;
	late->function = (rts_u64)timer->function;
	late->instruction = regs_instruction(regs);
	late->steal_ns = steal_since(cpu, cpu_base);
	task_describe(&late->task, current);
	late->mode = RTS_MODE_KERNEL;
	if (regs_user(regs))
		late->mode = RTS_MODE_USER;
	else if (!current->pid && !cpu->softirq.vector_plus_1)
		late->mode = RTS_MODE_IDLE;
	else if (!interrupts_came_on(late->instruction))
		late->mode = RTS_MODE_ENABLED;
	late->came_on = 0;
	late->stack.length = 0;
	if (late->mode == RTS_MODE_KERNEL) {
		stack_here(&late->stack, ctx);
		mark_where_interrupts_came_on(late, frame, expiry_ns);
	}
	evidence_end(slot);
}

#define IS_SERVED(task) (bpf_core_field_exists((task)->dl_server) && (task)->dl_server)

// A timer's interrupt comes, perhaps while a task should leave this CPU: what that one does there.
static __always_inline void mark_who_stays(struct cpu_state *cpu, struct hrtimer *timer)
{
	struct resched_slot *slot = LOOKUP(resched, bpf_get_smp_processor_id());
	struct task_struct *current;
	struct pt_regs *regs;

	if (!slot)
		return;
	if (!slot->cpu_base)
		slot->cpu_base = (rts_u64)timer->base->cpu_base;
	// The server may pick the task that runs already: no switch tells.
	current = bpf_get_current_task_btf();
	if (IS_SERVED(current))
		cpu->served = 1;
	if (!slot->set_ns)
		return;
	if (!config.irq_regs_offset)
		return;
	regs = (struct pt_regs *)per_cpu_word(timer->base->cpu_base, config.irq_regs_offset);
	if (regs && regs_user(regs))
		slot->flags |= RTS_PREEMPTION_USER;
}

// `task`, still runnable, leaves a CPU that it should have left at `begin_ns`.
static __always_inline void evidence_preemption_off(void *ctx, struct task_struct *task,
		rts_u64 begin_ns, rts_u32 flags, rts_u64 now_ns)
{
	struct rts_evidence *slot = evidence_begin(RTS_EVIDENCE_PREEMPTION_OFF, now_ns);

	if (!slot)
		return;
	slot->preemption_off.begin_ns = begin_ns;
	slot->preemption_off.flags = flags;
	task_describe(&slot->preemption_off.task, task);
	stack_here(&slot->preemption_off.stack, ctx);
	evidence_end(slot);
}

#endif
