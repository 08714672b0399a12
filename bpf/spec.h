/* SPDX-License-Identifier: GPL-2.0 */
/* One row of the catalog as the kernel side sees it, and the configuration of a run. src/loader/spec.rs fills them. */
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
	IOT_TYPED, /* argument a times the u64 at argument b + k */
	IOT_STRLEN,
	IOT_RET,
	IOT_RET_TIMES,
	IOT_STATUS, /* the u64 at argument a + k, if a is not null */
	IOT_ASKED,
	IOT_IOV,
	IOT_POS,
	IOT_SCALED,	/* argument a times k */
	IOT_RET_SCALED, /* the result times k */
};

struct iot_src {
	u8 how;
	u8 a;
	u8 b;
	u8 pad;
	u32 k;
};

enum iot_fails {
	IOT_FAILS_NEVER = 0,
	IOT_FAILS_NEGATIVE,
	IOT_FAILS_NEGATIVE_INT,
	IOT_FAILS_ZERO,
	IOT_FAILS_NONZERO,
	IOT_FAILS_EOF,
};

/* iot_spec.bits */
#define IOT_S_LIFE   0x01 /* opens, closes, renames: goes to the ring that must not lose */
#define IOT_S_FD     0x02 /* the first argument is a descriptor, looked up at entry */
#define IOT_S_FD_RET 0x04 /* the result is a descriptor of a file opened by name */
#define IOT_S_STAT   0x08 /* argument stat_arg is filled with a struct stat */
#define IOT_S_STATX  0x10 /* ... struct statx */
#define IOT_S_ONLY   0x20 /* only when argument only_arg is one of only[] */
#define IOT_S_PHASE  0x40 /* a phase: its beginning is told, too */

struct iot_spec {
	struct iot_src handle;
	struct iot_src len;
	struct iot_src off;
	struct iot_src got;
	s8 path[2]; /* argument, -1: none */
	s8 base[2]; /* argument with the directory descriptor; -1: the working directory */
	u8 fails;
	u8 layer;
	u8 bits;
	u8 stat_arg;
	u32 only[2];
	u32 only_arg;
};

/* What a library probe's cookie says besides the row of the catalog, which is its low 16 bits. */
#define IOT_K_ROW 0xffff
#define IOT_K_PLACES                                                                                                   \
	0x10000 /* entry of a function without return probe: probes at its return instructions tell its end */
#define IOT_K_LEAVE	 0x20000 /* one of these instructions */
#define IOT_K_JUMP	 0x40000 /* a jump out of such a function: it may go on in another one */

#define IOT_MAX_SPECS	 4096
#define IOT_MAX_SYSCALLS 512

struct iot_config {
	u32 shards; /* rings of one class */
	u32 self;   /* our own process, never traced */
	u32 wakeup; /* bytes in a ring that wake the reader */
	u8 hold;    /* stop a target that maps an unjudged file until it is judged */
	u8 pad[3];
};

#endif
