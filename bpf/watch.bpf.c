// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The watch: the online critical path from an interrupt, through any number of wake-ups, to the
// moment at which a target task is scheduled in. Which of these programs are attached follows from
// the question asked and from the tracepoints that the kernel has.

#include "arming.h"
#include "profile.h"
#include "switch.h"
#include "tasks.h"
#include "wake.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PROGRAM(name, body) return PROFILED(config.profile, RTS_PROGRAM_##name, body)

static __always_inline bool on_sys_exit(void *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task_state *state = task_state(current);
	rts_u64 now_ns;

	if (!state || state->phase != PHASE_ACTIVE || !filter_target(state, current))
		return false;
	now_ns = bpf_ktime_get_ns();
	chain_append_task(&state->chain, RTS_STEP_USER_RETURN, now_ns, current);
	hit_own_end(ctx, state, current, now_ns, RTS_END_USER_RETURN, ENDS_AND_RUNS);
	state->phase = PHASE_NONE;
	return true;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq, struct irqaction *action)
{
	PROGRAM(IRQ_ENTRY, on_irq_entry(irq));
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int irq, struct irqaction *action, int handled)
{
	PROGRAM(IRQ_EXIT, on_handler_exit(action, handled));
}

// Interrupts of the CPU itself, which have a vector and no number.
#define VECTOR_PROGRAMS(name, irq)                                  \
	SEC("tp_btf/" #name "_entry")                               \
	int BPF_PROG(name##_entry, int vector)                      \
	{                                                           \
		PROGRAM(IRQ_ENTRY, on_irq_entry(irq));              \
	}                                                           \
	SEC("tp_btf/" #name "_exit")                                \
	int BPF_PROG(name##_exit, int vector)                       \
	{                                                           \
		PROGRAM(IRQ_EXIT, on_irq_exit());                   \
	}

RTS_VECTORS(VECTOR_PROGRAMS)

SEC("tp_btf/nmi_handler")
int BPF_PROG(nmi_handler, void *handler, rts_s64 delta_ns, int handled)
{
	on_nmi(delta_ns);
	return 0;
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(softirq_raise, unsigned int vector)
{
	PROGRAM(SOFTIRQ_RAISE, on_softirq_raise(vector));
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int vector)
{
	PROGRAM(SOFTIRQ_ENTRY, on_softirq_entry(vector));
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
	PROGRAM(SOFTIRQ_EXIT, on_softirq_exit());
}

SEC("tp_btf/hrtimer_start")
int BPF_PROG(hrtimer_start, struct hrtimer *timer)
{
	PROGRAM(HRTIMER_START, on_hrtimer_start(ctx, timer));
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer)
{
	PROGRAM(HRTIMER_ENTRY, on_hrtimer_entry(ctx, timer));
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_expire_exit, struct hrtimer *timer)
{
	PROGRAM(HRTIMER_EXIT, on_hrtimer_exit());
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *wakee)
{
	PROGRAM(WAKING, on_waking(ctx, wakee, false));
}

// A task's first wake-up, and its second chance to get storage.
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *wakee)
{
	if (!task_state(wakee)) {
		char comm[RTS_COMM_LENGTH];

		__builtin_memcpy(comm, wakee->comm, RTS_COMM_LENGTH);
		task_resolve(wakee, comm, task_state(bpf_get_current_task_btf()), RESOLVE_BORN);
	}
	PROGRAM(WAKING, on_waking(ctx, wakee, true));
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	PROGRAM(SWITCH, on_switch(ctx, preempt, prev, next, prev_state));
}

SEC("tp_btf/sched_set_need_resched_tp")
int BPF_PROG(sched_set_need_resched_tp, struct task_struct *task, int cpu, int flag)
{
	PROGRAM(NEED_RESCHED, on_need_resched(task, cpu));
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	PROGRAM(SYS_EXIT, on_sys_exit(ctx));
}

SEC("tp_btf/signal_generate")
int BPF_PROG(signal_generate, int signal, void *info, struct task_struct *task)
{
	on_signal_generate(signal, task);
	return 0;
}

SEC("tp_btf/cgroup_freeze")
int BPF_PROG(cgroup_freeze, struct cgroup *group, const char *path)
{
	on_cgroup_freeze(group);
	return 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task, rts_u64 clone_flags)
{
	char comm[RTS_COMM_LENGTH];

	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	task_resolve(task, comm, task_state(bpf_get_current_task_btf()), RESOLVE_BORN);
	return 0;
}

// A program of a command that is watched begins: until it first waits, that is no work that
// somebody waits for, and what was before its exec was ours.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task)
{
	struct task_state *state = task_state(task);

	if (!state || !state->meant.family)
		return 0;
	if (state->phase == PHASE_ACTIVE)
		state->phase = PHASE_NONE;
	state->program_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	struct task_state *state = task_state(task);

	if (state)
		unslept_count(state, task);
	return 0;
}

// A target is called otherwise from now on, and is none any more.
static __always_inline void renamed_away(struct task_state *state)
{
	// One that does its first work has its maker's name until now.
	if (state->activation > 1)
		COUNT(renamed);
	if (state->phase != PHASE_NONE)
		drop_unmeant(state, bpf_ktime_get_ns());
	state->was_target = WAS_NO_TARGET;
}

// exec renames too; what it does then until the program begins is nobody's deadline.
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *name)
{
	char comm[RTS_COMM_LENGTH] = {};
	struct task_state *state;
	bool was_target, in_exec;

	bpf_probe_read_kernel_str(comm, sizeof(comm), name);
	state = task_state(task);
	was_target = state && filter_target(state, task);
	in_exec = task_in_exec(task);
	task_resolve(task, comm, 0, in_exec ? RESOLVE_PROGRAM : RESOLVE_NAMED);
	state = task_state(task);
	if (!state)
		return 0;
	if (in_exec) {
		// What it was at until now was the work of another program.
		if (!was_target && state->phase == PHASE_ACTIVE && filter_target(state, task))
			state->phase = PHASE_NONE;
		return 0;
	}
	if (was_target && !filter_target(state, task))
		renamed_away(state);
	// A command's tasks may be meant whatever they are called.
	if (!filter_of_command(&state->meant))
		open_begin(task, state->met ? STARTS_NOT : STARTS_NAMED);
	return 0;
}
