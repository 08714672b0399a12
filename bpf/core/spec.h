/* SPDX-License-Identifier: GPL-2.0 */
/* One row of the catalog as the kernel side sees it, and the configuration of a run. src/loader/kernel/spec.rs fills them. */
#ifndef IOT_SPEC_H
#define IOT_SPEC_H

/* Where a value of a call comes from: a start, and what is done with it. Evaluated by bpf/core/value.h. */
struct iot_src {
	u8 from; /* enum iot_from */
	u8 then; /* enum iot_then */
	u8 a;
	u8 b;
	u8 at;
	u8 pad;
	u16 k;
};

/* An array of the program that goes with the record: elements of 4 or 8 bytes, or arrays that pointers lead to. */
struct iot_array_spec {
	u8 when; /* enum iot_when */
	u8 arg;
	u8 elem;  /* bytes of an element: 8, or a struct of ints */
	u8 count; /* enum iot_count */
	u8 n;
	u8 slot;  /* by which the reader distinguishes several arrays */
	u8 deref; /* enum iot_deref: elements are pointers to this many u64 */
	u8 rank;  /* the number of elements is a rank */
};

struct iot_spec {
	struct iot_src handle;
	struct iot_src len;
	struct iot_src off;
	struct iot_src got;
	u32 flags;  /* enum iot_spec_flag */
	s8 path[2]; /* argument, -1: none */
	s8 base[2]; /* argument with the directory descriptor; -1: the working directory */
	u32 only[2];
	u8 only_arg;
	u8 stat_arg;
	u8 fails; /* enum iot_fails */
	u8 layer; /* enum iot_layer */
	u8 kind;  /* enum iot_kind */
	u8 sums;  /* enum iot_sums_how */
	u8 brief; /* enum iot_brief_state */
	u8 about; /* enum iot_about_how, of a function inside the kernel */
	u8 quiet; /* a call with this result is not recorded; 0: there is none */
	u8 gives; /* the call is not recorded: its `got` becomes this inner value of the call it runs in; IOT_INNER_NONE */
	u8 pad[3];
	u8 wants[IOT_INNER_PER_CALL]; /* inner values it wants of what runs in it, in this order; IOT_INNER_NONE */
	struct iot_array_spec arrays[IOT_ARRAYS_PER_CALL];
};

static __always_inline bool iot_is_io_library(struct iot_spec *s)
{
	return s->layer >= IOT_LAYER_FIRST_IO_LIBRARY && s->layer <= IOT_LAYER_LAST_IO_LIBRARY;
}

/* The cookie of a library's probe: see enum iot_cookie. */
static __always_inline u32 iot_cookie_row(u64 cookie)
{
	return (u16)cookie;
}

static __always_inline bool iot_cookie_has(u64 cookie, enum iot_cookie bit)
{
	return cookie & (1ULL << bit);
}

struct iot_config {
	u32 shards;    /* rings of one class */
	u32 own;       /* our own process, never traced */
	u32 wakeup;    /* bytes in a ring that wake the reader */
	u32 rows;      /* of the catalog: the distance of the numbers of two copies of a library */
	u8 sockets;    /* sockets and pipes are recorded */
	u8 scope;      /* enum iot_scope */
	u8 aggregate;  /* calls and requests are summed up, and not sent one by one */
	u8 detail;     /* enum iot_detail_flag: which calls are recorded although they are summed up */
	u64 group;     /* IOT_ALL_OF_GROUP: its number */
	u32 pid_level; /* of our PID namespace; 0: the node's own */
	u32 pid_ns;    /* its inode */
	u32 room;      /* bytes in a ring of calls from which on only sums are sent */
	u32 room_less; /* the same of the other rings */
};

#endif
