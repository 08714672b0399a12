//! A recorded run of a parallel HDF5 program as the records that the kernel side sends, again and again, of many ranks.

use anyhow::Result;
use iotrace_bpf::catalog::{self, Role};
use iotrace_bpf::event::wire::records::{
    iot_bio, iot_bio_flag as B, iot_call, iot_call_bits, iot_call_flag as F, iot_file, iot_limit, iot_process, iot_req,
    iot_syscall, iot_text, iot_thread, iot_type as T,
};
use iotrace_bpf::export::Dataset;
use iotrace_bpf::loader::kernel::rings::Batch;
use iotrace_bpf::rows::{Block, BlockBytes, BlockLink, File, Handle, Object, SEQ_BITS, Span, Thread};
use iotrace_bpf::vocabulary::{Layer, flag};
use std::collections::{BTreeMap, HashMap};
use std::mem::offset_of;
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
/// Where the CPU and the depth of a call stand, above its duration.
const CPU_AT: u32 = iot_call_bits::IOT_DUR_BITS.0;
const DEPTH_AT: u32 = CPU_AT + iot_call_bits::IOT_CPU_BITS.0;

/// A record that is being laid out as in `bpf/core/event.h`.
struct Wire(Vec<u8>);

impl Wire {
    fn new<R>(kind: T) -> Self {
        Self(std::iter::once(kind.0 as u8).chain(std::iter::repeat_n(0, size_of::<R>() - 1)).collect())
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

fn seq(span: i64) -> u32 {
    (span & ((1 << SEQ_BITS) - 1)) as u32
}

impl Recorded {
    pub fn read() -> Result<Self> {
        let dataset = Dataset::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5"))?;
        let rows = catalog::rows();
        let row = |s: &Span| rows.iter().position(|row| row.layer == s.layer && row.op == s.op);
        let spans = dataset.all::<Span>()?.into_iter().filter(|s| s.flags & flag::ASYNC == 0);
        let spans: Vec<(Span, u16)> = spans.filter_map(|s| row(&s).map(|row| (s, row as u16))).collect();
        Ok(Self {
            opens: spans.iter().map(|(_, row)| rows[usize::from(*row)].role() == Role::Open).collect(),
            spans,
            block: dataset.all()?,
            links: dataset.all::<BlockLink>()?.into_iter().map(|l| (l.req_id, l)).collect(),
            bytes: dataset.all::<BlockBytes>()?.into_iter().map(|b| (b.req_id, b)).collect(),
            files: dataset.last_by_id()?,
            handles: dataset.last_by_id()?,
            objects: dataset.last_by_id()?,
            threads: dataset.all()?,
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

    /// Processes, threads and (once each) files.
    fn begin(&self, shift: Shift, files: bool, sent: &mut Vec<Sent>) {
        let mut put = |wire: Wire| sent.push(Sent { time: 0, cpu: 0, bytes: wire.0 });
        for t in &self.threads {
            let (thread, process) = (t.thread_ix as u32 + shift.threads, t.process_ix as u32 + shift.processes);
            let [pid, tid] = [t.pid, t.tid].map(|id| id as u32 + shift.threads * 100);
            if t.pid == t.tid {
                let wire = Wire::new::<iot_process>(T::IOT_T_FORK).half(offset_of!(iot_process, process), process);
                let wire = wire.half(offset_of!(iot_process, tgid), pid);
                put(wire.half(offset_of!(iot_process, parent), iot_limit::IOT_NOT_KNOWN.0));
            }
            let wire = Wire::new::<iot_thread>(T::IOT_T_THREAD).half(offset_of!(iot_thread, thread), thread);
            let wire = wire.half(offset_of!(iot_thread, process), process).half(offset_of!(iot_thread, tgid), pid);
            let wire = wire.half(offset_of!(iot_thread, tid), tid);
            put(wire.put(offset_of!(iot_thread, comm), t.comm.as_bytes().get(..15).unwrap_or(t.comm.as_bytes())));
        }
        for file in self.files.values().filter(|_| files) {
            let path = file.path.as_deref().unwrap_or("/");
            let names: Vec<u8> =
                path.split('/').rev().filter(|n| !n.is_empty()).flat_map(|n| [n.as_bytes(), b"\0"].concat()).collect();
            let wire = Wire::new::<iot_file>(T::IOT_T_FILE).half(offset_of!(iot_file, len), names.len() as u32);
            let wire = wire.half(offset_of!(iot_file, within), iot_limit::IOT_NOT_KNOWN.0);
            put(self
                .identity(
                    wire,
                    file.file_id,
                    [offset_of!(iot_file, ino), offset_of!(iot_file, dev), offset_of!(iot_file, generation)],
                )
                .then(&names));
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
                    let wire = Wire::new::<iot_text>(T::IOT_T_TEXT).half(offset_of!(iot_text, len), text.len() as u32);
                    let wire = wire.whole(offset_of!(iot_text, time), time as u64);
                    let thread = (span.span_id >> SEQ_BITS) as u32 + shift.threads;
                    let wire = wire.half(offset_of!(iot_text, thread), thread);
                    let wire = wire.half(offset_of!(iot_text, seq), seq(span.span_id) + shift.calls);
                    put(wire.then(text.as_bytes()));
                }
            }
            put(self.call(span, *row, shift));
        }
        for block in &self.block {
            let issue = block.issue_ns + shift.ns;
            let request = block.req_id as u64 + shift.requests;
            let link = self.links.get(&block.req_id);
            let file = self.bytes.get(&block.req_id).and_then(|b| b.file_id);
            let mut flags = if file.is_some() { B::IOT_B_FILE.0 } else { 0 };
            let mut wire = Wire::new::<iot_bio>(T::IOT_T_BIO).half(offset_of!(iot_bio, dev), block.dev as u32);
            wire = wire.whole(offset_of!(iot_bio, time), issue as u64).whole(offset_of!(iot_bio, req), request);
            wire = wire.whole(offset_of!(iot_bio, bytes), block.bytes as u64);
            wire = wire.whole(offset_of!(iot_bio, queued), (block.queue_ns + shift.ns) as u64);
            if let Some(link) = link {
                flags |= B::IOT_B_TRACED.0 | B::IOT_B_IN_CALL.0;
                let thread = (link.span_id >> SEQ_BITS) as u32 + shift.threads;
                wire = wire.half(offset_of!(iot_bio, thread), thread);
                wire = wire.half(offset_of!(iot_bio, seq), seq(link.span_id) + shift.calls);
            }
            if let Some(file) = file {
                wire = self.identity(
                    wire,
                    file,
                    [offset_of!(iot_bio, ino), offset_of!(iot_bio, dev), offset_of!(iot_bio, generation)],
                );
            }
            sent.push(Sent { time: issue, cpu: 0, bytes: wire.put(offset_of!(iot_bio, flags), &[flags as u8]).0 });
            let done = issue + block.dur_ns.unwrap_or(0);
            let wire = Wire::new::<iot_req>(T::IOT_T_REQ).half(offset_of!(iot_req, dev), block.dev as u32);
            let wire = wire.whole(offset_of!(iot_req, req), request);
            let wire = wire.whole(offset_of!(iot_req, sector), block.sector as u64);
            let wire = wire.half(offset_of!(iot_req, bytes), block.bytes as u32);
            let wire = wire.half(offset_of!(iot_req, cmd_flags), block.req_flags as u32);
            let wire = wire.whole(offset_of!(iot_req, queued), (block.queue_ns + shift.ns) as u64);
            let wire = wire.whole(offset_of!(iot_req, issued), issue as u64);
            let wire = wire.whole(offset_of!(iot_req, completed), done as u64);
            let wire = wire.half(offset_of!(iot_req, pid), block.pid as u32);
            let wire = wire.put(offset_of!(iot_req, nr_bios), &block.nr_bios.to_ne_bytes());
            sent.push(Sent { time: done, cpu: 0, bytes: wire.0 });
        }
    }

    fn call(&self, span: &Span, row: u16, shift: Shift) -> Wire {
        let kernel = span.layer == Layer::Syscall;
        let status = if span.errno < 0 { -1 } else { -i32::from(span.errno) };
        let handle = span.handle_id.and_then(|id| self.handles.get(&id)).map(|h| h.raw);
        let mut flags = 0;
        let call = || Wire::new::<iot_call>(T::IOT_T_CALL);
        let mut wire = if kernel { Wire::new::<iot_syscall>(T::IOT_T_SYSCALL) } else { call() };
        wire = wire.put(offset_of!(iot_call, spec), &row.to_ne_bytes());
        wire = wire.half(offset_of!(iot_call, seq), seq(span.span_id) + shift.calls);
        wire = wire.half(offset_of!(iot_call, thread), (span.span_id >> SEQ_BITS) as u32 + shift.threads);
        wire = wire.put(offset_of!(iot_call, status), &i32::to_ne_bytes(status));
        wire = wire.whole(offset_of!(iot_call, start), (span.start_ns + shift.ns) as u64);
        let (cpu, depth) = ((span.cpu as u64) << CPU_AT, (span.depth as u64) << DEPTH_AT);
        wire = wire.whole(offset_of!(iot_call, dur_cpu_depth), span.dur_ns as u64 | cpu | depth);
        wire = wire.whole(offset_of!(iot_call, probe), span.probe_ns.unwrap_or(0) as u64);
        let values = [
            (F::IOT_F_HANDLE, offset_of!(iot_call, handle), handle),
            (F::IOT_F_LEN, offset_of!(iot_call, len), span.req_bytes),
            (F::IOT_F_GOT, offset_of!(iot_call, got), span.bytes),
            (F::IOT_F_OFF, offset_of!(iot_call, off), span.offset),
        ];
        for (flag, at, value) in values {
            if let Some(value) = value {
                flags |= flag.0;
                wire = wire.whole(at, value as u64);
            }
        }
        if let Some(file) = span.file_id.filter(|_| kernel) {
            flags |= F::IOT_F_FILE.0;
            let at = [offset_of!(iot_syscall, ino), offset_of!(iot_syscall, dev), offset_of!(iot_syscall, generation)];
            wire = self.identity(wire, file, at);
        }
        if span.flags & flag::DIRECT != 0 {
            flags |= F::IOT_F_DIRECT.0;
        }
        wire.put(offset_of!(iot_call, flags), &[flags as u8])
    }
}

fn empty() -> Batch {
    Batch { data: Vec::with_capacity(BATCH + 8192), ends: Vec::new(), watermark: 0 }
}
