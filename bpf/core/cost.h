/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the hooks cost the threads that they run in. Each thread adds up the cost of its hooks; what is added while a call is
 * open is the part of the call's time that is ours. The cost of a hook is that of getting to its program and back, which
 * user space has measured with programs that do nothing (iot_fixed), and the time of the program, which a sample of the runs
 * measures itself: a moving average for each row of the catalog.
 *
 * Functions that are not inlined: the stack of the programs has no room for what they keep on it (Linux before 6.13).
 */
#ifndef IOT_COST_H
#define IOT_COST_H

#define IOT_SAMPLED_BITS 4	/* one run of 2^4 is timed */
#define IOT_COST_MAX	 20000	/* ns: what takes longer was interrupted */
#define IOT_PUBLISHED	 100000 /* ns that a thread keeps to itself before it adds them to iot_hooked */

/* Moving averages of the time that the programs of a row take, in ns; 0: there was no run yet. */
struct iot_cost {
	u32 enter;
	u32 leave;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct iot_cost);
} iot_costs SEC(".maps");

/* What a hook costs without its program, in ns. */
struct iot_fixed {
	u32 entry;     /* a probe at the entry of a function */
	u32 leave;     /* the one at its return */
	u32 inside;    /* of both: what falls between the two times that are taken */
	u32 sys_enter; /* the same of system calls */
	u32 sys_leave;
	u32 sys_inside;
	u32 probe; /* both probes of a function with their programs: it may lose them where its calls are shorter */
	u32 every; /* and are more frequent, in a thread, than one in so many ns; 0: it keeps them */
};

struct iot_fixed iot_fixed;

/* The cost of all hooks, and the greatest part of its time that they cost a thread since user space has looked. */
struct iot_hooked {
	u64 total;
	u32 look; /* user space adds one whenever it looks */
	u32 part; /* of 2^20; user space sets it back */
};

struct iot_hooked iot_hooked;

static __always_inline struct iot_cost *iot_cost_of(u32 row)
{
	return bpf_map_lookup_elem(&iot_costs, &row);
}

/* Is this run one of those that are timed? By a hash: what comes in turns must not meet the same turn each time. */
static __always_inline bool iot_timed(struct iot_task *t)
{
	return !(++t->runs * 0x9e3779b1 >> (32 - IOT_SAMPLED_BITS));
}

static __always_inline void iot_learn(u32 *cost, u64 ns)
{
	u32 known = *cost, limit = known ? 4 * known : IOT_COST_MAX;

	if (ns > limit)
		ns = limit;
	*cost = (known ? known - known / 8 + (u32)ns / 8 : (u32)ns) | 1;
}

/* The program of an entry hook begins. The thread is charged for it now, before its call opens. */
__noinline int iot_hook_enters(struct iot_task *t, u32 row, u32 fixed)
{
	struct iot_cost *c = iot_cost_of(row);

	if (!c || !t)
		return 0;
	t->probed += fixed + c->enter;
	t->costs = row;
	t->began = iot_timed(t) || !c->enter ? bpf_ktime_get_ns() : 0;
	return 0;
}

/* It ends at `end`, or a call opens then; 0: now. */
__noinline int iot_hook_entered(struct iot_task *t, u64 end)
{
	struct iot_cost *c;

	if (!t || !t->began)
		return 0;
	c = iot_cost_of(t->costs);
	if (c)
		iot_learn(&c->enter, (end ?: bpf_ktime_get_ns()) - t->began);
	t->began = 0;
	return 0;
}

static __always_inline void iot_publish(struct iot_task *t, u64 now)
{
	u64 part;

	if (t->probed == t->published)
		return;
	if (t->look != iot_hooked.look) {
		t->look = iot_hooked.look;
		t->since = t->published_at;
		t->before = t->published;
	}
	__sync_fetch_and_add(&iot_hooked.total, t->probed - t->published);
	t->published = t->probed;
	t->published_at = now;
	part = now > t->since ? ((t->probed - t->before) << 20) / (now - t->since) : 0;
	if (part > 1 << 20)
		part = 1 << 20;
	/* two that write at once: the next one fixes it */
	if (part > iot_hooked.part)
		iot_hooked.part = part;
}

/* The program of a hook at a return, which took its time at `now`, ends. */
__noinline int iot_hook_left(struct iot_task *t, u32 row, u32 fixed, u64 now)
{
	struct iot_cost *c = iot_cost_of(row);

	if (!c || !t)
		return 0;
	if (iot_timed(t) || !c->leave)
		iot_learn(&c->leave, bpf_ktime_get_ns() - now);
	t->probed += fixed + c->leave;
	if (t->probed - t->published > IOT_PUBLISHED)
		iot_publish(t, now);
	return 0;
}

/*
 * How much of the time of a call that returns is the hooks', its own return included. What is estimated may be more than there
 * is: a call is never shorter than those inside it.
 */
static __always_inline u64 iot_probed(struct iot_task *t, struct iot_frame *f, u64 dur)
{
	u64 ns = t->probed - f->probed, most = dur > f->inner ? dur - f->inner : 0;

	if (!f->sp)
		ns += iot_fixed.sys_inside;
	else if (f->sp != IOT_SP_KERNEL)
		ns += iot_fixed.inside;
	return ns < most ? ns : most;
}

#endif
