//! Makes names of what was read from the kernel: files, ranks, functions. It looks at memory and files of others, which
//! may be stuck themselves: only a thread on which no other waits may call it.

use crate::catalog::{Argument, Family, Role, Row, Src};
use crate::inflight::{Frame, InFlight, Open, Operation, OperationKind};
use crate::loader::processes::existing;
use crate::loader::stacks::inflight::Look;
use crate::loader::stacks::symbols::Symbols;
use crate::loader::stacks::unwind::{Registers, Space, Unwinder, waits_at};
use crate::rows::span_id;
use crate::skel::types::{iot_call_flag, iot_inflight, iot_op, iot_open, iot_stopped};
use crate::vocabulary::{Kind, Layer};
use blazesym::Pid;
use blazesym::symbolize::source::{Process, Source};
use std::collections::HashMap;
use std::fs;

/// Where a C stream has its descriptor, and what it begins with: `struct iot_stdio` of `bpf/files/glibc.h`.
const STREAM_FD: u64 = 112;
const STREAM_MAGIC: u32 = 0xfbad_0000;
const STREAM_FILE: u32 = 0x2000;
/// What the kernel calls the operation of a request (`include/linux/blk_types.h`), in the low 8 bits of its flags.
const REQUESTS: [(u32, &str); 4] = [(0, "read"), (1, "write"), (2, "flush"), (3, "discard")];
const SECTOR: u64 = 512;

/// What makes names, and what it remembers.
pub struct Resolver {
    rows: Vec<Row>,
    rank_vars: Vec<String>,
    t0: u64,
    unwinder: Unwinder,
    symbols: Symbols,
}

impl Resolver {
    pub fn new(rows: Vec<Row>, rank_vars: Vec<String>, t0: u64) -> Self {
        Self { rows, rank_vars, t0, unwinder: Unwinder::default(), symbols: Symbols::default() }
    }

    pub fn resolve(&mut self, look: &Look) -> InFlight {
        let mut spaces: HashMap<u32, Option<Space>> = HashMap::new();
        let mut ranks: HashMap<u32, Option<i32>> = HashMap::new();
        let mut operations = Vec::new();
        for thread in &look.threads {
            let space = spaces.entry(thread.tgid).or_insert_with(|| self.unwinder.space(thread.tgid));
            let Some(mut operation) = self.thread(thread, space.as_ref()) else { continue };
            let stack = &thread.stack[..(thread.kernel as usize).min(thread.stack.len())];
            operation.kernel = self.symbols.kernel(stack);
            operation.user = space.as_ref().map(|space| self.user(thread, space)).unwrap_or_default();
            operations.push(operation);
        }
        operations.extend(look.operations.iter().filter_map(|(pid, op)| self.asynchronous(*pid, op)));
        operations.extend(look.requests.iter().map(|r| self.request(r)));
        for o in &mut operations {
            o.rank = *ranks.entry(o.pid).or_insert_with(|| existing::rank(o.pid, &self.rank_vars));
            o.age_ns = self.since(look.at) - o.start_ns;
        }
        let mut all = InFlight { at_ns: self.since(look.at), operations };
        all.sort();
        all
    }

    /// Since the beginning of the trace.
    fn since(&self, time: u64) -> i64 {
        time as i64 - self.t0 as i64
    }

    fn thread(&self, thread: &iot_stopped, space: Option<&Space>) -> Option<Operation> {
        let open = &thread.open[..(thread.calls as usize).min(thread.open.len())];
        let mut calls: Vec<Open> = Vec::new();
        let mut outermost = None;
        for o in open {
            let Some(row) = self.rows.get(usize::from(o.spec)) else { continue };
            let start_ns = self.since(o.start);
            if calls.last().is_some_and(|outer| start_ns < outer.start_ns) {
                break; // it began while it was looked at, and is not all there
            }
            if row.layer != Layer::App {
                outermost = outermost.or(Some(start_ns));
            }
            calls.push(Open {
                id: span_id(thread.thread, o.seq),
                layer: row.layer,
                op: row.op.to_owned(),
                kind: row.kind,
                start_ns,
                file: file(row, o, thread, space),
                bytes: number(row.values().len, o)
                    .filter(|_| row.role() == Role::Use && row.argument() == Argument::Nothing),
                offset: number(row.values().off, o).filter(|_| row.role() == Role::Use),
            });
        }
        let (first, last) = (calls.first()?, calls.last()?);
        let (id, start_ns) = (last.id, outermost.unwrap_or(first.start_ns));
        let comm = thread.comm.split(|b| *b == 0).next().unwrap_or_default();
        Some(Operation {
            kind: OperationKind::Calls,
            id,
            start_ns,
            age_ns: 0,
            pid: thread.tgid,
            tid: thread.tid,
            comm: String::from_utf8_lossy(comm).into_owned(),
            rank: None,
            calls,
            kernel: Vec::new(),
            user: Vec::new(),
        })
    }

    fn asynchronous(&self, pid: u32, op: &iot_op) -> Option<Operation> {
        let row = self.rows.get(usize::from(op.spec))?;
        let (id, start_ns) = (span_id(op.thread, op.seq), self.since(op.start));
        let valid = |flag: iot_call_flag, value: u64| (u32::from(op.flags) & flag.0 != 0).then_some(value as i64);
        let fd = valid(iot_call_flag::IOT_F_HANDLE, op.handle);
        let call = Open {
            id,
            layer: row.layer,
            op: row.op.to_owned(),
            kind: row.kind,
            start_ns,
            file: fd.and_then(|fd| link(&format!("/proc/{pid}/fd/{fd}"))),
            bytes: valid(iot_call_flag::IOT_F_LEN, op.len).filter(|_| row.role() == Role::Use),
            offset: valid(iot_call_flag::IOT_F_OFF, op.off).filter(|off| *off >= 0),
        };
        Some(waiting(OperationKind::Asynchronous, pid, call))
    }

    fn request(&self, r: &iot_inflight) -> Operation {
        let flags = r.cmd_flags & 0xff;
        let op = REQUESTS.iter().find(|(number, _)| *number == flags).map_or("other", |(_, name)| *name);
        let (major, minor) = (r.dev >> 20, r.dev & 0xf_ffff);
        let device = link(&format!("/sys/dev/block/{major}:{minor}"));
        let name = device.as_deref().and_then(|d| d.rsplit('/').next());
        let call = Open {
            id: r.req as i64,
            layer: Layer::Block,
            op: op.to_owned(),
            kind: Kind::parse(op).unwrap_or(Kind::Other),
            start_ns: self.since(r.queued),
            file: Some(name.map_or_else(|| format!("{major}:{minor}"), |name| format!("/dev/{name}"))),
            bytes: Some(i64::from(r.bytes)),
            // A flush has no sector: all bits are set.
            offset: i64::try_from(r.sector.saturating_mul(SECTOR)).ok(),
        };
        waiting(OperationKind::Request, r.pid, call)
    }

    /// Where a waiting thread is in its program. It may have gone on since: then there is no stack.
    fn user(&mut self, thread: &iot_stopped, space: &Space) -> Vec<Frame> {
        let at = Registers { ip: thread.ip, sp: thread.sp, bp: thread.bp };
        if thread.waits == 0 {
            return Vec::new();
        }
        let back = &thread.back[..(thread.returns as usize).min(thread.back.len())];
        let back = back.iter().map(|r| (r.stack, r.address)).collect();
        let stack = self.unwinder.stack(space, at, &back);
        if !waits_at(thread.tgid, thread.tid, at.sp) {
            return Vec::new();
        }
        let mut process = Process::new(Pid::from(thread.tgid));
        process.perf_map = false;
        self.symbols.frames(&stack, &Source::Process(process))
    }
}

/// What no thread waits for in a call of its own.
fn waiting(kind: OperationKind, pid: u32, call: Open) -> Operation {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Operation {
        kind,
        id: call.id,
        start_ns: call.start_ns,
        age_ns: 0,
        pid,
        tid: 0,
        comm: comm.trim_end().to_owned(),
        rank: None,
        calls: vec![call],
        kernel: Vec::new(),
        user: Vec::new(),
    }
}

fn number(src: Src, o: &iot_open) -> Option<i64> {
    let arg = |a: u8| o.a.get(usize::from(a)).map(|v| *v as i64);
    match src {
        Src::Arg(a) => arg(a),
        Src::Int(a) => arg(a).map(|v| i64::from(v as i32)),
        Src::Mul(a, b) => arg(a)?.checked_mul(arg(b)?),
        Src::Pos | Src::StreamPos => Some(o.pos).filter(|pos| *pos >= 0),
        _ => None,
    }
}

fn link(path: &str) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    Some(String::from_utf8_lossy(target.as_os_str().as_encoded_bytes()).into_owned())
}

/// The file that a call is on: of its path, its descriptor or its stream.
fn file(row: &Row, o: &iot_open, thread: &iot_stopped, space: Option<&Space>) -> Option<String> {
    let (pid, argument) = (thread.tgid, |a: u8| o.a.get(usize::from(a)).copied());
    let of_fd = |fd: i32| if fd >= 0 { link(&format!("/proc/{pid}/fd/{fd}")) } else { None };
    if let Some(path) = row.path.filter(|_| !row.names) {
        let path = space?.text(argument(path)?)?;
        let path = String::from_utf8_lossy(&path).into_owned();
        if row.layer != Layer::Syscall || path.starts_with('/') {
            return Some(path);
        }
        let base = row.base.and_then(argument).and_then(|fd| of_fd(fd as i32));
        let base = base.or_else(|| link(&format!("/proc/{pid}/cwd")))?;
        return Some(if path.is_empty() { base } else { format!("{}/{path}", base.trim_end_matches('/')) });
    }
    match (row.layer, row.values().handle) {
        (Layer::Syscall, Src::Arg(a) | Src::Int(a)) => of_fd(argument(a)? as i32),
        (Layer::Stdio, Src::Arg(a)) if row.family == Family::Libc && !row.descriptor => {
            let stream = argument(a)?;
            let magic = u32::from_ne_bytes(space?.read(stream)?);
            let fd = i32::from_ne_bytes(space?.read(stream.checked_add(STREAM_FD)?)?);
            (magic & 0xffff_0000 == STREAM_MAGIC && magic & STREAM_FILE != 0).then(|| of_fd(fd))?
        }
        (Layer::Stdio, Src::Arg(a) | Src::Int(a)) if row.descriptor => of_fd(argument(a)? as i32),
        _ => None,
    }
}
