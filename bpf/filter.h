// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Filters: which contexts may begin a chain, and which tasks a chain is measured to. What is off in
// `config` is off in the loaded program too: the verifier removes it.

#ifndef RTSCOPE_FILTER_H
#define RTSCOPE_FILTER_H

#include "group.h"
#include "tables.h"

static __always_inline bool filter_cpu(void)
{
	rts_u32 cpu;

	if (!config.cpus_filtered)
		return true;
	cpu = bpf_get_smp_processor_id();
	if (cpu >= RTS_CPU_WORDS * 64)
		return false;
	return (config.cpus[(cpu / 64) & (RTS_CPU_WORDS - 1)] >> (cpu % 64)) & 1;
}

static __always_inline bool filter_irq(rts_s32 irq)
{
	if (!filter_cpu())
		return false;
	if (!config.irqs_length)
		return true;
	for (rts_u32 i = 0; i < RTS_IRQS_MAX; i++)
		if (i < config.irqs_length && config.irqs[i] == irq)
			return true;
	return false;
}

static __always_inline bool filter_softirq(rts_u32 vector)
{
	return config.softirq < 0 || config.softirq == (rts_s32)vector;
}

// A wake-up by a task that no chain woke may begin a chain only if no kind of interrupt is asked
// for.
static __always_inline bool filter_task_context(void)
{
	return !config.irqs_length && config.softirq < 0 && filter_cpu();
}

// Whether a wake-up in this context may carry a chain at all; the quick test before the clock is
// read. With a softirq filter, a chain must pass through a softirq of that vector before it wakes
// anybody.
static __always_inline bool filter_context(const struct cpu_state *cpu)
{
	if (!config.irqs_length && config.softirq < 0)
		return true;
	return !cpu->hardirq.active || (cpu->hardirq.passed && config.softirq < 0);
}

static __always_inline bool filter_prio(rts_s32 prio)
{
	for (rts_u32 i = 0; i < RTS_PATTERNS_MAX && i < config.prios_length; i++)
		if (config.prios[i].first <= prio && prio <= config.prios[i].last)
			return true;
	return false;
}

// Whether a task is meant as one of the command, whatever it is called.
static __always_inline bool filter_of_command(const struct meant *meant)
{
	return meant->family && !config.family_named;
}

// Whether names and priorities may mean a task: beside a command they are of its tasks alone.
static __always_inline bool filter_nameable(const struct meant *meant)
{
	return meant->family || !config.family_named;
}

static __always_inline bool filter_by_prio(const struct meant *meant, rts_s32 prio)
{
	if (meant->ours || !filter_nameable(meant))
		return false;
	return (config.real_time && prio < PRIO_FAIR_MIN && !meant->passes) ||
	       (config.prios_length && filter_prio(prio));
}

// Whether a task is one of those that are asked for by anything but a flag for all.
static __always_inline bool filter_named(struct meant *meant, struct task_struct *task)
{
	return meant->target || filter_of_command(meant) || filter_by_prio(meant, task->prio) ||
	       group_has_member(meant, task);
}

// Whether a task that nobody asks for is judged beside those who are asked for.
static __always_inline bool filter_beside(const struct meant *meant, const struct task_struct *task)
{
	bool real_time = task->prio < PRIO_FAIR_MIN;

	if (!config.beside || meant->ours || (task->flags & PF_KTHREAD))
		return false;
	if (config.beside == RTS_BESIDE_WOKEN)
		return meant->near && real_time;
	return meant->near || meant->family || real_time;
}

// What the hit of a task says of how it is meant.
static __always_inline rts_u32 filter_kin(struct meant *meant, struct task_struct *task)
{
	if (!config.beside || filter_named(meant, task))
		return 0;
	return meant->near || meant->family ? RTS_CHAIN_NEAR : RTS_CHAIN_STRANGER;
}

static __always_inline bool filter_meant(struct meant *meant, struct task_struct *task)
{
	rts_s32 prio = task->prio;

	if (prio > config.prio_max)
		return false;
	if (config.target_kind == RTS_TARGET_ALL)
		return true;
	if (config.target_kind == RTS_TARGET_REAL_TIME)
		return prio < PRIO_FAIR_MIN && !meant->passes && !meant->ours;
	return filter_named(meant, task) || filter_beside(meant, task);
}

static __always_inline bool filter_target(struct task_state *state, struct task_struct *task)
{
	return filter_meant(&state->meant, task);
}

// Whether no filter keeps a wake-up from beginning a chain.
static __always_inline bool filter_none(void)
{
	return !config.irqs_length && config.softirq < 0 && !config.cpus_filtered;
}

// Whether a name matches a pattern: that of a thread, or that of its process. Off the hot path (new
// tasks, renames, the iterator).
static __noinline bool filter_name(const char *comm, rts_u32 of_process)
{
	for (rts_u32 i = 0; i < RTS_PATTERNS_MAX && i < config.patterns_length; i++) {
		rts_u32 states = 1;

		if (config.patterns[i].of_process != of_process)
			continue;

		for (int place = 0; place < RTS_COMM_LENGTH; place++) {
			rts_u8 byte = comm[place];

			if (!byte)
				break;
			states = ((states & config.patterns[i].accept[byte]) << 1) |
				 (states & config.patterns[i].loops);
		}
		if (states & config.patterns[i].match)
			return true;
	}
	return false;
}

// A fair task does work of its own: what it wakes is not late since the fair task's own wake-up.
// Chains go on through real-time tasks, and through kernel threads that exist to pass work on.
static __always_inline bool filter_hands_on(const struct task_state *state,
		struct task_struct *task)
{
	return task->prio < PRIO_FAIR_MIN || state->meant.passes;
}

// Whether it may: the test before its storage is looked up.
static __always_inline bool filter_may_hand_on(const struct task_struct *task)
{
	return task->prio < PRIO_FAIR_MIN || (task->flags & PF_KTHREAD);
}

// Whether a chain to this task matters to anybody.
static __always_inline bool filter_hands_on_or_target(struct task_state *state,
		struct task_struct *task)
{
	return filter_hands_on(state, task) || filter_target(state, task);
}

// Whether a task that comes or goes may have a chain: the test before its storage is looked up. A
// task that lost a lent priority while it waited keeps its chain unseen until it is woken again.
static __always_inline bool filter_may_have_chain(struct task_struct *task)
{
	return config.target_kind != RTS_TARGET_REAL_TIME || filter_may_hand_on(task);
}

static __always_inline bool begins_with(const char *comm, const char *prefix, rts_u32 length)
{
	for (rts_u32 i = 0; i < length; i++)
		if (comm[i] != prefix[i])
			return false;
	return true;
}

// Kernel threads that only pass work on; analyses of a trace know the same ones.
static __always_inline bool filter_passes(const char *comm)
{
#define BEGINS_WITH(prefix) begins_with(comm, prefix, sizeof(prefix) - 1) ||
	return RTS_PASSING_THREADS(BEGINS_WITH) false;
#undef BEGINS_WITH
}

static __always_inline bool filter_tid(rts_s32 tid)
{
	for (rts_u32 i = 0; i < RTS_TIDS_MAX && i < config.tids_length; i++)
		if (config.tids[i] == tid)
			return true;
	return false;
}

static __always_inline bool filter_pid(rts_s32 pid)
{
	for (rts_u32 i = 0; i < RTS_TIDS_MAX && i < config.pids_length; i++)
		if (config.pids[i] == pid)
			return true;
	return false;
}

// How it comes that something is to be known of a task: it is there, it is born, it takes another
// name, it becomes another program.
enum resolving { RESOLVE_FOUND, RESOLVE_BORN, RESOLVE_NAMED, RESOLVE_PROGRAM };

// Whether a task becomes another program, which renames it.
static __always_inline bool task_in_exec(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return regs && regs_in_exec(regs);
}

// Whether the file that a process runs has a name that is asked for: as the kernel calls its first
// thread when it begins, whatever that calls itself later.
static __always_inline bool filter_program(const struct meant *meant, struct task_struct *task,
		const char *comm, const struct meant *parent, enum resolving how)
{
	char file[RTS_COMM_LENGTH] = {};
	const unsigned char *name;

	switch (how) {
	case RESOLVE_BORN:
		return parent && parent->program;
	case RESOLVE_NAMED:
		return meant->program;
	case RESOLVE_PROGRAM:
		return filter_name(comm, 1);
	case RESOLVE_FOUND:
		break;
	}
	name = BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);
	if (!name || bpf_probe_read_kernel_str(file, sizeof(file), name) < 0)
		return false;
	return filter_name(file, 1);
}

// Whether the process's program or its first thread has a name that is asked for. When that thread
// renames itself, the others that are there by then keep what they were.
static __always_inline bool filter_process(const struct meant *meant, struct task_struct *task,
		const char *comm)
{
	char leader[RTS_COMM_LENGTH];

	if (meant->program)
		return true;
	if (task->pid == task->tgid)
		return filter_name(comm, 1);
	__builtin_memcpy(leader, task->group_leader->comm, RTS_COMM_LENGTH);
	return filter_name(leader, 1);
}

// The id of a task as it was asked for; 0: it has none there.
static __always_inline rts_s32 filter_id(struct task_struct *task)
{
	return config.in_namespace ? meant_id_at(task, ids_level) : task->pid;
}

static __always_inline bool filter_namespace(struct task_struct *task)
{
	for (rts_u32 i = 0; i < RTS_PATTERNS_MAX && i < config.namespaces_length; i++)
		if (meant_is_in(task, config.namespaces[i]))
			return true;
	return false;
}

// Whether a task is one of those that are asked for by id or name; `comm` is its name from now on.
static __always_inline bool filter_asked_for(const struct meant *meant, struct task_struct *task,
		const char *comm)
{
	if (config.tids_length && filter_tid(filter_id(task)))
		return true;
	if (config.pids_length && filter_pid(filter_id(task->group_leader)))
		return true;
	if (filter_namespace(task))
		return true;
	return filter_nameable(meant) && (filter_name(comm, 0) || filter_process(meant, task, comm));
}

// Whether a task is the command's first, or descends from it. Of one that is born, `parent` makes
// it; of one that is there nothing new is known.
static __always_inline bool filter_family(const struct meant *meant, struct task_struct *task,
		const struct meant *parent)
{
	rts_s32 process;

	if (!config.family)
		return false;
	if (meant->family || (parent && parent->family))
		return true;
	process = config.in_namespace ? meant_id_at(task->group_leader, own_level) : task->tgid;
	return process == config.family;
}

// Finds out what is to be known of a task once; `comm` is its name from now on. The monitor keeps
// less of a task, and asks by itself.
__attribute__((unused)) static __noinline void filter_resolve(struct meant *meant,
		struct task_struct *task, const char *comm, const struct meant *parent,
		enum resolving how)
{
	bool foreign = config.in_namespace && !meant_id_at(task, ids_level);

	meant->passes = (task->flags & PF_KTHREAD) && filter_passes(comm);
	meant->ours = task->tgid == own_tgid || foreign;
	if (config.target_kind != RTS_TARGET_FLAGGED)
		return;
	meant->family = filter_family(meant, task, parent);
	meant->program = filter_program(meant, task, comm, parent, how);
	meant->target = !foreign && filter_asked_for(meant, task, comm);
}

#endif
