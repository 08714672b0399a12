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

static long iot_real_found(struct task_struct *task, struct vm_area_struct *vma, struct iot_real *x)
{
	struct inode *inode = IOT_READ(vma, vm_file, f_inode);

	if (!inode)
		return 0;
	x->ino = IOT_READ(inode, i_ino);
	x->dev = IOT_READ(inode, i_sb, s_dev);
	x->generation = IOT_READ(inode, i_generation);
	x->found = 1;
	return 0;
}

/* Run by user space: of process `pid` the mapping at `address`. */
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
	bpf_find_vma(task, ctx->address, iot_real_found, &x, 0);
	bpf_task_release(task);
	ctx->ino = x.ino;
	ctx->dev = x.dev;
	ctx->generation = x.generation;
	ctx->found = x.found;
	return 0;
}

#endif
