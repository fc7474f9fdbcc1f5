// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Contexts of the kernel's events that ftrace does not note: a program at the tracepoint of each
// event. It runs before ftrace's own, and sends what differs from the last of its CPU: an event has
// the last record of its CPU that is not younger than it.
//
// The kernel runs no program within itself. So what begins an interrupt has one of its own, which
// may interrupt the other.

#include "context.h"
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4, BPF_MAP_TYPE_ARRAY_OF_MAPS = 12 };
enum { UID_EXTENTS = 5, MAX_RT_PRIO = 100, DEFAULT_PRIO = 120, OVERFLOW_ID = 65534 };
enum { WORDS = sizeof(struct rts_context) / 8, COMPARED_FROM = 2 };

struct ns_held {
	struct ns_common ns;
} RELOCATED;

struct uid_gid_extent {
	rts_u32 first;
	rts_u32 lower_first;
	rts_u32 count;
} RELOCATED;

struct uid_gid_map {
	rts_u32 nr_extents;
	struct uid_gid_extent extent[UID_EXTENTS];
} RELOCATED;

struct user_namespace {
	struct uid_gid_map uid_map;
	struct uid_gid_map gid_map;
	struct ns_common ns;
} RELOCATED;

struct kuid {
	rts_u32 val;
};

struct cred {
	struct kuid uid, gid, suid, sgid, euid, egid;
	struct user_namespace *user_ns;
} RELOCATED;

struct cgroup_namespace {
	struct ns_common ns;
} RELOCATED;

struct ipc_namespace {
	struct ns_common ns;
} RELOCATED;

struct mnt_namespace {
	struct ns_common ns;
} RELOCATED;

struct net {
	struct ns_common ns;
} RELOCATED;

struct time_namespace {
	struct ns_common ns;
} RELOCATED;

struct new_utsname {
	char nodename[65];
} RELOCATED;

struct uts_namespace {
	struct new_utsname name;
	struct ns_common ns;
} RELOCATED;

struct nsproxy {
	struct cgroup_namespace *cgroup_ns;
	struct ipc_namespace *ipc_ns;
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
	struct time_namespace *time_ns;
	struct uts_namespace *uts_ns;
} RELOCATED;

struct task_struct___contexts {
	int static_prio;
	const struct cred *cred;
	struct nsproxy *nsproxy;
} RELOCATED;

struct bpf_perf_event_value {
	rts_u64 counter;
	rts_u64 enabled;
	rts_u64 running;
};

const volatile struct rts_context_config context_config;

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

// One counter behind the other, each with a place for every CPU.
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, rts_u32);
} counted SEC(".maps");

// What each program puts together, and what was sent last.
enum slot { SLOT_TASK, SLOT_INTERRUPT, SLOT_LAST, SLOTS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, rts_u32);
	__type(value, struct rts_context);
} slots SEC(".maps");

static __always_inline void upid_at(struct upid *to, struct pid *pid, rts_u32 level)
{
	void *place = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
		      level * bpf_core_type_size(struct upid);

	bpf_probe_read_kernel(&to->nr, sizeof(to->nr),
			place + bpf_core_field_offset(struct upid, nr));
	bpf_probe_read_kernel(&to->ns, sizeof(to->ns),
			place + bpf_core_field_offset(struct upid, ns));
}

// The innermost PID namespace of a task is that of its number.
static __always_inline rts_u32 own_number(struct upid *to, struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	rts_u32 level;

	// A task that ends has none any more.
	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	upid_at(to, pid, level);
	return level;
}

static __always_inline void put_virtual(struct rts_context *now, struct task_struct *task)
{
	struct upid own = {}, other = {};
	rts_u32 level = own_number(&own, task);
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);

	now->vtid = own.nr;
	if (pid)
		upid_at(&other, pid, level);
	now->vpid = other.nr;
	// A parent out of the namespace has no number there.
	pid = BPF_CORE_READ(task, real_parent, group_leader, thread_pid);
	now->vppid = 0;
	if (!pid || BPF_CORE_READ(pid, level) < level)
		return;
	upid_at(&other, pid, level);
	if (other.ns == own.ns)
		now->vppid = other.nr;
}

// As the namespace of `map` calls it.
static __always_inline rts_u32 mapped(const struct uid_gid_map *map, rts_u32 id)
{
	rts_u32 extents = BPF_CORE_READ(map, nr_extents);

	if (extents > UID_EXTENTS)
		return RTS_CONTEXT_NO_ID;
	for (rts_u32 i = 0; i < UID_EXTENTS; i++) {
		rts_u32 lower, count;

		if (i >= extents)
			break;
		lower = BPF_CORE_READ(map, extent[i].lower_first);
		count = BPF_CORE_READ(map, extent[i].count);
		if (id >= lower && id - lower < count)
			return id - lower + BPF_CORE_READ(map, extent[i].first);
	}
	return OVERFLOW_ID;
}

static __always_inline void put_ids(rts_u32 *ids, const struct cred *cred)
{
	ids[0] = BPF_CORE_READ(cred, uid.val);
	ids[1] = BPF_CORE_READ(cred, euid.val);
	ids[2] = BPF_CORE_READ(cred, suid.val);
	ids[3] = BPF_CORE_READ(cred, gid.val);
	ids[4] = BPF_CORE_READ(cred, egid.val);
	ids[5] = BPF_CORE_READ(cred, sgid.val);
}

static __always_inline void put_mapped(rts_u32 *ids, const struct cred *cred)
{
	struct user_namespace *space = BPF_CORE_READ(cred, user_ns);

	put_ids(ids, cred);
	for (int i = 0; i < 3; i++) {
		ids[i] = mapped(&space->uid_map, ids[i]);
		ids[i + 3] = mapped(&space->gid_map, ids[i + 3]);
	}
}

static __always_inline void put_namespaces(rts_u32 *spaces, struct task_struct *task,
		const struct cred *cred)
{
	struct task_struct___contexts *more = (void *)task;
	struct nsproxy *proxy = BPF_CORE_READ(more, nsproxy);
	struct upid own = {};

	own_number(&own, task);
	__builtin_memset(spaces, 0, RTS_CONTEXT_NAMESPACES * sizeof(*spaces));
	spaces[4] = BPF_CORE_READ(own.ns, ns.inum);
	spaces[6] = BPF_CORE_READ(cred, user_ns, ns.inum);
	// A task that ends has left the others.
	if (!proxy)
		return;
	spaces[0] = BPF_CORE_READ(proxy, cgroup_ns, ns.inum);
	spaces[1] = BPF_CORE_READ(proxy, ipc_ns, ns.inum);
	spaces[2] = BPF_CORE_READ(proxy, mnt_ns, ns.inum);
	spaces[3] = BPF_CORE_READ(proxy, net_ns, ns.inum);
	if (bpf_core_field_exists(proxy->time_ns))
		spaces[5] = BPF_CORE_READ(proxy, time_ns, ns.inum);
	spaces[7] = BPF_CORE_READ(proxy, uts_ns, ns.inum);
}

static __always_inline void put_host(char *host, struct task_struct *task)
{
	struct task_struct___contexts *more = (void *)task;
	struct nsproxy *proxy = BPF_CORE_READ(more, nsproxy);
	struct uts_namespace *space;

	__builtin_memset(host, 0, RTS_CONTEXT_HOST_BYTES);
	if (!proxy)
		return;
	space = BPF_CORE_READ(proxy, uts_ns);
	bpf_probe_read_kernel_str(host, 65, &space->name.nodename);
}

static __always_inline void put_counters(rts_u64 *counters)
{
	rts_u32 cpu = bpf_get_smp_processor_id();

	for (rts_u32 i = 0; i < RTS_CONTEXT_COUNTERS; i++) {
		struct bpf_perf_event_value value = {};

		if (i >= context_config.counters)
			break;
		bpf_perf_event_read_value(&counted, i * context_config.cpus + cpu, &value,
				sizeof(value));
		counters[i] = value.counter;
	}
}

static __always_inline void put(struct rts_context *now, struct task_struct *task)
{
	struct task_struct___contexts *more = (void *)task;
	const struct cred *cred = BPF_CORE_READ(more, cred);
	rts_u32 wanted = context_config.wanted;

	now->tid = task->pid;
	now->pid = task->tgid;
	if (wanted & RTS_CONTEXT_TASK) {
		now->ppid = BPF_CORE_READ(task, real_parent, tgid);
		now->prio = task->prio - MAX_RT_PRIO;
		now->nice = BPF_CORE_READ(more, static_prio) - DEFAULT_PRIO;
		bpf_probe_read_kernel_str(now->comm, sizeof(now->comm), task->comm);
	}
	if (wanted & RTS_CONTEXT_VIRTUAL)
		put_virtual(now, task);
	if (wanted & RTS_CONTEXT_ID)
		put_ids(now->ids, cred);
	if (wanted & RTS_CONTEXT_VIRTUAL_ID)
		put_mapped(now->virtual_ids, cred);
	if (wanted & RTS_CONTEXT_NAMESPACE)
		put_namespaces(now->namespaces, task, cred);
	if (wanted & RTS_CONTEXT_HOST)
		put_host(now->host, task);
	put_counters(now->counters);
}

// All but the time and the count of losses.
static __always_inline bool is_same(const struct rts_context *one, const struct rts_context *other)
{
	const rts_u64 *ones = (const void *)one, *others = (const void *)other;

	for (int i = COMPARED_FROM; i < WORDS; i++)
		if (ones[i] != others[i])
			return false;
	return true;
}

static __always_inline int send(rts_u32 slot)
{
	rts_u32 of_last = SLOT_LAST, cpu = bpf_get_smp_processor_id(), bytes = context_config.bytes;
	struct rts_context *now = bpf_map_lookup_elem(&slots, &slot);
	struct rts_context *last = bpf_map_lookup_elem(&slots, &of_last);
	void *ring = bpf_map_lookup_elem(&rings, &cpu);

	if (!now || !last || !ring || bytes > sizeof(*now))
		return 0;
	now->time_ns = bpf_ktime_get_ns();
	put(now, bpf_get_current_task_btf());
	// No task has this time: nothing was sent yet, or what was to be sent is lost.
	if (last->time_ns && is_same(last, now))
		return 0;
	now->lost = last->lost;
	if (bpf_ringbuf_output(ring, now, bytes, BPF_RB_NO_WAKEUP)) {
		last->lost++;
		last->time_ns = 0;
		return 0;
	}
	__builtin_memcpy(last, now, sizeof(*last));
	return 0;
}

SEC("raw_tp")
int at_event(void *arguments)
{
	return send(SLOT_TASK);
}

SEC("raw_tp")
int at_interrupt(void *arguments)
{
	return send(SLOT_INTERRUPT);
}
