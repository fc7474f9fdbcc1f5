// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The watch: the online critical path from an interrupt, through any number of wake-ups, to the
// moment at which a target task comes on a CPU. Which of these programs are attached follows from
// the question asked and from the tracepoints that the kernel has.

#include "blocked.h"
#include "interrupt.h"
#include "profile.h"
#include "timer.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PROGRAM(name, body) return PROFILED(config.profile, RTS_PROGRAM_##name, body)

// Every sched_waking is a new activation: the kernel fires it only for a task that is not runnable,
// so that the first origin stays while the wakee waits.
static __always_inline bool wake(void *ctx, struct cpu_state *cpu, struct task_struct *wakee)
{
	struct task_state *state = task_state(wakee);
	rts_u64 now_ns;

	if (!state) {
		COUNT(untracked);
		return false;
	}
	// What it blocked on inside its activation is over: the activation goes on.
	if (state->phase == PHASE_INSIDE)
		return false;
	if (state->phase != PHASE_NONE)
		state->phase = PHASE_NONE;
	// A task that is no target and hands nothing on needs no chain.
	if (!filter_hands_on_or_target(state, wakee))
		return false;
	if (!filter_context(cpu) || !chain_of_context(&state->chain, cpu, &now_ns))
		return false;
	chain_append_task(&state->chain, RTS_STEP_WAKING, now_ns, wakee);
	state->phase = PHASE_WOKEN;
	state->waiting_reported = 0;
	if (config.evidence_floor_ns && filter_target(state, wakee) && quota_used_up(wakee))
		evidence_throttled(wakee, now_ns, now_ns);
	if (config.waker_stacks && filter_target(state, wakee)) {
		struct rts_stack *stack = bpf_task_storage_get(&waker_stacks, wakee, 0, 0);

		if (stack)
			stack_here(stack, ctx);
	}
	return true;
}

static __always_inline bool on_waking(void *ctx, struct task_struct *wakee)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	bool changed;

	if (!cpu)
		return false;
	if (is_handlers_wakeup(&cpu->hardirq, wakee))
		cpu->hardirq.active = 2;
	changed = wake(ctx, cpu, wakee);
	if (cpu->hardirq.active == 2)
		cpu->hardirq.active = 0;
	return changed;
}

// A task that leaves the CPU: preempted, it keeps its chain; blocked, it ends it.
static __always_inline bool switch_out(void *ctx, struct task_state *state,
		struct task_struct *prev, unsigned int prev_state, rts_u64 now_ns)
{
	if (!prev_state) {
		// Woken before it had left the CPU, it never had to come back on one.
		state->phase = PHASE_ACTIVE;
		state->chain.preemptions++;
		if (config.end_kind == RTS_END_BLOCKED && config.evidence_floor_ns &&
		    filter_target(state, prev) && quota_used_up(prev))
			evidence_throttled(prev, now_ns, now_ns);
		return true;
	}
	// Woken while it was on its way out: the wake-up is for the next activation.
	if (state->phase == PHASE_WOKEN)
		return false;
	if (config.end_kind == RTS_END_BLOCKED && filter_target(state, prev)) {
		struct blocked blocked;

		blocked_on(&blocked, prev, prev_state);
		if (blocked.what != BLOCKED_NO) {
			evidence_blocked(ctx, prev, &blocked, now_ns);
			state->phase = PHASE_INSIDE;
			return true;
		}
		chain_append_task(&state->chain, RTS_STEP_BLOCKED, now_ns, prev);
		hit_own_end(ctx, state, prev, now_ns, RTS_END_BLOCKED);
	}
	state->phase = PHASE_NONE;
	return true;
}

static __always_inline void switch_in(void *ctx, struct task_state *state, struct task_struct *next,
				      struct task_struct *prev, rts_u64 now_ns)
{
	state->phase = PHASE_ACTIVE;
	chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, next);
	if (!filter_target(state, next))
		return;
	if (config.end_kind == RTS_END_SWITCH_IN)
		hit_switch_in(ctx, state, next, prev, now_ns);
	else
		task_describe(&state->culprit, prev);
}

// `kept`: prev stays runnable, and a chain had to wait for it. Whether evidence was written.
static __always_inline bool resched_done(void *ctx, struct task_struct *prev, bool kept,
		rts_u64 *now_ns)
{
	struct resched_slot *slot;
	rts_u64 set_ns;

	slot = LOOKUP(resched, bpf_get_smp_processor_id());
	if (!slot || !slot->set_ns)
		return false;
	set_ns = slot->set_ns;
	slot->set_ns = 0;
	// The idle task always leaves at once, and one that blocks leaves by itself.
	if (!kept || !prev->pid)
		return false;
	if (!*now_ns)
		*now_ns = bpf_ktime_get_ns();
	if ((rts_s64)(*now_ns - set_ns) < (rts_s64)config.evidence_floor_ns)
		return false;
	evidence_preemption_off(ctx, prev, set_ns, *now_ns);
	return true;
}

static __always_inline bool on_switch(void *ctx, bool preempt, struct task_struct *prev,
				      struct task_struct *next, unsigned int prev_state)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	unsigned int left_in = preempt ? 0 : prev_state;
	bool changed = false;
	struct task_state *state, *next_state = 0;
	rts_u64 now_ns = 0;

	if (!cpu)
		return false;
	if (cpu->hardirq.active) {
		// Nobody switches inside an interrupt: its exit was missed.
		cpu->hardirq.active = 0;
		COUNT(repaired);
	}
	if (next->pid && filter_may_have_chain(next)) {
		// Before anything that may find a cold cache: this is the instant of the switch. Where
		// every task is a target the storage is warm, and most switches need no instant.
		if (config.target_kind != RTS_TARGET_ALL)
			now_ns = bpf_ktime_get_ns();
		next_state = task_state(next);
	}
	if (config.evidence_floor_ns && config.target_kind != RTS_TARGET_REAL_TIME && !left_in &&
	    prev->pid)
		quota_note(cpu, prev, &now_ns);
	if (config.evidence_floor_ns)
		changed = resched_done(ctx, prev, !left_in && next_state &&
					next_state->phase != PHASE_NONE, &now_ns);
	if (prev->pid && filter_may_have_chain(prev) && (state = task_state(prev)) &&
	    state->phase != PHASE_NONE) {
		if (config.end_kind == RTS_END_BLOCKED && !now_ns)
			now_ns = bpf_ktime_get_ns();
		changed = switch_out(ctx, state, prev, left_in, now_ns) || changed;
	}
	if (next_state && next_state->phase == PHASE_WOKEN) {
		if (!now_ns)
			now_ns = bpf_ktime_get_ns();
		quota_of_wait(cpu, next_state, next, now_ns);
		switch_in(ctx, next_state, next, prev, now_ns);
		changed = true;
	} else if (next_state && next_state->phase == PHASE_INSIDE) {
		next_state->phase = PHASE_ACTIVE;
		changed = true;
	}
	return changed;
}

// The idle task leaves at once: only others can keep a CPU.
static __always_inline bool on_need_resched(struct task_struct *task, rts_u32 cpu)
{
	struct resched_slot *slot;

	if (!task->pid)
		return false;
	slot = LOOKUP(resched, cpu);
	if (!slot || slot->set_ns)
		return false;
	slot->set_ns = bpf_ktime_get_ns();
	return true;
}

static __always_inline bool on_sys_exit(void *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task_state *state = task_state(current);
	rts_u64 now_ns;

	if (!state || state->phase != PHASE_ACTIVE || !filter_target(state, current))
		return false;
	now_ns = bpf_ktime_get_ns();
	chain_append_task(&state->chain, RTS_STEP_USER_RETURN, now_ns, current);
	hit_own_end(ctx, state, current, now_ns, RTS_END_USER_RETURN);
	state->phase = PHASE_NONE;
	return true;
}

// The process of the watch, as the kernel numbers it: whoever reads the iterator at the start.
static rts_s32 own_tgid;

// Whether the process's first thread has a name that is asked for. When that thread renames itself,
// the others that are there by then keep what they were.
static __always_inline bool in_process_called(struct task_struct *task, const char *comm)
{
	char leader[RTS_COMM_LENGTH];

	if (task->pid == task->tgid)
		return filter_name(comm, 1);
	__builtin_memcpy(leader, task->group_leader->comm, RTS_COMM_LENGTH);
	return filter_name(leader, 1);
}

// A task gets its storage when it is born or, at the start, from the iterator: never inside a
// wake-up.
static __always_inline void task_resolve(struct task_struct *task, const char *comm)
{
	bool may_become_target = config.target_kind != RTS_TARGET_FLAGGED || config.real_time ||
				 config.prios_length;
	struct task_state *state;

	state = bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		COUNT(storage_failures);
		return;
	}
	state->passes = (task->flags & PF_KTHREAD) && filter_passes(comm);
	state->ours = task->tgid == own_tgid;
	if (config.target_kind == RTS_TARGET_FLAGGED)
		state->target = filter_tid(task->pid) || filter_pid(task->tgid) ||
				filter_name(comm, 0) || in_process_called(task, comm);
	// A flag is resolved here for good; a priority may come later.
	if (config.waker_stacks && (may_become_target || state->target) &&
	    !bpf_task_storage_get(&waker_stacks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		COUNT(storage_failures);
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
	PROGRAM(HRTIMER_START, on_hrtimer_start(timer));
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
	PROGRAM(WAKING, on_waking(ctx, wakee));
}

// A task's first wake-up, and its second chance to get storage.
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *wakee)
{
	if (!task_state(wakee)) {
		char comm[RTS_COMM_LENGTH];

		__builtin_memcpy(comm, wakee->comm, RTS_COMM_LENGTH);
		task_resolve(wakee, comm);
	}
	PROGRAM(WAKING, on_waking(ctx, wakee));
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

SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task, rts_u64 clone_flags)
{
	char comm[RTS_COMM_LENGTH];

	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	task_resolve(task, comm);
	return 0;
}

// exec renames too.
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *name)
{
	char comm[RTS_COMM_LENGTH] = {};

	bpf_probe_read_kernel_str(comm, sizeof(comm), name);
	task_resolve(task, comm);
	return 0;
}

SEC("iter/task")
int resolve_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	char comm[RTS_COMM_LENGTH];

	own_tgid = bpf_get_current_pid_tgid() >> 32;
	if (!task || !task->pid)
		return 0;
	__builtin_memcpy(comm, task->comm, RTS_COMM_LENGTH);
	task_resolve(task, comm);
	return 0;
}

// Targets that wait for longer than asked, while they still wait. Runs in user space's own time.
SEC("iter/task")
int check_waiting(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *state;
	struct rts_hit *hit;
	rts_u64 now_ns, origin_ns;

	if (!task || !task->pid || !(state = task_state(task)))
		return 0;
	if (state->phase != PHASE_WOKEN || state->waiting_reported || task->__state ||
	    !filter_target(state, task))
		return 0;
	now_ns = bpf_ktime_get_ns();
	origin_ns = state->chain.origin_ns;
	if ((rts_s64)(now_ns - origin_ns) < (rts_s64)config.waiting_ns)
		return 0;
	hit = hit_reserve(state, task, now_ns, RTS_END_WAITING);
	if (!hit)
		return 0;
	state->waiting_reported = 1;
	// It came on a CPU while we copied: the copy may be of two activations.
	if (state->phase != PHASE_WOKEN || state->chain.origin_ns != origin_ns) {
		bpf_ringbuf_discard(hit, 0);
		return 0;
	}
	stack_of(&hit->wakee_stack, task);
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
	return 0;
}
