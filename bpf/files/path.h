/* SPDX-License-Identifier: GPL-2.0 */
/* Files and names: identity of an inode, the path of a dentry, strings of the traced program. */
#ifndef IOT_PATH_H
#define IOT_PATH_H

#define IOT_PATH_PARTS	64
#define S_IFMT		00170000
#define S_IFDIR		0040000
#define S_IFBLK		0060000
#define S_IFREG		0100000
#define S_IFIFO		0010000
#define S_IFSOCK	0140000
#define OVERLAYFS_MAGIC 0x794c7630 /* include/uapi/linux/magic.h */
#define BTRFS_MAGIC	0x9123683e
#define O_DIRECT	00040000
#define AT_FDCWD	-100

struct iot_file_key {
	u64 ino;
	u32 dev;
	u32 generation;
};

/* What was sent of a file: its dentry, the inode below it and its name, as one number. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct iot_file_key);
	__type(value, u64);
} iot_files SEC(".maps");

/*
 * The open files of the current task, as bpf_get_current_task_btf gives it. Without casts loads through it are checked and cost
 * no helper; with them they are a word's, because the verifier looks for each pointer that is loaded through a task in all
 * types of the kernel (btf_nested_type_is_trusted): 34 of 560 ms of a trace's start were that.
 */
static __always_inline struct fdtable *iot_fdtable(struct task_struct *task)
{
	struct files_struct *files;

	if (iot_word_type)
		return IOT_READ_FAST(task, files, fdt);
	files = task->files;
	return files ? files->fdt : NULL;
}

/* What `member` of these is. */
#define IOT_OF_FDTABLE(fdt, member) (iot_word_type ? iot_value(iot_cast_word, fdt, member) : (fdt)->member)

static __always_inline struct file *iot_fd_file(struct task_struct *task, u32 fd)
{
	struct fdtable *fdt = iot_fdtable(task);

	if (!fdt || fd >= IOT_OF_FDTABLE(fdt, max_fds))
		return NULL;
	return (struct file *)iot_inline_word(IOT_OF_FDTABLE(fdt, fd) + fd);
}

/* A socket or a pipe: nothing in it has an offset. */
static __always_inline bool iot_streams(struct inode *inode)
{
	u16 mode = IOT_READ_FAST(inode, i_mode) & S_IFMT;

	return mode == S_IFSOCK || mode == S_IFIFO;
}

/* Regular files, directories and block devices; the rest is counted and left out. */
static __always_inline bool iot_file_wanted(struct inode *inode)
{
	u16 mode = IOT_READ_FAST(inode, i_mode) & S_IFMT;

	if (iot_cfg.sockets && (mode == S_IFSOCK || mode == S_IFIFO))
		return true;
	return mode == S_IFREG || mode == S_IFDIR || mode == S_IFBLK;
}

/* btrfs, which may be a module: fs/btrfs/btrfs_inode.h, fs/btrfs/ctree.h. */
struct btrfs_root___iot {
	dev_t anon_dev;
} __attribute__((preserve_access_index));

struct btrfs_inode___iot {
	struct btrfs_root___iot *root;
	struct inode vfs_inode;
} __attribute__((preserve_access_index));

static __always_inline bool iot_is_btrfs(struct inode *inode)
{
	return bpf_core_type_exists(struct btrfs_inode___iot) && IOT_READ_FAST(inode, i_sb, s_magic) == BTRFS_MAGIC;
}

/*
 * The device that a file is on, as stat(2) returns it: on btrfs each subvolume has one, and inodes are numbered in each. Its
 * own files have none.
 */
static __always_inline u32 iot_dev_of(struct inode *inode)
{
	u32 dev = 0;

	if (iot_is_btrfs(inode)) {
		struct btrfs_inode___iot *b =
			(void *)inode - bpf_core_field_offset(struct btrfs_inode___iot, vfs_inode);

		dev = IOT_READ_FAST(b, root, anon_dev);
	}
	return dev ?: IOT_READ_FAST(inode, i_sb, s_dev);
}

/* The inode in whose pages btrfs has its trees (BTRFS_BTREE_INODE_OBJECTID): no file, and its type is not set. */
static __always_inline bool iot_has_trees(struct inode *inode)
{
	return IOT_READ_FAST(inode, i_ino) == 1 && IOT_READ_FAST(inode, i_sb, s_magic) == BTRFS_MAGIC;
}

/* Does an inode have data of a file, which is written to a device? btrfs may be on several, and names none. */
static __always_inline bool iot_is_on_device(struct inode *inode)
{
	if ((IOT_READ_FAST(inode, i_mode) & S_IFMT) != S_IFREG || iot_has_trees(inode))
		return false;
	return IOT_READ_FAST(inode, i_sb, s_bdev) || IOT_READ_FAST(inode, i_sb, s_magic) == BTRFS_MAGIC;
}

static __always_inline void iot_key_of(struct inode *inode, struct iot_file_key *key)
{
	key->ino = IOT_READ_FAST(inode, i_ino);
	key->dev = iot_dev_of(inode);
	key->generation = IOT_READ_FAST(inode, i_generation);
}

static __always_inline u32 iot_mount_of(struct vfsmount *mnt)
{
	struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);

	return IOT_READ(m, mnt_id);
}

/* Where the absolute paths of a task start. src/loader/processes/existing.rs makes the same number. */
static __always_inline u64 iot_root_of(struct task_struct *task)
{
	return (u64)iot_mount_of(IOT_READ(task, fs, root.mnt)) << 32 ^ IOT_READ(task, fs, root.dentry, d_inode, i_ino);
}

/* Writes the name of a dentry. */
static __always_inline long iot_walk_name(struct iot_scratch *out, struct dentry *dentry)
{
	const unsigned char *name = IOT_READ_FAST(dentry, d_name.name);
	struct iot_walk *w = &out->walk;
	u32 pos = w->pos;
	long n;

	if (pos >= IOT_TEXT_MAX) {
		w->cut = 1;
		return 1;
	}
	barrier_var(pos); /* or the compiler removes the mask, from which Linux 6.1 knows the bounds */
	n = bpf_probe_read_kernel_str(&out->bytes[pos & (IOT_TEXT_MAX - 1)], 256, name);
	if (n < 0) {
		w->cut = 1;
		return 1;
	}
	w->pos = pos + n;
	return 0;
}

/* One step towards the root: writes a component, or crosses from a mount to what it is mounted on. */
static long iot_walk_step(u64 i, struct iot_scratch **of)
{
	struct iot_scratch *out = *of;
	struct iot_walk *w = &out->walk;
	struct dentry *dentry = (void *)w->dentry, *parent;
	struct vfsmount *mnt = (void *)w->mnt;

	if (w->dentry == out->root && w->mnt == out->root_mnt)
		return 1;
	if (dentry == IOT_READ_FAST(mnt, mnt_root)) {
		struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		struct mount *up = IOT_READ_FAST(m, mnt_parent);

		if (!out->mnt_root) {
			out->mnt_root = w->dentry;
			out->file.within = w->pos;
		}
		if (up == m)
			return 1;
		w->dentry = (u64)IOT_READ_FAST(m, mnt_mountpoint);
		w->mnt = (u64)up + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	parent = IOT_READ_FAST(dentry, d_parent);
	if (iot_walk_name(out, dentry) || parent == dentry) /* in no directory: memfd_create */
		return 1;
	w->dentry = (u64)parent;
	return 0;
}

/* One step towards the root of the file system. */
static long iot_walk_on(u64 i, struct iot_scratch **out)
{
	struct iot_walk *w = &(*out)->walk;
	struct dentry *dentry = (void *)w->dentry, *parent = IOT_READ_FAST(dentry, d_parent);

	if (parent == dentry || iot_walk_name(*out, dentry))
		return 1;
	w->dentry = (u64)parent;
	return 0;
}

/*
 * Writes the path of a dentry, as the current task sees it, into out->bytes, innermost component first. It ends at the root
 * directory of the task.
 */
__noinline int iot_walk_path(struct iot_scratch *out, u64 dentry, u64 mnt)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!out)
		return 0;
	out->root = (u64)IOT_READ(task, fs, root.dentry);
	out->root_mnt = (u64)IOT_READ(task, fs, root.mnt);
	out->mnt_root = 0;
	out->walk.dentry = dentry;
	out->walk.mnt = mnt;
	out->walk.pos = out->walk.cut = 0;
	if (bpf_loop(IOT_PATH_PARTS, iot_walk_step, &out, 0) == IOT_PATH_PARTS)
		out->walk.cut = 1;
	return 0;
}

/*
 * Sends what stands in out->bytes as a text of call (thread, seq). When it is lost, no call is. The kernel checks a function that
 * is not static once, and a static one for each call of it.
 */
__noinline int iot_send_as(struct iot_scratch *out, struct iot_task *t, u32 seq, u32 as, u32 len)
{
	u8 class = as >> 16, cut = as >> 8, what = as;
	struct iot_text *e;

	if (!out || !t)
		return 0;
	e = (void *)out->bytes - sizeof(*e);
	if (len > IOT_TEXT_MAX)
		len = IOT_TEXT_MAX;
	e->type = IOT_T_TEXT;
	e->what = what;
	e->cut = cut;
	e->pad = 0;
	e->len = len;
	e->thread = t->thread;
	e->seq = seq;
	e->time = t->now;
	e->root = what < IOT_X_INTS ? iot_root_of(bpf_get_current_task_btf()) : 0;
	return iot_send(class, 0, e, sizeof(*e) + len);
}

static __always_inline long iot_send_bytes(struct iot_scratch *out, u32 class, struct iot_task *t, u32 seq, u8 what,
					   u32 len, u8 cut)
{
	return iot_send_as(out, t, seq, class << 16 | !!cut << 8 | what, len);
}

/* A text that must not be lost: a name. */
static __always_inline void iot_send_text(struct iot_scratch *out, struct iot_task *t, u32 seq, u8 what, u32 len,
					  u8 cut)
{
	iot_send_bytes(out, IOT_C_LIFE, t, seq, what, len, cut);
}

static __always_inline void iot_send_dentry(struct iot_task *t, u32 seq, u8 what, struct dentry *dentry,
					    struct vfsmount *mnt)
{
	struct iot_scratch *out = iot_scratch();

	if (!out) {
		iot_lost(IOT_LOSS_TEXT, 0);
		return;
	}
	iot_walk_path(out, (u64)dentry, (u64)mnt);
	iot_send_text(out, t, seq, what, out->walk.pos, out->walk.cut);
}

/*
 * Writes the path of a file as iot_walk_path does, and behind it what the process does not see of its path in the file
 * system: another process may see the file by another mount.
 */
static __always_inline void iot_walk_file(struct iot_scratch *out, struct dentry *dentry, struct vfsmount *mnt)
{
	struct iot_file *e = &out->file;
	struct iot_walk *w = &out->walk;
	u32 len;

	iot_walk_path(out, (u64)dentry, (u64)mnt);
	e->cut = w->cut;
	len = w->pos;
	if (len > IOT_TEXT_MAX)
		len = IOT_TEXT_MAX;
	e->len = len;
	if (out->mnt_root)
		w->dentry = out->mnt_root;
	else
		e->within = len;
	bpf_loop(IOT_PATH_PARTS, iot_walk_on, &out, 0);
	e->more = w->pos - len;
	if (e->more > IOT_TEXT_MAX - len || w->cut) {
		e->more = 0;
		e->within = IOT_NOT_KNOWN;
	}
}

/*
 * The inode below a file of overlayfs. What is open below is in private_data, since Linux 6.13 behind a structure that
 * begins with it. A pointer leads to an open file if its dentry fits: it is that of the same inode, or, before Linux
 * 6.8, that of the file above.
 */
static __always_inline struct inode *iot_data_inode(struct file *file, struct inode *above)
{
	struct file *below;
	struct inode *inode, *named;

	if ((IOT_READ(above, i_mode) & S_IFMT) != S_IFREG || IOT_READ(above, i_sb, s_magic) != OVERLAYFS_MAGIC)
		return NULL;
	below = IOT_READ(file, private_data);
	inode = IOT_READ(below, f_inode);
	named = IOT_READ(below, f_path.dentry, d_inode);
	if (inode && (named == inode || named == above))
		return inode;
	if (bpf_probe_read_kernel(&below, sizeof(below), below))
		return NULL;
	inode = IOT_READ(below, f_inode);
	named = IOT_READ(below, f_path.dentry, d_inode);
	return inode && (named == inode || named == above) ? inode : NULL;
}

/* What is called how, from a name up to the root of its file system. */
struct iot_named {
	u64 dentry;
	u64 sum;
};

static long iot_named_step(u64 i, struct iot_named *n)
{
	struct dentry *dentry = (void *)n->dentry, *parent = IOT_READ_FAST(dentry, d_parent);

	if (parent == dentry)
		return 1;
	/* The kernel's hash of the name, which it makes together with the directory that the name is in. */
	n->sum = (n->sum ^ IOT_READ_FAST(dentry, d_name.hash_len)) * 0x9e3779b97f4a7c15ULL;
	n->dentry = (u64)parent;
	return 0;
}

/*
 * A number that changes when a file, or a directory that it is in, gets another name, by whomever: a rename changes the
 * dentry, which stays the file's.
 */
__noinline u64 iot_named(u64 dentry)
{
	struct iot_named n = {.dentry = dentry};

	bpf_loop(IOT_PATH_PARTS, iot_named_step, &n, 0);
	return n.sum;
}

/* Sends the path of an open file, unless it was sent already. */
static __noinline void iot_send_file(struct iot_task *t, struct file *file)
{
	struct dentry *dentry = IOT_READ(file, f_path.dentry);
	struct inode *inode = IOT_READ(file, f_inode), *data = iot_data_inode(file, inode);
	u64 *sent, value;
	struct iot_file_key key = {};
	struct iot_scratch *out;
	struct iot_file *e;
	u32 len;

	if (!t)
		return;
	iot_key_of(inode, &key);
	value = (u64)dentry ^ (u64)data << 1 ^ iot_named((u64)dentry);
	sent = bpf_map_lookup_elem(&iot_files, &key);
	if (sent && *sent == value)
		return;
	out = iot_scratch();
	if (!out) {
		iot_lost(IOT_LOSS_TEXT, 0);
		return;
	}
	e = &out->file;
	e->type = IOT_T_FILE;
	e->mode = IOT_READ(inode, i_mode);
	e->time = t->now;
	e->ino = key.ino;
	e->dev = key.dev;
	e->generation = key.generation;
	e->size = IOT_READ(inode, i_size);
	e->magic = IOT_READ(inode, i_sb, s_magic);
	e->root = iot_root_of(bpf_get_current_task_btf());
	e->mount = iot_mount_of(IOT_READ(file, f_path.mnt));
	e->tgid = t->tgid;
	e->nlink = IOT_READ(inode, i_nlink);
	e->blkbits = IOT_READ(inode, i_blkbits);
	e->fs_dev = IOT_READ(inode, i_sb, s_dev);
	__builtin_memset(e->fstype, 0, sizeof(e->fstype));
	bpf_probe_read_kernel_str(e->fstype, sizeof(e->fstype), IOT_READ(inode, i_sb, s_type, name));
	e->data_ino = data ? IOT_READ(data, i_ino) : 0;
	e->data_dev = data ? iot_dev_of(data) : 0;
	e->data_generation = data ? IOT_READ(data, i_generation) : 0;
	/* the last, or more would have to be kept than the stack has room for on Linux 6.1 */
	iot_walk_file(out, dentry, IOT_READ(file, f_path.mnt));
	len = e->len + e->more;
	if (len > IOT_TEXT_MAX)
		len = IOT_TEXT_MAX;
	if (!iot_send(IOT_C_LIFE, 0, out, sizeof(*e) + len))
		bpf_map_update_elem(&iot_files, &key, &value, BPF_ANY);
}

#endif
