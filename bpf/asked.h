// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What a target asks of others in the cycles of its timer: it wakes them, they wake others, and one
// of them wakes it with an answer. A loop for everything sleeps at one place for its timer, for
// answers and for what comes by itself; only this tells answers from the rest.

#ifndef RTSCOPE_ASKED_H
#define RTSCOPE_ASKED_H

#include "release.h"

// Whether who comes on a CPU may ask, or pass on what it was asked.
static __always_inline bool may_ask(const struct task_state *state)
{
	return (state->cycle_ns && state->in_cycle) || state->asked.by;
}

// Somebody wakes `wakee`: what it was asked before is over, once it has answered.
static __always_inline void asked_ends(struct task_state *state)
{
	if (state->asked.answered)
		state->asked.by = 0;
}

// So often a task has come to another one by itself, less its answers to that.
#define CLIENT_SURE 2
#define CLIENT_MAX 8

// Whether a task is one that gives a target work, and waits for an answer itself.
static __always_inline bool is_client(const struct task_state *state, rts_s32 target)
{
	return state->client_of == target && state->client_turns >= CLIENT_SURE;
}

// It wakes a target that waits for work, and was asked for nothing.
static __always_inline void client_note(struct task_state *state, rts_s32 target)
{
	if (state->client_of != target) {
		state->client_of = target;
		state->client_turns = 0;
	}
	if (state->client_turns < CLIENT_MAX)
		state->client_turns++;
}

// The current task wakes `wakee`, which is asked by that.
static __always_inline void asked_pass(const struct cpu_state *cpu, struct task_struct *wakee,
		struct task_state *of_wakee)
{
	struct task_struct *current = bpf_get_current_task_btf();
	const struct task_state *state;

	if (cpu->hardirq.active || current->pid == wakee->pid || !(state = task_state(current)))
		return;
	// Who comes by itself with something to do has its answer by this.
	if (is_client(of_wakee, current->pid) ||
	    (state->asked.by && is_client(of_wakee, state->asked.by)))
		return;
	if (state->cycle_ns && state->in_cycle) {
		of_wakee->asked.cycle_ns = state->cycle_ns;
		of_wakee->asked.by = current->pid;
		of_wakee->asked.answered = 0;
	} else if (state->asked.by && state->asked.by != wakee->pid) {
		of_wakee->asked = state->asked;
	}
}

// Whether the current task, which wakes the target `wakee`, was asked for that by it. A loop for
// everything (`loops`: it sleeps as for its timer) may have begun its next cycle meanwhile: the one
// in which it asked goes on. Only a first answer is one to that: who runs on may wake it for years.
static __always_inline bool is_answer(const struct cpu_state *cpu, struct task_struct *wakee,
		struct task_state *of_wakee, rts_u64 now_ns, bool loops)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task_state *state;
	bool is_first;

	// Of one that no timer has released nobody asks.
	if (!of_wakee->releases || cpu->hardirq.active || !(state = task_state(current)))
		return false;
	if (state->asked.by != wakee->pid ||
	    now_ns - state->asked.cycle_ns >= RELEASE_AGE_NS_MAX) {
		if (loops)
			client_note(state, wakee->pid);
		return false;
	}
	is_first = !state->asked.answered;
	state->asked.answered = 1;
	if (!loops)
		return of_wakee->cycle_ns != 0;
	if (!is_first)
		return false;
	if (state->client_of == wakee->pid && state->client_turns)
		state->client_turns--;
	if (!of_wakee->cycle_ns || state->asked.cycle_ns < of_wakee->cycle_ns)
		of_wakee->cycle_ns = state->asked.cycle_ns;
	return true;
}

#endif
