/* SPDX-License-Identifier: GPL-2.0 */
/* How memory of the kernel is read: as BPF_CORE_READ does, without calls where the kernel has casts (Linux 6.2). */
#ifndef IOT_READ_H
#define IOT_READ_H

/* kernel/bpf/helpers.c; the verifier makes it a move. What is read through it and is not there is 0. */
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym __weak;

/*
 * The kernel's number of struct timespec64, which begins with a number of 64 bits: the verifier takes what is read by the type of
 * a pointer for a pointer, and those are none to calculate with. 0: there are no casts. Not by CO-RE, which gives up where
 * a kernel has two types of a name.
 */
const volatile u32 iot_word_type = 0;

#define iot_word(at) (((struct iot_word *)bpf_rdonly_cast((at), iot_word_type))->v)

struct iot_word {
	u64 v;
};

/* A word anywhere: 0 when it is not there. */
static __always_inline u64 iot_read_word(const void *at)
{
	u64 word = 0;

	if (iot_word_type)
		return iot_word(at);
	bpf_probe_read_kernel(&word, sizeof(word), at);
	return word;
}

/* Where a smaller member is in its word. None goes over the end of one. */
#define iot_part_of(s, member)                                                                                         \
	(iot_word((void *)(s) + (bpf_core_field_offset((s)->member) & ~7UL)) >>                                        \
	 (bpf_core_field_offset((s)->member) & 7) * 8)
#define iot_value(src, member)                                                                                         \
	({                                                                                                             \
		typeof(src) iot_s = (src);                                                                             \
		u64 iot_v;                                                                                             \
                                                                                                                       \
		if (sizeof(iot_s->member) == sizeof(u64))                                                              \
			iot_v = iot_word(&iot_s->member);                                                              \
		else                                                                                                   \
			iot_v = iot_part_of(iot_s, member);                                                            \
		(typeof(iot_s->member))iot_v;                                                                          \
	})

#define iot_value2(src, a)	    iot_value(src, a)
#define iot_value3(src, a, b)	    iot_value(iot_value(src, a), b)
#define iot_value4(src, a, b, c)    iot_value(iot_value3(src, a, b), c)
#define iot_value5(src, a, b, c, d) iot_value(iot_value4(src, a, b, c), d)

/* Of one member that is a number or a pointer. */
#define IOT_READ(src, ...)                                                                                             \
	(iot_word_type ? ___apply(iot_value, ___narg(src, ##__VA_ARGS__))(src, ##__VA_ARGS__)                          \
		       : BPF_CORE_READ(src, ##__VA_ARGS__))

#endif
