//! Records of calls and operations, and of what goes with them.

use crate::event::wire::NOT_KNOWN;
use crate::event::{Cached, Call, DeferredCall, Enter, Event, FileKey, OffCpu, Operation, Wanted};
use crate::skel::types as t;
use t::{iot_call_bits, iot_call_flag as F, iot_detail_mark};

const DUR_BITS: u32 = iot_call_bits::IOT_DUR_BITS.0;
const CPU_BITS: u32 = iot_call_bits::IOT_CPU_BITS.0;
/// `IOT_UNKNOWN`: all bits set.
const NOT_KNOWN_64: u64 = (NOT_KNOWN as u64) << 32 | NOT_KNOWN as u64;

pub(super) fn call(c: &t::iot_call, file: Option<FileKey>) -> Call {
    let has = |flag: F| u32::from(c.flags) & flag.0 != 0;
    Call {
        spec: c.spec,
        thread: c.thread,
        seq: c.seq,
        depth: (c.dur_cpu_depth >> (DUR_BITS + CPU_BITS)) as u8,
        start: c.start,
        dur: c.dur_cpu_depth & ((1 << DUR_BITS) - 1),
        probe: c.probe,
        off_cpu: (c.away != NOT_KNOWN_64).then_some(OffCpu { all: c.away, queued: c.queued }),
        cpu: (c.dur_cpu_depth >> DUR_BITS) as u16 & ((1 << CPU_BITS) - 1),
        status: c.status,
        handle: has(F::IOT_F_HANDLE).then_some(c.handle),
        len: has(F::IOT_F_LEN).then_some(c.len),
        got: has(F::IOT_F_GOT).then_some(c.got),
        off: has(F::IOT_F_OFF).then_some(c.off),
        file,
        unfinished: has(F::IOT_F_UNFINISHED),
        direct: has(F::IOT_F_DIRECT),
        truncated: has(F::IOT_F_CUT),
        wanted: match iot_detail_mark(u32::from(c.r#type) & iot_detail_mark::IOT_D_BITS.0) {
            iot_detail_mark(0) => Wanted::No,
            iot_detail_mark::IOT_D_SELF => Wanted::Itself,
            _ => Wanted::Whole,
        },
    }
}

fn has_file(c: &t::iot_call) -> bool {
    u32::from(c.flags) & F::IOT_F_FILE.0 != 0
}

/// A call with the file that it was about.
fn on_file(s: &t::iot_syscall) -> Call {
    let key = FileKey { dev: s.dev, generation: s.generation, ino: s.ino };
    call(&s.call, has_file(&s.call).then_some(key))
}

pub(super) fn syscall(s: &t::iot_syscall) -> Event {
    Event::Call(on_file(s))
}

pub(super) fn deferred(k: &t::iot_kept) -> Event {
    let known = |n: u64| (k.known != 0).then_some(n);
    Event::Deferred(Box::new(DeferredCall {
        call: on_file(&k.e),
        sent: k.sent,
        inner: k.inner,
        cached: Cached { miss: known(k.miss), ahead: known(k.ahead), throttled: k.throttled, locked: k.locked },
    }))
}

pub(super) fn enter(e: &t::iot_enter) -> Event {
    Event::Enter(Enter {
        spec: e.spec,
        thread: e.thread,
        seq: e.seq,
        depth: e.depth,
        start: e.start,
        cpu: e.cpu as u16 & ((1 << CPU_BITS) - 1),
    })
}

pub(super) fn operation(o: &t::iot_operation) -> Event {
    let key = FileKey { dev: o.dev, generation: o.generation, ino: o.ino };
    Event::Operation(Operation {
        call: call(&o.call, has_file(&o.call).then_some(key)),
        seen: o.seen,
        of: (o.in_call != 0).then_some(o.of),
        found_by: (o.found != 0).then_some((o.by_thread, o.by_seq)),
        summed: o.summed != 0,
    })
}

pub(super) fn cached(c: &t::iot_cache) -> Event {
    let known = |n: u64| (c.known != 0).then_some(n);
    let cached = Cached { miss: known(c.miss), ahead: known(c.ahead), throttled: c.throttled, locked: c.locked };
    Event::Cached { time: c.time, thread: c.thread, seq: c.seq, cached }
}
