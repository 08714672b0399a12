/* SPDX-License-Identifier: GPL-2.0 */
/* Calls of libraries that will never return: how it is noticed that they were left, and when. */
#ifndef IOT_LEFT_H
#define IOT_LEFT_H

#define IOT_ONE_STACK  (8 << 20) /* two places further apart are on different stacks */
#define IOT_DEAD_STEPS 512
#define IOT_PROBES_GO  50000000 /* ns: probes of a demoted function are away, also after a look at its calls */

/* Functions have been demoted or are paused: returns of their calls may never be seen. */
u32 iot_demoting;

struct iot_dead {
	struct iot_task *t;
	u64 sp;
	u64 now;
	struct return_instance *at;
	u32 spec;
	u32 left; /* from `at` on; 0: no matter */
};

/* Are two places on different stacks? Unknown where the thread began on no known stack. Call iot_own_stack before. */
static __always_inline bool iot_on_other_stack(struct iot_task *t, u64 sp, u64 other)
{
	return t && t->stack_low && (!iot_on_own_stack(t, sp) || !iot_on_own_stack(t, other));
}

/*
 * Is a function without return probe still open while the function `spec` is entered (or a system call made: no row) at
 * `sp`? Its return address must be where it was. At the same place another function is its tail call, if it has just
 * jumped. Far away is another stack (signals, coroutines), from which nothing follows. Without `t` nothing is known of
 * stacks. Of a function that has lost its probes the end is not seen, and later calls of it have the same return address.
 */
static __always_inline bool iot_still_open(struct iot_task *t, struct iot_frame *f, u64 sp, u32 spec)
{
	struct iot_spec *s = iot_spec_of(f->spec);
	u64 back = 0;

	if (s && iot_is_gone(s) && bpf_ktime_get_ns() - f->start > IOT_PROBES_GO)
		return false;
	if ((f->sp < sp ? sp - f->sp : f->sp - sp) > IOT_ONE_STACK)
		return true;
	if (sp > f->sp && !iot_on_other_stack(t, sp, f->sp))
		return false;
	if (sp == f->sp && spec < IOT_MAX_SPECS && (spec == f->spec || !(f->bits & IOT_FRAME_JUMPED)))
		return false;
	return !bpf_probe_read_user(&back, sizeof(back), (void *)f->sp) && back == f->back;
}

/*
 * Of calls with a return probe the kernel knows which are pending; of the others it knows nothing. `at` goes through what it
 * knows, once for each call.
 */
static long iot_dead_step(u64 i, struct iot_dead *x)
{
	struct return_instance *at = x->at; /* a local: CO-RE would relocate x's own members */
	struct iot_frame *f;

	if (!x->t->depth)
		return 1;
	f = iot_frame_at(x->t, x->t->depth - 1);
	if (!f->sp)
		return 1;
	if (f->bits & IOT_FRAME_NO_RETPROBE) {
		if (iot_still_open(x->t, f, x->sp, x->spec))
			return 1;
	} else if (at) {
		bool dead = x->left && x->t->dead >> ((x->left - 1) & 63) & 1;

		if (!dead && IOT_READ(at, stack) == f->sp && !iot_was_left(x->t, x->sp, f->sp))
			return 1;
		x->at = IOT_READ(at, next);
		x->left -= !!x->left;
		return 0;
	}
	iot_give_up(x->t, x->now);
	x->at = iot_pending();
	x->left = x->t->dead ? iot_pending_count() : 0;
	return 0;
}

/* Gives up the calls that were left before the function `spec` was entered. */
__noinline int iot_drop_dead(struct iot_task *t, u64 sp, u32 spec)
{
	struct iot_dead x = {.t = t, .sp = sp, .spec = spec};
	struct return_instance *at;
	struct iot_frame *f;

	if (!t || !t->depth)
		return 0;
	x.at = at = iot_pending();
	f = iot_frame_at(t, t->depth - 1);
	if (at && !t->dead && IOT_READ(at, stack) == f->sp && sp <= f->sp && iot_leads(t, f->sp) == IOT_LEADS_TO_US)
		return 0;
	if (at && t->dead)
		x.left = iot_pending_count();
	iot_own_stack(t);
	x.now = bpf_ktime_get_ns();
	bpf_loop(IOT_DEAD_STEPS, iot_dead_step, &x, 0);
	return 0;
}

/* longjmp and its like: the calls between here and where it leads on the thread's own stack are left. */
__noinline int iot_lib_jumps(struct iot_task *t, u64 from, u64 sp)
{
	struct iot_jump x = {.t = t, .from = sp};
	struct iot_frame *f;
	bool plain;

	if (!t || t->copies)
		return 0;
	x.at = iot_pending();
	f = iot_frame_at(t, t->depth - 1);
	plain = t->depth && f->bits & IOT_FRAME_NO_RETPROBE;
	if (!x.at && !plain)
		return 0;
	iot_own_stack(t);
	x.to = iot_jump_to(t, from);
	if (!x.to)
		return 0;
	if (!iot_on_own_stack(t, sp))
		x.from = t->stack_low;
	x.left = iot_pending_count();
	bpf_loop(IOT_RETURNS, iot_jump_step, &x, 0);
	if (x.marked || (plain && iot_on_own_stack(t, f->sp)))
		iot_drop_dead(t, x.to, IOT_MAX_SPECS);
	return 0;
}

/*
 * The same before a system call, where only phases and functions without return probe are looked at, and those that may have
 * lost theirs.
 */
static __always_inline void iot_drop_left(struct iot_task *t, u64 sp)
{
	struct iot_frame *f = iot_frame_at(t, t->depth - 1);

	if (!t->depth || !f->sp || !(f->bits & (IOT_FRAME_NO_RETPROBE | IOT_FRAME_PHASE | IOT_FRAME_BRIEF)))
		return;
	if (f->bits & IOT_FRAME_BRIEF) {
		if (iot_demoting)
			iot_drop_dead(t, sp, IOT_MAX_SPECS);
		return;
	}
	if (!(f->bits & IOT_FRAME_NO_RETPROBE) || !iot_still_open(NULL, f, sp, IOT_MAX_SPECS))
		iot_drop_dead(t, sp, IOT_MAX_SPECS);
}

#endif
