/* SPDX-License-Identifier: GPL-2.0 */
/* Life cycle of targets: fork, exec, exit. */
#ifndef IOT_PROCESS_H
#define IOT_PROCESS_H

#define IOT_STRING_PIECES 64 /* of IOT_TEXT_MAX bytes, of arguments and of environment */

static __always_inline void iot_process_head(struct iot_process *e, u8 type, struct task_struct *task, u32 process)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->type = type;
	e->process = process;
	e->time = bpf_ktime_get_ns();
	e->tgid = iot_tgid_of(task);
	e->ppid = iot_tgid_of(IOT_READ(task, real_parent));
	e->uid = IOT_READ(task, cred, uid.val);
}

/* Is this a process that is to be traced, whatever its parent? Never we, nor one without a number in our PID namespace. */
static __noinline bool iot_member(struct task_struct *task, u64 node)
{
	u32 tgid;

	if (!task || iot_cfg.scope == IOT_ALL_LISTED || IOT_READ(task, flags) & PF_KTHREAD)
		return false;
	tgid = iot_tgid_of(task);
	if (!tgid || tgid == iot_cfg.own)
		return false;
	return iot_cfg.scope == IOT_ALL_OF_NODE || iot_group_within((void *)node, iot_cfg.group);
}

/* Of our own children, the command is made a target when it is about to begin. */
static __always_inline bool iot_is_ours(struct task_struct *task)
{
	return iot_tgid_of(IOT_READ(task, real_parent)) == iot_cfg.own;
}

/*
 * Makes a process a target and sends its fork record. `runs`: no execution of a program follows whose records have the rest. `flags`: of
 * bpf_map_update_elem; only of a new process is it sure that there is none of its number.
 */
static __always_inline bool iot_adopt(struct task_struct *task, struct iot_target *new, u32 parent, bool runs,
				      u64 flags)
{
	u32 tgid = iot_tgid_of(task);
	struct iot_process e;

	new->process = __sync_fetch_and_add(&iot_next_process, 1);
	if (bpf_map_update_elem(&iot_targets, &tgid, new, flags)) {
		/* another one was faster, or there is no room */
		if (!bpf_map_lookup_elem(&iot_targets, &tgid))
			iot_lost(IOT_LOSS_MAP_FULL, 0);
		return false;
	}
	iot_process_head(&e, IOT_T_FORK, task, new->process);
	e.parent = parent;
	e.status = runs;
	iot_send(IOT_C_LIFE, 0, &e, sizeof(e));
	return true;
}

/* Asks for a look at all that a process has mapped already. */
static __always_inline void iot_classify_all(struct task_struct *task)
{
	struct iot_map e = {.type = IOT_T_MAP, .tgid = iot_tgid_of(task), .time = bpf_ktime_get_ns()};
	void *ring = iot_ring_of(IOT_C_LIFE);

	if (!ring || bpf_ringbuf_output(ring, &e, sizeof(e), BPF_RB_FORCE_WAKEUP))
		iot_lost(IOT_LOSS_RING, 0);
}

/* The state of a thread that begins. Where others become targets by themselves it is made when it is needed. */
static __always_inline void iot_begins(struct task_struct *child, struct iot_target *target)
{
	if (iot_cfg.scope == IOT_ALL_LISTED && target->armed)
		iot_new_task(child, target);
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(iot_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = iot_tgid_of(parent);
	u64 group = (u64)iot_group_of(child);
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &from), new = {.armed = IOT_ARMED};
	struct iot_task *t;

	if (IOT_READ(parent, tgid) == IOT_READ(child, tgid)) {
		if (target)
			iot_begins(child, target);
		return 0;
	}
	if (!target) {
		if (iot_is_ours(child) || !iot_member(child, group) ||
		    !iot_adopt(child, &new, IOT_NOT_KNOWN, true, BPF_ANY))
			return 0;
		iot_send_group((u64)child, new.process, group);
		iot_classify_all(child);
		return 0;
	}
	new.armed = target->armed;
	t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	new.inherited = target->inherited + (t ? t->depth : 0);
	if (!iot_adopt(child, &new, target->process, false, BPF_ANY))
		return 0;
	iot_begins(child, &new);
	/* It has its parent's breakpoints, which run no program in it. One that shares the memory only executes a program. */
	if (iot_scoped && new.armed && IOT_READ(child, mm) != IOT_READ(parent, mm))
		iot_classify_all(child);
	/* the child has its parent's pending return probes, too */
	if (t && (t->dead || t->switched)) {
		struct iot_task *of_child = iot_new_task(child, &new);

		if (of_child) {
			of_child->dead = t->dead;
			of_child->switched = t->switched;
		}
	}
	if (group != (u64)iot_group_of(parent))
		iot_send_group((u64)child, new.process, group); /* CLONE_INTO_CGROUP */
	return 0;
}

/* Makes the states of the threads of targets that were there before the trace. */
SEC("?iter/task")
int iot_list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct iot_target *target;
	u32 tgid;

	if (!task)
		return 0;
	tgid = iot_tgid_of(task);
	target = bpf_map_lookup_elem(&iot_targets, &tgid);
	if (target && target->armed)
		iot_new_task(task, target);
	return 0;
}

SEC("?tp_btf/cgroup_attach_task")
int BPF_PROG(iot_moved, struct cgroup *cgroup, const char *path, struct task_struct *task)
{
	struct cgroup___iot *to = (void *)cgroup;
	u32 tgid = iot_tgid_of(task);
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &tgid), new = {.armed = IOT_ARMED};
	u64 group = (u64)IOT_READ(to, kn);

	if (!iot_is_unified(to))
		return 0;
	if (target) {
		iot_send_group((u64)task, target->process, group);
	} else if (iot_member(task, group) && iot_adopt(task, &new, IOT_NOT_KNOWN, true, BPF_NOEXIST)) {
		iot_send_group((u64)task, new.process, group);
		iot_classify_all(task);
	}
	return 0;
}

struct iot_strings {
	struct iot_scratch *out;
	struct iot_task *t;
	u64 from;
	u64 to;
	u8 what;
};

static long iot_strings_step(u64 i, struct iot_strings *x)
{
	u64 left = x->to - x->from;
	u32 n = left > IOT_TEXT_MAX ? IOT_TEXT_MAX : left;

	if (!n)
		return 1;
	if (bpf_probe_read_user(x->out->bytes, n, (void *)x->from)) {
		iot_lost(IOT_LOSS_TEXT, 0);
		return 1;
	}
	x->from += n;
	if (i == IOT_STRING_PIECES - 1 && x->from != x->to)
		iot_lost(IOT_LOSS_TEXT, 0); /* the rest is cut off */
	iot_send_text(x->out, x->t, 0, x->what, n, 0);
	return 0;
}

/* Arguments or environment, which the kernel has just written to the new stack. */
static __always_inline void iot_send_strings(struct iot_task *t, struct iot_scratch *out, u8 what, u64 from, u64 to)
{
	struct iot_strings x = {.out = out, .t = t, .from = from, .to = to, .what = what};

	if (to > from)
		bpf_loop(IOT_STRING_PIECES, iot_strings_step, &x, 0);
}

/*
 * Sends the records of an exec. Not inlined, as iot_arms: the call by which it does so is sent from
 * iot_exec, and needs the stack that they take on Linux 6.1.
 */
static __noinline int iot_begins_program(struct task_struct *task, struct file *file, struct iot_task *t, u64 group,
					 u32 program)
{
	struct iot_scratch *out;
	struct iot_process e;
	bool moved;

	if (!task || !t)
		return 0;
	iot_halted_over(t, 1);
	iot_flush_all(t);
	iot_operations_gone(t->process);
	t->submits = 0;
	__builtin_memset(t->streams, 0, sizeof(t->streams));
	t->trampoline = t->stack_top = t->dead = t->switched = 0;
	t->copies = 0;
	t->program = program;
	t->now = bpf_ktime_get_ns();
	moved = t->tid != iot_tid_of(task);
	if (moved) {
		/* A thread that is not the leader takes the leader's place. */
		t->tid = iot_tid_of(task);
		t->known = 0;
	}
	out = iot_scratch();
	if (out) {
		iot_send_dentry(t, 0, IOT_X_EXE, IOT_READ(file, f_path.dentry), IOT_READ(file, f_path.mnt));
		iot_send_strings(t, out, IOT_X_ARGS, IOT_READ(task, mm, arg_start), IOT_READ(task, mm, arg_end));
		iot_send_strings(t, out, IOT_X_ENV, IOT_READ(task, mm, env_start), IOT_READ(task, mm, env_end));
	} else {
		iot_lost(IOT_LOSS_TEXT, 0);
	}
	iot_send_group((u64)task, t->process, group);
	iot_process_head(&e, IOT_T_EXEC, task, t->process);
	e.thread = t->thread;
	e.status = t->program;
	iot_send(IOT_C_LIFE, 0, &e, sizeof(e));
	iot_announce(t);
	iot_mapped(file, moved);
	return 0;
}

/* The process executes a program: which of those that it has executed as a target; 0: it is none. */
static __noinline u32 iot_arms(struct task_struct *task, u64 group)
{
	struct iot_target *target, new = {};
	u32 tgid;

	if (!task)
		return 0;
	tgid = iot_tgid_of(task);
	target = bpf_map_lookup_elem(&iot_targets, &tgid);
	if (!target) {
		/* what a thread of the kernel started */
		if (iot_is_ours(task) || !iot_member(task, group))
			return 0;
		iot_adopt(task, &new, IOT_NOT_KNOWN, false, BPF_NOEXIST);
		target = bpf_map_lookup_elem(&iot_targets, &tgid);
		if (!target)
			return 0;
	}
	target->armed = IOT_ARMED;
	target->inherited = 0;
	return ++target->program;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(iot_exec, struct task_struct *task, s32 old_pid, struct linux_binprm *bprm)
{
	u64 group = (u64)iot_group_of(task);
	u32 program = iot_arms(task, group);
	struct iot_task *t;

	if (!program)
		return 0;
	t = iot_self();
	if (!t)
		return 0;
	iot_executed(t, bpf_ktime_get_ns());
	return iot_begins_program(task, IOT_READ(bprm, file), t, group, program);
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(iot_exit, struct task_struct *task)
{
	u32 tgid = iot_tgid_of(task);
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &tgid);
	struct iot_process e;
	struct iot_task *t;

	t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	if (t) {
		iot_halted_over(t, 1);
		iot_flush_all(t);
		iot_publish(t, bpf_ktime_get_ns());
	}
	if (!target || IOT_READ(task, signal, live.counter))
		return 0; /* not the last thread */
	iot_operations_gone(target->process);
	iot_process_head(&e, IOT_T_EXIT, task, target->process);
	e.status = IOT_READ(task, signal, group_exit_code) ?: IOT_READ(task, exit_code);
	if (bpf_map_delete_elem(&iot_targets, &tgid))
		return 0; /* the last two threads ended together, and the other one sent it */
	iot_send(IOT_C_LIFE, 0, &e, sizeof(e));
	return 0;
}

#endif
