/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests that a target serves for others. A FUSE daemon reads each from /dev/fuse and writes its reply there, so that all
 * that is needed passes through its own system calls. These are not recorded: no spans come from here.
 */
#ifndef IOT_RPC_H
#define IOT_RPC_H

#define S_IFCHR	      0020000
#define IOT_FUSE_RDEV (10 << 20 | 229) /* /dev/fuse: Documentation/admin-guide/devices.txt */
#define IOT_FUSE_IN   40	       /* sizeof(struct fuse_in_header), include/uapi/linux/fuse.h */
#define IOT_FUSE_OUT  16	       /* sizeof(struct fuse_out_header) */

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define IOT_NR_READ   0
#define IOT_NR_WRITE  1
#define IOT_NR_READV  19
#define IOT_NR_WRITEV 20

/* Of a module, in kernels that have FUSE in one; not all of these types are known then. */
struct fuse_conn___iot {
	u32 dev;
} __attribute__((preserve_access_index));

struct fuse_dev___iot {
	struct fuse_conn___iot *fc;
} __attribute__((preserve_access_index));

/* The device of the file system that is served by an open /dev/fuse; 0: not known. */
static __always_inline u32 iot_fuse_dev(struct file *file)
{
	struct fuse_dev___iot *opened = IOT_READ(file, private_data);

	if (!bpf_core_field_exists(struct fuse_dev___iot, fc) || !bpf_core_field_exists(struct fuse_conn___iot, dev))
		return 0;
	return IOT_READ(opened, fc, dev);
}

static __always_inline bool iot_is_fuse(struct file *file)
{
	struct inode *inode = IOT_READ(file, f_inode);

	return (IOT_READ(inode, i_mode) & S_IFMT) == S_IFCHR && IOT_READ(inode, i_rdev) == IOT_FUSE_RDEV;
}

/* A record of the thread, without its message. */
static __always_inline struct iot_rpc *iot_rpc(void *ring, struct iot_task *t, u64 file, u32 seq)
{
	struct iot_rpc *e = ring ? bpf_ringbuf_reserve(ring, sizeof(*e), 0) : NULL;

	if (!e) {
		iot_lost(IOT_LOSS_RING, 0);
		return NULL;
	}
	e->type = IOT_T_RPC;
	e->reply = 0;
	e->nested = 0;
	e->pad = 0;
	e->thread = t->thread;
	e->seq = seq;
	e->dev = 0;
	e->channel = file;
	__builtin_memset(e->message, 0, sizeof(e->message));
	return e;
}

/*
 * A system call that is left out begins, number `seq` of its thread if it were not. If it reads from /dev/fuse, that is
 * noted; if it writes there, what it writes is a reply.
 */
__noinline int iot_fuse_enter(u64 opened, u64 argument, u32 nr, u32 seq)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	struct iovec parts[2] = {{.iov_base = (void *)argument, .iov_len = IOT_FUSE_OUT + sizeof(u64)}};
	struct iot_rpc *e;
	void *ring;

	if (!t || !iot_is_fuse((struct file *)opened))
		return 0;
	if (nr == IOT_NR_READ || nr == IOT_NR_READV) {
		t->serves = opened;
		return 0;
	}
	if (nr == IOT_NR_WRITEV) {
		if (bpf_probe_read_user(&parts[0], sizeof(parts[0]), (void *)argument))
			return 0;
		/* a reply without a body has no second part */
		bpf_probe_read_user(&parts[1], sizeof(parts[1]), (void *)argument + sizeof(parts[0]));
	} else if (nr != IOT_NR_WRITE) {
		return 0;
	}
	ring = iot_ring_of(IOT_C_CALL);
	e = iot_rpc(ring, t, opened, seq);
	if (!e)
		return 0;
	e->reply = 1;
	e->time = bpf_ktime_get_ns();
	if (parts[0].iov_len >= IOT_FUSE_OUT + sizeof(u64))
		parts[1].iov_base = parts[0].iov_base + IOT_FUSE_OUT;
	if (bpf_probe_read_user(e->message, IOT_FUSE_OUT, parts[0].iov_base)) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	/* the header shows that there is no body */
	bpf_probe_read_user(e->message + IOT_FUSE_OUT, sizeof(u64), parts[1].iov_base);
	bpf_ringbuf_submit(e, iot_wakeup(ring));
	return 0;
}

/* A call returns that was noted, or that began before the thread was traced: has it read a request? */
__noinline int iot_fuse_exit(u32 nr, u32 fd, u64 buffer, s64 ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, task, 0, 0);
	struct iot_rpc *e;
	u64 opened;
	void *ring;

	if (!t)
		return 0;
	opened = t->serves;
	t->serves = 0;
	if (ret < IOT_FUSE_IN || iot_is_short(task) || (nr != IOT_NR_READ && nr != IOT_NR_READV))
		return 0;
	if (opened == IOT_MAY_SERVE) {
		opened = (u64)iot_fd_file(task, fd);
		if (!opened || !iot_is_fuse((struct file *)opened))
			return 0;
	}
	if (nr == IOT_NR_READV && bpf_probe_read_user(&buffer, sizeof(buffer), (void *)buffer))
		return 0;
	ring = iot_ring_of(IOT_C_CALL);
	e = iot_rpc(ring, t, opened, t->seq);
	if (!e)
		return 0;
	e->time = bpf_ktime_get_ns(); /* the thread may have been announced since it returned */
	e->dev = iot_fuse_dev((struct file *)opened);
	e->nested = IOT_READ(task, thread_pid, level) != iot_cfg.pid_level;
	if (bpf_probe_read_user(e->message, IOT_FUSE_IN, (void *)buffer)) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	if (ret >= (s64)sizeof(e->message))
		bpf_probe_read_user(e->message + IOT_FUSE_IN, sizeof(e->message) - IOT_FUSE_IN,
				    (void *)buffer + IOT_FUSE_IN);
	bpf_ringbuf_submit(e, iot_wakeup(ring));
	return 0;
}

#endif
