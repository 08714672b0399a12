// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest program of each kind: loading and attaching it tells whether this kernel allows the kind.
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

/* The level of the PID namespace of whoever runs it. */
SEC("?syscall")
int iot_trial_level(void *ctx)
{
	return BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid, level);
}

char LICENSE[] SEC("license") = "GPL";
