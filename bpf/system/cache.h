/* SPDX-License-Identifier: GPL-2.0 */
/* Page cache: what a read did not find there, what it read ahead, and how long a write was made to wait. */
#ifndef IOT_CACHE_H
#define IOT_CACHE_H

#define OVERLAYFS_SUPER_MAGIC 0x794c7630 /* include/uapi/linux/magic.h */
#define S_DAX		      (1 << 13)	 /* include/linux/fs.h: its data is never in the page cache */
#define IOT_PAGE_MASK	      ((1ULL << IOT_PAGE_SHIFT) - 1)

/* Before Linux 6.6 a folio's order had a byte of its own (include/linux/mm_types.h). */
struct folio___order {
	unsigned char _folio_order;
} __attribute__((preserve_access_index));

/*
 * Which argument of balance_dirty_pages is the pause, in ticks: kernels give it others before. How long a tick is, in
 * ns.
 */
const volatile u32 iot_pause_at = 0;
const volatile u32 iot_tick = 0;

/*
 * The verifier wants a fixed place in the context, which a compiler would calculate. What is not the argument falls
 * away.
 */
#define IOT_PAUSE(n)                                                                                                   \
	case n:                                                                                                        \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(pause) : "r"(ctx), "i"((n) * sizeof(u64)));               \
		break;

/* The system call that the current task is in, if it is traced and no library call is inside it. */
static __always_inline struct iot_frame *iot_open_syscall(struct iot_task *t)
{
	struct iot_frame *f;

	if (!t)
		return NULL;
	for (u32 i = 0; i < IOT_KERNEL_DEPTH && i < t->depth; i++) {
		f = iot_frame_at(t, t->depth - 1 - i);
		if (f->sp != IOT_SP_KERNEL)
			return f->sp ? NULL : f;
	}
	return NULL;
}

static __always_inline u64 iot_folio_bytes(struct folio *folio)
{
	/* The first word in every kernel; see iot_written_back. */
	u64 flags = iot_inline_word(folio);
	u8 order = 0;

	if (flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1) {
		struct folio___order *old = (void *)folio;

		if (bpf_core_field_exists(old->_folio_order)) {
			order = IOT_READ_FAST(old, _folio_order);
		} else {
			/* the lowest byte of the second page's flags: folio_order, include/linux/mm.h */
			bpf_probe_read_kernel(&order, sizeof(order), (void *)folio + bpf_core_type_size(struct page));
		}
	}
	return 1ULL << (IOT_PAGE_SHIFT + (order & 31));
}

static __always_inline u64 iot_overlap(u64 a, u64 a_end, u64 b, u64 b_end)
{
	u64 from = a > b ? a : b, to = a_end < b_end ? a_end : b_end;

	return to > from ? to - from : 0;
}

/* The bytes that a read asks for, the first time that they are needed. */
static __always_inline bool iot_range(struct iot_spec *s, struct iot_frame *f)
{
	struct iot_src pos = {.from = IOT_FROM_FILE_POS};
	u64 from = 0, len = 0;

	if (f->range != IOT_RANGE_NEW)
		return f->range == IOT_RANGE_KNOWN;
	f->range = IOT_RANGE_UNKNOWN;
	if (!iot_eval(&s->len, f, 0, &len) || !iot_eval(&s->off, f, 0, &from))
		return false;
	/* preadv2 takes -1 for the file position */
	if (from == (u64)-1 && !iot_eval(&pos, f, 0, &from))
		return false;
	f->from = from;
	f->to = from + len;
	f->range = IOT_RANGE_KNOWN;
	return true;
}

/* A folio was added to the page cache while this system call is open. */
static __always_inline void iot_count_folio(struct iot_frame *f, struct folio *folio)
{
	u64 start, end, whole_from, whole_to, size;
	struct address_space *mapping;
	struct inode *host;
	struct iot_spec *s;
	struct file *file;

	s = iot_spec_of(f->spec);
	if (!s || !(s->flags & IOT_S_READS))
		return;
	file = (void *)f->file;
	mapping = IOT_READ_FAST(folio, mapping);
	host = IOT_READ_FAST(mapping, host);
	/* What the file system reads of itself is not the call's, but overlayfs has the pages of the file below. */
	if (mapping != IOT_READ_FAST(file, f_mapping) &&
	    (IOT_READ_FAST(file, f_inode, i_sb, s_magic) != OVERLAYFS_SUPER_MAGIC ||
	     (IOT_READ_FAST(host, i_mode) & S_IFMT) != S_IFREG))
		return;
	if (!iot_range(s, f))
		return;
	start = (u64)IOT_READ_FAST(folio, index) << IOT_PAGE_SHIFT;
	end = start + iot_folio_bytes(folio);
	size = IOT_READ_FAST(host, i_size);
	f->miss += iot_overlap(start, end, f->from, f->to < size ? f->to : size);
	whole_from = f->from & ~IOT_PAGE_MASK;
	whole_to = (f->to + IOT_PAGE_MASK) & ~IOT_PAGE_MASK;
	f->ahead += end - start - iot_overlap(start, end, whole_from, whole_to);
}

/* By the task that needs it, or that reads ahead. */
SEC("?tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(iot_page_added, struct folio *folio)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	struct iot_frame *f;

	if (!t)
		return 0;
	f = iot_open_syscall(t);
	if (!f || !f->file)
		return 0;
	iot_hook_enters(t, iot_cfg.rows + IOT_COST_PAGE, 0);
	iot_count_folio(f, folio);
	iot_hook_entered(t, 0);
	return 0;
}

/*
 * A task that dirties pages faster than they can be written is about to sleep; not positive when it is not made to wait
 * (include/trace/events/writeback.h, whose record has it in ms).
 */
SEC("?tp_btf/balance_dirty_pages")
int iot_throttled(u64 *ctx)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);
	struct iot_frame *f = iot_open_syscall(t);
	s64 pause = 0;

	switch (iot_pause_at) {
		IOT_PAUSE(4)
		IOT_PAUSE(5)
		IOT_PAUSE(6)
		IOT_PAUSE(7)
		IOT_PAUSE(8)
		IOT_PAUSE(9)
		IOT_PAUSE(10)
	}
	if (f && pause > 0)
		f->throttled += (u64)pause * iot_tick;
	return 0;
}

/* Does nothing of the file pass through the page cache? A file that was read through it has pages there. */
static __always_inline bool iot_uncached(struct file *file)
{
	struct inode *inode = IOT_READ_FAST(file, f_inode);

	if (IOT_READ_FAST(inode, i_flags) & S_DAX)
		return true;
	return !IOT_READ_FAST(file, f_mapping, nrpages) && IOT_READ_FAST(inode, i_sb, s_magic) != OVERLAYFS_SUPER_MAGIC;
}

/* A call returns: is it known what of its range was in the page cache? */
static __always_inline bool iot_cache_known(struct iot_spec *s, struct iot_frame *f, s64 ret)
{
	if ((s->flags & IOT_S_READS) && ret > 0 && f->range == IOT_RANGE_NEW && f->file &&
	    iot_uncached((void *)f->file))
		f->range = IOT_RANGE_UNKNOWN;
	return !(s->flags & IOT_S_READS) || f->range != IOT_RANGE_UNKNOWN;
}

/*
 * Sends what the page cache did in a system call that returns; nothing for a read that found everything there. False when there
 * was no room: without this record the call's own would be wrong.
 */
__noinline bool iot_send_cache(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, s64 ret)
{
	struct iot_cache e = {.type = IOT_T_CACHE};

	if (!t || !s || !f)
		return false;
	e.known = iot_cache_known(s, f, ret);
	if (e.known && !f->miss && !f->ahead && !f->throttled && !f->locked)
		return true;
	e.thread = t->thread;
	e.seq = f->seq;
	e.time = t->now;
	e.miss = f->miss;
	e.ahead = f->ahead;
	e.throttled = f->throttled;
	e.locked = f->locked;
	return !iot_send(iot_call_class(s), s->layer, &e, sizeof(e));
}

#endif
