/* SPDX-License-Identifier: GPL-2.0 */
/* Rings by class and CPU, loss counters: the only way a record leaves the kernel. */
#ifndef IOT_RING_H
#define IOT_RING_H

struct iot_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct iot_ring);
} iot_rings SEC(".maps");

/* By layer in one value: they are read five times a second, with a system call for each key. */
struct iot_loss_counts {
	u64 layers[IOT_LAYERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, IOT_LOSS_KINDS);
	__type(key, u32);
	__type(value, struct iot_loss_counts);
} iot_losses SEC(".maps");

const volatile struct iot_config iot_cfg = {};

static __always_inline void iot_lost(enum iot_loss loss, u32 layer)
{
	u32 key = loss;
	struct iot_loss_counts *counts = bpf_map_lookup_elem(&iot_losses, &key);

	if (counts)
		__sync_fetch_and_add(&counts->layers[layer & (IOT_LAYERS - 1)], 1);
}

static __always_inline void *iot_ring_of(u32 class)
{
	u32 shards = iot_cfg.shards ?: 1, cpu = bpf_get_smp_processor_id();
	u32 key = class * shards + (cpu < shards ? cpu : cpu % shards);

	return bpf_map_lookup_elem(&iot_rings, &key);
}

/* A wake-up costs more than a hundred records, so the reader polls and is woken only when a ring fills. */
static __always_inline u64 iot_wakeup(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >= iot_cfg.wakeup ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline long iot_output(u32 class, void *record, u64 size)
{
	void *ring = iot_ring_of(class);

	return ring ? bpf_ringbuf_output(ring, record, size, iot_wakeup(ring)) : -1;
}

/*
 * Sends a record that was built elsewhere; counts it when the ring is full. The losses of a layer are its calls, or requests:
 * records of something else have no layer (0).
 */
static __always_inline long iot_send(u32 class, u32 layer, void *record, u64 size)
{
	long err = iot_output(class, record, size);

	if (err)
		iot_lost(IOT_LOSS_RING, layer);
	return err;
}

/* Sends the record of something that is in the sums, too. */
static __always_inline void iot_send_detail(u32 class, u32 layer, void *record, u64 size)
{
	void *ring = iot_ring_of(class);
	bool full = ring && class != IOT_C_CALL && bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > iot_cfg.room_less;

	if (full || iot_output(class, record, size))
		iot_lost(IOT_LOSS_DETAIL, layer);
}

#endif
