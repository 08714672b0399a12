/* SPDX-License-Identifier: GPL-2.0 */
/* Block layer: who queued a bio, which file it carries, and the request it went out with. */
#ifndef IOT_BLOCK_H
#define IOT_BLOCK_H

#define IOT_BIO_MAX	   256	/* bios of one request that are looked at */
#define REQ_OP_MASK	   0xff /* include/linux/blk_types.h: REQ_OP_BITS */
#define PAGE_SHIFT	   12
#define PAGE_MAPPING_FLAGS 3 /* include/linux/page-flags.h: not a file's mapping */

struct iot_queued {
	u64 time;
	u32 tgid;
	u32 thread;
	u32 seq;
	u32 of;
	u8 traced;
	u8 in_call;
	u8 operation;
	u8 pad;
};

/* Bios that were queued and not issued, by struct bio. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct iot_queued);
} iot_bios SEC(".maps");

struct iot_inflight {
	u64 req;
	u64 queued;
	u64 issued;
	u64 sector;
	u32 bytes;
	u32 cmd_flags;
	u32 dev;
	u32 pid;
	u32 nr_bios;
	u32 pad;
};

/* Requests that were issued and not completed, by struct request. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct iot_inflight);
} iot_requests SEC(".maps");

u64 iot_next_request = 1;

/* Who is told that direct I/O is complete: fs/iomap/direct-io.c, block/fops.c, fs/aio.c. Not there: 0. */
extern const void iomap_dio_bio_end_io __ksym __weak;
extern const void blkdev_bio_end_io __ksym __weak;
extern const void blkdev_bio_end_io_async __ksym __weak;
extern const void aio_complete_rw __ksym __weak;

/* What the kernel keeps of a direct transfer on a block device (block/fops.c); its bio is part of it. */
struct blkdev_dio___iot {
	struct kiocb *iocb;
	struct bio bio;
} __attribute__((preserve_access_index));

/* The control block of the direct I/O that a bio is part of. */
static __always_inline struct kiocb *iot_bio_kiocb(struct bio *bio)
{
	u64 end = (u64)BPF_CORE_READ(bio, bi_end_io);
	void *dio = BPF_CORE_READ(bio, bi_private);
	struct blkdev_dio___iot *blkdev = dio;
	struct iomap_dio *iomap = dio;

	if (!end)
		return NULL;
	if (end == (u64)&iomap_dio_bio_end_io)
		return BPF_CORE_READ(iomap, iocb);
	if (!bpf_core_field_exists(blkdev->bio))
		return NULL;
	if (end == (u64)&blkdev_bio_end_io)
		return BPF_CORE_READ(blkdev, iocb);
	if (end == (u64)&blkdev_bio_end_io_async) {
		blkdev = (void *)bio - bpf_core_field_offset(struct blkdev_dio___iot, bio);
		return BPF_CORE_READ(blkdev, iocb);
	}
	return NULL;
}

/* The operation that a bio is queued for, if that is one. */
static __always_inline struct iot_op *iot_bio_operation(struct bio *bio, struct iot_task *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kiocb *kiocb = iot_bio_kiocb(bio);
	struct iot_op_key key = {};
	struct iot_op *op;

	if (kiocb) {
		/* A request begins with its struct io_rw, and that with the control block (io_uring/rw.c). */
		key.object = (u64)kiocb;
		op = bpf_map_lookup_elem(&iot_ops, &key);
		if (op)
			return op;
		if ((u64)BPF_CORE_READ(kiocb, ki_complete) == (u64)&aio_complete_rw) {
			struct aio_kiocb *aio = (void *)kiocb; /* begins with it, too (fs/aio.c) */

			key.object = BPF_CORE_READ(aio, ki_res.obj);
			key.context = BPF_CORE_READ(aio, ki_ctx, user_id);
			key.process = t->process;
			return bpf_map_lookup_elem(&iot_ops, &key);
		}
		return NULL;
	}
	key.object = t->issuing;
	if (task->flags & PF_IO_WORKER && bpf_core_field_exists(task->worker_private)) {
		struct io_worker *worker = (void *)BPF_CORE_READ(task, worker_private);
		u64 work = (u64)BPF_CORE_READ(worker, cur_work);

		key.object = work ? work - bpf_core_field_offset(struct io_kiocb, work) : 0;
	}
	return key.object ? bpf_map_lookup_elem(&iot_ops, &key) : NULL;
}
/*
 * Zero, which the verifier does not know. Before Linux 6.8 it looks at the first round of a loop only, and takes out what
 * cannot happen in it: what later rounds change must not begin as a known value.
 */
u64 iot_none SEC(".data") = 0;

SEC("?tp_btf/block_bio_queue")
int BPF_PROG(iot_bio_queue, struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct iot_queued q = {.time = bpf_ktime_get_ns(), .tgid = task->tgid};
	struct iot_task *t = iot_self();
	u64 key = (u64)bio;

	if (t) {
		struct iot_op *op = iot_bio_operation(bio, t);

		q.traced = 1;
		q.thread = t->thread;
		if (op) {
			q.in_call = 1;
			q.operation = 1;
			q.thread = op->thread;
			q.seq = op->seq;
			q.of = op->of;
		} else {
			q.in_call = iot_inside(t, &q.seq);
		}
	}
	bpf_map_update_elem(&iot_bios, &key, &q, BPF_ANY);
	return 0;
}

/* The first part of a bio that is too long for one request goes out under another struct bio. */
SEC("?tp_btf/block_split")
int BPF_PROG(iot_bio_split, struct bio *bio)
{
	u64 key = (u64)bio, whole = (u64)BPF_CORE_READ(bio, bi_private);
	struct iot_queued *q = bpf_map_lookup_elem(&iot_bios, &whole), copy;

	if (q) {
		copy = *q;
		bpf_map_update_elem(&iot_bios, &key, &copy, BPF_ANY);
	}
	return 0;
}

/*
 * Is this folio, which a write carries, being written back? One that is not is the buffer of direct I/O, which may be a
 * mapped file just as well.
 */
static __always_inline bool iot_written_back(struct folio *folio)
{
	unsigned long flags = 0;

	/* The first word in every kernel; its type became a struct in 6.18, which CO-RE takes for another member. */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	return flags >> bpf_core_enum_value(enum pageflags, PG_writeback) & 1;
}

/* The file and offset of the data a bio starts with. */
static __always_inline void iot_bio_file(struct bio *bio, struct iot_bio *e)
{
	struct bvec_iter it = BPF_CORE_READ(bio, bi_iter);
	struct bio_vec *vec = BPF_CORE_READ(bio, bi_io_vec);
	struct iot_file_key key = {};
	struct address_space *mapping;
	struct bio_vec bv = {};
	struct inode *inode;
	struct page *page;
	unsigned long head;
	struct folio *folio;

	e->dev = 0;
	if (!vec || !it.bi_size)
		return;
	bpf_probe_read_kernel(&bv, sizeof(bv), (void *)vec + it.bi_idx * bpf_core_type_size(struct bio_vec));
	if (!bv.bv_page)
		return;
	page = bv.bv_page;
	head = BPF_CORE_READ(page, compound_head);
	folio = head & 1 ? (void *)(head - 1) : (void *)page;
	mapping = BPF_CORE_READ(folio, mapping);
	if (!mapping || (u64)mapping & PAGE_MAPPING_FLAGS)
		return;
	inode = BPF_CORE_READ(mapping, host);
	if (!inode || (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return;
	/* tmpfs and the like have no device: these pages are a buffer, or they are swapped */
	if (!BPF_CORE_READ(inode, i_sb, s_bdev))
		return;
	if ((BPF_CORE_READ(bio, bi_opf) & REQ_OP_MASK) == REQ_OP_WRITE && !iot_written_back(folio))
		return;
	iot_key_of(inode, &key);
	e->ino = key.ino;
	e->dev = key.dev;
	e->generation = key.generation;
	e->off = (u64)BPF_CORE_READ(folio, index) << PAGE_SHIFT;
	e->off += ((u64)page - (u64)folio) / bpf_core_type_size(struct page) << PAGE_SHIFT;
	e->off += bv.bv_offset + it.bi_bvec_done;
}

struct iot_chain {
	struct bio *bio;
	struct iot_inflight *r;
	struct iot_bio part; /* neighbours so far; bytes 0: none */
};

static __always_inline void iot_chain_flush(struct iot_chain *c)
{
	if (c->part.bytes)
		iot_send(IOT_C_BLOCK, IOT_LAYER_BLOCK, &c->part, sizeof(c->part));
	c->part.bytes = 0;
}

static long iot_chain_step(u64 i, struct iot_chain *c)
{
	struct iot_bio e = {.type = IOT_T_BIO, .req = c->r->req, .time = c->r->issued};
	struct iot_bio *part = &c->part;
	struct bio *bio = c->bio; /* a local: CO-RE would relocate c's own members */
	u64 key = (u64)bio;
	struct iot_queued *q;

	if (!bio)
		return 1;
	e.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	iot_bio_file(bio, &e);
	q = bpf_map_lookup_elem(&iot_bios, &key);
	if (q) {
		e.queued = q->time;
		e.traced = q->traced;
		e.in_call = q->in_call;
		e.thread = q->thread;
		e.seq = q->seq;
		e.of = q->of;
		e.operation = q->operation;
		if (!c->r->queued) {
			c->r->queued = q->time;
			c->r->pid = q->tgid;
		}
		bpf_map_delete_elem(&iot_bios, &key);
	} else {
		e.queued = c->r->issued; /* remapped or queued before we came */
	}
	c->r->nr_bios++;
	if (part->bytes && part->dev == e.dev && part->ino == e.ino && part->thread == e.thread && part->seq == e.seq &&
	    part->traced == e.traced && (!e.dev || part->off + part->bytes == e.off)) {
		part->bytes += e.bytes;
	} else {
		iot_chain_flush(c);
		*part = e;
	}
	c->bio = BPF_CORE_READ(bio, bi_next);
	return 0;
}

static __always_inline int iot_issue(struct request *rq)
{
	u64 key = (u64)rq, now = bpf_ktime_get_ns();
	struct iot_inflight r = {
		.req = __sync_fetch_and_add(&iot_next_request, 1),
		.queued = iot_none,
		.issued = now,
		.sector = BPF_CORE_READ(rq, __sector),
		.bytes = BPF_CORE_READ(rq, __data_len),
		.cmd_flags = BPF_CORE_READ(rq, cmd_flags),
		.pid = bpf_get_current_pid_tgid() >> 32,
	};
	struct iot_inflight *again = bpf_map_lookup_elem(&iot_requests, &key);
	struct gendisk *disk = BPF_CORE_READ(rq, q, disk);
	struct iot_chain c = {.bio = BPF_CORE_READ(rq, bio), .r = &r, .part.bytes = iot_none};

	if (disk)
		r.dev = (u32)BPF_CORE_READ(disk, major) << 20 | (u32)BPF_CORE_READ(disk, first_minor);
	if (again && again->sector == r.sector && again->bytes == r.bytes) {
		again->issued = now; /* requeued: the driver took it back */
		return 0;
	}
	if (bpf_loop(IOT_BIO_MAX, iot_chain_step, &c, 0) == IOT_BIO_MAX && c.bio)
		iot_lost(IOT_P_MAP_FULL, IOT_LAYER_BLOCK);
	iot_chain_flush(&c);
	if (!r.queued)
		r.queued = now;
	if (bpf_map_update_elem(&iot_requests, &key, &r, BPF_ANY))
		iot_lost(IOT_P_MAP_FULL, IOT_LAYER_BLOCK);
	return 0;
}

SEC("?tp_btf/block_rq_issue")
int BPF_PROG(iot_rq_issue, struct request *rq)
{
	return iot_issue(rq);
}

SEC("?tp_btf/block_rq_complete")
int BPF_PROG(iot_rq_complete, struct request *rq, u8 error, u32 nr_bytes)
{
	u64 key = (u64)rq;
	struct iot_inflight *r;
	struct iot_req e = {.type = IOT_T_REQ};

	if (nr_bytes < BPF_CORE_READ(rq, __data_len))
		return 0; /* a part; the last one tells */
	r = bpf_map_lookup_elem(&iot_requests, &key);
	if (!r)
		return 0; /* issued before we came */
	e.status = error;
	e.nr_bios = r->nr_bios;
	e.dev = r->dev;
	e.req = r->req;
	e.sector = r->sector;
	e.bytes = r->bytes;
	e.cmd_flags = r->cmd_flags;
	e.queued = r->queued;
	e.issued = r->issued;
	e.completed = bpf_ktime_get_ns();
	e.pid = r->pid;
	bpf_map_delete_elem(&iot_requests, &key);
	iot_send(IOT_C_BLOCK, IOT_LAYER_BLOCK, &e, sizeof(e));
	return 0;
}

#endif
