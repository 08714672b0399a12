//! Memory of the kernel as structs: the only file of the event contract with `unsafe`.
#![allow(unsafe_code)]

use crate::skel::types as t;
use plain::Plain;

/// Structs of integers and integer arrays, each with the size that the kernel side has it in: a struct that the
/// skeleton lays out differently does not compile.
macro_rules! plain {
    ($($name:ident: $size:ident;)+) => {$(
        // SAFETY: `repr(C)` and nothing but integers and arrays of them (bpf/core/event.h, spec.h, sum.h, task.h,
        // operation.h, block.h): every bit pattern is a value.
        unsafe impl Plain for t::$name {}
        const _: () = assert!(size_of::<t::$name>() == t::iot_size::$size.0 as usize);
    )+};
}

plain! {
    iot_call: IOT_SIZE_CALL;
    iot_syscall: IOT_SIZE_SYSCALL;
    iot_enter: IOT_SIZE_ENTER;
    iot_text: IOT_SIZE_TEXT;
    iot_file: IOT_SIZE_FILE;
    iot_thread: IOT_SIZE_THREAD;
    iot_process: IOT_SIZE_PROCESS;
    iot_group: IOT_SIZE_GROUP;
    iot_map: IOT_SIZE_MAP;
    iot_busy: IOT_SIZE_BUSY;
    iot_bio: IOT_SIZE_BIO;
    iot_dirty: IOT_SIZE_DIRTY;
    iot_req: IOT_SIZE_REQ;
    iot_disk: IOT_SIZE_DISK;
    iot_stream: IOT_SIZE_STREAM;
    iot_operation: IOT_SIZE_OPERATION;
    iot_cache: IOT_SIZE_CACHE;
    iot_inner: IOT_SIZE_INNER;
    iot_kept: IOT_SIZE_KEPT;
    iot_rpc: IOT_SIZE_RPC;
    iot_reply: IOT_SIZE_REPLY;
    iot_spec: IOT_SIZE_SPEC;
    iot_real: IOT_SIZE_REAL;
    iot_sum_key: IOT_SIZE_SUM_KEY;
    iot_sum: IOT_SIZE_SUM;
    iot_counts: IOT_SIZE_COUNTS;
    iot_stopped: IOT_SIZE_STOPPED;
    iot_op_key: IOT_SIZE_OP_KEY;
    iot_op: IOT_SIZE_OP;
    iot_inflight: IOT_SIZE_INFLIGHT;
}

/// A value that user space reads from the kernel by itself.
pub fn value<T: Plain + Copy>(bytes: &[u8]) -> Option<T> {
    plain::from_bytes(bytes).ok().copied()
}

/// A question to the kernel as the bytes of a program's context.
pub fn real_bytes(question: &t::iot_real) -> &[u8] {
    // SAFETY: `iot_real` has no padding , so that every byte of it is initialised.
    unsafe { plain::as_bytes(question) }
}

/// The answer.
pub fn real(bytes: &[u8]) -> Option<&t::iot_real> {
    plain::from_bytes(bytes).ok()
}

/// A spec as the bytes of its map value.
pub fn spec_bytes(spec: &t::iot_spec) -> &[u8] {
    // SAFETY: `iot_spec` has no padding , so that every byte of it is initialised.
    unsafe { plain::as_bytes(spec) }
}

// No padding: the fields fill the structs.
const _: () =
    assert!(size_of::<t::iot_spec>() == 4 * size_of::<t::iot_src>() + 4 * 8 + 4 * size_of::<t::iot_array_spec>());
const _: () = assert!(size_of::<t::iot_real>() == 2 * 4 + 8 + 8 + 4 * 4 + 8);
