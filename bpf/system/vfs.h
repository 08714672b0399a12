/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's own layers: functions of the virtual file system and of file systems, called by traced system calls. */
#ifndef IOT_VFS_H
#define IOT_VFS_H

/* Which file a kernel function is about, and which part of it. */
__noinline int iot_about(struct iot_spec *s, struct iot_frame *f)
{
	struct dentry *dentry = NULL;
	struct inode *inode = NULL;
	struct iov_iter *iter = NULL;
	struct iot_file_key key = {};
	struct file *file = NULL;
	u64 from = 0, len = 0;
	bool known = false;

	if (!s || !f)
		return 0;
	switch (s->about) {
	case IOT_ABOUT_FILE:
		file = (void *)f->a[0];
		break;
	case IOT_ABOUT_BUFFER:
		file = (void *)f->a[0];
		len = f->a[2];
		known = !bpf_probe_read_kernel(&from, sizeof(from), (void *)f->a[3]);
		break;
	case IOT_ABOUT_ITER:
		file = (void *)f->a[0];
		iter = (void *)f->a[1];
		known = !bpf_probe_read_kernel(&from, sizeof(from), (void *)f->a[2]);
		break;
	case IOT_ABOUT_KIOCB: {
		struct kiocb *io = (void *)f->a[0];

		file = IOT_READ_FAST(io, ki_filp);
		iter = (void *)f->a[1];
		from = IOT_READ_FAST(io, ki_pos);
		known = true;
		break;
	}
	case IOT_ABOUT_PATH: {
		struct path *path = (void *)f->a[0];

		dentry = IOT_READ_FAST(path, dentry);
		break;
	}
	case IOT_ABOUT_DENTRY:
		dentry = (void *)f->a[1];
		break;
	case IOT_ABOUT_ENTRY:
		dentry = (void *)f->a[2];
		break;
	}
	if (iter)
		len = IOT_READ_FAST(iter, count);
	if (file) {
		inode = IOT_READ_FAST(file, f_inode);
		if (IOT_READ_FAST(file, f_flags) & O_DIRECT)
			f->bits |= IOT_F_DIRECT;
	} else if (dentry) {
		inode = IOT_READ_FAST(dentry, d_inode);
	}
	if (inode) {
		iot_key_of(inode, &key);
		f->file = (u64)inode;
		f->ino = key.ino;
		f->dev = key.dev;
		f->generation = key.generation;
	}
	if (known) {
		f->from = from;
		f->to = from + len;
		f->range = IOT_RANGE_KNOWN;
	}
	return 0;
}

static __always_inline int iot_kernel_enter(struct pt_regs *ctx, u64 spec)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	struct iot_frame *f;
	struct iot_spec *s;

	if (!t || !t->depth)
		return 0;
	f = iot_frame_at(t, t->depth - 1);
	if (f->sp && f->sp != IOT_SP_KERNEL)
		return 0; /* not in a system call that is recorded */
	s = iot_spec_of(spec);
	if (!s)
		return 0;
	iot_hook_enters(t, spec, 0);
	f = iot_push(t, spec, s);
	if (!f)
		return 0;
	f->sp = IOT_SP_KERNEL;
	f->a[0] = PT_REGS_PARM1(ctx);
	f->a[1] = PT_REGS_PARM2(ctx);
	f->a[2] = PT_REGS_PARM3(ctx);
	f->a[3] = PT_REGS_PARM4(ctx);
	f->a[4] = PT_REGS_PARM5(ctx);
	f->a[5] = PT_REGS_PARM6(ctx);
	iot_about(s, f);
	f->start = bpf_ktime_get_ns();
	iot_hook_entered(t, f->start);
	iot_due(t, s, f);
	return 0;
}

/* The innermost call, of a kernel function, has returned. */
__noinline int iot_kernel_finish(struct iot_task *t, s64 ret, u64 now)
{
	struct iot_syscall *e;
	struct iot_frame *f;
	struct iot_spec *s;
	u32 marks;
	u64 time;

	if (!t || !t->depth)
		return 0;
	e = &t->made;
	iot_pop(t, now);
	f = iot_frame_at(t, t->depth);
	s = iot_spec_of(f->spec);
	if (!s)
		return 0;
	if (s->about == IOT_ABOUT_OPENED && (u64)ret < (u64)-4095) {
		struct file *file = (void *)ret;
		struct inode *inode = IOT_READ(file, f_inode);
		struct iot_file_key key = {};

		if (!iot_file_wanted(inode)) { /* nor is the system call recorded, which counts it */
			if (t->seq == f->seq + 1)
				t->seq--;
			iot_passes(t, f);
			return 0;
		}
		iot_key_of(inode, &key);
		f->file = ret;
		f->ino = key.ino;
		f->dev = key.dev;
		f->generation = key.generation;
		ret = 0;
	}
	iot_returned(t, f, IOT_T_SYSCALL, now);
	iot_spent(t, iot_net(&e->call));
	e->call.flags |= f->bits;
	if (f->file)
		e->call.flags |= IOT_F_FILE;
	e->ino = f->ino;
	e->dev = f->dev;
	e->generation = f->generation;
	e->call.status = iot_status(s, ret);
	if (iot_eval(&s->len, f, ret, &e->call.len))
		e->call.flags |= IOT_F_LEN;
	if (iot_eval(&s->off, f, ret, &e->call.off))
		e->call.flags |= IOT_F_OFF;
	if (f->range == IOT_RANGE_KNOWN) {
		e->call.off = f->from;
		e->call.len = f->to - f->from;
		e->call.flags |= IOT_F_OFF | IOT_F_LEN;
	}
	if (e->call.status >= 0 && iot_eval(&s->got, f, ret, &e->call.got))
		e->call.flags |= IOT_F_GOT;
	marks = iot_cfg.detail ? iot_marks(t, s, f, now) : 0;
	if (f->summed) {
		struct iot_summing *m = &t->sum;

		iot_summing_call(m, t, f->spec);
		if (f->file)
			iot_sum_file(m, e->ino, e->dev, e->generation);
		time = iot_net(&e->call);
		m->own = time > f->inner ? time - f->inner : 0;
		m->nested = f->nested;
		iot_sum(m, s, &e->call);
		return iot_cfg.detail ? iot_detail(t, s, f, marks, now) : 0;
	}
	if (iot_cfg.aggregate)
		iot_send_inner(t, s, f);
	if (iot_cfg.detail)
		iot_mark(t, f, marks, now);
	iot_send(iot_call_class(s), s->layer, e, sizeof(*e));
	return 0;
}

static __always_inline int iot_kernel_return(struct pt_regs *ctx, u64 spec)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	u64 now = bpf_ktime_get_ns();
	struct iot_frame *f;
	u32 i;

	if (!t || !t->depth)
		return 0;
	for (i = 0; i < IOT_KERNEL_DEPTH; i++) {
		f = iot_frame_at(t, t->depth - 1 - i);
		if (i >= t->depth || f->sp != IOT_SP_KERNEL)
			return 0; /* not recorded at entry */
		if (f->spec == spec)
			break;
	}
	if (i == IOT_KERNEL_DEPTH)
		return 0;
	if (i) /* returns inside it were missed */
		iot_flush(t, t->depth - i, now);
	iot_kernel_finish(t, PT_REGS_RC(ctx), now);
	iot_hook_left(t, spec, 0, now);
	return 0;
}

/* A system call returns while functions inside it seem to be open: their returns were missed. */
__noinline int iot_leave_kernel(struct iot_task *t, u64 now)
{
	if (!t)
		return 0;
	for (u32 i = 0; i < IOT_KERNEL_DEPTH && t->depth; i++) {
		if (iot_frame_at(t, t->depth - 1)->sp != IOT_SP_KERNEL)
			break;
		iot_flush(t, t->depth - 1, now);
	}
	return 0;
}

SEC("?kprobe.multi")
int iot_kprobe_multi(struct pt_regs *ctx)
{
	return iot_kernel_enter(ctx, bpf_get_attach_cookie(ctx));
}

SEC("?kretprobe.multi")
int iot_kretprobe_multi(struct pt_regs *ctx)
{
	return iot_kernel_return(ctx, bpf_get_attach_cookie(ctx));
}

SEC("?kprobe")
int iot_kprobe(struct pt_regs *ctx)
{
	return iot_kernel_enter(ctx, bpf_get_attach_cookie(ctx));
}

SEC("?kretprobe")
int iot_kretprobe(struct pt_regs *ctx)
{
	return iot_kernel_return(ctx, bpf_get_attach_cookie(ctx));
}

#endif
