/* SPDX-License-Identifier: GPL-2.0 */
/* Which tasks are traced, and the state of each: its open calls and the numbers that name them. */
#ifndef IOT_TASK_H
#define IOT_TASK_H

#define IOT_DEPTH	  32
#define IOT_ARGS	  12
#define IOT_KNOWN_STREAMS 16 /* streams that a thread remembers having sent */
#define IOT_PAGE_SHIFT	  12 /* of x86_64 */

#define PF_KTHREAD	  0x00200000 /* include/linux/sched.h */

#define IOT_SP_KERNEL	  1 /* iot_frame.sp of a function inside the kernel: no stack pointer */
#define IOT_KERNEL_DEPTH  8 /* such functions inside each other */

#define IOT_MAY_SERVE	  1 /* iot_task.serves: the call is not known that it was in when it was first seen */

/* iot_frame.bits of a library call */
enum iot_frame_bit {
	IOT_FRAME_NO_RETPROBE = 0x01, /* the points where it is left have probes: see IOT_COOKIE_NO_RETPROBE */
	IOT_FRAME_JUMPED = 0x02,      /* of these: it has just been left by a jump, and nothing was seen since */
	IOT_FRAME_PHASE = 0x04,
	IOT_FRAME_BRIEF = 0x08, /* its probe may go while it is open */
	IOT_FRAME_RANGE = 0x10, /* lines of a function, at the function's place of the stack */
};

/* iot_frame.range */
enum {
	IOT_RANGE_NEW = 0, /* no page was added yet */
	IOT_RANGE_KNOWN,
	IOT_RANGE_UNKNOWN
};

_Static_assert(sizeof(struct iot_stopped) == 80 + 32 * 72 + 32 * 16 + 64 * 8 && IOT_OPEN_MAX == IOT_DEPTH,
	       "open calls");

/* A call that has entered and not returned. */
struct iot_frame {
	u64 start;
	u64 sp; /* libraries: the stack pointer at entry; system calls: 0; kernel functions: IOT_SP_KERNEL */
	u32 seq;
	u16 spec;
	u8 bits;	 /* system calls: IOT_F_; libraries: IOT_FRAME_ */
	u8 present;	 /* which inner values are there; system calls: 1 when the path has been sent at entry */
	u64 back;	 /* IOT_FRAME_NO_RETPROBE: the address it returns to */
	u64 left;	 /* IOT_FRAME_NO_RETPROBE: it was left by a jump; when something in it was seen last */
	u64 a[IOT_ARGS]; /* arguments */
	u64 in;		 /* a word read at entry */
	s64 pos;	 /* where the stream stood at entry, and at return; -1: not known */
	s64 end;
	u64 inner_value[IOT_INNER_PER_CALL];
	u64 site[IOT_INNER_PER_CALL]; /* in rounds: where the library gave each inner value; of an inner call [0] its own */
	u64 sum;		      /* over the rounds */
	u64 file;		      /* system calls: struct file of the descriptor */
	u64 from;		      /* system calls: see bpf/system/cache.h */
	u64 to;
	u64 miss;
	u64 ahead;
	u64 throttled;
	u64 away; /* bpf/core/wait.h: the scheduler's times of the thread when it entered */
	u64 queued;
	u64 behind;
	u32 ran;
	u32 on;	     /* CPU */
	u64 locking; /* since when it waits for a lock */
	u64 locked;  /* how long it waited for locks, in ns */
	u64 probed;  /* iot_task.probed when it entered */
	u64 inner;   /* ns of the calls right inside it that are over, but for what hooks took */
	u64 ino;
	u32 dev;
	u32 generation;
	u32 rounds;   /* of inner values that are complete */
	u16 inside;   /* I/O libraries that it is, or runs in, a call of: bit by layer */
	u8 copy;      /* which copy of the library */
	u8 depth;     /* recorded calls around it; of an inner call one less, so that what runs in it counts on */
	u8 range;     /* system calls: is from .. to known? */
	u8 narrow;    /* system calls: what arguments point at has 32-bit pointers */
	u8 layout;    /* system calls: IOT_L_ */
	u8 copies;    /* system calls: the other file of one that copies is known: inner_value[0] and [1] */
	u32 nr;	      /* system calls: its number */
	u16 layers;   /* of the calls around it, and its own: bit by layer */
	u8 nested;    /* it is in a call of its own layer */
	u8 summed;    /* aggregate mode: it is not sent */
	u8 opening;   /* it is, or runs in, a call of a library that makes or ends handles */
	u8 marks;     /* aggregate mode: IOT_D_SELF when a call inside it was sent as one that is wanted */
	u8 holds;     /* aggregate mode: a call inside it was sent */
	u8 calls;     /* it and the calls around it that are no phases */
	u64 due;      /* aggregate mode: from then on it, or a call around it, is slow */
	u32 due_seq;  /* that call's number */
	u32 due_lost; /* and its `lost` */
	u32 lost;     /* iot_task.unkept when it entered */
	u32 pad2;
};

/* A stream that the reader knows, and what it was on. Memory is used again: only all three together identify it. */
struct iot_known_stream {
	u64 stream;
	u64 file;
	u64 inode;
};

/* A system call that a signal interrupted: it is entered again, or it has failed. */
struct iot_halted {
	struct iot_syscall e;
	u64 ip;
	u64 sp;
	u32 nr;
	u8 life; /* the class of its record */
	u8 on;	 /* there is one */
	u8 pad[2];
};

struct iot_sum_key {
	u64 a;
	u64 b;
	u32 process; /* IOT_NOT_KNOWN: no target */
	u16 row;
	u16 what;
	u32 thread;  /* the only one that adds to it; 0: any */
	u32 program; /* the number of the program that made the calls, plus 1; 0: not known */
};

_Static_assert(sizeof(struct iot_sum_key) == 32, "what a sum is about");

/* A call that is to be summed up, and what its record does not have. */
struct iot_summing {
	struct iot_sum_key key;
	u64 own;
	u64 miss;
	u64 ahead;
	u64 waited;
	u64 locked;
	u64 overlap; /* of its duration, what is in the sums already; below zero: what others left out */
	u32 nested;
	u32 pad;
};

/* How often a thread makes calls that may be shorter than their probe; see bpf/sums/brief.h. */
struct iot_brief {
	u32 calls; /* of all such functions, in this window */
	u32 same;  /* of them, those of one of them */
	u32 row;   /* that one: as iot_call.spec, plus 1 */
	u32 took;  /* what these took, in ns */
	u64 since;
};

/* How often a thread calls functions whose probes may go for a while. */
struct iot_chat {
	u32 calls;
	u32 window; /* in this one: see iot_window */
	u64 since;
};

struct iot_task {
	u32 thread; /* dense index, never reused */
	u32 process;
	u32 program; /* as iot_target.program */
	u32 seq;     /* calls entered so far */
	u32 depth;
	u32 tgid;
	u32 tid;
	u32 known;	      /* iot_targets_at when it was last seen to be a target, and announced; 0: look again */
	u8 pending_phase_end; /* `phase_end` is still to be sent */
	u8 submits;	      /* the process is among iot_submitters */
	u8 linked;	      /* the last io_uring request goes on with the next one */
	u8 copies;	      /* the process copies stacks away and back */
	u64 issuing;	      /* the io_uring request that the thread carries out while it submits; 0: not known */
	u64 trampoline;	      /* where return probes lead returns to in this process; 0: not known yet */
	u64 stack_low;	      /* the stack that the thread began on: see bpf/calls/stack.h */
	u64 stack_top;	      /* 0: not looked for yet */
	u64 dead;     /* return probes whose calls were left by longjmp: bit by their number, from the outermost */
	u64 switched; /* the stack pointer of a call with a return probe, open or left, that the thread was above of */
	u64 now;      /* end of the call whose record is being made; its texts and files carry it too */
	u64 serves;   /* the open /dev/fuse (struct file) that the thread reads from now; 0: none */
	u64 field_at; /* where a field was read last, while probes are exchanged */
	u64 field_time;
	u32 kept;      /* calls that are remembered: see bpf/sums/detail.h */
	u32 unkept;    /* and those for which there was no room */
	u32 marks;     /* of the system call that returns now: see iot_marks */
	u64 probed;    /* ns that hooks took in this thread: see bpf/core/cost.h */
	u64 published; /* of that, what is in iot_hooked */
	u64 published_at;
	u64 since;  /* when it had published last before user space looked last */
	u64 before; /* and how much that was */
	u64 began;  /* when the program that runs now was entered, if it is timed; 0 */
	u32 costs;  /* its row of iot_costs */
	u32 runs;
	u32 look; /* iot_hooked.look when it published last */
	u32 keep; /* return probes that the one of the call that enters now does not drop */
	struct iot_brief brief;
	struct iot_chat chat;
	struct iot_halted halted;
	struct iot_call phase_end;
	struct iot_syscall made; /* the record of the call that returns now: the stack has no room for it */
	struct iot_summing sum;
	struct iot_stdio stream; /* that is being looked at */
	struct iot_known_stream streams[IOT_KNOWN_STREAMS];
	struct iot_frame frames[IOT_DEPTH];
};

#define IOT_COPIES_STACKS 2 /* iot_target.armed: see iot_task.copies */

struct iot_target {
	u32 process;   /* dense index, never reused */
	u16 armed;     /* 0: traced from its next exec on; IOT_COPIES_STACKS */
	u16 inherited; /* calls that were open in its parent when it was forked, and return in it too */
	u32 program;   /* how many programs it has executed since it is a target */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct iot_target);
} iot_targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct iot_task);
} iot_tasks SEC(".maps");

/* A path that is being written, innermost component first: where the walk is, and what stands in `bytes`. */
struct iot_walk {
	u64 dentry;
	u64 mnt;
	u32 pos;
	u32 cut;
};

/*
 * Room for one text and one C stream, per task: per CPU they could be overwritten by whatever preempts us. On the stack, whose
 * 512 bytes all functions of a chain of calls share on kernels before 6.13, there is none.
 */
struct iot_scratch {
	struct iot_file file; /* the longest header; texts use its place too */
	u8 bytes[IOT_TEXT_MAX + 256];
	struct iot_stream stream;
	struct iot_operation made; /* one that is summed up */
	struct iot_summing sum;
	u64 mnt_root; /* where the path of a file left its mount */
	u64 root;     /* where paths end: dentry and mount */
	u64 root_mnt;
	struct iot_walk walk;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct iot_scratch);
} iot_scratches SEC(".maps");

u32 iot_next_thread = 1;
u32 iot_next_process = 1;

/* Changes when user space takes targets away: each thread looks again whether its process is one. */
u32 iot_targets_at = 1;

/* 0: every thread of a target has a state, or it is about to execute a program: without one a thread is none of a target. */
u32 iot_unlisted = 1;

static __always_inline struct iot_scratch *iot_scratch(void)
{
	return bpf_task_storage_get(&iot_scratches, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Sends the identity of the thread; repeated until there is room, so that it is never unknown. */
__noinline int iot_announce(struct iot_task *t)
{
	struct iot_thread e = {.type = IOT_T_THREAD};

	if (!t)
		return 0;
	e.thread = t->thread;
	e.time = bpf_ktime_get_ns();
	e.process = t->process;
	e.tgid = t->tgid;
	e.tid = t->tid;
	bpf_get_current_comm(e.comm, sizeof(e.comm));
	t->known = iot_send(IOT_C_LIFE, 0, &e, sizeof(e)) ? 0 : iot_targets_at;
	return 0;
}

/* Makes the state of a thread of this target. Which task it is must be known to be what it is: the verifier asks. */
static __always_inline struct iot_task *iot_new_task(struct task_struct *task, struct iot_target *target)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t) {
		iot_unlisted = 1;
		iot_lost(IOT_LOSS_STORAGE, 0);
		return NULL;
	}
	if (t->thread)
		return t;
	t->process = target->process;
	t->program = target->program;
	t->serves = IOT_MAY_SERVE;
	t->tgid = iot_tgid_of(task);
	t->tid = iot_tid_of(task);
	t->published_at = bpf_ktime_get_ns();
	/* the last: two may be making it */
	__sync_val_compare_and_swap(&t->thread, 0, __sync_fetch_and_add(&iot_next_thread, 1));
	return t;
}

/* Of a thread that is not known to be one of a target. */
static __noinline struct iot_task *iot_look_again(struct iot_task *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tgid = iot_cfg.pid_level ? iot_tgid_of(task) : task->tgid;
	struct iot_target *target = bpf_map_lookup_elem(&iot_targets, &tgid);

	if (!target || !target->armed)
		return NULL;
	if (!t)
		t = iot_new_task(task, target);
	if (t && t->known)
		t->known = iot_targets_at;
	else if (t)
		iot_announce(t);
	if (t)
		t->copies = !!(target->armed & IOT_COPIES_STACKS);
	return t;
}

/* The state of the current task if it is traced. */
static __always_inline struct iot_task *iot_self(void)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, bpf_get_current_task_btf(), 0, 0);

	if (t && t->known == iot_targets_at)
		return t;
	return iot_look_again(t);
}

/* The same for hooks of system calls, which threads of the kernel (without a fork record) never run. */
static __always_inline struct iot_task *iot_self_of(struct task_struct *task)
{
	struct iot_task *t = bpf_task_storage_get(&iot_tasks, task, 0, 0);

	if (t && t->known == iot_targets_at)
		return t;
	return t || iot_unlisted ? iot_look_again(t) : NULL;
}

#endif
