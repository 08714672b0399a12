/* SPDX-License-Identifier: GPL-2.0 */
/* Functions whose probes cost more than they show: user space is notified when a thread makes too many such calls. */
#ifndef IOT_BRIEF_H
#define IOT_BRIEF_H

#define IOT_BRIEF_CALLS 4096
#define IOT_BRIEF_SAME	256 /* so many of them are of the one that is looked at */

#define IOT_CHAT_CALLS	1024
#define IOT_CHAT_NS	10000000 /* in which at least that many were made: a burst is none */
#define IOT_LONG_NS	20000000 /* a call of an I/O library that is worth to be seen with all that is in it */

u64 iot_looking;     /* since then all probes that are paused are back, for a moment; 0: they are not */
u32 iot_window;	     /* number of this moment; 0: there was none yet */
u32 iot_window_most; /* calls of one thread in it */
u32 iot_recalled;    /* user space was notified that they are wanted */

static __always_inline void iot_send_busy(u32 spec, u64 now, u64 elapsed, u32 calls, u32 took)
{
	struct iot_busy e = {
		.type = IOT_T_BUSY,
		.spec = spec,
		.time = now,
		.elapsed = elapsed,
		.calls = calls,
		.took = took,
	};
	void *ring = iot_ring_of(IOT_C_LIFE);

	/* when there is no room, the next window reports it */
	if (ring)
		bpf_ringbuf_output(ring, &e, sizeof(e), BPF_RB_FORCE_WAKEUP);
}

/* A function is called whose probe may go for a while, inside I/O or not: what is not recorded costs as much. */
__noinline int iot_chats(struct iot_task *t, u32 spec)
{
	struct iot_chat *c;
	u64 now, elapsed;

	if (!iot_fixed.every || !t)
		return 0;
	c = &t->chat;
	if (c->window != iot_window) {
		c->window = iot_window;
		c->calls = 0;
	}
	if (iot_paused) {
		if (iot_looking && ++c->calls > iot_window_most)
			iot_window_most = c->calls;
		return 0;
	}
	c->calls++;
	if (c->calls > 1 && c->calls < IOT_CHAT_CALLS)
		return 0;
	now = bpf_ktime_get_ns();
	if (c->calls == 1) {
		c->since = now;
		return 0;
	}
	elapsed = now - c->since;
	if (elapsed < IOT_CHAT_NS)
		return 0;
	if (c->calls * (u64)iot_fixed.every > elapsed)
		iot_send_busy(spec, now, elapsed, c->calls, 0);
	c->calls = 0;
	return 0;
}

/* A call of an I/O library is over that took long: what MPI did in the next one is wanted. */
static __always_inline void iot_recall(struct iot_spec *s, struct iot_frame *f, u64 now)
{
	if (!iot_paused || iot_recalled || !iot_is_io_library(s) || now - f->start < IOT_LONG_NS)
		return;
	iot_recalled = 1;
	iot_send_busy(f->spec, now, now - f->start, 0, 0);
}

/*
 * A call of such a function is over. Of several functions one is looked at, the one that began the window: the next window may
 * be another's. Its calls must be shorter than its probe, and those of all come more often than one in iot_fixed.every ns.
 */
__noinline int iot_brief(struct iot_task *t, struct iot_spec *s, struct iot_frame *f, u64 now)
{
	struct iot_brief *b;
	u64 elapsed, took;
	u32 row;

	if (!iot_fixed.every || !t || !s || !f)
		return 0;
	iot_recall(s, f, now);
	if (s->brief != IOT_BRIEF_MAY)
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
	if (IOT_BRIEF_CALLS * (u64)iot_fixed.every > elapsed && b->same >= IOT_BRIEF_SAME &&
	    b->took < b->same * (u64)iot_fixed.probe)
		iot_send_busy(row - 1, now, elapsed, b->same, b->took);
	return 0;
}

#endif
