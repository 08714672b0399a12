/* SPDX-License-Identifier: GPL-2.0 */
/* Aggregate mode: the figures of a sum, and how something is added to one. */
#ifndef IOT_FIGURE_H
#define IOT_FIGURE_H

#define IOT_SIZES	 10 /* of reads and writes, as Darshan has them */
#define IOT_COMMON	 4
#define IOT_BUCKETS	 252 /* src/base/hist.rs: 4 to a power of two */
#define IOT_BUCKET_BITS	 2
#define IOT_TIME_BUCKETS 180 /* of them, those of what is below 2^IOT_DUR_BITS ns */
#define IOT_TRIES	 4

/* The values that are there most often: the first few that came, and how many others did. */
struct iot_common {
	u64 value[IOT_COMMON]; /* plus 1; 0: none */
	u32 n[IOT_COMMON];
	u64 others;
};

/*
 * Of a number below 2^63. Without branches: the verifier would follow every way through them, which are many together.
 * (end - v) >> 63 is whether v is greater than end.
 */
static __always_inline u32 iot_log2(u64 v)
{
	u32 n = 0;

#pragma unroll
	for (u32 bits = 32; bits; bits >>= 1) {
		u64 more = ((((u64)1 << bits) - 1 - v) >> 63) * bits;

		v >>= more;
		n += more;
	}
	return n;
}

/* `shared`: other programs may add to it at the same time. */
static __always_inline void iot_add(u64 *to, u64 n, bool shared)
{
	if (!shared)
		*to += n;
	else if (n)
		__sync_fetch_and_add(to, n);
}

static __always_inline void iot_count(u32 *to, bool shared)
{
	if (shared)
		__sync_fetch_and_add(to, 1);
	else
		*to += 1;
}

/*
 * What others may add to at the same time. Functions of their own, which the kernel checks once: it follows every way through
 * the tries, and would do so wherever they are used.
 */
__noinline int iot_raise_shared(u64 *at, u64 v)
{
	u64 old;

	if (!iot_cfg.aggregate || !at)
		return 0;
	old = *at;
	for (u32 i = 0; i < IOT_TRIES && old < v; i++) {
		u64 seen = __sync_val_compare_and_swap(at, old, v);

		if (seen == old)
			return 1;
		old = seen;
	}
	return 0;
}

__noinline int iot_lower_shared(u64 *at, u64 v)
{
	u64 old;

	if (!iot_cfg.aggregate || !at)
		return 0;
	old = *at;
	for (u32 i = 0; i < IOT_TRIES && (!old || old > v); i++) {
		u64 seen = __sync_val_compare_and_swap(at, old, v);

		if (seen == old)
			return 0;
		old = seen;
	}
	return 0;
}

__noinline int iot_common_add_shared(struct iot_common *c, u64 v)
{
	if (!iot_cfg.aggregate || !c)
		return 0;
	for (u32 i = 0; i < IOT_COMMON; i++) {
		u64 known = c->value[i];

		if (!known)
			known = __sync_val_compare_and_swap(&c->value[i], 0, v + 1) ?: v + 1;
		if (known == v + 1) {
			iot_count(&c->n[i], true);
			return 1;
		}
	}
	iot_add(&c->others, 1, true);
	return 0;
}

/* Returns whether it was less. */
static __always_inline bool iot_raise(u64 *at, u64 v, bool shared)
{
	u64 old = *at;

	if (shared)
		return iot_raise_shared(at, v);
	if (old < v)
		*at = v;
	return old < v;
}

/* 0 stands for nothing. */
static __always_inline void iot_lower(u64 *at, u64 v, bool shared)
{
	u64 old = *at;

	if (shared)
		iot_lower_shared(at, v);
	else if (!old || old > v)
		*at = v;
}

/* Returns whether the value is one of those that are counted by themselves. */
static __always_inline bool iot_common_add(struct iot_common *c, u64 v, bool shared)
{
	if (shared)
		return iot_common_add_shared(c, v);
	for (u32 i = 0; i < IOT_COMMON; i++) {
		u64 known = c->value[i];

		if (!known)
			known = c->value[i] = v + 1;
		if (known == v + 1) {
			iot_count(&c->n[i], false);
			return true;
		}
	}
	iot_add(&c->others, 1, false);
	return false;
}

/* Up to 100 bytes, 1, 10 and 100 KiB, 1, 4, 10 and 100 MiB, 1 GiB, and more: the bins of Darshan (darshan-common.h). */
static __always_inline u32 iot_size_class(u64 bytes)
{
#define IOT_ABOVE(end) (((u64)(end)-bytes) >> 63)
	return IOT_ABOVE(100) + IOT_ABOVE(1 << 10) + IOT_ABOVE(10 << 10) + IOT_ABOVE(100 << 10) + IOT_ABOVE(1 << 20) +
	       IOT_ABOVE(4 << 20) + IOT_ABOVE(10 << 20) + IOT_ABOVE(100 << 20) + IOT_ABOVE(1 << 30);
#undef IOT_ABOVE
}

static __always_inline u32 iot_bucket(u64 v)
{
	u32 shift;

	if (v < 1 << IOT_BUCKET_BITS)
		return v;
	shift = iot_log2(v) - IOT_BUCKET_BITS;
	return ((shift + 1) << IOT_BUCKET_BITS) + (u32)(v >> shift) - (1 << IOT_BUCKET_BITS);
}

#endif
