// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest program of each kind: loading and attaching it shows whether this kernel allows the kind.
 */
#include "vmlinux/x86_64/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

extern bool bpf_session_is_return(void) __ksym __weak;

SEC("?uprobe.session")
int iot_trial_session(struct pt_regs *ctx)
{
	bpf_session_is_return();
	/*
	 * Never the return: the trial sits on the first instruction of an executable, where the stack holds the number of
	 * arguments and no return address, and that executable may be started again at any moment.
	 */
	return 1;
}

SEC("?uprobe.multi")
int iot_trial_multi(struct pt_regs *ctx)
{
	return 0;
}

SEC("?uprobe")
int iot_trial_uprobe(struct pt_regs *ctx)
{
	return 0;
}

SEC("?tp_btf/sys_enter")
int BPF_PROG(iot_trial_tp_btf, struct pt_regs *regs, long id)
{
	return 0;
}

/*
 * What hooks cost: programs that do nothing but take the time, on a function and on system calls of the measuring task. They go
 * through as much code and data as those of a trace, for what runs after them is slower by what they push out of the caches.
 */
struct iot_calibration {
	u64 entered;
	u64 inside; /* between the times that the two hooks take */
	u64 entry;  /* time of the programs themselves */
	u64 leave;
	u64 alone; /* 1: the entry without its return */
};

struct iot_calibration iot_calibrated_calls;
struct iot_calibration iot_calibrated_syscalls;
u64 iot_calibrated_task; /* the measuring task: others run beside it */

SEC("?syscall")
int iot_calibrate_this(void *ctx)
{
	iot_calibrated_task = (u64)bpf_get_current_task_btf();
	return 0;
}

#define IOT_FOOTPRINT 176

/* All hooks look for the state of the thread first. */
struct iot_footprint {
	u64 words[IOT_FOOTPRINT];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct iot_footprint);
} iot_footprints SEC(".maps");

static __always_inline bool iot_leave_footprint(void)
{
	struct iot_footprint *f =
		bpf_task_storage_get(&iot_footprints, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!f)
		return false;
#pragma unroll
	for (int i = 0; i < IOT_FOOTPRINT; i++)
		f->words[i] += f->words[(i + 1) % IOT_FOOTPRINT] ^ i;
	return true;
}

static __always_inline int iot_calibrate_entry(struct iot_calibration *c)
{
	u64 now = bpf_ktime_get_ns();

	if (!iot_leave_footprint())
		return 1;
	c->entered = bpf_ktime_get_ns();
	c->entry += c->entered - now;
	return !!c->alone;
}

static __always_inline int iot_calibrate_leave(struct iot_calibration *c)
{
	u64 now = bpf_ktime_get_ns();

	c->inside += now - c->entered;
	iot_leave_footprint();
	c->leave += bpf_ktime_get_ns() - now;
	return 0;
}

SEC("?uprobe.session")
int iot_calibrate_session(struct pt_regs *ctx)
{
	return bpf_session_is_return() ? iot_calibrate_leave(&iot_calibrated_calls)
				       : iot_calibrate_entry(&iot_calibrated_calls);
}

SEC("?uprobe.multi")
int iot_calibrate_multi_entry(struct pt_regs *ctx)
{
	iot_calibrate_entry(&iot_calibrated_calls);
	return 0;
}

SEC("?uretprobe.multi")
int iot_calibrate_multi_leave(struct pt_regs *ctx)
{
	return iot_calibrate_leave(&iot_calibrated_calls);
}

SEC("?uprobe")
int iot_calibrate_single_entry(struct pt_regs *ctx)
{
	iot_calibrate_entry(&iot_calibrated_calls);
	return 0;
}

SEC("?uretprobe")
int iot_calibrate_single_leave(struct pt_regs *ctx)
{
	return iot_calibrate_leave(&iot_calibrated_calls);
}

SEC("?tp_btf/sys_enter")
int BPF_PROG(iot_calibrate_sys_enter, struct pt_regs *regs, long id)
{
	if ((u64)bpf_get_current_task_btf() == iot_calibrated_task)
		iot_calibrate_entry(&iot_calibrated_syscalls);
	return 0;
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(iot_calibrate_sys_exit, struct pt_regs *regs, long ret)
{
	if ((u64)bpf_get_current_task_btf() == iot_calibrated_task)
		iot_calibrate_leave(&iot_calibrated_syscalls);
	return 0;
}

/* The level of the PID namespace of the task that runs it. */
SEC("?syscall")
int iot_trial_level(void *ctx)
{
	return BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid, level);
}

char LICENSE[] SEC("license") = "GPL";
