/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libaio: the kernel has no tracepoints for it. Operations are read from the program's control blocks when it submits them,
 * and their results where the program reads them: from what io_getevents gave it, or from the ring that it shares with the
 * kernel.
 */
#ifndef IOT_KAIO_H
#define IOT_KAIO_H

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define IOT_NR_IO_SETUP	     206
#define IOT_NR_IO_DESTROY    207
#define IOT_NR_IO_GETEVENTS  208
#define IOT_NR_IO_SUBMIT     209
#define IOT_NR_EXIT_GROUP    231
#define IOT_NR_IO_PGETEVENTS 333

#define IOT_AIO_MAX    65536	  /* as many as there is room for */
#define AIO_RING_MAGIC 0xa10a10a1 /* fs/aio.c */

/* Opcode of a control block -> row of the catalog + 1. */
const volatile u16 iot_aio_rows[IOT_OPCODES] = {};

/* include/uapi/linux/aio_abi.h: struct iocb, struct io_event; fs/aio.c: struct aio_ring. */
struct iot_iocb {
	u64 data;
	u32 key;
	u32 rw_flags;
	u16 opcode;
	s16 priority;
	u32 fd;
	u64 buf;
	u64 nbytes;
	u64 offset;
};

struct iot_io_event {
	u64 data;
	u64 obj;
	s64 res;
	s64 res2;
};

struct iot_aio_ring {
	u32 id;
	u32 nr;
	u32 head;
	u32 tail;
	u32 magic;
	u32 compat;
	u32 incompat;
	u32 header_length;
};

struct iot_context {
	u64 address;
	u32 process;
	u32 pad;
};

/* Contexts, and up to where their rings were read. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct iot_context);
	__type(value, u32);
} iot_contexts SEC(".maps");

/* Events that are read, one behind the other or around a ring. */
struct iot_events {
	u64 at;
	u64 context;
	u64 now;
	u32 next;
	u32 nr; /* of the ring; 0: there is none */
	u32 left;
	u32 process;
	struct iot_found by;
};

static long iot_events_step(u64 i, struct iot_events *x)
{
	struct iot_op_key key = {.context = x->context, .process = x->process};
	struct iot_end end = {.at = x->now, .told = x->now, .off = -1, .by = x->by};
	struct iot_io_event one;
	u64 at;

	if (!x->left)
		return 1;
	x->left--;
	at = x->at + (u64)x->next * sizeof(one);
	x->next++;
	if (x->nr && x->next >= x->nr)
		x->next = 0;
	/* A part of a ring that is not in memory was not read by the program either. */
	if (bpf_probe_read_user(&one, sizeof(one), (void *)at))
		return 0;
	key.object = one.obj;
	end.result = one.res;
	iot_op_end(&key, &end);
	return 0;
}

/* What has become complete since this was asked last, and was not told by a call. */
static __noinline void iot_ring_read(struct iot_task *t, u64 address, struct iot_found *by, u64 now)
{
	struct iot_context key = {.address = address};
	struct iot_events x = {.context = address};
	struct iot_aio_ring ring;
	u32 *seen, tail;

	if (!t || !by)
		return;
	key.process = t->process;
	if (bpf_probe_read_user(&ring, sizeof(ring), (void *)address) || ring.magic != AIO_RING_MAGIC)
		return;
	tail = ring.tail;
	seen = bpf_map_lookup_elem(&iot_contexts, &key);
	if (seen && ring.nr && *seen < ring.nr && tail < ring.nr) {
		x.at = address + ring.header_length;
		x.now = now;
		x.next = *seen;
		x.nr = ring.nr;
		x.left = tail >= *seen ? tail - *seen : ring.nr - *seen + tail;
		x.process = t->process;
		x.by = *by;
		bpf_loop(IOT_AIO_MAX, iot_events_step, &x, 0);
	}
	if (bpf_map_update_elem(&iot_contexts, &key, &tail, BPF_ANY))
		iot_lost(IOT_P_MAP_FULL, IOT_LAYER_SYSCALL);
}

struct iot_blocks {
	struct iot_task *t;
	u64 context;
	u64 list;
	u64 nr;
};

/* Too large for the stack below a system call's hook; no text is made meanwhile. */
struct iot_submitted {
	struct iot_op op;
	struct iot_iocb cb;
};

static long iot_submit_step(u64 i, struct iot_blocks *x)
{
	struct iot_op_key key = {.context = x->context, .process = x->t->process};
	struct iot_scratch *scratch = iot_scratch();
	struct iot_submitted *new;
	struct iot_spec *s;
	struct file *file;
	struct iot_op *op;
	u16 row;

	if (i >= x->nr)
		return 1;
	if (!scratch) {
		iot_lost(IOT_P_STORAGE, IOT_LAYER_SYSCALL);
		return 1;
	}
	new = (void *)scratch->bytes;
	op = &new->op;
	__builtin_memset(op, 0, sizeof(*op));
	/* What cannot be read here the kernel will not be able to read either. */
	if (bpf_probe_read_user(&key.object, sizeof(key.object), (void *)(x->list + i * 8)) ||
	    bpf_probe_read_user(&new->cb, sizeof(new->cb), (void *)key.object))
		return 1;
	if (bpf_map_lookup_elem(&iot_ops, &key))
		iot_uring_unseen(&key, bpf_ktime_get_ns());
	row = new->cb.opcode < IOT_OPCODES ? iot_aio_rows[new->cb.opcode & (IOT_OPCODES - 1)] : 0;
	s = row ? iot_spec_of(--row) : NULL;
	file = iot_fd_file(bpf_get_current_task_btf(), new->cb.fd);
	if (!s || (file && !iot_op_file(op, file))) {
		iot_lost(IOT_P_EXCLUDED, IOT_LAYER_SYSCALL);
		return 0;
	}
	iot_op_head(op, x->t, row);
	op->handle = new->cb.fd;
	op->flags |= IOT_F_HANDLE;
	if (s->off.how) {
		op->off = new->cb.offset;
		op->flags |= IOT_F_OFF;
	}
	if (s->len.how == IOT_IOV) {
		if (iot_iov_sum(new->cb.buf, new->cb.nbytes, &op->len))
			op->flags |= IOT_F_LEN;
		else
			op->flags |= IOT_F_CUT;
	} else if (s->len.how) {
		op->len = new->cb.nbytes;
		op->flags |= IOT_F_LEN;
	}
	if (bpf_map_update_elem(&iot_ops, &key, op, BPF_ANY))
		iot_lost(IOT_P_MAP_FULL, IOT_LAYER_SYSCALL);
	return 0;
}

/* The kernel did not take them. */
static long iot_refused_step(u64 i, struct iot_blocks *x)
{
	struct iot_op_key key = {.context = x->context, .process = x->t->process};

	if (i >= x->nr || bpf_probe_read_user(&key.object, sizeof(key.object), (void *)(x->list + i * 8)))
		return 1;
	bpf_map_delete_elem(&iot_ops, &key);
	return 0;
}

static __noinline void iot_kaio_enter(struct iot_task *t, struct iot_frame *f, long id)
{
	struct iot_found by = {};
	struct iot_blocks x = {};

	if (!t || !f || (id != IOT_NR_IO_SUBMIT && id != IOT_NR_IO_DESTROY))
		return;
	by.thread = t->thread;
	by.seq = f->seq;
	by.in_call = 1;
	iot_ring_read(t, f->a[0], &by, f->start);
	if (id != IOT_NR_IO_SUBMIT)
		return;
	x.t = t;
	x.context = f->a[0];
	x.list = f->a[2];
	x.nr = f->a[1];
	bpf_loop(IOT_AIO_MAX, iot_submit_step, &x, 0);
}

static __noinline void iot_kaio_exit(struct iot_task *t, struct iot_frame *f, long id, long ret, u64 now)
{
	struct iot_context key = {};
	u32 none = 0, yes = 1;

	if (!t || !f || (ret < 0 && id != IOT_NR_IO_SUBMIT))
		return;
	key.process = t->process;
	key.address = f->a[0];
	switch (id) {
	case IOT_NR_IO_SETUP:
		if (!bpf_probe_read_user(&key.address, sizeof(key.address), (void *)f->a[1]) &&
		    bpf_map_update_elem(&iot_contexts, &key, &none, BPF_ANY))
			iot_lost(IOT_P_MAP_FULL, IOT_LAYER_SYSCALL);
		bpf_map_update_elem(&iot_submitters, &key.process, &yes, BPF_ANY);
		break;
	case IOT_NR_IO_SUBMIT: {
		struct iot_blocks x = {.t = t, .context = f->a[0], .list = f->a[2], .nr = f->a[1]};
		u64 taken = ret < 0 ? 0 : ret;

		if (taken < x.nr) {
			x.list += taken * 8;
			x.nr -= taken;
			bpf_loop(IOT_AIO_MAX, iot_refused_step, &x, 0);
		}
		break;
	}
	case IOT_NR_IO_GETEVENTS:
	case IOT_NR_IO_PGETEVENTS: {
		struct iot_events x = {.at = f->a[3], .context = f->a[0], .left = ret};

		x.now = now;
		x.process = t->process;
		x.by.thread = t->thread;
		x.by.seq = f->seq;
		x.by.in_call = 1;
		bpf_loop(IOT_AIO_MAX, iot_events_step, &x, 0);
		iot_ring_read(t, f->a[0], &x.by, now);
		break;
	}
	case IOT_NR_IO_DESTROY:
		iot_sweep(t->process, f->a[0]);
		bpf_map_delete_elem(&iot_contexts, &key);
		break;
	}
}

static long iot_last_look(struct bpf_map *map, struct iot_context *key, u32 *seen, struct iot_blocks *x)
{
	struct iot_found none = {};
	u64 address = key->address;

	if (key->process == x->t->process)
		iot_ring_read(x->t, address, &none, bpf_ktime_get_ns());
	return 0;
}

/* The process ends: the last time that its memory can be read. */
static __noinline void iot_kaio_last(void)
{
	struct iot_blocks x = {.t = iot_self()};
	u32 process;

	if (!x.t)
		return;
	process = x.t->process;
	if (bpf_map_lookup_elem(&iot_submitters, &process))
		bpf_for_each_map_elem(&iot_contexts, iot_last_look, &x, 0);
}

static long iot_forget_context(struct bpf_map *map, struct iot_context *key, u32 *seen, u32 *process)
{
	struct iot_context copy = *key;

	if (copy.process == *process)
		bpf_map_delete_elem(&iot_contexts, &copy);
	return 0;
}

/* The process is gone, or executes another program. */
static __noinline void iot_operations_gone(u32 process)
{
	if (!bpf_map_lookup_elem(&iot_submitters, &process))
		return;
	iot_sweep(process, 0);
	bpf_for_each_map_elem(&iot_contexts, iot_forget_context, &process, 0);
	bpf_map_delete_elem(&iot_submitters, &process);
}

#endif
