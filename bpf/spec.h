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

enum iot_fails {
	IOT_FAILS_NEVER = 0,
	IOT_FAILS_NEGATIVE,
	IOT_FAILS_NEGATIVE_INT,
	IOT_FAILS_ZERO,
	IOT_FAILS_NONZERO,
	IOT_FAILS_EOF,
	IOT_FAILS_EOF_INT,
};

/* How the arguments of a function inside the kernel name a file, and what part of it. See catalog::About. */
enum iot_about_how {
	IOT_ABOUT_NOTHING = 0,
	IOT_ABOUT_FILE,	  /* struct file */
	IOT_ABOUT_BUFFER, /* struct file, buffer, size, position */
	IOT_ABOUT_ITER,	  /* struct file, struct iov_iter, position */
	IOT_ABOUT_KIOCB,  /* struct kiocb, struct iov_iter */
	IOT_ABOUT_PATH,	  /* struct path */
	IOT_ABOUT_DENTRY, /* the second argument is a struct dentry */
	IOT_ABOUT_ENTRY,  /* the third is */
	IOT_ABOUT_OPENED, /* the result is a struct file */
};

/* When words are read. */
enum iot_when {
	IOT_W_NEVER = 0,
	IOT_W_ENTRY,
	IOT_W_RETURN,
};

/* How many elements an array has. */
enum iot_count {
	IOT_N_CONST = 0, /* n */
	IOT_N_ARG,	 /* argument n, an int */
	IOT_N_RET,	 /* the result, an int */
	IOT_N_AT,	 /* the int at argument n */
	IOT_N_RANK,	 /* one per dimension of something whose rank is not known here: as many as there may be */
};

/* An array of the program that goes with the record: elements of 4 or 8 bytes, or arrays that pointers lead to. */
struct iot_words {
	u8 when;
	u8 arg;
	u8 elem; /* bytes of an element: 8, or a struct of ints */
	u8 count;
	u8 n;
	u8 slot;  /* how the reader tells several arrays apart */
	u8 deref; /* elements are pointers to this many u64; IOT_BOXES, IOT_MEMBERS, IOT_STORAGE: see catalog::Words */
	u8 rank;  /* the number of elements is a rank */
};

#define IOT_BOXES	   0xff
#define IOT_MEMBERS	   0xfe
#define IOT_STORAGE	   0xfd
#define IOT_WORDS_PER_CALL 4
#define IOT_NOTES_PER_CALL 3
#define IOT_NO_NOTE	   0xff

/* iot_spec.bits */
#define IOT_S_LIFE   0x01 /* opens, closes, renames: goes to the ring that must not lose */
#define IOT_S_FD     0x02 /* the first argument is a descriptor, looked up at entry */
#define IOT_S_FD_RET 0x04 /* the result is a descriptor of a file opened by name */
#define IOT_S_STAT   0x08 /* argument stat_arg is filled with a struct stat */
#define IOT_S_STATX  0x10 /* ... struct statx */
#define IOT_S_ONLY   0x20 /* only when argument only_arg is one of only[] */
#define IOT_S_INSIDE 0x40 /* only inside a call of an I/O library, or when it waits for what one submitted */
#define IOT_S_SUBMIT 0x80 /* its `got` is a request that others wait for */

/* iot_spec.more */
#define IOT_M_STACK  0x01 /* it has arguments on the stack */
#define IOT_M_ENTRY  0x02 /* it has arrays that are read at entry */
#define IOT_M_RETURN 0x04 /* ... at return */
#define IOT_M_OUTER  0x08 /* only outside calls of its own layer */
#define IOT_M_ALL    0x10 /* it returns when all of its requests are complete */
#define IOT_M_AWAIT  0x20 /* with IOT_S_INSIDE: only when it waits for what an I/O call submitted */
#define IOT_M_STREAM 0x40 /* the handle is a FILE, looked at at entry */
#define IOT_M_PHASE  0x80 /* a phase: its beginning is told, too */

/* iot_spec.call: system calls */
#define IOT_Y_OTHERWISE 0x01 /* those that IOT_S_ONLY leaves out are of the next row */
#define IOT_Y_MAPPED	0x02 /* argument 0 is an address: about the file that is mapped there */
#define IOT_Y_RANGES	0x04 /* it copies: see catalog::Copies */
#define IOT_Y_SEND	0x08
#define IOT_Y_PIPES	0x10
#define IOT_Y_EARLY	0x20 /* its path is told when it enters: see catalog::Row::early */
#define IOT_Y_OPERATION 0x40 /* no call: an operation that a call submits */
#define IOT_Y_COPIES	(IOT_Y_RANGES | IOT_Y_SEND | IOT_Y_PIPES)

enum iot_kind {
	IOT_NEITHER = 0,
	IOT_READS,
	IOT_WRITES,
};

/* Aggregate mode: is a call of this row summed up in the kernel? */
enum iot_sums_how {
	IOT_SUMS_NOT = 0, /* what it comes to can be told only from what goes with it: it is sent */
	IOT_SUMS_CALLS,	  /* yes, but its values are no bytes */
	IOT_SUMS_ALL,
};

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
	u8 note; /* the call is not recorded: its `got` becomes this note of the call it runs in */
	u8 more;
	u8 takes[IOT_NOTES_PER_CALL]; /* notes the call wants of what runs in it, in this order */
	u8 quiet;		      /* a call with this result is not recorded; 0: there is none */
	u8 names;		      /* path[0] is a name that the call fills in, if it succeeds */
	u8 every;		      /* notes do not fill it: the arrays of all of them are sent */
	struct iot_words words[IOT_WORDS_PER_CALL];
	u8 reads; /* a system call that may read through the page cache */
	u8 about; /* a function inside the kernel: how its arguments name a file */
	u8 call;  /* IOT_Y_ */
	u8 kind;  /* enum iot_kind */
	u8 sums;  /* enum iot_sums_how */
	u8 opens; /* a call of a library that makes a handle */
	u8 jumps; /* it sets the stack pointer to the word `got.k` bytes behind its first argument: longjmp */
	u8 brief; /* enum iot_brief_state */
};

/* May probes of this row go, while the trace runs, because its calls cost less than their probe? */
enum iot_brief_state {
	IOT_BRIEF_NO = 0,
	IOT_BRIEF_MAY,
	IOT_BRIEF_DEMOTED, /* they have gone, but for short windows */
	IOT_BRIEF_SLOW,	   /* it is probed in their place */
	IOT_BRIEF_PAUSES,  /* they may go for a while: see iot_paused */
};

/* The cookie of a library's probe: the row of the catalog in the lowest 16 bits, then ... */
#define IOT_K_ROW      0xffff
#define IOT_K_COPY     16	 /* 8 bits from here on: which copy of the library */
#define IOT_K_INDIRECT (1 << 24) /* the variable's address stands where the distance leads */
#define IOT_K_PLACES   (1 << 25) /* entry of a function without return probe: its return instructions have probes */
#define IOT_K_LEAVE    (1 << 26) /* a return instruction of such a function */
#define IOT_K_JUMP     (1 << 27) /* a jump out of one: it may go on in another function */
#define IOT_K_FIELD    (1 << 28) /* no call: the library has a pointer to a structure with a field that is a note */
#define IOT_K_DISTANCE 29	 /* from here on: from the breakpoint to a variable; 0: there is none */
/*
 * Of a row with IOT_STORAGE, from IOT_K_DISTANCE on: three distances of IOT_STORED_BITS, from the first argument to a
 * pointer, and from where that leads to the filters and the layout of a dataset.
 */
#define IOT_STORED_BITS 11
/* With IOT_K_FIELD: where the field is, seen from the first argument. */
#define IOT_K_FIRST	 29	      /* 16 bits from here on: bytes to the field, or to a pointer */
#define IOT_K_THEN	 45	      /* 16 bits: bytes from where that pointer leads to the field */
#define IOT_K_LEADS	 (1ULL << 61) /* it is a pointer */
#define IOT_K_BOTH	 (1ULL << 62) /* the second argument leads to another one */

#define IOT_MAX_SPECS	 4096
#define IOT_MAX_SYSCALLS 1024 /* 64-bit and x32 */
#define IOT_MAX_SHORT	 512  /* 32-bit */

/* An entry of iot_sysno, iot_sysno32: row of the catalog + 1, and where a 32-bit task has the arguments. */
#define IOT_SYSNO_ROW	 0x0fff
#define IOT_SYSNO_LAYOUT 12

/* Who becomes a target without being the child of one. */
enum iot_scope {
	IOT_ALL_LISTED = 0, /* nobody */
	IOT_ALL_OF_GROUP,
	IOT_ALL_OF_NODE,
};

/* iot_config.detail */
#define IOT_DETAIL_SLOW	     0x01
#define IOT_DETAIL_PROCESSES 0x02
#define IOT_DETAIL_FILES     0x04

struct iot_config {
	u32 shards;    /* rings of one class */
	u32 own;       /* our own process, never traced */
	u32 wakeup;    /* bytes in a ring that wake the reader */
	u32 rows;      /* of the catalog: the distance of the numbers of two copies of a library */
	u8 sockets;    /* sockets and pipes are recorded */
	u8 scope;      /* enum iot_scope */
	u8 aggregate;  /* calls and requests are summed up, and not told one by one */
	u8 detail;     /* IOT_DETAIL_: which calls are told although they are summed up */
	u32 every;     /* ns: a function whose calls come more often in a thread is demoted; 0: none is */
	u64 group;     /* IOT_ALL_OF_GROUP: its number */
	u32 pid_level; /* of our PID namespace; 0: the node's own */
	u32 pid_ns;    /* its inode */
	u32 room;      /* bytes in a ring of calls from which on nothing is told besides the sums */
	u32 room_less; /* the same of the other rings */
};

#endif
