/* SPDX-License-Identifier: GPL-2.0 */
/* Block requests, from the scheduler to the device and back. */
#ifndef IOT_REQUEST_H
#define IOT_REQUEST_H

static __always_inline int iot_insert(u32 copy, struct request *rq)
{
	struct iot_inserted in = {};
	struct iot_queued *q;
	u64 key = (u64)rq, bio;

	if (!iot_claim(IOT_ON_INSERT, copy, key))
		return 0;
	in.time = bpf_ktime_get_ns();
	in.allocated = IOT_READ(rq, start_time_ns);
	bio = (u64)IOT_READ(rq, bio);
	q = bio ? bpf_map_lookup_elem(&iot_bios, &bio) : NULL;
	if (q) {
		q->inserted = in.time;
		q->allocated = in.allocated;
	} else if (!bpf_map_update_elem(&iot_inserts, &key, &in, BPF_ANY)) {
		__sync_fetch_and_add(&iot_inserted, 1);
	}
	return 0;
}

/* A request that is being issued. Not on the stack, where the verifier would follow what each bio changes. */
struct iot_issuing {
	struct iot_inflight r;
	struct iot_bio part; /* neighbours so far; bytes 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, IOT_COPIES);
	__type(key, u32);
	__type(value, struct iot_issuing);
} iot_issuings SEC(".maps");

struct iot_chain {
	u64 bio;
	struct iot_issuing *s;
};

static __always_inline void iot_chain_flush(struct iot_bio *part, bool wanted)
{
	iot_part(part, wanted);
	part->bytes = 0;
}

/* Adds a bio to the request that is being issued; the next one of it. */
__noinline u64 iot_chain_one(struct iot_issuing *s, u64 key)
{
	struct iot_bio e = {.type = IOT_T_BIO};
	struct bio *bio = (void *)key;
	struct iot_inflight *r;
	struct iot_queued *q;
	struct iot_bio *part;

	if (!s || !bio)
		return 0;
	r = &s->r;
	part = &s->part;
	e.req = r->req;
	e.time = r->issued;
	q = bpf_map_lookup_elem(&iot_bios, &key);
	e.queued = r->issued; /* unless it was seen */
	if (q && q->time) {
		if (!r->queued || q->time < r->queued) {
			r->queued = q->time;
			r->pid = q->tgid;
		}
		/* The first one is where the request begins. */
		if (!r->nr_bios) {
			r->upper_dev = q->upper_dev;
			r->upper_sector = q->upper_sector;
		}
		if (q->inserted && q->allocated == r->allocated)
			r->inserted = q->inserted;
		r->splits += q->split;
		r->wanted |= q->wanted;
		iot_bio_by(q, &e);
		bpf_map_delete_elem(&iot_bios, &key);
	}
	iot_bio_what(bio, &e);
	r->nr_bios++;
	if (part->bytes && part->dev == e.dev && part->ino == e.ino && part->thread == e.thread && part->seq == e.seq &&
	    part->flags == e.flags && part->cgroup == e.cgroup &&
	    (!(e.flags & IOT_B_FILE) || part->off + part->bytes == e.off)) {
		part->bytes += e.bytes;
	} else {
		iot_chain_flush(part, r->wanted);
		*part = e;
	}
	return (u64)IOT_READ(bio, bi_next);
}

static long iot_chain_step(u64 i, struct iot_chain *c)
{
	if (!c->bio)
		return 1;
	c->bio = iot_chain_one(c->s, c->bio);
	return 0;
}

/*
 * A request, or bio, is over: that of this allocation, or an earlier one in the same memory, of whose end no program was run.
 */
static __noinline int iot_over(u64 key, u64 status, u64 allocated)
{
	struct iot_inflight *r = bpf_map_lookup_elem(&iot_requests, &key);
	struct iot_req e = {.type = IOT_T_REQ};
	bool wanted;

	if (!r)
		return 0; /* issued before we came */
	wanted = r->wanted;
	e.unseen = r->allocated != allocated;
	e.status = e.unseen ? 0 : status;
	e.nr_bios = r->nr_bios;
	e.splits = r->splits;
	e.of_bio = r->of_bio;
	e.dev = r->dev;
	e.req = r->req;
	e.sector = r->sector;
	e.bytes = r->bytes;
	e.cmd_flags = r->cmd_flags;
	e.queued = r->queued;
	e.inserted = r->inserted;
	e.issued = r->issued;
	e.completed = bpf_ktime_get_ns();
	e.upper_dev = r->upper_dev;
	e.upper_sector = r->upper_sector;
	e.pid = r->pid;
	if (r->of_bio)
		bpf_map_delete_elem(&iot_bios, &key);
	bpf_map_delete_elem(&iot_requests, &key);
	if (!iot_cfg.aggregate)
		iot_send(IOT_C_BLOCK, IOT_LAYER_BLOCK, &e, sizeof(e));
	else if (e.unseen)
		iot_lost(IOT_LOSS_REQUEST_END, IOT_LAYER_BLOCK);
	else
		iot_sum_request(&e);
	if (iot_cfg.detail)
		iot_request_detail(&e, wanted);
	return 0;
}

static __always_inline int iot_issue(u32 copy, struct request *rq)
{
	struct iot_inflight *again, *r;
	struct iot_inserted *in;
	u64 key = (u64)rq, now;
	struct iot_chain c;

	if (!iot_claim(IOT_ON_ISSUE, copy, key))
		return 0;
	now = bpf_ktime_get_ns();
	c.s = bpf_map_lookup_elem(&iot_issuings, &copy);
	if (!c.s)
		return 0;
	c.bio = (u64)IOT_READ(rq, bio);
	r = &c.s->r;
	__builtin_memset(c.s, 0, sizeof(*c.s));
	r->issued = now;
	r->allocated = IOT_READ(rq, start_time_ns);
	r->sector = IOT_READ(rq, __sector);
	r->bytes = IOT_READ(rq, __data_len);
	r->cmd_flags = IOT_READ(rq, cmd_flags);
	again = bpf_map_lookup_elem(&iot_requests, &key);
	if (again && again->allocated == r->allocated && again->sector == r->sector && again->bytes == r->bytes) {
		if (again->requeued)
			again->issued = now;
		again->requeued = 0;
		return 0;
	}
	if (again && again->allocated != r->allocated)
		iot_over(key, 0, r->allocated);
	r->req = __sync_fetch_and_add(&iot_next_request, 1);
	r->pid = iot_tgid();
	r->dev = iot_disk_named(IOT_READ(rq, q, disk));
	/* most have one bio, or none */
	iot_chain_step(0, &c);
	if (c.bio && bpf_loop(IOT_BIO_MAX, iot_chain_step, &c, 0) == IOT_BIO_MAX && c.bio)
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_BLOCK);
	iot_chain_flush(&c.s->part, r->wanted);
	in = r->inserted || !iot_inserted ? NULL : bpf_map_lookup_elem(&iot_inserts, &key);
	if (in) {
		if (in->allocated == r->allocated)
			r->inserted = in->time;
		if (!bpf_map_delete_elem(&iot_inserts, &key))
			__sync_fetch_and_sub(&iot_inserted, 1);
	}
	if (!r->queued)
		r->queued = r->inserted ?: now;
	if (bpf_map_update_elem(&iot_requests, &key, r, BPF_ANY))
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_BLOCK);
	return 0;
}

/* The driver gives a request back. */
SEC("?tp_btf/block_rq_requeue")
int BPF_PROG(iot_rq_requeue, struct request *rq)
{
	u64 key = (u64)rq;
	struct iot_inflight *r = bpf_map_lookup_elem(&iot_requests, &key);

	if (r)
		r->requeued = 1;
	return 0;
}

static __always_inline int iot_complete(u32 copy, struct request *rq, u8 error, u32 nr_bytes)
{
	if (!iot_claim(IOT_ON_COMPLETE, copy, (u64)rq) || nr_bytes < IOT_READ(rq, __data_len))
		return 0; /* a part has no record: the last one has */
	return iot_over((u64)rq, error, IOT_READ(rq, start_time_ns));
}

static __always_inline int iot_end(u32 copy, struct bio *bio)
{
	if (!iot_claim(IOT_ON_END, copy, (u64)bio))
		return 0;
	return iot_over((u64)bio, IOT_READ(bio, bi_status), 0);
}

#define IOT_BLOCK_PROGRAMS(copy)                                                                                       \
	SEC("?tp_btf/block_bio_queue")                                                                                 \
	int BPF_PROG(iot_bio_queue##copy, struct bio *bio)                                                             \
	{                                                                                                              \
		return iot_queue(copy, bio);                                                                           \
	}                                                                                                              \
	SEC("?tp_btf/block_rq_insert")                                                                                 \
	int BPF_PROG(iot_rq_insert##copy, struct request *rq)                                                          \
	{                                                                                                              \
		return iot_insert(copy, rq);                                                                           \
	}                                                                                                              \
	SEC("?tp_btf/block_rq_issue")                                                                                  \
	int BPF_PROG(iot_rq_issue##copy, struct request *rq)                                                           \
	{                                                                                                              \
		return iot_issue(copy, rq);                                                                            \
	}                                                                                                              \
	SEC("?tp_btf/block_rq_complete")                                                                               \
	int BPF_PROG(iot_rq_complete##copy, struct request *rq, u8 error, u32 nr_bytes)                                \
	{                                                                                                              \
		return iot_complete(copy, rq, error, nr_bytes);                                                        \
	}                                                                                                              \
	SEC("?tp_btf/block_bio_complete")                                                                              \
	int BPF_PROG(iot_bio_complete##copy, struct request_queue *q, struct bio *bio)                                 \
	{                                                                                                              \
		return iot_end(copy, bio);                                                                             \
	}

IOT_BLOCK_PROGRAMS(0)
IOT_BLOCK_PROGRAMS(1)
IOT_BLOCK_PROGRAMS(2)

#endif
