/* SPDX-License-Identifier: GPL-2.0 */
/* Library layer: what happens when a function is entered, left by a return or by a jump. */
#ifndef IOT_LIB_H
#define IOT_LIB_H

/*
 * 0 while library probes are set. Where entry and return have a probe each, a call can then meet the one for its
 * return only: it is a call before the trace.
 */
u32 iot_settled = 1;

/*
 * Several processes have links of their own on one file: the kernel sets a return probe in each whatever the program of its
 * own link wants, so that a call is not left out for it.
 */
u32 iot_several;

/* Library probes are in targets only: each mapping of a file with probes is reported. */
u32 iot_scoped;

/* Is a call that is recorded only inside others, or when it waits for what they submitted? */
static __always_inline bool iot_wanted(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	struct iot_spec *outer = t->depth > 1 ? iot_spec_of(iot_frame_at(t, t->depth - 2)->spec) : NULL;

	if (f->inside && !(s->flags & IOT_S_AWAIT))
		return true;
	/* what a waiting call does to wait is its own affair */
	return !(outer && (outer->flags & IOT_S_INSIDE)) && iot_awaits(t, s, f);
}

/* Where the return address of the function stands that a probe is in: at its entry, or with its frame made. */
static __always_inline u64 iot_entry_sp(struct pt_regs *ctx, u64 cookie)
{
	u64 sp = PT_REGS_SP(ctx);

	if (iot_cookie_has(cookie, IOT_COOKIE_FRAMED))
		sp += (cookie >> IOT_COOKIE_WORDS & 0x7f) * sizeof(u64);
	return sp;
}

/* The value of the pointer variable that the cookie leads to from the breakpoint; 0: there is none. */
static __always_inline u64 iot_global(struct pt_regs *ctx, u64 cookie)
{
	s64 distance = (s64)cookie >> IOT_COOKIE_DISTANCE;
	u64 value = 0, at;

	if (iot_cookie_has(cookie, IOT_COOKIE_FRAMED))
		distance &= (1ULL << IOT_COOKIE_NEAR) - 1;
	at = PT_REGS_IP(ctx) + distance;
	if (!distance)
		return 0;
	if (iot_cookie_has(cookie, IOT_COOKIE_INDIRECT) && bpf_probe_read_user(&at, sizeof(at), (void *)at))
		return 0;
	bpf_probe_read_user(&value, sizeof(value), (void *)at);
	return value;
}

/* Where the stream of a call stands. */
static __always_inline s64 iot_stream_of(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	return iot_stream_at(t, s->handle.from == IOT_FROM_GLOBAL ? f->in : iot_arg(f, s->handle.a), s->off.k);
}

/* A phase has begun. When there is no room for this it is a call like any other, and what it holds waits for its end. */
static __noinline void iot_send_phase(struct iot_task *t, struct iot_frame *f)
{
	struct iot_enter e = {
		.type = IOT_T_ENTER,
		.cpu = bpf_get_smp_processor_id(),
	};

	if (!t || !f)
		return;
	e.depth = f->depth;
	e.spec = f->spec + f->copy * iot_cfg.rows;
	e.seq = f->seq;
	e.thread = t->thread;
	e.start = f->start;
	iot_send(IOT_C_LIFE, IOT_LAYER_APP, &e, sizeof(e));
}

/* What is looked at when a call enters, but for registers. Returns 0 when the call is recorded and its return wanted. */
__noinline int iot_lib_enters(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u64 cookie)
{
	if (!t || !s || !f)
		return 1;
	/* The seventh lies above the return address (System V ABI, AMD64, 3.2.3). */
	if ((s->flags & IOT_S_STACK) && bpf_probe_read_user(&f->a[6], 6 * sizeof(u64), (void *)(f->sp + sizeof(u64))))
		iot_lost(IOT_LOSS_TEXT, s->layer);
	if (s->handle.from == IOT_FROM_IN)
		iot_read_in(s, f, &f->in);
	if (((s->flags & IOT_S_INSIDE) && !iot_wanted(t, s, f)) || ((s->flags & IOT_S_ONLY) && !iot_only(s, f))) {
		t->depth--;
		t->seq--;
		return 1;
	}
	if (s->gives != IOT_INNER_NONE) { /* it is not recorded: what it does is done by the call it runs in */
		t->seq--;
		f->seq = iot_frame_at(t, t->depth - 2)->seq;
	}
	if (s->flags & IOT_S_STREAM)
		f->pos = iot_stream_of(t, s, f);
	if (iot_cookie_has(cookie, IOT_COOKIE_NO_RETPROBE)) {
		/* and not IOT_FRAME_BRIEF: the kernel has no list with it */
		f->bits = IOT_FRAME_NO_RETPROBE;
		bpf_probe_read_user(&f->back, sizeof(f->back), (void *)f->sp);
	}
	f->start = bpf_ktime_get_ns();
	iot_hook_entered(t, f->start);
	iot_due(t, s, f);
	if (s->flags & IOT_S_ENTRY) {
		t->now = f->start;
		iot_send_arrays(t, s, f, 0, f->seq, IOT_READ_AT_ENTRY);
	}
	if (s->flags & IOT_S_PHASE) {
		f->bits |= IOT_FRAME_PHASE;
		iot_send_phase(t, f);
	}
	return iot_cookie_has(cookie, IOT_COOKIE_NO_RETPROBE);
}

/*
 * While probes are exchanged: has the other link's probe met this call already? Mostly within a few us; where an
 * interrupt came between the two, the arguments show that it is no other call.
 */
static __always_inline bool iot_entered_already(struct iot_task *t, struct pt_regs *ctx, u64 cookie)
{
	struct iot_frame *f = iot_frame_at(t, t->depth - 1);
	u64 ago;

	if (!t->depth || f->sp != iot_entry_sp(ctx, cookie) || f->spec != iot_cookie_row(cookie) ||
	    f->copy != (u8)(cookie >> IOT_COOKIE_COPY))
		return false;
	ago = bpf_ktime_get_ns() - f->start;
	if (ago < IOT_SAME_CALL)
		return true;
	return ago < IOT_SAME_ARGUMENTS && f->a[0] == PT_REGS_PARM1(ctx) && f->a[1] == PT_REGS_PARM2(ctx) &&
	       f->a[2] == PT_REGS_PARM3(ctx) && f->a[3] == PT_REGS_PARM4(ctx) && f->a[4] == PT_REGS_PARM5(ctx) &&
	       f->a[5] == PT_REGS_PARM6(ctx);
}

/* Is the call one of a demoted function that will not be summed up? */
static __always_inline bool iot_is_dropped(struct iot_frame *f)
{
	struct iot_spec *s = f->summed ? iot_spec_of(f->spec) : NULL;

	return s && s->brief == IOT_BRIEF_DEMOTED;
}

/* Returns 0 when the call is recorded and its return wanted. */
static __always_inline int iot_lib_enter(struct pt_regs *ctx, u64 cookie)
{
	struct iot_task *t = iot_self();
	u32 spec = iot_cookie_row(cookie);
	struct iot_spec *s;
	struct iot_frame *f;
	u64 site = 0, sp = iot_entry_sp(ctx, cookie);

	if (!t)
		return 1;
	s = iot_spec_of(spec);
	if (!s)
		return 1;
	iot_hook_enters(t, spec, iot_fixed.entry);
	if (s->brief == IOT_BRIEF_PAUSES) {
		iot_chats(t, spec);
		/* in a window only what is inside a call that began in it, and is seen with all that it did */
		if (iot_paused && (!iot_looking || !t->depth || iot_frame_at(t, t->depth - 1)->start < iot_looking))
			return 1;
	}
	/* what a program sends for itself is not wanted, and there may be much of it */
	if ((s->flags & IOT_S_INSIDE) && !t->depth && !s->handle.from && s->arrays[0].when == IOT_READ_NEVER)
		return 1;
	if (iot_exchanging && iot_entered_already(t, ctx, cookie))
		return 1;
	if (s->flags & IOT_S_JUMPS) {
		iot_lib_jumps(t, PT_REGS_PARM1(ctx) + s->got.k, sp);
		return 1;
	}
	iot_drop_dead(t, sp, spec);
	if (s->gives != IOT_INNER_NONE) {
		if (iot_in_rounds(t))
			bpf_probe_read_user(&site, sizeof(site), (void *)sp);
		if (iot_inner_slot(t, iot_outer_depth(t), s->gives, site) == IOT_INNER_PER_CALL)
			return 1;
	}
	if ((s->flags & IOT_S_OUTER) && t->depth) {
		f = iot_frame_at(t, t->depth - 1);
		if ((f->inside | f->layers) & 1 << s->layer && !(s->brief == IOT_BRIEF_SLOW && iot_is_dropped(f)))
			return 1;
	}
	if (!iot_cookie_has(cookie, IOT_COOKIE_NO_RETPROBE) && !iot_may_return(t, sp) && !iot_several) {
		iot_lost(IOT_LOSS_OTHER_STACK, s->layer);
		return 1;
	}
	f = iot_push(t, spec, s);
	if (!f)
		return 1;
	f->site[0] = site;
	f->copy = cookie >> IOT_COOKIE_COPY;
	f->sp = sp;
	f->a[0] = PT_REGS_PARM1(ctx);
	f->a[1] = PT_REGS_PARM2(ctx);
	f->a[2] = PT_REGS_PARM3(ctx);
	f->a[3] = PT_REGS_PARM4(ctx);
	f->a[4] = PT_REGS_PARM5(ctx);
	f->a[5] = PT_REGS_PARM6(ctx);
	if (s->handle.from == IOT_FROM_GLOBAL)
		f->in = iot_global(ctx, cookie);
	if (s->arrays[0].deref == IOT_DEREF_STORAGE)
		f->in = cookie >> IOT_COOKIE_DISTANCE;
	/* of a session program the kernel takes nothing but 0 and 1, and does not look into the function */
	if (iot_lib_enters(t, s, f, cookie))
		return 1;
	iot_returns_later(t);
	return 0;
}

struct iot_find {
	struct iot_task *t;
	u64 sp;
	u32 spec;
	u32 found; /* depth of the frame, plus 1 */
	u8 copy;
};

static long iot_find_step(u64 i, struct iot_find *x)
{
	u32 at = x->t->depth - 1 - (u32)i;
	struct iot_frame *f;

	if ((u32)i >= x->t->depth)
		return 1;
	f = iot_frame_at(x->t, at);
	if (f->sp != x->sp || f->spec != x->spec || f->copy != x->copy)
		return 0;
	x->found = at + 1;
	return 1;
}

/* In a child that was forked in the middle of calls, those return once more: they were its parent's. */
static __always_inline bool iot_inherited(void)
{
	u32 tgid = iot_tgid();
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &tgid);

	if (!target || !target->inherited)
		return false;
	target->inherited--;
	return true;
}

/* The innermost call has returned: it is sent, or passed to the one it ran in. */
__noinline int iot_finish(struct iot_task *t, s64 ret, u64 now)
{
	struct iot_frame *f;
	struct iot_spec *s;
	struct iot_call *c;
	u32 marks;

	if (!t || !t->depth)
		return 0;
	c = &t->made.call;
	iot_pop(t, now);
	f = iot_frame_at(t, t->depth);
	s = iot_spec_of(f->spec);
	if (!s)
		return 0;
	if (s->gives != IOT_INNER_NONE) {
		iot_passes(t, f);
		iot_spent(t, f->inner);
		iot_give_inner(t, s, f, ret, now);
		return 0;
	}
	/* from its demotion on the positions of streams give what its calls moved: not twice */
	if (f->summed && s->brief == IOT_BRIEF_DEMOTED) {
		iot_passes(t, f);
		iot_spent(t, f->inner);
		return 0;
	}
	if (s->quiet && (u32)ret == s->quiet) {
		iot_passes(t, f);
		iot_spent(t, f->inner);
		if (t->seq == f->seq + 1)
			t->seq--;
		return 0;
	}
	iot_brief(t, s, f, now);
	if (s->flags & IOT_S_INSIDE)
		iot_fulfilled(t, s, f);
	if (s->off.from == IOT_FROM_STREAM_END || s->got.from == IOT_FROM_STREAM_MOVED)
		f->end = iot_stream_of(t, s, f);
	iot_returned(t, f, IOT_T_CALL, now);
	iot_spent(t, iot_net(c));
	c->status = iot_status(s, ret);
	iot_values(t, s, f, ret);
	marks = iot_cfg.detail ? iot_marks(t, s, f, now) : 0;
	if (f->summed) {
		if (marks & IOT_D_SELF)
			iot_paths(t, s, f);
		iot_sum_made(t, s, f);
		if (iot_cfg.detail)
			iot_detail(t, s, f, marks, now);
		return 0;
	}
	if (iot_cfg.aggregate) {
		iot_opened_by(t, s, f, c);
		iot_send_inner(t, s, f);
	}
	iot_paths(t, s, f);
	if ((s->flags & IOT_S_RETURN) && c->status >= 0)
		iot_send_arrays(t, s, f, ret, f->seq, IOT_READ_AT_RETURN);
	if ((s->flags & IOT_S_SUBMIT) && (c->flags & IOT_F_GOT))
		iot_submitted(t, c->got);
	if (iot_cfg.detail)
		iot_mark(t, f, marks, now);
	iot_send_call(t, s, c);
	return 0;
}

/*
 * A return from this place of the stack ends every function without return probe that was entered there: tail calls. No
 * bpf_loop: with one function more the stack is too small on Linux 6.1.
 */
__noinline int iot_finish_tails(struct iot_task *t, u64 sp, s64 ret, u64 now)
{
	if (!t)
		return 0;
	for (u32 i = 0; i < IOT_DEPTH; i++) {
		struct iot_frame *f = iot_frame_at(t, t->depth - 1);

		if (!t->depth || f->sp != sp || !(f->bits & IOT_FRAME_NO_RETPROBE))
			break;
		iot_finish(t, ret, now);
	}
	return 0;
}

static __always_inline int iot_lib_return(struct pt_regs *ctx, u64 cookie)
{
	u64 now = bpf_ktime_get_ns();
	struct iot_task *t = iot_self();
	u8 copy = cookie >> IOT_COOKIE_COPY;
	u32 spec = iot_cookie_row(cookie);
	struct iot_spec *s;
	struct iot_frame *f;
	s64 ret = PT_REGS_RC(ctx);
	u64 sp = PT_REGS_SP(ctx) - sizeof(u64); /* the return address is gone from the stack */

	if (!t)
		return 0;
	if (t->switched == sp)
		t->switched = 0;
	s = iot_spec_of(spec);
	if (!s)
		return 0;
	f = iot_frame_at(t, t->depth - 1);
	if (!t->depth || f->sp != sp || f->spec != spec || f->copy != copy) {
		/* Calls above ours never returned (longjmp), or ours is not there. */
		struct iot_find x = {.t = t, .sp = sp, .spec = spec, .copy = copy};

		bpf_loop(IOT_DEPTH, iot_find_step, &x, 0);
		if (!x.found) {
			/* Some tiers cannot do without the return of a call that is left out. */
			if (s->gives == IOT_INNER_NONE && !(s->flags & IOT_S_INSIDE) && !(s->flags & IOT_S_OUTER) &&
			    !iot_inherited() && iot_settled && !iot_is_gone(s))
				iot_lost(IOT_LOSS_RETURN, s->layer);
			iot_hook_left(t, spec, iot_fixed.leave, now);
			return 0;
		}
		iot_flush(t, x.found, now);
	}
	iot_finish(t, ret, now);
	iot_finish_tails(t, sp, ret, now);
	iot_hook_left(t, spec, iot_fixed.leave, now);
	return 0;
}

static long iot_find_exit_step(u64 i, struct iot_find *x)
{
	u32 at = x->t->depth - 1 - (u32)i;
	struct iot_frame *f;

	if ((u32)i >= x->t->depth)
		return 1;
	f = iot_frame_at(x->t, at);
	if (f->sp != x->sp || !(f->bits & IOT_FRAME_NO_RETPROBE))
		return 0;
	x->found = at + 1;
	return 1;
}

/*
 * At an exit point of a function without return probe, where its stack may be empty: the stack pointer identifies the call.
 * The calls above that one are over; returns whether there is one, as the innermost call.
 */
static __always_inline bool iot_at_exit_point(struct iot_task *t, u64 sp, u64 now)
{
	struct iot_find x = {.t = t, .sp = sp};

	if (!t || !t->depth)
		return false;
	bpf_loop(IOT_DEPTH, iot_find_exit_step, &x, 0);
	if (x.found)
		iot_flush(t, x.found, now);
	return x.found;
}

/* A return instruction, or one before it. */
static __always_inline void iot_lib_leave(struct pt_regs *ctx, u64 cookie)
{
	u64 now = bpf_ktime_get_ns(), sp = iot_entry_sp(ctx, cookie);
	struct iot_task *t = iot_self();

	if (iot_at_exit_point(t, sp, now)) {
		u32 spec = iot_frame_at(t, t->depth - 1)->spec;

		iot_finish_tails(t, sp, PT_REGS_RC(ctx), now);
		/* a probe like one at an entry */
		iot_hook_left(t, spec, iot_fixed.entry, now);
	}
}

/* A jump out of the function, which ends there or in what it jumps to. */
static __always_inline void iot_lib_jump(struct pt_regs *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct iot_task *t = iot_self();

	if (iot_at_exit_point(t, PT_REGS_SP(ctx), now)) {
		struct iot_frame *f = iot_frame_at(t, t->depth - 1);

		f->left = now;
		f->bits |= IOT_FRAME_JUMPED;
	}
}

#endif
