// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The watch: the online critical path from an interrupt, through any number of wake-ups, to the
// moment at which a target task is scheduled in. Which of these programs are attached follows from
// the question asked and from the tracepoints that the kernel has.

#include "cycle.h"
#include "interrupt.h"
#include "profile.h"
#include "rank.h"
#include "release.h"
#include "steal.h"
#include "stopped.h"
#include "tasks.h"
#include "timer.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PROGRAM(name, body) return PROFILED(config.profile, RTS_PROGRAM_##name, body)

// Between a wake-up and the switch away that it crosses on its way.
#define CROSSING_NS_MAX 20000

// A task is woken while its activation is open: it was about to block, or it was on a CPU when it
// was woken before. Whether that activation is over.
static __always_inline bool open_ends(void *ctx, struct task_state *state,
		struct task_struct *wakee, bool runs)
{
	struct blocked blocked;
	rts_u64 now_ns;

	if (config.end_kind == RTS_END_SWITCH_IN) {
		if (state->phase == PHASE_WOKEN)
			drop_open(state, state->woken_ns);
		return true;
	}
	now_ns = bpf_ktime_get_ns();
	if (config.end_kind == RTS_END_USER_RETURN) {
		drop_open(state, now_ns);
		return true;
	}
	blocked_on(&blocked, wakee, wakee->__state);
	if (blocked.what == RTS_BLOCKED_LOCK && !runs && wakee->on_cpu && config.evidence_floor_ns)
		evidence_spun(wakee, &blocked, now_ns);
	if (blocked.what != BLOCKED_NO)
		return false;
	// The memory of another process cannot be read from here.
	if (!runs && waits_as_for_mutex(wakee, (struct pt_regs *)bpf_task_pt_regs(wakee)))
		return false;
	chain_append_task(&state->chain, RTS_STEP_BLOCKED, now_ns, wakee);
	hit_own_end(ctx, state, wakee, now_ns, RTS_END_BLOCKED,
			runs ? ENDS_AND_RUNS : ENDS_ELSEWHERE);
	return true;
}

// The chain of this context, for a target from its release on where its own timer proves one.
static __always_inline bool chain_for(struct task_state *state, struct cpu_state *cpu,
		struct task_struct *wakee, bool target, rts_u64 *now_ns)
{
	struct hrtimer_frame *timer = target ? timer_in_progress(cpu) : 0;
	struct release release = {};
	rts_u64 expiry_ns = 0;
	bool began;

	if (timer) {
		expiry_ns = timer->expiry_ns;
		release_of(&release, timer, state);
		if (release.release_ns)
			timer->expiry_ns = release.release_ns;
	}
	began = filter_context(cpu) && chain_of_context(&state->chain, cpu, now_ns);
	if (timer)
		timer->expiry_ns = expiry_ns;
	if (began && release.release_ns && config.evidence_floor_ns &&
	    *now_ns - release.release_ns >= config.evidence_floor_ns)
		evidence_released(&release, wakee, *now_ns);
	return began;
}

// A target that has the CPU as it is woken need not come on one.
static __always_inline void came_on_already(void *ctx, struct task_state *state,
		struct task_struct *wakee, rts_u64 now_ns)
{
	chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, wakee);
	state->phase = PHASE_ACTIVE;
	state->culprit.tid = -1;
	if (config.end_kind == RTS_END_SWITCH_IN)
		hit_own_end(ctx, state, wakee, now_ns, RTS_END_SWITCH_IN, ENDS_AND_RUNS);
}

// Whether what a target that is woken now slept for was part of its activation; else that was over
// as it went to sleep.
static __always_inline bool was_inside(void *ctx, const struct cpu_state *cpu,
		struct task_state *state, struct task_struct *wakee)
{
	bool own, inside;

	if (!state->word)
		return true;
	own = !cpu->hardirq.active && bpf_get_current_task_btf()->tgid == wakee->tgid;
	// What another process has there cannot be read from here.
	inside = own ? is_locks_word(state) : state->word_owned;
	if (inside && !state->word_owned && config.evidence_floor_ns)
		evidence_ownerless(state, wakee);
	state->word = 0;
	if (inside)
		return true;
	chain_append_task(&state->chain, RTS_STEP_BLOCKED, state->word_ns, wakee);
	hit_own_end(ctx, state, wakee, state->word_ns, RTS_END_BLOCKED, ENDS_ELSEWHERE);
	state->phase = PHASE_NONE;
	return false;
}

// A stack costs thirty times the rest of a wake-up, and most wake-ups are followed by no hit: each
// is paid for over so long, and so many may be owed.
#define STACK_PAID_NS 500000
#define STACKS_OWED_MAX 16

// Whether to take the waker's stack. An interrupt that found the CPU idle has nothing to tell.
static __always_inline bool stack_pays(struct cpu_state *cpu, rts_u64 now_ns)
{
	rts_u64 paid_ns = cpu->stacks_paid_ns > now_ns ? cpu->stacks_paid_ns : now_ns;

	if (!bpf_get_current_task_btf()->pid ||
	    paid_ns - now_ns > (STACKS_OWED_MAX - 1) * STACK_PAID_NS)
		return false;
	cpu->stacks_paid_ns = paid_ns + STACK_PAID_NS;
	return true;
}

// Every sched_waking is a new activation: the kernel fires it only for a task that is not runnable,
// so that the first origin stays while the wakee waits.
static __always_inline bool wake(void *ctx, struct cpu_state *cpu, struct task_struct *wakee)
{
	struct task_state *state = task_state(wakee);
	bool target, runs, slept;
	rts_u64 now_ns, slept_ns;

	if (!state) {
		// Who is outside of our namespace cannot be asked for.
		if (!config.in_namespace || meant_id_at(wakee, ids_level))
			COUNT(untracked);
		return false;
	}
	// What it blocked on inside its activation is over: the activation goes on.
	if (state->phase == PHASE_INSIDE && was_inside(ctx, cpu, state, wakee))
		return false;
	target = filter_target(state, wakee);
	if (target && is_frozen_asleep(state, wakee))
		frozen_ends(state, wakee);
	if (state->phase == PHASE_STOPPED) {
		stop_end(state, cpu, wakee);
		return true;
	}
	runs = bpf_get_current_task_btf()->pid == wakee->pid;
	slept = state->phase == PHASE_NONE;
	slept_ns = state->slept_ns;
	if (target && state->phase != PHASE_NONE && !open_ends(ctx, state, wakee, runs))
		return false;
	if (state->phase != PHASE_NONE)
		*(volatile rts_u8 *)&state->phase = PHASE_NONE;
	// A task that is no target and hands nothing on needs no chain.
	if (!target && !filter_hands_on(state, wakee))
		return false;
	activation_begin(state);
	if (!chain_for(state, cpu, wakee, target, &now_ns)) {
		state->cycle_ns = 0;
		return false;
	}
	// A sleep that it is on its way to has the timer that was armed for it, or none.
	if (!slept && !state->arms)
		state->armed_ns = 0;
	// One that is still on a run queue was about to sleep, and goes on.
	if (target && config.end_kind == RTS_END_BLOCKED && (slept || !wakee->on_rq))
		cycle_wake(state, cpu, wakee, slept ? slept_ns : now_ns);
	chain_append_task(&state->chain, RTS_STEP_WAKING, now_ns, wakee);
	state->woken_ns = now_ns;
	*(volatile rts_u8 *)&state->phase = PHASE_WOKEN;
	state->was_target = target;
	state->resumed = 0;
	state->unsure = 0;
	if (!target)
		return true;
	state->throttled_ns = 0;
	waker_note(state, cpu);
	if (config.evidence_floor_ns && quota_used_up(wakee))
		evidence_throttled(wakee, now_ns, now_ns);
	state->has_waker_stack = 0;
	if (config.waker_stacks && stack_pays(cpu, now_ns)) {
		struct rts_stack *stack = bpf_task_storage_get(&waker_stacks, wakee, 0, 0);

		if (stack) {
			stack_here(stack, ctx);
			state->has_waker_stack = 1;
		}
	}
	if (runs)
		came_on_already(ctx, state, wakee, now_ns);
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

// A deadline task that gives up the rest of its budget has done its work, until there is a new one.
static __always_inline bool has_yielded(struct task_struct *task)
{
	return config.end_kind == RTS_END_BLOCKED &&
	       BPF_CORE_READ_BITFIELD(task, dl.dl_yielded);
}

// A task that leaves the CPU though it can run on: preempted, it keeps its chain.
static __always_inline void preempted(void *ctx, struct task_state *state,
		struct task_struct *prev, rts_u64 now_ns)
{
	bool target = filter_target(state, prev);

	if (target && throttle_begin(state, prev, now_ns))
		return;
	if (target && has_yielded(prev)) {
		if (state->phase != PHASE_NONE) {
			chain_append_task(&state->chain, RTS_STEP_BLOCKED, now_ns, prev);
			hit_own_end(ctx, state, prev, now_ns, RTS_END_BLOCKED, ENDS_AND_LEAVES);
		}
		state->phase = PHASE_YIELDED;
		return;
	}
	// Woken before it had left the CPU, it never had to come back on one.
	if (state->phase != PHASE_NONE)
		state->phase = PHASE_ACTIVE;
	state->chain.preemptions++;
	if (config.end_kind == RTS_END_BLOCKED && config.evidence_floor_ns && target &&
	    quota_used_up(prev))
		evidence_throttled(prev, now_ns, now_ns);
}

// The phase of a task that has left the CPU, unless another CPU has woken it meanwhile.
static __always_inline void leaves_in(struct task_state *state, rts_u64 activation, rts_u8 phase)
{
	if (*(volatile rts_u64 *)&state->activation == activation)
		state->phase = phase;
}

// A task that leaves the CPU: preempted, it keeps its chain; blocked, it ends it.
static __always_inline bool switch_out(void *ctx, struct task_state *state,
		struct task_struct *prev, unsigned int prev_state, rts_u64 now_ns)
{
	rts_u64 activation = *(volatile rts_u64 *)&state->activation;
	bool target = filter_target(state, prev);
	rts_s32 stop;

	if (!prev_state) {
		preempted(ctx, state, prev, now_ns);
		return true;
	}
	stop = target ? stop_of(prev, prev_state) : STOP_NO;
	if (stop != STOP_NO) {
		stop_begin(state, prev, stop, now_ns);
		return true;
	}
	if (*(volatile rts_u8 *)&state->phase == PHASE_NONE)
		return false;
	// The next sleep has a timer of its own, or none.
	state->slept_ns = now_ns;
	if (!state->arms)
		state->armed_ns = 0;
	state->arms = 0;
	if (state->unsure && sleeps_on(state, prev, now_ns)) {
		state->phase = PHASE_NONE;
		return true;
	}
	// Woken while it was on its way out: the wake-up is for the next activation.
	if (state->phase == PHASE_WOKEN &&
	    (!target || (rts_s64)(now_ns - state->woken_ns) < CROSSING_NS_MAX))
		return false;
	if (config.end_kind == RTS_END_BLOCKED && target) {
		struct blocked blocked;

		blocked_on(&blocked, prev, prev_state);
		if (blocked.what != BLOCKED_NO) {
			state->word = blocked.value ? blocked.lock : 0;
			state->word_value = blocked.value;
			state->word_ns = now_ns;
			state->word_owned = blocked.owner.tid > 0;
			if (!blocked.value || blocked.owner.tid > 0)
				evidence_blocked(ctx, prev, &blocked, now_ns);
			if (blocked.what == RTS_BLOCKED_LOCK && config.evidence_floor_ns)
				evidence_owners(lock_owner(prev), now_ns);
			leaves_in(state, activation, PHASE_INSIDE);
			return true;
		}
		// Whoever woke it meanwhile has told this end.
		if (*(volatile rts_u64 *)&state->activation != activation)
			return true;
		chain_append_task(&state->chain, RTS_STEP_BLOCKED, now_ns, prev);
		hit_own_end(ctx, state, prev, now_ns, RTS_END_BLOCKED, ENDS_AND_LEAVES);
	} else if (config.end_kind == RTS_END_USER_RETURN && target) {
		drop_open(state, now_ns);
	}
	leaves_in(state, activation, PHASE_NONE);
	return true;
}

// Whether a task leaves the CPU for a reason that begins a chain of its own.
static __always_inline bool is_kept_away(struct task_struct *prev, unsigned int left_in)
{
	if (left_in)
		return stop_of(prev, left_in) != STOP_NO;
	return has_yielded(prev) || (bpf_core_field_exists(prev->throttled) && prev->throttled);
}

// Whether a target was due while it was still at work, and had the CPU, or waited for it, with that
// for most of the time until now.
static __always_inline bool was_busy(const struct task_state *state, rts_u64 now_ns)
{
	rts_u64 due_ns = state->chain.origin_ns;

	return state->slept_ns > due_ns && 2 * (state->slept_ns - due_ns) >= now_ns - due_ns;
}

static __always_inline void switch_in(void *ctx, struct cpu_state *cpu, struct task_state *state,
		struct task_struct *next, struct task_struct *prev, rts_u64 now_ns)
{
	state->phase = PHASE_ACTIVE;
	chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, next);
	if (!filter_target(state, next) && !state->was_target)
		return;
	throttle_end(state, next, now_ns);
	state->busy = was_busy(state, now_ns);
	if (config.end_kind == RTS_END_SWITCH_IN)
		hit_switch_in(ctx, state, cpu, next, prev, now_ns);
	else
		task_describe(&state->culprit, prev);
}

// A task that has a chain is scheduled in.
static __always_inline bool come_on(void *ctx, struct cpu_state *cpu, struct task_state *state,
		struct task_struct *next, struct task_struct *prev, rts_u64 now_ns)
{
	if (state->stopped) {
		state->stopped = 0;
		state->stopped_until_ns = now_ns ? now_ns : bpf_ktime_get_ns();
	}
	if (state->phase == PHASE_INSIDE) {
		state->phase = PHASE_ACTIVE;
		state->resumed = 1;
		return true;
	}
	if (state->phase != PHASE_WOKEN && state->phase != PHASE_YIELDED)
		return false;
	if (!now_ns)
		now_ns = bpf_ktime_get_ns();
	if (state->phase == PHASE_YIELDED) {
		activation_begin(state);
		chain_begin(&state->chain, now_ns, 0);
		chain_append_task(&state->chain, RTS_STEP_SWITCH_IN, now_ns, next);
		state->phase = PHASE_ACTIVE;
		return true;
	}
	quota_of_wait(cpu, state, next, now_ns);
	switch_in(ctx, cpu, state, next, prev, now_ns);
	return true;
}

// `kept`: prev stays runnable, and a chain had to wait for it. Whether evidence was written.
static __always_inline bool resched_done(void *ctx, const struct cpu_state *cpu,
		struct task_struct *prev, bool kept, rts_u64 *now_ns)
{
	struct resched_slot *slot;
	rts_u64 set_ns;
	rts_u32 flags;

	slot = LOOKUP(resched, bpf_get_smp_processor_id());
	if (!slot || !slot->set_ns)
		return false;
	set_ns = slot->set_ns;
	flags = slot->flags | (cpu->served ? RTS_PREEMPTION_SERVED : 0);
	slot->set_ns = 0;
	// The idle task always leaves at once, and one that blocks leaves by itself.
	if (!kept || !prev->pid)
		return false;
	if (!*now_ns)
		*now_ns = bpf_ktime_get_ns();
	if ((rts_s64)(*now_ns - set_ns) < (rts_s64)config.evidence_floor_ns)
		return false;
	evidence_preemption_off(ctx, prev, set_ns, flags, *now_ns);
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
	if (cpu->untold_ns)
		bell_ring(cpu);
	if (cpu->hardirq.active) {
		// Nobody switches inside an interrupt: its exit was missed.
		cpu->hardirq.active = 0;
		COUNT(repaired);
	}
	if (next->pid && filter_may_have_chain(next)) {
		// Before anything that may find a cold cache: this is the instant of the switch.
		// Where every task is a target the storage is warm, and most switches need no
		// instant.
		if (config.target_kind != RTS_TARGET_ALL)
			now_ns = bpf_ktime_get_ns();
		next_state = task_state(next);
	}
	if (config.evidence_floor_ns && config.target_kind != RTS_TARGET_REAL_TIME && !left_in &&
	    prev->pid)
		quota_note(cpu, prev, &now_ns);
	if (config.evidence_floor_ns)
		changed = resched_done(ctx, cpu, prev, !left_in && next_state &&
					next_state->phase != PHASE_NONE, &now_ns);
	if (prev->pid && filter_may_have_chain(prev) && (state = task_state(prev)) &&
	    (state->phase != PHASE_NONE || is_kept_away(prev, left_in))) {
		if (!now_ns)
			now_ns = bpf_ktime_get_ns();
		changed = switch_out(ctx, state, prev, left_in, now_ns) || changed;
	}
	if (config.evidence_floor_ns && prev->pid)
		evidence_of_rank(cpu, prev, left_in, now_ns);
	if (next_state)
		changed = come_on(ctx, cpu, next_state, next, prev, now_ns) || changed;
	cpu->came_tid = next->pid;
	cpu->came_prio = next->prio - PRIO_LTTNG_OFFSET;
	cpu->came_policy = next->policy;
	cpu->served = IS_SERVED(next);
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
	slot->flags = 0;
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
		task_resolve(wakee, comm, task_state(bpf_get_current_task_btf()));
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
	task_resolve(task, comm, task_state(bpf_get_current_task_btf()));
	return 0;
}

// A program of a command that is watched begins: until it first waits, that is no work that
// somebody waits for, and what was before its exec was ours.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task)
{
	struct task_state *state = task_state(task);

	if (state && state->meant.family && state->phase == PHASE_ACTIVE)
		state->phase = PHASE_NONE;
	return 0;
}

// exec renames too; what it does then until the program begins is nobody's deadline.
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *name)
{
	char comm[RTS_COMM_LENGTH] = {};
	struct task_state *state;
	struct pt_regs *regs;

	bpf_probe_read_kernel_str(comm, sizeof(comm), name);
	task_resolve(task, comm, 0);
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	state = task_state(task);
	// A command's tasks are meant whatever they are called.
	if (regs && !regs_in_exec(regs) && state && !state->meant.family)
		open_begin(task);
	return 0;
}
