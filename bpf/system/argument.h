/* SPDX-License-Identifier: GPL-2.0 */
/* System calls by ABI: which row of the catalog a number stands for, and its arguments as a 64-bit task would have them. */
#ifndef IOT_ARGUMENT_H
#define IOT_ARGUMENT_H

#define TS_COMPAT   0x0002     /* arch/x86/include/asm/thread_info.h */
#define IOT_X32	    0x40000000 /* __X32_SYSCALL_BIT */
#define IOT_X32_OWN 512	       /* from here on: with 32-bit pointers behind the arguments */

/* Row of the catalog + 1 by number: 64-bit and x32 tasks; 32-bit tasks. */
const volatile u16 iot_sysno[IOT_MAX_SYSCALLS] = {};
const volatile u16 iot_sysno32[IOT_MAX_SHORT] = {};

/* Is the current task, as bpf_get_current_task_btf gives it, in a call of 32 bits? */
static __always_inline bool iot_is_short(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

/* The entry of a number; 0: not traced. */
static __always_inline u16 iot_entry_of(long id, bool is_short)
{
	u64 nr = id;

	if (is_short)
		return nr < IOT_MAX_SHORT ? iot_sysno32[nr & (IOT_MAX_SHORT - 1)] : 0;
	if (nr & IOT_X32)
		nr &= ~(u64)IOT_X32;
	else if (nr >= IOT_X32_OWN)
		return 0;
	return nr < IOT_MAX_SYSCALLS ? iot_sysno[nr & (IOT_MAX_SYSCALLS - 1)] : 0;
}

/* Two registers of 32 bits are argument i. */
#define IOT_JOIN(a, i)                                                                                                 \
	do {                                                                                                           \
		(a)[i] |= (a)[(i) + 1] << 32;                                                                          \
		for (int n = (i) + 1; n < 6; n++)                                                                      \
			(a)[n] = (a)[n + 1];                                                                           \
	} while (0)

/* arch/x86/entry/calling.h, arch/x86/include/asm/syscall.h */
static __noinline void iot_short_arguments(struct iot_frame *f, struct pt_regs *regs, u32 layout)
{
	if (!f || !regs)
		return;
	f->a[0] = (u32)IOT_READ(regs, bx);
	f->a[1] = (u32)IOT_READ(regs, cx);
	f->a[2] = (u32)IOT_READ(regs, dx);
	f->a[3] = (u32)IOT_READ(regs, si);
	f->a[4] = (u32)IOT_READ(regs, di);
	f->a[5] = (u32)IOT_READ(regs, bp);
	f->a[6] = 0;
	f->narrow = 1;
	f->layout = layout;
	switch (layout) {
	case IOT_L_PAIR1:
		IOT_JOIN(f->a, 1);
		break;
	case IOT_L_PAIRS1:
		IOT_JOIN(f->a, 1);
		IOT_JOIN(f->a, 2);
		break;
	case IOT_L_PAIRS2:
		IOT_JOIN(f->a, 2);
		IOT_JOIN(f->a, 3);
		break;
	case IOT_L_PAIR3:
		IOT_JOIN(f->a, 3);
		break;
	case IOT_L_LONG: /* the half above comes first */
		f->a[1] = f->a[1] << 32 | f->a[2];
		f->a[2] = f->a[4];
		break;
	case IOT_L_SIGNED1:
		f->a[1] = (s64)(s32)f->a[1];
		break;
	case IOT_L_PAGES:
		f->a[5] <<= IOT_PAGE_SHIFT;
		break;
	case IOT_L_STRUCT: {
		u32 a[6] = {};

		bpf_probe_read_user(a, sizeof(a), (void *)f->a[0]);
		for (int i = 0; i < 6; i++)
			f->a[i] = a[i];
		break;
	}
	}
}

static __always_inline void iot_arguments(struct iot_frame *f, struct pt_regs *regs, long id, bool is_short, u16 entry)
{
	if (is_short) {
		iot_short_arguments(f, regs, entry >> IOT_SYSNO_LAYOUT);
		return;
	}
	f->a[0] = PT_REGS_PARM1_SYSCALL(regs);
	f->a[1] = PT_REGS_PARM2_SYSCALL(regs);
	f->a[2] = PT_REGS_PARM3_SYSCALL(regs);
	f->a[3] = PT_REGS_PARM4_SYSCALL(regs);
	f->a[4] = PT_REGS_PARM5_SYSCALL(regs);
	f->a[5] = PT_REGS_PARM6_SYSCALL(regs);
	f->narrow = id & IOT_X32 && (id & ~(long)IOT_X32) >= IOT_X32_OWN;
}

#endif
