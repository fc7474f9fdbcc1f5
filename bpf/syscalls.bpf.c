// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// System calls with their contents: each entry and exit of a call that is wanted becomes a record
// in the ring of its CPU, with what its arguments point to. Nothing is formatted here. The same of
// two waits alone, futexes and page faults that programs serve, without a cost to other calls.

#include "kernel.h"
#include "syscall.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { BPF_MAP_TYPE_ARRAY_OF_MAPS = 12 };
enum { RECORD_BYTES = sizeof(struct rts_syscall) };

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

// By CPU; user space makes the rings.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * RTS_CALLS_MAX);
	__type(key, rts_u32);
	__type(value, struct rts_call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_syscall_counters);
} counters SEC(".maps");

// A record that is being put together. Behind it is space for three texts, and for as much as the
// verifier believes of the place of the last.
enum { PLACE_MASK = 4 * RTS_CALL_TEXT_BYTES - 1 };
enum { CONTENTS_BYTES = 5 * RTS_CALL_TEXT_BYTES };
struct scratch {
	struct rts_syscall record;
	char contents[CONTENTS_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

// Threads that are in a call whose text could not be read at its entry.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, rts_s32);
	__type(value, rts_u8);
} unread SEC(".maps");

// Tasks whose calls are recorded, where not all are: user space names the first of them, and who
// descends from one is one.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RTS_TRACKED_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, rts_s32);
	__type(value, rts_u8);
} tracked SEC(".maps");

// The recorder: its calls are left out and counted. Zero: nobody's are.
rts_s32 own_tgid;
// Only the calls of tracked tasks are recorded.
bool tracks;

struct vm_fault {
	unsigned long address;
} RELOCATED;

struct vector {
	rts_u64 base;
	rts_u64 length;
};

// include/linux/socket.h of user space.
struct message {
	rts_u64 name;
	rts_u32 name_length;
	rts_u32 padding;
	rts_u64 vector;
	rts_u64 vector_length;
};

// Run once by the recorder, which the kernel may number otherwise than its own namespace does.
SEC("syscall")
int know_recorder(void *context)
{
	own_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

// Run once where not all tasks are meant.
SEC("syscall")
int track_some(void *context)
{
	tracks = true;
	return 0;
}

static __always_inline bool is_tracked(rts_s32 tid)
{
	return bpf_map_lookup_elem(&tracked, &tid);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(track_child, struct task_struct *parent, struct task_struct *child)
{
	struct rts_syscall_counters *counted;
	rts_s32 tid = child->pid;
	rts_u32 zero = 0;
	rts_u8 one = 1;

	if (!is_tracked(parent->pid) || !bpf_map_update_elem(&tracked, &tid, &one, BPF_ANY))
		return 0;
	counted = bpf_map_lookup_elem(&counters, &zero);
	if (counted)
		counted->lost++;
	return 0;
}

// Not when it exits: a thread that runs another program takes over the number of its process.
SEC("tp_btf/sched_process_free")
int BPF_PROG(track_no_more, struct task_struct *task)
{
	rts_s32 tid = task->pid;

	bpf_map_delete_elem(&tracked, &tid);
	return 0;
}

#if defined(__TARGET_ARCH_x86)
#define TS_COMPAT 2
static __always_inline bool is_compat(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

static __always_inline void arguments_of(rts_u64 *arguments, struct pt_regs *regs, bool compat)
{
	if (compat) {
		arguments[0] = (rts_u32)regs->bx;
		arguments[1] = (rts_u32)regs->cx;
		arguments[2] = (rts_u32)regs->dx;
		arguments[3] = (rts_u32)regs->si;
		arguments[4] = (rts_u32)regs->di;
		arguments[5] = (rts_u32)regs->bp;
		return;
	}
	arguments[0] = regs->di;
	arguments[1] = regs->si;
	arguments[2] = regs->dx;
	arguments[3] = regs->r10;
	arguments[4] = regs->r8;
	arguments[5] = regs->r9;
}

static __always_inline long number_of(struct pt_regs *regs)
{
	return regs->orig_ax;
}
#else
#define TIF_32BIT 22
static __always_inline bool is_compat(struct task_struct *task)
{
	return task->thread_info.flags >> TIF_32BIT & 1;
}

static __always_inline void arguments_of(rts_u64 *arguments, struct pt_regs *regs, bool compat)
{
	arguments[0] = regs->orig_x0;
	for (int i = 1; i < RTS_CALL_ARGUMENTS; i++)
		arguments[i] = regs->regs[i];
}

static __always_inline long number_of(struct pt_regs *regs)
{
	return regs->syscallno;
}
#endif

// At most `size` bytes at `address`; their number, or RTS_CALL_UNREADABLE.
static __always_inline rts_u32 read_block(char *to, rts_u64 address, rts_u64 wanted, rts_u32 size)
{
	rts_u32 bytes = wanted < size ? wanted : size;

	if (!bytes)
		return 0;
	if (bytes > RTS_CALL_BLOCK_BYTES)
		bytes = RTS_CALL_BLOCK_BYTES;
	barrier_var(bytes);
	bytes &= 2 * RTS_CALL_BLOCK_BYTES - 1;
	if (bpf_probe_read_user(to, bytes, (const void *)address))
		return RTS_CALL_UNREADABLE;
	return bytes;
}

static __always_inline rts_u32 read_vector(char *to, rts_u64 address,
		const struct rts_syscall *record, rts_u32 size)
{
	struct vector first;

	if (bpf_probe_read_user(&first, sizeof(first), (const void *)address))
		return RTS_CALL_UNREADABLE;
	if (record->flags & RTS_SYSCALL_EXIT && (rts_u64)record->result < first.length)
		first.length = record->result;
	return read_block(to, first.base, first.length, size);
}

static __always_inline rts_u32 read_message(char *to, rts_u64 address,
		const struct rts_syscall *record, const struct rts_content *content)
{
	struct message message;
	rts_u32 size = content->size;

	if (bpf_probe_read_user(&message, sizeof(message), (const void *)address))
		return RTS_CALL_UNREADABLE;
	if (content->kind == RTS_CONTENT_NAME)
		return message.name ? read_block(to, message.name, message.name_length, size) : 0;
	return message.vector_length ? read_vector(to, message.vector, record, size) : 0;
}

// Reads one content; its length, or RTS_CALL_UNREADABLE.
static __always_inline rts_u32 read_content(char *to, const struct rts_content *content,
		const struct rts_syscall *record)
{
	rts_u32 place = content->argument, other = content->length, pointed = 0;
	rts_u64 address, length;
	rts_s64 result = record->result;
	long bytes;

	if (place >= RTS_CALL_ARGUMENTS || other >= RTS_CALL_ARGUMENTS)
		return RTS_CALL_UNREADABLE;
	address = record->arguments[place];
	length = record->arguments[other];
	// Nothing is there, and nothing will be.
	if (!address)
		return 0;
	switch (content->kind) {
	case RTS_CONTENT_TEXT:
		bytes = bpf_probe_read_user_str(to, RTS_CALL_TEXT_BYTES, (const void *)address);
		return bytes < 0 ? RTS_CALL_UNREADABLE : bytes & (2 * RTS_CALL_TEXT_BYTES - 1);
	case RTS_CONTENT_FIXED:
		return read_block(to, address, content->size, content->size);
	case RTS_CONTENT_LENGTH:
		return read_block(to, address, length, content->size);
	case RTS_CONTENT_POINTED:
		if (!length || bpf_probe_read_user(&pointed, sizeof(pointed), (const void *)length))
			return RTS_CALL_UNREADABLE;
		return read_block(to, address, pointed, content->size);
	case RTS_CONTENT_RESULT:
		return result > 0 ? read_block(to, address, result, content->size) : 0;
	case RTS_CONTENT_VECTOR:
		return read_vector(to, address, record, content->size);
	case RTS_CONTENT_MESSAGE:
	case RTS_CONTENT_NAME:
		return read_message(to, address, record, content);
	}
	return RTS_CALL_UNREADABLE;
}

// Reads the contents that are asked for; how many bytes they are.
static __always_inline rts_u32 read_contents(struct scratch *scratch,
		const struct rts_content *contents)
{
	rts_u32 end = 0;

	// Those of the record before are still there.
	__builtin_memset(scratch->record.lengths, 0, sizeof(scratch->record.lengths));
	for (int i = 0; i < RTS_CALL_CONTENTS_MAX; i++) {
		rts_u32 bytes;

		if (contents[i].kind == RTS_CONTENT_NONE)
			break;
		// Each is at most RTS_CALL_TEXT_BYTES long.
		barrier_var(end);
		bytes = read_content(&scratch->contents[end & PLACE_MASK], &contents[i],
				     &scratch->record);
		scratch->record.lengths[i] = bytes;
		if (bytes != RTS_CALL_UNREADABLE)
			end += bytes;
	}
	return end;
}

static __always_inline bool is_unread(const struct rts_syscall *record)
{
	for (int i = 0; i < RTS_CALL_CONTENTS_MAX; i++)
		if (record->lengths[i] == RTS_CALL_UNREADABLE)
			return true;
	return false;
}

static __always_inline void send(struct scratch *scratch, rts_u32 contents_bytes)
{
	struct rts_syscall_counters *counted;
	rts_u32 zero = 0, cpu = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&rings, &cpu);

	counted = bpf_map_lookup_elem(&counters, &zero);
	if (!counted)
		return;
	scratch->record.lost = counted->lost;
	barrier_var(contents_bytes);
	if (contents_bytes > CONTENTS_BYTES)
		return;
	contents_bytes += RECORD_BYTES;
	if (!ring || bpf_ringbuf_output(ring, scratch, contents_bytes, BPF_RB_NO_WAKEUP))
		counted->lost++;
}

// What is asked of this call; none when it is not wanted, or the recorder's own.
static __always_inline struct rts_call *wanted_call(struct task_struct *task, long number,
		bool compat, rts_u8 which)
{
	struct rts_syscall_counters *counted;
	struct rts_call *call;
	rts_u32 zero = 0, key;

	// Numbers that no table knows share the last place.
	key = (rts_u64)number < RTS_CALLS_MAX - 1 ? number : RTS_CALLS_MAX - 1;
	if (compat)
		key += RTS_CALLS_MAX;
	call = bpf_map_lookup_elem(&calls, &key);
	if (!call || !(call->wanted & which))
		return 0;
	if (tracks && !is_tracked(task->pid))
		return 0;
	if (own_tgid && task->tgid == own_tgid) {
		counted = bpf_map_lookup_elem(&counters, &zero);
		if (counted)
			counted->left_out++;
		return 0;
	}
	return call;
}

static __always_inline struct scratch *begin(struct task_struct *task, struct pt_regs *regs,
		long number, bool compat)
{
	struct scratch *scratch;
	rts_u32 zero = 0;

	scratch = bpf_map_lookup_elem(&scratches, &zero);
	if (!scratch)
		return 0;
	scratch->record.time_ns = bpf_ktime_get_ns();
	scratch->record.tid = task->pid;
	scratch->record.number = number;
	scratch->record.flags = compat ? RTS_SYSCALL_COMPAT : 0;
	arguments_of(scratch->record.arguments, regs, compat);
	return scratch;
}

static __always_inline int call_begins(struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool compat = is_compat(task);
	struct rts_call *call = wanted_call(task, number, compat, RTS_WANTED_ENTRY);
	struct scratch *scratch;
	rts_u32 bytes;

	if (!call || !(scratch = begin(task, regs, number, compat)))
		return 0;
	scratch->record.result = 0;
	bytes = read_contents(scratch, call->entry);
	if (call->again && is_unread(&scratch->record)) {
		rts_s32 tid = task->pid;
		rts_u8 one = 1;

		bpf_map_update_elem(&unread, &tid, &one, BPF_ANY);
	}
	send(scratch, bytes);
	return 0;
}

static __always_inline int call_ends(struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool compat = is_compat(task);
	long number = number_of(regs);
	struct rts_call *call = wanted_call(task, number, compat, RTS_WANTED_EXIT);
	struct scratch *scratch;
	rts_s32 tid = task->pid;
	rts_u32 bytes;

	if (!call || !(scratch = begin(task, regs, number, compat)))
		return 0;
	scratch->record.flags |= RTS_SYSCALL_EXIT;
	scratch->record.result = result;
	if (call->again && bpf_map_lookup_elem(&unread, &tid)) {
		bpf_map_delete_elem(&unread, &tid);
		scratch->record.flags |= RTS_SYSCALL_AGAIN;
		bytes = read_contents(scratch, call->entry);
	} else {
		bytes = read_contents(scratch, call->exit);
	}
	send(scratch, bytes);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	return call_begins(regs, number);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	return call_ends(regs, result);
}

// The waits that a recording of the scheduler tells from the wait for the next work: at the
// functions themselves, since the tracepoints above cost every call of every program.

#if defined(__TARGET_ARCH_x86)
#define FUTEX_CALL "__x64_sys_futex"
#else
#define FUTEX_CALL "__arm64_sys_futex"
#endif

SEC("fentry/" FUTEX_CALL)
int BPF_PROG(wait_futex_entry, struct pt_regs *regs)
{
	return call_begins(regs, number_of(regs));
}

SEC("fexit/" FUTEX_CALL)
int BPF_PROG(wait_futex_exit, struct pt_regs *regs, long result)
{
	return call_ends(regs, result);
}

// A page fault that a program has to serve.
static __always_inline int serves_fault(rts_u64 address, rts_u16 way)
{
	struct task_struct *task = bpf_get_current_task_btf();
	rts_u32 zero = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);

	if (!scratch || (tracks && !is_tracked(task->pid)))
		return 0;
	__builtin_memset(&scratch->record, 0, sizeof(scratch->record));
	scratch->record.time_ns = bpf_ktime_get_ns();
	scratch->record.tid = task->pid;
	scratch->record.flags = RTS_SYSCALL_FAULT | way;
	scratch->record.arguments[0] = address;
	send(scratch, 0);
	return 0;
}

SEC("fentry/handle_userfault")
int BPF_PROG(wait_fault_entry, struct vm_fault *fault)
{
	return serves_fault(fault->address, 0);
}

SEC("fexit/handle_userfault")
int BPF_PROG(wait_fault_exit, struct vm_fault *fault)
{
	return serves_fault(fault->address, RTS_SYSCALL_EXIT);
}
