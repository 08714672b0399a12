//! Bytes from the kernel to [`Event`]s: the only place that looks at raw memory.
//!
//! Layouts are those of `bpf/event.h`, through the types the skeleton generates from it. Bytes from the
//! kernel are checked, never trusted to be complete: what does not fit is an error for the caller to count.
#![allow(unsafe_code)]

use crate::event::{
    About, Asked, BUCKETS, Bio, Cached, Call, Cgroup, Dirtied, Enter, Event, Figures, FileKey, Histograms, Kept,
    Message, OffCpu, Operation, Replied, Reply, Request, Runs, Said, Sighting, TIMES, TextKind, Wanted, Written,
    size_class, time_bin,
};
use crate::hist::{TABLE_BITS, bounds, bucket};
use crate::skel::types as t;
use plain::Plain;
use std::collections::HashMap;
use std::mem::size_of;

// SAFETY: all of these are `repr(C)` structs of integers and integer arrays (bpf/event.h): every bit pattern is a value.
unsafe impl Plain for t::iot_call {}
// SAFETY: as above.
unsafe impl Plain for t::iot_syscall {}
// SAFETY: as above.
unsafe impl Plain for t::iot_enter {}
// SAFETY: as above.
unsafe impl Plain for t::iot_text {}
// SAFETY: as above.
unsafe impl Plain for t::iot_file {}
// SAFETY: as above.
unsafe impl Plain for t::iot_thread {}
// SAFETY: as above.
unsafe impl Plain for t::iot_process {}
// SAFETY: as above.
unsafe impl Plain for t::iot_map {}
// SAFETY: as above.
unsafe impl Plain for t::iot_busy {}
// SAFETY: as above.
unsafe impl Plain for t::iot_group {}
// SAFETY: as above.
unsafe impl Plain for t::iot_bio {}
// SAFETY: as above.
unsafe impl Plain for t::iot_dirty {}
// SAFETY: as above.
unsafe impl Plain for t::iot_req {}
// SAFETY: as above.
unsafe impl Plain for t::iot_disk {}
// SAFETY: as above.
unsafe impl Plain for t::iot_stream {}
// SAFETY: as above.
unsafe impl Plain for t::iot_operation {}
// SAFETY: as above.
unsafe impl Plain for t::iot_cache {}
// SAFETY: as above.
unsafe impl Plain for t::iot_inner {}
// SAFETY: as above.
unsafe impl Plain for t::iot_kept {}
// SAFETY: as above.
unsafe impl Plain for t::iot_rpc {}
// SAFETY: as above.
unsafe impl Plain for t::iot_reply {}
// SAFETY: as above (bpf/spec.h), and without padding: the fields fill the struct.
unsafe impl Plain for t::iot_spec {}

// SAFETY: as above, and without padding.
unsafe impl Plain for t::iot_real {}

// SAFETY: as above (bpf/sum.h).
unsafe impl Plain for t::iot_sum_key {}
// SAFETY: as above.
unsafe impl Plain for t::iot_sum {}
// SAFETY: as above.
unsafe impl Plain for t::iot_counts {}
// SAFETY: as above (bpf/event.h, bpf/operation.h, bpf/block.h).
unsafe impl Plain for t::iot_stopped {}
// SAFETY: as above.
unsafe impl Plain for t::iot_op_key {}
// SAFETY: as above.
unsafe impl Plain for t::iot_op {}
// SAFETY: as above.
unsafe impl Plain for t::iot_inflight {}

/// A value that user space reads from the kernel by itself.
pub fn value<T: Plain + Copy>(bytes: &[u8]) -> Option<T> {
    plain::from_bytes(bytes).ok().copied()
}

/// A question to the kernel as the bytes of a program's context.
pub fn real_bytes(question: &t::iot_real) -> &[u8] {
    // SAFETY: `iot_real` has no padding (asserted below), so that every byte of it is initialised.
    unsafe { plain::as_bytes(question) }
}

/// The answer.
pub fn real(bytes: &[u8]) -> Option<&t::iot_real> {
    plain::from_bytes(bytes).ok()
}

/// What a sum is about, whose it is: the process and, where that is known, the number of its program; and of which row:
/// past the rows of the catalog stand the operations of devices. And is it of one thread alone?
pub fn sum_key(bytes: &[u8]) -> Option<(About, Option<Runs>, u32, bool)> {
    let key: t::iot_sum_key = value(bytes)?;
    let about = match t::iot_about_what(u32::from(key.what)) {
        t::iot_about_what::IOT_SUM_FILE => {
            About::File(FileKey { dev: key.b as u32, generation: (key.b >> 32) as u32, ino: key.a })
        }
        t::iot_about_what::IOT_SUM_HANDLE => {
            let opened = (key.b != u64::MAX).then_some(((key.b >> 32) as u32, key.b as u32));
            About::Handle { raw: key.a, opened }
        }
        t::iot_about_what::IOT_SUM_DEVICE => About::Device(key.a as u32),
        _ => About::Nothing,
    };
    let process = (key.process != NOBODY).then_some((key.process, key.program.checked_sub(1)));
    Some((about, process, u32::from(key.row), key.thread != 0))
}

/// Bytes of the key and the value of a table of sums.
pub const fn sum_sizes() -> (u32, u32) {
    (size_of::<t::iot_sum_key>() as u32, size_of::<t::iot_sum>() as u32)
}

/// No calls.
pub const NO_COUNTS: Histograms = [[0; BUCKETS]; 2];

/// The figures of a sum, and its calls by bucket of their durations and sizes. In that of one thread `alone` the most
/// frequent sizes are in no other figure; of other sums, and of all sizes that are not among them, `Counts` has the
/// buckets.
pub fn figures(bytes: &[u8], alone: bool) -> Option<(Figures, Histograms)> {
    let s: t::iot_sum = value(bytes)?;
    let common = |c: &t::iot_common| -> Vec<(u64, u64)> {
        let told = c.value.iter().zip(c.n).filter(|(value, n)| **value > 0 && *n > 0);
        told.map(|(value, n)| (value - 1, u64::from(n))).collect()
    };
    let mut counts = NO_COUNTS;
    let mut by_time = [0; TIMES];
    for (bucket, n) in s.by_time.into_iter().enumerate() {
        counts[0][bucket] = n;
        by_time[time_bin(bounds::<TABLE_BITS>(bucket).0)] += u64::from(n);
    }
    let sizes = common(&s.sizes);
    let mut bytes = s.bytes;
    let mut by_size = s.by_size.map(u64::from);
    for (size, n) in sizes.iter().filter(|_| alone) {
        bytes = bytes.wrapping_add(size.wrapping_mul(*n));
        by_size[size_class(*size)] += n;
        let count = &mut counts[1][bucket::<TABLE_BITS>(*size)];
        *count = count.saturating_add(*n as u32);
    }
    let figures = Figures {
        calls: by_time.iter().sum(),
        nested: s.nested,
        errors: s.errors,
        unknown: s.unknown,
        bytes,
        asked: bytes.wrapping_add(s.missing),
        time: s.time,
        own: s.time.saturating_sub(s.inner).saturating_add(s.nested_own),
        max: s.max,
        max_at: s.max_at,
        first: s.first,
        last: s.last,
        end: s.end,
        sequential: s.skipping.saturating_add(s.consecutive),
        consecutive: s.consecutive,
        switches: s.switches,
        unaligned: s.unaligned,
        miss: s.miss,
        ahead: s.ahead,
        waited: s.waited,
        away: s.away,
        queued: s.queued,
        locked: s.locked,
        sizes,
        other_sizes: s.sizes.others,
        strides: common(&s.strides),
        other_strides: s.strides.others,
        by_size,
        by_time,
        error: None,
    };
    Some((figures, counts))
}

/// Counts by bucket of durations and of sizes.
pub fn counts(bytes: &[u8]) -> Option<Histograms> {
    value::<t::iot_counts>(bytes).map(|c| [c.time, c.size])
}

/// A spec as the bytes of its map value.
pub fn spec_bytes(spec: &t::iot_spec) -> &[u8] {
    // SAFETY: `iot_spec` has no padding (asserted below), so that every byte of it is initialised.
    unsafe { plain::as_bytes(spec) }
}

const _: () = assert!(size_of::<t::iot_spec>() == 4 * 8 + 4 + 4 + 8 + 4 + 8 + 4 * 8 + 8);
const _: () = assert!(size_of::<t::iot_real>() == 2 * 4 + 8 + 8 + 4 * 4 + 8);
const _: () = assert!(size_of::<t::iot_call>() == 88);
const _: () = assert!(size_of::<t::iot_syscall>() == 104);
const _: () = assert!(size_of::<t::iot_enter>() == 24);
const _: () = assert!(size_of::<t::iot_text>() == 32);
const _: () = assert!(size_of::<t::iot_file>() == 112);
const _: () = assert!(size_of::<t::iot_thread>() == 48);
const _: () = assert!(size_of::<t::iot_process>() == 40);
const _: () = assert!(size_of::<t::iot_map>() == 48);
const _: () = assert!(size_of::<t::iot_busy>() == 32);
const _: () = assert!(size_of::<t::iot_group>() == 32);
const _: () = assert!(size_of::<t::iot_bio>() == 80);
const _: () = assert!(size_of::<t::iot_disk>() == 48);
const _: () = assert!(size_of::<t::iot_dirty>() == 56);
const _: () = assert!(size_of::<t::iot_req>() == 88);
const _: () = assert!(size_of::<t::iot_stream>() == 48);
const _: () = assert!(size_of::<t::iot_operation>() == 128);
const _: () = assert!(size_of::<t::iot_cache>() == 56);
const _: () = assert!(size_of::<t::iot_inner>() == 32);
const _: () = assert!(size_of::<t::iot_kept>() == 160);
const _: () = assert!(size_of::<t::iot_sum_key>() == 32);
const _: () = assert!(size_of::<t::iot_rpc>() == 96);
const _: () = assert!(size_of::<t::iot_reply>() == 88);

/// `iot_call.flags` of `bpf/event.h` (macros do not reach the skeleton).
pub mod flags {
    pub const HANDLE: u8 = 0x01;
    pub const LEN: u8 = 0x02;
    pub const GOT: u8 = 0x04;
    pub const OFF: u8 = 0x08;
    pub const UNFINISHED: u8 = 0x10;
    pub const CUT: u8 = 0x20;
    pub const DIRECT: u8 = 0x40;
    pub const FILE: u8 = 0x80;
}

/// With `iot_call.type`: `IOT_D_SELF`, `IOT_D_WHOLE`.
mod marks {
    pub const ITSELF: u8 = 0x80;
    pub const WHOLE: u8 = 0x40;
    pub const ALL: u8 = ITSELF | WHOLE;
}

/// The records that have them, with those of another place in the decoder.
const MARKED: [u32; 1] = [t::iot_type::IOT_T_OPERATION.0];

/// `IOT_NOT_KNOWN`.
const NOBODY: u32 = u32::MAX;

/// `iot_reply.known`.
mod known {
    pub const RANGE: u8 = 0x01;
    pub const MOVED: u8 = 0x02;
}

/// `iot_bio.flags`.
mod bio {
    pub const TRACED: u8 = 0x01;
    pub const IN_CALL: u8 = 0x02;
    pub const OPERATION: u8 = 0x04;
    pub const FILE: u8 = 0x08;
    pub const JOURNAL: u8 = 0x10;
    pub const META: u8 = 0x20;
    pub const KERNEL: u8 = 0x40;
}
/// `IOT_UNKNOWN`.
const UNKNOWN: u64 = u64::MAX;
const DUR_BITS: u32 = 46;
const CPU_BITS: u32 = 12;

/// A record could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It is shorter than its type, or says it is longer than it is.
    #[error("a record of type {kind} and {len} bytes is too short")]
    Short { kind: u8, len: usize },
    /// No such type.
    #[error("a record of unknown type {0}")]
    Unknown(u8),
}

/// A target mapped an executable file that no one has judged yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    pub pid: u32,
    /// The file, and when it was last written. None: a process that is to be looked at whole.
    pub file: Option<(FileKey, Written)>,
    /// A thread that was not its first has executed a program: what is attached to the process before is gone.
    pub moved: bool,
}

/// A thread makes many calls of a function that are shorter than their probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// As in [`Call`].
    pub spec: u16,
    /// It made so many of them in this time (ns), and they took so long together, as the probe measures it.
    pub calls: u32,
    pub elapsed: u64,
    pub took: u32,
}

/// What a record is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// For the correlator.
    Event(Event),
    /// For the attach engine.
    Mapped(Mapped),
    /// For the same.
    Busy(Busy),
    /// A piece of something whose last piece is still to come.
    Partial,
}

/// Is this a record for the attach engine? Cheap, for the thread that drains the rings.
pub fn is_for_engine(bytes: &[u8]) -> bool {
    let kinds = [t::iot_type::IOT_T_MAP, t::iot_type::IOT_T_BUSY];
    bytes.first().is_some_and(|b| kinds.iter().any(|kind| kind.0 == u32::from(*b)))
}

#[derive(Default)]
struct ExecTexts {
    exe: Vec<u8>,
    args: Vec<u8>,
    env: Vec<u8>,
}

/// Threads that may be about to execute a program at a time: far more than CPUs. Of an exec that is lost its texts would stay.
const EXECS: usize = 4096;

/// Decodes records; remembers the texts of an exec until the exec itself comes.
#[derive(Default)]
pub struct Decoder {
    execs: HashMap<u32, ExecTexts>,
}

fn get<T: Plain>(kind: u8, bytes: &[u8]) -> Result<&T, WireError> {
    plain::from_bytes(bytes).map_err(|_| WireError::Short { kind, len: bytes.len() })
}

fn tail<T>(kind: u8, bytes: &[u8], len: u32) -> Result<&[u8], WireError> {
    let from = size_of::<T>();
    bytes.get(from..from + len as usize).ok_or(WireError::Short { kind, len: bytes.len() })
}

/// Components, innermost first and each ended by NUL, to an absolute path; where the outer ones were cut off it begins
/// with an ellipsis.
fn join_path(components: &[u8], cut: bool) -> Vec<u8> {
    let mut path = Vec::with_capacity(components.len() + 4);
    if cut {
        path.extend_from_slice("…".as_bytes());
    }
    for part in components.split(|b| *b == 0).rev().filter(|p| !p.is_empty() && *p != b"/") {
        path.push(b'/');
        path.extend_from_slice(part);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}

/// The path of a file in its file system, if that is known.
fn inside(f: &t::iot_file, parts: &[u8]) -> Option<Vec<u8>> {
    let (seen, more) = parts.split_at_checked(f.len as usize)?;
    Some(join_path(&[seen.get(..f.within as usize)?, more].concat(), false))
}

fn until_nul(bytes: &[u8]) -> String {
    let text = bytes.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

const S_IFMT: u16 = 0o170_000;
const S_IFDIR: u16 = 0o040_000;

/// How many names it has. What a directory counts is the directories in it.
fn links(f: &t::iot_file) -> u32 {
    u32::from(if f.mode & S_IFMT == S_IFDIR { f.nlink.min(1) } else { f.nlink })
}

/// The path of a file. Sockets and pipes have none but are called as in /proc/PID/fd.
fn path_of(f: &t::iot_file, components: &[u8]) -> Vec<u8> {
    const S_IFIFO: u16 = 0o010_000;
    const S_IFSOCK: u16 = 0o140_000;
    let path = join_path(components, f.cut != 0);
    match f.mode & S_IFMT {
        S_IFSOCK => format!("socket:[{}]", f.ino).into_bytes(),
        S_IFIFO if path == b"/" => format!("pipe:[{}]", f.ino).into_bytes(),
        _ => path,
    }
}

fn strings(bytes: &[u8]) -> Vec<Vec<u8>> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() { Vec::new() } else { bytes.split(|b| *b == 0).map(<[u8]>::to_vec).collect() }
}

fn call(c: &t::iot_call, file: Option<FileKey>) -> Call {
    let has = |bit: u8| c.flags & bit != 0;
    Call {
        spec: c.spec,
        thread: c.thread,
        seq: c.seq,
        depth: (c.dur_cpu_depth >> (DUR_BITS + CPU_BITS)) as u8,
        start: c.start,
        dur: c.dur_cpu_depth & ((1 << DUR_BITS) - 1),
        probe: c.probe,
        off_cpu: (c.away != UNKNOWN).then_some(OffCpu { all: c.away, queued: c.queued }),
        cpu: (c.dur_cpu_depth >> DUR_BITS) as u16 & ((1 << CPU_BITS) - 1),
        status: c.status,
        handle: has(flags::HANDLE).then_some(c.handle),
        len: has(flags::LEN).then_some(c.len),
        got: has(flags::GOT).then_some(c.got),
        off: has(flags::OFF).then_some(c.off),
        file,
        unfinished: has(flags::UNFINISHED),
        direct: has(flags::DIRECT),
        truncated: has(flags::CUT),
        wanted: match c.r#type & marks::ALL {
            0 => Wanted::No,
            marks::ITSELF => Wanted::Itself,
            _ => Wanted::Whole,
        },
    }
}

/// A message of FUSE: `struct fuse_in_header` and `fuse_read_in` or `fuse_write_in`; `struct fuse_out_header` and
/// `fuse_write_out` (`include/uapi/linux/fuse.h`).
fn message(r: &t::iot_rpc) -> Message {
    const IN: u32 = 40;
    const OUT: u32 = 16;
    let words = r.message.as_chunks().0;
    let half = |at: usize| words.get(at / 4).map_or(0, |word| u32::from_ne_bytes(*word));
    let whole = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    let (length, second) = (half(0), half(4));
    let what = if r.reply == 0 {
        Said::Asked(Asked {
            operation: second,
            dev: (r.dev != 0).then_some(i64::from(r.dev)),
            tid: i32::try_from(half(32)).ok().filter(|tid| *tid > 0 && r.nested == 0),
            range: (length >= IN + 24).then(|| (whole(48), half(56))),
        })
    } else {
        let body = length.saturating_sub(OUT);
        let errno = i16::try_from((second as i32).saturating_neg()).unwrap_or(i16::MAX);
        Said::Replied(Replied { errno, body, taken: (body >= 8).then(|| half(16)) })
    };
    Message { time: r.time, thread: r.thread, seq: r.seq, channel: r.channel, number: whole(8), what }
}

fn reply(r: &t::iot_reply) -> Reply {
    let has = |bit| r.flags & bit != 0;
    let knows = |bit| r.known & bit != 0;
    Reply {
        time: r.time,
        received: r.received,
        number: r.xid,
        operation: r.op,
        client: has(bio::TRACED).then(|| (r.client_thread, has(bio::IN_CALL).then_some(r.client_seq))),
        client_tid: i32::try_from(r.client_tid).ok().filter(|tid| *tid > 0),
        server: [r.tgid, r.tid],
        range: knows(known::RANGE).then_some((r.offset, r.asked)),
        moved: knows(known::MOVED).then_some(r.moved),
        status: r.status,
    }
}

fn kept(k: &t::iot_kept) -> Event {
    let key = FileKey { dev: k.e.dev, generation: k.e.generation, ino: k.e.ino };
    let known = |n: u64| (k.known != 0).then_some(n);
    Event::Kept(Box::new(Kept {
        call: call(&k.e.call, (k.e.call.flags & flags::FILE != 0).then_some(key)),
        told: k.told,
        inner: k.inner,
        cached: Cached { miss: known(k.miss), ahead: known(k.ahead), throttled: k.throttled, locked: k.locked },
    }))
}

fn enter(e: &t::iot_enter) -> Event {
    Event::Enter(Enter {
        spec: e.spec,
        thread: e.thread,
        seq: e.seq,
        depth: e.depth,
        start: e.start,
        cpu: e.cpu as u16 & ((1 << CPU_BITS) - 1),
    })
}

fn thread(h: &t::iot_thread) -> Event {
    Event::Thread { time: h.time, thread: h.thread, process: h.process, pid: h.tgid, tid: h.tid, comm: h.comm }
}

fn forked(p: &t::iot_process) -> Event {
    Event::Process {
        time: p.time,
        process: p.process,
        parent: (p.parent != NOBODY).then_some(p.parent),
        runs: p.status != 0,
        pid: p.tgid,
        ppid: p.ppid,
        uid: p.uid,
    }
}

fn bio_of(b: &t::iot_bio) -> Event {
    let key = FileKey { dev: b.dev, generation: b.generation, ino: b.ino };
    let has = |bit: u8| b.flags & bit != 0;
    Event::Bio(
        b.time,
        Bio {
            req: b.req,
            file: has(bio::FILE).then_some(key),
            off: b.off,
            bytes: b.bytes,
            queued: b.queued,
            of: has(bio::OPERATION).then_some(b.of),
            submitter: has(bio::TRACED).then(|| (b.thread, has(bio::IN_CALL).then_some(b.seq))),
            journal: has(bio::JOURNAL).then_some(b.dev),
            meta: has(bio::META),
            kernel: has(bio::KERNEL),
            cgroup: (b.cgroup != 0).then_some(b.cgroup),
        },
    )
}

fn operation(o: &t::iot_operation) -> Event {
    let key = FileKey { dev: o.dev, generation: o.generation, ino: o.ino };
    Event::Operation(Operation {
        call: call(&o.call, (o.call.flags & flags::FILE != 0).then_some(key)),
        told: o.told,
        of: (o.in_call != 0).then_some(o.of),
        found_by: (o.found != 0).then_some((o.by_thread, o.by_seq)),
        summed: o.summed != 0,
    })
}

fn cached(c: &t::iot_cache) -> Event {
    let known = |n: u64| (c.known != 0).then_some(n);
    let cached = Cached { miss: known(c.miss), ahead: known(c.ahead), throttled: c.throttled, locked: c.locked };
    Event::Cached { time: c.time, thread: c.thread, seq: c.seq, cached }
}

fn dirtied(d: &t::iot_dirty) -> Event {
    Event::Dirty(Dirtied {
        time: d.time,
        file: FileKey { dev: d.dev, generation: d.generation, ino: d.ino },
        off: d.off,
        bytes: d.bytes,
        thread: d.thread,
        seq: (d.in_call != 0).then_some(d.seq),
    })
}

fn request(r: &t::iot_req) -> Event {
    Event::Request(Request {
        req: r.req,
        dev: r.dev,
        sector: r.sector,
        bytes: r.bytes,
        cmd_flags: r.cmd_flags,
        status: r.status,
        nr_bios: r.nr_bios,
        splits: r.splits,
        pid: r.pid,
        queued: r.queued,
        inserted: (r.inserted != 0).then_some(r.inserted),
        issued: r.issued,
        completed: (r.unseen == 0).then_some(r.completed),
        unseen: (r.unseen != 0).then_some(r.completed),
        upper: (r.upper_dev != 0).then_some((r.upper_dev, r.upper_sector)),
    })
}

fn disk(d: &t::iot_disk) -> Event {
    let name: Vec<u8> = d.name.iter().map(|c| *c as u8).take_while(|b| *b != 0).collect();
    Event::Disk { time: d.time, dev: d.dev, name: String::from_utf8_lossy(&name).into_owned() }
}

fn syscall(s: &t::iot_syscall) -> Event {
    let key = FileKey { dev: s.dev, generation: s.generation, ino: s.ino };
    Event::Call(call(&s.call, (s.call.flags & flags::FILE != 0).then_some(key)))
}

fn file(kind: u8, bytes: &[u8]) -> Result<Event, WireError> {
    let f: &t::iot_file = get(kind, bytes)?;
    let parts = tail::<t::iot_file>(kind, bytes, f.len.saturating_add(f.more))?;
    let path = path_of(f, parts.get(..f.len as usize).unwrap_or_default());
    let below = FileKey { dev: f.data_dev, generation: f.data_generation, ino: f.data_ino };
    Ok(Event::File {
        time: f.time,
        key: FileKey { dev: f.dev, generation: f.generation, ino: f.ino },
        pid: f.tgid,
        seen: Sighting {
            path,
            root: f.root,
            inside: inside(f, parts),
            mount: f.mount as i32,
            fs_dev: f.fs_dev,
            size: f.size,
            fstype: until_nul(&f.fstype),
            block_size: 1u32.checked_shl(u32::from(f.blkbits)),
            links: links(f),
            data: (f.data_ino != 0).then_some(below),
        },
    })
}

fn belongs(kind: u8, bytes: &[u8]) -> Result<Event, WireError> {
    let g: &t::iot_group = get(kind, bytes)?;
    let path = join_path(tail::<t::iot_group>(kind, bytes, g.len)?, g.cut != 0);
    let path = String::from_utf8_lossy(&path).into_owned();
    // In the root of the hierarchy is what nobody put anywhere: its number tells nothing.
    let id = (g.len > 0).then_some(g.id);
    let cgroup = (g.known != 0).then_some(Cgroup { path, id });
    Ok(Event::Belongs { time: g.time, process: g.process, uid: g.uid, user: None, cgroup })
}

fn mapped(m: &t::iot_map) -> Record {
    let key = FileKey { dev: m.dev, generation: m.generation, ino: m.ino };
    Record::Mapped(Mapped {
        pid: m.tgid,
        file: (m.ino != 0).then_some((key, (m.sec as i64, i64::from(m.nsec)))),
        moved: m.moved != 0,
    })
}

impl Decoder {
    /// Decodes one record.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Record, WireError> {
        let kind = *bytes.first().ok_or(WireError::Short { kind: 0, len: 0 })?;
        let event = match t::iot_type(u32::from(kind & !marks::ALL)) {
            t::iot_type::IOT_T_CALL => Event::Call(call(get(kind, bytes)?, None)),
            t::iot_type::IOT_T_SYSCALL => syscall(get(kind, bytes)?),
            t::iot_type::IOT_T_KEPT => kept(get(kind, bytes)?),
            _ if kind & marks::ALL != 0 && !MARKED.contains(&u32::from(kind & !marks::ALL)) => {
                return Err(WireError::Unknown(kind));
            }
            t::iot_type::IOT_T_ENTER => enter(get(kind, bytes)?),
            t::iot_type::IOT_T_TEXT => return self.text(kind, bytes),
            t::iot_type::IOT_T_FILE => file(kind, bytes)?,
            t::iot_type::IOT_T_THREAD => thread(get(kind, bytes)?),
            t::iot_type::IOT_T_FORK => forked(get(kind, bytes)?),
            t::iot_type::IOT_T_EXEC => self.executed(get(kind, bytes)?),
            t::iot_type::IOT_T_GROUP => belongs(kind, bytes)?,
            t::iot_type::IOT_T_EXIT => {
                let p: &t::iot_process = get(kind, bytes)?;
                Event::Exit { time: p.time, process: p.process, status: p.status }
            }
            t::iot_type::IOT_T_MAP => return Ok(mapped(get(kind, bytes)?)),
            t::iot_type::IOT_T_BUSY => {
                let b: &t::iot_busy = get(kind, bytes)?;
                let spec = u16::try_from(b.spec).unwrap_or(u16::MAX);
                return Ok(Record::Busy(Busy { spec, calls: b.calls, elapsed: b.elapsed, took: b.took }));
            }
            t::iot_type::IOT_T_BIO => bio_of(get(kind, bytes)?),
            t::iot_type::IOT_T_OPERATION => operation(get(kind, bytes)?),
            t::iot_type::IOT_T_STREAM => {
                let s: &t::iot_stream = get(kind, bytes)?;
                let key = FileKey { dev: s.dev, generation: s.generation, ino: s.ino };
                Event::Stream { time: s.time, thread: s.thread, stream: s.stream, fd: s.fd, key }
            }
            t::iot_type::IOT_T_CACHE => cached(get(kind, bytes)?),
            t::iot_type::IOT_T_DIRTY => dirtied(get(kind, bytes)?),
            t::iot_type::IOT_T_REQ => request(get(kind, bytes)?),
            t::iot_type::IOT_T_INNER => {
                let i: &t::iot_inner = get(kind, bytes)?;
                Event::Inner { time: i.time, thread: i.thread, seq: i.seq, inner: i.inner }
            }
            t::iot_type::IOT_T_RPC => Event::Message(message(get(kind, bytes)?)),
            t::iot_type::IOT_T_REPLY => Event::Reply(reply(get(kind, bytes)?)),
            t::iot_type::IOT_T_DISK => disk(get(kind, bytes)?),
            _ => return Err(WireError::Unknown(kind)),
        };
        Ok(Record::Event(event))
    }

    fn executed(&mut self, p: &t::iot_process) -> Event {
        let texts = self.execs.remove(&p.thread).unwrap_or_default();
        Event::Exec {
            time: p.time,
            process: p.process,
            program: p.status,
            exe: texts.exe,
            args: strings(&texts.args),
            env: strings(&texts.env),
        }
    }

    fn text(&mut self, kind: u8, bytes: &[u8]) -> Result<Record, WireError> {
        let x: &t::iot_text = get(kind, bytes)?;
        let text = tail::<t::iot_text>(kind, bytes, x.len)?;
        let of_operation = u32::from(x.what) & t::iot_text_kind::IOT_X_OPERATION.0;
        let (what, bytes) = match t::iot_text_kind(u32::from(x.what) ^ of_operation) {
            t::iot_text_kind::IOT_X_PATH => (TextKind::Path, text.to_vec()),
            t::iot_text_kind::IOT_X_PATH2 => (TextKind::Path2, text.to_vec()),
            t::iot_text_kind::IOT_X_BASE => (TextKind::Base, join_path(text, x.cut != 0)),
            t::iot_text_kind::IOT_X_BASE2 => (TextKind::Base2, join_path(text, x.cut != 0)),
            t::iot_text_kind(ints @ 16..32) => (TextKind::Ints((ints - 16) as u8), text.to_vec()),
            t::iot_text_kind(words @ 32..48) => (TextKind::Words((words - 32) as u8), text.to_vec()),
            part => {
                if self.execs.len() >= EXECS && !self.execs.contains_key(&x.thread) {
                    self.execs.clear();
                }
                let texts = self.execs.entry(x.thread).or_default();
                match part {
                    t::iot_text_kind::IOT_X_EXE => {
                        *texts = ExecTexts { exe: join_path(text, x.cut != 0), ..ExecTexts::default() };
                    }
                    t::iot_text_kind::IOT_X_ARGS => texts.args.extend_from_slice(text),
                    t::iot_text_kind::IOT_X_ENV => texts.env.extend_from_slice(text),
                    _ => return Err(WireError::Unknown(kind)),
                }
                return Ok(Record::Partial);
            }
        };
        let (time, thread, seq, root, cut) = (x.time, x.thread, x.seq, x.root, x.cut != 0);
        let operation = of_operation != 0;
        Ok(Record::Event(Event::Text { time, thread, seq, what, bytes, root, cut, operation }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_sum_of_one_thread_does_not_keep_follows_from_what_it_keeps() {
        let mut sum: t::iot_sum = value(&[0; size_of::<t::iot_sum>()]).unwrap();
        sum.sizes.value[..2].copy_from_slice(&[4097, 513]);
        sum.sizes.n[..2].copy_from_slice(&[3, 2]);
        // One of another size, and so much more than was moved was asked for.
        (sum.sizes.others, sum.bytes, sum.missing) = (1, 10, 7);
        sum.by_size[0] = 1;
        sum.by_time[bucket::<TABLE_BITS>(1000)] = 5;
        sum.by_time[bucket::<TABLE_BITS>(3)] = 1;
        // SAFETY: `iot_sum` has no padding (bpf/sum.h), so that every byte of it is initialised.
        let bytes = unsafe { plain::as_bytes(&sum) };
        let (own, [durations, sizes]) = figures(bytes, true).unwrap();
        let moved = 3 * 4096 + 2 * 512 + 10;
        assert_eq!((own.calls, own.bytes, own.asked), (6, moved, moved + 7));
        assert_eq!((own.by_size[..4].to_vec(), own.by_time[..4].to_vec()), (vec![1, 2, 3, 0], vec![1, 0, 0, 5]));
        assert_eq!((durations[bucket::<TABLE_BITS>(1000)], sizes[bucket::<TABLE_BITS>(4096)]), (5, 3));
        // Where others add to it at the same time, all is in it.
        let (shared, [_, sizes]) = figures(bytes, false).unwrap();
        assert_eq!((shared.bytes, shared.by_size[2], sizes), (10, 0, [0; BUCKETS]));
        assert_eq!(shared.sizes, own.sizes);

        // Counts of a damaged sum do not run over.
        sum.sizes.value[1] = 4098;
        sum.sizes.n[..2].copy_from_slice(&[u32::MAX, 5]);
        // SAFETY: as above.
        let (_, [_, sizes]) = figures(unsafe { plain::as_bytes(&sum) }, true).unwrap();
        assert_eq!(sizes[bucket::<TABLE_BITS>(4096)], u32::MAX);
    }

    #[test]
    fn components_become_a_path() {
        assert_eq!(join_path(b"run.h5\0out\0tmp\0", false), b"/tmp/out/run.h5");
        assert_eq!(join_path(b"", false), b"/");
        assert_eq!(join_path(b"c\0b\0", true), "…/b/c".as_bytes());
    }

    #[test]
    fn arguments_keep_empty_strings() {
        assert_eq!(strings(b"a\0\0b\0"), vec![b"a".to_vec(), b"".to_vec(), b"b".to_vec()]);
        assert!(strings(b"").is_empty());
    }

    #[test]
    fn texts_of_execs_that_were_lost_do_not_pile_up() {
        let mut d = Decoder::default();
        let text = |thread: u32| {
            let what = t::iot_text_kind::IOT_X_EXE.0 as u8;
            let text = t::iot_text { r#type: t::iot_type::IOT_T_TEXT.0 as u8, what, thread, ..t::iot_text::default() };
            // SAFETY: `iot_text` has no padding: its fields fill its 32 bytes.
            unsafe { plain::as_bytes(&text) }.to_vec()
        };
        for thread in 0..3 * EXECS as u32 {
            assert_eq!(d.decode(&text(thread)), Ok(Record::Partial));
            assert!(d.execs.len() <= EXECS);
        }
    }

    #[test]
    fn a_request_whose_end_was_not_seen_has_none() {
        let ends = [0, 1].map(|unseen| {
            let kind = t::iot_type::IOT_T_REQ.0 as u8;
            let req = t::iot_req { r#type: kind, unseen, issued: 5, completed: 9, ..t::iot_req::default() };
            // SAFETY: `iot_req` has no padding: its fields fill its 88 bytes.
            let decoded = Decoder::default().decode(unsafe { plain::as_bytes(&req) });
            let Ok(Record::Event(Event::Request(request))) = decoded else { panic!("{decoded:?}") };
            (request.completed, request.unseen, request.told())
        });
        assert_eq!(ends, [(Some(9), None, 9), (None, Some(9), 9)]);
    }

    #[test]
    fn a_short_record_is_an_error() {
        let mut d = Decoder::default();
        for kind in (1..=12u8).chain([14, 20, 28, 29, 30]) {
            let mut bytes = [0u64; 1];
            bytes[0] = u64::from(kind);
            let raw: Vec<u8> = bytes.iter().flat_map(|w| w.to_ne_bytes()).collect();
            assert_eq!(d.decode(&raw), Err(WireError::Short { kind, len: 8 }));
        }
        assert_eq!(d.decode(&[99, 0]), Err(WireError::Unknown(99)));
        assert!(d.decode(&[]).is_err());
    }

    #[test]
    fn a_request_and_its_reply_are_read_as_the_kernel_lays_them_out() {
        let mut record = t::iot_rpc { thread: 3, seq: 4, dev: 5, time: 6, channel: 7, ..t::iot_rpc::default() };
        let put = |record: &mut t::iot_rpc, at: usize, bytes: &[u8]| {
            record.message[at..][..bytes.len()].copy_from_slice(bytes);
        };
        for (at, word) in [(0, 80_u32), (4, 15), (8, 9), (32, 1234), (56, 4096)] {
            put(&mut record, at, &word.to_ne_bytes());
        }
        put(&mut record, 48, &(1_u64 << 40).to_ne_bytes());
        let asked = Asked { operation: 15, dev: Some(5), tid: Some(1234), range: Some((1 << 40, 4096)) };
        let expected = Message { time: 6, thread: 3, seq: 4, channel: 7, number: 9, what: Said::Asked(asked) };
        assert_eq!(message(&record), expected);
        // Numbers of threads in another namespace are other threads' here.
        record.nested = 1;
        assert_eq!(message(&record).what, Said::Asked(Asked { tid: None, ..asked }));
        record.reply = 1;
        for (at, word) in [(0, 24_u32), (4, (-5_i32) as u32), (16, 77)] {
            put(&mut record, at, &word.to_ne_bytes());
        }
        assert_eq!(message(&record).what, Said::Replied(Replied { errno: 5, body: 8, taken: Some(77) }));
    }

    #[test]
    fn a_reply_has_what_is_known_of_it() {
        let mut record =
            t::iot_reply { client_thread: 3, client_seq: 4, asked: 5, moved: 6, ..t::iot_reply::default() };
        let decoded = reply(&record);
        assert_eq!(decoded.client_tid.map(i64::from).or(decoded.client.map(|c| c.0.into())), None);
        assert_eq!((decoded.range, decoded.moved), (None, None));
        (record.flags, record.known, record.client_tid) = (bio::TRACED | bio::KERNEL, known::RANGE, 9);
        let decoded = reply(&record);
        assert_eq!((decoded.client, decoded.client_tid), (Some((3, None)), Some(9)));
        assert_eq!((decoded.range, decoded.moved), (Some((0, 5)), None));
        (record.flags, record.known) = (bio::TRACED | bio::IN_CALL, known::MOVED);
        let decoded = reply(&record);
        assert_eq!((decoded.client, decoded.range, decoded.moved), (Some((3, Some(4))), None, Some(6)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(words in proptest::collection::vec(any::<u64>(), 0..40), kind in 0u8..32) {
            let mut raw: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
            if let Some(first) = raw.first_mut() {
                *first = kind;
            }
            let _ = Decoder::default().decode(&raw);
        }
    }
}
