/* SPDX-License-Identifier: GPL-2.0 */
/* Files and names: identity of an inode, the path of a dentry, strings of the traced program. */
#ifndef IOT_PATH_H
#define IOT_PATH_H

#define IOT_PATH_PARTS	 64
#define S_IFMT		 00170000
#define S_IFDIR		 0040000
#define S_IFBLK		 0060000
#define S_IFREG		 0100000
#define S_IFIFO		 0010000
#define S_IFSOCK	 0140000
#define PROC_SUPER_MAGIC 0x9fa0 /* include/uapi/linux/magic.h */
#define SYSFS_MAGIC	 0x62656572
#define O_DIRECT	 00040000
#define AT_FDCWD	 -100

struct iot_file_key {
	u64 ino;
	u32 dev;
	u32 generation;
};

/* Files whose path the reader was told, and the dentry it was told. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct iot_file_key);
	__type(value, u64);
} iot_files SEC(".maps");

/* `task` is the current one as bpf_get_current_task_btf gives it: loads through it are checked and cost no helper. */
static __always_inline struct file *iot_fd_file(struct task_struct *task, u32 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *fdt = files ? files->fdt : NULL;
	struct file *file = NULL;

	if (!fdt || fd >= fdt->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd);
	return file;
}

/* A socket or a pipe: nothing in it has an offset. */
static __always_inline bool iot_streams(struct inode *inode)
{
	u16 mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;

	return mode == S_IFSOCK || mode == S_IFIFO;
}

/* Regular files, directories and block devices outside /proc and /sys; the rest is counted and left out. */
static __always_inline bool iot_file_wanted(struct inode *inode)
{
	u16 mode = BPF_CORE_READ(inode, i_mode);
	u64 magic = BPF_CORE_READ(inode, i_sb, s_magic);

	mode &= S_IFMT;
	if (iot_cfg.sockets && (mode == S_IFSOCK || mode == S_IFIFO))
		return true;
	if (mode != S_IFREG && mode != S_IFDIR && mode != S_IFBLK)
		return false;
	return magic != PROC_SUPER_MAGIC && magic != SYSFS_MAGIC;
}

static __always_inline void iot_key_of(struct inode *inode, struct iot_file_key *key)
{
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->generation = BPF_CORE_READ(inode, i_generation);
}

static __always_inline u32 iot_mount_of(struct vfsmount *mnt)
{
	struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);

	return BPF_CORE_READ(m, mnt_id);
}

/* Where the absolute paths of a task start. src/loader/existing.rs makes the same number. */
static __always_inline u64 iot_root_of(struct task_struct *task)
{
	return (u64)iot_mount_of(BPF_CORE_READ(task, fs, root.mnt)) << 32 ^
	       BPF_CORE_READ(task, fs, root.dentry, d_inode, i_ino);
}

struct iot_walk {
	struct dentry *dentry;
	struct vfsmount *mnt;
	struct dentry *root; /* paths end here: the task's root directory */
	struct vfsmount *root_mnt;
	struct iot_scratch *out;
	u32 pos;
	u32 cut;
};

/* One step towards the root: writes a component, or crosses from a mount to what it is mounted on. */
static long iot_walk_step(u64 i, struct iot_walk *w)
{
	struct dentry *dentry = w->dentry, *parent;
	struct vfsmount *mnt = w->mnt; /* a local: CO-RE would relocate w's own members */
	const unsigned char *name;
	u32 pos = w->pos;
	long n;

	if (dentry == w->root && mnt == w->root_mnt)
		return 1;
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		struct mount *up = BPF_CORE_READ(m, mnt_parent);

		if (up == m)
			return 1;
		w->dentry = BPF_CORE_READ(m, mnt_mountpoint);
		w->mnt = (void *)up + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	/* what is in no directory, such as memfd_create makes, still has a name */
	if (parent == dentry && i)
		return 1;
	if (pos >= IOT_TEXT_MAX) {
		w->cut = 1;
		return 1;
	}
	name = BPF_CORE_READ(dentry, d_name.name);
	n = bpf_probe_read_kernel_str(&w->out->bytes[pos & (IOT_TEXT_MAX - 1)], 256, name);
	if (n < 0) {
		w->cut = 1;
		return 1;
	}
	w->pos = pos + n;
	w->dentry = parent;
	return 0;
}

/* Writes the path of a dentry, as the current task sees it, into out->bytes, innermost component first; its length. */
static __always_inline u32 iot_walk_path(struct iot_scratch *out, struct dentry *dentry, struct vfsmount *mnt, u8 *cut)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct iot_walk w = {.dentry = dentry,
			     .mnt = mnt,
			     .root = BPF_CORE_READ(task, fs, root.dentry),
			     .root_mnt = BPF_CORE_READ(task, fs, root.mnt),
			     .out = out};

	if (bpf_loop(IOT_PATH_PARTS, iot_walk_step, &w, 0) == IOT_PATH_PARTS)
		w.cut = 1;
	*cut = w.cut;
	return w.pos;
}

/* Sends what stands in out->bytes as a text of call (thread, seq). */
static __always_inline long iot_send_bytes(struct iot_scratch *out, u32 class, u32 layer, struct iot_task *t, u32 seq,
					   u8 what, u32 len, u8 cut)
{
	struct iot_text *e = (void *)out->bytes - sizeof(*e);

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
	return iot_send(class, layer, e, sizeof(*e) + len);
}

/* A text that must not be lost: a name. */
static __always_inline void iot_send_text(struct iot_scratch *out, struct iot_task *t, u32 seq, u8 what, u32 len,
					  u8 cut)
{
	iot_send_bytes(out, IOT_C_LIFE, 0, t, seq, what, len, cut);
}

static __always_inline void iot_send_dentry(struct iot_task *t, u32 seq, u8 what, struct dentry *dentry,
					    struct vfsmount *mnt)
{
	struct iot_scratch *out = iot_scratch();
	u32 len;
	u8 cut;

	if (!out) {
		iot_lost(IOT_P_TEXT, 0);
		return;
	}
	len = iot_walk_path(out, dentry, mnt, &cut);
	iot_send_text(out, t, seq, what, len, cut);
}

/* Tells the reader the path of an open file, unless it was told already. */
static __noinline void iot_send_file(struct iot_task *t, struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct iot_file_key key = {};
	struct iot_scratch *out;
	u64 *told, value = (u64)dentry;
	struct iot_file *e;
	u32 len;

	if (!t)
		return;
	iot_key_of(inode, &key);
	told = bpf_map_lookup_elem(&iot_files, &key);
	if (told && *told == value)
		return;
	out = iot_scratch();
	if (!out) {
		iot_lost(IOT_P_TEXT, 0);
		return;
	}
	e = &out->file;
	len = iot_walk_path(out, dentry, BPF_CORE_READ(file, f_path.mnt), &e->cut);
	if (len > IOT_TEXT_MAX)
		len = IOT_TEXT_MAX;
	e->type = IOT_T_FILE;
	e->mode = BPF_CORE_READ(inode, i_mode);
	e->len = len;
	e->time = t->now;
	e->ino = key.ino;
	e->dev = key.dev;
	e->generation = key.generation;
	e->size = BPF_CORE_READ(inode, i_size);
	e->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	e->root = iot_root_of(bpf_get_current_task_btf());
	e->mount = iot_mount_of(BPF_CORE_READ(file, f_path.mnt));
	e->tgid = t->tgid;
	if (!iot_send(IOT_C_LIFE, 0, out, sizeof(*e) + len))
		bpf_map_update_elem(&iot_files, &key, &value, BPF_ANY);
}

#endif
