/* SPDX-License-Identifier: GPL-2.0 */
/* Aggregate mode: what calls and requests come to, summed up in maps of fixed size instead of a record for each. */
#ifndef IOT_SUM_H
#define IOT_SUM_H

#define IOT_BLOCK_OPS 16
#define IOT_ALIGNED   4096

/*
 * Of the outermost calls of their layer, but for `nested`, `errors` and `nested_own`. Times in ns, without what hooks
 * took. Each number that a call adds to costs time: how many calls there were, and how many in each power of two, is
 * what `by_time` comes to, and of what was asked for and of exclusive time only the difference to what most calls have
 * is kept.
 *
 * The sum of one thread's calls has no other writer, and needs no atomic additions. In it a read or write whose size is
 * one of `sizes` is counted there only: how many bytes those are, and in which bins, follows from it.
 */
struct iot_sum {
	u64 time;
	u64 max;
	u64 first; /* when the first one began; 0: there was none */
	u64 last;  /* when the last one ended */
	u64 end;   /* one behind the last byte of the file that was read or written */
	u64 mark;  /* of one thread's sum: of its file in iot_accesses; 0: not looked up yet */
	u64 consecutive;
	struct iot_common sizes;
	u32 slot; /* where that is */
	u32 pad;
	u64 bytes;
	u64 missing;	/* so much more than what was moved was asked for; below zero where more was moved */
	u64 inner;	/* of `time`, in calls inside */
	u64 max_at;	/* when the longest began */
	u64 nested;	/* calls inside others of their layer */
	u64 nested_own; /* exclusive time of nested calls */
	u64 errors;
	u64 unknown;  /* successful reads and writes of which it is not known how much they moved */
	u64 skipping; /* further on in the file, but not right behind the last one */
	u64 switches; /* from reading to writing, or back */
	u64 unaligned;
	u64 miss;
	u64 ahead;
	u64 waited; /* because too much is dirty; requests: from queue to issue */
	u64 away;   /* of `time`, on no CPU */
	u64 queued; /* of that, in a run queue */
	u64 locked; /* and for locks of the kernel */
	struct iot_common strides;
	u32 by_size[IOT_SIZES];
	u32 by_time[IOT_TIME_BUCKETS];
};

struct iot_sum_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	/* no types: Linux before 6.3 accepts no inner map without types in the place of one with types */
	__uint(key_size, sizeof(struct iot_sum_key));
	__uint(value_size, sizeof(struct iot_sum));
};

/* The one in use: the reader puts an empty one in its place and, once it is not used any more, reads it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct iot_sum_map);
} iot_sums SEC(".maps");

/*
 * Requests end in interrupts, where the kernel has memory for one or two new entries only: these tables have theirs
 * from the start. Which of them is in use changes with iot_sums.
 */
struct iot_request_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct iot_sum_key);
	__type(value, struct iot_sum);
};

struct iot_request_map iot_request_sums SEC(".maps");
struct iot_request_map iot_request_sums_too SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} iot_request_turn SEC(".maps");

/* What found no room there, by row: never emptied. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct iot_sum);
} iot_rests SEC(".maps");

struct iot_counts {
	u32 time[IOT_BUCKETS];
	u32 size[IOT_BUCKETS];
};

/* By row, of calls that are in no sum, or whose size is none of the sum's `sizes`; never emptied. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct iot_counts);
} iot_hists SEC(".maps");

struct iot_opener_key {
	u64 handle;
	u32 process;
	u32 layer;
};

/* Which call opened a handle of a library: handles are used again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct iot_opener_key);
	__type(value, u64);
} iot_openers SEC(".maps");

const volatile struct iot_sum iot_no_sum = {};

/* The sum of this key in the table in use; none when there is no room for it. */
static __always_inline struct iot_sum *iot_sum_in(void *sums, struct iot_sum_key *key)
{
	struct iot_sum *sum = bpf_map_lookup_elem(sums, key);

	if (sum)
		return sum;
	bpf_map_update_elem(sums, key, (void *)&iot_no_sum, BPF_NOEXIST);
	return bpf_map_lookup_elem(sums, key);
}

/* How long calls of a row take, where that is known only of calls that are sent. */
static __always_inline void iot_count_time(u32 row, u64 time)
{
	struct iot_counts *counts = bpf_map_lookup_elem(&iot_hists, &row);
	u32 bucket = iot_bucket(time);

	if (counts && bucket < IOT_BUCKETS)
		__sync_fetch_and_add(&counts->time[bucket], 1);
}

/* `adds`: what of it is not in the sums yet. */
static __always_inline void iot_sum_time(struct iot_sum *sum, u64 start, u64 time, u64 adds, bool shared)
{
	u32 bucket = iot_bucket(time);

	if (bucket >= IOT_TIME_BUCKETS)
		bucket = IOT_TIME_BUCKETS - 1;
	iot_count(&sum->by_time[bucket], shared);
	iot_add(&sum->time, adds, shared);
	if (iot_raise(&sum->max, time, shared))
		sum->max_at = start;
	iot_lower(&sum->first, start, shared);
	iot_raise(&sum->last, start + time, shared);
}

/* So many bytes were moved. What is not among the sum's `sizes`, or may change while it is read, is added up here. */
static __always_inline void iot_sum_size(struct iot_sum *sum, u32 row, u64 bytes, bool moves, bool shared)
{
	struct iot_counts *counts;
	u32 n, bucket;

	if (moves && iot_common_add(&sum->sizes, bytes, shared) && !shared)
		return;
	counts = bpf_map_lookup_elem(&iot_hists, &row);
	n = iot_size_class(bytes);
	bucket = iot_bucket(bytes);
	if (n < IOT_SIZES)
		iot_count(&sum->by_size[n], shared);
	iot_add(&sum->bytes, bytes, shared);
	if (counts && bucket < IOT_BUCKETS)
		__sync_fetch_and_add(&counts->size[bucket], 1);
}

/*
 * How a read or write lies to the one before. The meaning is that of Darshan's POSIX module (darshan-posix.c): the last
 * byte of a file that was never touched is its first.
 */
static __always_inline void iot_sum_range(struct iot_sum *sum, struct iot_access *x, struct iot_call *c, u64 bytes,
					  u32 writes, bool shared)
{
	u64 off = c->off, last;

	writes &= 1;
	last = x->last[writes];
	if (off == last + 1) {
		iot_add(&sum->consecutive, 1, shared);
	} else if (off > last) {
		iot_add(&sum->skipping, 1, shared);
		if (last)
			iot_common_add(&sum->strides, off - last - 1, shared);
	}
	x->last[writes] = off + bytes - 1;
	if (x->did && x->did != 1 + writes)
		iot_add(&sum->switches, 1, shared);
	x->did = 1 + writes;
	x->used = c->start;
	if (off % IOT_ALIGNED)
		iot_add(&sum->unaligned, 1, shared);
	iot_raise(&sum->end, off + bytes, shared);
}

/* How its process went through the file, or handle, so far. Of one thread's sum it is found again without a search. */
static __always_inline struct iot_access *iot_sum_access(struct iot_sum *sum, struct iot_sum_key *key, u32 layer,
							 bool shared)
{
	u64 mark = shared ? 0 : sum->mark;
	struct iot_access *x;
	u32 slot;

	if (mark) {
		x = iot_access_at(sum->slot);
		if (x && x->mark == mark)
			return x;
	} else {
		mark = iot_mark_of(key, layer);
	}
	slot = iot_access_find(mark);
	if (!shared) {
		sum->mark = mark;
		sum->slot = slot;
	}
	return iot_access_at(slot);
}

/* Adds a call that is over to a sum. `c` has its values; what they mean is that of src/correlate/calls/call.rs. */
static __always_inline void iot_sum_up(struct iot_summing *m, struct iot_sum_key *key, struct iot_spec *s,
				       struct iot_call *c, struct iot_sum *sum, bool shared)
{
	struct iot_access *x;
	u64 bytes, time;
	bool known;

	if (c->status < 0)
		iot_add(&sum->errors, 1, shared);
	if (m->nested) {
		iot_add(&sum->nested, 1, shared);
		iot_add(&sum->nested_own, m->own, shared);
		return;
	}
	time = iot_net(c);
	iot_add(&sum->inner, (time > m->own ? time - m->own : 0) - m->overlap, shared);
	iot_sum_time(sum, c->start, time, time - m->overlap, shared);
	iot_add(&sum->miss, m->miss, shared);
	iot_add(&sum->ahead, m->ahead, shared);
	iot_add(&sum->waited, m->waited, shared);
	if (c->away != IOT_UNKNOWN && c->away) {
		iot_add(&sum->away, c->away, shared);
		iot_add(&sum->queued, c->queued, shared);
		iot_add(&sum->locked, m->locked, shared);
	}
	if (s->sums != IOT_SUMS_ALL)
		return;
	known = c->status >= 0 && c->flags & IOT_F_GOT;
	bytes = c->got;
	if (!known && c->status >= 0 && s->layer == IOT_LAYER_MPIIO && s->kind == IOT_WRITES && c->flags & IOT_F_LEN) {
		/* MPI has no short write without an error */
		known = true;
		bytes = c->len;
	}
	/* what copies has no length of its own, and where a stream stands is none */
	if (!(s->flags & IOT_S_COPIES) && s->len.from != IOT_FROM_STREAM_POS)
		iot_add(&sum->missing, (c->flags & IOT_F_LEN ? c->len : 0) - (known ? bytes : 0), shared);
	if (!known) {
		if (s->kind && c->status >= 0)
			iot_add(&sum->unknown, 1, shared);
		return;
	}
	iot_sum_size(sum, key->row, bytes, s->kind, shared);
	if (!s->kind || !bytes || !(c->flags & IOT_F_OFF) || key->what == IOT_SUM_NOTHING)
		return;
	x = iot_sum_access(sum, key, s->layer, shared);
	if (x)
		iot_sum_range(sum, x, c, bytes, s->kind == IOT_WRITES, shared);
}

/* Adds it to a sum that it does not have for itself: of no thread, or of all that found no room. */
__noinline int iot_sum_shared(struct iot_summing *m, struct iot_spec *s, struct iot_call *c)
{
	struct iot_sum_key key;
	struct iot_sum *sum;
	u32 zero = 0, row;
	void *sums;

	/* the kernel checks such functions whether they are called or not: nothing is left of it where nothing is summed up */
	if (!iot_cfg.aggregate || !m || !s || !c)
		return 0;
	key = m->key;
	row = key.row;
	sums = key.thread ? NULL : bpf_map_lookup_elem(&iot_sums, &zero);
	sum = sums ? iot_sum_in(sums, &key) : NULL;
	if (!sum)
		sum = bpf_map_lookup_elem(&iot_rests, &row);
	if (sum)
		iot_sum_up(m, &key, s, c, sum, true);
	else
		iot_lost(IOT_LOSS_MAP_FULL, s->layer);
	return 0;
}

/* Adds a call that is over to the sum of the thread that made it. Returns whether there is no room for that. */
__noinline int iot_sum_own(struct iot_summing *m, struct iot_spec *s, struct iot_call *c)
{
	struct iot_sum_key key;
	struct iot_sum *sum;
	u32 zero = 0;
	void *sums;

	if (!iot_cfg.aggregate || !m || !s || !c)
		return 0;
	key = m->key;
	sums = bpf_map_lookup_elem(&iot_sums, &zero);
	sum = sums ? iot_sum_in(sums, &key) : NULL;
	if (!sum)
		return 1;
	iot_sum_up(m, &key, s, c, sum, false);
	return 0;
}

/* Adds a call that is over in the thread that made it. In line: there may be eight frames, the program's own included. */
static __always_inline void iot_sum(struct iot_summing *m, struct iot_spec *s, struct iot_call *c)
{
	if (iot_sum_own(m, s, c))
		iot_sum_shared(m, s, c);
}

/* Begins with something of this row of which no more is known, that is added where it may be that of any thread. */
static __always_inline void iot_summing(struct iot_summing *m, u32 process, u32 row)
{
	__builtin_memset(m, 0, sizeof(*m));
	m->key.process = process;
	m->key.row = row;
}

/* The same with a call of this thread. */
static __always_inline void iot_summing_call(struct iot_summing *m, struct iot_task *t, u32 row)
{
	iot_summing(m, t->process, row);
	m->key.thread = t->thread;
	m->key.program = t->program + 1;
}

static __always_inline void iot_sum_file(struct iot_summing *m, u64 ino, u32 dev, u32 generation)
{
	m->key.what = IOT_SUM_FILE;
	m->key.a = ino;
	m->key.b = (u64)generation << 32 | dev;
}

/* Adds the call that is being made: one of a library, or on a file. */
__noinline int iot_sum_made(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	struct iot_summing *m;
	struct iot_syscall *e;
	u64 time;

	if (!iot_cfg.aggregate || !t || !s || !f)
		return 0;
	m = &t->sum;
	e = &t->made;
	time = iot_net(&e->call);
	iot_summing_call(m, t, f->spec);
	if (e->call.type == IOT_T_SYSCALL) {
		if (e->call.flags & IOT_F_FILE)
			iot_sum_file(m, e->ino, e->dev, e->generation);
		m->miss = f->miss;
		m->ahead = f->ahead;
		m->waited = f->throttled;
		m->locked = f->locked;
	} else if (e->call.flags & IOT_F_HANDLE) {
		struct iot_opener_key opener = {.handle = e->call.handle, .process = t->process, .layer = s->layer};
		u64 *opened = bpf_map_lookup_elem(&iot_openers, &opener);

		m->key.what = IOT_SUM_HANDLE;
		m->key.a = e->call.handle;
		m->key.b = opened ? *opened : ~0ULL;
	}
	m->own = time > f->inner ? time - f->inner : 0;
	m->nested = f->nested;
	iot_sum(m, s, &e->call);
	return 0;
}

/* A call that made a handle is sent; those on the handle are summed up under its number. */
static __always_inline void iot_opened_by(struct iot_task *t, struct iot_spec *s, struct iot_frame *f,
					  struct iot_call *c)
{
	struct iot_opener_key key = {.handle = c->handle, .process = t->process, .layer = s->layer};
	u64 call = (u64)t->thread << 32 | f->seq;

	if ((s->flags & IOT_S_OPENS) && c->status >= 0 && c->flags & IOT_F_HANDLE)
		bpf_map_update_elem(&iot_openers, &key, &call, BPF_ANY);
}

/* How much of a call that is sent was spent in calls inside it: those that are summed up are not sent. */
static __always_inline void iot_send_inner(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	struct iot_inner e = {
		.type = IOT_T_INNER, .thread = t->thread, .seq = f->seq, .time = t->now, .inner = f->inner};

	if (f->inner)
		iot_send(iot_call_class(s), 0, &e, sizeof(e));
}

/* So much of the innermost call's time is not its own: a call inside it was recorded, and has been taken off the stack. */
static __always_inline void iot_spent(struct iot_task *t, u64 time)
{
	if (t->depth)
		iot_frame_at(t, t->depth - 1)->inner += time;
}

/* Adds a request that is over. */
static __always_inline void iot_sum_request(struct iot_req *r)
{
	struct iot_sum_key key = {.what = IOT_SUM_DEVICE, .a = r->dev, .process = IOT_NOT_KNOWN};
	u32 op = r->cmd_flags & 0xff, pid = r->pid, zero = 0, row;
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &pid);
	u32 *turn = bpf_map_lookup_elem(&iot_request_turn, &zero);
	struct iot_sum *sum;

	row = iot_cfg.rows + (op < IOT_BLOCK_OPS ? op : IOT_BLOCK_OPS - 1);
	key.row = row;
	if (target)
		key.process = target->process;
	sum = iot_sum_in(turn && *turn ? &iot_request_sums_too : &iot_request_sums, &key);
	if (!sum)
		sum = bpf_map_lookup_elem(&iot_rests, &row);
	if (!sum) {
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_BLOCK);
		return;
	}
	if (r->upper_dev) { /* it is counted where it was handed down */
		iot_add(&sum->nested, 1, true);
		return;
	}
	iot_sum_time(sum, r->issued, r->completed - r->issued, r->completed - r->issued, true);
	iot_add(&sum->inner, r->completed - r->issued, true); /* no thread spends it */
	iot_add(&sum->waited, r->issued > r->queued ? r->issued - r->queued : 0, true);
	if (r->status)
		iot_add(&sum->errors, 1, true);
	else if (op <= 1)
		iot_sum_size(sum, row, r->bytes, true, true);
}

#endif
