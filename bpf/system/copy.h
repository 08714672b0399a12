/* SPDX-License-Identifier: GPL-2.0 */
/* System calls that move data from one file to another: a call that writes, and its half that reads. */
#ifndef IOT_COPY_H
#define IOT_COPY_H

/* Rows behind that of the call. */
#define IOT_COPY_FROM 1 /* what it writes to is not recorded */
#define IOT_COPY_HALF 2 /* the half that reads */

/* Where a call begins in a file: at the offset that it points at, or at the file position. -1: it has no offset. */
static __always_inline u64 iot_copy_at(struct file *file, u64 user, u32 bytes)
{
	u64 at = 0;

	if (!file || iot_streams(IOT_READ(file, f_inode)))
		return -1;
	if (!user)
		return IOT_READ(file, f_pos);
	if (bytes == sizeof(u32)) {
		u32 low = 0;

		bpf_probe_read_user(&low, sizeof(low), (void *)user);
		return low;
	}
	bpf_probe_read_user(&at, sizeof(at), (void *)user);
	return at;
}

/*
 * Puts the arguments in one order: destination, its offset, source, its offset, length. Which of the rows it is: -1 when
 * neither file is recorded.
 */
__noinline int iot_copy_enter(struct iot_frame *f, u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 in, in_at = 0, out, out_at = 0, len;
	struct file *from, *to;
	bool reads, writes;

	if (!f)
		return -1;
	if (flags & IOT_S_RANGES) {
		in = f->a[0];
		in_at = f->a[1];
		out = f->a[2];
		out_at = f->a[3];
		len = f->a[4];
	} else if (flags & IOT_S_SEND) {
		out = f->a[0];
		in = f->a[1];
		in_at = f->a[2];
		len = f->a[3];
	} else {
		in = f->a[0];
		out = f->a[1];
		len = f->a[2];
	}
	from = iot_fd_file(task, in);
	to = iot_fd_file(task, out);
	f->a[0] = out;
	f->a[1] = iot_copy_at(to, out_at, sizeof(u64));
	f->a[2] = in;
	f->a[3] = iot_copy_at(from, in_at, f->layout == IOT_L_SHORT ? sizeof(u32) : sizeof(u64));
	f->a[4] = len;
	reads = from && iot_file_wanted(IOT_READ(from, f_inode));
	writes = to && iot_file_wanted(IOT_READ(to, f_inode));
	if (reads && !writes)
		return IOT_COPY_FROM;
	if (reads) {
		struct iot_file_key key = {};

		iot_key_of(IOT_READ(from, f_inode), &key);
		f->inner_value[0] = key.ino;
		f->inner_value[1] = (u64)key.generation << 32 | key.dev;
		f->copies = 1;
	}
	return writes || (!from && !to) ? 0 : -1;
}

/* Adds it up instead. */
static __always_inline int iot_sum_half(struct iot_task *t, struct iot_frame *f, struct iot_operation *e)
{
	struct iot_spec *s = iot_spec_of(f->spec + IOT_COPY_HALF);
	struct iot_summing *m = &t->sum;

	if (!s)
		return 0;
	iot_summing_call(m, t, f->spec + IOT_COPY_HALF);
	iot_sum_file(m, e->ino, e->dev, e->generation);
	iot_sum(m, s, &e->call);
	return 0;
}

/* Sends the reading half of a call: an operation that ends with it. */
__noinline int iot_copy_exit(struct iot_task *t, struct iot_frame *f, s64 ret)
{
	struct iot_operation e = {};

	if (!t || !f || !f->copies || ret <= 0)
		return 0;
	iot_fill(&e.call, IOT_T_OPERATION, t, f, f->depth + 1, t->now);
	e.call.spec += IOT_COPY_HALF;
	e.call.seq = t->seq++;
	e.call.flags = IOT_F_HANDLE | IOT_F_LEN | IOT_F_GOT | IOT_F_FILE;
	e.call.handle = (s64)(s32)f->a[2];
	e.call.len = f->a[4];
	e.call.got = ret;
	e.call.off = f->a[3];
	if (e.call.off != (u64)-1)
		e.call.flags |= IOT_F_OFF;
	e.ino = f->inner_value[0];
	e.dev = (u32)f->inner_value[1];
	e.generation = f->inner_value[1] >> 32;
	e.seen = t->now;
	e.of = f->seq;
	e.in_call = 1;
	if (f->summed)
		return iot_sum_half(t, f, &e);
	iot_send(IOT_C_CALL, IOT_LAYER_SYSCALL, &e, sizeof(e));
	return 0;
}

#endif
