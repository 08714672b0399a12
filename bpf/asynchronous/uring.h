/* SPDX-License-Identifier: GPL-2.0 */
/* io_uring: requests from submission to completion, whichever thread carries them out. */
#ifndef IOT_URING_H
#define IOT_URING_H

/* include/uapi/linux/io_uring.h */
#define IOSQE_FIXED_FILE	(1U << 0)
#define IOSQE_IO_LINK		(1U << 2)
#define IOSQE_IO_HARDLINK	(1U << 3)
#define IOSQE_ASYNC		(1U << 4)
#define IOSQE_BUFFER_SELECT	(1U << 5)
#define IORING_SETUP_SQE128	(1U << 10)
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#define PF_IO_WORKER		0x10	  /* include/linux/sched.h */
#define RENAME_EXCHANGE		(1U << 1) /* include/uapi/linux/fs.h: no name becomes another one then */

/* Opcode of a request -> row of the catalog + 1. */
const volatile u16 iot_uring_rows[IOT_OPCODES] = {};

struct iot_overflow_key {
	u64 ring;
	u64 name;
};

struct iot_overflow {
	s64 result;
	u64 at;
};

/* Completions that the ring had no room for. The kernel identifies them by the program's user_data, not by request. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct iot_overflow_key);
	__type(value, struct iot_overflow);
} iot_overflows SEC(".maps");

/* The entry of the submission queue that the kernel has taken out last (io_get_sqe of io_uring/io_uring.c). */
static __always_inline struct io_uring_sqe *iot_last_sqe(struct io_ring_ctx *ring)
{
	u32 entries = IOT_READ(ring, sq_entries), at = IOT_READ(ring, cached_sq_head) - 1;
	u32 flags = IOT_READ(ring, flags);
	u32 *array = IOT_READ(ring, sq_array);

	at &= entries - 1;
	if (!(flags & IORING_SETUP_NO_SQARRAY) && bpf_probe_read_kernel(&at, sizeof(at), array + at))
		return NULL;
	if (flags & IORING_SETUP_SQE128)
		at <<= 1;
	return (void *)IOT_READ(ring, sq_sqes) + (u64)at * sizeof(struct io_uring_sqe);
}

/* A request whose end was not seen: its completion found no room, or the program asked for none on success. */
static __noinline void iot_uring_unseen(struct iot_op_key *key, u64 now)
{
	struct iot_end end = {.at = now, .seen = now, .off = -1, .unfinished = 1};
	struct iot_overflow_key over = {};
	struct iot_overflow *overflow;
	struct iot_op *op;

	if (!key)
		return;
	op = bpf_map_lookup_elem(&iot_ops, key);
	if (!op)
		return;
	over.ring = op->ring;
	over.name = op->name;
	overflow = op->ring ? bpf_map_lookup_elem(&iot_overflows, &over) : NULL;
	if (overflow) {
		end.unfinished = 0;
		end.result = overflow->result;
		end.at = overflow->at;
		bpf_map_delete_elem(&iot_overflows, &over);
	}
	iot_op_end(key, &end);
}

/* The paths of a request. What a call would be given stands in its entry: the first free place of the stack is the frame. */
static __noinline int iot_uring_paths(struct iot_task *t, struct iot_spec *s, struct iot_op *op,
				      struct io_uring_sqe *sqe)
{
	struct iot_frame *f;

	if (!t || !s || !op || !sqe || t->depth >= IOT_DEPTH)
		return 0;
	f = iot_frame_at(t, t->depth);
	f->seq = op->seq;
	f->file = 0;
	f->a[0] = (s64)sqe->fd;
	f->a[1] = sqe->addr;
	f->a[2] = (s64)(s32)sqe->len;
	f->a[3] = sqe->off;
	t->now = op->start;
	for (u32 i = 0; i < 2; i++)
		if (s->path[i] >= 0 && !(i && sqe->rename_flags & RENAME_EXCHANGE) && !iot_send_path(t, s, f, i, 0))
			op->flags |= IOT_F_CUT;
	return 0;
}

static __always_inline int iot_uring_begin(struct io_kiocb *req, struct io_uring_sqe *from)
{
	struct iot_op_key key = {.object = (u64)req};
	struct io_uring_sqe sqe;
	struct iot_op op = {};
	struct iot_spec *s;
	struct iot_task *t;
	u16 row;

	t = iot_self();
	if (!t)
		return 0;
	t->issuing = 0;
	if (bpf_map_lookup_elem(&iot_ops, &key))
		iot_uring_unseen(&key, bpf_ktime_get_ns());
	if (!from || bpf_probe_read_kernel(&sqe, sizeof(sqe), from)) {
		iot_lost(IOT_LOSS_TEXT, IOT_LAYER_SYSCALL);
		return 0;
	}
	row = iot_uring_rows[sqe.opcode & (IOT_OPCODES - 1)];
	/* Links: this one, and the one after it, are not carried out now. */
	if (!t->linked && !(sqe.flags & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK | IOSQE_ASYNC)))
		t->issuing = (u64)req;
	t->linked = sqe.flags & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK);
	if (!row || sqe.opcode >= IOT_OPCODES) {
		t->issuing = 0;
		iot_lost(IOT_LOSS_EXCLUDED, IOT_LAYER_SYSCALL);
		return 0;
	}
	s = iot_spec_of(--row);
	if (!s)
		return 0;
	op.slot = s->flags & IOT_S_LIFE && sqe.file_index;
	if (iot_is_int(&s->handle) && !op.slot) {
		if (!(sqe.flags & IOSQE_FIXED_FILE)) {
			struct file *file = iot_fd_file(bpf_get_current_task_btf(), sqe.fd);

			if (file && !iot_op_file(&op, file)) {
				iot_lost(IOT_LOSS_EXCLUDED, IOT_LAYER_SYSCALL);
				return 0;
			}
			op.handle = (s64)sqe.fd;
			op.flags |= IOT_F_HANDLE;
		}
	}
	iot_op_head(&op, t, row);
	op.ring = (u64)IOT_READ(req, ctx);
	op.name = sqe.user_data;
	if (s->off.from) {
		/* of ftruncate this is the size */
		op.off = sqe.off;
		op.flags |= IOT_F_OFF;
	}
	/* those of one that is summed up would be left over */
	if (s->path[0] >= 0 && !(iot_cfg.aggregate && s->sums))
		iot_uring_paths(t, s, &op, &sqe);
	if (iot_is_int(&s->len)) { /* fallocate has it where others have the buffer */
		op.len = sqe.addr;
		op.flags |= IOT_F_LEN;
	} else if (s->len.from == IOT_FROM_ARG) { /* a buffer that the kernel chooses may have any length */
		op.len = sqe.len;
		if (sqe.len || !(sqe.flags & IOSQE_BUFFER_SELECT))
			op.flags |= IOT_F_LEN;
	} else if (s->len.from == IOT_FROM_VECTOR) {
		op.flags |= iot_iov_sum(sqe.addr, sqe.len, &op.len, 0) ? IOT_F_LEN : IOT_F_CUT;
	}
	if (bpf_map_update_elem(&iot_ops, &key, &op, BPF_ANY))
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_SYSCALL);
	else
		iot_pending_begins(&op, s);
	return 0;
}

SEC("?tp_btf/io_uring_submit_req")
int BPF_PROG(iot_uring_submit_req, struct io_kiocb *req)
{
	return iot_uring_begin(req, iot_last_sqe(IOT_READ(req, ctx)));
}

/* The same before Linux 6.3. */
SEC("?tp_btf/io_uring_submit_sqe")
int BPF_PROG(iot_uring_submit_sqe, struct io_kiocb *req)
{
	return iot_uring_begin(req, iot_last_sqe(IOT_READ(req, ctx)));
}

/* One that the kernel does not even begin with; its completion follows. */
SEC("?tp_btf/io_uring_req_failed")
int BPF_PROG(iot_uring_req_failed, struct io_uring_sqe *sqe, struct io_kiocb *req)
{
	return iot_uring_begin(req, sqe);
}

SEC("?tp_btf/io_uring_complete")
int BPF_PROG(iot_uring_complete, void *ring, struct io_kiocb *req)
{
	struct iot_op_key key = {.object = (u64)req};
	struct iot_end end = {.off = -1};
	struct iot_op *op;
	struct file *file;
	struct iot_task *t;
	struct iot_spec *s;

	op = bpf_map_lookup_elem(&iot_ops, &key);
	s = op ? iot_spec_of(op->spec) : NULL;
	if (!s)
		return 0;
	t = iot_self();
	if (t && t->issuing == key.object)
		t->issuing = 0;
	end.at = end.seen = bpf_ktime_get_ns();
	end.result = IOT_READ(req, cqe.res);
	if (iot_is_int(&s->handle) && !op->slot && !(op->flags & IOT_F_FILE)) {
		/* registered, or found when its turn came */
		file = IOT_READ(req, file);
		if (file && !iot_op_file(op, file)) {
			iot_lost(IOT_LOSS_EXCLUDED, IOT_LAYER_SYSCALL);
			iot_op_drop(&key);
			return 0;
		}
	} else if (iot_is_result(&s->handle) && !op->slot && end.result >= 0 && t && t->process == op->process) {
		file = iot_fd_file(bpf_get_current_task_btf(), end.result);
		if (file && iot_op_file(op, file)) {
			t->now = end.at;
			iot_send_file(t, file);
		}
	}
	/* At the file position: the kernel has written down which. struct io_rw (io_uring/rw.c) begins with it. */
	if (s->got.from && op->off == (u64)-1 && end.result >= 0)
		end.off = IOT_READ((struct kiocb *)req, ki_pos) - end.result;
	iot_found_by(&end.by, op->process);
	iot_op_end(&key, &end);
	return 0;
}

SEC("?tp_btf/io_uring_cqe_overflow")
int BPF_PROG(iot_uring_overflow, void *ring, unsigned long long name, s32 result)
{
	struct iot_overflow_key key = {.ring = (u64)ring, .name = name};
	struct iot_overflow value = {.result = result, .at = bpf_ktime_get_ns()};

	if (iot_self())
		bpf_map_update_elem(&iot_overflows, &key, &value, BPF_ANY);
	return 0;
}

/* What the thread does from now on is not for the request that it began last. */
SEC("?tp_btf/io_uring_cqring_wait")
int BPF_PROG(iot_uring_wait)
{
	struct iot_task *t = iot_self();

	if (t)
		t->issuing = 0;
	return 0;
}

static long iot_sweep_step(struct bpf_map *map, struct iot_op_key *key, struct iot_op *op, struct iot_sweep *x)
{
	struct iot_op_key copy = *key; /* its own place is taken out with it */

	if (op->process == x->process && (!x->context || copy.context == x->context))
		iot_uring_unseen(&copy, x->now);
	return 0;
}

/* Ends what a process, or one of its contexts, has submitted and that will not be seen to complete. */
static __noinline void iot_sweep(u32 process, u64 context)
{
	struct iot_sweep x = {.process = process, .context = context, .now = bpf_ktime_get_ns()};

	if (bpf_map_lookup_elem(&iot_submitters, &process))
		bpf_for_each_map_elem(&iot_ops, iot_sweep_step, &x, 0);
}

#endif
