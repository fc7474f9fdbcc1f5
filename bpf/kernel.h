// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The few fields of the kernel that the watch reads, relocated at load (CO-RE), and every
// difference between kernel versions. Only the names count: order and offsets come from the running
// kernel.

#ifndef RTSCOPE_KERNEL_H
#define RTSCOPE_KERNEL_H

#include <stdbool.h>

#include "event.h"

typedef rts_u8 __u8;
typedef rts_u16 __u16;
typedef rts_u32 __u32;
typedef rts_u64 __u64;
typedef __INT8_TYPE__ __s8;
typedef __INT16_TYPE__ __s16;
typedef rts_s32 __s32;
typedef rts_s64 __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u16 __sum16;

// Stable user-space values (include/uapi/linux/bpf.h).
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6 };
enum { BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_ANY = 0 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define RELOCATED __attribute__((preserve_access_index))

struct rt_mutex_waiter;

struct rq;

struct cfs_rq {
	int runtime_enabled; // its group has a quota
	int throttle_count;
	rts_u64 throttled_clock_self; // of the run queue: since when tasks are kept; 0: none is
	rts_u64 throttled_clock_self_time; // for how long they were, since 6.6
	struct rq *rq; // with groups of fair tasks
} RELOCATED;

struct ns_common {
	unsigned int inum;
} RELOCATED;

struct pid_namespace {
	struct ns_common ns;
} RELOCATED;

struct upid {
	int nr;
	struct pid_namespace *ns;
} RELOCATED;

// A task's number in each PID namespace that sees it, the first namespace's first.
struct pid {
	unsigned int level;
	struct upid numbers[1];
} RELOCATED;

struct kernfs_node {
	__u64 id;
} RELOCATED;

struct cgroup_root {
	int hierarchy_id; // 0: version 2
} RELOCATED;

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
} RELOCATED;

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
} RELOCATED;

struct list_head {
	struct list_head *next;
} RELOCATED;

// Of one task's control groups, one in each hierarchy: a link of the list `cgrp_links`.
struct cgrp_cset_link {
	struct cgroup *cgrp;
	struct list_head cgrp_link;
} RELOCATED;

struct css_set {
	struct cgroup *dfl_cgrp; // that of version 2
	struct list_head cgrp_links;
} RELOCATED;

struct sched_entity {
	rts_u64 vruntime;
	struct cfs_rq *cfs_rq;
	struct sched_entity *parent; // its group's share of the CPU
	struct cfs_rq *my_q;         // of a share: what shares it
} RELOCATED;

// With CONFIG_SCHED_INFO, on the scheduler's clock.
struct sched_info {
	unsigned long pcount;  // arrivals on a CPU
	rts_u64 run_delay;     // what it waited for CPUs until the last arrival
	rts_u64 last_arrival;
	rts_u64 last_queued;   // 0: it does not wait
} RELOCATED;

struct sched_dl_entity {
	unsigned int dl_yielded : 1;
} RELOCATED;

struct thread_info {
	unsigned long flags;
	__u32 cpu;
	__u32 status; // of x86
} RELOCATED;

// What a system call that a signal ended goes on with.
struct restart_block {
	struct {
		int clockid;
		rts_u64 expires;
	} nanosleep;
} RELOCATED;

struct qstr {
	const unsigned char *name;
} RELOCATED;

struct dentry {
	struct qstr d_name;
} RELOCATED;

struct path {
	struct dentry *dentry;
} RELOCATED;

struct file {
	struct path f_path;
	void *private_data;
} RELOCATED;

struct mm_struct {
	struct file *exe_file;
} RELOCATED;

struct task_struct {
	// `state` until 5.14 (2f064a59a11f): such kernels refuse the programs, and the error says so.
	unsigned int __state;
	unsigned int flags;
	unsigned int policy;
	unsigned int ptrace;
	int on_cpu;
	int on_rq;
	int prio;
	int normal_prio; // without what others lend it
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct mm_struct *mm; // none of a thread of the kernel's
	struct pid *thread_pid;
	struct css_set *cgroups;
	char comm[RTS_COMM_LENGTH];
	unsigned in_iowait : 1;
	unsigned frozen : 1; // counts as frozen for its group of the second version
	unsigned long jobctl;
	bool throttled; // since 6.18: at its return to user space, its group has no quota left
	struct thread_info thread_info;
	struct task_struct *parent; // the tracer, of a traced task
	void *stack;
	struct sched_entity se;
	struct sched_dl_entity dl;
	struct sched_info sched_info;
	unsigned long nvcsw; // sleeps
	rts_u64 start_time;  // when it was born, by CLOCK_MONOTONIC
	struct sched_dl_entity *dl_server; // runs it in place of its own class, since 6.8
	struct task_struct *pi_top_task; // who waits for a lock of its with the highest priority
	struct rt_mutex_waiter *pi_blocked_on;
	struct restart_block restart_block;
} RELOCATED;

struct rt_mutex_base {
	struct task_struct *owner; // its lowest bit is a flag
} RELOCATED;

struct rt_mutex_waiter {
	struct rt_mutex_base *lock;
} RELOCATED;

struct timerqueue_node {
	rts_s64 expires;
} RELOCATED;

struct irqaction {
	struct task_struct *thread;
} RELOCATED;

struct hrtimer_cpu_base;

struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base;
	rts_u32 index; // of the clock, among those of a CPU
	rts_s64 offset; // to CLOCK_MONOTONIC
} RELOCATED;

struct hrtimer {
	struct timerqueue_node node; // the hard expiry
	rts_s64 _softexpires; // before the slack
	void *function;
	struct hrtimer_clock_base *base;
	__u8 is_soft; // a softirq serves it, since 4.16
} RELOCATED;

struct rq {
	struct task_struct *curr;
	rts_u64 clock; // the scheduler's
} RELOCATED;

#define TIMER_ABSTIME 1 // of clock_nanosleep: until a moment, and not for a length of time

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long ip;
	unsigned long cs;
	unsigned long orig_ax;
	unsigned long ax;
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long r10;
	unsigned long r8;
	unsigned long r9;
	unsigned long bx;
	unsigned long cx;
	unsigned long bp;
	unsigned long sp;
} RELOCATED;
#define regs_instruction(regs) BPF_CORE_READ(regs, ip)
// Of a task, whose registers the verifier knows: no call.
#define regs_task_instruction(regs) ((regs)->ip)
#define regs_user(regs) ((BPF_CORE_READ(regs, cs) & 3) == 3)
#define CODE_BYTES 16 // an instruction that switches interrupts on, and the one in its shadow
// Whether interrupts may have come back on right before `instruction`: behind `sti`, which holds
// them off for one instruction more, or `popf`. A byte of that value may mean something else.
static __always_inline bool interrupts_came_on(rts_u64 instruction)
{
	rts_u8 code[CODE_BYTES];

	if (bpf_probe_read_kernel(code, sizeof(code), (const void *)(instruction - CODE_BYTES)))
		return false;
	for (int i = 0; i < CODE_BYTES; i++) {
		if (code[i] == 0xfb)
			return true;
	}
	return code[CODE_BYTES - 1] == 0x9d;
}
#define USER32_CS 0x23
// Programs of 32 bits have calls of other numbers: none of those that are looked for.
#define regs_of_32_bits(regs) ((regs)->cs == USER32_CS)
#define regs_number(regs) (regs_of_32_bits(regs) ? -1L : (long)(regs)->orig_ax)
#define regs_call(regs) ((rts_s32)regs_number(regs))
#define regs_in_futex(regs) (regs_number(regs) == 202)
// epoll_wait, epoll_pwait, epoll_pwait2
#define regs_in_epoll_wait(regs)                                                                   \
	(regs_number(regs) == 232 || regs_number(regs) == 281 || regs_number(regs) == 441)
#define regs_in_flock(regs) (regs_number(regs) == 73)
#define regs_in_fcntl(regs) (regs_number(regs) == 72)
#define regs_in_accept(regs) (regs_number(regs) == 43 || regs_number(regs) == 288)
// Its way into the kernel was no system call: an exception, or an interrupt.
#define regs_in_exception(regs) ((rts_s64)(regs)->orig_ax == -1)
#define regs_futex_word(regs) ((regs)->di)
#define regs_futex_operation(regs) ((regs)->si)
#define regs_futex_value(regs) ((regs)->dx)
#define regs_futex_timeout(regs) ((regs)->r10)
#define regs_fcntl_command(regs) ((regs)->si)
#define regs_result(regs) ((rts_s64)(regs)->ax)
#define regs_argument_0(regs) ((regs)->di)
#define regs_argument_1(regs) ((regs)->si)
#define regs_argument_2(regs) ((regs)->dx)
#define regs_argument_3(regs) ((regs)->cx)
#define regs_argument_4(regs) ((regs)->r8)
#define regs_argument_5(regs) ((regs)->r9)
#define regs_in_nanosleep(regs) (regs_number(regs) == 35)
#define regs_in_clock_nanosleep(regs) (regs_number(regs) == 230)
#define regs_in_restart(regs) (regs_number(regs) == 219)
// select and pselect6, poll and ppoll: with how many files.
#define regs_in_select(regs) (regs_number(regs) == 23 || regs_number(regs) == 270)
#define regs_in_poll(regs) (regs_number(regs) == 7 || regs_number(regs) == 271)
#define regs_select_files(regs) ((regs)->di)
#define regs_poll_files(regs) ((regs)->si)
#define regs_in_uring_enter(regs) (regs_number(regs) == 426)
#define regs_in_exec(regs) (regs_number(regs) == 59 || regs_number(regs) == 322)
// write, writev, sendto, sendmsg, sendmmsg
#define regs_in_write(regs)                                                                        \
	(regs_number(regs) == 1 || regs_number(regs) == 20 || regs_number(regs) == 44 ||           \
	 regs_number(regs) == 46 || regs_number(regs) == 307)
// setpriority, sched_setparam, sched_setscheduler, sched_setattr
#define regs_in_set_priority(regs)                                                                 \
	(regs_number(regs) == 141 || regs_number(regs) == 142 || regs_number(regs) == 144 ||       \
	 regs_number(regs) == 314)
#define regs_stack_pointer(regs) ((regs)->sp)
#define regs_frame_pointer(regs) ((regs)->bp)
#define regs_sleep_clock(regs) ((regs)->di)
#define regs_sleep_flags(regs) ((regs)->si)
#define regs_sleep_time(regs) ((regs)->dx)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	rts_u64 regs[31];
	rts_u64 sp;
	rts_u64 pc;
	rts_u64 pstate;
	rts_u64 orig_x0;
	rts_s32 syscallno;
} RELOCATED;
#define regs_instruction(regs) BPF_CORE_READ(regs, pc)
#define regs_task_instruction(regs) ((regs)->pc)
#define regs_user(regs) ((BPF_CORE_READ(regs, pstate) & 0xf) == 0)
// Its instructions are not looked at.
static __always_inline bool interrupts_came_on(rts_u64 instruction)
{
	return true;
}
#define regs_of_32_bits(regs) ((regs)->pstate & PSR_MODE32_BIT)
#define PSR_MODE32_BIT 0x10
#define regs_call(regs) ((regs)->syscallno)
#define regs_in_futex(regs) ((regs)->syscallno == 98)
#define regs_in_epoll_wait(regs) ((regs)->syscallno == 22 || (regs)->syscallno == 441)
#define regs_in_flock(regs) ((regs)->syscallno == 32)
#define regs_in_fcntl(regs) ((regs)->syscallno == 25)
#define regs_in_accept(regs) ((regs)->syscallno == 202 || (regs)->syscallno == 242)
#define regs_in_exception(regs) ((regs)->syscallno == -1)
#define regs_futex_word(regs) ((regs)->orig_x0)
#define regs_futex_operation(regs) ((regs)->regs[1])
#define regs_futex_value(regs) ((regs)->regs[2])
#define regs_futex_timeout(regs) ((regs)->regs[3])
#define regs_fcntl_command(regs) ((regs)->regs[1])
#define regs_result(regs) ((rts_s64)(regs)->regs[0])
#define regs_argument_0(regs) ((regs)->regs[0])
#define regs_argument_1(regs) ((regs)->regs[1])
#define regs_argument_2(regs) ((regs)->regs[2])
#define regs_argument_3(regs) ((regs)->regs[3])
#define regs_argument_4(regs) ((regs)->regs[4])
#define regs_argument_5(regs) ((regs)->regs[5])
#define regs_in_nanosleep(regs) ((regs)->syscallno == 101)
#define regs_in_clock_nanosleep(regs) ((regs)->syscallno == 115)
#define regs_in_restart(regs) ((regs)->syscallno == 128)
#define regs_in_select(regs) ((regs)->syscallno == 72)
#define regs_in_poll(regs) ((regs)->syscallno == 73)
#define regs_select_files(regs) ((regs)->orig_x0)
#define regs_poll_files(regs) ((regs)->regs[1])
#define regs_in_uring_enter(regs) ((regs)->syscallno == 426)
#define regs_in_exec(regs) ((regs)->syscallno == 221 || (regs)->syscallno == 281)
#define regs_in_write(regs)                                                                        \
	((regs)->syscallno == 64 || (regs)->syscallno == 66 || (regs)->syscallno == 206 ||         \
	 (regs)->syscallno == 211 || (regs)->syscallno == 269)
#define regs_in_set_priority(regs)                                                                 \
	((regs)->syscallno == 140 || (regs)->syscallno == 118 || (regs)->syscallno == 119 ||       \
	 (regs)->syscallno == 274)
#define regs_stack_pointer(regs) ((regs)->sp)
#define regs_frame_pointer(regs) ((regs)->regs[29])
#define regs_sleep_clock(regs) ((regs)->orig_x0)
#define regs_sleep_flags(regs) ((regs)->regs[1])
#define regs_sleep_time(regs) ((regs)->regs[2])
#else
#error "the watch knows x86-64 and arm64"
#endif

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
} RELOCATED;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} RELOCATED;

// 5.16 moved it there (bcf9033e5449).
#define HAS_TASK_CPU(task) bpf_core_field_exists((task)->thread_info.cpu)
#define TASK_CPU(task) (HAS_TASK_CPU(task) ? BPF_CORE_READ(task, thread_info.cpu) : 0)

// include/linux/sched.h; the same in every kernel that has task storage.
#define PF_KTHREAD 0x00200000
#define PF_EXITING 0x00000004
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED 0x0004
#define TASK_TRACED 0x0008
#define TASK_DEAD 0x0080
#define TASK_WAKING 0x0200 // woken, and not yet on a run queue
#define TASK_FROZEN 0x8000 // by the freezer of suspend, or of a control group of the first version
#define TASK_NOLOAD 0x0400 // sleeps without load: waits for work, not inside it
#define TASK_RTLOCK_WAIT 0x1000

// include/linux/sched/jobctl.h
#define JOBCTL_TRAP_FREEZE (1ul << 23)

// Of both architectures, at least.
#define KERNEL_STACK_BYTES 16384

// arch/x86/include/uapi/asm/signal.h, arch/arm64 likewise: those that stop a process.
#define SIGNAL_STOPS_FIRST 19
#define SIGNAL_STOPS_LAST 22

// include/uapi/linux/futex.h
#define FUTEX_WAIT 0
#define FUTEX_WAIT_BITSET 9
#define FUTEX_CMD_MASK 0x7f

// Real-time, deadline and stop class (include/linux/sched/rt.h); 99 is nobody's.
#define PRIO_FAIR_MIN 99
#define PRIO_LTTNG_OFFSET 100

#endif
