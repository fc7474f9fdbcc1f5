// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Control groups that are meant: of both versions, with all below them. User space fills the map
// with those that are there; one that is made later and is called as asked for is added as it is
// made, before it can have a member.

#ifndef RTSCOPE_GROUP_H
#define RTSCOPE_GROUP_H

#include "state.h"

#define GROUP_LEVELS_MAX 32
#define GROUP_HIERARCHIES_MAX 16
#define GROUP_PATH_BYTES 512

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RTS_GROUPS_MAX);
	__type(key, struct rts_group);
	__type(value, rts_u8);
} groups SEC(".maps");

struct group_path {
	rts_u32 slash; // place of the last one: in memory, lest the verifier follow each
	char bytes[GROUP_PATH_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rts_u32);
	__type(value, struct group_path);
} group_paths SEC(".maps");

// Whether a group or one above it is meant.
static __noinline bool group_is_meant(struct cgroup *group)
{
	struct rts_group key = { .hierarchy = BPF_CORE_READ(group, root, hierarchy_id) };

	for (int level = 0; level < GROUP_LEVELS_MAX && group; level++) {
		key.id = BPF_CORE_READ(group, kn, id);
		if (bpf_map_lookup_elem(&groups, &key))
			return true;
		group = BPF_CORE_READ(group, self.parent, cgroup);
	}
	return false;
}

// Whether one of the groups of a task is meant, in whatever hierarchy; `address` is of its css_set.
// Not static, and asked by a number: so the verifier follows its loops once, and not again wherever
// somebody asks.
__noinline bool group_of_set_is_meant(rts_u64 address)
{
	struct css_set *set = (struct css_set *)address;
	struct list_head *head = (void *)set + bpf_core_field_offset(struct css_set, cgrp_links);
	struct list_head *link = BPF_CORE_READ(set, cgrp_links.next);

	if (group_is_meant(BPF_CORE_READ(set, dfl_cgrp)))
		return true;
	for (int i = 0; i < GROUP_HIERARCHIES_MAX && link && link != head; i++) {
		struct cgrp_cset_link *of = (void *)link -
				bpf_core_field_offset(struct cgrp_cset_link, cgrp_link);

		if (group_is_meant(BPF_CORE_READ(of, cgrp)))
			return true;
		link = BPF_CORE_READ(link, next);
	}
	return false;
}

// A task that was moved has another set: only then is anything looked up.
static __always_inline bool group_has_member(struct meant *meant, struct task_struct *task)
{
	rts_u64 set;

	if (!config.groups)
		return false;
	if ((rts_u64)task->cgroups != meant->groups) {
		// A number, not the pointer that the verifier sees above.
		set = (rts_u64)BPF_CORE_READ(task, cgroups);
		meant->member = group_of_set_is_meant(set);
		meant->groups = set;
	}
	return meant->member && !meant->ours;
}

static __always_inline bool group_reads(const struct group_path *path, rts_u32 at,
		const volatile char *text, rts_u32 length, rts_u32 length_max)
{
	for (rts_u32 i = 0; i < length_max && i < length; i++)
		if (path->bytes[(at + i) & (GROUP_PATH_BYTES - 1)] != text[i])
			return false;
	return true;
}

static __always_inline bool group_is_called(const struct group_path *path, rts_u32 length,
		const volatile struct rts_group_name *name)
{
	rts_u32 head = name->head_length, tail = name->tail_length;
	// Where the path ends if the name does; of an open one the last component begins alike.
	rts_u32 end = name->is_open ? path->slash + 1 + name->last_length : length;
	rts_u32 begin = end - head;

	if (end <= head || begin + head + tail > length || (name->is_whole && begin != 1))
		return false;
	return path->bytes[(begin - 1) & (GROUP_PATH_BYTES - 1)] == '/' &&
	       group_reads(path, begin, name->head, head, RTS_GROUP_BYTES) &&
	       group_reads(path, length - tail, name->tail, tail, RTS_GROUP_TAIL_BYTES);
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(cgroup_mkdir, struct cgroup *group, const char *text)
{
	struct group_path *path = LOOKUP(group_paths, 0);
	struct rts_group key = {};
	rts_u8 yes = 1;
	long bytes;

	if (!path || !config.group_names_length)
		return 0;
	bytes = bpf_probe_read_kernel_str(path->bytes, sizeof(path->bytes), text);
	if (bytes <= 1 || bytes > GROUP_PATH_BYTES)
		return 0;
	for (rts_u32 i = 0; i < GROUP_PATH_BYTES && path->bytes[i]; i++)
		if (path->bytes[i] == '/')
			path->slash = i;
	for (rts_u32 i = 0; i < RTS_PATTERNS_MAX && i < config.group_names_length; i++) {
		if (!group_is_called(path, bytes - 1, &config.group_names[i]))
			continue;
		key.id = BPF_CORE_READ(group, kn, id);
		key.hierarchy = BPF_CORE_READ(group, root, hierarchy_id);
		bpf_map_update_elem(&groups, &key, &yes, BPF_ANY);
		break;
	}
	return 0;
}

#endif
