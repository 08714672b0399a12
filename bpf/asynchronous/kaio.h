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

#define IOT_AIO_MAX	     65536	/* as many as there is room for */
#define IOT_RING_GAPS	     (1U << 31) /* some event of the ring could not be read */
#define AIO_RING_MAGIC	     0xa10a10a1 /* fs/aio.c */
#define EEXIST		     17

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

/* Contexts, and up to where their rings were read. IOT_RING_GAPS: not whole. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct iot_context);
	__type(value, u32);
} iot_contexts SEC(".maps");

/*
 * What is worked on, in the scratch memory of the task: too much for the stack below a system call's hook. No text is made
 * meanwhile.
 */
struct iot_kaio {
	struct iot_op_key key;
	struct iot_end end;
	struct iot_context context;
	/* Events that are read, one behind the other or around a ring. */
	u64 at;
	u32 next;
	u32 nr; /* of the ring; 0: there is none */
	u32 left;
	u32 tail;
	u32 gaps; /* IOT_RING_GAPS */
	u32 pad;  /* what follows is not cleared */
	struct iot_io_event event;
	struct iot_aio_ring ring;
	struct iot_op op;
	struct iot_iocb cb;
};

struct iot_blocks {
	struct iot_task *t;
	struct iot_kaio *k;
	u64 list;
	u64 nr;
};

static __always_inline struct iot_kaio *iot_kaio(struct iot_task *t, u64 context)
{
	struct iot_scratch *scratch = iot_scratch();
	struct iot_kaio *k;

	if (!scratch) {
		iot_lost(IOT_LOSS_STORAGE, IOT_LAYER_SYSCALL);
		return NULL;
	}
	k = (void *)scratch->bytes;
	__builtin_memset(k, 0, __builtin_offsetof(struct iot_kaio, pad));
	k->key.context = k->context.address = context;
	k->key.process = k->context.process = t->process;
	k->end.off = -1;
	return k;
}

static long iot_events_step(u64 i, struct iot_blocks *x)
{
	struct iot_kaio *k = x->k;
	u64 at = k->at + (u64)k->next * sizeof(k->event);

	if (!k->left)
		return 1;
	k->left--;
	k->next++;
	if (k->nr && k->next >= k->nr)
		k->next = 0;
	/* A part of a ring that is not in memory was not read by the program either. */
	if (bpf_probe_read_user(&k->event, sizeof(k->event), (void *)at)) {
		k->gaps = IOT_RING_GAPS;
		return 0;
	}
	k->key.object = k->event.obj;
	k->end.result = k->event.res;
	iot_op_end(&k->key, &k->end);
	return 0;
}

/*
 * What has become complete since this was asked last, by a call or not. False when not all of that could be read: then what
 * a call gives the program has to be looked at, too. Nothing is overwritten before it is looked at: that takes submissions,
 * and each of them looks first.
 */
static __noinline bool iot_ring_read(struct iot_kaio *kaio)
{
	struct iot_blocks x = {.k = kaio};
	struct iot_kaio *k = kaio;
	bool inside;
	u32 *seen;

	if (!k)
		return false;
	if (bpf_probe_read_user(&k->ring, sizeof(k->ring), (void *)k->context.address) ||
	    k->ring.magic != AIO_RING_MAGIC)
		return false;
	k->tail = k->ring.tail;
	seen = bpf_map_lookup_elem(&iot_contexts, &k->context);
	k->gaps = seen ? *seen & IOT_RING_GAPS : 0;
	/* the first time: from what was not given to the program yet */
	k->next = seen ? *seen & ~IOT_RING_GAPS : k->ring.head;
	k->nr = k->ring.nr;
	inside = k->next < k->nr && k->tail < k->nr;
	if (inside) {
		k->at = k->context.address + k->ring.header_length;
		k->left = k->tail >= k->next ? k->tail - k->next : k->nr - k->next + k->tail;
		bpf_loop(IOT_AIO_MAX, iot_events_step, &x, 0);
	}
	k->tail |= k->gaps;
	if (seen)
		*seen = k->tail;
	else if (bpf_map_update_elem(&iot_contexts, &k->context, &k->tail, BPF_ANY))
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_SYSCALL);
	return inside && seen && !k->gaps;
}

static long iot_submit_step(u64 i, struct iot_blocks *x)
{
	struct iot_kaio *k = x->k;
	struct iot_spec *s;
	struct file *file;
	long err;
	u16 row;

	if (i >= x->nr)
		return 1;
	__builtin_memset(&k->op, 0, sizeof(k->op));
	/* What cannot be read here the kernel will not be able to read either. */
	if (bpf_probe_read_user(&k->key.object, sizeof(k->key.object), (void *)(x->list + i * 8)) ||
	    bpf_probe_read_user(&k->cb, sizeof(k->cb), (void *)k->key.object))
		return 1;
	row = k->cb.opcode < IOT_OPCODES ? iot_aio_rows[k->cb.opcode & (IOT_OPCODES - 1)] : 0;
	s = row ? iot_spec_of(--row) : NULL;
	file = iot_fd_file(bpf_get_current_task_btf(), k->cb.fd);
	if (!s || (file && !iot_op_file(&k->op, file))) {
		iot_uring_unseen(&k->key, bpf_ktime_get_ns());
		iot_lost(IOT_LOSS_EXCLUDED, IOT_LAYER_SYSCALL);
		return 0;
	}
	iot_op_head(&k->op, x->t, row);
	k->op.handle = k->cb.fd;
	k->op.flags |= IOT_F_HANDLE;
	if (s->off.from) {
		k->op.off = k->cb.offset;
		k->op.flags |= IOT_F_OFF;
	}
	if (s->len.from == IOT_FROM_VECTOR) {
		u64 sum = 0;

		k->op.flags |= iot_iov_sum(k->cb.buf, k->cb.nbytes, &sum, 0) ? IOT_F_LEN : IOT_F_CUT;
		k->op.len = sum;
	} else if (s->len.from) {
		k->op.len = k->cb.nbytes;
		k->op.flags |= IOT_F_LEN;
	}
	err = bpf_map_update_elem(&iot_ops, &k->key, &k->op, BPF_NOEXIST);
	if (err == -EEXIST) {
		iot_uring_unseen(&k->key, k->op.start);
		err = bpf_map_update_elem(&iot_ops, &k->key, &k->op, BPF_ANY);
	}
	if (err)
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_SYSCALL);
	else
		iot_pending_begins(&k->op, s);
	return 0;
}

/* The kernel did not take them. */
static long iot_refused_step(u64 i, struct iot_blocks *x)
{
	struct iot_kaio *k = x->k;

	if (i >= x->nr || bpf_probe_read_user(&k->key.object, sizeof(k->key.object), (void *)(x->list + i * 8)))
		return 1;
	iot_op_drop(&k->key);
	return 0;
}

/* Operations that end now are found to be over by this call. */
static __always_inline void iot_kaio_now(struct iot_kaio *k, struct iot_task *t, u32 seq, u64 now)
{
	k->end.at = k->end.seen = now;
	k->end.by.thread = t->thread;
	k->end.by.seq = seq;
	k->end.by.in_call = 1;
}

__noinline int iot_kaio_enter(struct iot_task *t, struct iot_frame *f, long id)
{
	struct iot_blocks x = {};

	if (!t || !f || (id != IOT_NR_IO_SUBMIT && id != IOT_NR_IO_DESTROY))
		return 0;
	x.k = iot_kaio(t, f->a[0]);
	if (!x.k)
		return 0;
	iot_kaio_now(x.k, t, f->seq, f->start);
	iot_ring_read(x.k);
	if (id != IOT_NR_IO_SUBMIT)
		return 0;
	x.t = t;
	x.list = f->a[2];
	x.nr = f->a[1];
	bpf_loop(IOT_AIO_MAX, iot_submit_step, &x, 0);
	return 0;
}

__noinline int iot_kaio_exit(struct iot_task *t, struct iot_frame *f, long id, long ret, u64 now)
{
	struct iot_blocks x = {.t = t};
	struct iot_kaio *k;

	if (!t || !f || (ret < 0 && id != IOT_NR_IO_SUBMIT))
		return 0;
	/* all of them were taken */
	if (id == IOT_NR_IO_SUBMIT && ret == f->a[1])
		return 0;
	k = iot_kaio(t, f->a[0]);
	if (!k)
		return 0;
	x.k = k;
	switch (id) {
	case IOT_NR_IO_SETUP:
		/* A new ring is empty: k->tail is 0. */
		if (!bpf_probe_read_user(&k->context.address, sizeof(k->context.address), (void *)f->a[1]) &&
		    bpf_map_update_elem(&iot_contexts, &k->context, &k->tail, BPF_ANY))
			iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_SYSCALL);
		bpf_map_update_elem(&iot_submitters, &k->context.process, &k->tail, BPF_ANY);
		break;
	case IOT_NR_IO_SUBMIT:
		if (ret < 0)
			ret = 0;
		if (ret < f->a[1]) {
			x.list = f->a[2] + ret * 8;
			x.nr = f->a[1] - ret;
			bpf_loop(IOT_AIO_MAX, iot_refused_step, &x, 0);
		}
		break;
	case IOT_NR_IO_GETEVENTS:
	case IOT_NR_IO_PGETEVENTS:
		iot_kaio_now(k, t, f->seq, now);
		/* what the program is given is in the ring, too */
		if (iot_ring_read(k))
			break;
		k->at = f->a[3];
		k->next = k->nr = 0;
		k->left = ret;
		bpf_loop(IOT_AIO_MAX, iot_events_step, &x, 0);
		break;
	case IOT_NR_IO_DESTROY:
		iot_sweep(t->process, f->a[0]);
		bpf_map_delete_elem(&iot_contexts, &k->context);
		break;
	}
	return 0;
}

static long iot_last_look(struct bpf_map *map, struct iot_context *key, u32 *seen, struct iot_blocks *x)
{
	struct iot_kaio *k;
	u64 address = key->address;

	if (key->process != x->t->process)
		return 0;
	k = iot_kaio(x->t, address);
	if (!k)
		return 1;
	k->end.at = k->end.seen = bpf_ktime_get_ns();
	iot_ring_read(k);
	return 0;
}

/* The process ends: the last time that its memory can be read. */
__noinline int iot_kaio_last(void)
{
	struct iot_blocks x = {.t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0)};
	u32 process;

	if (!x.t)
		return 0;
	process = x.t->process;
	if (bpf_map_lookup_elem(&iot_submitters, &process))
		bpf_for_each_map_elem(&iot_contexts, iot_last_look, &x, 0);
	return 0;
}

static long iot_forget_context(struct bpf_map *map, struct iot_context *key, u32 *seen, u32 *process)
{
	struct iot_context copy = *key;

	if (copy.process == *process)
		bpf_map_delete_elem(&iot_contexts, &copy);
	return 0;
}

/* The process is gone, or executes another program. */
static __always_inline void iot_operations_gone(u32 process)
{
	if (!bpf_map_lookup_elem(&iot_submitters, &process))
		return;
	iot_sweep(process, 0);
	bpf_for_each_map_elem(&iot_contexts, iot_forget_context, &process, 0);
	bpf_map_delete_elem(&iot_submitters, &process);
}

#endif
