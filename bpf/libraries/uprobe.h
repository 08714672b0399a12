/* SPDX-License-Identifier: GPL-2.0 */
/* The programs that breakpoints run: a few serve every row of the catalog; the probe's cookie has the row. */
#ifndef IOT_UPROBE_H
#define IOT_UPROBE_H

extern bool bpf_session_is_return(void) __ksym __weak;

/* An entry, or a place in a function that has no return probe. Returns 0 when the return is wanted. */
static __always_inline int iot_lib_hit(struct pt_regs *ctx, u64 cookie)
{
	int unwanted = 1;

	if (iot_cookie_has(cookie, IOT_COOKIE_EDGE)) {
		iot_lib_edge(ctx, cookie);
		return unwanted;
	}
	if (iot_cookie_has(cookie, IOT_COOKIE_FIELD)) {
		iot_lib_field(ctx, cookie);
		return unwanted;
	}
	/* a function of one instruction is both */
	if (iot_cookie_has(cookie, IOT_COOKIE_NO_RETPROBE) ||
	    !(iot_cookie_has(cookie, IOT_COOKIE_LEAVE) || iot_cookie_has(cookie, IOT_COOKIE_JUMP)))
		unwanted = iot_lib_enter(ctx, cookie);
	if (iot_cookie_has(cookie, IOT_COOKIE_LEAVE))
		iot_lib_leave(ctx, cookie);
	else if (iot_cookie_has(cookie, IOT_COOKIE_JUMP))
		iot_lib_jump(ctx);
	return unwanted;
}

SEC("?uprobe.session")
int iot_uprobe_session(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (bpf_session_is_return())
		return iot_lib_return(ctx, cookie);
	return iot_lib_hit(ctx, cookie);
}

SEC("?uprobe.multi")
int iot_uprobe_multi(struct pt_regs *ctx)
{
	iot_lib_hit(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

/* Of a catalog without functions of the user's: fields of structures, longjmp and its kind, functions with a frame. */
SEC("?uprobe.multi")
int iot_uprobe_entry(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct iot_task *t;
	struct iot_spec *s;

	if (iot_cookie_has(cookie, IOT_COOKIE_FIELD)) {
		iot_lib_field(ctx, cookie);
		return 0;
	}
	if (iot_cookie_has(cookie, IOT_COOKIE_FRAMED)) {
		if (iot_cookie_has(cookie, IOT_COOKIE_LEAVE))
			iot_lib_leave(ctx, cookie);
		else
			iot_lib_enter(ctx, cookie);
		return 0;
	}
	t = iot_self();
	s = iot_spec_of(iot_cookie_row(cookie));
	if (t && s && s->flags & IOT_S_JUMPS)
		iot_lib_jumps(t, PT_REGS_PARM1(ctx) + s->got.k, PT_REGS_SP(ctx));
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
	iot_lib_hit(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("?uretprobe")
int iot_uretprobe(struct pt_regs *ctx)
{
	return iot_lib_return(ctx, bpf_get_attach_cookie(ctx));
}

#endif
