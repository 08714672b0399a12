/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which inode a process has mapped. On a stacked file system (overlayfs) it is another one than the path leads to, and
 * probes go to it: two containers that share a lower directory have two paths to one place.
 */
#ifndef IOT_REAL_H
#define IOT_REAL_H

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern struct task_struct *bpf_task_from_vpid(s32 vpid) __ksym __weak; /* since Linux 6.14 */
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

static __always_inline void iot_real_of(struct file *file, struct iot_real *x)
{
	struct inode *inode = IOT_READ(file, f_inode);
	struct iot_lib written = {};

	if (!inode)
		return;
	iot_last_written(inode, &written);
	x->ino = IOT_READ(inode, i_ino);
	x->dev = IOT_READ(inode, i_sb, s_dev);
	x->generation = IOT_READ(inode, i_generation);
	x->sec = written.sec;
	x->nsec = written.nsec;
	x->found = 1;
}

static long iot_real_found(struct task_struct *task, struct vm_area_struct *vma, struct iot_real *x)
{
	iot_real_of(IOT_READ(vma, vm_file), x);
	return 0;
}

/* Run by user space: of process `pid` the mapping at `address`, or the descriptor `fd`. */
SEC("?syscall")
int iot_real_file(struct iot_real *ctx)
{
	struct task_struct *task;
	struct iot_real x = {};

	if (!iot_cfg.pid_level)
		task = bpf_task_from_pid(ctx->pid);
	else if (bpf_ksym_exists(bpf_task_from_vpid))
		task = bpf_task_from_vpid(ctx->pid);
	else
		return 0;
	if (!task)
		return 0;
	if (ctx->fd >= 0)
		iot_real_of(iot_fd_file(task, ctx->fd), &x);
	else
		bpf_find_vma(task, ctx->address, iot_real_found, &x, 0);
	bpf_task_release(task);
	ctx->ino = x.ino;
	ctx->dev = x.dev;
	ctx->generation = x.generation;
	ctx->sec = x.sec;
	ctx->nsec = x.nsec;
	ctx->found = x.found;
	return 0;
}

#endif
