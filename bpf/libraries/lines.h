/* SPDX-License-Identifier: GPL-2.0 */
/* Phases that are lines of a function: where they begin and end there. */
#ifndef IOT_LINES_H
#define IOT_LINES_H

#define IOT_FRAME_WORDS 0x3ffff /* IOT_COOKIE_FRAME */
#define IOT_EDGE_ROWS	8	/* IOT_COOKIE_ENDS, IOT_COOKIE_BEGINS */

/* Where the return address of the function stands that an edge is in: as the stack pointer at its entry. */
static __always_inline u64 iot_return_at(struct pt_regs *ctx, u64 cookie)
{
	u64 sp = PT_REGS_SP(ctx), fp = PT_REGS_FP(ctx);

	/* no choice between addresses in the context, which the verifier refuses */
	barrier_var(sp);
	barrier_var(fp);
	return (iot_cookie_has(cookie, IOT_COOKIE_BASE) ? fp : sp) +
	       (cookie >> IOT_COOKIE_FRAME & IOT_FRAME_WORDS) * sizeof(u64) - sizeof(u64);
}

static __always_inline bool iot_is_range(struct iot_frame *f, u64 sp)
{
	return f->bits & IOT_FRAME_RANGE && f->sp == sp;
}

/* The outermost range that ends here. */
static long iot_find_range_step(u64 i, struct iot_find *x)
{
	u32 at = x->t->depth - 1 - (u32)i;
	struct iot_frame *f;
	u32 nth;

	if ((u32)i >= x->t->depth)
		return 1;
	f = iot_frame_at(x->t, at);
	nth = f->spec - (x->spec & 0xffff);
	if (f->sp && iot_is_range(f, x->sp) && f->copy == x->copy && nth < IOT_EDGE_ROWS && x->spec >> 16 >> nth & 1)
		x->found = at + 1;
	return 0;
}

/* Ranges of lines are over, with what was open in them. */
__noinline int iot_finish_ranges(struct iot_task *t, u32 keep, u64 sp, u64 now)
{
	if (!t)
		return 0;
	for (u32 i = 0; i < IOT_DEPTH; i++) {
		if (t->depth <= keep)
			break;
		if (iot_is_range(iot_frame_at(t, t->depth - 1), sp))
			iot_finish(t, 0, now);
		else
			iot_give_up(t, now);
	}
	return 0;
}

/* Ranges of lines are left by a jump out of their function, and end there or in what it leads to. */
__noinline int iot_leave_ranges(struct iot_task *t, u32 keep, u64 sp, u64 now)
{
	if (!t)
		return 0;
	for (u32 i = keep; i < IOT_DEPTH && i < t->depth; i++) {
		struct iot_frame *f = iot_frame_at(t, i);

		if (!iot_is_range(f, sp))
			continue;
		f->left = now;
		f->bits |= IOT_FRAME_JUMPED;
	}
	return 0;
}

/* A function starts: its ranges that are open at this place of the stack were left in an unknown way. */
__noinline int iot_drop_ranges(struct iot_task *t, u64 sp, u64 now)
{
	if (!t)
		return 0;
	for (u32 i = 0; i < IOT_EDGE_ROWS; i++) {
		if (!t->depth || !iot_is_range(iot_frame_at(t, t->depth - 1), sp))
			break;
		iot_give_up(t, now);
	}
	return 0;
}

/* A range of lines begins, unless the thread is in it already. */
__noinline int iot_range_begins(struct iot_task *t, u64 sp, u32 spec, u64 cookie)
{
	struct iot_spec *s = iot_spec_of(spec);
	struct iot_frame *f;

	if (!t || !s)
		return 0;
	for (u32 i = 0; i < IOT_EDGE_ROWS; i++) {
		f = iot_frame_at(t, t->depth - 1 - i);
		if (i >= t->depth || !iot_is_range(f, sp))
			break;
		if (f->spec == spec)
			return 0;
	}
	f = iot_push(t, spec, s);
	if (!f)
		return 0;
	f->copy = cookie >> IOT_COOKIE_COPY;
	f->sp = sp;
	iot_lib_enters(t, s, f, 1ULL << IOT_COOKIE_NO_RETPROBE);
	f->bits |= IOT_FRAME_RANGE;
	return 0;
}

/* An edge: an instruction of a function where ranges of its lines end and begin. */
static __always_inline void iot_lib_edge(struct pt_regs *ctx, u64 cookie)
{
	u32 spec = iot_cookie_row(cookie), begins = cookie >> IOT_COOKIE_BEGINS & 0xff;
	u64 now = bpf_ktime_get_ns(), sp = iot_return_at(ctx, cookie);
	struct iot_task *t = iot_self();
	struct iot_find x = {.t = t, .sp = sp, .copy = cookie >> IOT_COOKIE_COPY};

	if (!t)
		return;
	x.spec = spec | (cookie >> IOT_COOKIE_ENDS & 0xff) << 16;
	if (iot_cookie_has(cookie, IOT_COOKIE_STARTS) || begins)
		iot_drop_dead(t, sp, IOT_MAX_SPECS);
	if (iot_cookie_has(cookie, IOT_COOKIE_STARTS))
		iot_drop_ranges(t, sp, now);
	bpf_loop(IOT_DEPTH, iot_find_range_step, &x, 0);
	if (x.found && iot_cookie_has(cookie, IOT_COOKIE_TAIL)) {
		iot_leave_ranges(t, x.found - 1, sp, now);
	} else if (x.found) {
		iot_finish_ranges(t, x.found - 1, sp, now);
		iot_hook_left(t, spec, iot_fixed.entry, now);
	}
	if (!begins)
		return;
	iot_hook_enters(t, spec, iot_fixed.entry);
	for (u32 i = 0; i < IOT_EDGE_ROWS; i++)
		if (begins >> i & 1)
			iot_range_begins(t, sp, spec + i, cookie);
}

#endif
