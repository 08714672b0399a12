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

struct iot_word {
	u64 v;
};

#define iot_cast_word(at) (((struct iot_word *)bpf_rdonly_cast((at), iot_word_type))->v)

/* A word anywhere: 0 when it is not there. What never runs stands behind a function's other code: see iot_word. */
static __always_inline u64 iot_inline_word(const void *at)
{
	u64 word = 0;

	if (__builtin_expect(iot_word_type != 0, 1))
		return iot_cast_word(at);
	bpf_probe_read_kernel(&word, sizeof(word), at);
	return word;
}

/*
 * The same by a call. Kernels remove branches that never run from a program one by one, and move all that stands behind
 * them: with one for each word that is read, this took a quarter of the CPU time until a trace begins.
 */
static __noinline u64 iot_word(const void *at)
{
	return iot_inline_word(at);
}

/* Where a smaller member is in its word. None goes over the end of one. */
#define iot_part_of(word, s, member)                                                                                   \
	(word((void *)(s) + (bpf_core_field_offset((s)->member) & ~7UL)) >>                                            \
	 (bpf_core_field_offset((s)->member) & 7) * 8)
#define iot_value(word, src, member)                                                                                   \
	({                                                                                                             \
		typeof(src) iot_s = (src);                                                                             \
		u64 iot_v;                                                                                             \
                                                                                                                       \
		if (sizeof(iot_s->member) == sizeof(u64))                                                              \
			iot_v = word((void *)&iot_s->member);                                                          \
		else                                                                                                   \
			iot_v = iot_part_of(word, iot_s, member);                                                      \
		(typeof(iot_s->member))iot_v;                                                                          \
	})

#define iot_value2(word, src, a)	  iot_value(word, src, a)
#define iot_value3(word, src, a, b)	  iot_value(word, iot_value(word, src, a), b)
#define iot_value4(word, src, a, b, c)	  iot_value(word, iot_value3(word, src, a, b), c)
#define iot_value5(word, src, a, b, c, d) iot_value(word, iot_value4(word, src, a, b, c), d)

/* Of one member that is a number or a pointer. */
#define IOT_READ(src, ...) ___apply(iot_value, ___narg(src, ##__VA_ARGS__))(iot_word, src, ##__VA_ARGS__)

/* The same without a call, for what each call of the program runs through. In the deepest chains 6.1 has no stack for one. */
#define IOT_READ_FAST(src, ...) ___apply(iot_value, ___narg(src, ##__VA_ARGS__))(iot_inline_word, src, ##__VA_ARGS__)

#endif
