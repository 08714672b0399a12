/* SPDX-License-Identifier: GPL-2.0 */
/* What is known of a bio: the operation it is for, the file whose pages it carries, whether it is a journal's. */
#ifndef IOT_BIO_H
#define IOT_BIO_H

#define REQ_OP_MASK	   0xff /* include/linux/blk_types.h: REQ_OP_BITS */
#define REQ_META	   (1 << 12)
#define PAGE_SHIFT	   12
#define PAGE_MAPPING_FLAGS 3	      /* include/linux/page-flags.h: not a file's mapping */
#define JBD2_MAGIC_LE	   0x98393bc0 /* include/linux/jbd2.h: big-endian on the device */

/* What the kernel keeps of a direct transfer on a block device (block/fops.c); its bio is part of it. */
struct blkdev_dio___iot {
	struct kiocb *iocb;
	struct bio bio;
} __attribute__((preserve_access_index));

/* The control block of the direct I/O that a bio is part of. */
static __always_inline struct kiocb *iot_bio_kiocb(struct bio *bio)
{
	u64 end = (u64)IOT_READ(bio, bi_end_io);
	void *dio = IOT_READ(bio, bi_private);
	struct blkdev_dio___iot *blkdev = dio;
	struct iomap_dio *iomap = dio;

	if (!end)
		return NULL;
	if (end == iot_symbols.iomap_dio_bio_end_io)
		return IOT_READ(iomap, iocb);
	if (!bpf_core_field_exists(blkdev->bio))
		return NULL;
	if (end == iot_symbols.blkdev_bio_end_io)
		return IOT_READ(blkdev, iocb);
	if (end == iot_symbols.blkdev_bio_end_io_async) {
		blkdev = (void *)bio - bpf_core_field_offset(struct blkdev_dio___iot, bio);
		return IOT_READ(blkdev, iocb);
	}
	return NULL;
}

/* The operation that the thread carries out by itself, if that is one. */
static __always_inline struct iot_op *iot_task_operation(struct iot_task *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct iot_op_key key = {.object = t->issuing};

	if (task->flags & PF_IO_WORKER && bpf_core_field_exists(task->worker_private)) {
		struct io_worker *worker = (void *)IOT_READ(task, worker_private);
		u64 work = (u64)IOT_READ(worker, cur_work);

		key.object = work ? work - bpf_core_field_offset(struct io_kiocb, work) : 0;
	}
	return key.object ? bpf_map_lookup_elem(&iot_ops, &key) : NULL;
}

/* The operation that a bio is queued for, if that is one. */
static __always_inline struct iot_op *iot_bio_operation(struct bio *bio, struct iot_task *t)
{
	struct kiocb *kiocb = iot_bio_kiocb(bio);
	struct iot_op_key key = {};
	u64 complete;

	if (!kiocb)
		return iot_task_operation(t);
	complete = (u64)IOT_READ(kiocb, ki_complete);
	if (!complete)
		return NULL; /* a thread waits for it */
	/* A request begins with its struct io_rw, and that with the control block (io_uring/rw.c). */
	key.object = (u64)kiocb;
	if (complete == iot_symbols.aio_complete_rw) {
		struct aio_kiocb *aio = (void *)kiocb; /* begins with it, too (fs/aio.c) */

		key.object = IOT_READ(aio, ki_res.obj);
		key.context = IOT_READ(aio, ki_ctx, user_id);
		key.process = t->process;
	}
	return bpf_map_lookup_elem(&iot_ops, &key);
}

/*
 * Is this folio, which a write carries, being written back? One that is not is the buffer of direct I/O, which may be a
 * mapped file just as well.
 */
static __always_inline bool iot_written_back(struct folio *folio)
{
	/* The first word in every kernel; its type became a struct in 6.18, which CO-RE takes for another member. */
	return iot_word(folio) >> bpf_core_enum_value(enum pageflags, PG_writeback) & 1;
}

/* Not of every kernel, so that the types are our own: CONFIG_BLK_CGROUP, include/linux/blk-cgroup.h. */
struct blkcg___iot {
	struct cgroup_subsys_state___iot css;
} __attribute__((preserve_access_index));

struct blkcg_gq___iot {
	struct blkcg___iot *blkcg;
} __attribute__((preserve_access_index));

struct bio___iot {
	struct blkcg_gq___iot *bi_blkg;
} __attribute__((preserve_access_index));

/* The control group that a bio is charged to: of write-back the one that most of the file's dirty pages are of. */
static __always_inline u64 iot_bio_cgroup(struct bio *bio)
{
	struct bio___iot *charged = (void *)bio;
	struct cgroup___iot *cgroup;

	if (!bpf_core_field_exists(charged->bi_blkg))
		return 0;
	cgroup = IOT_READ(charged, bi_blkg, blkcg, css.cgroup);
	/* Numbers are those of a hierarchy; the unified one is the first. */
	return cgroup && iot_is_unified(cgroup) ? IOT_READ(cgroup, kn, id) : 0;
}

/* Where the data of a bio begins. */
static __always_inline void *iot_bio_vec(struct bio *bio)
{
	void *vec = IOT_READ(bio, bi_io_vec);

	if (!vec || !IOT_READ(bio, bi_iter.bi_size))
		return NULL;
	return vec + IOT_READ(bio, bi_iter.bi_idx) * bpf_core_type_size(struct bio_vec);
}

static __always_inline struct folio *iot_folio_of(struct page *page)
{
	unsigned long head;

	if (!page)
		return NULL;
	/* it shares its place with pointers, which the verifier would take it for */
	head = iot_word((void *)page + bpf_core_field_offset(struct page, compound_head));
	return head & 1 ? (void *)(head - 1) : (void *)page;
}

/* The inode whose pages these are, if they are in the page cache. */
static __always_inline struct inode *iot_folio_inode(struct folio *folio)
{
	struct address_space *mapping = IOT_READ(folio, mapping);

	return !mapping || (u64)mapping & PAGE_MAPPING_FLAGS ? NULL : IOT_READ(mapping, host);
}

/* The file and offset of the data a bio starts with, or that it is of the file system on the device itself. */
static __always_inline void iot_bio_file(struct bio *bio, struct iot_bio *e)
{
	void *vec = iot_bio_vec(bio);
	struct iot_file_key key = {};
	struct inode *inode;
	struct page *page;
	struct folio *folio;
	bool writes;
	u16 type;

	if (!vec)
		return;
	page = (void *)iot_word(vec);
	folio = iot_folio_of(page);
	inode = folio ? iot_folio_inode(folio) : NULL;
	if (!inode)
		return;
	type = IOT_READ(inode, i_mode) & S_IFMT;
	/* The pages of a device that something holds are those of the file system on it. */
	if (type == S_IFBLK && IOT_READ(bio, bi_bdev, bd_holder))
		e->flags |= IOT_B_META;
	/* tmpfs and the like have no device: these pages are a buffer, or they are swapped */
	if (!iot_is_on_device(inode))
		return;
	writes = (IOT_READ(bio, bi_opf) & REQ_OP_MASK) == REQ_OP_WRITE;
	if (writes && !iot_written_back(folio))
		return;
	iot_key_of(inode, &key);
	e->flags |= IOT_B_FILE;
	if (writes)
		e->cgroup = iot_bio_cgroup(bio);
	e->ino = key.ino;
	e->dev = key.dev;
	e->generation = key.generation;
	e->off = (u64)IOT_READ(folio, index) << PAGE_SHIFT;
	e->off += ((u64)page - (u64)folio) / bpf_core_type_size(struct page) << PAGE_SHIFT;
	e->off += IOT_READ((struct bio_vec *)vec, bv_offset) + IOT_READ(bio, bi_iter.bi_bvec_done);
}

/* A block of a tree of btrfs: fs/btrfs/extent_io.h. */
struct extent_buffer___iot {
	s8 log_index;
} __attribute__((preserve_access_index));

/*
 * The file system to whose log tree a bio writes: what btrfs writes for fsync before the transaction is. Its blocks are
 * pages of an inode that is no file's; their owner identifies the tree.
 */
static __always_inline u32 iot_bio_log_tree(struct bio *bio)
{
	void *vec = iot_bio_vec(bio);
	struct folio *folio = vec ? iot_folio_of((void *)iot_word(vec)) : NULL;
	struct inode *inode = folio ? iot_folio_inode(folio) : NULL;
	struct extent_buffer___iot *block;

	if (!bpf_core_field_exists(struct extent_buffer___iot, log_index) || !inode || !iot_has_trees(inode))
		return 0;
	block = (void *)IOT_READ(folio, private);
	return block && IOT_READ(block, log_index) >= 0 ? IOT_READ(inode, i_sb, s_dev) : 0;
}

/* Does a bio write to a journal? */
static __always_inline bool iot_bio_journal(struct bio *bio)
{
	u64 end = (u64)IOT_READ(bio, bi_end_io);
	struct buffer_head *bh = IOT_READ(bio, bi_private);
	void *data;
	u32 word = 0;

	if (!end || (IOT_READ(bio, bi_opf) & REQ_OP_MASK) != REQ_OP_WRITE)
		return false;
	/* Of a log that is a ring, one part of what goes over its end. */
	if (end == iot_symbols.bio_chain_endio)
		end = (u64)IOT_READ((struct bio *)bh, bi_end_io);
	if (end == iot_symbols.xlog_bio_end_io)
		return true;
	if (end != iot_symbols.end_bio_bh_io_sync)
		return false;
	if ((u64)IOT_READ(bh, b_end_io) == iot_symbols.journal_end_buffer_io_sync)
		return true;
	/* Its superblock is written like any other block, but nothing else begins like it. */
	data = IOT_READ(bh, b_data);
	bpf_probe_read_kernel(&word, sizeof(word), data);
	return word == JBD2_MAGIC_LE;
}

#endif
