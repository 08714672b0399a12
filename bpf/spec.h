/* SPDX-License-Identifier: GPL-2.0 */
/* One row of the catalog as the kernel side sees it, and the configuration of a run. src/loader/kernel/spec.rs fills them. */
#ifndef IOT_SPEC_H
#define IOT_SPEC_H

/* Where a value of a call comes from; see catalog::Src for the meaning of each. */
enum iot_how {
	IOT_NONE = 0,
	IOT_ARG,
	IOT_INT,
	IOT_IN,
	IOT_OUT,
	IOT_MUL,
	IOT_TYPED,  /* argument a, an int, times the u64 at argument b + k */
	IOT_STRLEN, /* plus k */
	IOT_RET,
	IOT_RET_TIMES,
	IOT_STATUS, /* the u64 at argument a + k, if a is not null */
	IOT_ASKED,
	IOT_IOV,
	IOT_POS,
	IOT_TYPED_LONG, /* argument a times the u64 at argument b + k */
	IOT_IN_INT,	/* the int at argument a, read at entry */
	IOT_OUT_INT,	/* the int at argument a, read at return */
	IOT_FIELD,	/* the u64 at argument a + k, if a is not null */
	IOT_FIELD_INT,
	IOT_NOTE,	  /* note a */
	IOT_NOTES,	  /* note a times note b */
	IOT_COUNT_NOTE,	  /* argument a, an int, times note b */
	IOT_ARG_NOTE,	  /* argument a times note b */
	IOT_STATUS_SPLIT, /* the count of an MPICH status at argument a, k bytes into it */
	IOT_TYPED_NUMBER, /* argument a, an int, times the size in argument b, a predefined datatype of MPICH */
	IOT_THROUGH,	  /* the int b bytes behind the pointer at argument a + k */
	IOT_RET_INT,	  /* the result, an int */
	IOT_ROUNDS,	  /* the sum of note b times note k over as many rounds as argument a says */
	IOT_CONST,	  /* k */
	IOT_GLOBAL,	  /* the pointer that the probe's cookie leads to, at entry */
	IOT_STREAM_POS,	  /* k: the call writes */
	IOT_STREAM_END,
	IOT_STREAM_MOVED,
	IOT_MPI_SIZE, /* argument a times the size of the MPI datatype b: a predefined one of MPICH, else u64 at b + k */
	IOT_BEHIND,   /* the u64 at k from where the pointer at argument a leads */
	IOT_BEHIND_INT, /* the int there */
	IOT_RET_BEHIND, /* the u64 at k from where the pointer at the result leads */
	IOT_PAIR,	/* two ints: argument a in the low half, argument b above */
	IOT_PAIR_NOTE,	/* argument a in the low half, note b + 1 above (0: not told) */
	IOT_PAIR_OUT,	/* argument a in the low 16 bits, the int at argument b above */
	IOT_SCALED,	/* argument a times k */
	IOT_RET_SCALED, /* the result times k */
	IOT_MESSAGE,	/* the sum of the vector in the struct msghdr at argument a */
	IOT_CLOEXEC,	/* is the descriptor that is the result, or else argument 0, closed by an exec? */
};

struct iot_src {
	u8 how;
	u8 a;
	u8 b;
	u8 pad;
	u32 k;
};

/* An array of the program that goes with the record: elements of 4 or 8 bytes, or arrays that pointers lead to. */
struct iot_array_spec {
	u8 when; /* enum iot_when */
	u8 arg;
	u8 elem;  /* bytes of an element: 8, or a struct of ints */
	u8 count; /* enum iot_count */
	u8 n;
	u8 slot;  /* how the reader tells several arrays apart */
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
	u8 note;  /* the call is not recorded: its `got` becomes this note of the call it runs in; IOT_NO_NOTE */
	u8 pad[3];
	u8 takes[IOT_NOTES_PER_CALL]; /* notes the call wants of what runs in it, in this order; IOT_NO_NOTE */
	struct iot_array_spec arrays[IOT_ARRAYS_PER_CALL];
};

/* The cookie of a library's probe: see enum iot_cookie. */
static __always_inline u32 iot_cookie_row(u64 cookie)
{
	return cookie & ((1 << IOT_COOKIE_COPY) - 1);
}

static __always_inline bool iot_cookie_has(u64 cookie, enum iot_cookie bit)
{
	return cookie >> bit & 1;
}

struct iot_config {
	u32 shards;    /* rings of one class */
	u32 own;       /* our own process, never traced */
	u32 wakeup;    /* bytes in a ring that wake the reader */
	u32 rows;      /* of the catalog: the distance of the numbers of two copies of a library */
	u8 sockets;    /* sockets and pipes are recorded */
	u8 scope;      /* enum iot_scope */
	u8 aggregate;  /* calls and requests are summed up, and not told one by one */
	u8 detail;     /* enum iot_detail_flag: which calls are told although they are summed up */
	u32 every;     /* ns: a function whose calls come more often in a thread is demoted; 0: none is */
	u64 group;     /* IOT_ALL_OF_GROUP: its number */
	u32 pid_level; /* of our PID namespace; 0: the node's own */
	u32 pid_ns;    /* its inode */
	u32 room;      /* bytes in a ring of calls from which on nothing is told besides the sums */
	u32 room_less; /* the same of the other rings */
};

#endif
