/* SPDX-License-Identifier: GPL-2.0 */
/* Library layer: four entry points serve every row of the catalog; the probe's cookie is the row. */
#ifndef IOT_LIB_H
#define IOT_LIB_H

#define IOT_ONE_STACK (8 << 20) /* two places further apart are on different stacks */

extern bool bpf_session_is_return(void) __ksym __weak;

struct iot_dead {
	struct iot_task *t;
	u64 sp;
	u64 now;
	u32 spec;
};

/* Does the return address at the stack pointer lead to the kernel's trampoline for return probes? */
static __always_inline bool iot_returns_to_us(struct iot_task *t, u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 address = 0;

	if (bpf_probe_read_user(&address, sizeof(address), (void *)sp) || !address)
		return false;
	/* exec moves it, but what was left before exec is over */
	if (address == t->trampoline)
		return true;
	if (address != BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr))
		return false;
	t->trampoline = address;
	return true;
}

#define IOT_B_LOOK (IOT_B_PLACES | IOT_B_PHASE)

/*
 * Is a phase, or a function without return probe, still open while the function `spec` is entered (or a system call made:
 * no row) at `sp`? Its return address must be where it was: exceptions, longjmp and jumps into other functions leave it
 * unseen. A function entered at the same place is its tail call if it has just jumped.
 */
static __always_inline bool iot_still_open(struct iot_task *t, struct iot_frame *f, u64 sp, u32 spec)
{
	u64 back = 0;

	if (sp > f->sp)
		return false;
	if (!(f->bits & IOT_B_PLACES))
		return iot_returns_to_us(t, f->sp);
	if (sp == f->sp && spec < IOT_MAX_SPECS && (spec == f->spec || !(f->bits & IOT_B_JUMPED)))
		return false;
	return !bpf_probe_read_user(&back, sizeof(back), (void *)f->sp) && back == f->back;
}

/*
 * A call whose stack frame lies below the one that is being entered was left by longjmp. So was one at the same place,
 * unless this is its tail call, which will return through its probe. Far away is another stack (signals, coroutines),
 * which tells nothing.
 */
static long iot_dead_step(u64 i, struct iot_dead *x)
{
	struct iot_frame *f;

	if (!x->t->depth)
		return 1;
	f = iot_frame_at(x->t, x->t->depth - 1);
	if (!f->sp || (f->sp < x->sp ? x->sp - f->sp : f->sp - x->sp) > IOT_ONE_STACK)
		return 1;
	if (f->bits & IOT_B_LOOK) {
		if (iot_still_open(x->t, f, x->sp, x->spec))
			return 1;
	} else if (f->sp > x->sp || (f->sp == x->sp && iot_returns_to_us(x->t, x->sp))) {
		return 1;
	}
	iot_give_up(x->t, x->now);
	return 0;
}

static __always_inline void iot_drop_dead(struct iot_task *t, u64 sp, u32 spec)
{
	struct iot_dead x = {.t = t, .sp = sp, .spec = spec};
	struct iot_frame *f = iot_frame_at(t, t->depth - 1);

	if (!t->depth || (f->sp > sp && !(f->bits & IOT_B_LOOK)))
		return;
	x.now = bpf_ktime_get_ns();
	bpf_loop(IOT_DEPTH, iot_dead_step, &x, 0);
}

/* The same before a system call, where only phases and functions without return probe are looked at. */
static __always_inline void iot_drop_left(struct iot_task *t, struct pt_regs *regs)
{
	struct iot_frame *f = iot_frame_at(t, t->depth - 1);
	u64 sp;

	if (!t->depth || !f->sp || !(f->bits & IOT_B_LOOK))
		return;
	sp = PT_REGS_SP_CORE(regs);
	if (!iot_still_open(t, f, sp, IOT_MAX_SPECS))
		iot_drop_dead(t, sp, IOT_MAX_SPECS);
}

/* A phase has begun. When there is no room for this it is a call like any other, and what it holds waits for its end. */
static __always_inline void iot_tell_phase(struct iot_task *t, struct iot_frame *f)
{
	struct iot_enter e = {
		.type = IOT_T_ENTER,
		.depth = t->depth - 1,
		.spec = f->spec,
		.seq = f->seq,
		.thread = t->thread,
		.cpu = bpf_get_smp_processor_id(),
		.start = f->start,
	};

	iot_send(IOT_C_LIFE, IOT_LAYER_APP, &e, sizeof(e));
}

/* Returns 0 when the call is recorded and its return wanted. */
static __always_inline int iot_lib_enter(struct pt_regs *ctx, u64 cookie)
{
	struct iot_task *t = iot_self();
	u32 spec = cookie & IOT_K_ROW;
	struct iot_spec *s;
	struct iot_frame *f;

	if (!t)
		return 1;
	s = iot_spec_of(spec);
	if (!s)
		return 1;
	iot_drop_dead(t, PT_REGS_SP(ctx), spec);
	f = iot_push(t, spec, s);
	if (!f)
		return 1;
	f->sp = PT_REGS_SP(ctx);
	f->a[0] = PT_REGS_PARM1(ctx);
	f->a[1] = PT_REGS_PARM2(ctx);
	f->a[2] = PT_REGS_PARM3(ctx);
	f->a[3] = PT_REGS_PARM4(ctx);
	f->a[4] = PT_REGS_PARM5(ctx);
	f->a[5] = PT_REGS_PARM6(ctx);
	if (s->handle.how == IOT_IN)
		bpf_probe_read_user(&f->in, sizeof(f->in), (void *)iot_arg(f, s->handle.a));
	if (cookie & IOT_K_PLACES) {
		f->bits = IOT_B_PLACES;
		bpf_probe_read_user(&f->back, sizeof(f->back), (void *)f->sp);
	}
	f->start = bpf_ktime_get_ns();
	if (s->bits & IOT_S_PHASE) {
		f->bits |= IOT_B_PHASE;
		iot_tell_phase(t, f);
	}
	return !!(cookie & IOT_K_PLACES);
}

struct iot_find {
	struct iot_task *t;
	u64 sp;
	u32 spec;
	u32 found; /* depth of the frame, plus 1 */
};

static long iot_find_step(u64 i, struct iot_find *x)
{
	u32 at = x->t->depth - 1 - (u32)i;
	struct iot_frame *f;

	if ((u32)i >= x->t->depth)
		return 1;
	f = iot_frame_at(x->t, at);
	if (f->sp != x->sp || f->spec != x->spec)
		return 0;
	x->found = at + 1;
	return 1;
}

/* Sends the innermost call, which has returned. */
static __noinline int iot_finish(struct iot_task *t, s64 ret, u64 now)
{
	struct iot_frame *f;
	struct iot_spec *s;
	struct iot_call c;

	if (!t || !t->depth)
		return 0;
	iot_pop(t, now);
	f = iot_frame_at(t, t->depth);
	s = iot_spec_of(f->spec);
	if (!s)
		return 0;
	iot_head(&c, IOT_T_CALL, t, f, t->depth, now);
	c.status = iot_status(s, ret);
	iot_values(&c, s, f, ret);
	iot_paths(t, &c, s, f);
	iot_send_call(t, s, &c);
	return 0;
}

struct iot_tails {
	struct iot_task *t;
	u64 sp;
	u64 now;
	s64 ret;
};

static long iot_tails_step(u64 i, struct iot_tails *x)
{
	struct iot_frame *f = iot_frame_at(x->t, x->t->depth - 1);

	if (!x->t->depth || f->sp != x->sp || !(f->bits & IOT_B_PLACES))
		return 1;
	iot_finish(x->t, x->ret, x->now);
	return 0;
}

/* A return from this place of the stack ends every function without return probe that was entered there: tail calls. */
static __always_inline void iot_finish_tails(struct iot_task *t, u64 sp, s64 ret, u64 now)
{
	struct iot_tails x = {.t = t, .sp = sp, .now = now, .ret = ret};
	struct iot_frame *f = iot_frame_at(t, t->depth - 1);

	if (t->depth && f->sp == sp && (f->bits & IOT_B_PLACES))
		bpf_loop(IOT_DEPTH, iot_tails_step, &x, 0);
}

static __always_inline int iot_lib_return(struct pt_regs *ctx, u32 spec)
{
	u64 now = bpf_ktime_get_ns();
	struct iot_task *t = iot_self();
	struct iot_spec *s;
	struct iot_frame *f;
	s64 ret = PT_REGS_RC(ctx);
	u64 sp = PT_REGS_SP(ctx) - sizeof(u64); /* the return address is gone from the stack */

	if (!t)
		return 0;
	s = iot_spec_of(spec);
	if (!s)
		return 0;
	f = iot_frame_at(t, t->depth - 1);
	if (!t->depth || f->sp != sp || f->spec != spec) {
		/* Calls above ours never returned (longjmp), or ours is not there. */
		struct iot_find x = {.t = t, .sp = sp, .spec = spec};

		bpf_loop(IOT_DEPTH, iot_find_step, &x, 0);
		if (!x.found) {
			/* A process that was forked in a phase returns from it, too: the phase is its parent's. */
			if (!(s->bits & IOT_S_PHASE))
				iot_lost(IOT_P_RETURN, s->layer);
			return 0;
		}
		iot_flush(t, x.found, now);
	}
	iot_finish(t, ret, now);
	iot_finish_tails(t, sp, ret, now);
	return 0;
}

static long iot_find_place_step(u64 i, struct iot_find *x)
{
	u32 at = x->t->depth - 1 - (u32)i;
	struct iot_frame *f;

	if ((u32)i >= x->t->depth)
		return 1;
	f = iot_frame_at(x->t, at);
	if (f->sp != x->sp || !(f->bits & IOT_B_PLACES))
		return 0;
	x->found = at + 1;
	return 1;
}

/*
 * At a place in a function without return probe where its stack may be empty: the stack pointer says whose place it is.
 * The calls above that one are over; returns whether there is one, as the innermost call.
 */
static __always_inline bool iot_at_place(struct iot_task *t, u64 sp, u64 now)
{
	struct iot_find x = {.t = t, .sp = sp};

	if (!t || !t->depth)
		return false;
	bpf_loop(IOT_DEPTH, iot_find_place_step, &x, 0);
	if (x.found)
		iot_flush(t, x.found, now);
	return x.found;
}

/* A return instruction. */
static __always_inline void iot_lib_leave(struct pt_regs *ctx)
{
	u64 now = bpf_ktime_get_ns(), sp = PT_REGS_SP(ctx);
	struct iot_task *t = iot_self();

	if (iot_at_place(t, sp, now))
		iot_finish_tails(t, sp, PT_REGS_RC(ctx), now);
}

/* A jump out of the function, which ends there or in what it jumps to. */
static __always_inline void iot_lib_jump(struct pt_regs *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct iot_task *t = iot_self();

	if (iot_at_place(t, PT_REGS_SP(ctx), now)) {
		struct iot_frame *f = iot_frame_at(t, t->depth - 1);

		f->left = now;
		f->bits |= IOT_B_JUMPED;
	}
}

/* An entry, or a place in a function that has no return probe. Returns 0 when the return is wanted. */
static __always_inline int iot_lib_hit(struct pt_regs *ctx, u64 cookie)
{
	int unwanted = 1;

	/* a function of one instruction is both */
	if ((cookie & IOT_K_PLACES) || !(cookie & (IOT_K_LEAVE | IOT_K_JUMP)))
		unwanted = iot_lib_enter(ctx, cookie);
	if (cookie & IOT_K_LEAVE)
		iot_lib_leave(ctx);
	else if (cookie & IOT_K_JUMP)
		iot_lib_jump(ctx);
	return unwanted;
}

SEC("?uprobe.session")
int iot_uprobe_session(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (bpf_session_is_return())
		return iot_lib_return(ctx, cookie & IOT_K_ROW);
	return iot_lib_hit(ctx, cookie);
}

SEC("?uprobe.multi")
int iot_uprobe_multi(struct pt_regs *ctx)
{
	iot_lib_hit(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("?uretprobe.multi")
int iot_uretprobe_multi(struct pt_regs *ctx)
{
	return iot_lib_return(ctx, bpf_get_attach_cookie(ctx) & IOT_K_ROW);
}

SEC("?uprobe")
int iot_uprobe(struct pt_regs *ctx)
{
	iot_lib_hit(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("?uretprobe")
int iot_uretprobe(struct pt_regs *ctx)
{
	return iot_lib_return(ctx, bpf_get_attach_cookie(ctx) & IOT_K_ROW);
}

#endif
