/* SPDX-License-Identifier: GPL-2.0 */
/* How memory of the kernel is read: as BPF_CORE_READ does, without calls where the kernel has casts (Linux 6.2). */
#ifndef IOT_READ_H
#define IOT_READ_H

/* kernel/bpf/helpers.c; the verifier makes it a move. What is read through it and is not there is 0. */
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym __weak;

#define iot_cast(src)	     ((typeof(src))bpf_rdonly_cast((src), bpf_core_type_id_kernel(typeof(*(src)))))
#define iot_follow(src, ...) ___apply(___arrow, ___narg(src, ##__VA_ARGS__))(src, ##__VA_ARGS__)

/*
 * A pointer that is read by its type is none to calculate with for the verifier. So it is read as a number, for which a type
 * is needed that begins with one.
 */
#define iot_word(at)	      (((struct timespec64 *)bpf_rdonly_cast((at), bpf_core_type_id_kernel(struct timespec64)))->tv_sec)
#define iot_is_pointer(value) (__builtin_classify_type(value) == 5)
#define iot_value(member)     __builtin_choose_expr(iot_is_pointer(member), (typeof(member))iot_word(&(member)), (member))

/* A word anywhere: 0 when it is not there. */
static __always_inline u64 iot_read_word(const void *at)
{
	u64 word = 0;

	if (bpf_ksym_exists(bpf_rdonly_cast))
		return iot_word(at);
	bpf_probe_read_kernel(&word, sizeof(word), at);
	return word;
}

/* Of one member that is a number or a pointer. */
#define IOT_READ(src, ...)                                                                                             \
	(bpf_ksym_exists(bpf_rdonly_cast) ? iot_value(iot_follow(iot_cast(src), ##__VA_ARGS__))                        \
					  : BPF_CORE_READ(src, ##__VA_ARGS__))

#endif
