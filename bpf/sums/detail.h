/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Aggregate mode: calls that are summed up and also sent one by one: slow ones with all that is inside them, those of chosen
 * processes, those on chosen files.
 */
#ifndef IOT_DETAIL_H
#define IOT_DETAIL_H

#define IOT_KEPT 128 /* calls that a thread remembers until it is known whether one around them is slow */

/* What iot_marks returns besides the marks of a record: it should be sent, and there is no room. */
#define IOT_MARK_REFUSED 0x100

/* From how many ns on a call is slow: by row, and behind the rows by operation of devices. User space writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} iot_slow SEC(".maps");

/* How many calls of a process were sent, and how many were not. */
struct iot_source {
	u64 sent;
	u64 refused;   /* for want of room, or because it sent too much */
	u64 forgotten; /* a thread remembers only so many */
};

/* Sets that user space writes: processes whose calls are all sent, and those of which none is for a while. */

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
} iot_full_procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} iot_muted SEC(".maps");

/* Files on which every call is sent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct iot_file_key);
	__type(value, u32);
} iot_full_files SEC(".maps");

struct iot_memory {
	struct iot_kept now; /* the call that is being sent */
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
	if (t->depth > 1) {
		struct iot_frame *around = iot_frame_at(t, t->depth - 2);

		due = around->due;
		f->due_seq = around->due_seq;
		f->due_lost = around->due_lost;
	}
	limit = s->flags & IOT_S_PHASE || s->gives != IOT_INNER_NONE ? NULL : bpf_map_lookup_elem(&iot_slow, &row);
	if (limit && *limit < due && f->start + *limit < due) {
		due = f->start + *limit;
		f->due_seq = f->seq;
		f->due_lost = f->lost;
	}
	f->due = due;
}

/* The counters of a process whose calls are sent. */
static __always_inline struct iot_source *iot_source_of(u32 process)
{
	struct iot_source *source = bpf_map_lookup_elem(&iot_sources, &process);

	if (source)
		return source;
	bpf_map_update_elem(&iot_sources, &process, (void *)&iot_no_source, BPF_NOEXIST);
	return bpf_map_lookup_elem(&iot_sources, &process);
}

/* May so many calls of the process be sent now? Those that may not are counted; they are in the sums all the same. */
static __always_inline bool iot_has_room(u32 process, u32 calls)
{
	struct iot_source *source = iot_source_of(process);
	void *ring = iot_ring_of(IOT_C_CALL), *texts = iot_ring_of(IOT_C_LIFE);

	if (!source || !ring || !texts) {
		iot_lost(IOT_LOSS_DETAIL, IOT_LAYER_APP);
		return false;
	}
	if (bpf_map_lookup_elem(&iot_muted, &process) || bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > iot_cfg.room ||
	    bpf_ringbuf_query(texts, BPF_RB_AVAIL_DATA) > iot_cfg.room_less) {
		__sync_fetch_and_add(&source->refused, calls);
		return false;
	}
	__sync_fetch_and_add(&source->sent, calls);
	return true;
}

__noinline bool iot_may_send(u32 process, u32 calls)
{
	return iot_has_room(process, calls);
}

/* Is every call of the process, or on the file, to be sent? */
static __always_inline bool iot_is_chosen(u32 process, u8 flags, u64 ino, u32 dev, u32 generation)
{
	struct iot_file_key key = {.ino = ino, .dev = dev, .generation = generation};

	if (iot_cfg.detail & IOT_DETAIL_PROCESSES && bpf_map_lookup_elem(&iot_full_procs, &process))
		return true;
	return iot_cfg.detail & IOT_DETAIL_FILES && flags & IOT_F_FILE && bpf_map_lookup_elem(&iot_full_files, &key);
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

/* How a call that has ended, and whose record is being made, is sent: IOT_D_, or IOT_MARK_REFUSED. 0: it is not. */
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
	if (!(s->flags & IOT_S_PHASE)) {
		if (!f->summed && !s->sums)
			iot_count_time(f->spec, now - f->start - e->call.probe);
		if (iot_is_slow(f->spec, now - f->start))
			marks |= IOT_D_SELF | IOT_D_WHOLE;
		/* one around it is slow by now */
		else if (iot_cfg.detail & IOT_DETAIL_SLOW && around && now > around->due)
			marks |= IOT_D_SELF;
	}
	if (!marks && iot_is_chosen(t->process, e->call.flags, e->ino, e->dev, e->generation))
		marks = IOT_D_SELF;
	/* calls inside it that were sent need it as a parent */
	if (marks && !f->marks && !iot_may_send(t->process, 1))
		return IOT_MARK_REFUSED | (marks & IOT_D_WHOLE);
	return marks;
}

struct iot_sending {
	struct iot_memory *m;
	u64 now;
	u32 calls;
	u32 after; /* those with higher numbers */
	u32 left;  /* so many stay */
	u32 sends;
};

static long iot_send_kept_step(u64 i, struct iot_sending *x)
{
	struct iot_kept *k = &x->m->calls[i & (IOT_KEPT - 1)];

	if (i >= x->calls)
		return 1;
	if (k->e.call.seq <= x->after) {
		x->left = i + 1;
		return 0;
	}
	if (x->sends) {
		k->sent = x->now;
		iot_send_detail(IOT_C_CALL, k->layer, k, sizeof(*k));
	}
	return 0;
}

/*
 * All calls inside the call with this number are wanted: those that are remembered are sent, and the others counted. `lost`: how
 * many were not remembered when it entered. With `sends` 0 there is no room for any of them.
 */
static __always_inline void iot_send_kept(struct iot_task *t, struct iot_memory *m, u64 now, u32 after, u32 lost,
					  u32 sends)
{
	struct iot_sending x = {.m = m, .now = now, .calls = t->kept, .after = after};
	struct iot_source *source;
	u32 forgotten = t->unkept - lost;

	/* the first time it is only counted */
	bpf_loop(IOT_KEPT, iot_send_kept_step, &x, 0);
	if (x.calls > x.left) {
		x.sends = sends && iot_may_send(t->process, x.calls - x.left);
		if (x.sends)
			bpf_loop(IOT_KEPT, iot_send_kept_step, &x, 0);
	}
	source = iot_source_of(t->process);
	if (source && forgotten)
		__sync_fetch_and_add(&source->forgotten, forgotten);
	if (source && !sends)
		__sync_fetch_and_add(&source->refused, x.calls - x.left);
	t->kept = x.left;
	t->unkept = lost;
}

/* A call has ended that is slow, or inside one that is slow by now: what is remembered of the slow one is sent with it. */
static __always_inline void iot_send_inside(struct iot_task *t, struct iot_frame *f, u32 marks, u64 now)
{
	struct iot_frame *around = iot_around(t);
	struct iot_memory *m;
	u32 after = f->seq, lost = f->lost;
	bool due = around && now > around->due;

	if (!t->kept && !t->unkept)
		return;
	if (!due && !(marks & IOT_D_WHOLE))
		return;
	if (due) {
		after = around->due_seq;
		lost = around->due_lost;
	}
	m = bpf_task_storage_get(&iot_memories, bpf_get_current_task_btf(), 0, 0);
	if (m)
		iot_send_kept(t, m, now, after, lost, !(marks & IOT_MARK_REFUSED));
}

/* Calls around one that was sent are sent, too: they are its parents. */
static __always_inline void iot_hang(struct iot_task *t, u32 marks)
{
	struct iot_frame *around = iot_around(t);

	if (!around)
		return;
	around->holds = 1;
	around->marks |= marks & IOT_D_SELF;
}

/* A frame without a record of its own has ended: the calls around it are the parents of what was sent inside it. */
static __always_inline void iot_passes(struct iot_task *t, struct iot_frame *f)
{
	if (iot_cfg.detail && f->holds)
		iot_hang(t, f->marks);
}

/* A call will never return. It is wanted when it, or one around it, is slow, or chosen, and for what is inside it. */
static __always_inline u32 iot_left_marks(struct iot_task *t, struct iot_frame *f, u64 now)
{
	u32 marks = f->marks;

	if (now > f->due || iot_is_chosen(t->process, f->file ? IOT_F_FILE : 0, f->ino, f->dev, f->generation))
		marks = IOT_D_SELF;
	iot_hang(t, marks);
	return marks;
}

/* A call that is sent in any case, and not summed up, gets its marks. */
__noinline int iot_mark(struct iot_task *t, struct iot_frame *f, u32 marks, u64 now)
{
	if (!t || !f)
		return 0;
	iot_send_inside(t, f, marks, now);
	if (marks & IOT_MARK_REFUSED)
		marks = 0;
	t->made.call.type |= marks & (IOT_D_SELF | IOT_D_WHOLE);
	iot_hang(t, marks);
	return 0;
}

/*
 * A call that was summed up is also sent, or remembered while a call around it may turn out to be slow. One that holds calls that
 * were sent is sent as their parent.
 */
__noinline int iot_detail(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u32 marks, u64 now)
{
	struct iot_frame *around;
	struct iot_memory *m;
	struct iot_kept *k;
	bool sends, keeps;

	if (!t || !s || !f)
		return 0;
	around = iot_around(t);
	if (marks)
		iot_send_inside(t, f, marks, now);
	sends = marks & IOT_D_SELF || f->holds;
	keeps = !sends && !marks && around && around->due != ~0ULL;
	if (!sends && !keeps)
		return 0;
	m = bpf_task_storage_get(&iot_memories, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!m) {
		iot_lost(IOT_LOSS_DETAIL, s->layer);
		return 0;
	}
	if (keeps && t->kept >= IOT_KEPT) {
		t->unkept++;
		return 0;
	}
	k = keeps ? &m->calls[t->kept++ & (IOT_KEPT - 1)] : &m->now;
	if (marks & IOT_MARK_REFUSED)
		marks = 0;
	k->e = t->made;
	k->e.call.type = IOT_T_KEPT | (keeps ? IOT_D_SELF : marks);
	k->sent = now;
	k->inner = f->inner;
	k->miss = f->miss;
	k->ahead = f->ahead;
	k->throttled = f->throttled;
	k->locked = f->locked;
	k->layer = s->layer;
	k->known = !(s->flags & IOT_S_READS) || f->range != IOT_RANGE_UNKNOWN;
	if (keeps)
		return 0;
	iot_send_detail(IOT_C_CALL, s->layer, k, sizeof(*k));
	iot_hang(t, marks);
	return 0;
}

#endif
