/* SPDX-License-Identifier: GPL-2.0 */
/* What is mapped at an address of the current task. */
#ifndef IOT_MAPPING_H
#define IOT_MAPPING_H

#define VM_SHARED 8 /* include/linux/mm.h */
#define ENOENT	  2
#define IOT_PAGE  (1ULL << IOT_PAGE_SHIFT)

struct iot_mapping {
	u64 address;
	struct file *file;
	u64 off;
	u64 shared;
};

static long iot_vma_step(struct task_struct *task, struct vm_area_struct *vma, struct iot_mapping *m)
{
	m->file = IOT_READ(vma, vm_file);
	m->off = (m->address & ~(IOT_PAGE - 1)) - IOT_READ(vma, vm_start) + (IOT_READ(vma, vm_pgoff) << IOT_PAGE_SHIFT);
	m->shared = IOT_READ(vma, vm_flags) & VM_SHARED;
	return 0;
}

/* The file that a call on a mapping is about; its offset there takes the place of the address. Null: memory without a file. */
static __noinline struct file *iot_mapped_file(struct iot_frame *f)
{
	struct iot_mapping m = {};
	long err;

	if (!f)
		return NULL;
	m.address = f->a[0];
	err = bpf_find_vma(bpf_get_current_task_btf(), m.address, iot_vma_step, &m, 0);
	/* another thread is changing the mappings */
	if (err && err != -ENOENT)
		iot_lost(IOT_LOSS_MAPPING, IOT_LAYER_SYSCALL);
	f->a[0] = m.off;
	return m.file;
}

#endif
