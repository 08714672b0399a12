/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations that the kernel carries out for a call that need not wait for them (io_uring, libaio): a table of those that are
 * not complete, and the record of one that is.
 */
#ifndef IOT_OPERATION_H
#define IOT_OPERATION_H

#define IOT_OPCODES 64

/* io_uring: the request. libaio: the control block, which counts within a context of a process. */
struct iot_op_key {
	u64 object;
	u64 context;
	u32 process;
	u32 pad;
};

struct iot_op {
	u64 start;
	u64 handle;
	u64 len;
	u64 off;
	u64 ino;
	u32 dev;
	u32 generation;
	u64 ring; /* io_uring: what its completion is called by when there is no room for it */
	u64 name;
	u32 process;
	u32 thread; /* that submitted it */
	u32 seq;
	u32 of; /* the call that did */
	u16 spec;
	u8 flags; /* of iot_call */
	u8 depth;
	u8 in_call; /* `of` is valid */
	u8 slot;    /* an open whose result is no descriptor: it stays in the ring's table of files */
	u8 pad[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct iot_op_key);
	__type(value, struct iot_op);
} iot_ops SEC(".maps");

/* Processes that have submitted one: of the others nothing has to be looked for when they end. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
} iot_submitters SEC(".maps");

/* The call that an operation is found complete in. */
struct iot_found {
	u32 thread;
	u32 seq;
	u32 in_call;
};

/* How one ended. */
struct iot_end {
	s64 result;
	u64 at;
	u64 seen; /* when that became known */
	u64 off;  /* where it turned out to be, if the request does not have it: at the file position */
	struct iot_found by;
	u32 unfinished; /* its end will not be seen */
};

/* Aggregate mode: operations that a thread has submitted, that are summed up and that are not complete. */
struct iot_pending {
	u64 mark; /* up to then their time is in the sums */
	u32 open;
	u32 pad;
};

/* By thread. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct iot_pending);
} iot_pendings SEC(".maps");

/* An operation begins, and is in iot_ops. */
static __always_inline void iot_pending_begins(struct iot_op *op, struct iot_spec *s)
{
	struct iot_pending none = {}, *pending;
	u32 thread = op->thread;

	if (!iot_cfg.aggregate || !s->sums)
		return;
	pending = bpf_map_lookup_elem(&iot_pendings, &thread);
	if (!pending) {
		bpf_map_update_elem(&iot_pendings, &thread, &none, BPF_NOEXIST);
		pending = bpf_map_lookup_elem(&iot_pendings, &thread);
	}
	if (pending && !__sync_fetch_and_add(&pending->open, 1))
		pending->mark = op->start;
}

/*
 * One is over. Operations overlap: returns the time in which any of its thread's was under way and that no other one has
 * had in its sum.
 */
static __always_inline u64 iot_pending_ends(u32 thread, u64 from, u64 at)
{
	struct iot_pending *pending = iot_cfg.aggregate ? bpf_map_lookup_elem(&iot_pendings, &thread) : NULL;

	if (pending && pending->open) {
		__sync_fetch_and_add(&pending->open, -1);
		from = pending->mark;
		pending->mark = at > from ? at : from;
	}
	return at > from ? at - from : 0;
}

/* Takes one out that is none of ours, or was not begun with. */
static __always_inline void iot_op_drop(struct iot_op_key *key)
{
	struct iot_op *op = bpf_map_lookup_elem(&iot_ops, key);
	struct iot_spec *s = op ? iot_spec_of(op->spec) : NULL;
	struct iot_pending *pending;
	u32 thread;

	if (!s)
		return;
	thread = op->thread;
	pending = iot_cfg.aggregate && s->sums ? bpf_map_lookup_elem(&iot_pendings, &thread) : NULL;
	if (pending && pending->open)
		__sync_fetch_and_add(&pending->open, -1);
	bpf_map_delete_elem(&iot_ops, key);
}

/* Makes the operation of the thread's innermost open call; its values are to follow. */
static __always_inline void iot_op_head(struct iot_op *op, struct iot_task *t, u16 spec)
{
	op->start = bpf_ktime_get_ns();
	op->process = t->process;
	op->thread = t->thread;
	op->seq = t->seq++;
	op->of = op->seq;
	op->spec = spec;
	if (t->depth) {
		struct iot_frame *f = iot_frame_at(t, t->depth - 1);

		op->in_call = 1;
		op->of = f->seq;
		op->depth = f->depth + 1;
	}
	if (!t->submits) {
		u32 process = t->process, yes = 1;

		t->submits = !bpf_map_update_elem(&iot_submitters, &process, &yes, BPF_ANY);
	}
}

/* The file an operation is on; false when it is one that is left out. */
static __always_inline bool iot_op_file(struct iot_op *op, struct file *file)
{
	struct inode *inode = IOT_READ_FAST(file, f_inode);
	struct iot_file_key key = {};

	if (!iot_file_wanted(inode))
		return false;
	iot_key_of(inode, &key);
	op->ino = key.ino;
	op->dev = key.dev;
	op->generation = key.generation;
	op->flags |= IOT_F_FILE;
	if (IOT_READ_FAST(file, f_flags) & O_DIRECT)
		op->flags |= IOT_F_DIRECT;
	return true;
}

/* The innermost open call of the current thread, if it is one of this process. */
static __always_inline void iot_found_by(struct iot_found *by, u32 process)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);

	if (!t || !t->depth || t->process != process)
		return;
	by->in_call = 1;
	by->thread = t->thread;
	by->seq = iot_frame_at(t, t->depth - 1)->seq;
}

/* The call that an operation was, now that it has ended. */
static __always_inline void iot_op_call(struct iot_call *c, struct iot_op *op, struct iot_spec *s, struct iot_end *end)
{
	u64 dur = end->at > op->start ? end->at - op->start : 0;

	if (dur >> IOT_DUR_BITS)
		dur = (1ULL << IOT_DUR_BITS) - 1;
	c->type = IOT_T_OPERATION;
	c->flags = op->flags;
	c->spec = op->spec;
	c->seq = op->seq;
	c->thread = op->thread;
	c->status = 0;
	c->start = op->start;
	c->dur_cpu_depth = dur | (u64)(bpf_get_smp_processor_id() & ((1 << IOT_CPU_BITS) - 1)) << IOT_DUR_BITS |
			   (u64)op->depth << (IOT_DUR_BITS + IOT_CPU_BITS);
	c->handle = op->handle;
	c->len = op->len;
	c->got = 0;
	c->off = op->off;
	c->probe = 0;
	c->away = c->queued = IOT_UNKNOWN;
	if (end->unfinished) {
		c->flags |= IOT_F_UNFINISHED;
	} else if (end->result < 0) {
		c->status = end->result < -4095 ? -1 : end->result;
	} else {
		if (s->got.from) {
			c->got = end->result;
			c->flags |= IOT_F_GOT;
		}
		if (iot_is_result(&s->handle) && !op->slot) {
			c->handle = end->result;
			c->flags |= IOT_F_HANDLE;
		}
	}
	if (c->flags & IOT_F_OFF && c->off == (u64)-1) {
		c->off = end->off;
		if (end->off == (u64)-1)
			c->flags &= ~IOT_F_OFF;
	}
}

/* The record of an operation that has ended. */
static __always_inline void iot_op_record(struct iot_operation *e, struct iot_op *op, struct iot_spec *s,
					  struct iot_end *end)
{
	iot_op_call(&e->call, op, s, end);
	e->ino = op->ino;
	e->dev = op->dev;
	e->generation = op->generation;
	e->seen = end->seen;
	e->of = op->of;
	e->in_call = op->in_call;
	e->by_thread = end->by.thread;
	e->by_seq = end->by.seq;
	e->found = end->by.in_call;
	e->summed = 0;
	e->pad2 = 0;
}

/* An operation that was summed up is also sent if it is slow, or if all of its process or file are. */
static __noinline int iot_op_detail(struct iot_scratch *out)
{
	struct iot_operation *e;
	bool all;

	if (!out)
		return 0;
	e = &out->made;
	all = iot_is_chosen(out->sum.key.process, e->call.flags, e->ino, e->dev, e->generation);
	if (!all && !iot_is_slow(e->call.spec, e->call.dur_cpu_depth & ((1ULL << IOT_DUR_BITS) - 1)))
		return 0;
	if (!iot_has_room(out->sum.key.process, 1))
		return 0;
	e->call.type |= IOT_D_SELF;
	e->summed = 1;
	/* the call that submitted it is sent only where every call is */
	if (!all) {
		e->in_call = 0;
		e->call.dur_cpu_depth &= (1ULL << (IOT_DUR_BITS + IOT_CPU_BITS)) - 1;
	}
	iot_send_detail(IOT_C_CALL, IOT_LAYER_SYSCALL, e, sizeof(*e));
	return 0;
}

/* Adds one up and takes it out. Of several that do so at a time one succeeds. */
static __always_inline long iot_op_sum(struct iot_op_key *key, struct iot_op *op, struct iot_spec *s,
				       struct iot_end *end)
{
	struct iot_scratch *out = iot_scratch();

	if (!out) {
		iot_lost(IOT_LOSS_STORAGE, s->layer);
		iot_op_drop(key);
		return 0;
	}
	iot_op_record(&out->made, op, s, end);
	/* no thread of the program spends it */
	iot_summing(&out->sum, op->process, op->spec);
	if (op->flags & IOT_F_FILE)
		iot_sum_file(&out->sum, op->ino, op->dev, op->generation);
	if (bpf_map_delete_elem(&iot_ops, key))
		return -1;
	out->sum.overlap =
		iot_net(&out->made.call) - iot_pending_ends(out->made.call.thread, out->made.call.start, end->at);
	iot_sum_shared(&out->sum, s, &out->made.call);
	if (iot_cfg.detail)
		iot_op_detail(out);
	return 0;
}

/* Sends an operation and takes it out. Of several that do so at a time one succeeds. */
__noinline long iot_op_end(struct iot_op_key *key, struct iot_end *end)
{
	struct iot_op_key of = {}; /* Linux 6.1 takes no other memory for a key */
	struct iot_operation *e;
	struct iot_spec *s;
	struct iot_op *op;
	void *ring;

	if (!key || !end)
		return -1;
	of = *key;
	op = bpf_map_lookup_elem(&iot_ops, &of);
	s = op ? iot_spec_of(op->spec) : NULL;
	if (!s)
		return -1;
	if (iot_cfg.aggregate && s->sums)
		return iot_op_sum(&of, op, s, end);
	ring = iot_ring_of(iot_call_class(s));
	e = ring ? bpf_ringbuf_reserve(ring, sizeof(*e), 0) : NULL;
	if (!e) {
		if (!bpf_map_delete_elem(&iot_ops, &of))
			iot_lost(IOT_LOSS_RING, s->layer);
		return -1;
	}
	iot_op_record(e, op, s, end);
	if (bpf_map_delete_elem(&iot_ops, &of)) {
		bpf_ringbuf_discard(e, 0);
		return -1;
	}
	bpf_ringbuf_submit(e, iot_wakeup(ring));
	return 0;
}

struct iot_sweep {
	u64 context; /* 0: any */
	u64 now;
	u32 process;
	u32 pad;
};

#endif
