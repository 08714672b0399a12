/* SPDX-License-Identifier: GPL-2.0 */
/* A call from entry to record: the stack of open calls, the values a spec asks for, the record itself. */
#ifndef IOT_CALL_H
#define IOT_CALL_H

/* Functions of MPI have no probes now, but for windows in which it is counted how often a thread calls them. */
u32 iot_paused;

/* The probe of this function has gone, and returns of its calls may never be seen. */
static __always_inline bool iot_is_gone(struct iot_spec *s)
{
	return s->brief == IOT_BRIEF_DEMOTED || (s->brief == IOT_BRIEF_PAUSES && iot_paused);
}

#define EFAULT 14

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, IOT_MAX_SPECS);
	__type(key, u32);
	__type(value, struct iot_spec);
} iot_specs SEC(".maps");

static __always_inline struct iot_spec *iot_spec_of(u32 spec)
{
	return bpf_map_lookup_elem(&iot_specs, &spec);
}

static __always_inline struct iot_frame *iot_frame_at(struct iot_task *t, u32 i)
{
	barrier_var(i); /* or the compiler leaves out a bound that it knows and that older kernels do not see */
	return &t->frames[i & (IOT_DEPTH - 1)];
}

static __always_inline bool iot_only(struct iot_spec *s, struct iot_frame *f)
{
	u32 v = iot_arg(f, s->only_arg);

	return v == s->only[0] || v == s->only[1];
}

static __always_inline u32 iot_call_class(struct iot_spec *s)
{
	return s->flags & IOT_S_LIFE ? IOT_C_LIFE : IOT_C_CALL;
}

/* Sends the end of a phase for which there was no room; true when none is left to be sent. */
static __always_inline bool iot_flush_phase_end(struct iot_task *t)
{
	if (t->pending_phase_end && !iot_output(IOT_C_LIFE, &t->phase_end, sizeof(t->phase_end)))
		t->pending_phase_end = 0;
	return !t->pending_phase_end;
}

/*
 * Sends a call. The end of a phase must not be missing, or what its thread does next would seem to be inside it: it is
 * kept until there is room, and nothing is recorded before. Of several only the outermost is needed, for it ends them.
 */
static __always_inline void iot_send_call(struct iot_task *t, struct iot_spec *s, struct iot_call *c)
{
	if (!(s->flags & IOT_S_PHASE)) {
		iot_send(iot_call_class(s), s->layer, c, sizeof(*c));
		return;
	}
	if (t->pending_phase_end)
		iot_lost(IOT_LOSS_RING, s->layer);
	t->pending_phase_end = iot_output(IOT_C_LIFE, c, sizeof(*c)) != 0;
	if (t->pending_phase_end)
		t->phase_end = *c;
}

/*
 * Opens a frame for a call that enters now; false when the stack is full. Not static, as all that a system call goes through:
 * the verifier looks at each such function once, and not again for each way that leads to it.
 */
__noinline bool iot_push_frame(struct iot_task *t, struct iot_spec *s, u32 spec)
{
	u16 inside, layers = 0;
	struct iot_frame *f;
	u8 depth = 0, opening = 0, calls = 0;
	bool inner, phase;

	if (!t || !s)
		return false;
	inner = s->gives != IOT_INNER_NONE;
	phase = s->flags & IOT_S_PHASE;
	inside = iot_is_io_library(s) ? 1 << s->layer : 0;
	if (t->pending_phase_end && !iot_flush_phase_end(t)) {
		iot_lost(IOT_LOSS_RING, s->layer);
		return false;
	}
	if (t->depth >= IOT_DEPTH) {
		iot_lost(IOT_LOSS_DEPTH, s->layer);
		return false;
	}
	if (t->depth) {
		f = iot_frame_at(t, t->depth - 1);
		inside |= f->inside;
		depth = f->depth + 1;
		layers = f->layers;
		opening = f->opening;
		calls = f->calls;
	}
	if (!calls)
		t->kept = t->unkept = 0;
	f = iot_frame_at(t, t->depth);
	t->depth++;
	f->spec = spec;
	f->copy = 0;
	f->inside = inside;
	f->nested = layers >> s->layer & 1;
	f->layers = inner ? layers : layers | 1 << s->layer;
	/* the record of a call may need the file that was opened inside it */
	f->summed = iot_cfg.aggregate && s->sums && !(opening && s->flags & IOT_S_LIFE);
	f->opening = opening || (s->layer < IOT_LAYER_SYSCALL && (s->flags & IOT_S_LIFE) && !phase);
	f->calls = calls + !(inner || phase);
	f->marks = f->holds = 0;
	f->due = ~0ULL;
	f->lost = t->unkept;
	/* a call that is only summed up is none for readers of records, unless it may be sent later */
	f->depth = depth - (inner || (f->summed && !iot_cfg.detail));
	f->seq = t->seq++;
	f->bits = s->brief && s->brief != IOT_BRIEF_SLOW ? IOT_FRAME_BRIEF : 0;
	f->present = 0;
	f->left = 0;
	f->in = 0;
	if (s->len.from == IOT_FROM_ROUNDS) {
		f->site[0] = f->site[1] = f->site[2] = 0;
		f->sum = 0;
		f->rounds = 0;
	}
	f->pos = -1;
	f->end = -1;
	f->file = 0;
	f->dev = 0;
	f->miss = f->ahead = f->throttled = 0;
	f->locking = 0;
	if (!inner) /* of which nothing is recorded */
		iot_waits_from(f);
	f->inner = 0;
	f->probed = t->probed;
	f->range = 0;
	f->narrow = f->layout = f->copies = 0;
	return true;
}

/* The frame of a call that enters now; null when the stack is full. */
static __always_inline struct iot_frame *iot_push(struct iot_task *t, u16 spec, struct iot_spec *s)
{
	return iot_push_frame(t, s, spec) ? iot_frame_at(t, t->depth - 1) : NULL;
}

static __always_inline s32 iot_status(struct iot_spec *s, s64 ret)
{
	switch (s->fails) {
	case IOT_FAILS_NEGATIVE:
		return ret < 0 ? (ret < -4095 ? -1 : ret) : 0;
	case IOT_FAILS_NEGATIVE_INT:
		return (s32)ret < 0 ? (s32)ret : 0;
	case IOT_FAILS_ZERO:
		return ret ? 0 : -1;
	case IOT_FAILS_NONZERO:
		return (s32)ret > 0 ? (s32)(ret | 1U << 31) : (s32)ret; /* a positive code, marked as a failure */
	}
	return 0;
}

/* Does the result mean that a stream gave or took nothing? */
static __always_inline bool iot_nothing(struct iot_spec *s, s64 ret)
{
	return (s->fails == IOT_FAILS_EOF && !ret) || (s->fails == IOT_FAILS_EOF_INT && (s32)ret == -1);
}

/* The values that only a finished call has, into the record that is being made: bytes moved, handles, names. */
__noinline int iot_values(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret)
{
	struct iot_call *c;

	if (!t || !s || !f)
		return 0;
	c = &t->made.call;
	/* what printf was asked for is what it wrote, unless it failed */
	if ((c->status >= 0 || !iot_is_result(&s->len)) && iot_value_of(&s->len, f, ret, &c->len))
		c->flags |= IOT_F_LEN;
	if (iot_value_of(&s->off, f, ret, &c->off))
		c->flags |= IOT_F_OFF;
	if (iot_value_of(&s->handle, f, ret, &c->handle))
		c->flags |= IOT_F_HANDLE;
	if (c->status < 0) {
		/* an argument is known of a call that failed, too */
		if (s->layer == IOT_LAYER_SYSCALL && iot_is_int(&s->got) && iot_value_of(&s->got, f, ret, &c->got))
			c->flags |= IOT_F_GOT;
		return 0;
	}
	if (iot_nothing(s, ret)) {
		if (!(c->flags & IOT_F_LEN && !c->len) && iot_stream_failed(c->handle)) {
			c->status = -1;
			return 0;
		}
		/* the end of the file: the buffer holds what an earlier call read. Blanks may have been passed over. */
		if (s->got.from != IOT_FROM_STREAM_MOVED) {
			c->got = 0;
			c->flags |= IOT_F_GOT;
			return 0;
		}
	}
	if (s->got.from == IOT_FROM_LEN) {
		c->got = c->len;
		c->flags |= c->flags & IOT_F_LEN ? IOT_F_GOT : 0;
	} else if (iot_value_of(&s->got, f, ret, &c->got)) {
		c->flags |= IOT_F_GOT;
	}
	return 0;
}

/* Path argument i, and where it starts from if it is relative. Returns false when it could not be read. */
__noinline bool iot_send_path(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u32 i, s32 status)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct iot_scratch *out = iot_scratch();
	struct file *dir;
	u64 user;
	long n;
	u8 first, kind;

	if (!t || !s || !f)
		return false;
	i &= 1;
	kind = i + (s->flags & IOT_S_OPERATION ? IOT_X_OPERATION : 0);
	user = iot_arg(f, s->path[i]);
	/* the call is about the descriptor alone */
	if (s->layer == IOT_LAYER_SYSCALL && !user && f->file)
		return true;
	/* a name that is not recorded, or that the call did not fill in; freopen takes none for the file it has */
	if (s->layer != IOT_LAYER_SYSCALL && (!user || ((s->flags & IOT_S_NAMES) && !i && status < 0)))
		return true;
	n = out && user ? bpf_probe_read_user_str(out->bytes, IOT_TEXT_MAX, (void *)user) : -1;
	if (!out || n < 0) {
		/* what the kernel could not read either is not lost: there is none */
		if (status != -EFAULT)
			iot_lost(IOT_LOSS_TEXT, s->layer);
		return false;
	}
	first = out->bytes[0];
	iot_send_text(out, t, f->seq, IOT_X_PATH + kind, n ? n - 1 : 0, n == IOT_TEXT_MAX);
	if (s->layer != IOT_LAYER_SYSCALL || first == '/')
		return true;
	if (s->base[i] < 0 || (s32)iot_arg(f, s->base[i]) == AT_FDCWD) {
		iot_send_dentry(t, f->seq, IOT_X_BASE + kind, IOT_READ(task, fs, pwd.dentry),
				IOT_READ(task, fs, pwd.mnt));
		return true;
	}
	dir = iot_fd_file(task, iot_arg(f, s->base[i]));
	if (dir)
		iot_send_dentry(t, f->seq, IOT_X_BASE + kind, IOT_READ(dir, f_path.dentry), IOT_READ(dir, f_path.mnt));
	return true;
}

static __always_inline void iot_paths(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	struct iot_call *c = &t->made.call;

	if (s->path[0] >= 0 && !iot_send_path(t, s, f, 0, c->status))
		c->flags |= IOT_F_CUT;
	if (s->path[1] >= 0 && !iot_send_path(t, s, f, 1, c->status))
		c->flags |= IOT_F_CUT;
}

/* The fields every record has. */
static __always_inline void iot_fill(struct iot_call *c, u8 type, struct iot_task *t, struct iot_frame *f, u32 depth,
				     u64 now)
{
	u64 dur = now - f->start;

	if (dur >> IOT_DUR_BITS)
		dur = (1ULL << IOT_DUR_BITS) - 1;
	t->now = now;
	c->type = type;
	c->flags = 0;
	c->spec = f->spec + f->copy * iot_cfg.rows;
	c->seq = f->seq;
	c->thread = t->thread;
	c->status = 0;
	c->start = f->start;
	c->dur_cpu_depth = dur | (u64)(bpf_get_smp_processor_id() & ((1 << IOT_CPU_BITS) - 1)) << IOT_DUR_BITS |
			   (u64)depth << (IOT_DUR_BITS + IOT_CPU_BITS);
	c->handle = c->len = c->got = c->off = 0;
	c->probe = iot_probed(t, f, dur);
	c->away = c->queued = IOT_UNKNOWN;
}

/* The same of the call whose record is being made. Not inlined: see bpf/core/cost.h. */
__noinline int iot_head(struct iot_task *t, struct iot_frame *f, u32 type, u64 now)
{
	if (t && f)
		iot_fill(&t->made.call, type, t, f, f->depth, now);
	return 0;
}

/* The same of a call that returns in its thread. */
__noinline int iot_returned(struct iot_task *t, struct iot_frame *f, u32 type, u64 now)
{
	if (!t || !f)
		return 0;
	iot_fill(&t->made.call, type, t, f, f->depth, now);
	iot_waited(&t->made.call, f);
	return 0;
}

/* How long a call took, in ns, without its hooks. */
static __always_inline u64 iot_net(struct iot_call *c)
{
	return (c->dur_cpu_depth & ((1ULL << IOT_DUR_BITS) - 1)) - c->probe;
}

/* The innermost call is over at `end`. One around it that was left by a jump goes on at least until then. */
static __always_inline void iot_pop(struct iot_task *t, u64 end)
{
	struct iot_frame *f;

	t->depth--;
	f = iot_frame_at(t, t->depth - 1);
	if (t->depth && f->left) {
		f->left = end;
		f->bits &= ~IOT_FRAME_JUMPED;
	}
}

/* bpf/sums/detail.h */
static __always_inline u32 iot_left_marks(struct iot_task *t, struct iot_frame *f, u64 now);
static __always_inline void iot_passes(struct iot_task *t, struct iot_frame *f);

/* Sends the innermost open call as one that will never return, unless it is a phase that was left by a jump. */
__noinline int iot_give_up(struct iot_task *t, u64 now)
{
	struct iot_frame *f;
	struct iot_spec *s;
	struct iot_call *c;
	bool left;

	if (!t)
		return 0;
	f = iot_frame_at(t, t->depth - 1);
	s = iot_spec_of(f->spec);
	left = f->left && s && (s->flags & IOT_S_PHASE);
	c = &t->made.call; /* no other record is being made */
	if (left)
		now = f->left;
	iot_pop(t, now);
	/* the probe for the return of a demoted function goes while calls of it are open: they are among the estimated ones */
	if (!s || s->gives != IOT_INNER_NONE || iot_is_gone(s)) {
		iot_passes(t, f);
		return 0;
	}
	iot_head(t, f, IOT_T_CALL, now);
	if (!left)
		c->flags |= IOT_F_UNFINISHED;
	if (iot_cfg.detail)
		c->type |= iot_left_marks(t, f, now);
	iot_send_call(t, s, c);
	return 0;
}

struct iot_flush {
	struct iot_task *t;
	u64 now;
	u32 keep;
};

/* Calls that end together are sent innermost first and distinguished by their numbers. */
static long iot_flush_step(u64 i, struct iot_flush *x)
{
	if (x->t->depth <= x->keep)
		return 1;
	iot_give_up(x->t, x->now);
	return 0;
}

/* Sends the calls that will never return, but for the `keep` outermost. */
static __always_inline void iot_flush(struct iot_task *t, u32 keep, u64 now)
{
	struct iot_flush x = {.t = t, .now = now, .keep = keep};

	bpf_loop(IOT_DEPTH, iot_flush_step, &x, 0);
}

/* The thread ends, or executes another program. */
static __always_inline void iot_flush_all(struct iot_task *t)
{
	iot_flush(t, 0, bpf_ktime_get_ns());
	if (!iot_flush_phase_end(t))
		iot_lost(IOT_LOSS_RING, IOT_LAYER_APP);
}

#endif
