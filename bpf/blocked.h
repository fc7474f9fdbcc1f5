// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// A target that blocks inside its activation, and what for: a lock with its owner, a device, or
// something that nothing names. Everything else that it blocks on is the end of its activation.
#ifndef RTSCOPE_BLOCKED_H
#define RTSCOPE_BLOCKED_H

#include "evidence.h"

#define BLOCKED_NO -1
#define WORD_FLAGS_MIN 0x40000000u
// Of fcntl (include/uapi/asm-generic/fcntl.h).
#define F_SETLKW 7
#define F_OFD_SETLKW 38

struct blocked {
	rts_s32 what; // enum rts_blocked, or BLOCKED_NO
	rts_u64 lock;
	struct rts_task owner;
	rts_u32 value; // of a futex that may be a lock's, as its word shows at the wake-up; else 0
};

// Who has the lock with priority inheritance for which `task` waits; 0: nobody.
static __always_inline rts_u64 lock_owner(struct task_struct *task)
{
	struct rt_mutex_waiter *waiter = BPF_CORE_READ(task, pi_blocked_on);
	struct rt_mutex_base *lock = waiter ? BPF_CORE_READ(waiter, lock) : 0;

	return lock ? (rts_u64)BPF_CORE_READ(lock, owner) & ~1ull : 0;
}

// A lock of the kernel's with priority inheritance: mutexes of user space that asked for it, and on
// PREEMPT_RT nearly all locks.
static __always_inline bool blocked_on_lock(struct blocked *blocked, struct task_struct *task)
{
	struct rt_mutex_waiter *waiter = task->pi_blocked_on;
	struct task_struct *owner;

	if (!waiter)
		return false;
	blocked->what = RTS_BLOCKED_LOCK;
	blocked->lock = (rts_u64)BPF_CORE_READ(waiter, lock);
	owner = (struct task_struct *)lock_owner(task);
	if (owner)
		task_read(&blocked->owner, owner);
	return true;
}

// It waits for a word of its memory to lose the value 2.
static __always_inline bool waits_as_for_mutex(struct task_struct *task, struct pt_regs *regs)
{
	rts_u32 operation;

	if ((task->flags & PF_KTHREAD) || !regs || !regs_in_futex(regs))
		return false;
	operation = regs_futex_operation(regs) & FUTEX_CMD_MASK;
	return (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) &&
	       (rts_u32)regs_futex_value(regs) == 2;
}

// It waits for a word to change in which others wait for a lock as well: Rust's mutexes and the GNU
// C library's locks for readers and writers have 2 or 3 there, Rust's locks for readers and writers
// one of the two highest bits. A counter has such a value too, once.
static __always_inline bool waits_as_for_lock(struct task_struct *task, struct pt_regs *regs)
{
	rts_u32 operation, value;

	if ((task->flags & PF_KTHREAD) || !regs || !regs_in_futex(regs) || regs_futex_timeout(regs))
		return false;
	operation = regs_futex_operation(regs) & FUTEX_CMD_MASK;
	value = regs_futex_value(regs);
	if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET)
		return false;
	return value == 2 || value == 3 || (value >= WORD_FLAGS_MIN && value != ~0u);
}

// Whether the word that `current`, a thread of the same process, changed before it woke the sleeper
// is a lock's: nobody counts that up.
static __always_inline bool is_locks_word(const struct task_state *state)
{
	rts_u32 value = 0;

	if (bpf_probe_read_user(&value, sizeof(value), (const void *)state->word))
		return false;
	// A thread that ends wakes who joins it: the word was its number.
	if ((bpf_get_current_task_btf()->flags & PF_EXITING) && state->word_value < WORD_FLAGS_MIN)
		return false;
	if (state->word_value >= WORD_FLAGS_MIN)
		return value != state->word_value + 1;
	return value <= state->word_value;
}

// A lock of a file: nobody waits for work so.
static __always_inline bool waits_for_file_lock(struct task_struct *task, struct pt_regs *regs)
{
	rts_u64 command;

	if ((task->flags & PF_KTHREAD) || !regs)
		return false;
	if (regs_in_flock(regs))
		return true;
	command = regs_fcntl_command(regs);
	return regs_in_fcntl(regs) && (command == F_SETLKW || command == F_OFD_SETLKW);
}

// A writer waits for several readers of a lock of the GNU C library: for the third word of
// sysdeps/nptl/bits/struct_rwlock.h. The first one counts them in its upper bits, and says that a
// writer is next and that readers still have the lock; the fourth one says that this writer is the
// first to wait, and nobody writes (nptl/pthread_rwlock_common.c).
#define READERS_SHIFT 3
#define WRITER_IS_NEXT 2 // of the two lowest bits: and it is not yet his
#define FUTEX_IN_USE 2u
#define READERS_MAX (1u << 22)
static __always_inline bool has_several_readers(rts_u64 word)
{
	struct {
		rts_u32 readers, writers, phase, first_writer, padding[2], writer, shared;
	} lock = {};

	if (bpf_probe_read_user(&lock, sizeof(lock), (const void *)(word - 8)))
		return false;
	if ((lock.readers & 3) != WRITER_IS_NEXT || (lock.first_writer | FUTEX_IN_USE) != 3)
		return false;
	if (lock.padding[0] | lock.padding[1] | lock.writer || lock.shared > 1)
		return false;
	return lock.writers <= READERS_MAX && lock.readers >> READERS_SHIFT > 1 &&
	       lock.readers >> READERS_SHIFT <= READERS_MAX;
}

// A mutex of the GNU C library has that value when somebody waits, and the owner's tid lies two
// words further (sysdeps/nptl/bits/struct_mutex.h). Whoever reads the record checks that the owner
// is also the one who wakes the waiter.
static __always_inline bool blocked_on_mutex(struct blocked *blocked, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	rts_u32 words[3] = {};

	if (waits_for_file_lock(task, regs)) {
		blocked->what = RTS_BLOCKED_LOCK;
		return true;
	}
	if (!waits_as_for_lock(task, regs))
		return false;
	if (bpf_probe_read_user(words, sizeof(words), (const void *)regs_futex_word(regs)) ||
	    words[0] != (rts_u32)regs_futex_value(regs))
		return false;
	blocked->what = RTS_BLOCKED_MUTEX;
	blocked->lock = regs_futex_word(regs);
	blocked->value = words[0];
	if (words[0] == 2 && (rts_s32)words[2] > 0)
		blocked->owner.tid = words[2];
	else if (words[0] == 2 && has_several_readers(blocked->lock))
		blocked->what = RTS_BLOCKED_READERS;
	return true;
}

// It sleeps, and the sleep is no system call's: in a page fault, for which a task of user space may
// be responsible (userfaultfd).
static __always_inline bool blocked_in_fault(struct task_struct *task)
{
	struct pt_regs *regs;

	if (task->flags & PF_KTHREAD)
		return false;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	return regs && regs_in_exception(regs);
}

// The kernel marks who waits for an io_uring as one that waits for a device: it waits for work.
static __always_inline bool waits_for_completions(struct task_struct *task)
{
	struct pt_regs *regs;

	if (task->flags & PF_KTHREAD)
		return false;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	return regs && regs_in_uring_enter(regs);
}

// What it writes into has no room: nobody waits for work so.
static __always_inline bool waits_to_write(struct task_struct *task, struct pt_regs *regs)
{
	return !(task->flags & PF_KTHREAD) && regs && regs_in_write(regs);
}

// What `task`, which leaves the CPU in `task_state`, blocks on inside its activation.
static __always_inline void blocked_on(struct blocked *blocked, struct task_struct *task,
				       unsigned int task_state)
{
	__builtin_memset(blocked, 0, sizeof(*blocked));
	blocked->owner.tid = -1;
	blocked->what = BLOCKED_NO;
	// Whatever it was at as it was killed: that is over.
	if (task_state & TASK_DEAD)
		return;
	if (blocked_on_lock(blocked, task))
		return;
	if (!(task_state & TASK_UNINTERRUPTIBLE) && waits_for_completions(task))
		return;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		blocked->what = RTS_BLOCKED_IO;
	else if (blocked_in_fault(task))
		blocked->what = RTS_BLOCKED_FAULT;
	else if ((task_state & (TASK_UNINTERRUPTIBLE | TASK_RTLOCK_WAIT)) &&
		 !(task_state & TASK_NOLOAD))
		blocked->what = RTS_BLOCKED_KERNEL;
	else if (waits_to_write(task, (struct pt_regs *)bpf_task_pt_regs(task)))
		blocked->what = RTS_BLOCKED_WRITE;
	else
		blocked_on_mutex(blocked, task);
}

static __always_inline void evidence_blocked(void *ctx, struct task_struct *task,
		const struct blocked *blocked, rts_u64 now_ns)
{
	struct rts_evidence *slot = evidence_begin(RTS_EVIDENCE_BLOCKED, now_ns);

	if (!slot)
		return;
	slot->blocked.lock = blocked->lock;
	task_describe(&slot->blocked.task, task);
	slot->blocked.owner = blocked->owner;
	slot->blocked.on = blocked->what;
	stack_here(&slot->blocked.stack, ctx);
	evidence_end(slot);
}

// It slept for a lock in which no owner is written, as is known now that somebody wakes it.
static __always_inline void evidence_ownerless(const struct task_state *state,
		struct task_struct *task)
{
	struct rts_evidence *slot = evidence_begin(RTS_EVIDENCE_BLOCKED, state->word_ns);

	if (!slot)
		return;
	slot->blocked.lock = state->word;
	task_describe(&slot->blocked.task, task);
	slot->blocked.owner.tid = -1;
	slot->blocked.on = state->word_readers ? RTS_BLOCKED_READERS : RTS_BLOCKED_MUTEX;
	slot->blocked.stack.length = 0;
	evidence_end(slot);
}

// It has a CPU, and spun there for a lock that `current` lets go of now.
static __always_inline void evidence_spun(struct task_struct *task, const struct blocked *blocked,
		rts_u64 now_ns)
{
	struct rts_evidence *slot = evidence_begin(RTS_EVIDENCE_BLOCKED, now_ns);

	if (!slot)
		return;
	slot->blocked.lock = blocked->lock;
	task_describe(&slot->blocked.task, task);
	task_describe(&slot->blocked.owner, bpf_get_current_task_btf());
	slot->blocked.on = RTS_BLOCKED_SPIN;
	slot->blocked.stack.length = 0;
	evidence_end(slot);
}

#endif
