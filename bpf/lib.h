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
};

/* Does the return address at the stack pointer lead to the kernel's trampoline for return probes? */
static __always_inline bool iot_returns_to_us(u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 trampoline = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	u64 address = 0;

	return !bpf_probe_read_user(&address, sizeof(address), (void *)sp) && address == trampoline;
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
	if (!f->sp || f->sp > x->sp || x->sp - f->sp > IOT_ONE_STACK || (f->sp == x->sp && iot_returns_to_us(x->sp)))
		return 1;
	iot_give_up(x->t, x->now);
	return 0;
}

static __always_inline void iot_drop_dead(struct iot_task *t, u64 sp)
{
	struct iot_dead x = {.t = t, .sp = sp};

	if (!t->depth || iot_frame_at(t, t->depth - 1)->sp > sp)
		return;
	x.now = bpf_ktime_get_ns();
	bpf_loop(IOT_DEPTH, iot_dead_step, &x, 0);
}

/* The probe's cookie: 16 bits with the row, then a bit for an indirect variable, then the distance of the variable. */
static __always_inline u32 iot_row(u64 cookie)
{
	return cookie & 0xffff;
}

/* The value of the pointer variable that the cookie leads to from the breakpoint; 0: there is none. */
static __always_inline u64 iot_global(struct pt_regs *ctx, u64 cookie)
{
	u64 value = 0, at = PT_REGS_IP(ctx) + ((s64)cookie >> 17);

	if (!(cookie >> 16))
		return 0;
	if ((cookie & 1 << 16) && bpf_probe_read_user(&at, sizeof(at), (void *)at))
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
	u32 spec = iot_row(cookie);
	struct iot_task *t = iot_self();
	struct iot_spec *s;
	struct iot_frame *f;

	if (!t)
		return 1;
	s = iot_spec_of(spec);
	if (!s)
		return 1;
	iot_drop_dead(t, PT_REGS_SP(ctx));
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
	else if (s->handle.how == IOT_GLOBAL)
		f->in = iot_global(ctx, cookie);
	if (s->bits & IOT_S_STREAM)
		f->pos = iot_stream_of(t, s, f);
	f->start = bpf_ktime_get_ns();
	return 0;
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

static __always_inline int iot_lib_return(struct pt_regs *ctx, u64 cookie)
{
	u32 spec = iot_row(cookie);
	u64 now = bpf_ktime_get_ns();
	struct iot_task *t = iot_self();
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
	if (!t->depth || f->sp != sp || f->spec != spec) {
		/* Calls above ours never returned (longjmp), or ours is not there. */
		struct iot_find x = {.t = t, .sp = sp, .spec = spec};

		bpf_loop(IOT_DEPTH, iot_find_step, &x, 0);
		if (!x.found) {
			iot_lost(IOT_P_RETURN, s->layer);
			return 0;
		}
		at = x.found - 1;
		f = iot_frame_at(t, at);
	}
	t->depth = at;
	if (s->off.how == IOT_STREAM_END || s->got.how == IOT_STREAM_MOVED)
		f->end = iot_stream_of(t, s, f);
	iot_head(&c, IOT_T_CALL, t, f, at, now);
	c.status = iot_status(s, ret);
	iot_values(&c, s, f, ret);
	iot_paths(t, &c, s, f);
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
