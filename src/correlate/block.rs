//! Block requests: what they are, how many were in flight, which spans they serve.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use super::dirty::{Dirty, Writer};
use super::roots::Roots;
use super::rows::{Block, BlockLink, Metric, Row, span_id};
use super::stack::Tree;
use crate::event::{Bio, Request};

/// Linux `include/linux/blk_types.h`.
mod req {
    pub const OP: u32 = 0xff;
    pub const META: u32 = 1 << 12;
    pub const FUA: u32 = 1 << 17;
    pub const PREFLUSH: u32 = 1 << 18;
    pub const RAHEAD: u32 = 1 << 19;
    pub const BACKGROUND: u32 = 1 << 20;
    pub const SWAP: u32 = 1 << 24;
}

/// How long a completed request waits for those issued before it, whose device is not known until they complete.
const HOLD_NS: u64 = 1_000_000_000;

/// Links that wait for the root of their span.
const MAX_WAITING_LINKS: usize = 64 << 10;

/// A bio on its way, with the calls that wrote what it carries.
struct Sent {
    bio: Bio,
    file: Option<i32>,
    writers: Vec<(Writer, u64)>,
}

#[derive(Default)]
struct InFlight {
    issued: u64,
    bios: Vec<Sent>,
}

struct Done {
    request: Request,
    row: Block,
    links: BTreeMap<(Writer, &'static str), u64>,
}

/// Requests in flight, and what links them to spans.
#[derive(Default)]
pub struct Blocks {
    in_flight: HashMap<u64, InFlight>,
    issues: BTreeSet<(u64, u64)>,
    /// Completed requests by time of issue.
    done: BTreeMap<(u64, u64), Done>,
    /// Completion times of each device's requests in flight, as of the last row written.
    devices: HashMap<u32, BinaryHeap<Reverse<u64>>>,
    dirty: Dirty,
    roots: Roots,
    waiting: HashMap<u32, Vec<(u32, BlockLink)>>,
    waiting_count: usize,
    /// Written ranges dropped because there were too many.
    forgotten: usize,
}

impl Blocks {
    pub fn thread_begins(&mut self, thread: u32) {
        self.roots.begin(thread);
    }

    pub fn thread_ends(&mut self, thread: u32, out: &mut Vec<Row>) {
        self.roots.end(thread);
        self.resolve(thread, out);
    }

    /// A phase was entered outside of every call.
    pub fn phase_begins(&mut self, thread: u32, seq: u32) {
        self.roots.enter(thread, seq);
    }

    pub fn tree(&mut self, thread: u32, tree: Tree, complete: bool, out: &mut Vec<Row>) {
        self.roots.wrote(thread, tree, complete);
        if self.waiting_count > 0 {
            self.resolve(thread, out);
        }
    }

    /// The root of a call that was written; `None` while it is open.
    pub fn root(&self, thread: u32, seq: u32) -> Option<u32> {
        self.roots.root(thread, seq)
    }

    /// A write to the page cache returned.
    pub fn wrote(&mut self, file: i32, off: u64, bytes: u64, writer: Writer, at: u64) {
        self.forgotten += self.dirty.wrote(file, off, bytes, writer, at);
    }

    pub fn bio(&mut self, time: u64, bio: Bio, file: Option<i32>) {
        let end = bio.off.saturating_add(bio.bytes);
        let writers = file.map_or_else(Vec::new, |f| self.dirty.writers(f, bio.off, end, bio.queued));
        let flight = self.in_flight.entry(bio.req).or_default();
        if flight.bios.is_empty() {
            flight.issued = time;
            self.issues.insert((time, bio.req));
        }
        flight.bios.push(Sent { bio, file, writers });
    }

    pub fn request(&mut self, request: Request, relative: impl Fn(u64) -> i64, out: &mut Vec<Row>) {
        let flight = self.in_flight.remove(&request.req).unwrap_or_default();
        self.issues.remove(&(flight.issued, request.req));
        let flags = request.cmd_flags;
        let op = flags & req::OP;
        let mut links: BTreeMap<(Writer, &'static str), u64> = BTreeMap::new();
        for Sent { bio, file, writers } in &flight.bios {
            if let Some((thread, Some(seq))) = bio.submitter {
                let by = (thread, seq, bio.of.unwrap_or(seq));
                *links.entry((by, submitted(flags, bio))).or_default() += bio.bytes;
            }
            if let (true, Some(file)) = (op == 1, file) {
                for (writer, bytes) in writers {
                    *links.entry((*writer, "writeback")).or_default() += bytes;
                }
                self.dirty.clear(*file, bio.off, bio.off.saturating_add(bio.bytes), bio.queued);
            }
        }
        let row = Block {
            req_id: request.req as i64,
            dev: request.dev as i32,
            op: operation(op),
            class: class(flags, &flight.bios),
            req_flags: (flags & 0x7fff_ffff) as i32,
            sector: request.sector as i64,
            bytes: i32::try_from(request.bytes).unwrap_or(i32::MAX),
            pid: request.pid as i32,
            queue_ns: relative(request.queued),
            issue_ns: relative(request.issued),
            dur_ns: i64::try_from(request.completed.saturating_sub(request.issued)).unwrap_or(i64::MAX),
            status: i16::from(request.status),
            nr_bios: i16::try_from(request.nr_bios).unwrap_or(i16::MAX),
            qdepth: 0,
        };
        self.done.insert((request.issued, request.req), Done { request, row, links });
        self.write(Some(request.completed), out);
    }

    /// Writes the requests of which no earlier one can still complete; without `now`, all.
    fn write(&mut self, now: Option<u64>, out: &mut Vec<Row>) {
        while let Some(entry) = self.done.first_entry() {
            let issued = entry.key().0;
            let open = self.issues.first().is_some_and(|first| first.0 <= issued);
            if now.is_some_and(|now| open && now.saturating_sub(issued) < HOLD_NS) {
                return;
            }
            let Done { request, mut row, links } = entry.remove();
            let device = self.devices.entry(request.dev).or_default();
            while device.peek().is_some_and(|end| end.0 <= request.issued) {
                device.pop();
            }
            device.push(Reverse(request.completed));
            row.qdepth = i16::try_from(device.len()).unwrap_or(i16::MAX);
            let req_id = row.req_id;
            out.push(Row::Block(row));
            for (((thread, seq, of), how), bytes) in links {
                let span = span_id(thread, seq);
                self.link(
                    thread,
                    of,
                    BlockLink { req_id, span_id: span, root_id: span, bytes: bytes as i64, how },
                    out,
                );
            }
        }
    }

    /// The root of its span is that of the call `of`.
    fn link(&mut self, thread: u32, of: u32, mut link: BlockLink, out: &mut Vec<Row>) {
        match self.roots.root(thread, of) {
            None if self.waiting_count < MAX_WAITING_LINKS => {
                self.waiting.entry(thread).or_default().push((of, link));
                self.waiting_count += 1;
            }
            root => {
                link.root_id = span_id(thread, root.unwrap_or(of));
                out.push(Row::BlockLink(link));
            }
        }
    }

    fn resolve(&mut self, thread: u32, out: &mut Vec<Row>) {
        if let Some(links) = self.waiting.remove(&thread) {
            self.waiting_count -= links.len();
            for (of, link) in links {
                self.link(thread, of, link, out);
            }
        }
    }

    /// Writes everything that completed, and how many requests were still in their devices: they are not lost, but
    /// not over either.
    pub fn finish(&mut self, t_ns: i64, out: &mut Vec<Row>) {
        self.write(None, out);
        let value = self.in_flight.len() as f64;
        out.push(Row::Metric(Metric { t_ns, name: "requests_in_flight", label: None, value }));
        // No loss: on tmpfs and network file systems no request ever comes that would clear a range.
        let value = self.forgotten as f64;
        out.push(Row::Metric(Metric { t_ns, name: "dirty_ranges_forgotten", label: None, value }));
        let mut threads: Vec<u32> = self.waiting.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.thread_ends(thread, out);
        }
    }
}

fn submitted(flags: u32, bio: &Bio) -> &'static str {
    if flags & req::RAHEAD != 0 {
        "readahead"
    } else if bio.file.is_none() && flags & req::META == 0 {
        "direct"
    } else {
        "sync"
    }
}

fn operation(op: u32) -> &'static str {
    match op {
        0 => "read",
        1 => "write",
        2 => "flush",
        3 | 5 => "discard",
        7 | 11 | 13 | 15 | 17 | 19 => "zone",
        _ => "other",
    }
}

fn class(flags: u32, bios: &[Sent]) -> &'static str {
    let has = |bit: u32| flags & bit != 0;
    let write = flags & req::OP == 1;
    let file = bios.iter().any(|s| s.bio.file.is_some());
    let in_call = bios.iter().any(|s| matches!(s.bio.submitter, Some((_, Some(_)))));
    match operation(flags & req::OP) {
        "flush" => "flush",
        "discard" => "discard",
        _ if has(req::SWAP) => "swap",
        _ if has(req::RAHEAD) => "readahead",
        _ if has(req::META) => "meta",
        _ if write && !file && has(req::PREFLUSH | req::FUA) => "journal",
        _ if write && file && (has(req::BACKGROUND) || !in_call) => "writeback",
        _ => "sync",
    }
}
