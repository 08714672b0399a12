// SPDX-License-Identifier: GPL-2.0
/* The kernel side, in the order of the stack: records, rings, tasks, calls, then one file per layer. */
#include "vmlinux/x86_64/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "core/contract.h"
#include "core/read.h"
#include "core/event.h"
#include "core/spec.h"
#include "core/ring.h"
#include "core/pid.h"
#include "files/glibc.h"
#include "core/task.h"
#include "core/cost.h"
#include "files/path.h"
#include "files/stream.h"
#include "core/wait.h"
#include "core/value.h"
#include "calls/call.h"
#include "sums/access.h"
#include "sums/figure.h"
#include "sums/sum.h"
#include "sums/detail.h"
#include "calls/arrays.h"
#include "calls/promise.h"
#include "files/mapping.h"
#include "calls/stack.h"
#include "sums/brief.h"
#include "libraries/left.h"
#include "libraries/inner_value.h"
#include "libraries/lib.h"
#include "libraries/lines.h"
#include "libraries/uprobe.h"
#include "asynchronous/operation.h"
#include "asynchronous/uring.h"
#include "asynchronous/kaio.h"
#include "system/cache.h"
#include "system/lock.h"
#include "system/vfs.h"
#include "system/argument.h"
#include "system/copy.h"
#include "system/restart.h"
#include "remote/rpc.h"
#include "files/code.h"
#include "system/syscall.h"
#include "system/group.h"
#include "system/process.h"
#include "remote/served.h"
#include "system/fault.h"
#include "block/symbols.h"
#include "block/bio.h"
#include "block/block.h"
#include "block/request.h"
#include "remote/nfs.h"
#include "files/real.h"
#include "calls/inflight.h"

/* Types that no map or global holds are named here, so that the skeleton has them. */
#define IOT_EXPORT(kind, name) const kind iot_##name *iot_unused_##name __attribute__((unused))

IOT_EXPORT(struct, call);
IOT_EXPORT(struct, syscall);
IOT_EXPORT(struct, enter);
IOT_EXPORT(struct, text);
IOT_EXPORT(struct, thread);
IOT_EXPORT(struct, group);
IOT_EXPORT(struct, process);
IOT_EXPORT(struct, map);
IOT_EXPORT(struct, bio);
IOT_EXPORT(struct, dirty);
IOT_EXPORT(struct, disk);
IOT_EXPORT(struct, req);
IOT_EXPORT(struct, operation);
IOT_EXPORT(struct, stream);
IOT_EXPORT(struct, cache);
IOT_EXPORT(struct, inner);
IOT_EXPORT(struct, kept);
IOT_EXPORT(struct, sum_key);
IOT_EXPORT(struct, sum);
IOT_EXPORT(struct, counts);
IOT_EXPORT(struct, busy);
IOT_EXPORT(struct, rpc);
IOT_EXPORT(struct, reply);
IOT_EXPORT(struct, real);

/* Every enum of contract.h. */
IOT_EXPORT(enum, layer);
IOT_EXPORT(enum, limit);
IOT_EXPORT(enum, class);
IOT_EXPORT(enum, type);
IOT_EXPORT(enum, detail_mark);
IOT_EXPORT(enum, call_flag);
IOT_EXPORT(enum, call_bits);
IOT_EXPORT(enum, bio_flag);
IOT_EXPORT(enum, reply_flag);
IOT_EXPORT(enum, text_kind);
IOT_EXPORT(enum, loss);
IOT_EXPORT(enum, from);
IOT_EXPORT(enum, then);
IOT_EXPORT(enum, fails);
IOT_EXPORT(enum, about_how);
IOT_EXPORT(enum, when);
IOT_EXPORT(enum, count);
IOT_EXPORT(enum, deref);
IOT_EXPORT(enum, spec_flag);
IOT_EXPORT(enum, kind);
IOT_EXPORT(enum, sums_how);
IOT_EXPORT(enum, brief_state);
IOT_EXPORT(enum, cookie);
IOT_EXPORT(enum, sysno_entry);
IOT_EXPORT(enum, layout);
IOT_EXPORT(enum, fault_row);
IOT_EXPORT(enum, cost_row);
IOT_EXPORT(enum, scope);
IOT_EXPORT(enum, armed);
IOT_EXPORT(enum, detail_flag);
IOT_EXPORT(enum, lib_state);
IOT_EXPORT(enum, about_what);

/* Sizes as this compiler has them: src/event/contract.rs fails the build where the structs of the skeleton have others. */
enum iot_size {
	IOT_SIZE_CALL = sizeof(struct iot_call),
	IOT_SIZE_SYSCALL = sizeof(struct iot_syscall),
	IOT_SIZE_ENTER = sizeof(struct iot_enter),
	IOT_SIZE_TEXT = sizeof(struct iot_text),
	IOT_SIZE_FILE = sizeof(struct iot_file),
	IOT_SIZE_THREAD = sizeof(struct iot_thread),
	IOT_SIZE_PROCESS = sizeof(struct iot_process),
	IOT_SIZE_GROUP = sizeof(struct iot_group),
	IOT_SIZE_MAP = sizeof(struct iot_map),
	IOT_SIZE_BUSY = sizeof(struct iot_busy),
	IOT_SIZE_BIO = sizeof(struct iot_bio),
	IOT_SIZE_DIRTY = sizeof(struct iot_dirty),
	IOT_SIZE_REQ = sizeof(struct iot_req),
	IOT_SIZE_DISK = sizeof(struct iot_disk),
	IOT_SIZE_STREAM = sizeof(struct iot_stream),
	IOT_SIZE_OPERATION = sizeof(struct iot_operation),
	IOT_SIZE_CACHE = sizeof(struct iot_cache),
	IOT_SIZE_INNER = sizeof(struct iot_inner),
	IOT_SIZE_KEPT = sizeof(struct iot_kept),
	IOT_SIZE_RPC = sizeof(struct iot_rpc),
	IOT_SIZE_REPLY = sizeof(struct iot_reply),
	IOT_SIZE_SPEC = sizeof(struct iot_spec),
	IOT_SIZE_REAL = sizeof(struct iot_real),
	IOT_SIZE_SUM_KEY = sizeof(struct iot_sum_key),
	IOT_SIZE_SUM = sizeof(struct iot_sum),
	IOT_SIZE_COUNTS = sizeof(struct iot_counts),
	IOT_SIZE_STOPPED = sizeof(struct iot_stopped),
	IOT_SIZE_OP_KEY = sizeof(struct iot_op_key),
	IOT_SIZE_OP = sizeof(struct iot_op),
	IOT_SIZE_INFLIGHT = sizeof(struct iot_inflight),
};
IOT_EXPORT(enum, size);

char LICENSE[] SEC("license") = "GPL";
