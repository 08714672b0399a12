//! Bytes from the kernel to [`Event`]s.
//!
//! Layouts are those of `bpf/core/event.h`, through the types the skeleton generates from it. Bytes from the
//! kernel are checked, never trusted to be complete: what does not fit is an error for the caller to count.

mod calls;
mod devices;
mod files;
mod memory;
mod sums;
#[cfg(test)]
mod tests;

pub use memory::{real, real_bytes, spec_bytes, value};
pub use sums::{NO_COUNTS, counts, figures, sum_key, sum_sizes};

/// Records as they lie in a ring, and the numbers in them, for programs that make some themselves.
pub mod records {
    pub use crate::skel::types::{
        iot_bio, iot_bio_flag, iot_call, iot_call_bits, iot_call_flag, iot_file, iot_limit, iot_process, iot_req,
        iot_syscall, iot_text, iot_thread, iot_type,
    };
}

use crate::event::{Event, FileKey, TextKind, Written};
use crate::skel::types as t;
use calls::{cached, call, deferred, enter, operation, syscall};
use devices::{bio_of, dirtied, disk, message, reply, request};
use files::{belongs, file, join_path, mapped};
use plain::Plain;
use std::collections::HashMap;

/// Bits of the type of a record that are an `iot_detail_mark`; of calls, and of these records.
const MARKS: u8 = t::iot_detail_mark::IOT_D_BITS.0 as u8;
const MARKED: [u32; 1] = [t::iot_type::IOT_T_OPERATION.0];

/// A number of 32 bits that is not known.
const NOT_KNOWN: u32 = t::iot_limit::IOT_NOT_KNOWN.0;

/// A record could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It is shorter than its type, or than its own length field.
    #[error("a record of type {kind} and {len} bytes is too short")]
    Short { kind: u8, len: usize },
    /// No such type.
    #[error("a record of unknown type {0}")]
    Unknown(u8),
}

/// A target mapped an executable file that is not classified yet.
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
    /// As in [`Call`](crate::event::Call).
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

/// Arrays, each kind with as many slots.
const INTS: u32 = t::iot_text_kind::IOT_X_INTS.0;
const INTS_END: u32 = INTS + t::iot_limit::IOT_ARRAY_SLOTS.0;
const LONGS: u32 = t::iot_text_kind::IOT_X_LONGS.0;
const LONGS_END: u32 = LONGS + t::iot_limit::IOT_ARRAY_SLOTS.0;

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

fn strings(bytes: &[u8]) -> Vec<Vec<u8>> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() { Vec::new() } else { bytes.split(|b| *b == 0).map(<[u8]>::to_vec).collect() }
}

fn thread(h: &t::iot_thread) -> Event {
    Event::Thread { time: h.time, thread: h.thread, process: h.process, pid: h.tgid, tid: h.tid, comm: h.comm }
}

fn forked(p: &t::iot_process) -> Event {
    Event::Process {
        time: p.time,
        process: p.process,
        parent: (p.parent != NOT_KNOWN).then_some(p.parent),
        runs: p.status != 0,
        pid: p.tgid,
        ppid: p.ppid,
        uid: p.uid,
    }
}

impl Decoder {
    /// Decodes one record.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Record, WireError> {
        let kind = *bytes.first().ok_or(WireError::Short { kind: 0, len: 0 })?;
        let event = match t::iot_type(u32::from(kind & !MARKS)) {
            t::iot_type::IOT_T_CALL => Event::Call(call(get(kind, bytes)?, None)),
            t::iot_type::IOT_T_SYSCALL => syscall(get(kind, bytes)?),
            t::iot_type::IOT_T_KEPT => deferred(get(kind, bytes)?),
            _ if kind & MARKS != 0 && !MARKED.contains(&u32::from(kind & !MARKS)) => {
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
            t::iot_text_kind(ints @ INTS..INTS_END) => (TextKind::Ints((ints - INTS) as u8), text.to_vec()),
            t::iot_text_kind(longs @ LONGS..LONGS_END) => (TextKind::Longs((longs - LONGS) as u8), text.to_vec()),
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
