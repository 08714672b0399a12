/* SPDX-License-Identifier: GPL-2.0 */
/* System calls: the hooks, and what a call is about. */
#ifndef IOT_SYSCALL_H
#define IOT_SYSCALL_H

#define IOT_NR_MMAP   9
#define PROT_EXEC     4
#define MAP_ANONYMOUS 0x20

#define IOT_VARIANTS  4 /* rows of one system call */

/*
 * Is the call about the descriptor that a path would start from: newfstatat and its like with an empty path, utimensat with
 * none?
 */
static __always_inline bool iot_without_path(struct iot_spec *s, struct iot_frame *f)
{
	u64 user;
	u8 first;

	if ((s->flags & IOT_S_LIFE) || s->base[0] < 0 || s->path[0] < 0 || (s32)iot_arg(f, s->base[0]) < 0)
		return false;
	user = iot_arg(f, s->path[0]);
	return !user || (!bpf_probe_read_user(&first, sizeof(first), (void *)user) && !first);
}

/* The call is not recorded, and gives its number back. */
static __always_inline void iot_leave_out(struct iot_task *t)
{
	iot_hook_entered(t, 0);
	t->depth--;
	t->seq--;
}

/* The record is about this file. */
static __always_inline void iot_is_about(struct iot_syscall *e, struct inode *inode)
{
	struct iot_file_key key = {};

	iot_key_of(inode, &key);
	e->ino = key.ino;
	e->dev = key.dev;
	e->generation = key.generation;
	e->call.flags |= IOT_F_FILE;
}

/* The file that a call is about; false when it is one that is left out. */
static __always_inline bool iot_about_file(struct iot_frame *f, struct file *file)
{
	struct inode *inode = IOT_READ_FAST(file, f_inode);
	struct iot_file_key key = {};

	if (!iot_file_wanted(inode))
		return false;
	iot_key_of(inode, &key);
	f->file = (u64)file;
	f->ino = key.ino;
	f->dev = key.dev;
	f->generation = key.generation;
	if (IOT_READ_FAST(file, f_flags) & O_DIRECT)
		f->bits |= IOT_F_DIRECT;
	return true;
}

/* Before a call is opened: what is over by now. When it is one that is entered again, the time at which it began. */
__noinline u64 iot_before(struct iot_task *t, u64 ip, u64 sp, u64 id)
{
	u64 start;

	if (!t)
		return 0;
	start = iot_restarted(t, ip, sp, id);
	iot_drop_left(t, sp);
	/* A system call that never came back (its return was missed) must not stay below this one. */
	if (t->depth && iot_frame_at(t, t->depth - 1)->sp == 0)
		iot_give_up(t, bpf_ktime_get_ns());
	iot_drop_dead(t, sp, IOT_MAX_SPECS);
	return start;
}

#define IOT_ROW_NONE	 -1 /* no row is about it */
#define IOT_ROW_EXCLUDED -2

/* Which of the rows of a system call, of which `spec` is the first, this one is, where there are several. */
__noinline int iot_row(struct iot_frame *f, u32 spec)
{
	struct iot_spec *s = iot_spec_of(spec);
	int row;

	if (!f || !s)
		return IOT_ROW_NONE;
	for (u32 i = 0; i < IOT_VARIANTS && (s->flags & IOT_S_ONLY) && !iot_only(s, f); i++) {
		s = s->flags & IOT_S_OTHERWISE ? iot_spec_of(++spec) : NULL;
		if (!s)
			return IOT_ROW_NONE;
	}
	if (!(s->flags & IOT_S_COPIES))
		return spec;
	row = iot_copy_enter(f, s->flags);
	return row < 0 ? IOT_ROW_EXCLUDED : (int)spec + row;
}

/* The file that a call is about, which has no descriptor for its first argument. */
__noinline u64 iot_enters_on(struct iot_spec *s, struct iot_frame *f)
{
	if (!s || !f)
		return 0;
	if (s->flags & IOT_S_MAPPED)
		return (u64)iot_mapped_file(f);
	return iot_without_path(s, f) ? (u64)iot_fd_file(bpf_get_current_task_btf(), iot_arg(f, s->base[0])) : 0;
}

/* Looks at the file that a call is about, and at the time; false when the call is one that is left out. */
__noinline bool iot_enters(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u64 about, u64 start)
{
	struct file *file = (void *)about;

	if (!t || !s || !f)
		return false;
	if ((s->flags & IOT_S_MAPPED) && !file)
		return false;
	if (file && !iot_about_file(f, file)) {
		if (!f->narrow && !iot_cfg.aggregate)
			iot_fuse_enter((u64)file, f->a[1], f->nr, f->seq);
		iot_lost(IOT_LOSS_EXCLUDED, s->layer);
		return false;
	}
	f->start = start ?: bpf_ktime_get_ns();
	if (start)
		iot_waits_on(f, &t->halted.e.call);
	iot_hook_entered(t, start ? 0 : f->start);
	iot_due(t, s, f);
	/* files that nobody opens by a name are sent when they are used */
	if (file && iot_cfg.sockets && iot_streams(IOT_READ(file, f_inode))) {
		t->now = f->start;
		iot_send_file(t, file);
	}
	return true;
}

/* The path of a call that enters, if it is in memory; what is not is read when the call returns. */
__noinline int iot_sends_early(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	if (!t || !s || !f || f->summed)
		return 0;
	t->now = f->start;
	f->present = iot_send_path(t, s, f, 0, -EFAULT);
	return 0;
}

SEC("?tp_btf/sys_enter")
int BPF_PROG(iot_sys_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool is_short = iot_is_short(task);
	struct iot_spec *s;
	struct iot_task *t;
	struct iot_frame *f;
	u64 start = 0, file;
	u16 entry, spec;
	int row;

	if (id == IOT_NR_EXIT_GROUP && !is_short)
		iot_kaio_last();
	/* before the look-up: most mappings are of memory without a file */
	if (id == IOT_NR_MMAP && !is_short && PT_REGS_PARM4_SYSCALL(regs) & MAP_ANONYMOUS)
		return 0;
	entry = iot_entry_of(id, is_short);
	spec = entry & ((1 << IOT_SYSNO_LAYOUT) - 1);
	if (!spec)
		return 0;
	t = iot_self_of(task);
	if (!t)
		return 0;
	s = iot_spec_of(--spec);
	if (!s)
		return 0;
	iot_hook_enters(t, spec, iot_fixed.sys_enter);
	if (t->depth || t->halted.on)
		start = iot_before(t, PT_REGS_IP(regs), PT_REGS_SP(regs), id);
	f = iot_push(t, spec, s);
	if (!f)
		return 0;
	f->sp = 0;
	iot_arguments(f, regs, id, is_short, entry);
	/* mmap, whose flags only now stand where they do in a 64-bit task */
	if (is_short && iot_is_int(&s->handle) && s->handle.a == 4 && f->a[3] & MAP_ANONYMOUS) {
		iot_leave_out(t);
		return 0;
	}
	f->nr = id;
	if ((s->flags & IOT_S_ONLY) || s->flags & IOT_S_COPIES) {
		row = iot_row(f, spec);
		if (row == IOT_ROW_EXCLUDED)
			iot_lost(IOT_LOSS_EXCLUDED, IOT_LAYER_SYSCALL);
		else
			f->spec = row;
		s = row < 0 ? NULL : iot_spec_of(row);
		if (!s) {
			iot_leave_out(t);
			return 0;
		}
	}
	file = s->flags & IOT_S_FD ? (u64)iot_fd_file(task, iot_arg(f, s->handle.a)) : iot_enters_on(s, f);
	if (!iot_enters(t, s, f, file, start)) {
		iot_leave_out(t);
		return 0;
	}
	if (!is_short && id >= IOT_NR_IO_SETUP && id <= IOT_NR_IO_SUBMIT)
		iot_kaio_enter(t, f, id);
	if (s->flags & IOT_S_EARLY)
		iot_sends_early(t, s, f);
	return 0;
}

/* fstat by another name: newfstatat or statx with an empty path. A removed file is still the one that it was. */
static __always_inline bool iot_stat_fd(struct iot_syscall *e, struct iot_spec *s, struct iot_frame *f)
{
	struct file *file;
	u8 first;

	if (s->base[0] < 0 || s->path[0] < 0 || (s32)iot_arg(f, s->base[0]) < 0 ||
	    bpf_probe_read_user(&first, sizeof(first), (void *)iot_arg(f, s->path[0])) || first)
		return false;
	file = iot_fd_file(bpf_get_current_task_btf(), iot_arg(f, s->base[0]));
	if (!file)
		return false;
	iot_is_about(e, IOT_READ(file, f_inode));
	return true;
}

/* The file that the struct stat (or statx) is about which the call has filled in. The generation is not in it. */
__noinline int iot_stat_file(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	u64 user, dev = 0, ino = 0;
	u32 major = 0, minor = 0;
	struct iot_syscall *e;

	if (!t || !s || !f)
		return 0;
	e = &t->made;
	if (iot_stat_fd(e, s, f))
		return 0;
	user = iot_arg(f, s->stat_arg);
	if (s->flags & IOT_S_STATX) {
		/* include/uapi/linux/stat.h: stx_ino at 32, stx_dev_major at 136 */
		if (bpf_probe_read_user(&ino, sizeof(ino), (void *)user + 32) ||
		    bpf_probe_read_user(&major, sizeof(major), (void *)user + 136) ||
		    bpf_probe_read_user(&minor, sizeof(minor), (void *)user + 140))
			return 0;
		e->dev = major << 20 | minor;
	} else {
		/* arch/x86/include/uapi/asm/stat.h: st_dev at 0 (new_encode_dev), st_ino at 8 */
		if (bpf_probe_read_user(&dev, sizeof(dev), (void *)user) ||
		    bpf_probe_read_user(&ino, sizeof(ino), (void *)user + 8))
			return 0;
		e->dev = (dev & 0xfff00) >> 8 << 20 | (dev & 0xff) | (dev >> 12 & 0xfff00);
	}
	e->ino = ino;
	e->generation = 0;
	e->call.flags |= IOT_F_FILE;
	return 0;
}

/* The result is the descriptor of a file, and the call about that; false when the file is one that is left out. */
__noinline bool iot_opened(struct iot_task *t, u32 fd)
{
	struct file *file = iot_fd_file(bpf_get_current_task_btf(), fd);
	struct inode *inode = file ? IOT_READ(file, f_inode) : NULL;

	if (!t || !inode)
		return true;
	if (!iot_file_wanted(inode))
		return false;
	iot_is_about(&t->made, inode);
	if (IOT_READ(file, f_flags) & O_DIRECT)
		t->made.call.flags |= IOT_F_DIRECT;
	iot_send_file(t, file);
	return true;
}

/* What is known of a call when it returns, into the record that is being made; false when it is one that is left out. */
__noinline bool iot_about_what(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret)
{
	u32 fills = IOT_S_STAT | IOT_S_STATX;

	if (!t || !s || !f)
		return false;
	if ((s->flags & IOT_S_FD_RET) && ret >= 0 && !iot_opened(t, ret))
		return false;
	/* a 32-bit task has another struct stat */
	if (iot_is_short(bpf_get_current_task_btf()))
		fills = IOT_S_STATX;
	if (s->flags & fills && !ret && !f->file)
		iot_stat_file(t, s, f);
	return true;
}

/* The innermost call, a system call, has returned: it is sent. */
__noinline int iot_returns(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret)
{
	struct iot_call *c;

	if (!t || !s || !f)
		return 0;
	c = &t->made.call;
	if (f->layout == IOT_L_LONG && !ret)
		bpf_probe_read_user(&ret, sizeof(ret), (void *)f->a[3]);
	if (s->flags & (IOT_S_FD_RET | IOT_S_STAT | IOT_S_STATX) && !iot_about_what(t, s, f, ret)) {
		iot_lost(IOT_LOSS_EXCLUDED, s->layer);
		iot_passes(t, f);
		return 0;
	}
	iot_spent(t, iot_net(c));
	iot_values(t, s, f, ret);
	t->marks = iot_cfg.detail ? iot_marks(t, s, f, t->now) : 0;
	if ((!f->summed || t->marks & IOT_D_SELF) && !((s->flags & IOT_S_EARLY) && f->present))
		iot_paths(t, s, f);
	/* pwritev2 and preadv2 take -1 for the file position */
	if (iot_is_arg(&s->off) && s->len.from == IOT_FROM_VECTOR && c->off == (u64)-1) {
		struct iot_src pos = {.from = IOT_FROM_FILE_POS};

		if (!iot_eval(&pos, f, ret, &c->off))
			c->flags &= ~IOT_F_OFF;
	}
	if (s->flags & IOT_S_COPIES) {
		if (c->off == (u64)-1)
			c->flags &= ~IOT_F_OFF;
		iot_copy_exit(t, f, ret);
	}
	t->issuing = 0;
	if (f->summed) {
		iot_sum_made(t, s, f);
		if (iot_cfg.detail) {
			iot_cache_known(s, f, ret);
			iot_detail(t, s, f, t->marks, t->now);
		}
		return 0;
	}
	if (iot_cfg.aggregate)
		iot_send_inner(t, s, f);
	if (iot_cfg.detail)
		iot_mark(t, f, t->marks, t->now);
	if (iot_send_cache(t, s, f, ret))
		iot_send(iot_call_class(s), s->layer, &t->made, sizeof(t->made));
	return 0;
}

/* The thread executes a program: the call that it does that by has succeeded, and will not be seen to return. */
static __always_inline void iot_executed(struct iot_task *t, u64 now)
{
	struct iot_frame *f;
	struct iot_spec *s;

	if (!t->depth)
		return;
	f = iot_frame_at(t, t->depth - 1);
	s = iot_spec_of(f->spec);
	if (!s || f->sp || !(s->flags & IOT_S_EARLY))
		return;
	iot_pop(t, now);
	iot_returned(t, f, IOT_T_SYSCALL, now);
	t->made.ino = 0;
	t->made.dev = t->made.generation = 0;
	if (!f->present)
		t->made.call.flags |= IOT_F_CUT;
	f->present = 1;
	iot_returns(t, s, f, 0);
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(iot_sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool is_short = iot_is_short(task);
	struct iot_syscall *e;
	struct iot_frame *f;
	struct iot_spec *s;
	struct iot_task *t;
	long id = regs->orig_ax;
	u64 now;

	if (id < 0) {
		iot_handler_returned(regs);
		return 0;
	}
	if (id == IOT_NR_MMAP && !is_short) {
		/* Arguments stay in the registers; a mapping without a file has a negative descriptor. */
		s32 fd = PT_REGS_PARM5_SYSCALL(regs);

		if (fd < 0)
			return 0;
		if (PT_REGS_PARM3_SYSCALL(regs) & PROT_EXEC && (u64)ret < -4095UL && iot_self()) {
			struct file *file = iot_fd_file(task, fd);

			if (file) {
				iot_may_copy_stacks(file);
				iot_mapped(file, false);
			}
		}
	}
	if (!iot_entry_of(id, is_short))
		return 0;
	t = iot_self_of(task);
	if (!t)
		return 0;
	now = bpf_ktime_get_ns();
	if (t->serves && !iot_cfg.aggregate)
		iot_fuse_exit(id, PT_REGS_PARM1_SYSCALL(regs), PT_REGS_PARM2_SYSCALL(regs), ret);
	if (!t->depth)
		return 0;
	f = iot_frame_at(t, t->depth - 1);
	if (f->sp == IOT_SP_KERNEL) {
		iot_leave_kernel(t, now);
		if (!t->depth)
			return 0;
		f = iot_frame_at(t, t->depth - 1);
	}
	if (f->sp != 0 || f->nr != id)
		return 0; /* excluded at entry, or entered before we came */
	s = iot_spec_of(f->spec);
	if (!s)
		return 0;
	iot_pop(t, now);
	e = &t->made;
	iot_returned(t, f, IOT_T_SYSCALL, now);
	e->call.flags |= f->bits;
	e->ino = f->ino;
	e->dev = f->dev;
	e->generation = f->generation;
	if (f->file)
		e->call.flags |= IOT_F_FILE;
	e->call.status = iot_status(s, ret);
	if (iot_interrupted(ret)) {
		iot_values(t, s, f, ret);
		iot_halt(t, s, IOT_READ(regs, ip), IOT_READ(regs, sp), id);
		return 0;
	}
	if (((id >= IOT_NR_IO_SETUP && id <= IOT_NR_IO_SUBMIT) || id == IOT_NR_IO_PGETEVENTS) && !is_short)
		iot_kaio_exit(t, f, id, ret, now);
	iot_returns(t, s, f, ret);
	iot_hook_left(t, f->spec, iot_fixed.sys_leave, now);
	return 0;
}

#endif
