/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire contract: one struct per record that crosses a ring buffer. Fixed-width integers only, no
 * pointers, no unions. src/event/wire.rs asserts the same sizes. Times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef IOT_EVENT_H
#define IOT_EVENT_H

enum iot_type {
	IOT_T_CALL = 1,	 /* a library call */
	IOT_T_SYSCALL,	 /* a system call: a call and the file it was about */
	IOT_T_TEXT,	 /* text that belongs to a call, or to an exec */
	IOT_T_FILE,	 /* identity and path of a file */
	IOT_T_THREAD,	 /* a thread of a target was first seen */
	IOT_T_FORK,	 /* a process became a target */
	IOT_T_EXEC,	 /* a target executed a program; its texts went before */
	IOT_T_EXIT,	 /* a target ended */
	IOT_T_MAP,	 /* a target mapped a file that was not judged yet */
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

enum iot_text_kind {
	IOT_X_PATH = 0,
	IOT_X_PATH2,
	IOT_X_BASE, /* components, innermost first, each ended by NUL */
	IOT_X_BASE2,
	IOT_X_ARGS, /* strings ended by NUL; in pieces */
	IOT_X_ENV,
	IOT_X_EXE,	      /* components, innermost first */
	IOT_X_INTS = 16,      /* + slot: an array of 4-byte integers; in pieces */
	IOT_X_WORDS = 32,     /* + slot: an array of 8-byte words; in pieces */
	IOT_X_OPERATION = 64, /* + one of the first four: of an operation */
};

/* iot_call.flags */
#define IOT_F_HANDLE	 0x01
#define IOT_F_LEN	 0x02
#define IOT_F_GOT	 0x04
#define IOT_F_OFF	 0x08
#define IOT_F_UNFINISHED 0x10
#define IOT_F_CUT	 0x20
#define IOT_F_DIRECT	 0x40
#define IOT_F_FILE	 0x80

/* Aggregate mode, with iot_call.type: the call is wanted by itself; with all that is inside it. */
#define IOT_D_SELF   0x80
#define IOT_D_WHOLE  0x40

#define IOT_UNKNOWN  (~0ULL)
#define IOT_DUR_BITS 46
#define IOT_CPU_BITS 12

struct iot_call {
	u8 type;
	u8 flags;
	u16 spec;
	u32 seq;
	u32 thread;
	s32 status;
	u64 start;
	u64 dur_cpu_depth; /* duration: 46 bits, cpu: 12 bits, depth: 6 bits, from the lowest */
	u64 handle;
	u64 len;
	u64 got;
	u64 off;
	u64 probe;  /* ns of the duration that hooks took */
	u64 away;   /* and in which the thread was on no CPU; IOT_UNKNOWN */
	u64 queued; /* of that, in a run queue */
};

struct iot_syscall {
	struct iot_call call;
	u64 ino;
	u32 dev;
	u32 generation;
};

/* Told when it is known that it is wanted, which may be long after it ended. `ino` counts if its flags say so. */
struct iot_kept {
	struct iot_syscall e;
	u64 told;
	u64 inner; /* ns of the calls right inside it */
	u64 miss;  /* as in iot_cache */
	u64 ahead;
	u64 throttled;
	u64 locked;
	u8 known; /* miss and ahead are */
	u8 layer;
	u8 pad[6];
};

struct iot_enter {
	u8 type;
	u8 depth;
	u16 spec;
	u32 seq;
	u32 thread;
	u32 cpu;
	u64 start;
};

/* The call is the operation itself: its thread is the one that submitted it. */
struct iot_operation {
	struct iot_call call;
	u64 ino;
	u32 dev;
	u32 generation;
	u64 told; /* when its end became known */
	u32 of;	  /* the call that submitted it */
	u32 by_thread;
	u32 by_seq; /* the call that its end was found in */
	u8 in_call; /* `of` is valid */
	u8 found;   /* `by_thread` and `by_seq` are */
	u8 summed;  /* aggregate mode: it is in the sums */
	u8 pad2;
};

#define IOT_TEXT_MAX  4096
#define IOT_NOT_KNOWN 0xffffffff

struct iot_text {
	u8 type;
	u8 what;
	u8 cut;
	u8 pad;
	u32 len;
	u32 thread;
	u32 seq;
	u64 time;
	u64 root; /* of the process; absolute paths start there */

	/* len bytes follow */
};

struct iot_file {
	u8 type;
	u8 cut;
	u16 mode;
	u32 len;
	u64 time;
	u64 ino;
	u32 dev;
	u32 generation;
	u64 size;
	u64 magic;
	u64 root;  /* as in iot_text */
	u32 mount; /* the number of the mount it was opened through */
	u32 tgid;  /* a process that sees this mount */
	/* overlayfs: the inode below that carries the data; 0: none, or not known */
	u64 data_ino;
	u32 data_dev;
	u32 data_generation;
	u32 within; /* so many of the len bytes are inside its file system; IOT_NOT_KNOWN */
	u32 more;
	u16 nlink; /* names that it has */
	u16 blkbits;
	u32 fs_dev; /* that of its file system, which mounts have; `dev` may be one of a part (btrfs) */
	u8 fstype[16];

	/*
	 * len bytes of path components follow, innermost first, each ended by NUL. Then `more` bytes, those from there
	 * to the root of the file system, where the process does not see them (bind mounts, root directories).
	 */
};

struct iot_thread {
	u8 type;
	u8 pad[3];
	u32 thread;
	u64 time;
	u32 process;
	u32 tgid;
	u32 tid;
	u32 pad2;
	u8 comm[16];
};

struct iot_process {
	u8 type; /* IOT_T_FORK, IOT_T_EXEC or IOT_T_EXIT */
	u8 pad[3];
	u32 process;
	u64 time;
	u32 tgid;
	u32 ppid;
	u32 uid;
	u32 parent; /* fork: the traced parent; IOT_NOT_KNOWN: it was not forked by one */
	u32 thread; /* exec: whose texts went before */
	u32 status; /* exit: wait status; fork: it runs already, and nothing told its program and files */
};

struct iot_group {
	u8 type;
	u8 cut;
	u8 known; /* 0: this kernel has no control groups */
	u8 pad;
	u32 len;
	u64 time;
	u64 id; /* of the unified hierarchy */
	u32 process;
	u32 uid;

	/* len bytes follow: names, innermost first, each ended by NUL; the root has none */
};

/* Without a file (ino is 0): all that the process maps is to be judged. */
struct iot_map {
	u8 type;
	u8 moved; /* another thread than the first has executed a program, and is the first now */
	u8 pad[2];
	u32 tgid;
	u64 time;
	u64 ino;
	u32 dev;
	u32 generation;
	u64 sec; /* when the file was last written */
	u32 nsec;
	u32 pad2;
};

/* For user space, which may demote the function. */
struct iot_busy {
	u8 type;
	u8 pad[3];
	u32 spec; /* as in iot_call */
	u64 time;
	u64 elapsed; /* ns in which a thread made */
	u32 calls;   /* so many calls; 0: one that is over, of an I/O library, while probes are paused */
	u32 took;    /* that took so many ns together */
};

/* iot_bio.flags */
#define IOT_B_TRACED	0x01 /* thread is valid */
#define IOT_B_IN_CALL	0x02 /* seq is valid */
#define IOT_B_OPERATION 0x04 /* seq is an operation, submitted by the call `of` or by none (then they are equal) */
#define IOT_B_FILE	0x08 /* it carries pages of the file (dev, ino, generation) */
#define IOT_B_JOURNAL	0x10 /* it writes to the journal of the file system on dev */
#define IOT_B_META	0x20 /* it carries blocks of the file system itself */
#define IOT_B_KERNEL	0x40 /* a thread of the kernel queued it */

struct iot_bio {
	u8 type;
	u8 flags;
	u8 pad[2];
	u32 dev;
	u64 time; /* of issue */
	u64 req;
	u64 ino;
	u64 off;
	u64 bytes;
	u64 queued;
	u64 cgroup; /* that the write-back of pages is charged to; 0: not known */
	u32 thread;
	u32 seq;
	u32 generation;
	u32 of;
};

struct iot_req {
	u8 type;
	u8 status;
	u8 of_bio; /* the device has no queue: this is a bio, which is issued when it is queued */
	u8 unseen; /* its end was not seen: completed is when that was noticed */
	u32 dev;
	u64 req;
	u64 sector;
	u32 bytes;
	u32 cmd_flags;
	u64 queued;
	u64 inserted; /* 0: it did not wait in a scheduler */
	u64 issued;
	u64 completed;
	u64 upper_sector; /* where it is on the device that handed it down */
	u32 upper_dev;	  /* 0: none did */
	u32 pid;
	u16 nr_bios;
	u16 splits; /* bios in it that are parts of longer ones */
	u32 summed; /* aggregate mode: it is in the sums */
};

struct iot_disk {
	u8 type;
	u8 pad[3];
	u32 dev;
	u64 time;
	char name[32];
};

struct iot_dirty {
	u8 type;
	u8 in_call; /* seq is valid */
	u8 pad[2];
	u32 dev;
	u64 time;
	u64 ino;
	u64 off;
	u64 bytes;
	u32 thread;
	u32 seq;
	u32 generation;
	u32 pad2;
};

struct iot_stream {
	u8 type;
	u8 pad[3];
	u32 fd;
	u64 time;
	u64 stream; /* the FILE */
	u64 ino;
	u32 dev;
	u32 generation;
	u32 thread;
	u32 pad2;
};

/* Only where there is something to tell: a miss, read-ahead, a pause, a lock, or that it is not known. */
struct iot_cache {
	u8 type;
	u8 known; /* miss and ahead are */
	u8 pad[2];
	u32 thread;
	u32 seq;
	u32 pad2;
	u64 time;
	u64 miss;      /* bytes of the call's own range that it added to the cache */
	u64 ahead;     /* bytes of other pages of the file that it added */
	u64 throttled; /* ns that it was told to wait, because too much is dirty */
	u64 locked;    /* ns that it waited for locks of the kernel */
};

struct iot_inner {
	u8 type;
	u8 pad[3];
	u32 thread;
	u32 seq;
	u32 pad2;
	u64 time;
	u64 inner; /* ns */
};

/* What a FUSE daemon read, or replied. */
struct iot_rpc {
	u8 type;
	u8 reply;
	u8 nested; /* the server is in a PID namespace of its own: it calls its clients by numbers of that */
	u8 pad;
	u32 thread;
	u32 seq; /* of the thread's next call */
	u32 dev; /* of the file system; 0: not known */
	u64 time;
	u64 channel;	/* requests are numbered within it */
	u8 message[64]; /* its beginning, as it is: the header and, if there is more, what follows */
};

/* iot_reply.known */
#define IOT_R_RANGE 0x01 /* offset, asked */
#define IOT_R_MOVED 0x02 /* moved */

/* What the kernel's NFS server did for a client on this node. */
struct iot_reply {
	u8 type;
	u8 flags; /* of iot_bio: client_thread, client_seq are valid */
	u8 known;
	u8 pad;
	u32 xid;
	u64 time;
	u64 received;
	u64 offset;
	u32 asked;
	u32 moved;
	u32 status; /* of NFS */
	u32 tgid;   /* of the server's thread */
	u32 tid;
	u32 client_thread;
	u32 client_seq;
	u32 client_tid; /* 0: nobody in particular */
	u8 op[24];
};

/* Not a record: a question of user space (pid, address) and its answer. */
struct iot_real {
	u32 pid;
	u32 found;
	u64 address; /* of a mapping; with a descriptor it is not looked at */
	u64 ino;
	u32 dev;
	u32 generation;
	s32 fd;	  /* below 0: none */
	u32 nsec; /* when the file was last written */
	u64 sec;
};

/* Not a record either: a thread with open calls, as user space reads it. */
#define IOT_OPEN_MAX  32 /* as IOT_DEPTH of task.h */
#define IOT_OPEN_ARGS 6
#define IOT_STACK_MAX 64

struct iot_open {
	u64 start;
	u64 a[IOT_OPEN_ARGS]; /* arguments */
	s64 pos;	      /* where the file or stream stands; -1: not known */
	u32 seq;
	u16 spec;
	u8 depth;
	u8 pad;
};

struct iot_return {
	u64 stack; /* where the return address was */
	u64 address;
};

struct iot_stopped {
	u64 time;
	u64 ip; /* of the program, if it waits */
	u64 sp;
	u64 bp;
	u32 tgid;
	u32 tid;
	u32 thread;
	u32 process;
	u32 calls;   /* how many of open[], the outermost first */
	u32 returns; /* of back[], the innermost first */
	u32 kernel;  /* of stack[], the innermost first */
	u32 waits;
	u8 comm[16];
	struct iot_open open[IOT_OPEN_MAX];
	struct iot_return back[IOT_OPEN_MAX];
	u64 stack[IOT_STACK_MAX];
};

/* Where something seen by a hook did not reach the output. */
enum iot_place {
	IOT_P_RING = 0,	 /* ring full */
	IOT_P_DEPTH,	 /* more nested calls than the stack holds */
	IOT_P_STORAGE,	 /* no memory for a thread's state */
	IOT_P_RETURN,	 /* a return without its entry */
	IOT_P_TEXT,	 /* a path that could not be read */
	IOT_P_MAP_FULL,	 /* a table was full */
	IOT_P_ELSEWHERE, /* a library call while another may be open on another stack */
	IOT_P_MAPPING,	 /* a page fault whose mapping could not be looked at */
	IOT_P_EXCLUDED,	 /* not a loss: a call on a socket, pipe, terminal or device */
	IOT_P_DETAIL,	 /* not in the sums' way: a call or request that was to be told besides */
	IOT_P_END,	 /* in sums: a request whose end was not seen */
	IOT_P_TAKEN,	 /* not a loss: what the first copy of a program missed, another one took (block.h) */
	IOT_P_MAX,
};
#define IOT_LAYERS 16

#endif
