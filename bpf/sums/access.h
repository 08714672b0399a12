/* SPDX-License-Identifier: GPL-2.0 */
/* Aggregate mode: how processes go through files, or what handles of libraries lead to, in calls of one layer. */
#ifndef IOT_ACCESS_H
#define IOT_ACCESS_H

#define IOT_SETS 16384 /* a power of two */
#define IOT_WAYS 8

struct iot_access {
	u64 mark;    /* identifies its key; 0: free */
	u64 last[2]; /* the last byte that was read, and written */
	u64 used;    /* when the last call began */
	u32 did;     /* what was done last: 1 read, 2 write */
	u32 pad;
};

struct iot_access_set {
	struct iot_access way[IOT_WAYS];
};

/*
 * 131 072 of them, 5 MB: each in one of the slots of the set that its mark selects. Of a set that is full the one is
 * forgotten that was not used for the longest time. An array: a look-up is a comparison and a multiplication, and what
 * was found once can be found again by its slot.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, IOT_SETS);
	__type(key, u32);
	__type(value, struct iot_access_set);
} iot_accesses SEC(".maps");

/* Process, layer, and file or handle in a number: different ones have different numbers, but for one in 2^63. */
static __always_inline u64 iot_mark_of(struct iot_sum_key *key, u32 layer)
{
	u64 mark = key->a * 0x9e3779b97f4a7c15;

	mark = ((mark ^ mark >> 32) + key->b) * 0xbf58476d1ce4e5b9;
	mark = ((mark ^ mark >> 29) + ((u64)key->process << 32 | layer << 16 | key->what)) * 0x94d049bb133111eb;
	return (mark ^ mark >> 32) | 1;
}

static __always_inline struct iot_access *iot_access_at(u32 slot)
{
	u32 number = slot / IOT_WAYS;
	struct iot_access_set *set = bpf_map_lookup_elem(&iot_accesses, &number);

	if (!set)
		return NULL;
	barrier_var(set); /* or the compiler calculates with it before it is known to be there */
	return &set->way[slot % IOT_WAYS];
}

/*
 * The slot of the one with this mark, which is made where there is none. IOT_NOT_KNOWN: others were faster. A function of its
 * own, which the kernel checks once: it would follow the rest of a sum for each way.
 */
__noinline u32 iot_access_find(u64 mark)
{
	u32 number = mark / (~0ULL / IOT_SETS + 1), oldest = 0;
	struct iot_access_set *set = bpf_map_lookup_elem(&iot_accesses, &number);
	struct iot_access *x;
	u64 before, seen;

	if (!iot_cfg.aggregate || !set)
		return IOT_NOT_KNOWN;
	barrier_var(set);
	for (u32 i = 0; i < IOT_WAYS; i++) {
		if (set->way[i].mark == mark)
			return number * IOT_WAYS + i;
		if (set->way[i].used < set->way[oldest % IOT_WAYS].used)
			oldest = i;
	}
	x = &set->way[oldest % IOT_WAYS];
	before = x->mark;
	seen = __sync_val_compare_and_swap(&x->mark, before, mark);
	if (seen == before && before) {
		x->last[0] = x->last[1] = 0;
		x->did = 0;
	}
	return seen == before || seen == mark ? number * IOT_WAYS + oldest : IOT_NOT_KNOWN;
}

#endif
