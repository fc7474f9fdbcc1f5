// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Connections that a server accepts: how long one waits until it is accepted, and from there to the
// first byte of the answer. Key and detail are the peer's address as IPv6 has it, lower and upper
// half; `more` is its port. The task is the one that accepts.

#include "stages.h"

enum { UNACCEPTED = 0, TO_FIRST_BYTE = 1 };

#define AF_INET 2
#define AF_INET6 10
#define TCP_ESTABLISHED 1
#define TCP_SYN_RECV 3
#define TCP_CLOSE 7
#define MAPPED 0xffff00000000ull // an address of version 4 among those of version 6

struct in6_addr {
	union {
		rts_u32 u6_addr32[4];
	} in6_u;
} RELOCATED;

struct sock_common {
	unsigned short skc_family;
	rts_u32 skc_daddr;
	__be16 skc_dport;
	struct in6_addr skc_v6_daddr;
} RELOCATED;

struct sock {
	struct sock_common __sk_common;
} RELOCATED;

struct socket {
	struct sock *sk;
} RELOCATED;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} RELOCATED;

struct files_struct {
	struct fdtable *fdt;
} RELOCATED;

struct task_struct___with_files {
	struct files_struct *files;
} RELOCATED;

static __always_inline rts_u64 half(const rts_u32 *words)
{
	return (rts_u64)__builtin_bswap32(words[0]) << 32 | __builtin_bswap32(words[1]);
}

static __always_inline void peer_of(struct rts_tracked *tracked, const struct sock *sk)
{
	rts_u32 words[4] = {};

	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		tracked->key = MAPPED | __builtin_bswap32(BPF_CORE_READ(sk, __sk_common.skc_daddr));
		tracked->detail = 0;
	} else {
		BPF_CORE_READ_INTO(&words, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32);
		tracked->key = half(words + 2);
		tracked->detail = half(words);
	}
	tracked->group = tracked->detail ^ tracked->detail >> 32;
	tracked->more = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, const struct sock *sk, const int before, const int now)
{
	struct rts_tracker_open open = {};
	rts_u64 address = (rts_u64)sk;

	if (now == TCP_CLOSE) {
		open_ends(address);
		return 0;
	}
	if (before != TCP_SYN_RECV || now != TCP_ESTABLISHED)
		return 0;
	open.tracked.series = UNACCEPTED;
	tracker_nobody(&open.tracked.task);
	tracker_nobody(&open.tracked.other);
	peer_of(&open.tracked, sk);
	open.tracked.begin_ns = bpf_ktime_get_ns();
	open_begins(address, &open);
	return 0;
}

// The socket behind a descriptor of the current task.
static __always_inline const struct sock *socket_of(struct task_struct *current, rts_u32 number)
{
	struct task_struct___with_files *task = (void *)current;
	struct file *file = 0, **table = BPF_CORE_READ(task, files, fdt, fd);
	struct socket *socket;

	if (number >= BPF_CORE_READ(task, files, fdt, max_fds))
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), table + number);
	socket = file ? BPF_CORE_READ(file, private_data) : 0;
	return socket ? BPF_CORE_READ(socket, sk) : 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *current = bpf_get_current_task_btf();
	rts_u64 now_ns, address, established_ns;
	struct rts_tracker_open *open, new = {};
	const struct sock *sk;
	rts_u16 family;

	if (!regs_in_accept(regs) || result < 0 || !(sk = socket_of(current, result)))
		return 0;
	now_ns = bpf_ktime_get_ns();
	address = (rts_u64)sk;
	if (!tracker_wants_task(current)) {
		open_ends(address);
		return 0;
	}
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != AF_INET && family != AF_INET6)
		return 0;
	open = open_find(address);
	established_ns = open ? open->tracked.begin_ns : 0;
	peer_of(&new.tracked, sk);
	task_describe(&new.tracked.task, current);
	tracker_nobody(&new.tracked.other);
	// Without one it was connected before the tracker began.
	if (established_ns)
		stage_ends(&new.tracked, established_ns, now_ns, UNACCEPTED);
	new.tracked.begin_ns = now_ns;
	new.tracked.end_ns = 0;
	new.tracked.series = TO_FIRST_BYTE;
	open_begins(address, &new);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(sock_send_length, struct sock *sk, int sent)
{
	rts_u64 address = (rts_u64)sk, now_ns;
	struct rts_tracker_open *open;
	struct rts_tracked tracked;

	if (sent <= 0 || !(open = open_find(address)) || open->tracked.series != TO_FIRST_BYTE)
		return 0;
	now_ns = bpf_ktime_get_ns();
	tracked = open->tracked;
	open_ends(address);
	task_describe(&tracked.other, bpf_get_current_task_btf());
	stage_ends(&tracked, tracked.begin_ns, now_ns, TO_FIRST_BYTE);
	return 0;
}
