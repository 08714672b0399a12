// SPDX-License-Identifier: GPL-2.0
/* The smallest program of each kind: loading and attaching it tells whether this kernel allows the kind. */
#include "vmlinux/x86_64/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

extern bool bpf_session_is_return(void) __ksym __weak;

/*
 * It is tried at the entry point of our own executable, which another one of us may be starting: there the stack holds
 * no return address. 1 says that no return is wanted, so the kernel does not replace what the stack holds.
 */
SEC("?uprobe.session")
int iot_trial_session(struct pt_regs *ctx)
{
	bpf_session_is_return();
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

char LICENSE[] SEC("license") = "GPL";
