/* SPDX-License-Identifier: GPL-2.0 */
/* Arrays of the program that go with a record: dimensions, counts, requests. */
#ifndef IOT_ARRAYS_H
#define IOT_ARRAYS_H

#define IOT_RANK_MAX  32 /* H5S_MAX_RANK, H5Spublic.h */
#define IOT_POINTERS  4096
#define IOT_PIECES    64
#define IOT_BOXES_MAX (1 << 20)
#define IOT_RANKS_MAX (1 << 20)
#define IOT_RUNS_MAX  256
#define IOT_RUN_BYTES 12

/* Dimensions read where the rank is not known; raised when the program makes something of more. */
u32 iot_rank = 8;

struct iot_array {
	struct iot_scratch *out;
	struct iot_task *t;
	u64 base;
	u32 len; /* bytes */
	u32 pos; /* bytes that stand in out */
	u32 seq;
	u32 each; /* bytes that a pointer leads to */
	u32 class;
	u8 what;
	u8 any_rank; /* it may be shorter than len: the rest is zero */
	u8 bad;
};

/* One word of an array that could not be read at once; the first that cannot be read ends it. */
static long iot_element_step(u64 i, struct iot_array *a)
{
	u32 at = a->pos + (u32)i * 8;

	if ((u32)i * 8 >= a->each)
		return 1;
	return bpf_probe_read_user(&a->out->bytes[at & (IOT_TEXT_MAX - 1)], 8, (void *)(a->base + i * 8)) != 0;
}

/* Reads one element of a->each bytes, at most those of a rank. Inline: one function more is too much stack on Linux 6.1. */
static __always_inline bool iot_read_ranked(struct iot_array *a)
{
	u32 n = a->each, at = a->pos & (IOT_TEXT_MAX - 1);

	barrier_var(n); /* or the bound is set where older kernels do not see it */
	if (n > IOT_RANK_MAX * 8)
		n = IOT_RANK_MAX * 8;
	if (!bpf_probe_read_user(&a->out->bytes[at], n, (void *)a->base))
		return true;
	/* bpf_probe_read_user left zeros; what lies before the end of the page is read again */
	bpf_loop(IOT_RANK_MAX, iot_element_step, a, 0);
	return a->any_rank;
}

static long iot_piece_step(u64 i, struct iot_array *a)
{
	u32 at = (u32)i * IOT_TEXT_MAX, n;

	if (at >= a->len)
		return 1;
	n = a->len - at;
	if (n > IOT_TEXT_MAX)
		n = IOT_TEXT_MAX;
	if (bpf_probe_read_user(a->out->bytes, n, (void *)(a->base + at))) {
		a->bad = 1;
		return 1;
	}
	iot_send_bytes(a->out, a->class, a->t, a->seq, a->what, n, 0);
	return 0;
}

struct iot_pointers {
	struct iot_array a;
	u64 base;
	u32 count;
};

static long iot_pointer_step(u64 i, struct iot_pointers *p)
{
	if (i >= p->count)
		return 1;
	if (bpf_probe_read_user(&p->a.base, sizeof(p->a.base), (void *)(p->base + i * 8))) {
		p->a.bad = 1;
		return 1;
	}
	if (!p->a.base) /* lio_listio passes over it, too */
		return 0;
	if (!iot_read_ranked(&p->a)) {
		p->a.bad = 1;
		return 1;
	}
	p->a.pos += p->a.each;
	if (p->a.pos + p->a.each > IOT_TEXT_MAX) {
		iot_send_bytes(p->a.out, p->a.class, p->a.t, p->a.seq, p->a.what, p->a.pos, 0);
		p->a.pos = 0;
	}
	return 0;
}

/* Boxes of elements: pointers to where each begins and to how much of each dimension it has. */
struct iot_boxes {
	struct iot_scratch *out; /* what all come to, and from IOT_BOX_AT on the counts of one */
	u64 starts;
	u64 counts; /* 0: each box is one element */
	s64 ones;   /* boxes of one element */
	s64 end;    /* where the last one ends in the first dimension */
	u32 count;
	u32 rank; /* counts that could be read of each */
	u32 bad;
};

#define IOT_BOX_AT 1024

/*
 * Reads the counts of one box: how many there are, at most those of a rank. This and the next are functions of their own, which
 * the kernel checks once: it would follow the rest of the step for each number of counts.
 */
__noinline u32 iot_read_box(struct iot_scratch *out, u32 rank, u64 at)
{
	u32 n = rank, i;

	if (!out)
		return 0;
	barrier_var(n); /* or the bound is set where older kernels do not see it */
	if (n > IOT_RANK_MAX)
		n = IOT_RANK_MAX;
	if (!bpf_probe_read_user(&out->bytes[IOT_BOX_AT], n * 8, (void *)at))
		return n;
	/* what lies before the end of the page */
	for (i = 0; i < IOT_RANK_MAX; i++) {
		u32 to = IOT_BOX_AT + i * 8;

		barrier_var(to);
		if (i >= n || bpf_probe_read_user(&out->bytes[to & (IOT_TEXT_MAX - 1)], 8, (void *)(at + i * 8)))
			break;
	}
	return i;
}

/* Adds a box to the sums: how many elements it has, were there so many dimensions. */
__noinline s64 iot_add_box(struct iot_scratch *out, u32 rank)
{
	s64 *sums, *counts, elements = 1;

	if (!out)
		return 0;
	sums = (s64 *)out->bytes;
	counts = (s64 *)&out->bytes[IOT_BOX_AT];
	for (u32 i = 0; i < IOT_RANK_MAX; i++) {
		u32 at = i;

		if (i >= rank)
			break;
		barrier_var(at); /* or the compiler counts with pointers, whose bounds the verifier does not see */
		at &= IOT_RANK_MAX - 1;
		elements *= counts[at];
		sums[at + 1] += elements;
	}
	return counts[0];
}

static long iot_box_step(u64 i, struct iot_boxes *b)
{
	s64 first = 0, length = 1;
	u64 at = 0;

	if (i >= b->count)
		return 1;
	b->bad = 1;
	if (b->starts && bpf_probe_read_user(&at, sizeof(at), (void *)(b->starts + i * 8)))
		return 1;
	if (at && bpf_probe_read_user(&first, sizeof(first), (void *)at))
		return 1;
	at = 0;
	if (b->counts && bpf_probe_read_user(&at, sizeof(at), (void *)(b->counts + i * 8)))
		return 1;
	if (at) {
		b->rank = iot_read_box(b->out, b->rank, at);
		if (!b->rank)
			return 1;
		length = iot_add_box(b->out, b->rank);
	} else {
		b->ones++;
	}
	if (length > 0 && first + length > b->end)
		b->end = first + length;
	b->bad = 0;
	return 0;
}

/*
 * What the boxes of a call come to, of which there may be many: where the last one ends in the first dimension, and for
 * each number of dimensions that the variable may have how many elements they are. Nothing where that cannot be read.
 */
__noinline int iot_send_boxes(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u64 call_and_i)
{
	u32 i = (u32)call_and_i;
	struct iot_boxes b = {};
	struct iot_array_spec *w;
	s64 *sums;
	s32 count;

	if (!t || !s || !f || i >= IOT_ARRAYS_PER_CALL)
		return 0;
	w = &s->arrays[i];
	count = iot_arg(f, w->n);
	b.out = iot_scratch();
	if (!b.out || count <= 0 || count > IOT_BOXES_MAX)
		return 0;
	b.starts = iot_arg(f, w->arg);
	b.counts = f->a[(w->arg + 1) & 7]; /* all in registers */
	b.count = count;
	b.rank = iot_rank;
	sums = (s64 *)b.out->bytes;
	__builtin_memset(sums, 0, (IOT_RANK_MAX + 1) * sizeof(*sums));
	bpf_loop(IOT_BOXES_MAX, iot_box_step, &b, 0);
	/* the more there are the longer it takes; an average of the row's hooks does not show that */
	t->probed += bpf_ktime_get_ns() - t->now;
	if (b.bad)
		return 0;
	sums[0] = b.end;
	for (i = 1; i <= IOT_RANK_MAX; i++)
		sums[i] += b.ones;
	iot_send_bytes(b.out, iot_call_class(s), t, call_and_i >> 32, IOT_X_LONGS + (w->slot & 15), (b.rank + 1) * 8,
		       0);
	return 0;
}

/* Members of a communicator of Open MPI, and the run that their ranks are in: numbers of one distance. */
struct iot_members {
	struct iot_scratch *out;
	u64 base;
	u32 count;
	u32 runs; /* that stand in out */
	s32 first;
	s32 last;
	s32 step;
	u32 length;
};

/* Three ints of a run that is over; false when there are more runs than go with a call. */
static __always_inline bool iot_put_run(struct iot_members *m)
{
	u32 at = m->runs;
	s32 *run;

	if (at >= IOT_RUNS_MAX)
		return false;
	barrier_var(at);
	run = (s32 *)&m->out->bytes[(at & (IOT_RUNS_MAX - 1)) * IOT_RUN_BYTES];
	run[0] = m->first;
	run[1] = m->last;
	run[2] = m->step;
	m->runs++;
	return true;
}

/*
 * The rank of a process in its job: the second int of its name, 40 bytes into struct ompi_proc_t (opal/util/proc.h).
 * One that was not talked to yet is no pointer: the lowest bit is set, and the rank stands in the upper half
 * (ompi/proc/proc.h).
 */
static long iot_member_step(u64 i, struct iot_members *m)
{
	u64 proc = 0;
	s32 rank;

	if (i >= m->count || bpf_probe_read_user(&proc, sizeof(proc), (void *)(m->base + i * 8)))
		return 1;
	rank = proc >> 32;
	if (!(proc & 1) && bpf_probe_read_user(&rank, sizeof(rank), (void *)(proc + 44)))
		return 1;
	if (m->length == 1)
		m->step = rank - m->last;
	if (m->length && rank - m->last != m->step) {
		if (!iot_put_run(m))
			return 1;
		m->length = 0;
	}
	if (!m->length) {
		m->first = rank;
		m->step = 0;
	}
	m->last = rank;
	m->length++;
	return 0;
}

/*
 * The ranks in the job of the members of a communicator of Open MPI 4 and 5, as runs: `n` words into it stands its
 * group, in which are the number of members and pointers to them (ompi/group/group.h). Less where not all can be read,
 * or where they are too many runs.
 */
__noinline int iot_send_members(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u64 call_and_i)
{
	u32 i = (u32)call_and_i;
	struct iot_members m = {};
	struct iot_array_spec *w;
	u64 group = 0;

	if (!t || !s || !f || i >= IOT_ARRAYS_PER_CALL)
		return 0;
	w = &s->arrays[i];
	m.out = iot_scratch();
	if (!m.out || bpf_probe_read_user(&group, sizeof(group), (void *)(iot_arg(f, w->arg) + w->n * 8)) ||
	    bpf_probe_read_user(&m.count, sizeof(m.count), (void *)(group + 16)) ||
	    bpf_probe_read_user(&m.base, sizeof(m.base), (void *)(group + 32)))
		return 0;
	bpf_loop(IOT_RANKS_MAX, iot_member_step, &m, 0);
	if (m.length)
		iot_put_run(&m);
	iot_send_bytes(m.out, iot_call_class(s), t, call_and_i >> 32, IOT_X_INTS + (w->slot & 15),
		       m.runs * IOT_RUN_BYTES, 0);
	return 0;
}

#define IOT_LAYOUT_BYTES  304 /* up to the dimensions of a chunk */
#define IOT_LAYOUT_CLASS  16  /* up to them */
#define IOT_CHUNKED	  2   /* H5D_CHUNKED, H5Dpublic.h */
#define IOT_PIPELINE_USED 56  /* H5O_pline_t.nused, H5Oprivate.h; then a pointer to the filters */
#define IOT_FILTER_BYTES  64  /* H5Z_filter_info_t, H5Zprivate.h */
#define IOT_FILTERS_MAX	  32  /* H5Z_MAX_NFILTERS, H5Zpublic.h */

/* The distance number `i` of a row with IOT_DEREF_STORAGE. */
static __always_inline u64 iot_stored_at(struct iot_frame *f, u32 i)
{
	return f->in >> (i * IOT_COOKIE_STORED_BITS) & ((1 << IOT_COOKIE_STORED_BITS) - 1);
}

/* How a dataset of HDF5 is stored: its layout, and of one in chunks its filters. Nothing where that cannot be read. */
__noinline int iot_send_storage(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u64 call_and_i)
{
	struct iot_scratch *out = iot_scratch();
	u32 i = (u32)call_and_i, seq = call_and_i >> 32, class, what, bytes;
	u64 shared, pipeline[2];

	if (!t || !s || !f || !out || i >= IOT_ARRAYS_PER_CALL)
		return 0;
	class = iot_call_class(s);
	what = IOT_X_LONGS + (s->arrays[i].slot & 15);
	if (bpf_probe_read_user(&shared, sizeof(shared),
				(void *)(iot_arg(f, s->arrays[i].arg) + iot_stored_at(f, 0))) ||
	    bpf_probe_read_user(out->bytes, IOT_LAYOUT_BYTES, (void *)(shared + iot_stored_at(f, 2))))
		return 0;
	bytes = *(u32 *)out->bytes == IOT_CHUNKED ? IOT_LAYOUT_BYTES : IOT_LAYOUT_CLASS;
	iot_send_bytes(out, class, t, seq, what, bytes, 0);
	if (bytes != IOT_LAYOUT_BYTES ||
	    bpf_probe_read_user(pipeline, sizeof(pipeline),
				(void *)(shared + iot_stored_at(f, 1) + IOT_PIPELINE_USED)) ||
	    pipeline[0] > IOT_FILTERS_MAX)
		return 0;
	bytes = pipeline[0] * IOT_FILTER_BYTES;
	*(u64 *)out->bytes = pipeline[0];
	if (bytes && bpf_probe_read_user(out->bytes + sizeof(u64), bytes, (void *)pipeline[1]))
		return 0;
	iot_send_bytes(out, class, t, seq, what + 1, bytes + sizeof(u64), 0);
	return 0;
}

static __noinline u32 iot_array_count(struct iot_array_spec *w, struct iot_frame *f, s64 ret)
{
	s32 n = 0;

	if (!w || !f)
		return 0;
	switch (w->count) {
	case IOT_N_CONST:
		n = w->n;
		break;
	case IOT_N_ARG:
		n = iot_arg(f, w->n);
		break;
	case IOT_N_RET:
		n = ret;
		break;
	case IOT_N_AT:
		if (bpf_probe_read_user(&n, sizeof(n), (void *)iot_arg(f, w->n)))
			n = 0;
		break;
	case IOT_N_RANK:
		n = iot_rank;
		break;
	}
	if (w->rank && n > (s32)iot_rank && n <= IOT_RANK_MAX)
		iot_rank = IOT_RANK_MAX;
	return n < 0 ? 0 : n;
}

/* Sends array i of a call. `call_and_i`: number of its call, and i in the low half. */
__noinline int iot_send_one(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret, u64 call_and_i)
{
	u32 i = (u32)call_and_i;
	struct iot_pointers p = {};
	struct iot_array_spec *w;
	bool uncounted;
	u64 bytes;

	if (!t || !s || !f || i >= IOT_ARRAYS_PER_CALL)
		return 0;
	w = &s->arrays[i];
	p.a.out = iot_scratch();
	p.base = p.a.base = iot_arg(f, w->arg);
	/* the program passes no place for the number, because it knows it; the reader may, too */
	uncounted = w->count == IOT_N_AT && !iot_arg(f, w->n);
	p.count = uncounted ? IOT_RANK_MAX : iot_array_count(w, f, ret);
	/* 1 stands for no array, too (MPI_STATUSES_IGNORE of MPICH, mpi.h) */
	if (p.a.base <= 1 || !p.count)
		return 0;
	if (!p.a.out) {
		iot_lost(IOT_LOSS_TEXT, s->layer);
		return 0;
	}
	p.a.t = t;
	p.a.seq = call_and_i >> 32;
	p.a.class = iot_call_class(s);
	p.a.what = (w->elem == 8 ? IOT_X_LONGS : IOT_X_INTS) + (w->slot & 15);
	p.a.any_rank = w->count == IOT_N_RANK || uncounted;
	if (w->deref) {
		p.a.each = w->deref * 8;
		if (p.count > IOT_POINTERS)
			p.a.bad = 1;
		bpf_loop(IOT_POINTERS, iot_pointer_step, &p, 0);
		if (p.a.pos)
			iot_send_bytes(p.a.out, p.a.class, p.a.t, p.a.seq, p.a.what, p.a.pos, p.a.bad);
	} else if (w->count == IOT_N_RANK || uncounted) {
		p.a.each = p.count * 8;
		if (iot_read_ranked(&p.a))
			iot_send_bytes(p.a.out, p.a.class, p.a.t, p.a.seq, p.a.what, p.a.each, 0);
		else
			p.a.bad = 1;
	} else {
		bytes = (u64)p.count * w->elem;
		p.a.len = bytes > IOT_PIECES * IOT_TEXT_MAX ? IOT_PIECES * IOT_TEXT_MAX : bytes;
		p.a.bad = p.a.len < bytes;
		bpf_loop(IOT_PIECES, iot_piece_step, &p.a, 0);
	}
	if (p.a.bad)
		iot_lost(IOT_LOSS_TEXT, s->layer);
	return 0;
}

/* Sends the arrays of a call that are read now. */
static __always_inline void iot_send_arrays(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret,
					    u32 seq, u32 when)
{
	for (u32 i = 0; i < IOT_ARRAYS_PER_CALL; i++) {
		u64 call_and_i = (u64)seq << 32 | i;

		if (s->arrays[i].when != when)
			continue;
		if (s->arrays[i].deref == IOT_DEREF_BOXES)
			iot_send_boxes(t, s, f, call_and_i);
		else if (s->arrays[i].deref == IOT_DEREF_MEMBERS)
			iot_send_members(t, s, f, call_and_i);
		else if (s->arrays[i].deref == IOT_DEREF_STORAGE)
			iot_send_storage(t, s, f, call_and_i);
		else
			iot_send_one(t, s, f, ret, call_and_i);
	}
}

#endif
