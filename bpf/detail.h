/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Aggregate mode: calls that are summed up and told one by one besides. Slow ones with all that is inside them, those of chosen
 * processes, those on chosen files.
 */
#ifndef IOT_DETAIL_H
#define IOT_DETAIL_H

#define IOT_KEPT	 128 /* calls that a thread remembers until it is known whether one around them is slow */

/* What iot_marks returns besides the marks of a record: it should be told, and there is no room. */
#define IOT_MARK_REFUSED 0x100

/* From how many ns on a call is slow: by row, and behind the rows by operation of devices. User space writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} iot_slow SEC(".maps");

/* How many calls of a process were told, and how many were not: for want of room, or because it told too much. */
struct iot_source {
	u64 told;
	u64 refused;
};

/* Sets that user space writes: processes of which every call is to be told, and those of which none is for a while. */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct iot_source);
} iot_sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} iot_wholes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} iot_quiets SEC(".maps");

/* Files of which every call is to be told. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct iot_file_key);
	__type(value, u32);
} iot_chosen SEC(".maps");

struct iot_memory {
	struct iot_kept now; /* the call that is being told */
	struct iot_kept calls[IOT_KEPT];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct iot_memory);
} iot_memories SEC(".maps");

const volatile struct iot_source iot_no_source = {};

/* A call has entered and its time is known: until when it, or one around it, is not slow. */
static __always_inline void iot_due(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	u32 row = f->spec;
	u64 due = ~0ULL, *limit;

	if (!(iot_cfg.detail & IOT_DETAIL_SLOW))
		return;
	if (t->depth > 1)
		due = iot_frame_at(t, t->depth - 2)->due;
	limit = s->more & IOT_M_PHASE || s->note != IOT_NO_NOTE ? NULL : bpf_map_lookup_elem(&iot_slow, &row);
	if (limit && *limit < due && f->start + *limit < due)
		due = f->start + *limit;
	f->due = due;
}

/* The process that calls are told of. */
static __always_inline struct iot_source *iot_source_of(u32 process)
{
	struct iot_source *source = bpf_map_lookup_elem(&iot_sources, &process);

	if (source)
		return source;
	bpf_map_update_elem(&iot_sources, &process, (void *)&iot_no_source, BPF_NOEXIST);
	return bpf_map_lookup_elem(&iot_sources, &process);
}

/* May so many calls of the process be told now? Those that may not are counted: their sums are told all the same. */
static __always_inline bool iot_has_room(u32 process, u32 calls)
{
	struct iot_source *source = iot_source_of(process);
	void *ring = iot_ring_of(IOT_C_CALL);

	if (!source || !ring) {
		iot_lost(IOT_P_MAP_FULL, IOT_LAYER_APP);
		return false;
	}
	if (bpf_map_lookup_elem(&iot_quiets, &process) || bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > iot_cfg.room) {
		__sync_fetch_and_add(&source->refused, calls);
		return false;
	}
	__sync_fetch_and_add(&source->told, calls);
	return true;
}

__noinline bool iot_may_tell(u32 process, u32 calls)
{
	return iot_has_room(process, calls);
}

/* Is every call of the process, or on the file, to be told? */
static __always_inline bool iot_is_chosen(u32 process, u8 flags, u64 ino, u32 dev, u32 generation)
{
	struct iot_file_key key = {.ino = ino, .dev = dev, .generation = generation};

	if (iot_cfg.detail & IOT_DETAIL_PROCESSES && bpf_map_lookup_elem(&iot_wholes, &process))
		return true;
	return iot_cfg.detail & IOT_DETAIL_FILES && flags & IOT_F_FILE && bpf_map_lookup_elem(&iot_chosen, &key);
}

static __always_inline bool iot_is_slow(u32 row, u64 time)
{
	u64 *limit = iot_cfg.detail & IOT_DETAIL_SLOW ? bpf_map_lookup_elem(&iot_slow, &row) : NULL;

	return limit && time >= *limit;
}

/* The innermost call that is open around one that is over; none when it was the outermost. */
static __always_inline struct iot_frame *iot_around(struct iot_task *t)
{
	return t->depth ? iot_frame_at(t, t->depth - 1) : NULL;
}

/* How a call that is over, and whose record is being made, is to be told: IOT_D_, or that it cannot be. 0: it is not. */
__noinline int iot_marks(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u64 now)
{
	struct iot_frame *around;
	struct iot_syscall *e;
	u32 marks;

	if (!t || !s || !f || !iot_cfg.detail)
		return 0;
	e = &t->made;
	around = iot_around(t);
	marks = f->marks;
	if (!(s->more & IOT_M_PHASE)) {
		if (!f->summed)
			iot_count_time(f->spec, now - f->start);
		if (iot_is_slow(f->spec, now - f->start))
			marks |= IOT_D_SELF | IOT_D_WHOLE;
		/* one around it is slow by now */
		else if (iot_cfg.detail & IOT_DETAIL_SLOW && around && now > around->due)
			marks |= IOT_D_SELF;
	}
	if (!marks && iot_is_chosen(t->process, e->call.flags, e->ino, e->dev, e->generation))
		marks = IOT_D_SELF;
	/* what was told inside it hangs on it */
	if (marks && !f->marks && !iot_may_tell(t->process, 1))
		return IOT_MARK_REFUSED;
	return marks;
}

struct iot_telling {
	struct iot_memory *m;
	u64 now;
	u32 calls;
};

static long iot_tell_step(u64 i, struct iot_telling *x)
{
	struct iot_kept *k = &x->m->calls[i & (IOT_KEPT - 1)];

	if (i >= x->calls)
		return 1;
	k->told = x->now;
	iot_tell(IOT_C_CALL, k->layer, k, sizeof(*k));
	return 0;
}

/* A call is told in which all is wanted: what ended inside it, or before it in the same one. */
static __always_inline void iot_tell_kept(struct iot_task *t, struct iot_memory *m, u64 now)
{
	struct iot_telling x = {.m = m, .now = now, .calls = t->kept};

	if (t->unkept) {
		struct iot_source *source = iot_source_of(t->process);

		if (source)
			__sync_fetch_and_add(&source->refused, t->unkept);
	}
	if (x.calls && iot_may_tell(t->process, x.calls))
		bpf_loop(IOT_KEPT, iot_tell_step, &x, 0);
	t->kept = 0;
	t->unkept = 0;
}

/* A call that is told hangs on those around it. */
static __always_inline void iot_hang(struct iot_task *t, u32 marks)
{
	struct iot_frame *around = iot_around(t);

	if (!around)
		return;
	around->holds = 1;
	around->marks |= marks & IOT_D_SELF;
}

/* A frame that is no call to those who look at records is over: what was told inside it hangs on those around it. */
static __always_inline void iot_passes(struct iot_task *t, struct iot_frame *f)
{
	if (iot_cfg.detail && f->holds)
		iot_hang(t, f->marks);
}

/* A call that is told for what it is, and not summed up, gets its marks. */
__noinline int iot_mark(struct iot_task *t, u32 marks, u64 now)
{
	struct iot_memory *m;

	if (!t)
		return 0;
	if (marks == IOT_MARK_REFUSED)
		marks = 0;
	if (marks && (t->kept || t->unkept)) {
		m = bpf_task_storage_get(&iot_memories, bpf_get_current_task_btf(), 0, 0);
		if (m)
			iot_tell_kept(t, m, now);
	}
	t->made.call.type |= marks & (IOT_D_SELF | IOT_D_WHOLE);
	iot_hang(t, marks);
	return 0;
}

/*
 * A call that was summed up is told, too, or remembered while one is open around it that may turn out to be slow. One that holds
 * calls that were told is told for their sake.
 */
__noinline int iot_detail(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u32 marks, u64 now)
{
	struct iot_frame *around;
	struct iot_memory *m;
	struct iot_kept *k;
	bool tells, keeps;

	if (!t || !s || !f)
		return 0;
	around = iot_around(t);
	tells = (marks && marks != IOT_MARK_REFUSED) || f->holds;
	keeps = !tells && !marks && iot_cfg.detail & IOT_DETAIL_SLOW && around && around->calls;
	if (!tells && !keeps)
		return 0;
	m = bpf_task_storage_get(&iot_memories, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!m) {
		iot_lost(IOT_P_STORAGE, s->layer);
		return 0;
	}
	if (keeps && t->kept >= IOT_KEPT) {
		t->unkept++;
		return 0;
	}
	k = keeps ? &m->calls[t->kept++ & (IOT_KEPT - 1)] : &m->now;
	if (marks == IOT_MARK_REFUSED)
		marks = 0;
	if (marks && (t->kept || t->unkept))
		iot_tell_kept(t, m, now);
	k->e = t->made;
	k->e.call.type = IOT_T_KEPT | (keeps ? IOT_D_SELF : marks);
	k->told = now;
	k->inner = f->inner;
	k->miss = f->miss;
	k->ahead = f->ahead;
	k->throttled = f->throttled;
	k->layer = s->layer;
	k->known = !s->reads || f->range != IOT_RANGE_UNKNOWN;
	if (keeps)
		return 0;
	iot_tell(IOT_C_CALL, s->layer, k, sizeof(*k));
	iot_hang(t, marks);
	return 0;
}

#endif
