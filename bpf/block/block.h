/* SPDX-License-Identifier: GPL-2.0 */
/* Block layer: the submitter of a bio, and the request it went out with. On devices without a queue a bio is the request. */
#ifndef IOT_BLOCK_H
#define IOT_BLOCK_H

#define SECTOR_SHIFT	      9
#define IOT_BIO_MAX	      256 /* bios of one request that are looked at */
#define IOT_DEV(major, minor) ((u32)(major) << 20 | (u32)(minor))

struct iot_queued {
	u64 time;      /* 0: it was handed down from another device and is not queued yet */
	u64 inserted;  /* its request has been put into a scheduler; 0: not yet */
	u64 allocated; /* and which one that is */
	u64 upper_sector;
	u32 upper_dev; /* the device that handed it down; 0: none */
	u32 dev;
	u32 tgid;
	u32 thread;
	u32 seq;
	u32 of;
	u8 flags; /* of iot_bio */
	u8 split;
	u8 wanted; /* aggregate mode: its request is sent one by one */
	u8 pad[5];
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
	u64 inserted; /* 0: never */
	u64 issued;
	u64 allocated; /* distinguishes the uses of one struct request; 0: not known */
	u64 sector;
	u64 upper_sector;
	u32 upper_dev;
	u32 bytes;
	u32 cmd_flags;
	u32 dev;
	u32 pid;
	u16 nr_bios;
	u16 splits;
	u8 requeued; /* the driver gave it back: it will be issued again */
	u8 of_bio;   /* it is a bio, on a device without a queue */
	u8 wanted;   /* aggregate mode: it is sent one by one */
	u8 pad[5];
};

/* What was issued and not completed, by struct request or struct bio. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct iot_inflight);
} iot_requests SEC(".maps");

/* Aggregate mode: the first part of each request in flight, in case that it turns out to be slow. By its number. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct iot_bio);
} iot_parts SEC(".maps");

struct iot_inserted {
	u64 time;
	u64 allocated;
};

/* Requests that wait in a scheduler and have no bio that was seen, by struct request; merged into others they never leave. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct iot_inserted);
} iot_inserts SEC(".maps");

/* How many there may be at most: those that were merged, and those whose place another one has, are counted on. */
u32 iot_inserted;

/* Devices whose names were sent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u8);
} iot_disks SEC(".maps");

u64 iot_next_request = 1;

/*
 * An interrupt may reach a hook while a program runs for it on the same CPU, and the kernel does not run a program inside
 * itself. So there are three of each, for what a CPU can be in: a task, a soft interrupt, an interrupt. All are called for
 * every event, and the first that can run claims it.
 */
#define IOT_COPIES 3

enum iot_copied {
	IOT_ON_QUEUE = 0,
	IOT_ON_INSERT,
	IOT_ON_ISSUE,
	IOT_ON_COMPLETE,
	IOT_ON_END,
	IOT_ON_MAX
};

/* What each copy claimed last. */
struct iot_claimed {
	u64 by[IOT_COPIES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, IOT_ON_MAX);
	__type(key, u32);
	__type(value, struct iot_claimed);
} iot_claims SEC(".maps");

/* Is the event this copy's? */
static __always_inline bool iot_claim(u32 hook, u32 copy, u64 object)
{
	struct iot_claimed *claimed = bpf_map_lookup_elem(&iot_claims, &hook);

	if (!claimed || copy >= IOT_COPIES)
		return copy == 0;
	if ((copy > 0 && claimed->by[0] == object) || (copy > 1 && claimed->by[1] == object))
		return false;
	claimed->by[copy] = object;
	if (copy)
		iot_lost(IOT_LOSS_CLAIMED, IOT_LAYER_BLOCK);
	return true;
}

static __always_inline u32 iot_disk_of(struct gendisk *disk)
{
	return disk ? IOT_DEV(IOT_READ(disk, major), IOT_READ(disk, first_minor)) : 0;
}

/* The same of one that something is issued to. Its name is sent, once. */
static __always_inline u32 iot_disk_named(struct gendisk *disk)
{
	u32 dev = iot_disk_of(disk);
	struct iot_disk e = {.type = IOT_T_DISK, .dev = dev};
	u8 sent = 1;

	if (!dev || bpf_map_lookup_elem(&iot_disks, &dev))
		return dev;
	e.time = bpf_ktime_get_ns();
	bpf_probe_read_kernel(e.name, sizeof(e.name), &disk->disk_name);
	if (!iot_send(IOT_C_BLOCK, 0, &e, sizeof(e)))
		bpf_map_update_elem(&iot_disks, &dev, &sent, BPF_ANY);
	return dev;
}

/* The submitter of a bio. */
static __always_inline void iot_bio_by(struct iot_queued *q, struct iot_bio *e)
{
	e->queued = q->time;
	e->flags = q->flags;
	e->thread = q->thread;
	e->seq = q->seq;
	e->of = q->of;
}

/* What it carries. */
static __always_inline void iot_bio_what(struct bio *bio, struct iot_bio *e)
{
	u32 opf = IOT_READ(bio, bi_opf), log;

	e->bytes = IOT_READ(bio, bi_iter.bi_size);
	iot_bio_file(bio, e);
	if (iot_bio_journal(bio)) {
		e->flags |= IOT_B_JOURNAL;
		e->dev = IOT_READ(bio, bi_bdev, bd_dev);
	} else if ((opf & REQ_OP_MASK) == REQ_OP_WRITE && opf & REQ_META) {
		log = iot_bio_log_tree(bio);
		if (log) {
			e->flags |= IOT_B_JOURNAL;
			e->dev = log;
		}
	}
}

/* A part of a request is issued: it is sent now, or kept until the request is over. */
static __always_inline void iot_part(struct iot_bio *part, bool wanted)
{
	u64 req = part->req;

	if (!part->bytes)
		return;
	if (!iot_cfg.aggregate)
		iot_send(IOT_C_BLOCK, 0, part, sizeof(*part)); /* its loss is no request's */
	else if (wanted)
		iot_send_detail(IOT_C_BLOCK, IOT_LAYER_BLOCK, part, sizeof(*part));
	else if (iot_cfg.detail & IOT_DETAIL_SLOW)
		bpf_map_update_elem(&iot_parts, &req, part, BPF_NOEXIST);
}

/*
 * A device that works on bios themselves: stacked ones (device mapper, md), and some that are memory. The number of what
 * counts as a request of it.
 */
static __noinline u64 iot_level(struct bio *bio, struct iot_queued *q)
{
	struct iot_inflight r = {.of_bio = 1, .nr_bios = 1};
	u64 key = (u64)bio;

	r.req = __sync_fetch_and_add(&iot_next_request, 1);
	r.queued = q->time;
	r.issued = q->time;
	r.sector = IOT_READ(bio, bi_iter.bi_sector);
	r.bytes = IOT_READ(bio, bi_iter.bi_size);
	r.cmd_flags = IOT_READ(bio, bi_opf);
	r.dev = q->dev;
	r.pid = q->tgid;
	r.upper_dev = q->upper_dev;
	r.upper_sector = q->upper_sector;
	r.wanted = q->wanted;
	if (bpf_map_update_elem(&iot_requests, &key, &r, BPF_ANY))
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_BLOCK);
	return r.req;
}

/* Its only part. A function of its own, because Linux 6.1 has no stack for both structures. */
static __noinline int iot_level_part(struct bio *bio, struct iot_queued *q, u64 req)
{
	struct iot_bio e = {.type = IOT_T_BIO, .req = req, .time = q->time};

	iot_bio_by(q, &e);
	iot_bio_what(bio, &e);
	iot_part(&e, q->wanted);
	return 0;
}

/* Aggregate mode: is what a thread queues now to be sent one by one, for all of its process is, or because its call is slow? */
static __always_inline bool iot_request_wanted(struct iot_task *t, u64 now)
{
	if (iot_is_chosen(t->process, 0, 0, 0, 0))
		return true;
	return iot_cfg.detail & IOT_DETAIL_SLOW && t->depth && now > iot_frame_at(t, t->depth - 1)->due;
}

/* A request that was summed up is over: it is sent if it is wanted, or slow. */
static __always_inline void iot_request_detail(struct iot_req *e, bool wanted)
{
	u32 op = e->cmd_flags & REQ_OP_MASK, row = iot_cfg.rows + (op < IOT_BLOCK_OPS ? op : IOT_BLOCK_OPS - 1);
	u64 req = e->req;
	struct iot_bio *part = bpf_map_lookup_elem(&iot_parts, &req);

	if (wanted || (!e->unseen && iot_is_slow(row, e->completed - e->issued))) {
		if (part)
			iot_send_detail(IOT_C_BLOCK, IOT_LAYER_BLOCK, part, sizeof(*part));
		e->summed = !e->unseen;
		iot_send_detail(IOT_C_BLOCK, IOT_LAYER_BLOCK, e, sizeof(*e));
	}
	if (part)
		bpf_map_delete_elem(&iot_parts, &req);
}

static __always_inline int iot_queue(u32 copy, struct bio *bio)
{
	struct task_struct *task;
	struct iot_queued q = {}, *before;
	struct iot_task *t = NULL;
	struct gendisk *disk;
	u64 key = (u64)bio;

	if (!iot_claim(IOT_ON_QUEUE, copy, key))
		return 0;
	task = bpf_get_current_task_btf();
	disk = IOT_READ(bio, bi_bdev, bd_disk);
	q.time = bpf_ktime_get_ns();
	q.tgid = iot_cfg.pid_level ? iot_tgid_of(task) : task->tgid;
	before = bpf_map_lookup_elem(&iot_bios, &key);
	if (before && before->time && copy)
		return 0;
	if (before && !before->time) {
		q.upper_dev = before->upper_dev;
		q.upper_sector = before->upper_sector;
	}
	/* What an interrupt queues has nothing to do with the task that it interrupts. */
	if (!copy) {
		t = iot_self();
		q.flags = task->flags & PF_KTHREAD ? IOT_B_KERNEL : 0;
	}
	q.dev = iot_disk_of(disk);
	if (t) {
		struct iot_op *op = iot_bio_operation(bio, t);

		q.flags |= IOT_B_TRACED;
		q.thread = t->thread;
		if (op) {
			q.flags |= IOT_B_IN_CALL | IOT_B_OPERATION;
			q.thread = op->thread;
			q.seq = op->seq;
			q.of = op->of;
		} else if (iot_inside(t, &q.seq)) {
			q.flags |= IOT_B_IN_CALL;
		}
		q.wanted = iot_cfg.detail && iot_request_wanted(t, q.time);
	} else if (!copy) {
		struct iot_client *c = iot_served();

		if (c) {
			q.flags |= c->flags;
			q.thread = c->thread;
			q.seq = c->seq;
			q.of = c->of;
		}
	}
	if (bpf_map_update_elem(&iot_bios, &key, &q, BPF_ANY))
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_BLOCK);
	if (disk && IOT_READ(disk, fops, submit_bio)) {
		iot_disk_named(disk);
		iot_level_part(bio, &q, iot_level(bio, &q));
	}
	if (t)
		iot_hook_left(t, iot_cfg.rows + IOT_COST_BIO, 0, q.time);
	return 0;
}

/* A bio goes from one device to another: as it is, or a copy of it that is not queued yet. */
SEC("?tp_btf/block_bio_remap")
int BPF_PROG(iot_bio_remap, struct bio *bio, u32 dev, u64 from)
{
	struct iot_queued *q, handed = {.upper_dev = dev, .upper_sector = from};
	u64 key = (u64)bio;

	if (IOT_READ(bio, bi_bdev, bd_dev) == dev)
		return 0; /* from a partition to its disk */
	q = bpf_map_lookup_elem(&iot_bios, &key);
	if (q && q->time && q->dev == dev) {
		q->upper_dev = dev;
		q->upper_sector = from;
	} else {
		bpf_map_update_elem(&iot_bios, &key, &handed, BPF_ANY);
	}
	return 0;
}

/* The first part of a bio that is too long for one request goes out under another struct bio. */
SEC("?tp_btf/block_split")
int BPF_PROG(iot_bio_split, struct bio *bio)
{
	u64 key = (u64)bio, whole = (u64)IOT_READ(bio, bi_private);
	struct iot_queued *q = bpf_map_lookup_elem(&iot_bios, &whole), part;

	if (q) {
		q->split = 1;
		part = *q;
		/* What is left begins after it. */
		q->upper_sector += IOT_READ(bio, bi_iter.bi_size) >> SECTOR_SHIFT;
		bpf_map_update_elem(&iot_bios, &key, &part, BPF_ANY);
	}
	return 0;
}

#endif
