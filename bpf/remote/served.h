/* SPDX-License-Identifier: GPL-2.0 */
/* The client that a kernel thread works for: one of an NFS server, while it serves a request that was sent on this node. */
#ifndef IOT_SERVED_H
#define IOT_SERVED_H

#define IOT_RPC_NAME 24

/* The sender of a request. */
struct iot_client {
	u32 thread;
	u32 seq;
	u32 of;
	u32 tid;
	u8 flags; /* of iot_bio: IOT_B_TRACED, _IN_CALL, _OPERATION */
	u8 pad[7];
	char op[IOT_RPC_NAME]; /* the client's name of what it asks for */
};

struct iot_serving {
	struct iot_client client;
	u64 received;
	u64 offset;
	u32 xid;
	u32 asked;
	u32 moved;
	u8 on;	  /* it is being served */
	u8 known; /* IOT_R_ */
	u8 pad[2];
};

/* What a thread of the server has in hand. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct iot_serving);
} iot_servings SEC(".maps");

static __always_inline struct iot_serving *iot_serving(void)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct iot_serving *s;

	/* This is asked for what anybody on the node dirties or queues: those that cannot be a server pay nothing. */
	if (!(self->flags & PF_KTHREAD))
		return NULL;
	s = bpf_task_storage_get(&iot_servings, self, 0, 0);
	return s && s->on ? s : NULL;
}

/* The traced thread that the current one, which is none itself, works for. */
static __always_inline struct iot_client *iot_served(void)
{
	struct iot_serving *s = iot_serving();

	return s && s->client.flags & IOT_B_TRACED ? &s->client : NULL;
}

#endif
