/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every number that this side and src/ agree on, as enums. Rust gets them with the skeleton (src/skel.rs), which has
 * the enums that iotrace.bpf.c names: none of them is written down twice, and src/event/contract.rs fails the build
 * where an enum of Rust has other members. Bits of a field that is narrower than an enum fit into the field.
 */
#ifndef IOT_CONTRACT_H
#define IOT_CONTRACT_H

/* Layers of the I/O stack, from the application down to the device. */
enum iot_layer {
	IOT_LAYER_APP = 0,
	IOT_LAYER_NETCDF,
	IOT_LAYER_PNETCDF,
	IOT_LAYER_HDF5,
	IOT_LAYER_MPIIO,
	IOT_LAYER_MPI,
	IOT_LAYER_STDIO,
	IOT_LAYER_SYSCALL,
	IOT_LAYER_VFS,
	IOT_LAYER_FS,
	IOT_LAYER_BLOCK,
	IOT_LAYER_COUNT,
	/* the I/O libraries stand together */
	IOT_LAYER_FIRST_IO_LIBRARY = IOT_LAYER_NETCDF,
	IOT_LAYER_LAST_IO_LIBRARY = IOT_LAYER_MPIIO,
};

/* Sizes of arrays and tables that both sides index. */
enum iot_limit {
	IOT_LAYERS = 16, /* layers that a table has room for: a power of two */
	IOT_ARGS = 12,	 /* arguments of a call that are read */
	IOT_MAX_SPECS = 4096,
	IOT_MAX_SYSCALLS = 1024, /* 64-bit and x32 */
	IOT_MAX_SHORT = 512,	 /* 32-bit */
	IOT_BLOCK_OPS = 16,	 /* operations of devices, behind the rows of the catalog */
	IOT_BUCKETS = 252,	 /* of a histogram: 2^IOT_BUCKET_BITS to a power of two */
	IOT_BUCKET_BITS = 2,
	IOT_SIZES = 10,		    /* bins of sizes of reads and writes, as Darshan has them */
	IOT_INNER_PER_CALL = 3,	    /* values that a call wants of calls inside it */
	IOT_ARRAYS_PER_CALL = 4,    /* arrays that go with a call */
	IOT_ARRAY_SLOTS = 16,	    /* numbers by which the reader distinguishes the arrays of a call */
	IOT_INNER_NONE = 0xff,	    /* iot_spec.gives, iot_spec.wants: none */
	IOT_NOT_KNOWN = 0xffffffff, /* a number of 32 bits that is not known */
};

/* The same of 64 bits. */
#define IOT_UNKNOWN ((u64)IOT_NOT_KNOWN << 32 | IOT_NOT_KNOWN)

/* Classes of records do not share rings, so that many data calls cannot push out the few records that explain them. */
enum iot_class {
	IOT_C_LIFE = 0,
	IOT_C_CALL,
	IOT_C_BLOCK,
	IOT_C_MAX,
};

/* The first byte of a record. */
enum iot_type {
	IOT_T_CALL = 1,	 /* a library call */
	IOT_T_SYSCALL,	 /* a system call: a call and the file it was about */
	IOT_T_TEXT,	 /* text that belongs to a call, or to an exec */
	IOT_T_FILE,	 /* identity and path of a file */
	IOT_T_THREAD,	 /* a thread of a target was first seen */
	IOT_T_FORK,	 /* a process became a target */
	IOT_T_EXEC,	 /* a target executed a program; its texts went before */
	IOT_T_EXIT,	 /* a target ended */
	IOT_T_MAP,	 /* a target mapped a file that was not classified yet */
	IOT_T_BIO,	 /* part of a request, at issue */
	IOT_T_REQ,	 /* a request, at completion */
	IOT_T_STREAM,	 /* a FILE is on a descriptor */
	IOT_T_ENTER,	 /* a phase was entered; its call follows when it returns */
	IOT_T_OPERATION, /* an operation that outlived the call that submitted it is over */

	IOT_T_DIRTY = 20, /* pages of a file became dirty */
	IOT_T_DISK,	  /* the name of a device; before its first request */
	IOT_T_CACHE = 28, /* what the page cache had to do with a system call; goes before it */
	IOT_T_RPC,	  /* a request that a target serves: it was read, or replied to */
	IOT_T_REPLY,	  /* a request that the kernel serves is over */
	IOT_T_GROUP,	  /* the control group of a process, and its user */
	IOT_T_INNER,	  /* aggregate mode: how long calls inside a call took; goes before it */
	IOT_T_KEPT,	  /* aggregate mode: a call that is in the sums */
	IOT_T_BUSY,	  /* calls of a function are shorter than their probe, and many */
};

/* With iot_call.type, in aggregate mode: why a call that is in the sums has a record, too. */
enum iot_detail_mark {
	IOT_D_WHOLE = 0x40, /* it is wanted with all that is inside it */
	IOT_D_SELF = 0x80,  /* it is wanted by itself */
	IOT_D_BITS = 0xc0,
};

/* iot_call.flags */
enum iot_call_flag {
	IOT_F_HANDLE = 0x01, /* handle, len, got, off are valid */
	IOT_F_LEN = 0x02,
	IOT_F_GOT = 0x04,
	IOT_F_OFF = 0x08,
	IOT_F_UNFINISHED = 0x10, /* it had not returned */
	IOT_F_CUT = 0x20,	 /* a path or array was cut, or could not be read */
	IOT_F_DIRECT = 0x40,	 /* O_DIRECT */
	IOT_F_FILE = 0x80,	 /* ino, dev, generation are valid */
};

/* iot_call.dur_cpu_depth, from the lowest bit: duration, CPU, depth (6 bits). */
enum iot_call_bits {
	IOT_DUR_BITS = 46,
	IOT_CPU_BITS = 12,
};

/* iot_bio.flags, iot_reply.flags */
enum iot_bio_flag {
	IOT_B_TRACED = 0x01,	/* thread is valid */
	IOT_B_IN_CALL = 0x02,	/* seq is valid */
	IOT_B_OPERATION = 0x04, /* seq is an operation, submitted by the call `of` or by none (then they are equal) */
	IOT_B_FILE = 0x08,	/* it carries pages of the file (dev, ino, generation) */
	IOT_B_JOURNAL = 0x10,	/* it writes to the journal of the file system on dev */
	IOT_B_META = 0x20,	/* it carries blocks of the file system itself */
	IOT_B_KERNEL = 0x40,	/* a thread of the kernel queued it */
};

/* iot_reply.known */
enum iot_reply_flag {
	IOT_R_RANGE = 0x01, /* offset, asked */
	IOT_R_MOVED = 0x02, /* moved */
};

/* iot_text.what */
enum iot_text_kind {
	IOT_X_PATH = 0,
	IOT_X_PATH2,
	IOT_X_BASE, /* components, innermost first, each ended by NUL */
	IOT_X_BASE2,
	IOT_X_ARGS, /* strings ended by NUL; in pieces */
	IOT_X_ENV,
	IOT_X_EXE,	      /* components, innermost first */
	IOT_X_INTS = 16,      /* + slot: an array of 4-byte integers; in pieces */
	IOT_X_LONGS = 32,     /* + slot: an array of 8-byte integers; in pieces */
	IOT_X_OPERATION = 64, /* + one of the first four: of an operation */
};

/* Where an event that a hook saw was dropped: rows of iot_losses. */
enum iot_loss {
	IOT_LOSS_RING = 0,    /* ring full */
	IOT_LOSS_DEPTH,	      /* more nested calls than the stack holds */
	IOT_LOSS_STORAGE,     /* no memory for a thread's state */
	IOT_LOSS_RETURN,      /* a return without its entry */
	IOT_LOSS_TEXT,	      /* a path that could not be read */
	IOT_LOSS_MAP_FULL,    /* a table was full */
	IOT_LOSS_OTHER_STACK, /* a library call while another may be open on another stack */
	IOT_LOSS_MAPPING,     /* a page fault whose mapping could not be looked at */
	IOT_LOSS_EXCLUDED,    /* not a loss: a call on a socket, pipe, terminal or device */
	IOT_LOSS_DETAIL,      /* the record of a call or request that is in the sums */
	IOT_LOSS_REQUEST_END, /* in sums: a request whose end was not seen */
	IOT_LOSS_CLAIMED,     /* not a loss: what the first copy of a program missed, another one claimed (block.h) */
	IOT_LOSS_KINDS,
};

/* iot_src.from: what a value of a call starts from. */
enum iot_from {
	IOT_FROM_NOTHING = 0,  /* the call has no such value */
	IOT_FROM_ARG,	       /* argument a */
	IOT_FROM_RET,	       /* the result */
	IOT_FROM_IN,	       /* what argument a points at when the call enters */
	IOT_FROM_GLOBAL,       /* the pointer variable that the probe's cookie leads to, when the call enters */
	IOT_FROM_INNER,	       /* inner value a */
	IOT_FROM_CONST,	       /* k */
	IOT_FROM_LEN,	       /* the length that was asked for */
	IOT_FROM_ROUNDS,       /* the sum of inner value b times inner value k over as many rounds as argument a has */
	IOT_FROM_STRLEN,       /* the length of the string at argument a, plus k */
	IOT_FROM_VECTOR,       /* the sum of a struct iovec at argument a with argument b elements */
	IOT_FROM_MESSAGE,      /* the same of the one in the struct msghdr at argument a */
	IOT_FROM_FILE_POS,     /* the position of the file before the call */
	IOT_FROM_STREAM_POS,   /* where the stream stood before; k: the call writes */
	IOT_FROM_STREAM_END,   /* where it stands after */
	IOT_FROM_STREAM_MOVED, /* the bytes from there to there */
	IOT_FROM_CLOEXEC,      /* is the descriptor that is the result (b), or else argument 0, closed by an exec? */
};

/* iot_src.then: what is done with it, in this order: bits of steps, and a number at IOT_JOINS. */
enum iot_then {
	IOT_THEN_READ = 0x01,  /* it points at something: the u64 at k behind it */
	IOT_THEN_AGAIN = 0x02, /* and so does that: the u64 at `at` behind it */
	IOT_THEN_INT = 0x04,   /* what was read last, or the value itself, has 32 bits and a sign */
	IOT_THEN_SPLIT = 0x08, /* what was read is the count of an MPICH status: a bit in the middle is no part of it */
	IOT_STEPS = 0x0f,

	IOT_TIMES_ARG = 0x10,	/* times argument b */
	IOT_TIMES_INNER = 0x20, /* times inner value b */
	IOT_TIMES_CONST = 0x30, /* times k */
	IOT_TIMES_FIELD = 0x40, /* times the u64 at argument b + k */
	IOT_TIMES_TYPE = 0x50,	/* times the size in argument b, a predefined datatype of MPICH */
	IOT_TIMES_MPI = 0x60,	/* times the size of the MPI datatype b: IOT_TIMES_TYPE, else IOT_TIMES_FIELD */
	IOT_BELOW_ARG = 0x70,	/* its lower half, and argument b above it */
	IOT_BELOW_INNER = 0x80, /* its lower half, and inner value b + 1 above it (0: not known) */
	IOT_BELOW_OUT = 0x90,	/* its lower 16 bits, and the int at argument b above them */
	IOT_JOINS = 0xf0,
};

/* How the result of a call shows that it failed: catalog::Fails. */
enum iot_fails {
	IOT_FAILS_NEVER = 0,
	IOT_FAILS_NEGATIVE,
	IOT_FAILS_NEGATIVE_INT,
	IOT_FAILS_ZERO,
	IOT_FAILS_NONZERO,
	IOT_FAILS_EOF,
	IOT_FAILS_EOF_INT,
};

/* How the arguments of a function inside the kernel name a file, and what part of it: catalog::About. */
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

/* iot_array.when: when an array is read. */
enum iot_when {
	IOT_READ_NEVER = 0,
	IOT_READ_AT_ENTRY,
	IOT_READ_AT_RETURN,
};

/* iot_array.count: how many elements an array has. */
enum iot_count {
	IOT_N_CONST = 0, /* n */
	IOT_N_ARG,	 /* argument n, an int */
	IOT_N_RET,	 /* the result, an int */
	IOT_N_AT,	 /* the int at argument n */
	IOT_N_RANK,	 /* one per dimension of an object whose rank is not known here: as many as there may be */
};

/* iot_array.deref: elements are pointers to so many u64, or what the array stands for: catalog::Deref. */
enum iot_deref {
	IOT_DEREF_NONE = 0,
	IOT_DEREF_STORAGE = 0xfd,
	IOT_DEREF_MEMBERS = 0xfe,
	IOT_DEREF_BOXES = 0xff,
};

/* iot_spec.flags */
enum iot_spec_flag {
	IOT_S_LIFE = 1 << 0,	   /* opens, closes, renames: goes to the ring that must not lose */
	IOT_S_FD = 1 << 1,	   /* the first argument is a descriptor, looked up at entry */
	IOT_S_FD_RET = 1 << 2,	   /* the result is a descriptor of a file opened by name */
	IOT_S_STAT = 1 << 3,	   /* argument stat_arg is filled with a struct stat */
	IOT_S_STATX = 1 << 4,	   /* ... struct statx */
	IOT_S_ONLY = 1 << 5,	   /* only when argument only_arg is one of only[] */
	IOT_S_INSIDE = 1 << 6,	   /* only inside a call of an I/O library, or when it waits for what one submitted */
	IOT_S_SUBMIT = 1 << 7,	   /* its `got` is a request that others wait for */
	IOT_S_STACK = 1 << 8,	   /* it has arguments on the stack */
	IOT_S_ENTRY = 1 << 9,	   /* it has arrays that are read at entry */
	IOT_S_RETURN = 1 << 10,	   /* ... at return */
	IOT_S_OUTER = 1 << 11,	   /* only outside calls of its own layer */
	IOT_S_ALL = 1 << 12,	   /* it returns when all of its requests are complete */
	IOT_S_AWAIT = 1 << 13,	   /* with IOT_S_INSIDE: only when it waits for what an I/O call submitted */
	IOT_S_STREAM = 1 << 14,	   /* the handle is a FILE, looked at at entry */
	IOT_S_PHASE = 1 << 15,	   /* a phase: its beginning has a record, too */
	IOT_S_OTHERWISE = 1 << 16, /* system calls that IOT_S_ONLY leaves out are of the next row */
	IOT_S_MAPPED = 1 << 17,	   /* argument 0 is an address: about the file that is mapped there */
	IOT_S_RANGES = 1 << 18,	   /* it copies: see catalog::Copies */
	IOT_S_SEND = 1 << 19,
	IOT_S_PIPES = 1 << 20,
	IOT_S_EARLY = 1 << 21,	   /* its path is sent when it enters: see catalog::Row::early */
	IOT_S_OPERATION = 1 << 22, /* no call: an operation that a call submits */
	IOT_S_NAMES = 1 << 23,	   /* path[0] is a name that the call fills in, if it succeeds */
	IOT_S_ALL_INNER = 1 << 24, /* inner values do not fill it: the arrays of all of them are sent */
	IOT_S_READS = 1 << 25,	   /* a system call that may read through the page cache */
	IOT_S_OPENS = 1 << 26,	   /* a call of a library that makes a handle */
	IOT_S_JUMPS = 1 << 27,	   /* it sets the stack pointer to a field of its first argument: longjmp */
	IOT_S_COPIES = IOT_S_RANGES | IOT_S_SEND | IOT_S_PIPES,
};

/* iot_spec.kind */
enum iot_kind {
	IOT_NEITHER = 0,
	IOT_READS,
	IOT_WRITES,
};

/* iot_spec.sums: in aggregate mode, is a call of this row summed up in the kernel? */
enum iot_sums_how {
	IOT_SUMS_NOT = 0, /* what it comes to is known only from what goes with it: it is sent */
	IOT_SUMS_CALLS,	  /* yes, but its values are no bytes */
	IOT_SUMS_ALL,
};

/* iot_spec.brief: may probes of this row go, while the trace runs, because its calls cost less than their probe? */
enum iot_brief_state {
	IOT_BRIEF_NO = 0,
	IOT_BRIEF_MAY,
	IOT_BRIEF_DEMOTED, /* they have gone, but for short windows */
	IOT_BRIEF_SLOW,	   /* it is probed in their place */
	IOT_BRIEF_PAUSES,  /* they may go for a while: see iot_paused */
};

/*
 * The cookie of a library's probe: bits of a u64. The row of the catalog stands below IOT_COOKIE_COPY.
 *
 * From IOT_COOKIE_DISTANCE on: bytes from the breakpoint to a variable (0: there is none); of a row with
 * IOT_DEREF_STORAGE three distances of IOT_COOKIE_STORED_BITS each, from the first argument to a pointer, and from where
 * that leads to the filters and the layout of a dataset; with IOT_COOKIE_FIELD where the field is.
 */
enum iot_cookie {
	IOT_COOKIE_COPY = 16,	     /* 8 bits from here on: which copy of the library */
	IOT_COOKIE_INDIRECT = 24,    /* the variable's address stands where the distance leads */
	IOT_COOKIE_NO_RETPROBE = 25, /* entry of a function without return probe: where it is left there are probes */
	IOT_COOKIE_LEAVE = 26,	     /* a return instruction of such a function, or one shortly before it */
	IOT_COOKIE_JUMP = 27,	     /* a jump out of one: it may go on in another function */
	IOT_COOKIE_FIELD = 28,	     /* no call: the library has a pointer to a structure that has an inner value */
	IOT_COOKIE_DISTANCE = 29,
	IOT_COOKIE_STORED_BITS = 11,
	IOT_COOKIE_FIRST = 29, /* 16 bits from here on: bytes from the first argument to the field, or to a pointer */
	IOT_COOKIE_THEN = 45,  /* 16 bits: bytes from where that pointer leads to the field */
	IOT_COOKIE_LEADS = 61, /* it is a pointer */
	IOT_COOKIE_BOTH = 62,  /* the second argument leads to another one */

	/*
	 * A function without return probe, entered and left where it has made its frame. Its variable is near. The bits are
	 * those of others with IOT_COOKIE_FIELD and IOT_COOKIE_EDGE, which are looked at first.
	 */
	IOT_COOKIE_FRAMED = 62,
	IOT_COOKIE_WORDS = 55, /* 7 bits: words from the stack pointer to the return address */
	IOT_COOKIE_NEAR = 26,  /* bits of the distance */

	/* An edge: an instruction of a function where ranges of its lines begin or end. */
	IOT_COOKIE_EDGE = 63,
	IOT_COOKIE_BASE = 24,	/* the frame is found by the frame pointer; else by the stack pointer */
	IOT_COOKIE_TAIL = 27,	/* a jump out of the function, in which those that end may go on */
	IOT_COOKIE_STARTS = 26, /* the function starts: its ranges that are open at this place of the stack are over */
	IOT_COOKIE_FRAME = 29,	/* 18 bits from here on: words from that register to the end of the return address */
	IOT_COOKIE_ENDS = 47,	/* 8 bits: the rows from this one on that end */
	IOT_COOKIE_BEGINS = 55, /* 8 bits: those that begin then */
};

/* An entry of iot_sysno, iot_sysno32: below this bit the row of the catalog + 1, from it on an iot_layout. */
enum iot_sysno_entry {
	IOT_SYSNO_LAYOUT = 12,
};

/* Where a 32-bit task has the arguments: catalog::Layout. */
enum iot_layout {
	IOT_L_SAME = 0,
	IOT_L_PAIR1,
	IOT_L_PAIRS1,
	IOT_L_PAIRS2,
	IOT_L_PAIR3,
	IOT_L_PAGES,
	IOT_L_STRUCT,
	IOT_L_LONG,
	IOT_L_SHORT,
	IOT_L_SIGNED1,
};

/* Positions in iot_fault_rows: rows of page faults. */
enum iot_fault_row {
	IOT_FAULT_READ = 0, /* it reads, or copies a page for the process alone */
	IOT_FAULT_WRITE,    /* it makes a page of a shared mapping writable */
	IOT_FAULT_ROWS,
};

/* Rows of iot_costs behind those of the catalog: hooks that no row is about. */
enum iot_cost_row {
	IOT_COST_FAULT = 0,
	IOT_COST_BIO,
	IOT_COST_PAGE,
	IOT_COST_DIRTY,
	IOT_COST_ROWS,
};

/* Processes that become targets without being the child of one. */
enum iot_scope {
	IOT_ALL_LISTED = 0, /* none */
	IOT_ALL_OF_GROUP,
	IOT_ALL_OF_NODE,
};

/* iot_target.armed; 0: traced from its next exec on */
enum iot_armed {
	IOT_ARMED = 1,
	IOT_COPIES_STACKS = 2, /* see iot_task.copies */
};

/* iot_config.detail */
enum iot_detail_flag {
	IOT_DETAIL_SLOW = 0x01,
	IOT_DETAIL_PROCESSES = 0x02,
	IOT_DETAIL_FILES = 0x04,
};

/* iot_lib.state */
enum iot_lib_state {
	IOT_LIB_PENDING = 1,
	IOT_LIB_CLASSIFIED,
	IOT_LIB_PROBED,	    /* classified, and each target that maps it is to get its probes */
	IOT_LIB_REMEMBERED, /* an earlier run found that it has nothing to probe; no target has mapped it yet */
};

/* iot_sum_key.what: what a sum is about. */
enum iot_about_what {
	IOT_SUM_NOTHING = 0,
	IOT_SUM_FILE,	/* a: inode, b: device, and generation above it */
	IOT_SUM_HANDLE, /* a: the handle of a library, b: the call that opened it (thread above seq); ~0: not known */
	IOT_SUM_DEVICE, /* a: device; `row` is the number of rows plus the operation */
};

#endif
