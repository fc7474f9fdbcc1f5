// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Frames of hard interrupts (per CPU) and softirqs (in the task that runs them).

#ifndef RTSCOPE_INTERRUPT_H
#define RTSCOPE_INTERRUPT_H

#include "chain.h"

// What a handler returns that leaves the work to its thread (include/linux/irqreturn.h).
#define IRQ_WAKE_THREAD 2
// The kernel wakes it right after the handler.
#define THREAD_WAKE_NS_MAX 100000
// Of interrupts that were pending together, those that other CPUs ask for go before the timer's:
// each begins when the one before it is over, and all of them are soon done, in a slow guest too.
#define BURST_GAP_NS_MAX 30000
#define BURST_NS_MAX 300000

// Whether what begins now was pending while `frame`'s interrupt was, as far as one can tell.
static __always_inline bool joins_burst(const struct hardirq_frame *frame, rts_u64 now_ns)
{
	return frame->irq < RTS_IRQ_LOCAL_TIMER && now_ns - frame->left_ns < BURST_GAP_NS_MAX &&
	       now_ns - frame->burst_ns < BURST_NS_MAX;
}

static __always_inline bool on_irq_entry(rts_s32 irq)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	struct hardirq_frame *frame;
	rts_u64 now_ns;

	if (!cpu)
		return false;
	frame = &cpu->hardirq;
	frame->repaired = frame->active;
	if (frame->active)
		COUNT(repaired);
	// Active even when a filter rejects it: what it wakes is not the interrupted task's doing.
	frame->active = 1;
	frame->passed = filter_irq(irq);
	frame->thread_tid = 0;
	frame->late_seen = 0;
	frame->hrtimer.active = 0;
	now_ns = bpf_ktime_get_ns();
	if (!joins_burst(frame, now_ns)) {
		frame->previous_ns = frame->entry_ns;
		frame->burst_ns = now_ns;
	}
	frame->entry_ns = now_ns;
	frame->irq = irq;
	frame->nmi_ns = 0;
	if (irq == RTS_IRQ_WORK && now_ns - cpu->nmi_exit_ns < NMI_GAP_NS_MAX)
		frame->nmi_ns = cpu->nmi_entry_ns;
	return frame->passed;
}

static __always_inline bool on_irq_exit(void)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);

	if (!cpu)
		return false;
	cpu->hardirq.active = 0;
	// Only a burst asks for it.
	if (cpu->hardirq.irq < RTS_IRQ_LOCAL_TIMER)
		cpu->hardirq.left_ns = bpf_ktime_get_ns();
	return true;
}

// The handler has returned, yet the interrupt goes on: it wakes the handler's thread.
static __always_inline bool on_handler_exit(struct irqaction *action, int handled)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);

	if (!cpu)
		return false;
	cpu->hardirq.active = 0;
	if (handled == IRQ_WAKE_THREAD && action->thread) {
		cpu->hardirq.exit_ns = bpf_ktime_get_ns();
		cpu->hardirq.thread_tid = action->thread->pid;
	}
	return true;
}

// Whether this is the wake-up that the handler asked for. It is asked for once.
static __always_inline bool is_handlers_wakeup(struct hardirq_frame *frame,
					       struct task_struct *wakee)
{
	if (!frame->thread_tid || frame->active || frame->thread_tid != wakee->pid)
		return false;
	frame->thread_tid = 0;
	return bpf_ktime_get_ns() - frame->exit_ns < THREAD_WAKE_NS_MAX;
}

// The tracepoint comes after the handler and says how long it took.
static __always_inline bool on_nmi(rts_s64 took_ns)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);

	if (!cpu)
		return false;
	cpu->nmi_exit_ns = bpf_ktime_get_ns();
	cpu->nmi_entry_ns = cpu->nmi_exit_ns - took_ns;
	return true;
}

// The first raise since the vector's last run is the one that counts.
static __always_inline bool on_softirq_raise(rts_u32 vector)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	struct softirq_slot *slot = LOOKUP(softirqs, vector);
	struct chain *chain;
	rts_u64 now_ns;

	if (!cpu || !slot || slot->raised)
		return false;
	slot->raised = 1;
	chain = &slot->chains[(slot->running ^ 1) & 1];
	if (!filter_softirq(vector) || !chain_of_context(chain, cpu, &now_ns)) {
		chain->count = 0;
		return false;
	}
	chain_append(chain, RTS_STEP_SOFTIRQ_RAISE, now_ns, vector);
	return true;
}

static __always_inline bool on_softirq_entry(rts_u32 vector)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	struct softirq_slot *slot = LOOKUP(softirqs, vector);
	struct softirq_frame *frame;
	struct chain *chain;
	rts_u64 now_ns;

	if (!cpu || !slot || !(frame = softirq_frame(cpu)))
		return false;
	if (frame->vector_plus_1)
		COUNT(repaired);
	now_ns = bpf_ktime_get_ns();
	slot->running ^= 1;
	slot->generation++;
	frame->generation = slot->generation;
	frame->vector_plus_1 = vector + 1;
	frame->hrtimer.active = 0;
	chain = &slot->chains[slot->running & 1];
	if (!slot->raised) {
		// Raised before the watch began, or out of its sight: the chain begins here.
		chain_begin(chain, now_ns, 0);
		if (config.irqs_length || !filter_softirq(vector) || !filter_cpu())
			return false;
	} else if (!chain->count) {
		slot->raised = 0;
		return false;
	}
	slot->raised = 0;
	chain_append(chain, RTS_STEP_SOFTIRQ, now_ns, vector);
	return true;
}

static __always_inline bool on_softirq_exit(void)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	struct softirq_frame *frame;

	if (!cpu || !(frame = softirq_frame(cpu)))
		return false;
	frame->vector_plus_1 = 0;
	return true;
}

#endif
