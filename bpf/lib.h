/* SPDX-License-Identifier: GPL-2.0 */
/* Library layer: four entry points serve every row of the catalog; the probe's cookie is the row. */
#ifndef IOT_LIB_H
#define IOT_LIB_H

extern bool bpf_session_is_return(void) __ksym __weak;

/*
 * 0 while library probes are set or taken off. Where entry and return have a probe each, a call can then meet the one for its
 * return only: it is a call before or after the trace.
 */
u32 iot_settled = 1;

struct iot_dead {
	struct iot_task *t;
	u64 sp;
	u64 now;
	bool elsewhere; /* the innermost call may be open on another stack */
};

/* Does the return address that stands here lead to the kernel's trampoline for return probes? Paged out, it may. */
static __always_inline bool iot_returns_to_us(struct iot_task *t, u64 sp)
{
	u64 address = 0;

	if (!t->trampoline)
		t->trampoline = BPF_CORE_READ(bpf_get_current_task_btf(), mm, uprobes_state.xol_area, vaddr);
	return bpf_probe_read_user(&address, sizeof(address), (void *)sp) || address == t->trampoline;
}

/* Is this on the stack that the kernel made for the main thread, and grows? */
static __always_inline bool iot_on_main_stack(u64 sp)
{
	struct mm_struct *mm = BPF_CORE_READ(bpf_get_current_task_btf(), mm);
	u64 top = BPF_CORE_READ(mm, start_stack);

	return sp <= top && top - sp <= BPF_CORE_READ(mm, stack_vm) << IOT_PAGE_SHIFT;
}

/*
 * Calls are left by longjmp. A call whose return address does not stand any more was; so was one whose frame lies below
 * the stack pointer, where nothing is kept. But that holds on one stack only: a call on another one (of a coroutine, a
 * signal handler) is open wherever that stack lies, and which stack an address belongs to can be told of the main
 * thread's only. At the same place as the stack pointer is a call whose tail call is being entered.
 */
static long iot_dead_step(u64 i, struct iot_dead *x)
{
	struct iot_frame *f;

	if (!x->t->depth)
		return 1;
	f = iot_frame_at(x->t, x->t->depth - 1);
	if (!f->sp)
		return 1;
	if (iot_returns_to_us(x->t, f->sp)) {
		if (f->sp >= x->sp)
			return 1;
		if (!iot_on_main_stack(f->sp) || !iot_on_main_stack(x->sp)) {
			x->elsewhere = true;
			return 1;
		}
	}
	iot_give_up(x->t, x->now);
	return 0;
}

/* Gives up the calls that were left. False: the innermost one may be open on another stack. */
static __always_inline bool iot_drop_dead(struct iot_task *t, u64 sp)
{
	struct iot_dead x = {.t = t, .sp = sp};
	struct iot_frame *f;

	if (!t->depth)
		return true;
	f = iot_frame_at(t, t->depth - 1);
	if (f->sp >= sp && iot_returns_to_us(t, f->sp))
		return true;
	x.now = bpf_ktime_get_ns();
	bpf_loop(IOT_DEPTH, iot_dead_step, &x, 0);
	return !x.elsewhere;
}

/* Where the innermost open call takes this note; IOT_NOTES_PER_CALL: it does not, or has it. */
static __always_inline u32 iot_note_place(struct iot_task *t, u32 depth, u8 note, u64 site)
{
	struct iot_frame *f = iot_frame_at(t, depth - 1);
	struct iot_spec *s = depth ? iot_spec_of(f->spec) : NULL;

	if (!s)
		return IOT_NOTES_PER_CALL;
	for (u32 i = 0; i < IOT_NOTES_PER_CALL; i++)
		if (s->takes[i] == note && !(f->noted & 1 << i) &&
		    (s->len.how != IOT_ROUNDS || !f->site[i] || f->site[i] == site))
			return i;
	return IOT_NOTES_PER_CALL;
}

/* Is a call that is recorded only inside others, or when it waits for what they submitted? */
static __always_inline bool iot_wanted(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	struct iot_spec *outer = t->depth > 1 ? iot_spec_of(iot_frame_at(t, t->depth - 2)->spec) : NULL;

	if (f->inside && !(s->more & IOT_M_AWAIT))
		return true;
	/* what a waiting call does to wait is its own affair */
	return !(outer && (outer->bits & IOT_S_INSIDE)) && iot_awaits(t, s, f);
}

/* Does the innermost open call take notes in rounds? */
static __always_inline bool iot_in_rounds(struct iot_task *t)
{
	struct iot_spec *s = t->depth ? iot_spec_of(iot_frame_at(t, t->depth - 1)->spec) : NULL;

	return s && s->len.how == IOT_ROUNDS;
}

/*
 * Some calls are about several things and ask the same of each: notes come in rounds, and what they say together is a
 * sum. The library asks in a loop, so notes of the same kind count only if they come from the place that the first came from.
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

/* The value of the pointer variable that the cookie leads to from the breakpoint; 0: there is none. */
static __always_inline u64 iot_global(struct pt_regs *ctx, u64 cookie)
{
	s64 distance = (s64)cookie >> IOT_K_DISTANCE;
	u64 value = 0, at = PT_REGS_IP(ctx) + distance;

	if (!distance)
		return 0;
	if ((cookie & IOT_K_INDIRECT) && bpf_probe_read_user(&at, sizeof(at), (void *)at))
		return 0;
	bpf_probe_read_user(&value, sizeof(value), (void *)at);
	return value;
}

/* Where the stream of a call stands. */
static __always_inline s64 iot_stream_of(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	return iot_stream_at(t, s->handle.how == IOT_GLOBAL ? f->in : iot_arg(f, s->handle.a), s->off.k);
}

/* Returns 0 when the call is recorded and its return wanted. */
static __always_inline int iot_lib_enter(struct pt_regs *ctx, u64 cookie)
{
	struct iot_task *t = iot_self();
	u32 spec = cookie & IOT_K_ROW;
	struct iot_spec *s;
	struct iot_frame *f;
	u64 site = 0;

	if (!t)
		return 1;
	s = iot_spec_of(spec);
	if (!s)
		return 1;
	/* what a program sends for itself is not wanted, and there may be much of it */
	if ((s->bits & IOT_S_INSIDE) && !t->depth && s->handle.how == IOT_NONE && s->words[0].when == IOT_W_NEVER)
		return 1;
	if (!iot_drop_dead(t, PT_REGS_SP(ctx))) {
		/*
		 * The kernel takes that call for one that was left, too. A return probe here would make it forget the
		 * other's, and the program would die when that call returns: kernel/events/uprobes.c,
		 * cleanup_return_instances().
		 */
		iot_lost(IOT_P_ELSEWHERE, s->layer);
		return 1;
	}
	if (s->note != IOT_NO_NOTE) {
		if (iot_in_rounds(t))
			bpf_probe_read_user(&site, sizeof(site), (void *)PT_REGS_SP(ctx));
		if (iot_note_place(t, t->depth, s->note, site) == IOT_NOTES_PER_CALL)
			return 1;
	}
	if ((s->more & IOT_M_OUTER) && t->depth && (iot_frame_at(t, t->depth - 1)->inside & 1 << s->layer))
		return 1;
	f = iot_push(t, spec, s);
	if (!f)
		return 1;
	f->site[0] = site;
	f->copy = cookie >> IOT_K_COPY;
	f->sp = PT_REGS_SP(ctx);
	f->a[0] = PT_REGS_PARM1(ctx);
	f->a[1] = PT_REGS_PARM2(ctx);
	f->a[2] = PT_REGS_PARM3(ctx);
	f->a[3] = PT_REGS_PARM4(ctx);
	f->a[4] = PT_REGS_PARM5(ctx);
	f->a[5] = PT_REGS_PARM6(ctx);
	/* The seventh lies above the return address (System V ABI, AMD64, 3.2.3). */
	if ((s->more & IOT_M_STACK) && bpf_probe_read_user(&f->a[6], 6 * sizeof(u64), (void *)(f->sp + sizeof(u64))))
		iot_lost(IOT_P_TEXT, s->layer);
	if (s->handle.how == IOT_IN)
		bpf_probe_read_user(&f->in, sizeof(f->in), (void *)iot_arg(f, s->handle.a));
	if (s->handle.how == IOT_IN_INT) {
		s32 number = 0;

		bpf_probe_read_user(&number, sizeof(number), (void *)iot_arg(f, s->handle.a));
		f->in = (s64)number;
	}
	if (s->handle.how == IOT_GLOBAL)
		f->in = iot_global(ctx, cookie);
	if (((s->bits & IOT_S_INSIDE) && !iot_wanted(t, s, f)) || ((s->bits & IOT_S_ONLY) && !iot_only(s, f))) {
		t->depth--;
		t->seq--;
		return 1;
	}
	if (s->note != IOT_NO_NOTE) { /* it is not recorded: what it does is done by the call it runs in */
		t->seq--;
		f->seq = iot_frame_at(t, t->depth - 2)->seq;
	}
	if (s->more & IOT_M_STREAM)
		f->pos = iot_stream_of(t, s, f);
	f->start = bpf_ktime_get_ns();
	if (s->more & IOT_M_ENTRY) {
		t->now = f->start;
		iot_words(t, s, f, 0, f->seq, IOT_W_ENTRY);
	}
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

/* Hands what a call told to the one it ran in. */
static __always_inline void iot_take_note(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret, u64 now)
{
	u32 i = iot_note_place(t, t->depth, s->note, f->site[0]);
	struct iot_frame *outer = iot_frame_at(t, t->depth - 1);
	struct iot_spec *wants = iot_spec_of(outer->spec);
	u64 value;

	if (!wants || i >= IOT_NOTES_PER_CALL || iot_status(s, ret) < 0)
		return;
	if (!wants->every && iot_eval(&s->got, f, ret, &value)) {
		outer->note[i] = value;
		outer->noted |= 1 << i;
		if (wants->len.how == IOT_ROUNDS) {
			outer->site[i] = f->site[0];
			iot_round(wants, outer);
		}
	}
	if (s->more & IOT_M_RETURN) {
		t->now = now;
		iot_words(t, s, f, ret, outer->seq, IOT_W_RETURN);
	}
}

/* In a child that was forked in the middle of calls, those return once more: they were its parent's. */
static __always_inline bool iot_inherited(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &tgid);

	if (!target || !target->inherited)
		return false;
	target->inherited--;
	return true;
}

static __always_inline int iot_lib_return(struct pt_regs *ctx, u64 cookie)
{
	u64 now = bpf_ktime_get_ns();
	struct iot_task *t = iot_self();
	u8 copy = cookie >> IOT_K_COPY;
	u32 spec = cookie & IOT_K_ROW;
	struct iot_spec *s;
	struct iot_frame *f;
	struct iot_call c;
	s64 ret = PT_REGS_RC(ctx);
	u64 sp = PT_REGS_SP(ctx) - sizeof(u64); /* the return address is gone from the stack */
	u32 at;

	if (!t)
		return 0;
	s = iot_spec_of(spec);
	if (!s)
		return 0;
	at = t->depth - 1;
	f = iot_frame_at(t, at);
	if (!t->depth || f->sp != sp || f->spec != spec || f->copy != copy) {
		/* Calls above ours never returned (longjmp), or ours is not there. */
		struct iot_find x = {.t = t, .sp = sp, .spec = spec, .copy = copy};

		bpf_loop(IOT_DEPTH, iot_find_step, &x, 0);
		if (!x.found) {
			/* Some tiers cannot do without the return of a call that is left out. */
			if (s->note == IOT_NO_NOTE && !(s->bits & IOT_S_INSIDE) && !(s->more & IOT_M_OUTER) &&
			    !iot_inherited() && iot_settled)
				iot_lost(IOT_P_RETURN, s->layer);
			return 0;
		}
		at = x.found - 1;
		f = iot_frame_at(t, at);
	}
	t->depth = at;
	if (s->note != IOT_NO_NOTE) {
		iot_take_note(t, s, f, ret, now);
		return 0;
	}
	if (s->quiet && (u32)ret == s->quiet) {
		if (t->seq == f->seq + 1)
			t->seq--;
		return 0;
	}
	if (s->bits & IOT_S_INSIDE)
		iot_fulfilled(t, s, f);
	if (s->off.how == IOT_STREAM_END || s->got.how == IOT_STREAM_MOVED)
		f->end = iot_stream_of(t, s, f);
	iot_head(&c, IOT_T_CALL, t, f, f->depth, now);
	c.status = iot_status(s, ret);
	iot_values(&c, s, f, ret);
	iot_paths(t, &c, s, f);
	if ((s->more & IOT_M_RETURN) && c.status >= 0)
		iot_words(t, s, f, ret, f->seq, IOT_W_RETURN);
	if ((s->bits & IOT_S_SUBMIT) && (c.flags & IOT_F_GOT))
		iot_submitted(t, c.got);
	iot_send(iot_call_class(s), s->layer, &c, sizeof(c));
	return 0;
}

SEC("?uprobe.session")
int iot_uprobe_session(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (bpf_session_is_return())
		return iot_lib_return(ctx, cookie);
	return iot_lib_enter(ctx, cookie);
}

SEC("?uprobe.multi")
int iot_uprobe_multi(struct pt_regs *ctx)
{
	iot_lib_enter(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("?uretprobe.multi")
int iot_uretprobe_multi(struct pt_regs *ctx)
{
	return iot_lib_return(ctx, bpf_get_attach_cookie(ctx));
}

SEC("?uprobe")
int iot_uprobe(struct pt_regs *ctx)
{
	iot_lib_enter(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("?uretprobe")
int iot_uretprobe(struct pt_regs *ctx)
{
	return iot_lib_return(ctx, bpf_get_attach_cookie(ctx));
}

#endif
