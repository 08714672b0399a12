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
	e->tgid = BPF_CORE_READ(task, tgid);
	e->ppid = BPF_CORE_READ(task, real_parent, tgid);
	e->uid = BPF_CORE_READ(task, cred, uid.val);
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(iot_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);
	struct iot_target *target, new = {};
	struct iot_process e;
	struct iot_task *t;

	if (from == to)
		return 0;
	target = bpf_map_lookup_elem(&iot_targets, &from);
	if (!target)
		return 0;
	new.process = __sync_fetch_and_add(&iot_next_process, 1);
	new.armed = target->armed;
	t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	new.inherited = target->inherited + (t ? t->depth : 0);
	if (bpf_map_update_elem(&iot_targets, &to, &new, BPF_ANY)) {
		iot_lost(IOT_P_MAP_FULL, 0);
		return 0;
	}
	iot_process_head(&e, IOT_T_FORK, child, new.process);
	e.parent = target->process;
	iot_send(IOT_C_LIFE, 0, &e, sizeof(e));
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
		iot_lost(IOT_P_TEXT, 0);
		return 1;
	}
	x->from += n;
	if (i == IOT_STRING_PIECES - 1 && x->from != x->to)
		iot_lost(IOT_P_TEXT, 0); /* the rest is cut off */
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

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(iot_exec, struct task_struct *task, s32 old_pid, struct linux_binprm *bprm)
{
	u32 tgid = BPF_CORE_READ(task, tgid);
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &tgid);
	struct file *file = BPF_CORE_READ(bprm, file);
	struct iot_scratch *out;
	struct iot_process e;
	struct iot_task *t;

	if (!target)
		return 0;
	target->armed = 1;
	target->inherited = 0;
	t = iot_self();
	if (!t)
		return 0;
	iot_halted_over(t, 1);
	iot_flush_all(t);
	iot_operations_gone(t->process);
	t->submits = 0;
	__builtin_memset(t->told, 0, sizeof(t->told));
	t->trampoline = 0;
	t->now = bpf_ktime_get_ns();
	if (t->tid != BPF_CORE_READ(task, pid)) {
		/* A thread that is not the leader takes the leader's place. */
		t->tid = BPF_CORE_READ(task, pid);
		t->announced = 0;
	}
	out = iot_scratch();
	if (out) {
		iot_send_dentry(t, 0, IOT_X_EXE, BPF_CORE_READ(file, f_path.dentry), BPF_CORE_READ(file, f_path.mnt));
		iot_send_strings(t, out, IOT_X_ARGS, BPF_CORE_READ(task, mm, arg_start),
				 BPF_CORE_READ(task, mm, arg_end));
		iot_send_strings(t, out, IOT_X_ENV, BPF_CORE_READ(task, mm, env_start),
				 BPF_CORE_READ(task, mm, env_end));
	} else {
		iot_lost(IOT_P_TEXT, 0);
	}
	iot_process_head(&e, IOT_T_EXEC, task, target->process);
	e.thread = t->thread;
	iot_send(IOT_C_LIFE, 0, &e, sizeof(e));
	iot_announce(t);
	iot_mapped(file);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(iot_exit, struct task_struct *task)
{
	u32 tgid = BPF_CORE_READ(task, tgid);
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &tgid);
	struct iot_process e;
	struct iot_task *t;

	t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	if (t) {
		iot_halted_over(t, 1);
		iot_flush_all(t);
	}
	if (!target || BPF_CORE_READ(task, signal, live.counter))
		return 0; /* not the last thread */
	iot_operations_gone(target->process);
	iot_process_head(&e, IOT_T_EXIT, task, target->process);
	e.status = BPF_CORE_READ(task, signal, group_exit_code) ?: BPF_CORE_READ(task, exit_code);
	bpf_map_delete_elem(&iot_held, &tgid);
	if (bpf_map_delete_elem(&iot_targets, &tgid))
		return 0; /* the last two threads ended together, and the other one told it */
	iot_send(IOT_C_LIFE, 0, &e, sizeof(e));
	return 0;
}

#endif
