/* SPDX-License-Identifier: GPL-2.0 */
/* Files that targets map as code: which of them user space has looked at. */
#ifndef IOT_CODE_H
#define IOT_CODE_H

struct iot_lib_key {
	u64 ino;
	u32 dev;
	u32 generation; /* inodes are used again */
};

struct iot_lib {
	u32 state;
	u32 nsec; /* when it was last written: it is another file since */
	u64 sec;
};

/* Executable files seen in targets, and whether user space has attached to them yet. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct iot_lib_key);
	__type(value, struct iot_lib);
} iot_libs SEC(".maps");

/* Linux before 6.11, and before 6.6. */
struct inode___timespec {
	struct timespec64 __i_mtime;
} __attribute__((preserve_access_index));

struct inode___old {
	struct timespec64 i_mtime;
} __attribute__((preserve_access_index));

static __always_inline void iot_last_written(struct inode *inode, struct iot_lib *lib)
{
	struct inode___timespec *timespec = (void *)inode;
	struct inode___old *old = (void *)inode;

	if (bpf_core_field_exists(inode->i_mtime_sec)) {
		lib->sec = IOT_READ(inode, i_mtime_sec);
		lib->nsec = IOT_READ(inode, i_mtime_nsec);
	} else if (bpf_core_field_exists(timespec->__i_mtime)) {
		lib->sec = IOT_READ(timespec, __i_mtime.tv_sec);
		lib->nsec = IOT_READ(timespec, __i_mtime.tv_nsec);
	} else if (bpf_core_field_exists(old->i_mtime)) {
		lib->sec = IOT_READ(old, i_mtime.tv_sec);
		lib->nsec = IOT_READ(old, i_mtime.tv_nsec);
	}
}

/*
 * A target maps this file as code. User space looks at files that it has not classified, and at processes that need
 * probes.
 */
static __noinline void iot_mapped(struct file *file, bool moved)
{
	struct inode *inode = IOT_READ(file, f_inode);
	struct iot_lib_key key = {.ino = IOT_READ(inode, i_ino),
				  .dev = IOT_READ(inode, i_sb, s_dev),
				  .generation = IOT_READ(inode, i_generation)};
	struct iot_lib *known = bpf_map_lookup_elem(&iot_libs, &key), pending = {.state = IOT_LIB_PENDING};
	struct iot_map *e;
	void *ring;

	iot_last_written(inode, &pending);
	if (known && (known->sec != pending.sec || known->nsec != pending.nsec))
		known = NULL;
	if (known && known->state == IOT_LIB_REMEMBERED)
		known->state = IOT_LIB_CLASSIFIED;
	if (known && known->state == IOT_LIB_CLASSIFIED && !moved)
		return;
	if (!known && bpf_map_update_elem(&iot_libs, &key, &pending, BPF_ANY))
		iot_lost(IOT_LOSS_MAP_FULL, 0);
	ring = iot_ring_of(IOT_C_LIFE);
	e = ring ? bpf_ringbuf_reserve(ring, sizeof(*e), 0) : NULL;
	if (!e) {
		iot_lost(IOT_LOSS_RING, 0);
		return;
	}
	e->type = IOT_T_MAP;
	e->moved = moved;
	e->tgid = iot_tgid();
	e->time = bpf_ktime_get_ns();
	e->ino = key.ino;
	e->dev = key.dev;
	e->generation = key.generation;
	e->sec = pending.sec;
	e->nsec = pending.nsec;
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
}

#endif
