/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests to the kernel's NFS server of clients on the same node. The client's thread begins a task, the task gets a number
 * (xid), and that is what a thread of the server finds in the request that it takes up.
 */
#ifndef IOT_NFS_H
#define IOT_NFS_H

#define IOT_NFS_PROGRAM 100003	     /* include/uapi/linux/nfs.h */
#define IOT_NFS_CLOSE	0x45534f4c43 /* "CLOSE", which fs/nfs/nfs4xdr.c calls it */
#define PF_WQ_WORKER	0x00000020   /* include/linux/sched.h */

/*
 * Of modules (sunrpc, nfsd), whose types are not among the kernel's. That the arguments of their tracepoints are not null
 * is not known to the verifier.
 */
struct rpc_procinfo___iot {
	const char *p_name;
} __attribute__((preserve_access_index));

struct rpc_message___iot {
	const struct rpc_procinfo___iot *rpc_proc;
} __attribute__((preserve_access_index));

struct rpc_clnt___iot {
	u32 cl_prog;
} __attribute__((preserve_access_index));

struct rpc_task___iot {
	union {
		struct {
			unsigned long data;
		} tk_work;
	} u;
	struct rpc_message___iot tk_msg;
	struct rpc_clnt___iot *tk_client;
} __attribute__((preserve_access_index));

struct rpc_rqst___iot {
	struct rpc_task___iot *rq_task;
	u32 rq_xid;
} __attribute__((preserve_access_index));

struct svc_rqst___iot {
	u32 rq_xid;
	u32 rq_prog;
	u32 rq_vers;
	u32 rq_proc;
	void *rq_resp;
} __attribute__((preserve_access_index));

struct nfsd4_compound_state___iot {
	u32 status;
} __attribute__((preserve_access_index));

struct nfsd4_compoundres___iot {
	struct nfsd4_compound_state___iot cstate;
} __attribute__((preserve_access_index));

/* Of the kernel itself: what a thread of a work queue works on. */
struct kthread___iot {
	void *data;
} __attribute__((preserve_access_index));

struct worker___iot {
	void *current_work;
} __attribute__((preserve_access_index));

/* Tasks whose end is not followed: the next one at the same place takes its own. By struct rpc_task. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct iot_client);
} iot_asking SEC(".maps");

/* Requests that were sent and not taken up, by number. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct iot_client);
} iot_asked SEC(".maps");

/* The client of the task that the current thread of a work queue carries on with, or deals with the end of. */
static __always_inline struct iot_client *iot_nfs_before(struct task_struct *self)
{
	struct kthread___iot *thread;
	struct worker___iot *worker;
	u64 key;

	if (!(self->flags & PF_WQ_WORKER) || !bpf_core_field_exists(self->worker_private))
		return NULL;
	thread = (void *)IOT_READ(self, worker_private);
	worker = (void *)IOT_READ(thread, data);
	key = (u64)IOT_READ(worker, current_work) - bpf_core_field_offset(struct rpc_task___iot, u.tk_work);
	return bpf_map_lookup_elem(&iot_asking, &key);
}

/* Does a task close a file? */
static __always_inline bool iot_nfs_closes(struct rpc_task___iot *task)
{
	u64 name = 0;

	bpf_probe_read_kernel_str(&name, sizeof(name), IOT_READ(task, tk_msg.rpc_proc, p_name));
	return name == IOT_NFS_CLOSE;
}

/*
 * A task begins, in the thread that wants it and not always sends it; one that follows from another (COMMIT, when what was
 * written is there) is for the same. Not a CLOSE: that follows from the call that closed the file, which may have returned
 * while the end of a read still held it. Those of other programs are ignored, those of the kernel's own threads
 * (write-back, leases) have no client thread.
 */
SEC("?tp_btf/rpc_task_begin")
int BPF_PROG(iot_nfs_begin, struct rpc_task___iot *task)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct iot_client c = {}, *before;
	u64 key = (u64)task;
	const char *name;
	struct iot_task *t;

	if (!task)
		return 0;
	if (IOT_READ(task, tk_client, cl_prog) != IOT_NFS_PROGRAM)
		goto none;
	t = iot_self();
	if (!t) /* one that ends, and closes its files? */
		t = bpf_task_storage_get(&iot_tasks, self, 0, 0);
	if (t) {
		struct iot_op *op = iot_task_operation(t);

		c.flags = IOT_B_TRACED;
		c.thread = t->thread;
		c.tid = t->tid;
		if (op) {
			c.flags |= IOT_B_IN_CALL | IOT_B_OPERATION;
			c.thread = op->thread;
			c.seq = op->seq;
			c.of = op->of;
		} else if (iot_inside(t, &c.seq)) {
			c.flags |= IOT_B_IN_CALL;
		}
	} else if (self->flags & PF_KTHREAD) {
		before = iot_nfs_before(self);
		if (before && !iot_nfs_closes(task))
			c = *before;
	} else {
		goto none;
	}
	name = IOT_READ(task, tk_msg.rpc_proc, p_name);
	bpf_probe_read_kernel_str(c.op, sizeof(c.op), name);
	if (bpf_map_update_elem(&iot_asking, &key, &c, BPF_ANY))
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_SYSCALL);
	return 0;
none:
	bpf_map_delete_elem(&iot_asking, &key);
	return 0;
}

/* A task gets a number, or another one, to be sent once more. */
SEC("?tp_btf/xprt_reserve")
int BPF_PROG(iot_nfs_number, struct rpc_rqst___iot *rqst)
{
	struct iot_client *c;
	u64 key;
	u32 xid;

	if (!rqst)
		return 0;
	key = (u64)IOT_READ(rqst, rq_task);
	xid = IOT_READ(rqst, rq_xid);
	c = bpf_map_lookup_elem(&iot_asking, &key);
	if (!c)
		bpf_map_delete_elem(&iot_asked, &xid);
	else if (bpf_map_update_elem(&iot_asked, &xid, c, BPF_ANY))
		iot_lost(IOT_LOSS_MAP_FULL, IOT_LAYER_SYSCALL);
	return 0;
}

/* The server takes a request up. One that it puts off, to wait for user space, it takes up again. */
SEC("?tp_btf/svc_process")
int BPF_PROG(iot_nfs_serve, struct svc_rqst___iot *rqst)
{
	struct iot_client *c = NULL;
	struct iot_serving *s;
	u32 xid;

	if (!rqst)
		return 0;
	xid = IOT_READ(rqst, rq_xid);
	if (IOT_READ(rqst, rq_prog) == IOT_NFS_PROGRAM)
		c = bpf_map_lookup_elem(&iot_asked, &xid);
	s = bpf_task_storage_get(&iot_servings, bpf_get_current_task_btf(), 0, c ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!s) {
		if (c)
			iot_lost(IOT_LOSS_STORAGE, IOT_LAYER_SYSCALL);
		return 0;
	}
	s->on = c != NULL;
	if (!c)
		return 0;
	s->client = *c;
	s->xid = xid;
	s->known = 0;
	s->received = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int iot_nfs_asks(u64 offset, u32 bytes)
{
	struct iot_serving *s = iot_serving();

	if (!s)
		return 0;
	s->offset = offset;
	s->asked = bytes;
	s->known |= IOT_R_RANGE;
	return 0;
}

static __always_inline int iot_nfs_moved(u32 bytes)
{
	struct iot_serving *s = iot_serving();

	if (!s)
		return 0;
	s->moved = bytes;
	s->known |= IOT_R_MOVED;
	return 0;
}

SEC("?tp_btf/nfsd_read_start")
int BPF_PROG(iot_nfs_read, void *rqst, void *handle, u64 offset, u32 bytes)
{
	return iot_nfs_asks(offset, bytes);
}

SEC("?tp_btf/nfsd_write_start")
int BPF_PROG(iot_nfs_write, void *rqst, void *handle, u64 offset, u32 bytes)
{
	return iot_nfs_asks(offset, bytes);
}

SEC("?tp_btf/nfsd_read_io_done")
int BPF_PROG(iot_nfs_has_read, void *rqst, void *handle, u64 offset, u32 bytes)
{
	return iot_nfs_moved(bytes);
}

SEC("?tp_btf/nfsd_write_io_done")
int BPF_PROG(iot_nfs_has_written, void *rqst, void *handle, u64 offset, u32 bytes)
{
	return iot_nfs_moved(bytes);
}

/* The status in the reply: of version 4 that of the last operation of the compound, of version 3 its first word. */
static __always_inline u32 iot_nfs_status(struct svc_rqst___iot *rqst)
{
	void *reply = IOT_READ(rqst, rq_resp);
	struct nfsd4_compoundres___iot *compound = reply;
	u32 status = 0;

	if (!IOT_READ(rqst, rq_proc)) /* nothing was asked for */
		return 0;
	if (IOT_READ(rqst, rq_vers) == 4)
		status = IOT_READ(compound, cstate.status);
	else
		bpf_probe_read_kernel(&status, sizeof(status), reply);
	return __builtin_bswap32(status);
}

/* It is about to reply. */
SEC("?tp_btf/svc_stats_latency")
int BPF_PROG(iot_nfs_reply, struct svc_rqst___iot *rqst)
{
	struct iot_reply e = {.type = IOT_T_REPLY};
	struct iot_serving *s = iot_serving();

	if (!rqst || !s || s->xid != IOT_READ(rqst, rq_xid))
		return 0;
	s->on = 0;
	bpf_map_delete_elem(&iot_asked, &s->xid);
	e.flags = s->client.flags;
	e.known = s->known;
	e.xid = __builtin_bswap32(s->xid);
	e.time = bpf_ktime_get_ns();
	e.received = s->received;
	e.offset = s->offset;
	e.asked = s->asked;
	e.moved = s->moved;
	e.status = iot_nfs_status(rqst);
	e.tgid = iot_tgid();
	e.tid = iot_tid();
	e.client_thread = s->client.thread;
	e.client_seq = s->client.seq;
	e.client_tid = s->client.tid;
	__builtin_memcpy(e.op, s->client.op, sizeof(e.op));
	iot_send(IOT_C_CALL, 0, &e, sizeof(e));
	return 0;
}

#endif
