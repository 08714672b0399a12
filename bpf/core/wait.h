/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long a thread was not on a CPU while a call went on, by the scheduler's own numbers at its entry and return: no
 * hook at switches, of which a node has far more than traced calls that sleep.
 *
 * A running task's exec_start and sum_exec_runtime advance together (update_curr, kernel/sched/fair.c); exec_start
 * alone jumps to the time at which the task is picked to run again. What their difference grows by is the time off the
 * CPU, however old both are. run_delay has what of it was spent in a run queue (sched_info_arrive,
 * kernel/sched/stats.h).
 */
#ifndef IOT_WAIT_H
#define IOT_WAIT_H

struct rq___wait {
	u64 clock;
	u64 clock_task;
} __attribute__((preserve_access_index));

struct cfs_rq___wait {
	struct rq___wait *rq;
} __attribute__((preserve_access_index));

struct sched_entity___wait {
	u64 exec_start;
	u64 sum_exec_runtime;
	struct cfs_rq___wait *cfs_rq;
} __attribute__((preserve_access_index));

struct sched_info___wait {
	unsigned long pcount;
	unsigned long long run_delay;
} __attribute__((preserve_access_index));

struct task_struct___wait {
	struct sched_entity___wait se;
	struct sched_info___wait sched_info;
} __attribute__((preserve_access_index));

/*
 * Each CPU's clock of tasks is behind by the time that interrupts and the hypervisor took from it, which is another one
 * on each.
 */
static __always_inline u64 iot_behind(struct task_struct___wait *task)
{
	struct rq___wait *rq;

	if (!bpf_core_field_exists(task->se.cfs_rq))
		return 0;
	rq = task->se.cfs_rq->rq;
	return rq->clock - rq->clock_task;
}

static __always_inline struct task_struct___wait *iot_scheduled(void)
{
	return (void *)bpf_get_current_task_btf();
}

/* A call enters. */
static __always_inline void iot_waits_from(struct iot_frame *f)
{
	struct task_struct___wait *task = iot_scheduled();

	f->locked = 0;
	if (!bpf_core_field_exists(task->sched_info.run_delay))
		return;
	f->ran = task->sched_info.pcount;
	f->queued = task->sched_info.run_delay;
	f->away = task->se.exec_start - task->se.sum_exec_runtime;
	f->behind = iot_behind(task);
	f->on = bpf_get_smp_processor_id();
}

/* It is one that a signal interrupted, and that is entered again: it had waited until then. */
static __always_inline void iot_waits_on(struct iot_frame *f, struct iot_call *before)
{
	if (before->away == IOT_UNKNOWN)
		return;
	f->ran--;
	f->away -= before->away;
	f->queued -= before->queued;
}

/* It returns, in the thread that made it, and its record is being made. */
static __always_inline void iot_waited(struct iot_call *c, struct iot_frame *f)
{
	struct task_struct___wait *task = iot_scheduled();
	u64 dur = c->dur_cpu_depth & ((1ULL << IOT_DUR_BITS) - 1);
	s64 away;

	if (!bpf_core_field_exists(task->sched_info.run_delay))
		return;
	c->away = c->queued = 0;
	if ((u32)task->sched_info.pcount == f->ran)
		return;
	away = task->se.exec_start - task->se.sum_exec_runtime - f->away;
	if (f->on != bpf_get_smp_processor_id())
		away += iot_behind(task) - f->behind;
	c->away = away < 0 ? 0 : away > dur ? dur : away;
	c->queued = task->sched_info.run_delay - f->queued;
	if (c->queued > c->away)
		c->queued = c->away;
}

#endif
