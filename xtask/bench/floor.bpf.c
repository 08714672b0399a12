/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a tracer of system calls cannot go below: at entry and return a program that knows the process by its number, a clock read
 * each, task storage, and one record of 64 bytes in a ring buffer that nobody reads. cargo xtask bench compares with it.
 */
#include "vmlinux/x86_64/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct record {
	u64 start;
	u64 end;
	u64 number;
	s64 result;
	u64 rest[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} target SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct record);
} calls SEC(".maps");

/* Holds all that a run makes. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} ring SEC(".maps");

static __always_inline bool wanted(void)
{
	u32 zero = 0, *pid = bpf_map_lookup_elem(&target, &zero);

	return pid && *pid == bpf_get_current_pid_tgid() >> 32;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *regs, long id)
{
	struct record *r;

	if (!wanted())
		return 0;
	r = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (r) {
		r->number = id;
		r->start = bpf_ktime_get_ns();
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct pt_regs *regs, long ret)
{
	struct record *r;

	if (!wanted())
		return 0;
	r = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0, 0);
	if (r) {
		r->end = bpf_ktime_get_ns();
		r->result = ret;
		bpf_ringbuf_output(&ring, r, sizeof(*r), BPF_RB_NO_WAKEUP);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
