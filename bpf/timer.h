// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// High resolution timers: from their hard expiry on CLOCK_MONOTONIC, and whether that is a moment
// to count from.

#ifndef RTSCOPE_TIMER_H
#define RTSCOPE_TIMER_H

#include "work.h"

// An expiry that lies this little in the past when the timer is armed is the arming's own time.
#define ARMED_LATE_NS_MIN 1000

static __always_inline rts_u64 hrtimer_expiry_ns(struct hrtimer *timer)
{
	return timer->node.expires - timer->base->offset;
}

// Clocks that timers go by; more than any kernel has.
#define HRTIMER_CLOCKS 16

// What a clock was last seen to be ahead of CLOCK_MONOTONIC on this CPU, and when that was another
// value before.
struct clock_seen {
	rts_s64 ahead_ns;
	rts_u64 set_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HRTIMER_CLOCKS);
	__type(key, rts_u32);
	__type(value, struct clock_seen);
} hrtimer_clocks SEC(".maps");

// Whether a timer that expires now may do so because its clock was set, or the machine slept: it
// was due at no moment that anybody could have kept. When that was nobody tells, but what expires
// by it is the first to go by the new clock.
static __always_inline bool hrtimer_clock_was_set(struct hrtimer *timer, rts_u64 expiry_ns,
		rts_u64 now_ns)
{
	rts_s64 ahead_ns = timer->base->offset;
	struct clock_seen *seen;

	// CLOCK_MONOTONIC: nobody sets it.
	if (!ahead_ns || !(seen = LOOKUP(hrtimer_clocks, timer->base->index)))
		return false;
	if (seen->ahead_ns != ahead_ns) {
		seen->ahead_ns = ahead_ns;
		seen->set_ns = now_ns;
	}
	// A clock that is set by more than the machine is up makes negative ones.
	return (rts_s64)expiry_ns <= (rts_s64)seen->set_ns;
}

// A step's number has a sign, which says what it is of.
#define HRTIMER_ID_MASK 0x7fffffff

// What tells timers apart. The verifier lets nobody compute with a pointer, but a copy of half of
// it is a number; left alone, the compiler makes that copy by computing with the whole.
static __always_inline rts_u32 hrtimer_address(struct hrtimer *timer)
{
	rts_u32 address;

	asm volatile("%0 = %1" : "=w"(address) : "w"((rts_u32)(rts_u64)timer));
	return address;
}

// One arming of a timer: an entry of an earlier one, which nobody takes out, matches no later
// expiry.
static __always_inline rts_u64 hrtimer_arming(struct hrtimer *timer, rts_u64 expiry_ns)
{
	rts_u32 mixed = hrtimer_address(timer) ^ (rts_u32)expiry_ns;

	return (rts_u64)mixed << 32 | (rts_u32)(expiry_ns >> 16);
}

static __always_inline rts_u64 *hrtimer_late_slot(struct hrtimer *timer)
{
	struct totals *totals = LOOKUP(watch_totals, 0);
	rts_u32 address = hrtimer_address(timer);

	return totals ? &totals->armed_late[((address >> 6) ^ (address >> 14)) & (LATE_SLOTS - 1)] : 0;
}

// When a timer was last armed after its expiry: one that expires later than this was not. Spares
// nearly every expiry the look into the slots.
static rts_u64 armed_late_ns;
#define ARMED_LATE_TRIES 8

static __always_inline void armed_late_at(rts_u64 now_ns)
{
	for (int i = 0; i < ARMED_LATE_TRIES; i++) {
		rts_u64 last_ns = armed_late_ns;

		if (last_ns >= now_ns ||
		    __sync_val_compare_and_swap(&armed_late_ns, last_ns, now_ns) == last_ns)
			return;
	}
}

// Whether a timer is armed after its own expiry, which is noted: it fires at once, late by its own
// fault. Any other touches no memory of ours.
static __always_inline bool hrtimer_armed_late(struct hrtimer *timer, rts_u64 expiry_ns)
{
	rts_u64 now_ns = bpf_ktime_get_ns(), *slot;

	if (expiry_ns + ARMED_LATE_NS_MIN >= now_ns)
		return false;
	slot = hrtimer_late_slot(timer);
	if (slot)
		*slot = hrtimer_arming(timer, expiry_ns);
	armed_late_at(now_ns);
	return true;
}

// Whether a timer that expires now was armed after its expiry.
static __always_inline bool hrtimer_was_armed_late(struct hrtimer *timer, rts_u64 expiry_ns)
{
	rts_u64 *slot;

	if (*(volatile rts_u64 *)&armed_late_ns < expiry_ns)
		return false;
	slot = hrtimer_late_slot(timer);
	return slot && *slot == hrtimer_arming(timer, expiry_ns);
}

static __always_inline struct hrtimer_frame *hrtimer_frame(struct cpu_state *cpu)
{
	struct softirq_frame *softirq;

	if (cpu->hardirq.active)
		return &cpu->hardirq.hrtimer;
	softirq = softirq_frame(cpu);
	if (!softirq)
		return 0;
	barrier_var(softirq);
	return &softirq->hrtimer;
}

// Who has this CPU may set itself a higher priority meanwhile, which no event of the kernel's
// tells: it came as what it was seen to be at best.
static __always_inline void rank_note(struct cpu_state *cpu)
{
	struct task_struct *current = bpf_get_current_task_btf();
	rts_s32 prio = current->prio - PRIO_LTTNG_OFFSET;

	if (prio >= cpu->came_prio || cpu->came_tid != current->pid)
		return;
	cpu->came_prio = prio;
	cpu->came_policy = current->policy;
}

static __always_inline bool on_hrtimer_entry(void *ctx, struct hrtimer *timer)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	struct hrtimer_frame *frame;
	struct hardirq_frame *irq;

	if (!cpu || !(frame = hrtimer_frame(cpu)))
		return false;
	frame->entry_ns = bpf_ktime_get_ns();
	frame->expiry_ns = hrtimer_expiry_ns(timer);
	frame->id = hrtimer_address(timer) & HRTIMER_ID_MASK;
	frame->active = 1;
	frame->release_ns = 0;
	frame->soft_ns = 0;
	if ((rts_u64)(timer->node.expires - timer->_softexpires) >= config.slack_floor_ns)
		frame->soft_ns = timer->_softexpires - timer->base->offset;
	if (hrtimer_clock_was_set(timer, frame->expiry_ns, frame->entry_ns)) {
		frame->expiry_ns = 0;
		frame->soft_ns = 0;
		return true;
	}
	irq = &cpu->hardirq;
	if (cpu->untold_ns && frame->entry_ns - cpu->untold_ns > UNTOLD_NS_MAX)
		bell_ring(cpu);
	if (config.evidence_floor_ns && irq->active) {
		mark_who_stays(cpu, timer);
		rank_note(cpu);
	}
	if (config.evidence_floor_ns && config.end_kind == RTS_END_BLOCKED && irq->active)
		look_at_work(cpu, timer, frame->entry_ns);
	if (hrtimer_was_armed_late(timer, frame->expiry_ns)) {
		frame->release_ns = frame->expiry_ns;
		frame->expiry_ns = 0;
		return true;
	}
	if (config.evidence_floor_ns && irq->active && !irq->late_seen &&
	    (rts_s64)(irq->entry_ns - frame->expiry_ns) >= (rts_s64)config.evidence_floor_ns) {
		irq->late_seen = 1;
		evidence_late_timer(ctx, cpu, timer, frame->expiry_ns);
	}
	return true;
}

static __always_inline bool on_hrtimer_exit(void)
{
	struct cpu_state *cpu = LOOKUP(cpus, 0);
	struct hrtimer_frame *frame;

	if (!cpu || !(frame = hrtimer_frame(cpu)))
		return false;
	frame->active = 0;
	return true;
}

#endif
