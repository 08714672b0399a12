/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Values of a call, as a row of the catalog describes them (struct iot_src): a start, pointers to follow from there, and
 * something to join the result with. Which functions need what is the catalog's affair.
 */
#ifndef IOT_VALUE_H
#define IOT_VALUE_H

#define IOT_IOV_MAX  1024 /* UIO_MAXIOV, include/uapi/linux/uio.h */
#define IOT_PAGE_ONE 4096 /* addresses below it are no pointers: NULL, MPI_STATUS_IGNORE */

static __always_inline u64 iot_arg(struct iot_frame *f, u8 i)
{
	return i < IOT_ARGS ? f->a[i] : 0;
}

/* The value of a source that needs nothing but the frame. */
static __always_inline bool iot_is_arg(struct iot_src *src)
{
	return src->from == IOT_FROM_ARG && !src->then;
}

static __always_inline bool iot_is_int(struct iot_src *src)
{
	return src->from == IOT_FROM_ARG && src->then == IOT_THEN_INT;
}

static __always_inline bool iot_is_result(struct iot_src *src)
{
	return src->from == IOT_FROM_RET && !(src->then & IOT_STEPS);
}

struct iot_iov {
	u64 base;
	u64 count;
	u64 sum;
	u32 bad;
	u32 narrow; /* pointers and lengths of 32 bits */
};

static long iot_iov_step(u64 i, struct iot_iov *v)
{
	struct iovec one = {};

	if (i >= v->count)
		return 1;
	if (v->narrow) {
		u32 length = 0;

		v->bad = !!bpf_probe_read_user(&length, sizeof(length), (void *)(v->base + i * 8 + 4));
		v->sum += length;
		return v->bad;
	}
	if (bpf_probe_read_user(&one, sizeof(one), (void *)(v->base + i * sizeof(one)))) {
		v->bad = 1;
		return 1;
	}
	v->sum += one.iov_len;
	return 0;
}

static __noinline bool iot_iov_sum(u64 base, u64 count, u64 *sum, u32 narrow)
{
	struct iot_iov v = {.base = base, .count = count, .narrow = narrow};

	if (!sum)
		return false;
	bpf_loop(IOT_IOV_MAX, iot_iov_step, &v, 0);
	*sum = v.sum;
	return !v.bad && count <= IOT_IOV_MAX;
}

/* The same of the vector in a message: msg_iov and msg_iovlen behind msg_name and msg_namelen (include/linux/socket.h). */
static __always_inline bool iot_message_sum(u64 message, u64 *sum, u32 narrow)
{
	u64 at[2] = {};
	u32 half[2];

	if (narrow) {
		if (bpf_probe_read_user(half, sizeof(half), (void *)(message + 8)))
			return false;
		at[0] = half[0];
		at[1] = half[1];
	} else if (bpf_probe_read_user(at, sizeof(at), (void *)(message + 16))) {
		return false;
	}
	return iot_iov_sum(at[0], at[1], sum, narrow);
}

/* What a call inside this one gave. */
static __always_inline bool iot_inner_value(struct iot_frame *f, u8 i, u64 *out)
{
	if (i >= IOT_INNER_PER_CALL || !(f->present & 1 << i))
		return false;
	*out = f->inner_value[i];
	return true;
}

static __always_inline bool iot_strlen(u64 string, u64 *out)
{
	struct iot_scratch *s = iot_scratch();
	long n = s ? bpf_probe_read_user_str(s->bytes, IOT_TEXT_MAX, (void *)string) : -1;

	*out = n - 1;
	return n > 0 && n != IOT_TEXT_MAX;
}

static __always_inline bool iot_file_pos(struct iot_frame *f, s64 ret, u64 *out)
{
	struct file *file = (void *)f->file;

	if (!file || iot_streams(IOT_READ_FAST(file, f_inode)))
		return false;
	*out = IOT_READ_FAST(file, f_pos) - (ret > 0 ? ret : 0);
	return true;
}

static __always_inline bool iot_cloexec(u32 fd, u64 *out)
{
	struct fdtable *fdt = iot_fdtable(bpf_get_current_task_btf());
	u64 bits = 0;

	if (!fdt || fd >= IOT_OF_FDTABLE(fdt, max_fds) ||
	    bpf_probe_read_kernel(&bits, sizeof(bits), IOT_OF_FDTABLE(fdt, close_on_exec) + fd / 64))
		return false;
	*out = bits >> (fd & 63) & 1;
	return true;
}

/* What the argument points at that a handle is read from. */
static __always_inline bool iot_read_in(struct iot_spec *s, struct iot_frame *f, u64 *out)
{
	u32 size = s->handle.then & IOT_THEN_INT ? sizeof(u32) : sizeof(u64);

	if (bpf_probe_read_user(out, size, (void *)iot_arg(f, s->handle.a)))
		return false;
	if (s->handle.then & IOT_THEN_INT)
		*out = (s64)(s32)*out;
	return true;
}

/* What a value starts from. */
static __always_inline bool iot_start(struct iot_src *src, struct iot_frame *f, s64 ret, u64 *out)
{
	switch (src->from) {
	case IOT_FROM_ARG:
		*out = iot_arg(f, src->a);
		return true;
	case IOT_FROM_RET:
		*out = ret;
		return true;
	case IOT_FROM_IN:
	case IOT_FROM_GLOBAL:
		*out = f->in;
		return f->in != 0;
	case IOT_FROM_INNER:
		return iot_inner_value(f, src->a, out);
	case IOT_FROM_CONST:
		*out = src->k;
		return true;
	case IOT_FROM_ROUNDS:
		*out = f->sum;
		return !f->present && f->rounds == iot_arg(f, src->a);
	case IOT_FROM_STRLEN:
		if (!iot_strlen(iot_arg(f, src->a), out))
			return false;
		*out += src->k;
		return true;
	case IOT_FROM_VECTOR:
		return iot_iov_sum(iot_arg(f, src->a), iot_arg(f, src->b), out, f->narrow);
	case IOT_FROM_MESSAGE:
		return iot_message_sum(iot_arg(f, src->a), out, f->narrow);
	case IOT_FROM_FILE_POS:
		return iot_file_pos(f, ret, out);
	case IOT_FROM_STREAM_POS:
		*out = f->pos;
		return f->pos >= 0;
	case IOT_FROM_STREAM_END:
		*out = f->end;
		return f->end >= 0;
	case IOT_FROM_STREAM_MOVED:
		*out = f->end - f->pos;
		return f->pos >= 0 && f->end >= f->pos;
	case IOT_FROM_CLOEXEC:
		return iot_cloexec(src->b ? ret : iot_arg(f, 0), out);
	}
	return false;
}

/* Follows pointers from there, and takes as much of what they lead to as it has. */
static __always_inline bool iot_follow(struct iot_src *src, u64 *out)
{
	u32 then = src->then;
	u64 v = *out, read = 0;

	if (then & IOT_THEN_AGAIN) {
		if (v < IOT_PAGE_ONE || bpf_probe_read_user(&read, sizeof(read), (void *)(v + src->k)))
			return false;
		v = read + src->at;
	} else {
		v += src->k;
	}
	if (then & IOT_THEN_READ) {
		read = 0;
		if (v < IOT_PAGE_ONE ||
		    bpf_probe_read_user(&read, then & IOT_THEN_INT ? sizeof(u32) : sizeof(u64), (void *)v))
			return false;
		*out = read;
	}
	if (then & IOT_THEN_INT)
		*out = (s64)(s32)*out;
	/* the low 32 bits, then the rest above a bit that means "cancelled" (MPICH, mpi.h) */
	if (then & IOT_THEN_SPLIT)
		*out = (u32)*out | *out >> 33 << 32;
	return true;
}

/* Joins it with another value. */
static __always_inline bool iot_join(struct iot_src *src, struct iot_frame *f, u64 *out)
{
	u32 join = src->then & IOT_JOINS, number = 0;
	u64 v = iot_arg(f, src->b);

	switch (join) {
	case IOT_TIMES_ARG:
		break;
	case IOT_TIMES_CONST:
		v = src->k;
		break;
	case IOT_TIMES_INNER:
		if (!iot_inner_value(f, src->b, &v))
			return false;
		break;
	case IOT_TIMES_FIELD:
	case IOT_TIMES_TYPE:
	case IOT_TIMES_MPI:
		/* builtin handles have 0x4c in the high byte, and their size in the second (MPICH, mpi.h) */
		if (join != IOT_TIMES_FIELD && (u32)v >> 24 == 0x4c && (join == IOT_TIMES_TYPE || !(v >> 32)))
			v = v >> 8 & 0xff;
		else if (join == IOT_TIMES_TYPE || bpf_probe_read_user(&v, sizeof(v), (void *)(v + src->k)))
			return false;
		*out *= v;
		return v || join != IOT_TIMES_MPI; /* MPI_DATATYPE_NULL has no size */
	case IOT_BELOW_ARG:
		*out = (u32)*out | v << 32;
		return true;
	case IOT_BELOW_INNER:
		v = iot_inner_value(f, src->b, &v) ? v + 1 : 0;
		*out = (u32)*out | v << 32;
		return true;
	case IOT_BELOW_OUT:
		if (!v || bpf_probe_read_user(&number, sizeof(number), (void *)v))
			number = 0;
		*out = (u16)*out | (u64)number << 16;
		return true;
	}
	*out *= v;
	return true;
}

/*
 * The value of a source at return; false when the call has none or it cannot be read. Not static: the verifier looks at
 * such a function once and not again for every call, of which older kernels would have too much.
 */
__noinline bool iot_eval(struct iot_src *src, struct iot_frame *f, s64 ret, u64 *out)
{
	if (!src || !f || !out || !iot_start(src, f, ret, out))
		return false;
	if (src->then & IOT_STEPS && !iot_follow(src, out))
		return false;
	return !(src->then & IOT_JOINS) || iot_join(src, f, out);
}

/* The same, without a call for those that most calls have. */
static __always_inline bool iot_value_of(struct iot_src *src, struct iot_frame *f, s64 ret, u64 *out)
{
	u8 from = src->from;

	if (from == IOT_FROM_NOTHING)
		return false;
	if (from > IOT_FROM_RET || src->then & ~IOT_THEN_INT)
		return iot_eval(src, f, ret, out);
	*out = from == IOT_FROM_ARG ? iot_arg(f, src->a) : (u64)ret;
	if (src->then)
		*out = (s64)(s32)*out;
	return true;
}

#endif
