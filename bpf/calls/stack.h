/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stacks of a thread, and which calls may have a return probe.
 *
 * The kernel keeps the return probes that wait for their returns in one list per thread, innermost first, and believes that
 * all are on one stack (kernel/events/uprobes.c). A new one at sp drops those on top whose call lies at or below sp
 * (cleanup_return_instances), and a return drops those on top that lie below it (handle_trampoline): calls left by longjmp.
 * On another stack (coroutines, signal stacks), or where a program copies stacks away and back (greenlets), such a call is
 * still open. When it returns to the kernel's trampoline then, the kernel ends the program. So the calls with a return probe
 * that may still return are one call anywhere, or calls inside each other on the stack that the thread began on.
 */
#ifndef IOT_STACK_H
#define IOT_STACK_H

#define IOT_RETURNS   64    /* MAX_URETPROBE_DEPTH, include/linux/uprobes.h */
#define IOT_TCB_WORDS 256   /* of a thread's control block that are looked through */
#define IOT_TCB_END   65536 /* a thread's stack ends at most so many bytes above the beginning of that */
#define IOT_TCB_GUARD 0x30  /* pointer_guard in glibc's tcbhead_t (sysdeps/x86_64/nptl/tls.h) */
#define IOT_ROTATED   17    /* PTR_MANGLE, sysdeps/unix/sysv/linux/x86_64/pointer_guard.h */

struct thread_struct___fs {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct task_struct___fs {
	struct thread_struct___fs thread;
} __attribute__((preserve_access_index));

struct uprobe_task___iot {
	unsigned int depth;
} __attribute__((preserve_access_index));

static __always_inline struct return_instance *iot_pending(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_core_field_exists(task->utask) ? IOT_READ(task, utask, return_instances) : NULL;
}

/* How many there are. */
static __always_inline u32 iot_pending_count(void)
{
	struct uprobe_task___iot *utask = (void *)IOT_READ(bpf_get_current_task_btf(), utask);

	return IOT_READ(utask, depth);
}

enum iot_leads {
	IOT_LEADS_AWAY = 0,
	IOT_LEADS_TO_US,
	IOT_LEADS_UNKNOWN, /* it is paged out */
};

/* Does the return address that stands here lead to the kernel's trampoline for return probes? */
static __always_inline enum iot_leads iot_leads(struct iot_task *t, u64 sp)
{
	u64 address = 0;

	if (!t->trampoline)
		t->trampoline = IOT_READ(bpf_get_current_task_btf(), mm, uprobes_state.xol_area, vaddr);
	if (bpf_probe_read_user(&address, sizeof(address), (void *)sp))
		return IOT_LEADS_UNKNOWN;
	return address && address == t->trampoline ? IOT_LEADS_TO_US : IOT_LEADS_AWAY;
}

struct iot_tcb {
	u64 at;
	u64 low;
};

/*
 * A C library notes in the control block of a thread, which is at the top of the thread's stack, where that begins and how
 * long it is: stackblock in glibc's struct pthread, map_base in musl's. Which words those are differs between versions.
 */
static long iot_tcb_step(u64 i, struct iot_tcb *x)
{
	u64 block[2];

	if (bpf_probe_read_user(block, sizeof(block), (void *)(x->at + i * sizeof(u64))))
		return 1;
	if (block[0] >= x->at - IOT_PAGE || block[0] + block[1] - x->at >= IOT_TCB_END)
		return 0;
	x->low = block[0];
	return 1;
}

/* Finds the stack that the thread began on. The main thread's grows; one that is not known is empty. */
static __noinline int iot_own_stack(struct iot_task *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_struct___fs *other = (void *)task;
	struct iot_tcb x = {};

	if (!t)
		return 0;
	if (IOT_READ(task, pid) == IOT_READ(task, tgid)) {
		t->stack_top = IOT_READ(task, mm, start_stack);
		t->stack_low = t->stack_top - (IOT_READ(task, mm, stack_vm) << IOT_PAGE_SHIFT);
	} else if (!t->stack_top) {
		x.at = IOT_READ(other, thread.fsbase);
		bpf_loop(IOT_TCB_WORDS, iot_tcb_step, &x, 0);
		t->stack_low = x.low;
		t->stack_top = x.low ? x.at : 1;
	}
	return 0;
}

/* Call iot_own_stack before. */
static __always_inline bool iot_on_own_stack(struct iot_task *t, u64 sp)
{
	return sp >= t->stack_low && sp <= t->stack_top;
}

struct iot_innermost {
	struct return_instance *at;
	u64 sp;
	u64 dead;
	u32 left; /* from `at` on */
	u32 keep; /* that a new one at `sp` does not drop */
};

static long iot_innermost_step(u64 i, struct iot_innermost *x)
{
	struct return_instance *at = x->at; /* a local: CO-RE would relocate x's own members */

	if (!at || !x->left || !(x->dead >> ((x->left - 1) & 63) & 1))
		return 1;
	x->left--;
	if (IOT_READ(at, stack) <= x->sp)
		x->keep = x->left;
	x->at = IOT_READ(at, next);
	return 0;
}

/* The innermost return probe whose call was not left by longjmp. */
static __always_inline void iot_innermost(struct iot_task *t, struct iot_innermost *x)
{
	x->at = iot_pending();
	if (!x->at)
		t->dead = t->switched = 0;
	if (!t->dead)
		return;
	x->left = x->keep = iot_pending_count();
	if (x->left < IOT_RETURNS)
		t->dead &= (1ULL << x->left) - 1; /* those that are gone */
	x->dead = t->dead;
	bpf_loop(IOT_RETURNS, iot_innermost_step, x, 0);
}

/* May a call that enters at `sp` have a return probe? */
__noinline bool iot_may_return(struct iot_task *t, u64 sp)
{
	struct iot_innermost x = {.sp = sp};
	struct return_instance *at;
	u64 stack;

	if (!t)
		return false;
	iot_innermost(t, &x);
	t->keep = x.keep;
	at = x.at;
	if (!at)
		return true;
	stack = IOT_READ(at, stack);
	if (iot_leads(t, stack) != IOT_LEADS_TO_US)
		return false; /* it was left in an unknown way, or its stack is copied away */
	if (stack == sp)
		return true; /* its tail call: they return together */
	if (sp > stack || t->copies || stack == t->switched)
		return false;
	iot_own_stack(t);
	return iot_on_own_stack(t, sp) && iot_on_own_stack(t, stack);
}

/* A return probe is made by what iot_may_return has looked at. */
static __always_inline void iot_returns_later(struct iot_task *t)
{
	if (t->dead)
		t->dead &= (1ULL << (t->keep & 63)) - 1;
}

/*
 * Was a call left whose return probe is pending? On one stack it was when the thread is above it, or when its return address
 * does not stand any more. In a program that copies stacks it may come back. Call iot_own_stack before.
 */
static __always_inline bool iot_was_left(struct iot_task *t, u64 sp, u64 stack)
{
	if (t->copies || !iot_on_own_stack(t, sp) || !iot_on_own_stack(t, stack))
		return false;
	if (sp <= stack && iot_leads(t, stack) != IOT_LEADS_AWAY)
		return false;
	/* In an unknown way. Until it is over the thread may be below it again, and not inside it. */
	t->switched = stack;
	return true;
}

struct iot_jump {
	struct iot_task *t;
	struct return_instance *at;
	u64 from;
	u64 to;
	u32 left;
	u32 marked;
};

static long iot_jump_step(u64 i, struct iot_jump *x)
{
	struct return_instance *at = x->at;
	u64 stack;

	if (!at || !x->left)
		return 1;
	stack = IOT_READ(at, stack);
	if (stack >= x->to)
		return 1;
	x->left--;
	if (stack >= x->from && stack != x->t->switched && iot_leads(x->t, stack) == IOT_LEADS_TO_US) {
		x->t->dead |= 1ULL << (x->left & 63);
		x->marked++;
	}
	x->at = IOT_READ(at, next);
	return 0;
}

/* Where longjmp or setcontext is going to set the stack pointer to, on the thread's own stack; 0: elsewhere. */
static __always_inline u64 iot_jump_to(struct iot_task *t, u64 from)
{
	struct task_struct___fs *task = (void *)bpf_get_current_task_btf();
	u64 to = 0, guard = 0;

	if (bpf_probe_read_user(&to, sizeof(to), (void *)from))
		return 0;
	if (iot_on_own_stack(t, to))
		return to;
	/* glibc hides it */
	if (bpf_probe_read_user(&guard, sizeof(guard), (void *)(IOT_READ(task, thread.fsbase) + IOT_TCB_GUARD)))
		return 0;
	to = (to >> IOT_ROTATED | to << (64 - IOT_ROTATED)) ^ guard;
	return iot_on_own_stack(t, to) ? to : 0;
}

static __always_inline bool iot_begins_with(const char *name, const char *text, u32 length)
{
	for (u32 i = 0; i < length; i++)
		if (name[i] != text[i])
			return false;
	return true;
}

#define IOT_IS_NAMED(name, text) iot_begins_with(name, text, sizeof(text) - 1)

/* Is the file mapped by programs that copy stacks away and back? By its name: greenlet, PyPy, Ruby's continuations. */
static __always_inline bool iot_copies_stacks(struct file *file)
{
	char name[16] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), (void *)IOT_READ(file, f_path.dentry, d_name.name));
	return IOT_IS_NAMED(name, "_greenlet.") || IOT_IS_NAMED(name, "libpypy") ||
	       IOT_IS_NAMED(name, "continuation.so");
}

/* A target maps a file as code. */
static __noinline int iot_may_copy_stacks(struct file *file)
{
	u32 tgid = iot_tgid();
	struct iot_target *target;

	if (!file || !iot_copies_stacks(file))
		return 0;
	target = bpf_map_lookup_elem(&iot_targets, &tgid);
	if (target && target->armed) {
		target->armed |= IOT_COPIES_STACKS;
		__sync_fetch_and_add(&iot_targets_at, 1);
	}
	return 0;
}

#endif
