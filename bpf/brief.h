/* SPDX-License-Identifier: GPL-2.0 */
/* Functions whose calls are shorter than their probe: user space is told when a thread makes too many of such calls. */
#ifndef IOT_BRIEF_H
#define IOT_BRIEF_H

#define IOT_BRIEF_CALLS 4096
#define IOT_BRIEF_SAME	256  /* so many of them are of the one that is looked at */
#define IOT_BRIEF_NS	1500 /* as its probe measures a call that does next to nothing it takes 0.3 to 0.7 us */

/*
 * A call of such a function is over. Of several functions one is looked at, the one that began the window: the next window may
 * be another's. Its calls must be brief, and those of all come more often than one in iot_cfg.every ns.
 */
__noinline int iot_brief(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u64 now)
{
	struct iot_brief *b;
	u64 elapsed, took;
	u32 row;

	if (!iot_cfg.every || !t || !s || !f || s->brief != IOT_BRIEF_MAY)
		return 0;
	b = &t->brief;
	row = f->spec + f->copy * iot_cfg.rows + 1;
	if (!b->calls) {
		b->row = row;
		b->since = f->start;
		b->same = b->took = 0;
	}
	if (b->row == row) {
		b->same++;
		took = b->took + (now - f->start);
		b->took = took < (u32)-1 ? took : (u32)-1;
	}
	if (++b->calls < IOT_BRIEF_CALLS)
		return 0;
	b->calls = 0;
	elapsed = now - b->since;
	if (IOT_BRIEF_CALLS * (u64)iot_cfg.every > elapsed && b->same >= IOT_BRIEF_SAME &&
	    b->took < b->same * IOT_BRIEF_NS) {
		struct iot_busy e = {
			.type = IOT_T_BUSY,
			.spec = row - 1,
			.time = now,
			.elapsed = elapsed,
			.calls = b->same,
			.took = b->took,
		};

		void *ring = iot_ring_of(IOT_C_LIFE);

		/* when there is no room, the next window tells it */
		if (ring)
			bpf_ringbuf_output(ring, &e, sizeof(e), BPF_RB_FORCE_WAKEUP);
	}
	return 0;
}

#endif
