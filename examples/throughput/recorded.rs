//! A recorded run of a parallel HDF5 program as the records that the kernel side sends, again and again, of many ranks.

use anyhow::Result;
use iotrace_bpf::catalog::{self, Role};
use iotrace_bpf::export::{Dataset, Table};
use iotrace_bpf::loader::kernel::rings::Batch;
use iotrace_bpf::rows::{Block, BlockBytes, BlockLink, File, Handle, Object, SEQ_BITS, Span, Thread};
use iotrace_bpf::vocabulary::{Layer, flag};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Bytes of a batch, as the thread that drains the rings makes it.
const BATCH: usize = 256 * 1024;
/// The rings of all CPUs are emptied this often, in ns.
const POLL: i64 = 5_000_000;
/// Records that may still be out of order: those of 0.3 s at a million per second.
const LAG: usize = 300_000;
/// Runs at the same time, each a bit later than the one before, in ns.
const TOGETHER: u32 = 16;
const LATER: i64 = 1_300_000;

/// `iot_type`, `iot_call.flags` and `iot_bio.flags` of `bpf/event.h`.
mod wire {
    pub const CALL: u8 = 1;
    pub const SYSCALL: u8 = 2;
    pub const TEXT: u8 = 3;
    pub const FILE: u8 = 4;
    pub const THREAD: u8 = 5;
    pub const FORK: u8 = 6;
    pub const BIO: u8 = 10;
    pub const REQ: u8 = 11;
    pub const F_HANDLE: u8 = 0x01;
    pub const F_LEN: u8 = 0x02;
    pub const F_GOT: u8 = 0x04;
    pub const F_OFF: u8 = 0x08;
    pub const F_DIRECT: u8 = 0x40;
    pub const F_FILE: u8 = 0x80;
    pub const B_TRACED: u8 = 0x01;
    pub const B_IN_CALL: u8 = 0x02;
    pub const B_FILE: u8 = 0x08;
}

/// A record that is being laid out as in `bpf/event.h`.
struct Wire(Vec<u8>);

impl Wire {
    fn new(kind: u8, size: usize) -> Self {
        Self(std::iter::once(kind).chain(std::iter::repeat_n(0, size - 1)).collect())
    }

    fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn half(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    fn whole(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    fn then(mut self, tail: &[u8]) -> Self {
        self.0.extend_from_slice(tail);
        self
    }
}

/// When a record is sent, on which CPU, and what it is.
struct Sent {
    time: i64,
    cpu: i16,
    bytes: Vec<u8>,
}

/// Which of the runs: how many calls, requests, threads and processes came before it, and how much later it is.
#[derive(Clone, Copy)]
struct Shift {
    calls: u32,
    requests: u64,
    threads: u32,
    processes: u32,
    ns: i64,
}

/// The run that happens again and again.
pub struct Recorded {
    /// With the number of its row in the catalog.
    spans: Vec<(Span, u16)>,
    opens: Vec<bool>,
    block: Vec<Block>,
    links: HashMap<i64, BlockLink>,
    bytes: HashMap<i64, BlockBytes>,
    files: BTreeMap<i32, File>,
    handles: BTreeMap<i32, Handle>,
    objects: BTreeMap<i32, Object>,
    threads: Vec<Thread>,
}

fn all<T: Table>(dataset: &Dataset) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    dataset.rows(|row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

fn seq(span: i64) -> u32 {
    (span & ((1 << SEQ_BITS) - 1)) as u32
}

impl Recorded {
    pub fn read() -> Result<Self> {
        let dataset = Dataset::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5"))?;
        let rows = catalog::rows();
        let row = |s: &Span| rows.iter().position(|row| row.layer == s.layer && row.op == s.op);
        let spans = all::<Span>(&dataset)?.into_iter().filter(|s| s.flags & flag::ASYNC == 0);
        let spans: Vec<(Span, u16)> = spans.filter_map(|s| row(&s).map(|row| (s, row as u16))).collect();
        Ok(Self {
            opens: spans.iter().map(|(_, row)| rows[usize::from(*row)].role == Role::Open).collect(),
            spans,
            block: all(&dataset)?,
            links: all::<BlockLink>(&dataset)?.into_iter().map(|l| (l.req_id, l)).collect(),
            bytes: all::<BlockBytes>(&dataset)?.into_iter().map(|b| (b.req_id, b)).collect(),
            files: dataset.last_by_id()?,
            handles: dataset.last_by_id()?,
            objects: dataset.last_by_id()?,
            threads: all(&dataset)?,
        })
    }

    /// At least so many calls as batches from the rings, and how many there are.
    pub fn batches(&self, wanted: usize) -> (Vec<Batch>, usize) {
        let last = self.spans.iter().map(|(s, _)| s.start_ns + s.dur_ns).max().unwrap_or(0);
        let length = last + LATER * i64::from(TOGETHER) + POLL;
        let calls = self.spans.iter().map(|(s, _)| seq(s.span_id)).max().unwrap_or(0) + 1;
        let requests = self.block.iter().map(|b| b.req_id as u64).max().unwrap_or(0) + 1;
        let threads = self.threads.iter().map(|t| t.thread_ix).max().unwrap_or(0) as u32 + 1;
        let processes = self.threads.iter().map(|t| t.process_ix).max().unwrap_or(0) as u32 + 1;
        let rounds = wanted.div_ceil(self.spans.len() * TOGETHER as usize);
        let mut batches: Vec<Batch> = Vec::new();
        let mut times = Vec::new();
        for round in 0..rounds {
            let mut sent = Vec::new();
            for n in 0..TOGETHER {
                let shift = Shift {
                    calls: calls * round as u32,
                    requests: requests * u64::from(round as u32 * TOGETHER + n),
                    threads: threads * n,
                    processes: processes * n,
                    ns: length * round as i64 + LATER * i64::from(n),
                };
                if round == 0 {
                    self.begin(shift, n == 0, &mut sent);
                }
                self.run(shift, &mut sent);
            }
            // Ring after ring at each look, what is in one in order.
            sent.sort_by_key(|s| (s.time / POLL, s.cpu, s.time));
            for Sent { time, bytes, .. } in sent {
                times.push(time);
                if batches.last().is_none_or(|batch| batch.data.len() >= BATCH) {
                    if let Some((full, mark)) = batches.last_mut().zip(times.len().checked_sub(LAG)) {
                        // What is in several rings at one look is out of order.
                        full.watermark = (times[mark] / POLL * POLL).max(0) as u64;
                    }
                    batches.push(empty());
                }
                let Some(batch) = batches.last_mut() else { continue };
                batch.data.extend_from_slice(&bytes);
                batch.ends.push(batch.data.len());
                batch.data.resize(batch.data.len().next_multiple_of(8), 0);
            }
        }
        if let Some(batch) = batches.last_mut() {
            batch.watermark = (length * rounds as i64) as u64;
        }
        (batches, self.spans.len() * rounds * TOGETHER as usize)
    }

    /// Processes, threads and (told once) files.
    fn begin(&self, shift: Shift, files: bool, sent: &mut Vec<Sent>) {
        let mut put = |wire: Wire| sent.push(Sent { time: 0, cpu: 0, bytes: wire.0 });
        for t in &self.threads {
            let (thread, process) = (t.thread_ix as u32 + shift.threads, t.process_ix as u32 + shift.processes);
            let [pid, tid] = [t.pid, t.tid].map(|id| id as u32 + shift.threads * 100);
            if t.pid == t.tid {
                put(Wire::new(wire::FORK, 40).half(4, process).half(16, pid).half(28, u32::MAX));
            }
            let wire = Wire::new(wire::THREAD, 48).half(4, thread).half(16, process).half(20, pid).half(24, tid);
            put(wire.put(32, t.comm.as_bytes().get(..15).unwrap_or(t.comm.as_bytes())));
        }
        for file in self.files.values().filter(|_| files) {
            let path = file.path.as_deref().unwrap_or("/");
            let names: Vec<u8> =
                path.split('/').rev().filter(|n| !n.is_empty()).flat_map(|n| [n.as_bytes(), b"\0"].concat()).collect();
            let wire = Wire::new(wire::FILE, 112).half(4, names.len() as u32).half(80, u32::MAX);
            put(self.identity(wire, file.file_id, [16, 24, 28]).then(&names));
        }
    }

    /// Inode, device and generation.
    fn identity(&self, wire: Wire, file: i32, [ino, dev, generation]: [usize; 3]) -> Wire {
        let Some(file) = self.files.get(&file) else { return wire };
        wire.whole(ino, file.ino as u64).half(dev, file.dev as u32).half(generation, file.generation as u32)
    }

    fn run(&self, shift: Shift, sent: &mut Vec<Sent>) {
        for ((span, row), opens) in self.spans.iter().zip(&self.opens) {
            let (time, cpu) = (span.start_ns + span.dur_ns + shift.ns, span.cpu);
            let mut put = |wire: Wire| sent.push(Sent { time, cpu, bytes: wire.0 });
            if *opens {
                let object = span.object_id.and_then(|id| self.objects.get(&id)).map(|o| o.name.as_str());
                let file = span.file_id.and_then(|id| self.files.get(&id)).and_then(|f| f.path.as_deref());
                if let Some(text) = object.or(file) {
                    let wire = Wire::new(wire::TEXT, 32).half(4, text.len() as u32).whole(16, time as u64);
                    let thread = (span.span_id >> SEQ_BITS) as u32 + shift.threads;
                    put(wire.half(8, thread).half(12, seq(span.span_id) + shift.calls).then(text.as_bytes()));
                }
            }
            put(self.call(span, *row, shift));
        }
        for block in &self.block {
            let issue = block.issue_ns + shift.ns;
            let request = block.req_id as u64 + shift.requests;
            let link = self.links.get(&block.req_id);
            let file = self.bytes.get(&block.req_id).and_then(|b| b.file_id);
            let mut flags = if file.is_some() { wire::B_FILE } else { 0 };
            let mut wire = Wire::new(wire::BIO, 80).half(4, block.dev as u32).whole(8, issue as u64).whole(16, request);
            wire = wire.whole(40, block.bytes as u64).whole(48, (block.queue_ns + shift.ns) as u64);
            if let Some(link) = link {
                flags |= wire::B_TRACED | wire::B_IN_CALL;
                let thread = (link.span_id >> SEQ_BITS) as u32 + shift.threads;
                wire = wire.half(64, thread).half(68, seq(link.span_id) + shift.calls);
            }
            if let Some(file) = file {
                wire = self.identity(wire, file, [24, 4, 72]);
            }
            sent.push(Sent { time: issue, cpu: 0, bytes: wire.put(1, &[flags]).0 });
            let done = issue + block.dur_ns.unwrap_or(0);
            let wire = Wire::new(wire::REQ, 88).half(4, block.dev as u32).whole(8, request);
            let wire =
                wire.whole(16, block.sector as u64).half(24, block.bytes as u32).half(28, block.req_flags as u32);
            let wire =
                wire.whole(32, (block.queue_ns + shift.ns) as u64).whole(48, issue as u64).whole(56, done as u64);
            let wire = wire.half(76, block.pid as u32).put(80, &block.nr_bios.to_ne_bytes());
            sent.push(Sent { time: done, cpu: 0, bytes: wire.0 });
        }
    }

    fn call(&self, span: &Span, row: u16, shift: Shift) -> Wire {
        let kernel = span.layer == Layer::Syscall;
        let (kind, size) = if kernel { (wire::SYSCALL, 104) } else { (wire::CALL, 88) };
        let status = if span.errno < 0 { -1 } else { -i32::from(span.errno) };
        let handle = span.handle_id.and_then(|id| self.handles.get(&id)).map(|h| h.raw);
        let mut flags = 0;
        let mut wire = Wire::new(kind, size).put(2, &row.to_ne_bytes()).half(4, seq(span.span_id) + shift.calls);
        wire = wire.half(8, (span.span_id >> SEQ_BITS) as u32 + shift.threads).put(12, &i32::to_ne_bytes(status));
        wire = wire.whole(16, (span.start_ns + shift.ns) as u64);
        wire = wire.whole(24, span.dur_ns as u64 | (span.cpu as u64) << 46 | (span.depth as u64) << 58);
        wire = wire.whole(64, span.probe_ns.unwrap_or(0) as u64);
        let values = [
            (wire::F_HANDLE, 32, handle),
            (wire::F_LEN, 40, span.req_bytes),
            (wire::F_GOT, 48, span.bytes),
            (wire::F_OFF, 56, span.offset),
        ];
        for (flag, at, value) in values {
            if let Some(value) = value {
                flags |= flag;
                wire = wire.whole(at, value as u64);
            }
        }
        if let Some(file) = span.file_id.filter(|_| kernel) {
            flags |= wire::F_FILE;
            wire = self.identity(wire, file, [88, 96, 100]);
        }
        if span.flags & flag::DIRECT != 0 {
            flags |= wire::F_DIRECT;
        }
        wire.put(1, &[flags])
    }
}

fn empty() -> Batch {
    Batch { data: Vec::with_capacity(BATCH + 8192), ends: Vec::new(), watermark: 0 }
}
