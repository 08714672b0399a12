/* SPDX-License-Identifier: GPL-2.0 */
/* Requests that calls of I/O libraries submitted, and that calls of MPI may wait for. */
#ifndef IOT_PROMISE_H
#define IOT_PROMISE_H

#define IOT_WAIT_LISTS 512

/* Requests that I/O calls made and that others wait for. */
struct iot_promise {
	u64 value;
	u32 tgid;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct iot_promise);
	__type(value, u8);
} iot_promises SEC(".maps");

static __noinline void iot_submitted(struct iot_task *t, u64 value)
{
	struct iot_promise key = {.value = value};
	u8 one = 1;

	if (!t)
		return;
	key.tgid = t->tgid;
	bpf_map_update_elem(&iot_promises, &key, &one, BPF_ANY);
}

struct iot_await {
	struct iot_promise key;
	u64 base;
	u32 count;
	u8 elem;
	u8 found;
	u8 all; /* they will all be complete: forget them */
};

static long iot_await_step(u64 i, struct iot_await *w)
{
	s32 number;

	if (i >= w->count)
		return 1;
	if (w->elem == 4) {
		if (bpf_probe_read_user(&number, sizeof(number), (void *)(w->base + i * 4)))
			return 1;
		w->key.value = (s64)number;
	} else if (bpf_probe_read_user(&w->key.value, sizeof(w->key.value), (void *)(w->base + i * 8))) {
		return 1;
	}
	if (!bpf_map_lookup_elem(&iot_promises, &w->key))
		return 0;
	w->found = 1;
	if (!w->all)
		return 1;
	bpf_map_delete_elem(&iot_promises, &w->key);
	return 0;
}

/* Does this call wait for a request of an I/O call? */
__noinline bool iot_awaits(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	struct iot_await w = {};

	if (!t || !s || !f)
		return false;
	w.key.tgid = t->tgid;
	if (s->arrays[0].when != IOT_READ_AT_ENTRY) {
		w.key.value = f->in;
		return f->in && bpf_map_lookup_elem(&iot_promises, &w.key);
	}
	w.base = iot_arg(f, s->arrays[0].arg);
	w.count = iot_array_count(&s->arrays[0], f, 0);
	w.elem = s->arrays[0].elem;
	w.all = !!(s->flags & IOT_S_ALL);
	bpf_loop(IOT_WAIT_LISTS, iot_await_step, &w, 0);
	return w.found;
}

/* A request that is complete does not stand where it stood: its name will be that of another. */
static __noinline void iot_fulfilled(struct iot_task *t, struct iot_spec *s, struct iot_frame *f)
{
	struct iot_promise key = {};
	u64 now = 0;

	if (!t || !s || !f)
		return;
	key.value = f->in;
	key.tgid = t->tgid;
	if (s->handle.from != IOT_FROM_IN || !iot_read_in(s, f, &now))
		return;
	if (now != f->in)
		bpf_map_delete_elem(&iot_promises, &key);
}

#endif
