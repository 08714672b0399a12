/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire contract: one struct per record that crosses a ring buffer. Fixed-width integers only, no
 * pointers, no unions. Times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef IOT_EVENT_H
#define IOT_EVENT_H

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

/* Sent when it is known that it is wanted, which may be long after it ended. `ino` is valid if its flags have IOT_F_FILE. */
struct iot_kept {
	struct iot_syscall e;
	u64 sent;  /* when */
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
	u64 seen; /* when its end became known */
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
	u32 status; /* exit: wait status; fork: it runs already; no record has its program and files */
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

/* Without a file (ino is 0): all that the process maps is to be classified. */
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

/* Sent only where there was a miss, read-ahead, a pause or a lock, or where that is not known. */
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
	u64 throttled; /* ns that the kernel paused it, because too much is dirty */
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
	u32 client_tid; /* 0: no particular thread */
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

/* A record without padding that is longer or shorter than this was changed on one side only. */
_Static_assert(sizeof(struct iot_call) == 88, "a call");
_Static_assert(sizeof(struct iot_syscall) == 104, "a call and its file");
_Static_assert(sizeof(struct iot_enter) == 24, "beginning of a phase");
_Static_assert(sizeof(struct iot_text) == 32, "header of a text");
_Static_assert(sizeof(struct iot_file) == 112, "header of a file");
_Static_assert(sizeof(struct iot_thread) == 48, "thread");
_Static_assert(sizeof(struct iot_process) == 40, "process");
_Static_assert(sizeof(struct iot_group) == 32, "header of a control group");
_Static_assert(sizeof(struct iot_map) == 48, "map");
_Static_assert(sizeof(struct iot_real) == 48, "question");
_Static_assert(sizeof(struct iot_busy) == 32, "many brief calls");
_Static_assert(sizeof(struct iot_bio) == 80, "bio");
_Static_assert(sizeof(struct iot_req) == 88, "request");
_Static_assert(sizeof(struct iot_disk) == 48, "disk");
_Static_assert(sizeof(struct iot_dirty) == 56, "dirty pages");
_Static_assert(sizeof(struct iot_stream) == 48, "stream");
_Static_assert(sizeof(struct iot_operation) == 128, "operation");
_Static_assert(sizeof(struct iot_cache) == 56, "page cache");
_Static_assert(sizeof(struct iot_inner) == 32, "time inside a call");
_Static_assert(sizeof(struct iot_kept) == 160, "a call that was remembered");
_Static_assert(sizeof(struct iot_rpc) == 96, "request of a client");
_Static_assert(sizeof(struct iot_reply) == 88, "reply of a server");

#endif
