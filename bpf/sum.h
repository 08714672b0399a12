/* SPDX-License-Identifier: GPL-2.0 */
/* Aggregate mode: what calls and requests come to, summed up in maps of fixed size instead of a record for each. */
#ifndef IOT_SUM_H
#define IOT_SUM_H

#define IOT_SIZES	10 /* of reads and writes, as Darshan has them */
#define IOT_TIMES	32 /* powers of two */
#define IOT_TIME_FIRST	6  /* the first one ends at 2^7 ns */
#define IOT_COMMON	4
#define IOT_BLOCK_OPS	16
#define IOT_BUCKETS	252 /* src/correlate/hist.rs: 4 to a power of two */
#define IOT_BUCKET_BITS 2
#define IOT_ALIGNED	4096
#define IOT_TRIES	4

/* The values that are there most often: the first few that came, and how many others did. */
struct iot_common {
	u64 value[IOT_COMMON]; /* plus 1; 0: none */
	u32 n[IOT_COMMON];
	u64 others;
};

/*
 * Of the outermost calls of their layer, but for `nested`, `errors` and `nested_own`. Times in ns, without what hooks took. Each
 * number that a call adds to costs time: how many calls there were is what `by_time` comes to, and of what was asked for and of
 * exclusive time only the difference to what most calls have is kept.
 */
struct iot_sum {
	u64 nested; /* calls inside others of their layer */
	u64 errors;
	u64 unknown; /* successful reads and writes of which it is not known how much they moved */
	u64 bytes;
	u64 missing; /* so much more than `bytes` was asked for; below zero where more was moved */
	u64 time;
	u64 inner;	/* of it, in calls inside */
	u64 nested_own; /* exclusive time of nested calls */
	u64 max;
	u64 max_at;   /* when that began */
	u64 first;    /* when the first one began; 0: there was none */
	u64 last;     /* when the last one ended */
	u64 end;      /* one behind the last byte of the file that was read or written */
	u64 skipping; /* further on in the file, but not right behind the last one */
	u64 consecutive;
	u64 switches; /* from reading to writing, or back */
	u64 unaligned;
	u64 miss;
	u64 ahead;
	u64 waited; /* because too much is dirty; requests: from queue to issue */
	struct iot_common sizes;
	struct iot_common strides;
	u32 by_size[IOT_SIZES];
	u32 by_time[IOT_TIMES];
};

struct iot_sum_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	/* no types: Linux before 6.3 takes no other tables in its place that do not tell theirs */
	__uint(key_size, sizeof(struct iot_sum_key));
	__uint(value_size, sizeof(struct iot_sum));
};

/* The one in use: the reader puts an empty one in its place and, once nobody uses it any more, reads it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct iot_sum_map);
} iot_sums SEC(".maps");

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

/* By row; never emptied. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct iot_counts);
} iot_hists SEC(".maps");

/* How a process goes through a file, in calls of one layer: `row` of the key is the layer. */
struct iot_access {
	u64 last[2]; /* the last byte that was read, and written */
	u32 did;     /* what was done last: 1 read, 2 write */
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct iot_sum_key);
	__type(value, struct iot_access);
} iot_accesses SEC(".maps");

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
const volatile struct iot_access iot_no_access = {};

/*
 * Of a number below 2^63. Without branches: the verifier would follow every way through them, which are many together.
 * (end - v) >> 63 is whether v is greater than end.
 */
static __always_inline u32 iot_log2(u64 v)
{
	u32 n = 0;

#pragma unroll
	for (u32 bits = 32; bits; bits >>= 1) {
		u64 more = ((((u64)1 << bits) - 1 - v) >> 63) * bits;

		v >>= more;
		n += more;
	}
	return n;
}

static __always_inline void iot_add(u64 *to, u64 n)
{
	if (n)
		__sync_fetch_and_add(to, n);
}

/* Returns whether it was less. */
static __always_inline bool iot_raise(u64 *at, u64 v)
{
	u64 old = *at;

	for (u32 i = 0; i < IOT_TRIES && old < v; i++) {
		u64 seen = __sync_val_compare_and_swap(at, old, v);

		if (seen == old)
			return true;
		old = seen;
	}
	return false;
}

/* 0 stands for nothing. */
static __always_inline void iot_lower(u64 *at, u64 v)
{
	u64 old = *at;

	for (u32 i = 0; i < IOT_TRIES && (!old || old > v); i++) {
		u64 seen = __sync_val_compare_and_swap(at, old, v);

		if (seen == old)
			return;
		old = seen;
	}
}

static __always_inline void iot_common_add(struct iot_common *c, u64 v)
{
	for (u32 i = 0; i < IOT_COMMON; i++) {
		u64 known = c->value[i];

		if (!known)
			known = __sync_val_compare_and_swap(&c->value[i], 0, v + 1) ?: v + 1;
		if (known == v + 1) {
			__sync_fetch_and_add(&c->n[i], 1);
			return;
		}
	}
	__sync_fetch_and_add(&c->others, 1);
}

/* Up to 100 bytes, 1, 10 and 100 KiB, 1, 4, 10 and 100 MiB, 1 GiB, and more: the bins of Darshan (darshan-common.h). */
static __always_inline u32 iot_size_class(u64 bytes)
{
#define IOT_ABOVE(end) (((u64)(end)-bytes) >> 63)
	return IOT_ABOVE(100) + IOT_ABOVE(1 << 10) + IOT_ABOVE(10 << 10) + IOT_ABOVE(100 << 10) + IOT_ABOVE(1 << 20) +
	       IOT_ABOVE(4 << 20) + IOT_ABOVE(10 << 20) + IOT_ABOVE(100 << 20) + IOT_ABOVE(1 << 30);
#undef IOT_ABOVE
}

static __always_inline u32 iot_bucket(u64 v)
{
	u32 shift;

	if (v < 1 << IOT_BUCKET_BITS)
		return v;
	shift = iot_log2(v) - IOT_BUCKET_BITS;
	return ((shift + 1) << IOT_BUCKET_BITS) + (u32)(v >> shift) - (1 << IOT_BUCKET_BITS);
}

/* The sum to add to: its own, or that of what there is no room for. */
static __always_inline struct iot_sum *iot_sum_of(struct iot_sum_key *key)
{
	u32 zero = 0, row = key->row;
	void *sums = bpf_map_lookup_elem(&iot_sums, &zero);
	struct iot_sum *sum;

	if (!sums)
		return NULL;
	sum = bpf_map_lookup_elem(sums, key);
	if (sum)
		return sum;
	bpf_map_update_elem(sums, key, (void *)&iot_no_sum, BPF_NOEXIST);
	sum = bpf_map_lookup_elem(sums, key);
	return sum ?: bpf_map_lookup_elem(&iot_rests, &row);
}

/* How long calls of a row take, where it is known only of calls that are told. */
static __always_inline void iot_count_time(u32 row, u64 time)
{
	struct iot_counts *counts = bpf_map_lookup_elem(&iot_hists, &row);
	u32 bucket = iot_bucket(time);

	if (counts && bucket < IOT_BUCKETS)
		__sync_fetch_and_add(&counts->time[bucket], 1);
}

static __always_inline void iot_sum_time(struct iot_sum *sum, u32 row, u64 start, u64 time)
{
	u32 n = iot_log2(time | 1);

	n = n < IOT_TIME_FIRST ? 0 : n - IOT_TIME_FIRST;
	if (n >= IOT_TIMES)
		n = IOT_TIMES - 1;
	__sync_fetch_and_add(&sum->by_time[n], 1);
	iot_add(&sum->time, time);
	if (iot_raise(&sum->max, time))
		sum->max_at = start;
	iot_lower(&sum->first, start);
	iot_raise(&sum->last, start + time);
	iot_count_time(row, time);
}

static __always_inline void iot_sum_size(struct iot_sum *sum, u32 row, u64 bytes)
{
	struct iot_counts *counts = bpf_map_lookup_elem(&iot_hists, &row);
	u32 n = iot_size_class(bytes), bucket = iot_bucket(bytes);

	if (n < IOT_SIZES)
		__sync_fetch_and_add(&sum->by_size[n], 1);
	iot_add(&sum->bytes, bytes);
	if (counts && bucket < IOT_BUCKETS)
		__sync_fetch_and_add(&counts->size[bucket], 1);
}

/*
 * How a read or write lies to the one before. The meaning is that of Darshan's POSIX module (darshan-posix.c): the last byte of
 * a file that was never touched is its first.
 */
static __always_inline int iot_sum_place(struct iot_sum *sum, struct iot_sum_key *key, u64 off, u64 bytes, u32 writes)
{
	struct iot_access *x;
	u64 last;

	if (!sum || !key)
		return 0;
	x = bpf_map_lookup_elem(&iot_accesses, key);
	if (!x) {
		bpf_map_update_elem(&iot_accesses, key, (void *)&iot_no_access, BPF_NOEXIST);
		x = bpf_map_lookup_elem(&iot_accesses, key);
		if (!x)
			return 0;
	}
	writes &= 1;
	last = x->last[writes];
	if (off == last + 1) {
		__sync_fetch_and_add(&sum->consecutive, 1);
	} else if (off > last) {
		__sync_fetch_and_add(&sum->skipping, 1);
		if (last)
			iot_common_add(&sum->strides, off - last - 1);
	}
	x->last[writes] = off + bytes - 1;
	if (x->did && x->did != 1 + writes)
		__sync_fetch_and_add(&sum->switches, 1);
	x->did = 1 + writes;
	if (off % IOT_ALIGNED)
		__sync_fetch_and_add(&sum->unaligned, 1);
	iot_raise(&sum->end, off + bytes);
	return 0;
}

/* Adds a call that is over. `c` has its values; what they mean is that of src/correlate/call.rs. */
__noinline int iot_sum(struct iot_summing *m, struct iot_spec *s, struct iot_call *c)
{
	struct iot_sum_key key;
	struct iot_sum *sum;
	u64 bytes = 0, time;
	bool known;

	/* the kernel checks such functions whether they are called or not: nothing is left of it where nothing is summed up */
	if (!iot_cfg.aggregate || !m || !s || !c)
		return 0;
	key = m->key;
	sum = iot_sum_of(&key);
	if (!sum) {
		iot_lost(IOT_P_MAP_FULL, s->layer);
		return 0;
	}
	if (c->status < 0)
		__sync_fetch_and_add(&sum->errors, 1);
	if (m->nested) {
		__sync_fetch_and_add(&sum->nested, 1);
		iot_add(&sum->nested_own, m->own);
		return 0;
	}
	time = iot_net(c);
	iot_add(&sum->inner, time > m->own ? time - m->own : 0);
	iot_sum_time(sum, key.row, c->start, time);
	iot_add(&sum->miss, m->miss);
	iot_add(&sum->ahead, m->ahead);
	iot_add(&sum->waited, m->waited);
	if (s->sums != IOT_SUMS_ALL)
		return 0;
	known = c->status >= 0 && c->flags & IOT_F_GOT;
	bytes = c->got;
	if (!known && c->status >= 0 && s->layer == IOT_LAYER_MPIIO && s->kind == IOT_WRITES && c->flags & IOT_F_LEN) {
		/* MPI has no short write without an error */
		known = true;
		bytes = c->len;
	}
	/* what copies has no length of its own, and where a stream stands is none */
	if (!(s->call & IOT_Y_COPIES) && s->len.how != IOT_STREAM_POS)
		iot_add(&sum->missing, (c->flags & IOT_F_LEN ? c->len : 0) - (known ? bytes : 0));
	if (known)
		iot_sum_size(sum, key.row, bytes);
	if (!s->kind)
		return 0;
	if (!known) {
		if (c->status >= 0)
			__sync_fetch_and_add(&sum->unknown, 1);
		return 0;
	}
	iot_common_add(&sum->sizes, bytes);
	if (!bytes || !(c->flags & IOT_F_OFF) || key.what == IOT_SUM_NOTHING)
		return 0;
	key.row = s->layer;
	iot_sum_place(sum, &key, c->off, bytes, s->kind == IOT_WRITES);
	return 0;
}

/* Begins with a call of this row of which no more is known. */
static __always_inline void iot_summing(struct iot_summing *m, u32 process, u32 row)
{
	__builtin_memset(m, 0, sizeof(*m));
	m->key.process = process;
	m->key.row = row;
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
	iot_summing(m, t->process, f->spec);
	if (e->call.type == IOT_T_SYSCALL) {
		if (e->call.flags & IOT_F_FILE)
			iot_sum_file(m, e->ino, e->dev, e->generation);
		m->miss = f->miss;
		m->ahead = f->ahead;
		m->waited = f->throttled;
	} else if (e->call.flags & IOT_F_HANDLE) {
		struct iot_opener_key opener = {.handle = e->call.handle, .process = t->process, .layer = s->layer};
		u64 *opened = bpf_map_lookup_elem(&iot_openers, &opener);

		m->key.what = IOT_SUM_HANDLE;
		m->key.a = e->call.handle;
		m->key.b = opened ? *opened : ~0ULL;
	}
	m->own = time > f->inner ? time - f->inner : 0;
	m->nested = f->nested;
	return iot_sum(m, s, &e->call);
}

/* A call that made a handle is told; those on the handle are summed up under its number. */
static __always_inline void iot_opened_by(struct iot_task *t, struct iot_spec *s, struct iot_frame *f,
					  struct iot_call *c)
{
	struct iot_opener_key key = {.handle = c->handle, .process = t->process, .layer = s->layer};
	u64 call = (u64)t->thread << 32 | f->seq;

	if (s->opens && c->status >= 0 && c->flags & IOT_F_HANDLE)
		bpf_map_update_elem(&iot_openers, &key, &call, BPF_ANY);
}

/* How much of a call that is told was spent in calls inside it: those that are summed up are not told. */
static __always_inline void iot_tell_inner(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
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
	u32 op = r->cmd_flags & 0xff, pid = r->pid;
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &pid);
	struct iot_sum *sum;

	key.row = iot_cfg.rows + (op < IOT_BLOCK_OPS ? op : IOT_BLOCK_OPS - 1);
	if (target)
		key.process = target->process;
	sum = iot_sum_of(&key);
	if (!sum) {
		iot_lost(IOT_P_MAP_FULL, IOT_LAYER_BLOCK);
		return;
	}
	if (r->upper_dev) { /* it is counted where it was handed down */
		__sync_fetch_and_add(&sum->nested, 1);
		return;
	}
	iot_sum_time(sum, key.row, r->issued, r->completed - r->issued);
	iot_add(&sum->inner, r->completed - r->issued); /* no thread spends it */
	iot_add(&sum->waited, r->issued > r->queued ? r->issued - r->queued : 0);
	if (r->status) {
		__sync_fetch_and_add(&sum->errors, 1);
		return;
	}
	if (op <= 1) {
		iot_sum_size(sum, key.row, r->bytes);
		iot_common_add(&sum->sizes, r->bytes);
	}
}

#endif
