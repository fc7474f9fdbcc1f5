// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Any pair of events: one begins an interval, the other ends it, and both have the same key. The
// events are tracepoints as perf has them, functions and marks of programs. Which of them are
// meant, and what their key is, says code that user space writes in place of `pair_code_from` and
// `pair_code_to` before it loads this.

#include "tasks.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RTS_OPEN_MAX);
	__type(key, struct rts_pair_key);
	__type(value, struct rts_pair_open);
} pair_open SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_pair_counts);
} pair_counts SEC(".maps");

// By the cookie of the probe that was hit; user space makes room for as many as there are.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct rts_mark);
} pair_marks SEC(".maps");

// What an oracle reads; nobody else makes it large.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} pair_seen SEC(".maps");

// Instructions that do nothing, to be replaced by up to as many, and the number that begins them.
// Code takes the event and the frame in the first two registers, writes the key into the frame and
// returns whether the event is meant. In C it has no arguments: its type's would have no names,
// which the kernel refuses.
#define NOTHING "goto +0;"
#define NOTHING_8 NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING
#define NOTHING_64 NOTHING_8 NOTHING_8 NOTHING_8 NOTHING_8 NOTHING_8 NOTHING_8 NOTHING_8 NOTHING_8
#define NOTHING_512 NOTHING_64 NOTHING_64 NOTHING_64 NOTHING_64 NOTHING_64 NOTHING_64 NOTHING_64 \
	NOTHING_64
#define CODE(name, mark)                                                             \
	static __attribute__((naked, noinline, used)) rts_u64 name(void)             \
	{                                                                            \
		asm volatile("r0 = " mark ";" NOTHING_512 NOTHING_512 "exit;");      \
	}                                                                            \
                                                                                     \
	static __always_inline rts_u64 name##_of(void *ctx, struct rts_pair_frame *frame) \
	{                                                                            \
		rts_u64 is_meant;                                                    \
                                                                                     \
		asm volatile("r1 = %[ctx]; r2 = %[frame]; call %[code]; %[is_meant] = r0;" \
			     : [is_meant] "=r"(is_meant)                             \
			     : [ctx] "r"(ctx), [frame] "r"(frame), [code] "i"(name)  \
			     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");        \
		return is_meant;                                                     \
	}

CODE(pair_code_from, "0x52545346") // RTSF
CODE(pair_code_to, "0x52545354") // RTST

static __always_inline void pair_saw(const struct rts_pair_frame *frame, rts_u32 side)
{
	struct rts_pair_seen *seen;

	if (!tracker_config.oracle)
		return;
	seen = bpf_ringbuf_reserve(&pair_seen, sizeof(*seen), 0);
	if (!seen) {
		TRACKER_LOSS(lost);
		return;
	}
	seen->key = frame->key;
	seen->time_ns = frame->now_ns;
	seen->side = side;
	seen->tid = bpf_get_current_task_btf()->pid;
	bpf_ringbuf_submit(seen, BPF_RB_NO_WAKEUP);
}

// A begin of a key that is open already: what is open has lost its end, or never had one.
static __noinline int pair_begins(struct rts_pair_frame *frame)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct rts_pair_open open = {};

	if (!tracker_wants_task(current))
		return 0;
	pair_saw(frame, RTS_PAIR_FROM);
	open.begin_ns = frame->now_ns;
	task_describe(&open.task, current);
	if (!bpf_map_update_elem(&pair_open, &frame->key, &open, BPF_NOEXIST))
		return 0;
	if (bpf_map_update_elem(&pair_open, &frame->key, &open, BPF_EXIST))
		TRACKER_LOSS(full);
	else
		TRACKER_LOSS(unpaired);
	return 0;
}

// What makes rows of equal numbers different: the second number, and the text.
static __always_inline rts_u32 pair_group(const struct rts_pair_key *key)
{
	const rts_u64 *text = (const rts_u64 *)key->text;
	rts_u64 mixed = key->numbers[1] * 0x9e3779b97f4a7c15ull;

	mixed ^= text[0] * 0xc2b2ae3d27d4eb4full;
	mixed ^= text[1] * 0x165667b19e3779f9ull;
	return mixed >> 32;
}

// What is to be sent, by who called it: the stack below belongs to the user's action then.
static __noinline struct rts_tracker_hit *pair_ends(void *ctx, struct rts_pair_frame *frame,
		struct rts_pair_counts *counts)
{
	struct rts_pair_open *open;
	struct rts_tracker_hit *hit;
	struct rts_tracked tracked;

	pair_saw(frame, RTS_PAIR_TO);
	open = bpf_map_lookup_elem(&pair_open, &frame->key);
	if (!open) {
		counts->alone++;
		return 0;
	}
	tracker_ends(&tracked, open->begin_ns, frame->now_ns, frame->key.numbers[0], 0);
	tracked.task = open->task;
	// Of two ends at once one has it.
	if (bpf_map_delete_elem(&pair_open, &frame->key)) {
		counts->alone++;
		return 0;
	}
	tracked.detail = frame->key.numbers[1];
	tracked.group = pair_group(&frame->key);
	__builtin_memcpy(tracked.label, frame->key.text, RTS_COMM_LENGTH);
	task_describe(&tracked.other, bpf_get_current_task_btf());
	hit = tracker_counts_known(&tracked) ? tracker_told(&tracked) : 0;
	if (!hit)
		return 0;
	if (tracker_config.stacks)
		stack_here(&hit->other_stack, ctx);
	return hit;
}

static __always_inline struct rts_pair_counts *pair_sees(struct rts_pair_frame *frame, rts_u32 side)
{
	struct rts_pair_counts *counts = LOOKUP(pair_counts, 0);

	if (!counts)
		return 0;
	counts->seen[side]++;
	__builtin_memset(&frame->key, 0, sizeof(frame->key));
	frame->now_ns = bpf_ktime_get_ns();
	frame->prio = bpf_get_current_task_btf()->prio - PRIO_LTTNG_OFFSET;
	return counts;
}

static __always_inline int from(void *ctx, struct rts_pair_frame *frame,
		struct rts_pair_counts *counts)
{
	if (!pair_code_from_of(ctx, frame))
		return 0;
	counts->matched[RTS_PAIR_FROM]++;
	return pair_begins(frame);
}

static __always_inline int to(void *ctx, struct rts_pair_frame *frame,
		struct rts_pair_counts *counts)
{
	struct rts_tracker_hit *hit;

	if (!pair_code_to_of(ctx, frame))
		return 0;
	counts->matched[RTS_PAIR_TO]++;
	hit = pair_ends(ctx, frame, counts);
	if (hit)
		tracker_send(hit);
	return 0;
}

SEC("tracepoint")
int from_tracepoint(void *ctx)
{
	struct rts_pair_frame frame;
	struct rts_pair_counts *counts = pair_sees(&frame, RTS_PAIR_FROM);

	return counts ? from(ctx, &frame, counts) : 0;
}

SEC("tracepoint")
int to_tracepoint(void *ctx)
{
	struct rts_pair_frame frame;
	struct rts_pair_counts *counts = pair_sees(&frame, RTS_PAIR_TO);

	return counts ? to(ctx, &frame, counts) : 0;
}

static __always_inline void read_registers(struct rts_pair_frame *frame, struct pt_regs *regs)
{
	frame->arguments[0] = regs_argument_0(regs);
	frame->arguments[1] = regs_argument_1(regs);
	frame->arguments[2] = regs_argument_2(regs);
	frame->arguments[3] = regs_argument_3(regs);
	frame->arguments[4] = regs_argument_4(regs);
	frame->arguments[5] = regs_argument_5(regs);
	frame->arguments[6] = 0;
	frame->arguments[RTS_PAIR_ARGUMENTS - 1] = regs_result(regs);
}

SEC("uprobe")
int from_function(struct pt_regs *ctx)
{
	struct rts_pair_frame frame;
	struct rts_pair_counts *counts = pair_sees(&frame, RTS_PAIR_FROM);

	read_registers(&frame, ctx);
	return counts ? from(ctx, &frame, counts) : 0;
}

SEC("uprobe")
int to_function(struct pt_regs *ctx)
{
	struct rts_pair_frame frame;
	struct rts_pair_counts *counts = pair_sees(&frame, RTS_PAIR_TO);

	read_registers(&frame, ctx);
	return counts ? to(ctx, &frame, counts) : 0;
}

static __always_inline rts_u64 mark_register(struct pt_regs *ctx, rts_u16 at)
{
	rts_u64 value = 0;

	if (at != RTS_MARK_NO_REGISTER)
		bpf_probe_read_kernel(&value, sizeof(value), (const void *)ctx + at);
	return value;
}

static __always_inline rts_u64 mark_memory(rts_u64 address, rts_u8 size_bytes)
{
	const void *from = (const void *)address;
	rts_u64 value = 0;

	switch (size_bytes) {
	case 1:
		bpf_probe_read_user(&value, 1, from);
		break;
	case 2:
		bpf_probe_read_user(&value, 2, from);
		break;
	case 4:
		bpf_probe_read_user(&value, 4, from);
		break;
	default:
		bpf_probe_read_user(&value, 8, from);
	}
	return value;
}

// An argument that the mark does not have is 0; nobody asks for it.
static __noinline rts_u64 mark_argument(struct pt_regs *ctx,
		const struct rts_mark_argument *argument)
{
	rts_u32 unused_bits = (64 - argument->size_bytes * 8) & 63;
	rts_u64 value;

	switch (argument->kind) {
	case RTS_MARK_CONSTANT:
		value = argument->offset;
		break;
	case RTS_MARK_REGISTER:
		value = mark_register(ctx, argument->base);
		break;
	case RTS_MARK_MEMORY:
		value = mark_register(ctx, argument->base) + argument->offset +
			(mark_register(ctx, argument->index) << (argument->shift & 3));
		value = mark_memory(value, argument->size_bytes);
		break;
	default:
		return 0;
	}
	value <<= unused_bits;
	return argument->is_signed ? (rts_u64)((rts_s64)value >> unused_bits) :
				     value >> unused_bits;
}

static __always_inline void read_mark(struct rts_pair_frame *frame, struct pt_regs *ctx)
{
	rts_u32 site = bpf_get_attach_cookie(ctx);
	struct rts_mark *mark = bpf_map_lookup_elem(&pair_marks, &site);

	for (rts_u32 i = 0; i < RTS_PAIR_ARGUMENTS; i++)
		frame->arguments[i] = mark ? mark_argument(ctx, &mark->arguments[i]) : 0;
}

SEC("uprobe")
int from_mark(struct pt_regs *ctx)
{
	struct rts_pair_frame frame;
	struct rts_pair_counts *counts = pair_sees(&frame, RTS_PAIR_FROM);

	read_mark(&frame, ctx);
	return counts ? from(ctx, &frame, counts) : 0;
}

SEC("uprobe")
int to_mark(struct pt_regs *ctx)
{
	struct rts_pair_frame frame;
	struct rts_pair_counts *counts = pair_sees(&frame, RTS_PAIR_TO);

	read_mark(&frame, ctx);
	return counts ? to(ctx, &frame, counts) : 0;
}
