/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long system calls wait for locks of the kernel that make them sleep: i_rwsem of a file that several write, above
 * all.
 */
#ifndef IOT_LOCK_H
#define IOT_LOCK_H

/* include/trace/events/lock.h */
#define LCB_F_SPIN (1U << 0)

/* A lock of the kernel is not free, and the call that the thread is in will sleep until it is. */
SEC("?tp_btf/contention_begin")
int BPF_PROG(iot_lock_wanted, void *lock, unsigned int flags)
{
	struct iot_frame *f;

	if (flags & LCB_F_SPIN)
		return 0;
	f = iot_open_syscall(bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0));
	if (f)
		f->locking = bpf_ktime_get_ns();
	return 0;
}

SEC("?tp_btf/contention_end")
int BPF_PROG(iot_lock_taken, void *lock, int ret)
{
	struct iot_frame *f = iot_open_syscall(bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0));

	if (!f || !f->locking)
		return 0;
	f->locked += bpf_ktime_get_ns() - f->locking;
	f->locking = 0;
	return 0;
}

#endif
