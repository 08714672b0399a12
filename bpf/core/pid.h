/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The numbers of processes and threads, as the tracer's own PID namespace has them: those that it finds in /proc and that
 * programs there see. 0: the task is not in that namespace. In the node's own one they stand in the task itself.
 */
#ifndef IOT_PID_H
#define IOT_PID_H

static __noinline u32 iot_number(struct pid *pid)
{
	u32 level = iot_cfg.pid_level;
	struct upid *number;

	if (!pid || IOT_READ(pid, level) < level)
		return 0;
	number = (void *)pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
	return IOT_READ(number, ns, ns.inum) == iot_cfg.pid_ns ? IOT_READ(number, nr) : 0;
}

static __always_inline u32 iot_tgid_of(struct task_struct *task)
{
	if (__builtin_expect(iot_cfg.pid_level, 0))
		return iot_number(IOT_READ(task, signal, pids[PIDTYPE_TGID]));
	return IOT_READ(task, tgid);
}

static __always_inline u32 iot_tid_of(struct task_struct *task)
{
	if (__builtin_expect(iot_cfg.pid_level, 0))
		return iot_number(IOT_READ(task, thread_pid));
	return IOT_READ(task, pid);
}

/* Of the current task. */
static __always_inline u32 iot_tgid(void)
{
	if (__builtin_expect(iot_cfg.pid_level, 0))
		return iot_tgid_of(bpf_get_current_task_btf());
	return bpf_get_current_pid_tgid() >> 32;
}

static __always_inline u32 iot_tid(void)
{
	if (__builtin_expect(iot_cfg.pid_level, 0))
		return iot_tid_of(bpf_get_current_task_btf());
	return bpf_get_current_pid_tgid();
}

#endif
