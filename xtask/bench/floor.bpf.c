/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a tracer cannot go below: at the begin and the end of a call a program that knows the process by its number, a clock
 * read each, a place to keep the first, and one record of 64 bytes in a ring buffer that is not read. cargo xtask bench
 * compares with it. A program's name begins with its layer: only those that are asked for are loaded.
 */
#include "vmlinux/x86_64/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

extern bool bpf_session_is_return(void) __ksym __weak;

struct record {
	u64 start;
	u64 end;
	u64 what;
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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, u64);
	__type(value, u64);
} requests SEC(".maps");

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

static __always_inline void begin(u64 what)
{
	struct record *r;

	r = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (r) {
		r->what = what;
		r->start = bpf_ktime_get_ns();
	}
}

static __always_inline void end(s64 result)
{
	struct record *r = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0, 0);

	if (r) {
		r->end = bpf_ktime_get_ns();
		r->result = result;
		bpf_ringbuf_output(&ring, r, sizeof(*r), BPF_RB_NO_WAKEUP);
	}
}

SEC("tp_btf/sys_enter")
int BPF_PROG(syscall_enter, struct pt_regs *regs, long id)
{
	if (wanted())
		begin(id);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_exit, struct pt_regs *regs, long ret)
{
	if (wanted())
		end(ret);
	return 0;
}

SEC("uprobe.session//lib/x86_64-linux-gnu/libc.so.6:fwrite")
int stdio_fwrite(struct pt_regs *ctx)
{
	if (bpf_session_is_return()) {
		end(PT_REGS_RC(ctx));
		return 0;
	}
	/* of others nothing is to be seen at the return */
	if (!wanted())
		return 1;
	begin(PT_REGS_IP(ctx));
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_issue, struct request *rq)
{
	u64 key = (u64)rq, now;

	if (!wanted())
		return 0;
	now = bpf_ktime_get_ns();
	bpf_map_update_elem(&requests, &key, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_complete, struct request *rq, blk_status_t error, unsigned int bytes)
{
	u64 key = (u64)rq, *start = bpf_map_lookup_elem(&requests, &key);
	struct record r = {};

	if (!start)
		return 0;
	r.start = *start;
	r.end = bpf_ktime_get_ns();
	r.what = bytes;
	r.result = error;
	bpf_map_delete_elem(&requests, &key);
	bpf_ringbuf_output(&ring, &r, sizeof(r), BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
