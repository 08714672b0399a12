/* SPDX-License-Identifier: GPL-2.0 */
/* Inner values: what inner functions of a library know of the call that they run in, which wants them. */
#ifndef IOT_INNER_VALUE_H
#define IOT_INNER_VALUE_H

#define IOT_SAME_CALL	   20000  /* ns between two probes of one call */
#define IOT_SAME_ARGUMENTS 200000 /* the same, where its arguments are the same */

/*
 * While the probes of a file are exchanged for others, a call meets both: the second one, a moment later, is not another
 * call.
 */
u32 iot_exchanging;

/*
 * How deep the call is that gets inner values: the innermost one, but for the function that reads how a dataset is stored,
 * which runs what gives other values.
 */
static __always_inline u32 iot_outer_depth(struct iot_task *t)
{
	u32 depth = t->depth;
	struct iot_spec *s = depth > 1 ? iot_spec_of(iot_frame_at(t, depth - 1)->spec) : NULL;

	return s && s->arrays[0].deref == IOT_DEREF_STORAGE ? depth - 1 : depth;
}

/* The slot of the innermost open call for this inner value; IOT_INNER_PER_CALL: it wants none, or has it. */
static __always_inline u32 iot_inner_slot(struct iot_task *t, u32 depth, u8 value, u64 site)
{
	struct iot_frame *f = iot_frame_at(t, depth - 1);
	struct iot_spec *s = depth ? iot_spec_of(f->spec) : NULL;

	if (!s)
		return IOT_INNER_PER_CALL;
	for (u32 i = 0; i < IOT_INNER_PER_CALL; i++)
		if (s->wants[i] == value && !(f->present & 1 << i) &&
		    (s->len.from != IOT_FROM_ROUNDS || !f->site[i] || f->site[i] == site))
			return i;
	return IOT_INNER_PER_CALL;
}

/* Does the innermost open call want inner values in rounds? */
static __always_inline bool iot_in_rounds(struct iot_task *t)
{
	struct iot_spec *s = t->depth ? iot_spec_of(iot_frame_at(t, t->depth - 1)->spec) : NULL;

	return s && s->len.from == IOT_FROM_ROUNDS;
}

/*
 * Some calls are about several variables and ask the same of each: inner values come in rounds, whose products make a sum.
 * The library asks in a loop, so values of the same kind count only if they come from the site of the first one.
 */
static __always_inline void iot_round(struct iot_spec *s, struct iot_frame *f)
{
	u64 one, other;

	if (f->present != (1 << IOT_INNER_PER_CALL) - 1)
		return;
	if (iot_inner_value(f, s->len.b, &one) && iot_inner_value(f, s->len.k, &other))
		f->sum += one * other;
	f->rounds++;
	f->present = 0;
}

/* The innermost open call gets an inner value, in this slot. */
static __always_inline void iot_put_inner(struct iot_frame *outer, struct iot_spec *spec, u32 i, u64 site, u64 value)
{
	outer->inner_value[i] = value;
	outer->present |= 1 << i;
	if (spec->len.from == IOT_FROM_ROUNDS) {
		outer->site[i] = site;
		iot_round(spec, outer);
	}
}

/* Hands the values of a call to the one it ran in. */
static __always_inline void iot_give_inner(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret,
					   u64 now)
{
	u32 depth = iot_outer_depth(t), i = iot_inner_slot(t, depth, s->gives, f->site[0]);
	struct iot_frame *outer = iot_frame_at(t, depth - 1);
	struct iot_spec *outer_spec = iot_spec_of(outer->spec);
	u64 value;

	if (!outer_spec || i >= IOT_INNER_PER_CALL || iot_status(s, ret) < 0)
		return;
	if (!(outer_spec->flags & IOT_S_ALL_INNER) && iot_eval(&s->got, f, ret, &value))
		iot_put_inner(outer, outer_spec, i, f->site[0], value);
	if (s->flags & IOT_S_RETURN) {
		t->now = now;
		iot_send_arrays(t, s, f, ret, outer->seq, IOT_READ_AT_RETURN);
	}
}

/* What an accessor of the library would return of the structure at `at`. Not inlined: the stack of iot_uprobe. */
__noinline bool iot_inner_field(struct iot_task *t, u32 gives, u64 at, u64 cookie, u64 site)
{
	struct iot_frame *outer;
	struct iot_spec *outer_spec;
	u64 value;
	u32 depth, i;

	if (!t)
		return false;
	depth = iot_outer_depth(t);
	i = iot_inner_slot(t, depth, gives, site);
	outer = iot_frame_at(t, depth - 1);
	outer_spec = iot_spec_of(outer->spec);
	if (!outer_spec || (outer_spec->flags & IOT_S_ALL_INNER) || i >= IOT_INNER_PER_CALL)
		return false;
	at += cookie >> IOT_COOKIE_FIRST & 0xffff;
	if (bpf_probe_read_user(&value, sizeof(value), (void *)at))
		return false;
	at = value + (cookie >> IOT_COOKIE_THEN & 0xffff);
	if (iot_cookie_has(cookie, IOT_COOKIE_LEADS) && bpf_probe_read_user(&value, sizeof(value), (void *)at))
		return false;
	iot_put_inner(outer, outer_spec, i, site, value);
	return true;
}

/* Does the innermost open call want two inner values of this kind, as its last ones? */
static __always_inline bool iot_wants_two(struct iot_task *t, u8 value)
{
	struct iot_spec *s = iot_spec_of(iot_frame_at(t, iot_outer_depth(t) - 1)->spec);

	return s && s->wants[1] == value && s->wants[2] == value;
}

/* While probes are exchanged: was this site met a moment ago? Both links have a probe there. */
static __always_inline bool iot_met_already(struct iot_task *t, u64 site)
{
	u64 now = bpf_ktime_get_ns();
	bool met = t->field_at == site && now - t->field_time < IOT_SAME_CALL;

	t->field_at = site;
	t->field_time = now;
	return met;
}

/* The library has pointers to structures in its arguments, with a field that the open call may want to know. */
static __always_inline void iot_lib_field(struct pt_regs *ctx, u64 cookie)
{
	struct iot_task *t = iot_self();
	struct iot_spec *s;
	u64 site = PT_REGS_IP(ctx);

	if (!t || !t->depth)
		return;
	s = iot_spec_of(iot_cookie_row(cookie));
	if (!s)
		return;
	iot_hook_enters(t, iot_cookie_row(cookie), iot_fixed.entry);
	if (iot_cookie_has(cookie, IOT_COOKIE_BOTH) && iot_in_rounds(t))
		bpf_probe_read_user(&site, sizeof(site), (void *)PT_REGS_SP(ctx));
	/* two types are asked about for other reasons than to convert what a call moves, too */
	if ((!iot_cookie_has(cookie, IOT_COOKIE_BOTH) || iot_wants_two(t, s->gives)) &&
	    (!iot_exchanging || !iot_met_already(t, PT_REGS_IP(ctx))) &&
	    iot_inner_field(t, s->gives, PT_REGS_PARM1(ctx), cookie, site) && iot_cookie_has(cookie, IOT_COOKIE_BOTH))
		iot_inner_field(t, s->gives, PT_REGS_PARM2(ctx), cookie, site);
	iot_hook_entered(t, 0);
}

#endif
