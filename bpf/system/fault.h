/* SPDX-License-Identifier: GPL-2.0 */
/* Mapped files: page faults as calls of layer vfs, and what is dirtied otherwise than by a write at a known offset. */
#ifndef IOT_FAULT_H
#define IOT_FAULT_H

#define X86_PF_WRITE 2	  /* arch/x86/include/asm/trap_pf.h */
#define S_IXUGO	     0111 /* include/linux/stat.h */
#define TMPFS_MAGIC  0x01021994
#define IOT_USER_END (1ULL << 56) /* above are the kernel's own addresses */

/* Rows of the catalog + 1: reading, writing. */
const volatile u16 iot_fault_rows[IOT_FAULT_ROWS] = {};

/* The page fault of a thread. One that ends in a signal has no end: the next one takes its place. */
struct iot_fault {
	u64 start; /* 0: none is open */
	u64 address;
	u32 seq;
	u8 numbered; /* seq is valid: a record that refers to it was sent already */
	u8 writes;
	u8 pad[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct iot_fault);
} iot_faults SEC(".maps");

static __always_inline void iot_fault_begin(u64 address, u64 error)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tgid = iot_tgid();
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &tgid);
	struct iot_fault *x;

	if (!target || !target->armed || address >= IOT_USER_END)
		return;
	x = bpf_task_storage_get(&iot_faults, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!x) {
		iot_lost(IOT_LOSS_STORAGE, IOT_LAYER_VFS);
		return;
	}
	x->address = address;
	x->numbered = 0;
	x->writes = !!(error & X86_PF_WRITE);
	x->start = bpf_ktime_get_ns();
}

SEC("?tp_btf/page_fault_user")
int BPF_PROG(iot_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error)
{
	iot_fault_begin(address, error);
	return 0;
}

/* The kernel reads or writes the program's memory for it, in a system call. */
SEC("?tp_btf/page_fault_kernel")
int BPF_PROG(iot_fault_kernel, unsigned long address, struct pt_regs *regs, unsigned long error)
{
	iot_fault_begin(address, error);
	return 0;
}

/* The fault that a traced thread is in. One that began before a call that is still open did not end. */
static __always_inline struct iot_fault *iot_fault_open(struct iot_task *t)
{
	struct iot_fault *x = bpf_task_storage_get(&iot_faults, bpf_get_current_task_btf(), 0, 0);

	if (!x || !x->start || (t->depth && iot_frame_at(t, t->depth - 1)->start > x->start))
		return NULL;
	return x;
}

/* Its number, from the first time that it is asked for. */
static __always_inline u32 iot_fault_seq(struct iot_task *t, struct iot_fault *x)
{
	if (!x->numbered) {
		x->seq = t->seq++;
		x->numbered = 1;
	}
	return x->seq;
}

/* What a thread does something in: a page fault, or the innermost call that is open. */
static __always_inline bool iot_inside(struct iot_task *t, u32 *seq)
{
	struct iot_fault *x = iot_fault_open(t);

	if (x) {
		*seq = iot_fault_seq(t, x);
		return true;
	}
	if (!t->depth)
		return false;
	*seq = iot_frame_at(t, t->depth - 1)->seq;
	return true;
}

/*
 * Programs and libraries are left out as long as no device is read for them: so is memory that processes share. The
 * loader of programs, which the kernel maps by itself, is known by its mode.
 */
static __always_inline bool iot_fault_wanted(struct inode *inode, struct iot_file_key *key, u64 shared)
{
	struct iot_lib_key lib = {.ino = key->ino, .dev = IOT_READ(inode, i_sb, s_dev), .generation = key->generation};
	struct iot_lib *mapped = bpf_map_lookup_elem(&iot_libs, &lib);

	if (mapped && mapped->state != IOT_LIB_REMEMBERED)
		return false;
	if (!shared && IOT_READ(inode, i_mode) & S_IXUGO)
		return false;
	return iot_file_wanted(inode) && IOT_READ(inode, i_sb, s_magic) != TMPFS_MAGIC;
}

/* A fault as a call that nothing is inside of: the first free place of the stack is its frame. */
__noinline int iot_fault_detail(struct iot_task *t, struct iot_spec *s, struct iot_syscall *e, u64 now)
{
	struct iot_frame *f;

	if (!t || !s || !e || t->depth >= IOT_DEPTH)
		return 0;
	f = iot_frame_at(t, t->depth);
	f->spec = e->call.spec;
	f->start = e->call.start;
	f->seq = e->call.seq;
	f->summed = 1;
	f->lost = t->unkept;
	f->marks = f->holds = 0;
	f->inner = f->miss = f->ahead = f->throttled = f->locked = 0;
	f->range = IOT_RANGE_UNKNOWN;
	t->made = *e;
	return iot_detail(t, s, f, iot_marks(t, s, f, now), now);
}

static __noinline void iot_fault_send(struct iot_task *t, struct iot_fault *x, struct iot_mapping *m, u64 major)
{
	struct iot_syscall e = {
		.call = {.type = IOT_T_SYSCALL, .got = IOT_PAGE, .away = IOT_UNKNOWN, .queued = IOT_UNKNOWN}};
	struct iot_file_key key = {};
	u64 now = bpf_ktime_get_ns();
	struct file *file;
	u32 write;

	if (!t || !x || !m)
		return;
	file = m->file; /* a local: CO-RE would relocate m's own members */
	write = x->writes && m->shared;
	e.call.flags = IOT_F_GOT;
	if (file) {
		struct inode *inode = IOT_READ(file, f_inode);

		iot_key_of(inode, &key);
		if (!x->numbered && !iot_fault_wanted(inode, &key, m->shared)) {
			iot_lost(IOT_LOSS_EXCLUDED, IOT_LAYER_VFS);
			return;
		}
		e.ino = key.ino;
		e.dev = key.dev;
		e.generation = key.generation;
		e.call.off = m->off;
		e.call.flags |= IOT_F_FILE | IOT_F_OFF;
	}
	if (t->pending_phase_end && !iot_flush_phase_end(t)) {
		iot_lost(IOT_LOSS_RING, IOT_LAYER_VFS);
		return;
	}
	e.call.spec = iot_fault_rows[write ? IOT_FAULT_WRITE : IOT_FAULT_READ] - 1;
	e.call.seq = iot_fault_seq(t, x);
	e.call.thread = t->thread;
	e.call.status = major;
	e.call.start = x->start;
	e.call.dur_cpu_depth = ((now - x->start) & ((1ULL << IOT_DUR_BITS) - 1)) |
			       (u64)(bpf_get_smp_processor_id() & ((1 << IOT_CPU_BITS) - 1)) << IOT_DUR_BITS |
			       (u64)t->depth << (IOT_DUR_BITS + IOT_CPU_BITS);
	t->now = now;
	if (file)
		iot_send_file(t, file);
	iot_spent(t, now - x->start);
	if (iot_cfg.aggregate) {
		struct iot_spec *s = iot_spec_of(e.call.spec);
		struct iot_summing *m = &t->sum;

		iot_summing_call(m, t, e.call.spec);
		m->own = now - x->start;
		if (file)
			iot_sum_file(m, key.ino, key.dev, key.generation);
		if (s)
			iot_sum(m, s, &e.call);
		if (s && iot_cfg.detail)
			iot_fault_detail(t, s, &e, now);
		return;
	}
	iot_send(IOT_C_CALL, IOT_LAYER_VFS, &e, sizeof(e));
}

/* The kernel has counted a fault, for this process, as getrusage shows them: it is over. */
static __noinline int iot_fault_end(u64 address, u64 major)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct iot_fault *x = bpf_task_storage_get(&iot_faults, task, 0, 0);
	struct iot_mapping m = {.address = address};
	u64 begun = bpf_ktime_get_ns();
	struct iot_task *t;
	long err;

	if (!x || !x->start || x->address >> IOT_PAGE_SHIFT != address >> IOT_PAGE_SHIFT)
		return 0;
	t = iot_self();
	if (!t)
		return 0;
	err = bpf_find_vma(task, address, iot_vma_step, &m, 0);
	/* Memory without a file is none of ours, unless it is read from a device. */
	if (m.file || x->numbered) {
		iot_fault_send(t, x, &m, major);
		begun = t->now; /* until then it is the fault's time */
	} else if (err)
		iot_lost(IOT_LOSS_MAPPING, IOT_LAYER_VFS);
	x->start = 0;
	iot_hook_left(t, iot_cfg.rows + IOT_COST_FAULT, 0, begun);
	return 0;
}

SEC("?perf_event")
int iot_fault_minor(struct bpf_perf_event_data *ctx)
{
	return iot_fault_end(ctx->addr, 0);
}

SEC("?perf_event")
int iot_fault_major(struct bpf_perf_event_data *ctx)
{
	return iot_fault_end(ctx->addr, 1);
}

/* Does the innermost call write this file, and does its record have the range? */
static __always_inline bool iot_writes(struct iot_task *t, struct iot_file_key *key)
{
	struct iot_frame *f;
	struct iot_spec *s;

	if (!t->depth)
		return false;
	f = iot_frame_at(t, t->depth - 1);
	if (f->sp || !f->file || f->ino != key->ino || f->dev != key->dev || f->generation != key->generation ||
	    f->bits & IOT_F_DIRECT)
		return false;
	s = iot_spec_of(f->spec);
	return s && iot_is_result(&s->got) && s->off.from;
}

/* Pages of a file become dirty: through a mapping, or by a call whose record lacks the bytes that it writes. */
SEC("?tp_btf/writeback_dirty_folio")
int BPF_PROG(iot_dirty_folio, struct folio *folio, struct address_space *mapping)
{
	struct iot_dirty e = {.type = IOT_T_DIRTY};
	struct iot_file_key key = {};
	struct inode *inode;
	struct iot_task *t = iot_self();
	struct iot_client *c = t ? NULL : iot_served();
	u32 seq = 0;

	if ((!t && !c) || !mapping)
		return 0;
	inode = IOT_READ(mapping, host);
	/* what is on no device is never written back; see iot_bio_file */
	if (!inode || !iot_is_on_device(inode))
		return 0;
	iot_key_of(inode, &key);
	if (t) {
		if (!iot_fault_open(t) && iot_writes(t, &key))
			return 0;
		e.in_call = iot_inside(t, &seq);
		e.seq = seq;
		e.thread = t->thread;
	} else {
		e.in_call = (c->flags & IOT_B_IN_CALL) != 0;
		e.seq = c->seq;
		e.thread = c->thread;
	}
	e.time = bpf_ktime_get_ns();
	e.ino = key.ino;
	e.dev = key.dev;
	e.generation = key.generation;
	e.off = (u64)IOT_READ(folio, index) << IOT_PAGE_SHIFT;
	e.bytes = iot_folio_bytes(folio);
	iot_send(IOT_C_BLOCK, 0, &e, sizeof(e));
	if (t)
		iot_hook_left(t, iot_cfg.rows + IOT_COST_DIRTY, 0, e.time);
	return 0;
}

#endif
