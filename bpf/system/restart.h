/* SPDX-License-Identifier: GPL-2.0 */
/*
 * System calls that signals interrupt. The kernel restarts some of them: they are entered again, behind the program's back,
 * when the handler is over. That is one call.
 */
#ifndef IOT_RESTART_H
#define IOT_RESTART_H

#define EINTR	       4
#define ERESTARTSYS    512 /* include/linux/errno.h: from here ... */
#define ENOIOCTLCMD    515
#define ERESTART_BLOCK 516   /* ... to here */
#define IOT_STACK_NEAR 65536 /* what lies so far above is the same stack */

static __always_inline bool iot_interrupted(s64 ret)
{
	return ret <= -ERESTARTSYS && ret >= -ERESTART_BLOCK && ret != -ENOIOCTLCMD;
}

/* It is not restarted: the program sees an error, or never notices it. Calls of a handler came in between: a new number. */
__noinline int iot_halted_over(struct iot_task *t, u32 unfinished)
{
	struct iot_syscall e;
	u64 dur;

	if (!t || !t->halted.on)
		return 0;
	t->halted.on = 0;
	e = t->halted.e;
	dur = bpf_ktime_get_ns() - e.call.start;
	if (dur >> IOT_DUR_BITS)
		dur = (1ULL << IOT_DUR_BITS) - 1;
	e.call.dur_cpu_depth = (e.call.dur_cpu_depth & ~((1ULL << IOT_DUR_BITS) - 1)) | dur;
	e.call.status = unfinished ? 0 : -EINTR;
	if (unfinished)
		e.call.flags |= IOT_F_UNFINISHED;
	if (t->seq != e.call.seq + 1)
		e.call.seq = t->seq++;
	if (iot_cfg.detail) {
		struct iot_spec *s = iot_spec_of(e.call.spec);
		bool wanted = iot_is_slow(e.call.spec, dur) ||
			      iot_is_chosen(t->process, e.call.flags, e.ino, e.dev, e.generation);

		if (s && wanted && iot_may_send(t->process, 1))
			e.call.type |= IOT_D_SELF;
		iot_hang(t, e.call.type);
	}
	iot_send(t->halted.life ? IOT_C_LIFE : IOT_C_CALL, IOT_LAYER_SYSCALL, &e, sizeof(e));
	return 0;
}

/* A call returns with the kernel's own code for "again": it is kept. */
static __always_inline void iot_halt(struct iot_task *t, struct iot_spec *s, u64 ip, u64 sp, u32 nr)
{
	iot_halted_over(t, 0);
	t->halted.e = t->made;
	t->halted.ip = ip;
	t->halted.sp = sp;
	t->halted.nr = nr;
	t->halted.life = iot_call_class(s) == IOT_C_LIFE;
	t->halted.on = 1;
}

/* A handler is over. Where the interrupted call is not entered again, the program sees that it was interrupted. */
static __always_inline void iot_handler_returned(struct pt_regs *regs)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);

	if (t && t->halted.on && IOT_READ(regs, ip) == t->halted.ip)
		iot_halted_over(t, 0);
}

/* A call enters while one is interrupted. When that one is restarted, the time at which it began. */
static __always_inline u64 iot_restarted(struct iot_task *t, u64 ip, u64 sp, long id)
{
	if (!t->halted.on)
		return 0;
	if (ip == t->halted.ip && sp == t->halted.sp && id == t->halted.nr) {
		t->halted.on = 0;
		/* the same number, unless a handler's calls came in between */
		if (t->seq == t->halted.e.call.seq + 1)
			t->seq--;
		return t->halted.e.call.start;
	}
	/* a handler left by a jump: its calls would be below */
	if (sp > t->halted.sp && sp - t->halted.sp < IOT_STACK_NEAR)
		iot_halted_over(t, 1);
	return 0;
}

#endif
