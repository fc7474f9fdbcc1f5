// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Waits for locks of the kernel, where somebody else has them: from the tracepoint of contention to
// its end. Key is the lock's address. Other is who has it when the wait begins, where the lock says
// so: mutexes, real-time mutexes and semaphores that are held for writing. The stack is the
// waiter's.
//
// And how long somebody kept a mutex that others waited for, as far as the one saw who has it next:
// from the beginning of that wait, or from when the owner got the mutex after a wait of its own.
// Who takes a mutex that nobody waits for passes no tracepoint; of other locks, nor do some who
// take them before those who wait.

#include "../kernel.h"

// A wait that says nothing of an owner: of who spins, or sleeps for a semaphore.
struct plain_wait {
	rts_u64 lock; // 0: none
	rts_u64 begin_ns;
};

// Of the task itself, a softirq, an interrupt and an NMI on top of it.
#define PLAIN_WAITS_MAX 4

struct plain_waits {
	struct plain_wait waits[PLAIN_WAITS_MAX];
};

#define TRACKER_KEEPS_IN_TASKS
#define TRACKER_IN_TASKS struct plain_waits
#include "open.h"
#include "tasks.h"

enum { SPIN = 0, MUTEX = 1, READ = 2, WRITE = 3, HELD = 4 };

// include/trace/events/lock.h
#define LCB_F_SPIN 1
#define LCB_F_READ 2
#define LCB_F_WRITE 4
#define LCB_F_RT 8
#define LCB_F_PERCPU 16
#define LCB_F_MUTEX 32

// The lowest bits of an owner are flags; of a semaphore the lowest says that readers have it.
#define OWNER_FLAGS 7ull
#define READERS_OWN 1ull

struct lock_owner {
	rts_s64 counter;
} RELOCATED;

struct mutex {
	struct lock_owner owner;
} RELOCATED;

struct rw_semaphore {
	struct lock_owner owner;
} RELOCATED;

static __always_inline rts_u8 series_of(rts_u32 flags)
{
	if (flags & (LCB_F_MUTEX | LCB_F_RT))
		return MUTEX;
	if (flags & LCB_F_SPIN)
		return SPIN;
	if (flags & LCB_F_WRITE)
		return WRITE;
	return flags & LCB_F_READ ? READ : SPIN;
}

static __always_inline rts_u64 word_at(void *lock, rts_u32 offset)
{
	rts_u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), lock + offset);
	return word;
}

static __always_inline void owner_of(struct rts_task *owner, void *lock, rts_u32 flags)
{
	rts_u64 word = 0;

	tracker_nobody(owner);
	if (flags & LCB_F_PERCPU)
		return;
	if (flags & LCB_F_RT) {
		word = word_at(lock, bpf_core_field_offset(struct rt_mutex_base, owner));
	} else if (flags & LCB_F_MUTEX) {
		if (bpf_core_field_exists(((struct mutex *)0)->owner))
			word = word_at(lock, bpf_core_field_offset(struct mutex, owner));
	} else if (!(flags & LCB_F_SPIN) && flags & (LCB_F_READ | LCB_F_WRITE)) {
		if (bpf_core_field_exists(((struct rw_semaphore *)0)->owner))
			word = word_at(lock, bpf_core_field_offset(struct rw_semaphore, owner));
		if (word & READERS_OWN)
			word = 0;
	}
	word &= ~OWNER_FLAGS;
	if (word)
		task_read(owner, (struct task_struct *)word);
}

// Who took a mutex last of those that waited for it.
struct lock_taken {
	rts_u64 known_ns; // since when that is followed
	rts_u64 at_ns;    // 0: nobody since then
	struct rts_task by;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RTS_KEYS_MAX);
	__type(key, rts_u64);
	__type(value, struct lock_taken);
} lock_taken SEC(".maps");

// The first locks that came to their places keep them. Who writes one has the lock, or is the first
// of all: nobody else does meanwhile.
struct lock_slot {
	rts_u64 lock;
	struct lock_taken taken;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << SLOTS_BITS);
	__type(key, rts_u32);
	__type(value, struct lock_slot);
} lock_slots SEC(".maps");

// Something has ever been in the table.
static volatile rts_u32 locks_in_table;

static __always_inline struct lock_slot *lock_slot(rts_u64 lock)
{
	return LOOKUP(lock_slots, slot_of(lock));
}

// Who waits: a task, or the CPU's own where no task runs.
static __always_inline rts_u32 waiter(void)
{
	rts_u32 tid = bpf_get_current_pid_tgid();

	return tid ? tid : 1u << 31 | bpf_get_smp_processor_id();
}

// One wait of a waiter for a lock: what both are is compared at its end.
static __always_inline rts_u64 key_of(rts_u64 lock, rts_u32 who)
{
	return (lock << 16) ^ who;
}

static __always_inline void lock_follow(rts_u64 lock, rts_u64 now_ns)
{
	struct lock_taken taken = { .known_ns = now_ns };
	struct lock_slot *slot = lock_slot(lock);

	if (slot && slot->lock == lock)
		return;
	if (slot && !slot->lock && slot_takes(&slot->lock, lock)) {
		slot->taken = taken;
		slot->taken.by.tid = -1;
		slot_hands_over(&slot->lock, lock);
		return;
	}
	locks_in_table = 1;
	// Such a table takes a place for the new one before it looks whether there is one already.
	if (bpf_map_lookup_elem(&lock_taken, &lock))
		return;
	taken.by.tid = -1;
	bpf_map_update_elem(&lock_taken, &lock, &taken, BPF_NOEXIST);
}

// What of the wait `tracked` was the last owner's makes it what that one held; whether that is
// known.
static __always_inline bool lock_held(struct rts_tracked *tracked, const struct lock_taken *taken)
{
	struct rts_task waiter = tracked->task;

	if (taken->known_ns > tracked->begin_ns)
		return false;
	tracked->task = tracked->other;
	if (taken->at_ns >= tracked->begin_ns) {
		tracked->begin_ns = taken->at_ns;
		tracked->task = taken->by;
	}
	tracked->other = waiter;
	tracked->series = HELD;
	return tracked->task.tid >= 0 && tracked->task.tid != waiter.tid;
}

// What is kept with the current task. Nothing where user space looks at what is open, which is in
// the table then.
static __always_inline struct plain_waits *plain_waits(struct task_struct *current)
{
	struct tracker_task *state = tracker_config.waiting_ns ? 0 : tracker_task(current);

	return state ? &state->of_tracker : 0;
}

// The wait for a lock; with 0, a place for one.
static __always_inline struct plain_wait *plain_wait(struct plain_waits *waits, rts_u64 lock)
{
	if (!waits)
		return 0;
	for (rts_u32 i = 0; i < PLAIN_WAITS_MAX; i++)
		if (waits->waits[i].lock == lock)
			return &waits->waits[i];
	return 0;
}

// Begins one of those; false where there is no room for it with the task.
static __always_inline bool plain_begins(struct task_struct *current, rts_u64 lock)
{
	struct plain_waits *waits = plain_waits(current);
	struct plain_wait *wait = plain_wait(waits, lock);

	// Nobody waits twice for one lock: the end was not seen.
	if (wait)
		TRACKER_LOSS(unpaired);
	else
		wait = plain_wait(waits, 0);
	if (!wait)
		return false;
	wait->lock = lock;
	wait->begin_ns = bpf_ktime_get_ns();
	return true;
}

static __always_inline void plain_ends(void *ctx, struct task_struct *current,
		struct plain_wait *wait)
{
	struct tracker_interval interval = {
		.begin_ns = wait->begin_ns,
		.end_ns = bpf_ktime_get_ns(),
		.key = wait->lock,
		.series = SPIN,
	};
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	wait->lock = 0;
	if (!tracker_counts(&interval))
		return;
	tracker_of(&tracked, &interval);
	task_describe(&tracked.task, current);
	hit = tracker_told(&tracked);
	if (!hit)
		return;
	if (tracker_config.stacks)
		stack_here(&hit->stack, ctx);
	tracker_send(hit);
}

// A mutex says so again when it goes to sleep, and whenever it wakes up in vain.
SEC("tp_btf/contention_begin")
int BPF_PROG(contention_begin, void *lock, unsigned int flags)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct rts_tracker_open open = {}, *before;
	rts_u32 who = waiter();
	rts_u64 key = key_of((rts_u64)lock, who);

	if (!tracker_wants_interrupted(current))
		return 0;
	if (series_of(flags) == SPIN && plain_begins(current, (rts_u64)lock))
		return 0;
	before = open_find(key);
	if (before && before->tracked.key == (rts_u64)lock && before->tracked.group == who)
		return 0;
	open.tracked.key = (rts_u64)lock;
	open.tracked.group = who;
	open.tracked.series = series_of(flags);
	task_describe(&open.tracked.task, current);
	owner_of(&open.tracked.other, lock, flags);
	open.tracked.begin_ns = bpf_ktime_get_ns();
	if (flags & LCB_F_MUTEX)
		lock_follow((rts_u64)lock, open.tracked.begin_ns);
	open_begins(key, &open);
	return 0;
}

// The wait `tracked` is over, and with it what its owner held, of a mutex.
static __noinline int wait_ends(void *ctx, struct rts_tracked *tracked,
		const struct lock_taken *taken)
{
	struct rts_tracker_hit *hit = tracker_counts_known(tracked) ? tracker_told(tracked) : 0;

	if (hit) {
		if (tracker_config.stacks)
			stack_here(&hit->stack, ctx);
		tracker_send(hit);
	}
	if (!taken || tracked->series != MUTEX || !lock_held(tracked, taken))
		return 0;
	if (tracker_counts_known(tracked))
		tracker_tells(tracked);
	return 0;
}

static __always_inline const struct lock_taken *lock_taken_last(rts_u64 lock)
{
	struct lock_slot *slot = lock_slot(lock);

	if (slot && slot->lock == lock)
		return &slot->taken;
	return locks_in_table ? bpf_map_lookup_elem(&lock_taken, &lock) : 0;
}

// Who has a mutex from here on, of one that is followed. An element of the table may become another
// one's while it is looked at: it is written as a whole.
static __always_inline void lock_takes(rts_u64 lock, const struct lock_taken *before,
		rts_u64 now_ns)
{
	struct lock_taken taken = { .known_ns = before->known_ns, .at_ns = now_ns };
	struct lock_slot *slot = lock_slot(lock);

	if (slot && slot->lock == lock) {
		task_describe(&slot->taken.by, bpf_get_current_task_btf());
		slot->taken.at_ns = now_ns;
		return;
	}
	task_describe(&taken.by, bpf_get_current_task_btf());
	bpf_map_update_elem(&lock_taken, &lock, &taken, BPF_EXIST);
}

// Who waited in vain, because of a signal, has not taken it.
SEC("tp_btf/contention_end")
int BPF_PROG(contention_end, void *lock, int result)
{
	rts_u32 who = waiter();
	rts_u64 address = (rts_u64)lock, key = key_of(address, who), now_ns;
	struct task_struct *current = bpf_get_current_task_btf();
	struct plain_wait *wait = plain_wait(plain_waits(current), address);
	const struct lock_taken *taken = 0;
	struct rts_tracker_open *open;
	struct rts_tracked tracked;

	if (wait) {
		plain_ends(ctx, current, wait);
		return 0;
	}
	open = open_find(key);
	// Who does not count may have taken what others wait for.
	if (!result && (!open || open->tracked.series == MUTEX))
		taken = lock_taken_last(address);
	if (!open && !taken)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (open) {
		tracked = open->tracked;
		open_ends(key);
		if (tracked.key == address && tracked.group == who) {
			// Waits of different waiters for one lock are one row.
			tracked.group = 0;
			tracked.end_ns = now_ns;
			tracked.cpu = bpf_get_smp_processor_id();
			wait_ends(ctx, &tracked, taken);
		} else {
			TRACKER_LOSS(unpaired);
		}
	}
	if (taken)
		lock_takes(address, taken, now_ns);
	return 0;
}
