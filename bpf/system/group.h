/* SPDX-License-Identifier: GPL-2.0 */
/* Control groups of the unified hierarchy: which one a task is in, and what it is called. */
#ifndef IOT_GROUP_H
#define IOT_GROUP_H

#define IOT_GROUP_LEVELS 32
#define IOT_GROUP_NAME	 256 /* NAME_MAX, and its end */

/* Not of every kernel, so that the types are our own: CONFIG_CGROUPS, include/linux/cgroup-defs.h and kernfs.h. */
struct kernfs_node___iot {
	struct kernfs_node___iot *__parent;
	const char *name;
	u64 id;
} __attribute__((preserve_access_index));

/* Linux before 6.15. */
struct kernfs_node___old {
	struct kernfs_node___iot *parent;
} __attribute__((preserve_access_index));

struct cgroup_root___iot {
	int hierarchy_id;
} __attribute__((preserve_access_index));

struct cgroup___iot {
	struct kernfs_node___iot *kn;
	struct cgroup_root___iot *root;
} __attribute__((preserve_access_index));

struct cgroup_subsys_state___iot {
	struct cgroup___iot *cgroup;
} __attribute__((preserve_access_index));

struct css_set___iot {
	struct cgroup___iot *dfl_cgrp;
} __attribute__((preserve_access_index));

struct task_struct___iot {
	struct css_set___iot *cgroups;
} __attribute__((preserve_access_index));

/* Numbers and names are those of a hierarchy; the unified one is the first. */
static __always_inline bool iot_is_unified(struct cgroup___iot *group)
{
	return IOT_READ(group, root, hierarchy_id) == 0;
}

static __always_inline struct kernfs_node___iot *iot_group_of(struct task_struct *task)
{
	struct task_struct___iot *t = (void *)task;

	return bpf_core_field_exists(t->cgroups) ? IOT_READ(t, cgroups, dfl_cgrp, kn) : NULL;
}

static __always_inline struct kernfs_node___iot *iot_group_above(struct kernfs_node___iot *node)
{
	struct kernfs_node___old *old = (void *)node;

	if (bpf_core_field_exists(node->__parent))
		return IOT_READ(node, __parent);
	return bpf_core_field_exists(old->parent) ? IOT_READ(old, parent) : NULL;
}

struct iot_group_walk {
	struct kernfs_node___iot *node;
	struct iot_scratch *out; /* null: names are not wanted */
	u64 wanted;
	u32 pos;
	u8 found;
	u8 cut;
	u8 over;
};

/* One step towards the root of the hierarchy. */
static long iot_group_step(u64 i, struct iot_group_walk *w)
{
	struct kernfs_node___iot *node = w->node; /* a local: CO-RE would relocate w's own members */
	u32 pos = w->pos;
	long n;

	if (!node) {
		w->over = 1;
		return 1;
	}
	if (IOT_READ(node, id) == w->wanted) {
		w->found = 1;
		if (!w->out)
			return 1;
	}
	w->node = iot_group_above(node);
	if (!w->out || !w->node) /* the root has no name */
		return 0;
	if (pos >= IOT_TEXT_MAX) {
		w->cut = 1;
		return 1;
	}
	barrier_var(pos); /* or the compiler removes the mask, from which Linux 6.1 knows the bounds */
	n = bpf_probe_read_kernel_str(&w->out->bytes[pos & (IOT_TEXT_MAX - 1)], IOT_GROUP_NAME, IOT_READ(node, name));
	if (n < 0) {
		w->cut = 1;
		return 1;
	}
	w->pos = pos + n;
	return 0;
}

/* Is this group the one of that number, or below it? */
static __noinline bool iot_group_within(struct kernfs_node___iot *node, u64 wanted)
{
	struct iot_group_walk w = {.node = node, .wanted = wanted};

	bpf_loop(IOT_GROUP_LEVELS, iot_group_step, &w, 0);
	return w.found;
}

/* Sends the control group that a process is in from now on, and the user that it runs as. */
static __noinline int iot_send_group(u64 task, u32 process, u64 node)
{
	struct iot_scratch *out = iot_scratch();
	struct iot_group_walk w = {.node = (void *)node, .out = out};
	struct iot_group *e;
	u32 len;

	if (!out) {
		iot_lost(IOT_LOSS_TEXT, 0);
		return 0;
	}
	bpf_loop(IOT_GROUP_LEVELS, iot_group_step, &w, 0);
	len = w.pos > IOT_TEXT_MAX ? IOT_TEXT_MAX : w.pos;
	e = (void *)out->bytes - sizeof(*e);
	e->type = IOT_T_GROUP;
	e->cut = w.cut || !w.over;
	e->known = node != 0;
	e->pad = 0;
	e->len = len;
	e->time = bpf_ktime_get_ns();
	e->id = node ? IOT_READ((struct kernfs_node___iot *)node, id) : 0;
	e->process = process;
	e->uid = IOT_READ((struct task_struct *)task, cred, uid.val);
	iot_send(IOT_C_LIFE, 0, e, sizeof(*e) + len);
	return 0;
}

#endif
