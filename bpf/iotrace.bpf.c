// SPDX-License-Identifier: GPL-2.0
/* The kernel side, in the order of the stack: records, rings, tasks, calls, then one file per layer. */
#include "vmlinux/x86_64/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* Positions of the layers in words::LAYERS. */
#define IOT_LAYER_APP	  0
#define IOT_LAYER_NETCDF  1 /* the I/O libraries: from here ... */
#define IOT_LAYER_MPIIO	  4 /* ... to here */
#define IOT_LAYER_SYSCALL 7
#define IOT_LAYER_VFS	  8
#define IOT_LAYER_BLOCK	  10

#include "read.h"
#include "event.h"
#include "spec.h"
#include "ring.h"
#include "pid.h"
#include "glibc.h"
#include "task.h"
#include "cost.h"
#include "path.h"
#include "stream.h"
#include "wait.h"
#include "call.h"
#include "access.h"
#include "figure.h"
#include "sum.h"
#include "detail.h"
#include "words.h"
#include "mapping.h"
#include "stack.h"
#include "brief.h"
#include "lib.h"
#include "operation.h"
#include "uring.h"
#include "kaio.h"
#include "cache.h"
#include "lock.h"
#include "vfs.h"
#include "argument.h"
#include "copy.h"
#include "restart.h"
#include "rpc.h"
#include "syscall.h"
#include "group.h"
#include "process.h"
#include "served.h"
#include "fault.h"
#include "symbols.h"
#include "bio.h"
#include "block.h"
#include "nfs.h"
#include "real.h"
#include "inflight.h"

/* Records that no map or global holds are named here, so that the skeleton has their types. */
const struct iot_syscall *iot_unused_syscall __attribute__((unused));
const struct iot_enter *iot_unused_enter __attribute__((unused));
const struct iot_text *iot_unused_text __attribute__((unused));
const struct iot_thread *iot_unused_thread __attribute__((unused));
const struct iot_group *iot_unused_group __attribute__((unused));
const struct iot_process *iot_unused_process __attribute__((unused));
const struct iot_map *iot_unused_map __attribute__((unused));
const struct iot_bio *iot_unused_bio __attribute__((unused));
const struct iot_dirty *iot_unused_dirty __attribute__((unused));
const struct iot_disk *iot_unused_disk __attribute__((unused));
const struct iot_req *iot_unused_req __attribute__((unused));
const struct iot_operation *iot_unused_operation __attribute__((unused));
const struct iot_stream *iot_unused_stream __attribute__((unused));
const struct iot_cache *iot_unused_cache __attribute__((unused));
const struct iot_inner *iot_unused_inner __attribute__((unused));
const struct iot_kept *iot_unused_kept __attribute__((unused));
const struct iot_sum_key *iot_unused_sum_key __attribute__((unused));
const struct iot_sum *iot_unused_sum __attribute__((unused));
const struct iot_counts *iot_unused_counts __attribute__((unused));
const enum iot_about_what *iot_unused_about_what __attribute__((unused));
const enum iot_kind *iot_unused_kind __attribute__((unused));
const enum iot_sums_how *iot_unused_sums_how __attribute__((unused));
const enum iot_cost_row *iot_unused_cost_row __attribute__((unused));
const enum iot_brief_state *iot_unused_brief_state __attribute__((unused));
const enum iot_lib_state *iot_unused_lib_state __attribute__((unused));
const struct iot_busy *iot_unused_busy __attribute__((unused));
const struct iot_rpc *iot_unused_rpc __attribute__((unused));
const struct iot_reply *iot_unused_reply __attribute__((unused));
const struct iot_real *iot_unused_real __attribute__((unused));
const enum iot_how *iot_unused_how __attribute__((unused));
const enum iot_about_how *iot_unused_about __attribute__((unused));
const enum iot_when *iot_unused_when __attribute__((unused));
const enum iot_count *iot_unused_count __attribute__((unused));
const enum iot_fails *iot_unused_fails __attribute__((unused));
const enum iot_place *iot_unused_place __attribute__((unused));
const enum iot_type *iot_unused_type __attribute__((unused));
const enum iot_text_kind *iot_unused_text_kind __attribute__((unused));
const enum iot_class *iot_unused_class __attribute__((unused));
const enum iot_scope *iot_unused_scope __attribute__((unused));

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
_Static_assert(sizeof(struct iot_sum_key) == 32, "what a sum is about");
_Static_assert(sizeof(struct iot_rpc) == 96, "request of a client");
_Static_assert(sizeof(struct iot_reply) == 88, "reply of a server");
_Static_assert(sizeof(struct iot_stopped) == 80 + 32 * 72 + 32 * 16 + 64 * 8 && IOT_OPEN_MAX == IOT_DEPTH,
	       "open calls");

char LICENSE[] SEC("license") = "GPL";
