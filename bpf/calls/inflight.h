/* SPDX-License-Identifier: GPL-2.0 */
/* What has entered and not returned: read by user space at any time, and sent as unfinished at the end of a trace. */
#ifndef IOT_INFLIGHT_H
#define IOT_INFLIGHT_H

/* Room for one thread, for each of the two programs that user space reads, which may run at once. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct iot_stopped);
} iot_look SEC(".maps");

struct iot_looking {
	struct iot_task *t;
	struct iot_stopped *out;
	struct return_instance *back;
	u32 depth;
};

static long iot_open_step(u64 i, struct iot_looking *x)
{
	struct iot_frame *f;
	struct iot_spec *s;
	struct iot_open *o;
	struct file *file;

	if ((u32)i >= x->depth)
		return 1;
	f = iot_frame_at(x->t, i);
	s = iot_spec_of(f->spec);
	/* the return of a demoted function may never be seen: it does not count as open */
	if (!s || s->gives != IOT_INNER_NONE || iot_is_gone(s))
		return 0;
	o = &x->out->open[x->out->calls & (IOT_DEPTH - 1)];
	o->start = f->start;
	o->seq = f->seq;
	o->spec = f->spec;
	o->depth = f->depth;
	for (u32 n = 0; n < IOT_OPEN_ARGS; n++)
		o->a[n] = f->a[n];
	file = (void *)f->file; /* a local: CO-RE would relocate f's own members */
	o->pos = file ? IOT_READ(file, f_pos) : f->pos;
	x->out->calls++;
	return 0;
}

/* Where return probes really lead: their trampoline stands on the stack instead. */
static long iot_back_step(u64 i, struct iot_looking *x)
{
	struct return_instance *back = x->back; /* a local: CO-RE would relocate x's own members */
	struct iot_return *r = &x->out->back[i & (IOT_DEPTH - 1)];

	if (!back)
		return 1;
	r->stack = IOT_READ(back, stack);
	r->address = IOT_READ(back, orig_ret_vaddr);
	x->out->returns++;
	x->back = IOT_READ(back, next);
	return 0;
}

/* The open calls of a thread, if the outermost is at least age ns old, and where the thread is if it waits. */
static __always_inline int iot_show_thread(struct bpf_iter__task *ctx, u32 room, u64 age)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct iot_looking x = {};
	struct pt_regs *regs;
	struct iot_task *t;
	u32 tgid;
	long n;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&iot_tasks, task, 0, 0);
	if (!t)
		return 0;
	tgid = iot_tgid_of(task);
	x.out = bpf_map_lookup_elem(&iot_look, &room);
	x.depth = t->depth;
	if (!x.depth || !x.out || !bpf_map_lookup_elem(&iot_targets, &tgid))
		return 0;
	x.t = t;
	x.out->time = bpf_ktime_get_ns();
	if (x.out->time - iot_frame_at(t, 0)->start < age)
		return 0;
	x.out->tgid = tgid;
	x.out->tid = t->tid;
	x.out->thread = t->thread;
	x.out->process = t->process;
	x.out->calls = x.out->returns = x.out->kernel = 0;
	x.out->waits = IOT_READ(task, __state) != 0;
	bpf_probe_read_kernel(x.out->comm, sizeof(x.out->comm), task->comm);
	bpf_loop(IOT_DEPTH, iot_open_step, &x, 0);
	/* Of a thread that runs, the registers are those of its last entry into the kernel, and its stack changes. */
	if (x.out->waits) {
		n = bpf_get_task_stack(task, x.out->stack, sizeof(x.out->stack), 0);
		x.out->kernel = n > 0 ? n / sizeof(u64) : 0;
		regs = (void *)bpf_task_pt_regs(task);
		x.out->ip = IOT_READ(regs, ip);
		x.out->sp = IOT_READ(regs, sp);
		x.out->bp = IOT_READ(regs, bp);
		if (bpf_core_field_exists(task->utask)) {
			x.back = IOT_READ(task, utask, return_instances);
			bpf_loop(IOT_DEPTH, iot_back_step, &x, 0);
		}
	}
	bpf_seq_write(seq, x.out, sizeof(*x.out));
	return 0;
}

SEC("?iter/task")
int iot_open_calls(struct bpf_iter__task *ctx)
{
	return iot_show_thread(ctx, 0, 0);
}

/* How old a call is whose stack is taken. User space sets it before the first look. */
u64 iot_slow_age;

SEC("?iter/task")
int iot_slow_calls(struct bpf_iter__task *ctx)
{
	return iot_show_thread(ctx, 1, iot_slow_age);
}

/* As iot_give_up, of a system call on a file that is known: there is room for it here. */
static __always_inline bool iot_end_syscall(struct iot_task *t, u64 now)
{
	struct iot_frame *f = iot_frame_at(t, t->depth - 1);
	struct iot_spec *s = iot_spec_of(f->spec);
	struct iot_syscall e;

	if (f->sp || !f->file || !s)
		return false;
	iot_pop(t, now);
	iot_fill(&e.call, IOT_T_SYSCALL, t, f, f->depth, now);
	e.call.flags |= f->bits | IOT_F_FILE | IOT_F_UNFINISHED;
	e.ino = f->ino;
	e.dev = f->dev;
	e.generation = f->generation;
	if (iot_cfg.detail)
		e.call.type |= iot_left_marks(t, f, now);
	iot_send(iot_call_class(s), s->layer, &e, sizeof(e));
	return true;
}

static long iot_end_step(u64 i, struct iot_flush *x)
{
	if (!x->t->depth)
		return 1;
	if (!iot_end_syscall(x->t, x->now))
		iot_give_up(x->t, x->now);
	return 0;
}

static long iot_end_operation(struct bpf_map *map, struct iot_op_key *key, struct iot_op *op, u64 *now)
{
	struct iot_op_key copy = *key; /* its own place is taken out with it */

	iot_uring_unseen(&copy, *now);
	return 0;
}

/* The trace is over and no hook is attached any more: what is open is sent as unfinished. */
SEC("?iter/task")
int iot_end_calls(struct bpf_iter__task *ctx)
{
	struct iot_flush x = {.now = bpf_ktime_get_ns()};
	struct task_struct *task = ctx->task;
	u64 now = x.now;

	if (!task) { /* after the last one */
		bpf_for_each_map_elem(&iot_ops, iot_end_operation, &now, 0);
		return 0;
	}
	x.t = bpf_task_storage_get(&iot_tasks, task, 0, 0);
	if (!x.t)
		return 0;
	iot_halted_over(x.t, 1);
	bpf_loop(IOT_DEPTH, iot_end_step, &x, 0);
	if (!iot_flush_phase_end(x.t))
		iot_lost(IOT_LOSS_RING, IOT_LAYER_APP);
	return 0;
}

#endif
