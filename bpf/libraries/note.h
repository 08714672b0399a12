/* SPDX-License-Identifier: GPL-2.0 */
/* Notes: what inner functions of a library know of the call that they run in. */
#ifndef IOT_NOTE_H
#define IOT_NOTE_H

#define IOT_SAME_CALL 20000 /* ns between two probes of one call */

/*
 * While the probes of a file are exchanged for others, a call meets both: the second one, a moment later, is not another
 * call.
 */
u32 iot_exchanging;

/*
 * How deep the call is that gets notes: the innermost one, but for the function that reads how a dataset is stored, which
 * runs what writes other notes.
 */
static __always_inline u32 iot_taker(struct iot_task *t)
{
	u32 depth = t->depth;
	struct iot_spec *s = depth > 1 ? iot_spec_of(iot_frame_at(t, depth - 1)->spec) : NULL;

	return s && s->arrays[0].deref == IOT_DEREF_STORAGE ? depth - 1 : depth;
}

/* The slot of the innermost open call for this note; IOT_NOTES_PER_CALL: it takes none, or has it. */
static __always_inline u32 iot_note_slot(struct iot_task *t, u32 depth, u8 note, u64 site)
{
	struct iot_frame *f = iot_frame_at(t, depth - 1);
	struct iot_spec *s = depth ? iot_spec_of(f->spec) : NULL;

	if (!s)
		return IOT_NOTES_PER_CALL;
	for (u32 i = 0; i < IOT_NOTES_PER_CALL; i++)
		if (s->takes[i] == note && !(f->noted & 1 << i) &&
		    (s->len.from != IOT_FROM_ROUNDS || !f->site[i] || f->site[i] == site))
			return i;
	return IOT_NOTES_PER_CALL;
}

/* Does the innermost open call take notes in rounds? */
static __always_inline bool iot_in_rounds(struct iot_task *t)
{
	struct iot_spec *s = t->depth ? iot_spec_of(iot_frame_at(t, t->depth - 1)->spec) : NULL;

	return s && s->len.from == IOT_FROM_ROUNDS;
}

/*
 * Some calls are about several variables and ask the same of each: notes come in rounds, whose products make a sum. The
 * library asks in a loop, so notes of the same kind count only if they come from the site of the first one.
 */
static __always_inline void iot_round(struct iot_spec *s, struct iot_frame *f)
{
	u64 one, other;

	if (f->noted != (1 << IOT_NOTES_PER_CALL) - 1)
		return;
	if (iot_noted(f, s->len.b, &one) && iot_noted(f, s->len.k, &other))
		f->sum += one * other;
	f->rounds++;
	f->noted = 0;
}

/* The innermost open call gets a note, in this place. */
static __always_inline void iot_put_note(struct iot_frame *outer, struct iot_spec *wants, u32 i, u64 site, u64 value)
{
	outer->note[i] = value;
	outer->noted |= 1 << i;
	if (wants->len.from == IOT_FROM_ROUNDS) {
		outer->site[i] = site;
		iot_round(wants, outer);
	}
}

/* Hands the values of a call to the one it ran in. */
static __always_inline void iot_take_note(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret, u64 now)
{
	u32 depth = iot_taker(t), i = iot_note_slot(t, depth, s->note, f->site[0]);
	struct iot_frame *outer = iot_frame_at(t, depth - 1);
	struct iot_spec *wants = iot_spec_of(outer->spec);
	u64 value;

	if (!wants || i >= IOT_NOTES_PER_CALL || iot_status(s, ret) < 0)
		return;
	if (!(wants->flags & IOT_S_EVERY) && iot_eval(&s->got, f, ret, &value))
		iot_put_note(outer, wants, i, f->site[0], value);
	if (s->flags & IOT_S_RETURN) {
		t->now = now;
		iot_send_arrays(t, s, f, ret, outer->seq, IOT_READ_AT_RETURN);
	}
}

/* The note that an accessor of the library would return of the structure at `at`. Not inlined: the stack of iot_uprobe. */
__noinline bool iot_note_field(struct iot_task *t, u32 note, u64 at, u64 cookie, u64 site)
{
	struct iot_frame *outer;
	struct iot_spec *wants;
	u64 value;
	u32 depth, i;

	if (!t)
		return false;
	depth = iot_taker(t);
	i = iot_note_slot(t, depth, note, site);
	outer = iot_frame_at(t, depth - 1);
	wants = iot_spec_of(outer->spec);
	if (!wants || (wants->flags & IOT_S_EVERY) || i >= IOT_NOTES_PER_CALL)
		return false;
	at += cookie >> IOT_COOKIE_FIRST & 0xffff;
	if (bpf_probe_read_user(&value, sizeof(value), (void *)at))
		return false;
	at = value + (cookie >> IOT_COOKIE_THEN & 0xffff);
	if (iot_cookie_has(cookie, IOT_COOKIE_LEADS) && bpf_probe_read_user(&value, sizeof(value), (void *)at))
		return false;
	iot_put_note(outer, wants, i, site, value);
	return true;
}

/* Does the innermost open call take two notes of this kind, as its last ones? */
static __always_inline bool iot_takes_two(struct iot_task *t, u8 note)
{
	struct iot_spec *s = iot_spec_of(iot_frame_at(t, iot_taker(t) - 1)->spec);

	return s && s->takes[1] == note && s->takes[2] == note;
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
	if ((!iot_cookie_has(cookie, IOT_COOKIE_BOTH) || iot_takes_two(t, s->note)) &&
	    (!iot_exchanging || !iot_met_already(t, PT_REGS_IP(ctx))) &&
	    iot_note_field(t, s->note, PT_REGS_PARM1(ctx), cookie, site) && iot_cookie_has(cookie, IOT_COOKIE_BOTH))
		iot_note_field(t, s->note, PT_REGS_PARM2(ctx), cookie, site);
	iot_hook_entered(t, 0);
}

#endif
