/* SPDX-License-Identifier: GPL-2.0 */
/* Library layer: four entry points serve every row of the catalog; the probe's cookie is the row. */
#ifndef IOT_LIB_H
#define IOT_LIB_H

extern bool bpf_session_is_return(void) __ksym __weak;

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

/* Returns 0 when the call is recorded and its return wanted. */
static __always_inline int iot_lib_enter(struct pt_regs *ctx, u32 spec)
{
	struct iot_task *t = iot_self();
	struct iot_spec *s;
	struct iot_frame *f;

	if (!t)
		return 1;
	s = iot_spec_of(spec);
	if (!s)
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

static __always_inline int iot_lib_return(struct pt_regs *ctx, u32 spec)
{
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
			if (!iot_inherited())
				iot_lost(IOT_P_RETURN, s->layer);
			return 0;
		}
		at = x.found - 1;
		f = iot_frame_at(t, at);
	}
	t->depth = at;
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
	u32 spec = bpf_get_attach_cookie(ctx);

	if (bpf_session_is_return())
		return iot_lib_return(ctx, spec);
	return iot_lib_enter(ctx, spec);
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
